"""List the embeddings of a plan as Parquet, inside the budgets, in one of two orders.

Depth-first over chunks, see `longwall.pipeline.execution.depth_first`; or level by level: a level is finished, and on
disk, before the next one begins, as plans with a barrier need it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.execution.adaptive_batch import AdaptiveBatch
from longwall.pipeline.execution.depth_first import ChunkExtender, DepthFirstWalk, PendingRows
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.read_ahead import ReadAhead
from longwall.pipeline.execution.stage_metrics import StageTimer, record_levels
from longwall.pipeline.execution.task_ranges import pieces_of
from longwall.pipeline.execution.thread_executor import Worker, ranges, run_tasks
from longwall.pipeline.execution.worker_memory import WorkerMemory
from longwall.pipeline.phases.search_count import PROGRESS_UNIT, predict
from longwall.pipeline.planning.search_plan import MatchPlan
from longwall.pipeline.run_store.array_files import opened
from longwall.pipeline.run_store.commit_log import PartialResult, Phase
from longwall.stages.export import EmbeddingWriter, RowLimit
from longwall.storage.errors import InputError, RunError
from longwall.storage.tables.chunk_file import read_chunk, write_chunk
from longwall.storage.tables.embedding_table import EmbeddingTable

_TASKS_PER_WORKER = 4  # of the first level, where levels are written


class Listed(NamedTuple):
    """What a listing wrote.

    Attributes
    ----------
    rows
        Rows written.
    lower_bound
        Whether there may be more embeddings: the limit was reached.
    """

    rows: int
    lower_bound: bool


def list_matches(plan: MatchPlan, context: Environment, *, written: int = 0) -> Listed:
    """Write the embeddings of a plan as Parquet.

    Parameters
    ----------
    plan
        The pattern's.
    context
        The run.
    written
        Rows that other listings of the run wrote: ``export.limit`` is for all of them.

    Raises
    ------
    InputError
        If a chunk of one row's extensions does not fit a budget, or a column does not exist.
    """
    graph, memory = load_graph(context)
    rooms = WorkerMemory.within(plan.pattern.num_vertices, graph, context, memory, exporting=True)
    listing = _Listing(plan, context, graph, rooms, predict(plan, context, graph, memory), written)
    with context.resources.host.reserve(listing.rooms.host * context.engine.workers, "the workers' tables"):
        rows = (_by_levels if context.spec.scheduler.order == "levels" else _depth_first)(listing)
    limit = context.spec.export.limit
    return Listed(rows, limit is not None and written + rows >= limit)


class _Listing(ChunkExtender):
    """What the workers of a listing share."""

    def __init__(
        self,
        plan: MatchPlan,
        context: Environment,
        graph: GraphArrays,
        rooms: WorkerMemory,
        predicted: dict[int, float],
        written: int,
    ):
        super().__init__(plan.program, context, graph, rooms)
        self.plan, self.predicted, self._written = plan, predicted, written
        names = [f"v{vertex}" for vertex in range(plan.pattern.num_vertices)]
        unknown = sorted(set(context.spec.export.columns or ()) - set(names))
        if unknown:
            raise InputError(f"export.columns: the pattern has no column {unknown[0]!r}, only {', '.join(names)}")
        assert rooms.writer is not None
        self.writer_memory = rooms.writer
        self._exported = AdaptiveBatch(context.engine)

    def writer(self, limit: RowLimit) -> EmbeddingWriter:
        """The writer of a worker."""
        plan, context = self.plan, self.context
        return EmbeddingWriter(
            context.results,
            lambda: context.checkpoint.next_number("results.partial/embeddings-"),
            plan.order,
            context.graph.original_ids,
            columns=context.spec.export.columns,
            limit=limit,
            memory=self.writer_memory,
            metadata={"pattern": plan.pattern.edge_text, "labels": plan.pattern.labels, "induced": plan.induced},
        )

    def batch(self, chunk: EmbeddingTable, begin: int, writer: EmbeddingWriter) -> Any:
        """Rows of a chunk from `begin` on, as a writer takes them: a row group, or fewer where memory is short."""
        most = min(self.writer_memory.group_rows, len(chunk) - begin)
        return self._exported.take(most, lambda size: writer.batch(chunk.sliced(begin, begin + size)))

    def limits(self, phase: Phase) -> Callable[[], RowLimit]:
        """Gives each worker the rows that may still be written."""
        left = self.left(phase)
        if self.context.is_coordinator:
            shared = RowLimit(left)
            return lambda: shared
        # What others write is not known here, and what is written here may be dropped: the coordinator cuts the rest.
        return lambda: RowLimit(left)

    def left(self, phase: Phase) -> int | None:
        """The rows that the phase lacks of the limit, where there is one."""
        limit = self.context.spec.export.limit
        return None if limit is None else limit - self._written - sum(partial.value for partial in phase.partials)

    def finish(self, phase: Phase, rows: int) -> int:
        """See that there is a file, and put the figures into the metrics."""
        if not rows:
            self.writer(RowLimit(None)).write_empty()
        self.record(phase)
        return rows

    def record(self, phase: Phase) -> None:
        """Put the figures of a phase into the metrics."""
        record_levels(self.context, phase.partials, {1: "source", self.program.depth: "export"}, self.predicted)


class _Exporter(Worker):
    """A worker that hands full rows to a writer, and its files to the commits."""

    def __init__(self, listing: _Listing, limits: Callable[[], RowLimit]):
        self.searcher = listing.searcher()
        super().__init__(listing.context, self.searcher)
        self.meter = StageTimer()
        self.limit = limits()
        self._listing, self._writer, self._taken = listing, listing.writer(self.limit), 0

    def write(self, chunk: EmbeddingTable) -> None:
        """Write rows of all levels."""
        before = self._writer.rows
        with self.meter.time(self._listing.program.depth) as reading:
            begin = 0
            while begin < len(chunk) and not self.limit.reached:
                batch = self._listing.batch(chunk, begin, self._writer)
                self._writer.write(batch)
                begin += batch.num_rows
            reading.rows_in, reading.rows_out = len(chunk), self._writer.rows - before
            reading.size = chunk.nbytes
        if (share := self.limit.share) is not None:
            self._listing.context.observer.near_limit(share)

    def take(self) -> PartialResult:
        """Give the rows and the files that were written."""
        files = tuple(file | {"name": f"results.partial/{file['name']}"} for file in self._writer.take_files())
        rows, self._taken = self._writer.rows - self._taken, self._writer.rows
        return PartialResult(rows, files, self.meter.take())

    def close(self) -> None:
        """Let go of the file that is being written."""
        self._writer.abandon()
        super().close()


def _depth_first(listing: _Listing) -> int:
    context = listing.context
    phase = context.checkpoint.phase("list", listing.graph.num_arcs)
    limits = listing.limits(phase)
    context.observer.phase("listing", listing.graph.num_arcs, PROGRESS_UNIT)

    class DepthWorker(_Exporter):
        def __init__(self, number: int):
            super().__init__(listing, limits)
            self._descent = DepthFirstWalk(listing, self.searcher, self.meter, number)

        def run(self, first: int, last: int) -> None:
            self._descent.walk(first, last, self.write, lambda: self.limit.reached)

        def close(self) -> None:
            super().close()
            self._descent.close()

    tasks = listing.slot_tasks(pieces_of(context, listing.plan.cost))
    left = listing.left(phase)
    rows: int = sum(run_tasks(context, phase, tasks, context.engine.workers, DepthWorker, rows=left))
    return listing.finish(phase, rows)


def _by_levels(listing: _Listing) -> int:
    context, depth = listing.context, listing.program.depth
    before: Phase | None = None
    for columns in range(2, depth):
        phase = context.checkpoint.phase(f"level {columns}", _size(listing, before))
        _write_level(listing, columns, before, phase)
        listing.record(phase)
        _drop(listing, before)
        before = phase
    phase = context.checkpoint.phase("list", _size(listing, before))
    limits = listing.limits(phase)
    context.observer.phase("listing", phase.total, _unit(before))

    class LastLevelWorker(_Exporter):
        def __init__(self, number: int):  # noqa: ARG002 - workers are alike
            super().__init__(listing, limits)

        def run(self, first: int, last: int) -> None:
            if self.limit.reached:
                return
            for chunk in _extended(listing, before, ahead, first, last, self.searcher, self.meter):
                if self.limit.reached or context.cancel.is_set():
                    return
                self.write(chunk)

    with _ahead(listing, before, phase) as ahead:
        tasks, left = _tasks(listing, before), listing.left(phase)
        rows = sum(run_tasks(context, phase, tasks, context.engine.workers, LastLevelWorker, rows=left))
    _drop(listing, before)
    return listing.finish(phase, rows)


def _write_level(listing: _Listing, columns: int, before: Phase | None, phase: Phase) -> None:
    """Write the table of so many columns, from the level before or, where there is none, from the source."""
    context, name = listing.context, f"checkpoint/level-{columns}/"
    folder = context.checkpoint.folder / f"level-{columns}"
    if folder.exists():  # of an earlier attempt
        context.checkpoint.reserve(phase, context.resources.disk)
    if phase.complete:
        return
    folder.mkdir(exist_ok=True)
    context.observer.phase(f"level {columns}", phase.total, _unit(before))

    class LevelWorker(Worker):
        def __init__(self, number: int):  # noqa: ARG002 - workers are alike
            self._searcher = listing.searcher()
            super().__init__(context, self._searcher)
            self._meter = StageTimer()
            self._files: list[dict[str, Any]] = []
            self._rows = 0

        def run(self, first: int, last: int) -> None:
            for chunk in _extended(listing, before, ahead, first, last, self._searcher, self._meter):
                if context.cancel.is_set():
                    return
                if len(chunk):
                    number = context.checkpoint.next_number(name)
                    record = write_chunk(chunk.to(np), folder / f"{number:08}", context.resources.disk, sync=True)
                    file = {"name": f"{name}{number:08}", "rows": record.rows}
                    self._files.append(file | {"stored": record.stored, "checksum": record.checksum})
                    self._rows += record.rows

        def take(self) -> PartialResult:
            found = PartialResult(self._rows, tuple(self._files), self._meter.take())
            self._rows, self._files = 0, []
            return found

    with _ahead(listing, before, phase) as ahead:
        run_tasks(context, phase, _tasks(listing, before), context.engine.workers, LevelWorker)


def _extended(
    listing: _Listing, before: Phase | None, ahead: ReadAhead, first: int, last: int, searcher: Any, meter: StageTimer
) -> Iterator[EmbeddingTable]:
    """The next level of a range of slots, or of a range of the chunks of the level before."""
    if before is None:
        yield from listing.source(first, last, meter)
        return
    for number in range(first, last):
        waiting = [PendingRows(ahead.get(number))]
        while waiting:
            step = listing.extend(waiting.pop(), searcher, meter)
            waiting += map(PendingRows, step.rests)
            if step.begun is not None:
                waiting.append(step.begun)
            yield step.rows


def _ahead(listing: _Listing, before: Phase | None, phase: Phase) -> ReadAhead:
    """Reads the chunks of a level that are still to be extended, ahead of the workers."""
    columns = 0 if before is None else int(before.name.rsplit(" ", 1)[1])
    read = partial(_read_level, listing.context, columns)
    if before is None:
        return ReadAhead([], read, 1)
    files = before.files()
    missing = (i for first, last in phase.missing() for i in range(first, last))
    wanted = [(i, files[i]) for i in missing]
    largest = max((file["rows"] for file in files), default=0)
    if largest > listing.rooms.most_rows:
        raise InputError(
            f"memory.host leaves room for chunks of {listing.rooms.most_rows:,} rows, but an earlier attempt with more "
            f"memory wrote chunks of {largest:,}: raise memory.host"
        )
    return ReadAhead(wanted, read, listing.context.engine.workers)


def _read_level(context: Environment, columns: int, file: dict[str, Any]) -> EmbeddingTable:
    with opened(context, file) as path:
        try:
            table = read_chunk(path, checksum=file["checksum"], below=context.graph.num_vertices)
            if (table.num_levels, len(table)) != (columns, file["rows"]):
                raise RunError(f"{path}: this is another table")
            return table
        except RunError as error:
            raise RunError(
                f"{path}: a finished level is damaged or gone: restore the file, or start a new run"
            ) from error


def _size(listing: _Listing, before: Phase | None) -> int:
    return listing.graph.num_arcs if before is None else len(before.files())


def _unit(before: Phase | None) -> str:
    return PROGRESS_UNIT if before is None else "chunks"


def _tasks(listing: _Listing, before: Phase | None) -> list[Any]:
    if before is None:
        return listing.slot_tasks(listing.context.engine.workers * _TASKS_PER_WORKER)
    return ranges(_size(listing, before), _size(listing, before))


def _drop(listing: _Listing, phase: Phase | None) -> None:
    """Remove a level that is read no more."""
    if phase is not None:
        folder = listing.context.checkpoint.folder / phase.name.split(" ", 1)[1].replace(" ", "-")
        if listing.context.checkpoint.remove(folder):
            listing.context.resources.disk.charge(-sum(file["stored"] for file in phase.files()), "")
