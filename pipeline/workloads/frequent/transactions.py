"""Frequent patterns of a database of graphs (gSpan): those that lie in enough of them."""

from longwall.pipeline.config import WorkloadSection
from longwall.pipeline.workloads.frequent.plan import FrequentPlan, plan_frequent
from longwall.pipeline.workloads.frequent.workload import execute
from longwall.storage.graph.graph import Graph

__all__ = ["execute", "plan"]


def plan(section: WorkloadSection, graph: Graph) -> FrequentPlan:
    """Plan for the config's threshold."""
    return plan_frequent(section, graph, "transactions")
