"""Triangles: their number, the triangles themselves, or how many each vertex is part of."""

import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from longwall.kernels.engine import VertexCounter
from longwall.pipeline.config import WorkloadSection
from longwall.pipeline.context import PatternCount, RunContext
from longwall.pipeline.counting import CountPlan, plan_count
from longwall.pipeline.executor import PROGRESS_UNIT, list_matches, load_graph, slot_ranges
from longwall.pipeline.patterns import parse_pattern
from longwall.pipeline.plan import MatchPlan
from longwall.pipeline.planner import plan_match
from longwall.pipeline.workers import run_tasks
from longwall.storage.graph import Graph


def plan(section: WorkloadSection, graph: Graph) -> CountPlan | MatchPlan:
    """Plan for triangles."""
    pattern = parse_pattern("triangle")
    if section.output == "embeddings":
        return plan_match(pattern, graph.stats, counting=False)
    return plan_count(pattern, graph)


def execute(plan: CountPlan | MatchPlan, context: RunContext) -> list[PatternCount]:
    """Count or list the triangles, in all or per vertex."""
    output = context.spec.workload.output
    if isinstance(plan, MatchPlan):
        count = list_matches(plan, context)
    elif output == "vertices":
        count = _count_per_vertex(context)
    else:
        count = plan.count(context)
    return [PatternCount(plan.pattern.edge_text, None, count)]


def _count_per_vertex(context: RunContext) -> int:
    """Write the number of triangles of every vertex to ``vertices.parquet``; gives the number of triangles."""
    engine = context.engine
    graph, memory = load_graph(context)
    context.observer.phase("counting", graph.num_slots, PROGRESS_UNIT)

    def work(counter: VertexCounter, first: int, last: int) -> int:
        counter.add(first, last)
        return 0

    began = time.perf_counter()
    _, workers = run_tasks(
        context,
        slot_ranges(context),
        engine.workers,
        lambda _: engine.triangle_vertex_counter(graph, memory // engine.workers),
        work,
    )
    counts = workers[0].counts()
    for worker in workers[1:]:
        counts += worker.counts()
    total = sum(int(part) for part in np.add.reduceat(counts, range(0, len(counts), 1 << 20))) // 3
    context.metrics.record("count", 2, graph.num_slots, total, time.perf_counter() - began)
    table = pa.table({"vertex": context.graph.original_ids, "triangles": counts})
    pq.write_table(table, context.results / "vertices.parquet", compression="zstd")
    return total
