"""List the embeddings of a plan as Parquet, inside the budgets, in one of two orders.

Depth-first over chunks (the BFS-DFS hybrid of G-thinkerCG, section III): a worker extends a chunk as far as there
is room, leaves the rest on its stack, and goes on with what it got. It holds at most a chunk per level, and of
those only the youngest must be in memory. Level by level: a level is finished, and on disk, before the next one
begins, as plans with a barrier need it.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from longwall.kernels.engine import GraphArrays
from longwall.pipeline.checkpoint import Partial, Phase
from longwall.pipeline.chunk_stack import ChunkStack
from longwall.pipeline.context import RunContext
from longwall.pipeline.executor import PROGRESS_UNIT, load_graph, pieces_of, predict
from longwall.pipeline.meter import Meter, record_levels
from longwall.pipeline.plan import MatchPlan
from longwall.pipeline.read_ahead import ReadAhead
from longwall.pipeline.workers import Worker, ranges, run_tasks
from longwall.stages.export import ROWS_PER_GROUP, EmbeddingWriter, RowLimit, bytes_per_row
from longwall.stages.extension import extend_planned
from longwall.stages.source import edge_source
from longwall.storage.budget import require
from longwall.storage.errors import InputError, RunError
from longwall.storage.tables.chunk_file import read_chunk, write_chunk
from longwall.storage.tables.table import EmbeddingTable

LARGEST_CHUNK = 1 << 20  # rows that are listed at once; longer chunks gain nothing
_TASKS_PER_WORKER = 4  # of the first level, where levels are written
_ON_HOST = 2  # tables of a device that the host holds besides its stack: one that is moved, one that is read ahead
_LEAST_GROUP = 8  # rows
_ACTIVE = 4  # tables that an extension holds: its input, its output, one that is sliced, and one that is read ahead


def list_matches(plan: MatchPlan, context: RunContext) -> int:
    """Write the embeddings of a plan as Parquet.

    Returns
    -------
    int
        The number of rows written.

    Raises
    ------
    InputError
        If a chunk of one row's extensions does not fit a budget, or a column does not exist.
    """
    graph, memory = load_graph(context)
    rooms = _Rooms.within(plan, graph, context, memory)
    listing = _Listing(plan, context, graph, rooms, predict(plan, context, graph, memory))
    with context.accounts.host.book(listing.rooms.host * context.engine.workers, "the workers' tables"):
        if context.spec.scheduler.order == "levels":
            return _by_levels(listing)
        return _depth_first(listing)


@dataclass(frozen=True)
class _Rooms:
    """What one worker may use.

    Attributes
    ----------
    scratch
        Bytes of the engine's scratch.
    rows
        Most rows that one extension gives.
    most_rows
        Most rows of a chunk that could be extended.
    stack
        Bytes of waiting chunks in the engine's memory.
    host_stack
        Bytes of waiting chunks on the host, where the engine has a memory of its own.
    group_rows
        Rows of a row group.
    host
        Bytes of the host's budget, for all but the scratch.
    """

    scratch: int
    rows: int
    most_rows: int
    stack: int
    host_stack: int
    group_rows: int
    host: int

    @classmethod
    def within(cls, plan: MatchPlan, graph: GraphArrays, context: RunContext, memory: int) -> "_Rooms":
        """Share out the budgets: chunks shrink before the stack has to spill."""
        k = plan.pattern.num_vertices
        on_host = context.engine.free_memory() is None
        host = context.accounts.host.free // context.engine.workers
        share = memory // context.engine.workers
        table_row = 12 * k  # a value and an offset for each level, where no prefix is shared
        active_row = _ACTIVE * table_row + 4 * k + 48  # the flat rows, and what is compressed when it is spilled
        export_row = bytes_per_row(k) + 4 * k
        least = graph.max_degree + 1
        what = f"a chunk of {least:,} rows (the largest degree) per worker"
        option = "memory.host" if on_host else "memory.device"
        tables = share // 4 if on_host else share // 2
        require(what, share - tables + least * active_row, share, option)
        fitting = tables // (active_row + k * table_row)
        if not on_host:  # chunks pass through the host: what is spilled, what is read ahead
            require(what, 4 * least * (_ON_HOST * table_row), host, "memory.host")
            fitting = min(fitting, host // 4 // (_ON_HOST * table_row))
        rows = max(min(fitting, LARGEST_CHUNK), least)
        stack = min(tables - rows * active_row, k * rows * table_row)
        host_stack = 0 if on_host else host // 4
        # As many rows are held until they fill a group as are written to it at once.
        require("a row group of the export", 8 * _LEAST_GROUP * export_row, host, "memory.host")
        group_rows = min(ROWS_PER_GROUP, host // 4 // (2 * export_row))
        return cls(
            scratch=share // 2,
            rows=rows,
            most_rows=tables // active_row,
            stack=stack,
            host_stack=host_stack,
            group_rows=group_rows,
            host=2 * group_rows * export_row
            + (rows * active_row + stack if on_host else rows * _ON_HOST * table_row + host_stack),
        )


class _Listing:
    """What the workers of a listing share."""

    def __init__(
        self, plan: MatchPlan, context: RunContext, graph: GraphArrays, rooms: _Rooms, predicted: dict[int, float]
    ):
        self.plan, self.context, self.graph, self.rooms, self.predicted = plan, context, graph, rooms, predicted
        self.program = plan.program
        names = [f"v{vertex}" for vertex in range(plan.pattern.num_vertices)]
        unknown = sorted(set(context.spec.export.columns or ()) - set(names))
        if unknown:
            raise InputError(f"export.columns: the pattern has no column {unknown[0]!r}, only {', '.join(names)}")

    def searcher(self) -> Any:
        """Scratch of a worker."""
        return self.context.engine.searcher(self.graph, self.program, self.rooms.scratch)

    def source(self, first: int, last: int, meter: Meter) -> EmbeddingTable:
        """Levels 0 and 1 of a range of slots."""
        levels = (self.program.levels[0], self.program.levels[1])
        with meter.time(1) as reading:
            table = edge_source(self.graph, levels, first, last, self.context.engine.xp)
            reading.rows_in, reading.rows_out, reading.size = last - first, len(table), table.nbytes
        return table

    def extend(
        self, chunk: EmbeddingTable, searcher: Any, meter: Meter
    ) -> tuple[EmbeddingTable, EmbeddingTable | None]:
        """Extend by a level as far as there is room; gives the extended rows and the rest."""
        with meter.time(chunk.num_levels) as reading:
            extended, rest = extend_planned(chunk, searcher, self.rooms.rows)
            reading.rows_in = len(chunk) - (len(rest) if rest is not None else 0)
            reading.rows_out, reading.size = len(extended), extended.nbytes
        return extended, rest

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
            group_rows=self.rooms.group_rows,
            metadata={"pattern": plan.pattern.edge_text, "labels": plan.pattern.labels, "induced": plan.induced},
        )

    def limit(self, phase: Phase) -> RowLimit:
        """The rows that may still be written."""
        limit = self.context.spec.export.limit
        return RowLimit(None if limit is None else limit - sum(partial.value for partial in phase.partials))

    def slot_tasks(self, pieces: int) -> list[Any]:
        """Tasks over the slots, none of more slots than a chunk has rows."""
        slots = self.graph.num_slots
        return ranges(slots, max(pieces, -(-slots // self.rooms.rows)))

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

    def __init__(self, listing: _Listing, limit: RowLimit):
        self.searcher = listing.searcher()
        super().__init__(listing.context, self.searcher)
        self.meter = Meter()
        self._listing, self._writer, self._taken = listing, listing.writer(limit), 0

    def write(self, chunk: EmbeddingTable) -> None:
        """Write rows of all levels."""
        before = self._writer.rows
        with self.meter.time(self._listing.program.depth) as reading:
            step = self._listing.rooms.group_rows
            for begin in range(0, len(chunk), step):
                self._writer.write(chunk.sliced(begin, min(begin + step, len(chunk))))
            reading.rows_in, reading.rows_out = len(chunk), self._writer.rows - before
            reading.size = chunk.nbytes

    def take(self) -> Partial:
        """Give the rows and the files that were written."""
        files = tuple(file | {"name": f"results.partial/{file['name']}"} for file in self._writer.take_files())
        rows, self._taken = self._writer.rows - self._taken, self._writer.rows
        return Partial(rows, files, self.meter.take())

    def close(self) -> None:
        """Let go of the file that is being written."""
        self._writer.abandon()
        super().close()


def _depth_first(listing: _Listing) -> int:
    context, rooms = listing.context, listing.rooms
    phase = context.checkpoint.phase("list", listing.graph.num_slots)
    limit = listing.limit(phase)
    context.observer.phase("listing", listing.graph.num_slots, PROGRESS_UNIT)

    class DepthWorker(_Exporter):
        def __init__(self, number: int):
            super().__init__(listing, limit)
            disk, name = context.accounts.disk, f"stack-{number}"
            self._stack = ChunkStack(context.engine.xp, rooms.stack, rooms.host_stack, context.spill, disk, name)

        def run(self, first: int, last: int) -> None:
            if limit.reached:
                return
            chunk: EmbeddingTable | None = listing.source(first, last, self.meter)
            while chunk is not None and not context.cancel.is_set():
                if chunk.num_levels == listing.program.depth or not len(chunk):
                    self.write(chunk)
                    chunk = self._stack.pop()
                else:
                    chunk, rest = listing.extend(chunk, self.searcher, self.meter)
                    if rest is not None:
                        self._stack.push(rest)
                if limit.reached:
                    self._stack.clear()
                    return

        def close(self) -> None:
            super().close()
            self._stack.clear()

    tasks = listing.slot_tasks(pieces_of(context, listing.plan.cost))
    rows: int = sum(run_tasks(context, phase, tasks, context.engine.workers, DepthWorker))
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
    limit = listing.limit(phase)
    context.observer.phase("listing", phase.total, _unit(before))

    class LastLevelWorker(_Exporter):
        def __init__(self, number: int):  # noqa: ARG002 - workers are alike
            super().__init__(listing, limit)

        def run(self, first: int, last: int) -> None:
            if limit.reached:
                return
            for chunk in _extended(listing, before, ahead, first, last, self.searcher, self.meter):
                if limit.reached or context.cancel.is_set():
                    return
                self.write(chunk)

    with _ahead(listing, before, phase) as ahead:
        rows = sum(run_tasks(context, phase, _tasks(listing, before), context.engine.workers, LastLevelWorker))
    _drop(listing, before)
    return listing.finish(phase, rows)


def _write_level(listing: _Listing, columns: int, before: Phase | None, phase: Phase) -> None:
    """Write the table of so many columns, from the level before or, where there is none, from the source."""
    context, name = listing.context, f"checkpoint/level-{columns}/"
    folder = context.checkpoint.folder / f"level-{columns}"
    if folder.exists():  # of an earlier attempt
        context.accounts.disk.take(sum(file["stored"] for file in phase.files()), "the levels of the checkpoint")
    if phase.complete:
        return
    folder.mkdir(exist_ok=True)
    context.observer.phase(f"level {columns}", phase.total, _unit(before))

    class LevelWorker(Worker):
        def __init__(self, number: int):  # noqa: ARG002 - workers are alike
            self._searcher = listing.searcher()
            super().__init__(context, self._searcher)
            self._meter = Meter()
            self._files: list[dict[str, Any]] = []
            self._rows = 0

        def run(self, first: int, last: int) -> None:
            for chunk in _extended(listing, before, ahead, first, last, self._searcher, self._meter):
                if context.cancel.is_set():
                    return
                if len(chunk):
                    number = context.checkpoint.next_number(name)
                    record = write_chunk(chunk.to(np), folder / f"{number:08}", context.accounts.disk, sync=True)
                    file = {"name": f"{name}{number:08}", "rows": record.rows}
                    self._files.append(file | {"stored": record.stored, "checksum": record.checksum})
                    self._rows += record.rows

        def take(self) -> Partial:
            found = Partial(self._rows, tuple(self._files), self._meter.take())
            self._rows, self._files = 0, []
            return found

    with _ahead(listing, before, phase) as ahead:
        run_tasks(context, phase, _tasks(listing, before), context.engine.workers, LevelWorker)


def _extended(
    listing: _Listing, before: Phase | None, ahead: ReadAhead, first: int, last: int, searcher: Any, meter: Meter
) -> Iterator[EmbeddingTable]:
    """The next level of a range of slots, or of a range of the chunks of the level before."""
    if before is None:
        yield listing.source(first, last, meter)
        return
    for number in range(first, last):
        rest: EmbeddingTable | None = ahead.get(number).to(listing.context.engine.xp)
        while rest is not None:
            chunk, rest = listing.extend(rest, searcher, meter)
            yield chunk


def _ahead(listing: _Listing, before: Phase | None, phase: Phase) -> ReadAhead:
    """Reads the chunks of a level that are still to be extended, ahead of the workers."""
    if before is None:
        return ReadAhead([], _read_level, 1)
    files, run = before.files(), listing.context.checkpoint.folder.parent
    missing = (i for first, last in phase.missing() for i in range(first, last))
    wanted = [(i, (run / files[i]["name"], files[i]["checksum"])) for i in missing]
    largest = max((file["rows"] for file in files), default=0)
    if largest > listing.rooms.most_rows:
        raise InputError(
            f"memory.host leaves room for chunks of {listing.rooms.most_rows:,} rows, but an earlier attempt with more "
            f"memory wrote chunks of {largest:,}: raise memory.host"
        )
    return ReadAhead(wanted, _read_level, listing.context.engine.workers)


def _read_level(file: tuple[Path, int]) -> EmbeddingTable:
    path, checksum = file
    try:
        return read_chunk(path, checksum=checksum)
    except RunError as error:
        raise RunError(f"{path}: a finished level is damaged or gone: restore the file, or start a new run") from error


def _size(listing: _Listing, before: Phase | None) -> int:
    return listing.graph.num_slots if before is None else len(before.files())


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
        if folder.exists():
            listing.context.accounts.disk.take(-sum(file["stored"] for file in phase.files()), "")
            shutil.rmtree(folder)
