"""Extension chunk by chunk, inside the budgets; and the walk that goes depth-first over chunks.

The BFS-DFS hybrid of G-thinkerCG, section III: a worker extends a chunk as far as there is room, leaves the rest on its
stack, and goes on with the extended rows. It holds at most a chunk per level, and of those only the youngest must be in
memory.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from longwall.kernels.interface.engine import ShortOfMemory
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.search_program import SearchProgram
from longwall.kernels.interface.workspaces import Searcher
from longwall.pipeline.execution.adaptive_batch import (
    AdaptiveBatch,
    MakeRoom,
    make_workspace,
    no_room,
    shrink_page_cache,
)
from longwall.pipeline.execution.chunk_stack import ChunkStack, trimmed
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import Task, equal_tasks
from longwall.pipeline.execution.stage_metrics import StageTimer
from longwall.pipeline.execution.worker_memory import WorkerMemory
from longwall.stages.extension.planned import extend_planned
from longwall.stages.source import edge_source
from longwall.storage.tables.embedding_table import EmbeddingTable

_LEAST_WINDOW = 1 << 10  # rows
_numbers = itertools.count()  # of the walks of this process: their spilled chunks have names of their own


class PendingRows(NamedTuple):
    """Rows that are to be extended, on the host or in the engine's memory; the first by vertices from `first` on."""

    rows: EmbeddingTable
    first: int = 0


class ExtensionStep(NamedTuple):
    """The result of an extension.

    Attributes
    ----------
    rows
        The extended rows.
    remainder
        Rows that were not extended; what is in the engine's memory comes last.
    resume
        A row that is not extended by all of its vertices.
    """

    rows: EmbeddingTable
    remainder: list[EmbeddingTable]
    resume: PendingRows | None = None


class ChunkExtender:
    """What workers share that extend chunks of rows.

    Parameters
    ----------
    program
        How rows are extended.
    env
        The run.
    graph
        The graph on the engine.
    memory
        What each worker may use.
    """

    def __init__(self, program: SearchProgram, env: Environment, graph: GraphArrays, memory: WorkerMemory):
        self.program, self.env, self.graph, self.memory = program, env, graph, memory
        self._arcs, self._rows = AdaptiveBatch(env.engine), AdaptiveBatch(env.engine)
        self._windows: dict[int, int] = {}  # by the number of levels

    def searcher(self) -> Searcher:
        """Make the workspace of a worker."""
        engine = self.env.engine
        return make_workspace(
            engine,
            self.memory.scratch,
            lambda memory: engine.kernels.searcher(engine.device, self.graph, self.program, memory),
        )

    def source(
        self, first: int, last: int, timer: StageTimer, make_room: MakeRoom = no_room
    ) -> Iterator[EmbeddingTable]:
        """Yield levels 0 and 1 of a range of arcs: one table, or several where memory is short."""
        while first < last:
            with timer.time(1) as sample:
                table, size = self._arcs.run(last - first, partial(self._edges, first), make_room)
                sample.rows_in, sample.rows_out, sample.size = size, len(table), table.nbytes
            yield table
            first += size

    def _edges(self, first: int, size: int) -> tuple[EmbeddingTable, int]:
        levels = (self.program.levels[0], self.program.levels[1])
        return edge_source(self.graph, levels, first, first + size, self.env.engine.xp), size

    def extend(
        self, chunk: "PendingRows", searcher: Searcher, timer: StageTimer, make_room: MakeRoom = no_room
    ) -> "ExtensionStep":
        """Extend by a level as far as there is room.

        Parameters
        ----------
        chunk
            What is extended.
        searcher
            The worker's workspace.
        timer
            Receives the figures.
        make_room
            See `AdaptiveBatch.run`.
        """
        rows = chunk.rows
        with timer.time(rows.num_levels) as sample:
            step = self._rows.run(self._pieces(rows), partial(self._extended, chunk, searcher), make_room)
            sample.rows_in = len(rows) - sum(map(len, step.remainder)) - (step.resume is not None)
            sample.rows_out, sample.size = len(step.rows), step.rows.nbytes
        return step

    def _extended(self, chunk: "PendingRows", searcher: Searcher, size: int) -> "ExtensionStep":
        """Extend a share of a chunk's rows, in the same share of the room: `size` out of `_pieces`."""
        number, pieces = len(chunk.rows), self._pieces(chunk.rows)
        taken = -(-number * size // pieces)
        capacity = max(self._capacity(chunk.rows) * size // pieces, 1)
        part, remainder = chunk.rows, []
        if taken < number:
            part, remainder = chunk.rows.sliced(0, taken), [chunk.rows.sliced(taken, number)]
        part = part.to(self.env.engine.xp)
        most = self._window(part)
        extended, rest, begun = extend_planned(part, searcher, capacity, self.graph.pages, chunk.first, most)
        if not begun:
            self._learn(part, most, len(part) - (0 if rest is None else len(rest)))
            return ExtensionStep(extended, remainder if rest is None else [*remainder, rest])
        assert rest is not None
        if len(rest) > 1:
            remainder.append(rest.sliced(1, len(rest)))
        return ExtensionStep(extended, remainder, PendingRows(trimmed(rest.sliced(0, 1)), begun))

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
        return self.memory.last_rows if rows.num_levels == self.program.depth - 1 else self.memory.rows

    def arc_tasks(self, pieces: int) -> list[Task]:
        """Return tasks over the arcs, none of more arcs than a chunk has rows."""
        arcs = self.graph.num_arcs
        return equal_tasks(arcs, max(pieces, -(-arcs // self.memory.rows)))


class DepthFirstWalk:
    """A worker's walk over the chunks below its roots.

    Parameters
    ----------
    chunks
        What the workers share.
    depth
        Levels of the rows that the walk ends at.
    searcher, timer
        The worker's own.
    """

    def __init__(self, chunks: ChunkExtender, depth: int, searcher: Searcher, timer: StageTimer):
        self._chunks, self._depth, self._searcher, self._timer = chunks, depth, searcher, timer
        resources, memory = chunks.env.resources, chunks.memory
        self._stack = ChunkStack(
            resources.engine.xp,
            memory.stack,
            memory.host_stack,
            resources.spill,
            resources.disk,
            f"stack-{next(_numbers)}",
        )

    def run(self, first: int, last: int, sink: Callable[[EmbeddingTable], None], done: Callable[[], bool]) -> None:
        """Extend the edges of a range of arcs to the last level.

        Parameters
        ----------
        first, last
            The arcs.
        sink
            Takes chunks of rows of `depth` levels.
        done
            Whether no more rows are wanted.
        """
        cancel = self._chunks.env.cancel
        if done():
            return
        for source in self._chunks.source(first, last, self._timer, self.make_room):
            self._descend(source, sink, done)
            if done() or cancel.is_set():
                return

    def close(self) -> None:
        """Drop what is left."""
        self._stack.clear()

    def _descend(
        self, source: EmbeddingTable, sink: Callable[[EmbeddingTable], None], done: Callable[[], bool]
    ) -> None:
        chunk: PendingRows | None = PendingRows(source)
        begun: list[tuple[int, PendingRows]] = []  # rows that go on once the stack is as high as it was then
        while chunk is not None and not self._chunks.env.cancel.is_set():
            rows = chunk.rows
            if rows.num_levels < self._depth and len(rows):
                step = self._chunks.extend(chunk, self._searcher, self._timer, self.make_room)
                for rest in step.remainder:
                    self._stack.push(self._pending(rest))
                if step.resume is not None:
                    begun.append((len(self._stack), step.resume))
                chunk = PendingRows(step.rows)
            else:
                sink(rows)
                if begun and begun[-1][0] == len(self._stack):
                    chunk = begun.pop()[1]
                else:
                    youngest = self._stack.pop()
                    chunk = None if youngest is None else PendingRows(youngest)
            if done():
                self._stack.clear()
                return

    def make_room(self, short: ShortOfMemory) -> bool:
        """Free engine memory: move pending chunks to the host, then shrink the page cache; see `AdaptiveBatch.run`."""
        return self._stack.leave_engine() or shrink_page_cache(self._chunks.graph.pages, short)

    def _pending(self, rest: EmbeddingTable) -> EmbeddingTable:
        """Return rows as they wait: without what they do not need, on the host where there is no room for that."""
        try:
            with self._chunks.env.engine.faults():
                return trimmed(rest)
        except ShortOfMemory:
            return rest.to(np)
