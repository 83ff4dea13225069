"""Subgraph matching: count or list the embeddings of any connected pattern."""

from longwall.pipeline.config import WorkloadSection
from longwall.pipeline.execution.environment import Environment, PatternCount
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.count_plans import CountPlan, plan_count
from longwall.pipeline.phases.search_list import list_matches
from longwall.pipeline.planning.search_plan import MatchPlan
from longwall.pipeline.planning.search_planner import plan_match
from longwall.storage.errors import InputError
from longwall.storage.graph.graph import Graph


def plan(section: WorkloadSection, graph: Graph) -> CountPlan | MatchPlan:
    """Plan the matching of the config's pattern."""
    assert section.pattern is not None
    pattern = parse_pattern(section.pattern, section.pattern_labels)
    check_labels(pattern, graph)
    if section.output == "embeddings":
        return plan_match(pattern, graph.stats, induced=section.induced, counting=False)
    return plan_count(pattern, graph, induced=section.induced)


def execute(plan: CountPlan | MatchPlan, context: Environment) -> list[PatternCount]:
    """Count or list the embeddings."""
    section = context.spec.workload
    count, lower_bound = list_matches(plan, context) if isinstance(plan, MatchPlan) else (plan.count(context), False)
    if section.count == "mappings":
        count *= plan.automorphisms
    return [PatternCount(plan.pattern.edge_text, plan.pattern.labels, count, lower_bound=lower_bound)]


def check_labels(pattern: Pattern, graph: Graph) -> None:
    """Refuse a labelled pattern on an unlabelled graph."""
    if pattern.labels is not None and not graph.has_labels:
        raise InputError("workload.pattern_labels is given, but the graph has no labels: add graph.labels")
