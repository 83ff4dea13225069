"""Motifs: how often every connected pattern of k vertices occurs as an induced subgraph, in all or per vertex."""

from longwall.kernels.patterns.pattern_codes import code_edges, connected_codes, edges_text
from longwall.pipeline.config import MAX_COUNTED_VERTICES, WorkloadSection
from longwall.pipeline.execution.environment import Environment, PatternCount
from longwall.pipeline.workloads.motifs.by_counting import CountingPlan, plan_counting
from longwall.pipeline.workloads.motifs.by_enumeration import EnumerationPlan, plan_enumeration
from longwall.pipeline.workloads.motifs.orbits import OrbitPlan, plan_orbits
from longwall.storage.graph.graph import Graph

_QUICK = 1e8  # steps: planning the count of every pattern takes longer than an enumeration that is so short


def plan(section: WorkloadSection, graph: Graph) -> EnumerationPlan | CountingPlan | OrbitPlan:
    """Plan for the config's size and method; the cheaper method where it leaves the choice."""
    k = section.k
    assert k is not None
    if section.output == "vertices":
        return plan_orbits(k, graph.stats)
    if section.method == "counting":
        return plan_counting(k, graph)
    enumeration = plan_enumeration(k, graph.stats)
    if section.method == "enumeration" or k > MAX_COUNTED_VERTICES or enumeration.cost < _QUICK:
        return enumeration
    counting = plan_counting(k, graph)
    return counting if counting.cost < enumeration.cost else enumeration


def execute(plan: EnumerationPlan | CountingPlan | OrbitPlan, context: Environment) -> list[PatternCount]:
    """Count the motifs; every connected pattern is in the result, those that do not occur as well."""
    k = plan.k
    texts = [edges_text(code_edges(code, k)) for code in connected_codes(k).tolist()]
    counts = plan.count(context)
    return [PatternCount(text, None, count) for text, count in zip(texts, counts, strict=True)]
