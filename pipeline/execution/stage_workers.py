"""Workers that send their roots through stages; those of kernels that go over ranges of roots on their own."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from longwall.kernels.interface.kcliques import TabledCliqueCounter, TablePiece
from longwall.kernels.interface.local_counts import ArcBlock, ArcDiamondCounter, ArcPiece
from longwall.kernels.interface.workspaces import Block, Targets, Workspace
from longwall.pipeline.execution.adaptive_batch import AdaptiveBatch, shrink_page_cache
from longwall.pipeline.execution.device_graph import arc_of, loaded_graph, reads_known
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import Worker
from longwall.pipeline.execution.reads.oriented_reads import OrientedReads
from longwall.pipeline.execution.reads.streamed_reads import streamed_columns
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.stages.base import Stage, stream
from longwall.stages.range_counting import Counter, CountRanges
from longwall.stages.source import Scan
from longwall.storage.memory.reservations import BudgetExceeded


class StageWorker(Worker):
    """A worker that sends its roots through stages; it is their context.

    Parameters
    ----------
    env
        What the process works with.
    stages
        What the roots go through.
    workspace
        Of a kernel; its bytes on the host are reserved until the worker is closed.
    """

    def __init__(self, env: Environment, stages: Sequence[Stage], workspace: Workspace):
        self.env, self._stages = env, stages
        self._workspace_memory = env.resources.host.reserve(workspace.workspace_bytes, "a worker's workspace")

    def run(self, first: int, last: int) -> None:
        """Send roots through the stages."""
        stream((first, last), self._stages, self)

    @property
    def done(self) -> bool:
        """Whether the run is to end."""
        return self.env.cancel.is_set()

    def close(self) -> None:
        """Release the workspace."""
        self._workspace_memory.release()


class RangeContext(StageWorker):
    """A worker whose stages count ranges of roots; see `longwall.stages.range_counting.CountingContext`.

    Parameters
    ----------
    env, stages
        See `StageWorker`.
    counter
        The workspace of the last stage.
    take
        Makes a partial result of what it found since the last call.
    stream
        The context in which its kernels run.
    """

    def __init__(
        self,
        env: Environment,
        stages: tuple[Scan, CountRanges],
        counter: Counter,
        take: Callable[[Any], PartialResult],
        stream: AbstractContextManager[Any],
    ):
        super().__init__(env, stages, counter)
        self._stream = stream
        self._source = stages[0]
        self.graph = loaded_graph(env)
        self._reads = OrientedReads(env) if reads_known(env) else None
        self.engine, self.counter, self._take = env.engine, counter, take
        self._chunk = stages[1].aggregation.chunk
        self._batch, self._make_room = AdaptiveBatch(env.engine), partial(shrink_page_cache, self.graph.pages)

    def run(self, first: int, last: int) -> None:
        """Send roots through the stages."""
        with self._stream:
            super().run(first, last)

    def fit(self, stage: Stage, most: int, work: Callable[[int], int]) -> int:  # noqa: ARG002
        """Do a piece of work that is as large as memory allows, `most` at most."""
        return self._batch.run(most, work, self._make_room)

    def prepare(self, first: int, last: int) -> None:
        """Prepare the pages that the kernel reads for a range of roots."""
        if self._reads is None:
            self._source.prepare(first, last, self)
        else:
            self._reads.prepare()

    def blocks(self, first: int, last: int) -> Iterator[Block]:
        """Prepare the pages for a range of arcs, for some of them and of the vertices that they lead to at a time."""
        if self._reads is None:
            self._source.prepare(first, last, self)
            yield Block(first, last, None)
        else:
            yield from self._reads.blocks(first, last)

    def pieces(self, first: int, last: int, tables: TabledCliqueCounter) -> Iterator[TablePiece]:
        """Prepare the pages for pieces of a range whose tables have room, for some of the vertices there at a time."""
        assert self._reads is not None
        return self._reads.pieces(first, last, tables)

    def arc_pieces(self, first: int, last: int, most: int) -> Iterator[tuple[int, int, Iterator[ArcBlock] | None]]:
        """Prepare the pages for pieces of a range, of at most `most` arcs, for one block of triangles at a time."""
        if self._reads is not None:
            yield from self._reads.arc_pieces(first, last, most)
            return
        for begin in range(first, last, most):
            end = min(begin + most, last)
            self._source.prepare(begin, end, self)
            yield begin, end, None

    @contextmanager
    def counts_in_turn(self, first: int, last: int, counter: ArcDiamondCounter) -> Iterator[Iterator[ArcPiece] | None]:
        """Prepare the pages for all arcs, piece by piece, where counts of arcs have room on the host; else None."""
        pieces = None if self._reads is None else self._reads.counted_pieces(first, last, counter)
        if pieces is None:
            yield None
            return
        try:
            capacity = self.env.resources.host.reserve(counter.count_bytes * (last - first), "triangles of arcs")
        except BudgetExceeded:
            yield None
            return
        with capacity:
            yield pieces

    def columns(
        self, first: int, last: int, most: int
    ) -> Iterator[tuple[int, int, Callable[[], Iterator[Targets]] | None]]:
        """Cut a range of vertices by the arcs from larger ones, and prepare the pages of all lists in turn for each."""
        assert self.graph.pages is not None
        return streamed_columns(self.env.graph, self.graph.pages, first, last, most, self.env.cancel)

    def root(self, at: int) -> int:
        """Return a root, or the end of a range of them, as the kernel's graph counts them."""
        return at if self._source.kind == "vertices" else arc_of(self.env, at)

    def take_partial(self) -> PartialResult:
        """Return what the counter found since the last call."""
        with self._stream:
            return self._take(self._chunk(self.counter))
