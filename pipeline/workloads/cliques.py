"""k-cliques: count them with bitmap tables, or list them by extension."""

from longwall.pipeline.config import WorkloadSection
from longwall.pipeline.execution.environment import Environment, PatternCount
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.phases.count_plans import CountPlan, plan_count
from longwall.pipeline.phases.search_list import list_matches
from longwall.pipeline.planning.search_plan import MatchPlan
from longwall.pipeline.planning.search_planner import plan_match
from longwall.storage.graph.graph import Graph


def plan(section: WorkloadSection, graph: Graph) -> CountPlan | MatchPlan:
    """Plan for the config's clique size."""
    pattern = parse_pattern(f"clique-{section.k}")
    if section.output == "embeddings":
        return plan_match(pattern, graph.stats, counting=False)
    return plan_count(pattern, graph)


def execute(plan: CountPlan | MatchPlan, context: Environment) -> list[PatternCount]:
    """Count or list the cliques."""
    count, lower_bound = list_matches(plan, context) if isinstance(plan, MatchPlan) else (plan.count(context), False)
    return [PatternCount(plan.pattern.edge_text, None, count, lower_bound=lower_bound)]
