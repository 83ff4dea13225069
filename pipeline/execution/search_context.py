"""What the stages of a search work with: chunks as large as the budgets allow, and a stack for rows that wait."""

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from longwall.kernels.interface.engine import ShortOfMemory
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.search import Searcher
from longwall.kernels.interface.search_program import SearchProgram
from longwall.pipeline.execution.adaptive_batch import AdaptiveBatch, make_workspace, shrink_page_cache
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import Task, equal_tasks
from longwall.pipeline.execution.stage_workers import StageWorker
from longwall.pipeline.execution.worker_memory import WorkerMemory
from longwall.stages.base import Stage, Verb
from longwall.stages.extension.planned import ExtensionStep, PendingRows, extend_planned
from longwall.stages.stage_timer import StageTimer
from longwall.storage.tables.chunk_stack import ChunkStack, trimmed
from longwall.storage.tables.embedding_table import EmbeddingTable

_LEAST_WINDOW = 1 << 10  # rows
_VERIFIED = 8  # the part of a chunk's rows that is verified at once: binary searches take 60 bytes for a row
_numbers = itertools.count()  # of the contexts of this process: their spilled chunks have names of their own

Made = TypeVar("Made")


class SearchShare:
    """What the workers of a process share in a search.

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
    edge_labels
        See `VerifyContext`.
    """

    def __init__(
        self,
        program: SearchProgram,
        env: Environment,
        graph: GraphArrays,
        memory: WorkerMemory,
        edge_labels: Any = None,
    ):
        self.program, self.env, self.graph, self.memory, self.edge_labels = program, env, graph, memory, edge_labels
        self.batches: dict[Verb, AdaptiveBatch] = {
            verb: AdaptiveBatch(env.engine) for verb in ("source", "extend", "filter", "count", "export")
        }
        self._windows: dict[int, int] = {}  # by the number of levels

    def tasks(self, pieces: int) -> list[Task]:
        """Return tasks over the arcs, or those of the first label: none of more arcs than a chunk has rows."""
        graph, arcs = self.graph, self.graph.num_arcs
        if graph.slices is not None and self.program.levels[0].label == graph.slice_labels[0]:
            arcs = graph.slice_arcs[0]
        return equal_tasks(arcs, max(pieces, -(-arcs // self.memory.rows)))

    def searcher(self) -> Searcher:
        """Make the kernels' workspace of a worker."""
        engine = self.env.engine
        return make_workspace(
            engine,
            self.memory.workspace,
            lambda memory: engine.kernels.searcher(engine.device, self.graph, self.program, memory),
        )

    def capacity(self, rows: EmbeddingTable) -> int:
        """Return the most rows that an extension makes."""
        return self.memory.last_rows if rows.num_levels == self.program.depth - 1 else self.memory.rows

    def window(self, rows: EmbeddingTable) -> int | None:
        """Return how many rows are looked at where the graph has pages: about as many as can be extended.

        What an extension reads is known before it runs; what rows read that then wait would be known again and again.
        """
        return None if self.graph.pages is None else min(self._windows.get(rows.num_levels, len(rows)), len(rows))

    def learn(self, rows: EmbeddingTable, most: int | None, done: int) -> None:
        """Let the level's next window be what was extended of this one, and a quarter more; or twice all of it."""
        level = rows.num_levels
        if most is None:
            return
        if done < most:
            self._windows[level] = max(done * 5 // 4, _LEAST_WINDOW)
        elif level in self._windows:
            self._windows[level] = max(2 * done, self._windows[level])


class SearchContext(StageWorker):
    """A worker that sends its roots through stages, and what these work with; see the contexts of the stages.

    Parameters
    ----------
    share
        What the workers of this process share.
    stages
        What the roots go through.
    """

    def __init__(self, share: SearchShare, stages: Sequence[Stage]):
        self.searcher = share.searcher()
        super().__init__(share.env, stages, self.searcher)
        resources, memory = share.env.resources, share.memory
        self.share, self.timer = share, StageTimer()
        self.most_verified = max(memory.rows // _VERIFIED, 1)
        self.graph, self.edge_labels, self.xp = share.graph, share.edge_labels, resources.engine.xp
        name = f"stack-{next(_numbers)}"
        self._stack = ChunkStack(self.xp, memory.stack, memory.host_stack, resources.spill, resources.disk, name)

    def fit(self, stage: Stage, most: int, work: Callable[[int], Made]) -> Made:
        """Do a piece of work that is as large as memory allows, `most` at most."""
        return self.share.batches[stage.verb].run(most, work, self._make_room)

    def extend(self, pending: PendingRows) -> ExtensionStep:
        """Extend rows by one level as far as there is room."""
        rows = pending.rows
        batch = self.share.batches["extend"]
        with self.timer.time(rows.num_levels) as sample:
            step = batch.run(self._pieces(rows), partial(self._extended, pending), self._make_room)
            sample.rows_in = len(rows) - sum(map(len, step.remainder)) - (step.resume is not None)
            sample.rows_out, sample.size = len(step.rows), step.rows.nbytes
        return step

    def waiting(self) -> int:
        """Return how many tables wait."""
        return len(self._stack)

    def wait(self, rows: EmbeddingTable) -> None:
        """Keep rows without what they do not need, on the host where there is no room for that, or on disk."""
        try:
            with self.share.env.engine.faults():
                rows = trimmed(rows)
        except ShortOfMemory:
            rows = rows.to(np)
        self._stack.push(rows)

    def resume(self) -> EmbeddingTable:
        """Return the rows that were last kept."""
        rows = self._stack.pop()
        assert rows is not None, "the stage has counted them"
        return rows

    def close(self) -> None:
        """Drop rows that wait, and the workspace."""
        super().close()
        self._stack.clear()

    def _pieces(self, rows: EmbeddingTable) -> int:
        """Return into how many pieces an extension can be cut: the least is a row, extended by one vertex."""
        return max(len(rows), self.share.capacity(rows))

    def _extended(self, pending: PendingRows, size: int) -> ExtensionStep:
        """Extend a share of the rows, in the same share of the room: `size` out of `_pieces`."""
        rows, share = pending.rows, self.share
        number, pieces = len(rows), self._pieces(rows)
        taken = -(-number * size // pieces)
        capacity = max(share.capacity(rows) * size // pieces, 1)
        part, remainder = rows, []
        if taken < number:
            part, remainder = rows.sliced(0, taken), [rows.sliced(taken, number)]
        part = part.to(self.xp)
        most = share.window(part)
        extended, rest, begun = extend_planned(part, self.searcher, capacity, self.graph.pages, pending.first, most)
        if not begun:
            share.learn(part, most, len(part) - (0 if rest is None else len(rest)))
            return ExtensionStep(extended, remainder if rest is None else [*remainder, rest])
        assert rest is not None
        if len(rest) > 1:
            remainder.append(rest.sliced(1, len(rest)))
        return ExtensionStep(extended, remainder, PendingRows(trimmed(rest.sliced(0, 1)), begun))

    def _make_room(self, short: ShortOfMemory) -> bool:
        """Free engine memory: move rows that wait to the host, then shrink the page cache; see `AdaptiveBatch.run`."""
        return self._stack.leave_engine() or shrink_page_cache(self.graph.pages, short)
