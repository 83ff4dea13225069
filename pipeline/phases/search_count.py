"""Execute plans: bring the graph to the engine, cut the roots into tasks, add up what the workers find.

Roots are the slots of the adjacency (each an ordered edge) or the vertices. Listing, which holds tables of
embeddings, is in `longwall.pipeline.phases.search_list`.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from longwall.kernels.interface.engine import ShortOfMemory, WorkspaceTooLarge
from longwall.kernels.interface.frontier import NeighbourRange
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import RowProgram
from longwall.kernels.interface.workspaces import RangeCounter
from longwall.pipeline.execution.adaptive_batch import make_scratch
from longwall.pipeline.execution.device_graph import grow_page_cache, growing_page_cache, load_graph
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.stage_metrics import StageTimer, record_levels
from longwall.pipeline.execution.task_ranges import (
    pieces_of,
    prepare_range,
    range_reads,
    range_scratch,
    slot_ranges,
    vertex_ranges,
)
from longwall.pipeline.execution.thread_executor import Dividing, Summing, Task, Worker, ranges, run_tasks
from longwall.pipeline.phases.chunked_count import count_in_chunks
from longwall.pipeline.planning.prediction import estimate_levels, predicted_rows
from longwall.pipeline.planning.search_plan import MatchPlan
from longwall.pipeline.run_store.commit_log import PartialResult, Phase
from longwall.stages.counting import count_planned
from longwall.stages.source import edge_source
from longwall.storage.errors import InputError, RunError

PROGRESS_UNIT = "arcs"  # each edge counts twice
_PREDICTION_SHARE, _LEAST_EFFORT, _MOST_EFFORT = 0.01, 1e5, 1e7  # in steps, as the planner estimates them
_SAMPLE_BYTES = 1 << 28
_LONG_COUNT = 1e11  # steps: the kernels that sample would have to be compiled besides those that count
_REFUSED = "refused"  # in the journal, in place of what a kernel would have counted whose scratch did not fit
_SOURCE_ROW_BYTES = 64  # of the source's edges, with the copies that filtering makes


def predict(plan: MatchPlan, context: Environment, graph: GraphArrays, memory: int) -> dict[int, float]:
    """Foretell the rows of every level by sampling, for a small share of what the search is estimated to take.

    Returns
    -------
    dict of int to float
        Level, as the metrics know it, to rows; empty where sampling has too little memory.
    """
    context.observer.phase("sampling", None, "steps")
    effort = min(_MOST_EFFORT, max(plan.cost * _PREDICTION_SHARE, _LEAST_EFFORT))
    memory = min(memory, _SAMPLE_BYTES)
    try:
        with context.engine.faults(), context.resources.work.reserve(memory, "a sample"):
            return predicted_rows(plan, estimate_levels(plan, graph, context.resources, memory, effort=effort))
    except (InputError, RunError, ShortOfMemory):
        return {}


def count_matches(plan: MatchPlan, context: Environment) -> int:
    """Count the embeddings of a plan; nothing but the source's edges is ever written.

    Returns
    -------
    int
        The number of embeddings (distinct subgraphs).
    """
    engine, program = context.engine, plan.program
    graph, memory = load_graph(context)
    levels = (program.levels[0], program.levels[1])
    share = memory // engine.workers
    rows_per_task = max(share // 2 // _SOURCE_ROW_BYTES, 1)
    pieces = max(pieces_of(context, plan.cost), -(-graph.num_arcs // rows_per_task))
    predicted = predict(plan, context, graph, memory) if plan.cost > _LONG_COUNT else {}
    context.observer.phase("counting", graph.num_arcs, PROGRESS_UNIT)
    last = plan.pattern.num_vertices - 1

    class SearchWorker(Summing):
        def __init__(self, number: int):  # noqa: ARG002 - workers are alike
            self._searcher = make_scratch(
                engine, share // 2, lambda memory: engine.kernels.searcher(engine.device, graph, program, memory)
            )
            super().__init__(context, self._searcher)
            self._meter = StageTimer()

        def count(self, first: int, end: int) -> int:
            with self._meter.time(1) as reading:
                table = edge_source(graph, levels, first, end, engine.xp)
                reading.rows_in, reading.rows_out, reading.size = end - first, len(table), table.nbytes
            with self._meter.time(last) as reading:
                found = count_planned(table, self._searcher)
                reading.rows_in, reading.rows_out = len(table), found
            return found

        def take(self) -> PartialResult:
            return replace(super().take(), levels=self._meter.take())

    phase = context.checkpoint.phase(f"search {plan.pattern.edge_text}", graph.num_arcs)
    total: int
    if graph.pages is not None:
        total = count_in_chunks(plan, context, graph, memory, phase, pieces)
    else:
        tasks = ranges(graph.num_arcs, pieces)
        sources = tasks[0].size * _SOURCE_ROW_BYTES * engine.workers
        with context.resources.work.reserve(sources, "the edges of the workers' tasks"):
            total = sum(run_tasks(context, phase, tasks, engine.workers, SearchWorker, combine=sum))
    record_levels(context, phase.partials, {1: "source", last: "count"}, predicted)
    embeddings, rest = divmod(total, plan.redundancy)
    if rest:
        raise RunError(f"internal fault: {total} matches cannot be divided by the redundancy {plan.redundancy}")
    return embeddings


def count_ranges(
    context: Environment,
    name: str,
    roots: str,
    cost: float,
    make: Callable[[GraphArrays, int], RangeCounter],
    *,
    copies: bool,
) -> int | None:
    """Count with a kernel of its own, over ranges of roots; gives None where its scratch does not fit the budget.

    Parameters
    ----------
    context
        The run.
    name
        Name of the stage in the metrics.
    roots
        ``"slots"`` or ``"vertices"``: what the kernel's ranges are over; both are cut by slots.
    cost
        Estimated number of elementary steps.
    make
        Makes a worker's scratch from the graph and the bytes that it may take.
    copies
        Whether the kernel looks for copies of the graph's pages: then these have what is left of the device.
    """
    engine = context.engine
    graph, _ = load_graph(context)
    by_vertex = roots == "vertices"
    tasks = (vertex_ranges if by_vertex else slot_ranges)(context, cost)
    context.observer.phase("counting", graph.num_arcs, PROGRESS_UNIT)
    began = time.perf_counter()
    phase = context.checkpoint.phase(name, tasks[-1].last)

    class RangeWorker(Summing):
        def __init__(self, number: int):  # noqa: ARG002 - workers are alike
            self._counter = make_scratch(engine, range_scratch(context), lambda memory: make(graph, memory))
            super().__init__(context, self._counter)
            if copies:
                grow_page_cache(context, range_reads(tasks, graph))

        def count(self, first: int, last: int) -> int:
            part = NeighbourRange.ALL if by_vertex else NeighbourRange.SMALLER
            prepare_range(context, first, last, part, vertices=by_vertex, copies=copies)
            return self._counter.count(first, last)

    with growing_page_cache(context):
        parts = _run_unless_refused(context, phase, tasks, RangeWorker)
    if parts is None:
        return None
    total: int = sum(parts)
    context.metrics.record(name, 0, tasks[-1].last, total, time.perf_counter() - began, 0, len(tasks))
    return total


def run_row_program(
    program: RowProgram, context: Environment, cost: float, *, exact: bool
) -> tuple[list[int], list[float]] | None:
    """Run a row program for every vertex; gives None where its scratch does not fit the budget.

    Returns
    -------
    counts : list of int
        Sums of the program's products, modulo 2**64; meaningless unless `exact`.
    magnitudes : list of float
        The same in floating point.
    """
    engine = context.engine
    graph, _ = load_graph(context)
    tasks = vertex_ranges(context, cost)
    context.observer.phase("counting", graph.num_arcs, PROGRESS_UNIT)
    began = time.perf_counter()

    class RowWorker(Dividing):
        def __init__(self, number: int):  # noqa: ARG002 - workers are alike
            self._counter = make_scratch(
                engine,
                range_scratch(context),
                lambda memory: engine.kernels.row_counter(engine.device, graph, program, memory, exact=exact),
            )
            super().__init__(context, self._counter)
            self._taken = ([0] * len(program.products), [0.0] * len(program.products))

        def do(self, first: int, last: int) -> None:
            prepare_range(context, first, last, NeighbourRange.ALL, vertices=True)
            self._counter.add(first, last)

        def take(self) -> PartialResult:
            counts, magnitudes = (part.tolist() for part in self._counter.totals())
            before, self._taken = self._taken, (counts, magnitudes)
            return PartialResult((_new(counts, before[0]), _new(magnitudes, before[1])))

    phase = context.checkpoint.phase("rows" if exact else "magnitudes of rows", graph.num_vertices)
    parts = _run_unless_refused(context, phase, tasks, RowWorker)
    if parts is None:
        return None
    context.metrics.record("rows", 0, graph.num_vertices, 0, time.perf_counter() - began, 0, len(tasks))
    products = range(len(program.products))
    counts = [sum(counts[i] for counts, _ in parts) % 2**64 for i in products]
    return counts, [sum(magnitudes[i] for _, magnitudes in parts) for i in products]


def _run_unless_refused(
    context: Environment, phase: Phase, tasks: list[Task], make_worker: Callable[[int], Worker]
) -> list[Any] | None:
    """Run tasks; gives None where a worker's scratch does not fit its budget, as the journal tells who goes on."""

    def make(number: int) -> Worker:
        try:
            return make_worker(number)
        except WorkspaceTooLarge:
            return _Refusing(context)

    parts = run_tasks(context, phase, tasks, context.engine.workers, make)
    if _REFUSED in parts:
        context.observer.note(f"the budget has no room for {phase.name.partition(' ')[2]}: searching instead")
        return None
    return parts


class _Refusing(Worker):
    """Stands in for a worker that has no room for its scratch."""

    workspace_bytes = 0

    def __init__(self, context: Environment):
        super().__init__(context, self)

    def run(self, first: int, last: int) -> None:
        pass

    def take(self) -> PartialResult:
        return PartialResult(_REFUSED)


def _new(totals: list[Any], before: list[Any]) -> list[Any]:
    return [a - b for a, b in zip(totals, before, strict=True)]
