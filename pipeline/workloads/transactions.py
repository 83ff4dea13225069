"""Frequent patterns of a database of graphs (gSpan): those that lie in enough of them."""

from longwall.pipeline.config import WorkloadSection
from longwall.pipeline.frequent.plan import FrequentPlan, plan_frequent
from longwall.pipeline.workloads.frequent import execute
from longwall.storage.graph import Graph

__all__ = ["execute", "plan"]


def plan(section: WorkloadSection, graph: Graph) -> FrequentPlan:
    """Plan for the config's threshold."""
    return plan_frequent(section, graph, "transactions")
