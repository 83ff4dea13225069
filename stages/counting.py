"""The counting stage: what a table's rows lead to, without writing any further level."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import Pages
from longwall.kernels.interface.search import Searcher
from longwall.stages.base import Aggregation, Stage, WorkerContext
from longwall.stages.source import EdgeSource
from longwall.stages.stage_timer import StageTimer
from longwall.storage.errors import RunError
from longwall.storage.tables.embedding_table import EmbeddingTable

Made = TypeVar("Made")


class CountContext(WorkerContext, Protocol):
    """What `FusedCount` works with."""

    graph: GraphArrays
    xp: Any
    timer: StageTimer
    searcher: Searcher
    most_rows: int
    """Rows that are counted at once."""

    @property
    def wanted(self) -> int | None:
        """How many matches are still wanted; None: all."""
        ...

    def fit(self, stage: Stage, most: int, work: Callable[[int], Made]) -> Made:
        """Do a piece of work that is as large as memory allows, `most` at most."""
        ...

    def add(self, number: int) -> None:
        """Add to the count."""
        ...


@dataclass(frozen=True)
class FusedCount(Stage):
    """Count what the rows of a chunk lead to; all later levels of the search are fused into one kernel.

    Attributes
    ----------
    level
        The last level of the search.
    vertices
        The pattern vertices that are never enumerated, as text.
    terms
        How many embeddings a row leads to, as text.
    redundancy
        How often each embedding is counted.
    """

    level: int
    vertices: tuple[str, ...]
    terms: str
    redundancy: int

    verb = "count"

    def describe(self) -> str:
        """See `Stage`."""
        if not self.vertices:
            return "count        every row"
        vertices = ", ".join(self.vertices)
        text = f"count        pattern vertices {vertices} (fused, never written): {self.terms}"
        return f"{text}\n             divided by {self.redundancy}" if self.redundancy > 1 else text

    @property
    def aggregation(self) -> Aggregation[int, int]:
        """From the numbers of matches below the rows of chunks to the number of embeddings."""
        return Aggregation(count_planned, sum, self._embeddings)

    def run(self, chunk: EmbeddingTable, context: CountContext) -> Iterable[Any]:
        """Add the number to the context's."""
        begin = 0
        while begin < len(chunk) and not context.done:
            with context.timer.time(self.level) as sample:
                most = min(len(chunk) - begin, context.most_rows)
                found, size = context.fit(self, most, partial(self._count, chunk, context, begin))
                sample.rows_in, sample.rows_out = size, found
            context.add(found)
            begin += size
        return ()

    def _count(self, chunk: EmbeddingTable, context: CountContext, begin: int, size: int) -> tuple[int, int]:
        rows = chunk.sliced(begin, begin + size).to(context.xp)
        return count_planned(rows, context.searcher, context.graph.pages, context.wanted), size

    def _embeddings(self, matches: int) -> int:
        embeddings, rest = divmod(matches, self.redundancy)
        if rest:
            raise RunError(f"internal fault: {matches} matches cannot be divided by the redundancy {self.redundancy}")
        return embeddings


@dataclass(frozen=True)
class CountEdges(Stage):
    """Choose the edges of ranges of arcs, and count what they lead to: where nothing has to be known in between.

    Attributes
    ----------
    source
        Which edges.
    count
        What is counted below them.
    """

    source: EdgeSource
    count: FusedCount

    verb = "count"

    def describe(self) -> str:
        """See `Stage`."""
        return f"{self.source.describe()}\n{self.count.describe()}"

    def run(self, chunk: tuple[int, int], context: CountContext) -> Iterable[Any]:
        """Add the number below the edges of arcs ``chunk[0]`` to ``chunk[1]`` - 1 to the context's."""
        first, last = chunk
        while first < last and not context.done:
            with context.timer.time(self.count.level) as sample:
                most = min(last - first, context.most_rows)
                found, rows, size = context.fit(self, most, partial(self._count, context, first))
                sample.rows_in, sample.rows_out = rows, found
            with context.timer.time(1) as source:
                source.rows_in, source.rows_out = size, rows
            context.add(found)
            first += size
        return ()

    def _count(self, context: CountContext, first: int, size: int) -> tuple[int, int, int]:
        return *context.searcher.count_edges(first, first + size, context.wanted), size


def count_planned(
    table: EmbeddingTable, searcher: Searcher, pages: Pages | None = None, most: int | None = None
) -> int:
    """Count the embeddings below a table's rows; all later levels of the program are fused into one kernel.

    Parameters
    ----------
    table
        The rows.
    searcher
        The engine's workspace for the program.
    pages
        The pages of the graph that the engine reads; made ready for what the rows' own vertices read.
    most
        The search may end once it has found this number.
    """
    if not len(table):
        return 0
    rows = table.columns()
    if pages is not None:
        pages.prepare(table.num_levels, searcher.reads(rows, counting=True))
    return searcher.count_rows(rows, most)
