"""Execute plans: chunks of embeddings flow depth-first through the stages, under the memory budget.

Roots (the slots of the adjacency, each an ordered edge) are cut into tasks; the engine's workers take them one
by one. A chunk that finds no room for all its extensions leaves its rest on a stack, so a worker holds at most
one chunk per level, whatever the number of embeddings (the BFS-DFS hybrid of G-thinkerCG, section III).
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from longwall.kernels.engine import GraphArrays, RangeCounter, RowCounter, Searcher
from longwall.kernels.row_program import RowProgram
from longwall.pipeline.context import RunContext
from longwall.pipeline.plan import MatchPlan
from longwall.pipeline.workers import Task, ranges, run_tasks
from longwall.stages.counting import count_planned
from longwall.stages.export import EmbeddingWriter, RowLimit
from longwall.stages.extension import extend_planned
from longwall.stages.source import edge_source, host_arrays
from longwall.storage.budget import require
from longwall.storage.errors import InputError, RunError

LARGEST_CHUNK = 1 << 20  # rows that are listed at once; longer chunks gain nothing
PROGRESS_UNIT = "edge ends"  # every edge is the root of a task at both of its ends
_DEVICE_SHARE = 0.9
_SOURCE_ROW_BYTES = 64  # of the source's edges, with the copies that filtering makes


@dataclass
class _Meter:
    """Rows and seconds per level, summed over the workers."""

    rows_in: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    rows_out: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    seconds: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    size: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    chunks: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, level: int, rows_in: int, rows_out: int, seconds: float, size: int) -> None:
        with self.lock:
            self.rows_in[level] += rows_in
            self.rows_out[level] += rows_out
            self.seconds[level] += seconds
            self.size[level] += size
            self.chunks[level] += 1

    def record(self, context: RunContext, names: Callable[[int], str]) -> None:
        for level in sorted(self.chunks):
            context.metrics.record(
                names(level),
                level,
                self.rows_in[level],
                self.rows_out[level],
                self.seconds[level],
                self.size[level],
                self.chunks[level],
            )


def load_graph(context: RunContext) -> tuple[GraphArrays, int]:
    """Bring the graph to the engine, inside the budget.

    Returns
    -------
    graph : GraphArrays
        What the kernels read.
    memory : int
        Bytes that are left for the run.

    Raises
    ------
    InputError
        If the graph does not fit the budget.
    """
    graph, engine, budget = context.graph, context.engine, context.budget
    host = host_arrays(graph)
    require("the graph", graph.nbytes, budget.host, "memory.host")
    free = engine.free_memory()
    if free is None:
        return engine.load(host), budget.host - graph.nbytes
    available = int(free * _DEVICE_SHARE) if budget.device is None else min(budget.device, int(free * _DEVICE_SHARE))
    size = host.indptr.nbytes + host.indices.nbytes + host.split.nbytes + host.labels.nbytes
    require("the graph on the device", size, available, "memory.device")
    return engine.load(host), available - size


def count_matches(plan: MatchPlan, context: RunContext) -> int:
    """Count the embeddings of a plan; nothing but the source's edges is ever written.

    Returns
    -------
    int
        The number of embeddings (distinct subgraphs).
    """
    engine, program = context.engine, plan.program
    graph, memory = load_graph(context)
    meter = _Meter()
    levels = (program.levels[0], program.levels[1])
    share = memory // engine.workers
    rows_per_task = max(share // 2 // _SOURCE_ROW_BYTES, 1)
    pieces = max(engine.tasks(graph.num_slots), -(-graph.num_slots // rows_per_task))
    context.observer.phase("counting", graph.num_slots, PROGRESS_UNIT)

    def work(searcher: Searcher, first: int, last: int) -> int:
        began = time.perf_counter()
        table = edge_source(graph, levels, first, last, engine.xp)
        meter.add(1, last - first, len(table), time.perf_counter() - began, table.nbytes)
        began = time.perf_counter()
        found = count_planned(table, searcher)
        meter.add(plan.pattern.num_vertices - 1, len(table), found, time.perf_counter() - began, 0)
        return found

    total, _ = run_tasks(
        context,
        ranges(graph.num_slots, pieces),
        engine.workers,
        lambda _: engine.searcher(graph, program, share // 2),
        work,
    )
    meter.record(context, lambda level: "source" if level == 1 else "count")
    embeddings, rest = divmod(total, plan.redundancy)
    if rest and not context.cancel.is_set():
        raise RunError(f"internal fault: {total} matches cannot be divided by the redundancy {plan.redundancy}")
    return embeddings


def count_ranges(context: RunContext, name: str, roots: str, make: Callable[[GraphArrays, int], RangeCounter]) -> int:
    """Count with a kernel of its own, over ranges of roots.

    Parameters
    ----------
    context
        The run.
    name
        Name of the stage in the metrics.
    roots
        ``"slots"`` or ``"vertices"``: what the kernel's ranges are over; both are cut by slots.
    make
        Makes a worker's scratch from the graph and the bytes that it may take.
    """
    engine = context.engine
    graph, memory = load_graph(context)
    tasks = (_vertex_ranges if roots == "vertices" else slot_ranges)(context)
    context.observer.phase("counting", graph.num_slots, PROGRESS_UNIT)
    began = time.perf_counter()
    total, _ = run_tasks(
        context,
        tasks,
        engine.workers,
        lambda _: make(graph, memory // engine.workers),
        lambda counter, first, last: counter.count(first, last),
    )
    context.metrics.record(name, 0, tasks[-1].last, total, time.perf_counter() - began, 0, len(tasks))
    return total


def run_row_program(program: RowProgram, context: RunContext, *, exact: bool) -> tuple[list[int], list[float]]:
    """Run a row program for every vertex.

    Returns
    -------
    counts : list of int
        Sums of the program's products, modulo 2**64; meaningless unless `exact`.
    magnitudes : list of float
        The same in floating point.
    """
    engine = context.engine
    graph, memory = load_graph(context)
    tasks = _vertex_ranges(context)
    context.observer.phase("counting", graph.num_slots, PROGRESS_UNIT)
    began = time.perf_counter()

    def work(counter: RowCounter, first: int, last: int) -> int:
        counter.add(first, last)
        return 0

    _, counters = run_tasks(
        context,
        tasks,
        engine.workers,
        lambda _: engine.row_counter(graph, program, memory // engine.workers, exact=exact),
        work,
    )
    context.metrics.record("rows", 0, graph.num_vertices, 0, time.perf_counter() - began, 0, len(tasks))
    parts = [counter.totals() for counter in counters]
    counts = [sum(int(c[i]) for c, _ in parts) % 2**64 for i in range(len(program.products))]
    return counts, [sum(float(m[i]) for _, m in parts) for i in range(len(program.products))]


def slot_ranges(context: RunContext) -> list[Task]:
    """Tasks over the slots of the adjacency."""
    slots = 2 * context.graph.num_edges
    return ranges(slots, context.engine.tasks(slots))


def _vertex_ranges(context: RunContext) -> list[Task]:
    """Tasks over the vertices, cut so that each has about as many slots as the others."""
    ends = np.searchsorted(context.graph.indptr, [task.last for task in slot_ranges(context)], side="left")
    cuts = np.unique(np.concatenate([[0], ends, [context.graph.num_vertices]])).tolist()
    slots = context.graph.indptr[cuts].tolist()
    return [Task(*ends, b - a) for ends, (a, b) in zip(pairwise(cuts), pairwise(slots), strict=True)]


def list_matches(plan: MatchPlan, context: RunContext) -> int:
    """Write the embeddings of a plan as Parquet.

    Returns
    -------
    int
        The number of rows written.
    """
    engine, program, export = context.engine, plan.program, context.spec.export
    graph, memory = load_graph(context)
    share = memory // engine.workers
    capacity = _chunk_rows(plan, graph, context, share)
    meter, limit = _Meter(), RowLimit(export.limit)
    names = [f"v{vertex}" for vertex in range(plan.pattern.num_vertices)]
    unknown = sorted(set(export.columns or ()) - set(names))
    if unknown:
        raise InputError(f"export.columns: the pattern has no column {unknown[0]!r}, only {', '.join(names)}")
    levels = (program.levels[0], program.levels[1])
    metadata = {"pattern": plan.pattern.edge_text, "labels": plan.pattern.labels, "induced": plan.induced}
    context.observer.phase("listing", graph.num_slots, PROGRESS_UNIT)

    def make(number: int) -> tuple[Searcher, EmbeddingWriter]:
        writer = EmbeddingWriter(
            context.results,
            number,
            plan.order,
            context.graph.original_ids,
            columns=export.columns,
            limit=limit,
            metadata=metadata,
        )
        return engine.searcher(graph, program, share // 2), writer

    def work(own: tuple[Searcher, EmbeddingWriter], first: int, last: int) -> int:
        searcher, writer = own
        began = time.perf_counter()
        table = edge_source(graph, levels, first, last, engine.xp)
        meter.add(1, last - first, len(table), time.perf_counter() - began, table.nbytes)
        stack, before = [table], writer.rows
        while stack and not limit.reached and not context.cancel.is_set():
            chunk = stack.pop()
            if not len(chunk):
                continue
            began = time.perf_counter()
            if chunk.num_levels == program.depth:
                writer.write(chunk)
                meter.add(program.depth, len(chunk), len(chunk), time.perf_counter() - began, chunk.nbytes)
                continue
            extended, rest = extend_planned(chunk, searcher, capacity)
            done = len(chunk) - (len(rest) if rest is not None else 0)
            meter.add(chunk.num_levels, done, len(extended), time.perf_counter() - began, extended.nbytes)
            if rest is not None:
                stack.append(rest)
            stack.append(extended)
        return writer.rows - before

    pieces = max(engine.tasks(graph.num_slots), -(-graph.num_slots // capacity))
    rows, workers = run_tasks(context, ranges(graph.num_slots, pieces), engine.workers, make, work)
    for _, writer in workers:
        writer.close()
    if not rows:
        workers[0][1].ensure_file()
    meter.record(context, lambda level: {1: "source", program.depth: "export"}.get(level, "extend"))
    return rows


def _chunk_rows(plan: MatchPlan, graph: GraphArrays, context: RunContext, share: int) -> int:
    """Rows per chunk: the chunks of all levels fit half of a worker's share, and what is exported fits the host's.

    Raises
    ------
    InputError
        If a chunk of one row's extensions does not fit.
    """
    k = plan.pattern.num_vertices
    table_row, export_row = 16 * k + 64, 16 * k
    host = (context.budget.host - context.graph.nbytes) // context.engine.workers
    least = graph.max_degree + 1
    what = f"a chunk of {least} rows (the largest degree) per worker"
    require(what, 2 * least * export_row, host, "memory.host")
    option = "memory.host" if context.engine.free_memory() is None else "memory.device"
    require(what, 2 * least * (table_row + export_row), share, option)
    rows = min(share // 2 // (table_row + export_row), host // 2 // export_row)
    return max(min(rows, LARGEST_CHUNK), least)
