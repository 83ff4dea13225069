"""Triangles: their number, the triangles themselves, or how many each vertex is part of."""

import time
from functools import partial

import numpy as np
import pyarrow as pa

from longwall.kernels.interface.frontier import NeighbourRange
from longwall.pipeline.config import WorkloadSection
from longwall.pipeline.execution.environment import Environment, PatternCount
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.phases.count_per_vertex import counted_per_vertex
from longwall.pipeline.phases.count_plans import CountPlan, plan_count
from longwall.pipeline.phases.search_list import list_matches
from longwall.pipeline.planning.search_plan import MatchPlan
from longwall.pipeline.planning.search_planner import plan_match
from longwall.storage.graph.graph import Graph
from longwall.storage.parquet_files import write_parquet


def plan(section: WorkloadSection, graph: Graph) -> CountPlan | MatchPlan:
    """Plan for triangles."""
    pattern = parse_pattern("triangle")
    if section.output == "embeddings":
        return plan_match(pattern, graph.stats, counting=False)
    return plan_count(pattern, graph)


def execute(plan: CountPlan | MatchPlan, context: Environment) -> list[PatternCount]:
    """Count or list the triangles, in all or per vertex."""
    output = context.spec.workload.output
    lower_bound = False
    if isinstance(plan, MatchPlan):
        count, lower_bound = list_matches(plan, context)
    elif output == "vertices":
        count = _count_per_vertex(context)
    else:
        count = plan.count(context)
    return [PatternCount(plan.pattern.edge_text, None, count, lower_bound=lower_bound)]


def _count_per_vertex(context: Environment) -> int:
    """Write the number of triangles of every vertex to ``vertices.parquet``; gives the number of triangles."""
    began = time.perf_counter()
    with counted_per_vertex(
        context,
        "triangles per vertex",
        partial(context.engine.kernels.triangle_vertex_counter, context.engine.device),
        part=NeighbourRange.SMALLER,
        copies=True,
    ) as counts:
        total = sum(int(part) for part in np.add.reduceat(counts, range(0, len(counts), 1 << 20))) // 3
        context.metrics.record("count", 2, len(context.graph.indices), total, time.perf_counter() - began)
        table = pa.table({"vertex": context.graph.original_ids, "triangles": counts})
        write_parquet(table, context.results / "vertices.parquet")
    return total
