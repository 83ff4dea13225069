"""Rows of the patterns of a batch, as the workers of an engine get them: each chunk is cut into a part for each.

A worker sends its parts through stages of its own, with the same loop (:func:`longwall.stages.base.stream`).
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from longwall.kernels.interface.pattern_growth import GrowKernel, GrowthBatch
from longwall.stages.base import Stage, WorkerContext, stream
from longwall.storage.tables.embedding_table import EmbeddingTable

Array = Any  # a NumPy or a CuPy array
Made = TypeVar("Made")
Take = Callable[[int, Callable[[int], Any]], Any]


class Rows(Protocol):
    """Rows of a level, in one table or several."""

    @property
    def num_levels(self) -> int:
        """Columns of the rows."""
        ...

    def __len__(self) -> int:
        """Number of rows."""
        ...

    def stream(self) -> Generator[EmbeddingTable, None, None]:
        """All rows, chunk by chunk; a chunk is in memory until the next one is requested."""
        ...


class RowRange(NamedTuple):
    """Rows `begin` to `end` - 1 of a chunk."""

    chunk: EmbeddingTable
    begin: int
    end: int


class GrowerContext:
    """What the stages of one worker work with.

    Parameters
    ----------
    grower
        The workspace.
    growth
        The batch of patterns, in arrays of the engine.
    xp
        The engine's arrays.
    step
        Most rows that are looked at, at once.
    take
        Does a piece of work of at most a given number of rows, with fewer where memory is short.
    check
        Called now and then; raises where the work is to end.
    """

    def __init__(
        self, grower: GrowKernel, growth: GrowthBatch, xp: Any, step: int, take: Take, check: Callable[[int], None]
    ):
        self.grower, self.growth, self.xp = grower, growth, xp
        self.step, self.take, self.check = step, take, check

    @property
    def done(self) -> bool:
        """Whether no more rows are wanted."""
        return False

    def by_parts(self, rows: RowRange, work: Callable[[Array], Made]) -> Iterator[Made]:
        """Do work for flat rows, uint32[columns, n], part by part; again with fewer of them where memory is short."""
        begin = rows.begin
        while begin < rows.end and not self.done:
            self.check(0)

            def piece(size: int, begin: int = begin) -> tuple[int, Made]:
                return size, work(rows.chunk.sliced(begin, begin + size).to(self.xp).columns())

            size, made = self.take(min(self.step, rows.end - begin), piece)
            yield made
            del made
            begin += size


class TableContext(WorkerContext, Protocol):
    """What `ShareRows` works with.

    Attributes
    ----------
    first, last
        Rows of patterns `first` to `last` - 1 are looked at.
    workers
        A context for each worker.
    threads
        As many threads.
    check
        Called with the number of rows that were looked at; raises where the work is to end.
    """

    first: int
    last: int
    workers: Sequence[GrowerContext]
    threads: ThreadPoolExecutor
    check: Callable[[int], None]


@dataclass(frozen=True)
class ShareRows(Stage):
    """Cut the rows of the patterns of a batch for the workers, which send them through other stages.

    Attributes
    ----------
    stages
        Of every worker.
    """

    stages: tuple[Stage, ...]

    verb = "filter"

    def describe(self) -> str:
        """See `Stage`."""
        return "\n".join(stage.describe() for stage in self.stages)

    def run(self, chunk: EmbeddingTable, context: TableContext) -> Iterable[Any]:
        """Wait until all workers are done with a chunk: an interrupt is raised in this thread, which only waits."""
        begin, end = _rows_of(chunk, context.first, context.last)
        if begin < end:
            cuts = np.linspace(begin, end, len(context.workers) + 1).astype(int).tolist()
            parts = [RowRange(chunk, *ends) for ends in pairwise(cuts)]
            jobs = [
                context.threads.submit(stream, part, self.stages, worker)
                for part, worker in zip(parts, context.workers, strict=True)
            ]
            wait(jobs)
            for job in jobs:
                job.result()
            context.check(end - begin)
        return ()


def _rows_of(chunk: EmbeddingTable, first: int, last: int) -> tuple[int, int]:
    """The rows of patterns first to last - 1."""
    begin, end = np.searchsorted(chunk.values[0], np.array([first, last], chunk.values[0].dtype)).tolist()
    for offsets in chunk.offsets:
        begin, end = int(offsets[begin]), int(offsets[end])
    return begin, end
