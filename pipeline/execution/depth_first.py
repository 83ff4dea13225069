"""Extension chunk by chunk, inside the budgets; and the walk that goes depth-first over chunks.

The BFS-DFS hybrid of G-thinkerCG, section III: a worker extends a chunk as far as there is room, leaves the rest on its
stack, and goes on with the extended rows. It holds at most a chunk per level, and of those only the youngest must be in
memory.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from longwall.kernels.interface.engine import ShortOfMemory
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.search_program import SearchProgram
from longwall.pipeline.execution.adaptive_batch import AdaptiveBatch, MakeRoom, make_scratch, no_room, shrink_page_cache
from longwall.pipeline.execution.chunk_stack import ChunkStack, trimmed
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.stage_metrics import StageTimer
from longwall.pipeline.execution.thread_executor import ranges
from longwall.pipeline.execution.worker_memory import WorkerMemory
from longwall.stages.extension.planned import extend_planned
from longwall.stages.source import edge_source
from longwall.storage.tables.embedding_table import EmbeddingTable

_LEAST_WINDOW = 1 << 10  # rows


class PendingRows(NamedTuple):
    """Rows that are to be extended, on the host or in the engine's memory; the first by vertices from `first` on."""

    rows: EmbeddingTable
    first: int = 0


class ExtensionStep(NamedTuple):
    """What an extension gives.

    Attributes
    ----------
    rows
        The extended rows.
    rests
        Rows that were not extended; what is in the engine's memory comes last.
    begun
        A row that is not extended by all of its vertices.
    """

    rows: EmbeddingTable
    rests: list[EmbeddingTable]
    begun: PendingRows | None = None


class ChunkExtender:
    """What workers share that extend chunks of rows.

    Parameters
    ----------
    program
        How rows are extended.
    context
        The run.
    graph
        The graph on the engine.
    rooms
        What each worker may use.
    """

    def __init__(self, program: SearchProgram, context: Environment, graph: GraphArrays, rooms: WorkerMemory):
        self.program, self.context, self.graph, self.rooms = program, context, graph, rooms
        self._slots, self._rows = AdaptiveBatch(context.engine), AdaptiveBatch(context.engine)
        self._windows: dict[int, int] = {}  # by the number of levels

    def searcher(self) -> Any:
        """Scratch of a worker."""
        engine = self.context.engine
        return make_scratch(
            engine,
            self.rooms.scratch,
            lambda memory: engine.kernels.searcher(engine.device, self.graph, self.program, memory),
        )

    def source(
        self, first: int, last: int, meter: StageTimer, make_room: MakeRoom = no_room
    ) -> Iterator[EmbeddingTable]:
        """Levels 0 and 1 of a range of slots: one table, or several where memory is short."""
        while first < last:
            with meter.time(1) as reading:
                table, size = self._slots.take(last - first, partial(self._edges, first), make_room)
                reading.rows_in, reading.rows_out, reading.size = size, len(table), table.nbytes
            yield table
            first += size

    def _edges(self, first: int, size: int) -> tuple[EmbeddingTable, int]:
        levels = (self.program.levels[0], self.program.levels[1])
        return edge_source(self.graph, levels, first, first + size, self.context.engine.xp), size

    def extend(
        self, chunk: "PendingRows", searcher: Any, meter: StageTimer, make_room: MakeRoom = no_room
    ) -> "ExtensionStep":
        """Extend by a level as far as there is room.

        Parameters
        ----------
        chunk
            What is extended.
        searcher
            The worker's scratch.
        meter
            Told about it.
        make_room
            See `AdaptiveBatch.take`.
        """
        rows = chunk.rows
        with meter.time(rows.num_levels) as reading:
            step = self._rows.take(self._pieces(rows), partial(self._extended, chunk, searcher), make_room)
            reading.rows_in = len(rows) - sum(map(len, step.rests)) - (step.begun is not None)
            reading.rows_out, reading.size = len(step.rows), step.rows.nbytes
        return step

    def _extended(self, chunk: "PendingRows", searcher: Any, size: int) -> "ExtensionStep":
        """Extend a share of a chunk's rows, in the same share of the room: `size` out of `_pieces`."""
        number, pieces = len(chunk.rows), self._pieces(chunk.rows)
        taken = -(-number * size // pieces)
        capacity = max(self._capacity(chunk.rows) * size // pieces, 1)
        part, rests = chunk.rows, []
        if taken < number:
            part, rests = chunk.rows.sliced(0, taken), [chunk.rows.sliced(taken, number)]
        part = part.to(self.context.engine.xp)
        most = self._window(part)
        extended, rest, begun = extend_planned(part, searcher, capacity, self.graph.pages, chunk.first, most)
        if not begun:
            self._learn(part, most, len(part) - (0 if rest is None else len(rest)))
            return ExtensionStep(extended, rests if rest is None else [*rests, rest])
        assert rest is not None
        if len(rest) > 1:
            rests.append(rest.sliced(1, len(rest)))
        return ExtensionStep(extended, rests, PendingRows(trimmed(rest.sliced(0, 1)), begun))

    def _window(self, rows: EmbeddingTable) -> int | None:
        """How many rows are looked at where the graph has pages: about as many as can be extended.

        What an extension reads is known before it runs; what rows read that then wait would be known again and again.
        """
        return None if self.graph.pages is None else min(self._windows.get(rows.num_levels, len(rows)), len(rows))

    def _learn(self, rows: EmbeddingTable, most: int | None, done: int) -> None:
        """Let the level's next window be what was extended of this one, and a quarter more; or twice all of it."""
        level = rows.num_levels
        if most is None:
            return
        if done < most:
            self._windows[level] = max(done * 5 // 4, _LEAST_WINDOW)
        elif level in self._windows:
            self._windows[level] = max(2 * done, self._windows[level])

    def _pieces(self, rows: EmbeddingTable) -> int:
        """Into how many pieces an extension can be cut: the least is a row, extended by one vertex."""
        return max(len(rows), self._capacity(rows))

    def _capacity(self, rows: EmbeddingTable) -> int:
        """Most rows that their extension gives."""
        return self.rooms.last_rows if rows.num_levels == self.program.depth - 1 else self.rooms.rows

    def slot_tasks(self, pieces: int) -> list[Any]:
        """Tasks over the slots, none of more slots than a chunk has rows."""
        slots = self.graph.num_arcs
        return ranges(slots, max(pieces, -(-slots // self.rooms.rows)))


class DepthFirstWalk:
    """A worker's walk over the chunks below its roots.

    Parameters
    ----------
    chunks
        What the workers share.
    searcher, meter
        The worker's own.
    number
        Tells the workers apart.
    """

    def __init__(self, chunks: ChunkExtender, searcher: Any, meter: StageTimer, number: int):
        self._chunks, self._searcher, self._meter = chunks, searcher, meter
        context, rooms = chunks.context, chunks.rooms
        resources = context.resources
        self._stack = ChunkStack(
            resources.engine.xp,
            rooms.stack,
            rooms.host_stack,
            resources.spill,
            resources.disk,
            f"stack-{number}",
        )

    def walk(self, first: int, last: int, finish: Callable[[EmbeddingTable], None], enough: Callable[[], bool]) -> None:
        """Extend the edges of a range of slots to the last level.

        Parameters
        ----------
        first, last
            The slots.
        finish
            Takes chunks of rows of all levels.
        enough
            Whether no more rows are wanted.
        """
        cancel = self._chunks.context.cancel
        if enough():
            return
        for source in self._chunks.source(first, last, self._meter, self.make_room):
            self._descend(source, finish, enough)
            if enough() or cancel.is_set():
                return

    def close(self) -> None:
        """Drop what is left."""
        self._stack.clear()

    def _descend(
        self, source: EmbeddingTable, finish: Callable[[EmbeddingTable], None], enough: Callable[[], bool]
    ) -> None:
        chunks, depth = self._chunks, self._chunks.program.depth
        chunk: PendingRows | None = PendingRows(source)
        begun: list[tuple[int, PendingRows]] = []  # rows that go on once the stack is as high as it was then
        while chunk is not None and not chunks.context.cancel.is_set():
            rows = chunk.rows
            if rows.num_levels < depth and len(rows):
                step = chunks.extend(chunk, self._searcher, self._meter, self.make_room)
                for rest in step.rests:
                    self._stack.push(self._waiting(rest))
                if step.begun is not None:
                    begun.append((len(self._stack), step.begun))
                chunk = PendingRows(step.rows)
            else:
                finish(rows)
                if begun and begun[-1][0] == len(self._stack):
                    chunk = begun.pop()[1]
                else:
                    youngest = self._stack.pop()
                    chunk = None if youngest is None else PendingRows(youngest)
            if enough():
                self._stack.clear()
                return

    def make_room(self, short: ShortOfMemory) -> bool:
        """Free memory of the engine: of chunks that wait, then of pages; see `AdaptiveBatch.take`."""
        return self._stack.leave_engine() or shrink_page_cache(self._chunks.graph.pages, short)

    def _waiting(self, rest: EmbeddingTable) -> EmbeddingTable:
        """Rows as they wait: without what they do not need, on the host where there is no room for that."""
        try:
            with self._chunks.context.engine.faults():
                return trimmed(rest)
        except ShortOfMemory:
            return rest.to(np)
