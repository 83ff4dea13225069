"""Triangles: their number, the triangles themselves, or how many each vertex is part of."""

import os
import time
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from longwall.kernels.frontier import Part
from longwall.pipeline.checkpoint import Partial
from longwall.pipeline.config import WorkloadSection
from longwall.pipeline.context import PatternCount, RunContext
from longwall.pipeline.counting import CountPlan, plan_count
from longwall.pipeline.executor import PROGRESS_UNIT, load_graph, prepare_range, range_scratch, slot_ranges
from longwall.pipeline.listing import list_matches
from longwall.pipeline.patterns import parse_pattern
from longwall.pipeline.plan import MatchPlan
from longwall.pipeline.planner import plan_match
from longwall.pipeline.portion import make_scratch
from longwall.pipeline.workers import Worker, run_tasks
from longwall.storage.errors import FinalError
from longwall.storage.graph import Graph

_HEADER = 128  # bytes of a .npy file beside its array


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
    engine, checkpoint, disk = context.engine, context.checkpoint, context.accounts.disk
    graph, _ = load_graph(context)
    context.observer.phase("counting", graph.num_slots, PROGRESS_UNIT)
    phase = checkpoint.phase("triangles per vertex", graph.num_slots)
    disk.take(sum(file["bytes"] for file in phase.files()), "the counts of an earlier attempt")

    class TriangleWorker(Worker):
        """Its file has all that it found; each commit replaces the one before."""

        def __init__(self, number: int):  # noqa: ARG002 - workers are alike
            self._counter = make_scratch(
                engine, range_scratch(context), lambda memory: engine.triangle_vertex_counter(graph, memory)
            )
            super().__init__(context, self._counter)
            self._before: tuple[str, ...] = ()

        def run(self, first: int, last: int) -> None:
            prepare_range(context, first, last, Part.SMALLER)
            self._counter.add(first, last)

        def take(self) -> Partial:
            counts = self._counter.counts()
            name = f"checkpoint/triangles-{checkpoint.next_number('checkpoint/triangles-')}.npy"
            if not self._before:
                disk.take(counts.nbytes + _HEADER, "the counts of a checkpoint")
            with (checkpoint.folder.parent / name).open("wb") as file:
                np.save(file, counts)
                file.flush()
                os.fsync(file.fileno())
                size = file.tell()
            before, self._before = self._before, (name,)
            return Partial(0, ({"name": name, "bytes": size, "crc32": zlib.crc32(counts.data)},), replaces=before)

    began = time.perf_counter()
    run_tasks(context, phase, slot_ranges(context, 0.0), engine.workers, TriangleWorker)
    with context.accounts.host.book(16 * graph.num_vertices, "the counts"):
        counts = np.zeros(graph.num_vertices, np.int64)
        for file in phase.files():
            counts += _read_counts(checkpoint.folder.parent / file["name"], file["crc32"])
        total = sum(int(part) for part in np.add.reduceat(counts, range(0, len(counts), 1 << 20))) // 3
        context.metrics.record("count", 2, graph.num_slots, total, time.perf_counter() - began)
        table = pa.table({"vertex": context.graph.original_ids, "triangles": counts})
        pq.write_table(table, context.results / "vertices.parquet", compression="zstd")
    return total


def _read_counts(path: Path, checksum: int) -> NDArray[np.int64]:
    counts: NDArray[np.int64] = np.load(path)
    if zlib.crc32(counts.data) != checksum:
        raise FinalError(f"{path}: the run had finished this file, and it was changed: start a new run")
    return counts
