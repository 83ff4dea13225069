"""Extension chunk by chunk, inside the budgets; and the walk that goes depth-first over chunks.

The BFS-DFS hybrid of G-thinkerCG, section III: a worker extends a chunk as far as there is room, leaves the rest on its
stack, and goes on with the extended rows. It holds at most a chunk per level, and of those only the youngest must be in
memory.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from longwall.kernels.engine import GraphArrays, ShortOfMemory
from longwall.kernels.program import SearchProgram
from longwall.pipeline.chunk_stack import ChunkStack, trimmed
from longwall.pipeline.context import RunContext
from longwall.pipeline.meter import Meter
from longwall.pipeline.portion import Portion, make_scratch, no_room
from longwall.pipeline.rooms import Rooms
from longwall.pipeline.workers import ranges
from longwall.stages.extension import extend_planned
from longwall.stages.source import edge_source
from longwall.storage.tables.table import EmbeddingTable


class Chunks:
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

    def __init__(self, program: SearchProgram, context: RunContext, graph: GraphArrays, rooms: Rooms):
        self.program, self.context, self.graph, self.rooms = program, context, graph, rooms
        self._slots, self._rows = Portion(context.engine), Portion(context.engine)

    def searcher(self) -> Any:
        """Scratch of a worker."""
        engine = self.context.engine
        return make_scratch(
            engine, self.rooms.scratch, lambda memory: engine.searcher(self.graph, self.program, memory)
        )

    def source(self, first: int, last: int, meter: Meter) -> Iterator[EmbeddingTable]:
        """Levels 0 and 1 of a range of slots: one table, or several where memory is short."""
        while first < last:
            with meter.time(1) as reading:
                table, size = self._slots.take(last - first, partial(self._edges, first))
                reading.rows_in, reading.rows_out, reading.size = size, len(table), table.nbytes
            yield table
            first += size

    def _edges(self, first: int, size: int) -> tuple[EmbeddingTable, int]:
        levels = (self.program.levels[0], self.program.levels[1])
        return edge_source(self.graph, levels, first, first + size, self.context.engine.xp), size

    def extend(
        self, chunk: EmbeddingTable, searcher: Any, meter: Meter, make_room: Callable[[], bool] = no_room
    ) -> tuple[EmbeddingTable, list[EmbeddingTable]]:
        """Extend by a level as far as there is room.

        Parameters
        ----------
        chunk
            The rows, on the host or in the engine's memory.
        searcher
            The worker's scratch.
        meter
            Told about it.
        make_room
            See `Portion.take`.

        Returns
        -------
        extended : EmbeddingTable
            The extended rows.
        rests : list of EmbeddingTable
            The rows that were not extended; what is in the engine's memory comes last.
        """
        with meter.time(chunk.num_levels) as reading:
            extended, rests = self._rows.take(self._pieces(chunk), partial(self._extended, chunk, searcher), make_room)
            reading.rows_in = len(chunk) - sum(map(len, rests))
            reading.rows_out, reading.size = len(extended), extended.nbytes
        return extended, rests

    def _extended(self, chunk: EmbeddingTable, searcher: Any, size: int) -> tuple[EmbeddingTable, list[EmbeddingTable]]:
        """Extend a share of a chunk's rows, in the same share of the room: `size` out of `_pieces`."""
        rows, pieces = len(chunk), self._pieces(chunk)
        taken = -(-rows * size // pieces)
        capacity = max(self.rooms.rows * size // pieces, self.graph.max_degree + 1)
        part, rests = chunk, []
        if taken < rows:
            part, rests = chunk.sliced(0, taken), [chunk.sliced(taken, rows)]
        extended, rest = extend_planned(part.to(self.context.engine.xp), searcher, capacity, self.graph.pages)
        return extended, rests if rest is None else [*rests, rest]

    def _pieces(self, chunk: EmbeddingTable) -> int:
        """Into how many pieces an extension can be cut: the least is a row, in room for the largest degree."""
        return max(len(chunk), -(-self.rooms.rows // (self.graph.max_degree + 1)))

    def slot_tasks(self, pieces: int) -> list[Any]:
        """Tasks over the slots, none of more slots than a chunk has rows."""
        slots = self.graph.num_slots
        return ranges(slots, max(pieces, -(-slots // self.rooms.rows)))


class Descent:
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

    def __init__(self, chunks: Chunks, searcher: Any, meter: Meter, number: int):
        self._chunks, self._searcher, self._meter = chunks, searcher, meter
        context, rooms = chunks.context, chunks.rooms
        self._stack = ChunkStack(
            context.engine.xp, rooms.stack, rooms.host_stack, context.spill, context.accounts.disk, f"stack-{number}"
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
        for source in self._chunks.source(first, last, self._meter):
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
        chunk: EmbeddingTable | None = source
        while chunk is not None and not chunks.context.cancel.is_set():
            if chunk.num_levels == depth or not len(chunk):
                finish(chunk)
                chunk = self._stack.pop()
            else:
                chunk, rests = chunks.extend(chunk, self._searcher, self._meter, self._stack.leave_engine)
                for rest in rests:
                    self._stack.push(self._waiting(rest))
            if enough():
                self._stack.clear()
                return

    def _waiting(self, rest: EmbeddingTable) -> EmbeddingTable:
        """Rows as they wait: without what they do not need, on the host where there is no room for that."""
        try:
            with self._chunks.context.engine.faults():
                return trimmed(rest)
        except ShortOfMemory:
            return rest.to(np)
