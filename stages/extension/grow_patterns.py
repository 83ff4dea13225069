"""Growing patterns by one edge: extension, aggregation and filtering of a level's embeddings, as separate steps.

The embedding table of a level has a column for the number of the pattern, one for vertex 0 and one for the far end of
each edge of the DFS code; the rows of a pattern stand together in every chunk. Rows are the mappings of the pattern.
They are aggregated by (pattern, rightmost extension) before anything is written; then the frequent extensions are made.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.engine import Engine
from longwall.kernels.interface.pattern_growth import GrowKernel, GrowthBatch, Images, TypedGraph
from longwall.stages.aggregation.extensions import AggregateContext, CountExtensions, MarkSupport
from longwall.stages.aggregation.support import ROWS, Candidates, Support
from longwall.stages.base import Stage, stream
from longwall.stages.extension.pattern_rows import GrowerContext, RowRange, Rows, ShareRows, Take
from longwall.stages.tables import StoredRows
from longwall.storage.tables.embedding_table import EmbeddingTable, from_columns

Array = Any  # a NumPy or a CuPy array
Reserve = Callable[[int, str], AbstractContextManager[object]]

_ROW_BYTES, _ROW_COLUMN_BYTES = 48, 12  # of a row that is looked at, and for each of its columns
# Parts of the memory for counts. Notes on vertices that would take more than the first part are kept by fewer workers.
# If a single worker's take more, half of the excess comes from the counts and half from the rows in work, and each of
# these keeps at least the second part.
_NOTED_SHARE, _LEAST_SHARE = 1.5, 1 / 8
_MOST_ROWS = 1 << 31  # at once: kernels number them with 32 bits
_CHILD_BYTES, _CHILD_COLUMN_BYTES = 64, 12  # of a row that is written


class GrowContext(GrowerContext):
    """What a worker grows rows with.

    Parameters
    ----------
    *given
        As of `GrowerContext`.
    alive : int32[extensions]
        Number of each extension that is made, -1 for the others.
    first
        Number of the pattern that the first of them leads to.
    most
        Rows that are made at once, where a row grows into no more.
    child_bytes
        Bytes that a row takes that is made.
    reserve
        Reserves bytes where the engine works.
    append
        Takes rows that were made, on the host.
    """

    def __init__(
        self,
        *given: Any,
        alive: Array,
        first: int,
        most: int,
        child_bytes: int,
        reserve: Reserve,
        append: Callable[[EmbeddingTable], None],
    ):
        super().__init__(*given)
        self.alive, self.first, self.most, self.child_bytes = alive, first, most, child_bytes
        self.reserve, self.append = reserve, append


@dataclass(frozen=True)
class GrowRows(Stage):
    """Grow every row by the rightmost extensions that are frequent (gSpan)."""

    verb = "extend"

    def describe(self) -> str:
        """See `Stage`."""
        return "extend       by the edges that make frequent patterns, along the rightmost path"

    def run(self, chunk: RowRange, context: GrowContext) -> Iterator[EmbeddingTable]:
        """Yield the rows that some rows grow into, on the host; those of a pattern stand together."""
        xp = context.xp

        def count(rows: Array) -> tuple[Array, Array]:
            offsets = xp.zeros(rows.shape[1] + 1, xp.int64)
            xp.cumsum(context.grower.child_counts(rows, context.growth, context.alive), out=offsets[1:])
            return rows, offsets

        for rows, offsets in context.by_parts(chunk, count):
            yield from self._grown(rows, offsets, context)

    def _grown(self, rows: Array, offsets: Array, context: GrowContext) -> Iterator[EmbeddingTable]:
        """Yield what flat rows grow into; `offsets` has the prefix sums of how many rows that are."""
        xp, begin, total = context.xp, 0, int(offsets[-1])

        def part(size: int) -> tuple[EmbeddingTable, int]:
            own = offsets[begin : begin + size + 1] - offsets[begin]
            end = int(xp.searchsorted(own, min(context.most, int(own[-1])), side="right")) - 1
            end = max(end, 1)
            more = max(int(own[end]) - context.most, 0)
            with context.reserve(more * context.child_bytes, "what one embedding grows into"):
                return _children(context, rows[:, begin : begin + end], own[: end + 1]), begin + end

        while begin < rows.shape[1] and int(offsets[begin]) < total:
            context.check(0)
            made, begin = context.take(rows.shape[1] - begin, part)
            yield made
            del made


def _children(context: GrowContext, rows: Array, offsets: Array) -> EmbeddingTable:
    """Return what rows grow into, in the order of the patterns; `offsets` has the prefix sums of how many they are."""
    rows = context.xp.ascontiguousarray(rows)
    numbers, vertices = context.grower.children(rows, context.growth, context.alive, offsets)
    columns = context.grower.grouped(rows, offsets, numbers, vertices, context.first)
    return from_columns(columns, context.xp).to(np)


@dataclass(frozen=True)
class KeepRows(Stage):
    """Append rows to the table of the next level."""

    verb = "export"

    def describe(self) -> str:
        """See `Stage`."""
        return "export       to the table of the next level"

    def run(self, chunk: EmbeddingTable, context: GrowContext) -> Iterable[Any]:
        """Append rows."""
        if len(chunk):
            context.append(chunk)
        return ()


COUNT: tuple[Stage, ...] = (StoredRows(), ShareRows((CountExtensions(),)))
"""A pass over the rows of a level that counts what each extension would have."""
MARK: dict[str, tuple[Stage, ...]] = {of: (StoredRows(), ShareRows((MarkSupport(of),))) for of in ("groups", "images")}
"""Passes that mark what supports extensions: transactions, or images of pattern vertices."""
GROW: tuple[Stage, ...] = (StoredRows(), ShareRows((GrowRows(), KeepRows())))
"""A pass that makes the rows of the next level."""


@dataclass
class _TableContext:
    """See :class:`longwall.stages.extension.pattern_rows.TableContext`."""

    first: int
    last: int
    workers: list[Any]
    threads: ThreadPoolExecutor
    check: Callable[[int], None]
    done: bool = field(default=False, init=False)


class GrowPatterns:
    """Grows the patterns of a level: sends its rows through stages, and owns what these work with.

    Parameters
    ----------
    engine
        The engine.
    graph
        The graph, in the engine's arrays.
    support
        What supports a pattern.
    take
        Does a piece of work of at most a given number of rows, with fewer where memory is short.
    memory
        Bytes for counts, where the engine works; as much again for the rows in work, and twice as much for notes on
        vertices.
    reserve
        Reserves bytes where the engine works, for what a noun names; chunks of tables make room for them.
    reserve_host
        The same in the host's memory.
    check
        Called now and then; raises where the work is to end.
    """

    def __init__(
        self,
        engine: Engine,
        graph: TypedGraph,
        support: Support,
        take: Take,
        memory: int,
        reserve: Reserve,
        reserve_host: Reserve,
        check: Callable[[int], None],
    ):
        self._xp, self._take, self._memory = engine.xp, take, memory
        self._reserve, self._reserve_host = reserve, reserve_host
        self._engine, self._graph, self._support = engine, graph, support
        self._growers = self._new_growers()
        self._check = check

    def _new_growers(self, noted: int = 0) -> list[GrowKernel]:
        """Make those of workers that note a number of bytes each: of fewer workers, where memory is short."""
        workers = max(min(self._engine.workers, int(_NOTED_SHARE * self._memory) // max(noted, 1)), 1)
        memory = max(self._memory // workers, noted)
        return [self._engine.kernels.grower(self._engine.device, self._graph, memory) for _ in range(workers)]

    def _left(self, noted: int) -> int:
        """Return the bytes for counts, or for the rows in work, if the notes of all workers take a number of bytes."""
        beyond = max(noted - int(_NOTED_SHARE * self._memory), 0)
        return max(self._memory - beyond // 2, int(_LEAST_SHARE * self._memory))

    def kernel(self, growth: GrowthBatch) -> tuple[GrowKernel, GrowthBatch]:
        """Return the kernels of one worker, and a batch of patterns in the engine's arrays."""
        return self._growers[0], growth.to(self._xp)

    def most_extensions(self) -> int:
        """Return how many rightmost extensions can be counted at once."""
        return max(self._memory // (32 * len(self._growers)), 1)

    def count(self, table: Rows, growth: GrowthBatch, num_extensions: int) -> NDArray[np.int64]:
        """Count the rows that each rightmost extension would have: int64[num_extensions]."""
        xp = self._xp
        noted = self._growers[0].counting_bytes
        growers = self._new_growers(noted)  # what they note of vertices is reserved
        with self._reserve((8 * num_extensions + noted) * len(growers), "the counts of rightmost extensions"):
            counts = [xp.zeros(num_extensions, xp.int64) for _ in growers]
            given = self._given(table, growth, growers, noted)
            workers = [
                AggregateContext(*one, record=ROWS, into=(found,)) for one, found in zip(given, counts, strict=True)
            ]
            self._run(table, growth, COUNT, workers)
            return ROWS.finalize(ROWS.combine(counts))

    def supports(self, table: Rows, candidates: Candidates) -> NDArray[np.int64]:
        """Count the support of some extensions.

        Parameters
        ----------
        table
            The level.
        candidates
            The extensions.

        Returns
        -------
        int64[k]
            As far as is `enough`.

        Raises
        ------
        BudgetExceeded
            If there is no room for a bit per vertex, or transaction, of a single pattern.
        """
        found = np.zeros(len(candidates), np.int64)
        columns = self._support.columns(candidates.sizes)
        for begin, sets in self.sets(table, candidates, columns):
            end = begin + len(sets)
            record = self._support.aggregation(candidates.sizes[begin:end], self._growers[0].sizes)
            with self._reserve_host(len(sets) * self._support.counting_bytes(columns), "the supports of patterns"):
                found[begin:end] = record.finalize(sets)
        return found

    def sets(self, table: Rows, candidates: Candidates, columns: int) -> Iterator[tuple[int, Array]]:
        """Mark the support of some extensions.

        Parameters
        ----------
        table
            The level, or some of its rows.
        candidates
            The extensions.
        columns
            Sets of each extension: as many as of those that they will be compared with.

        Yields
        ------
        int
            Number of the first extension, from 0, of those that were looked at together.
        uint32[extensions, columns, words]
            A bit per vertex, or transaction; the engine's, until the next ones are requested.

        Raises
        ------
        BudgetExceeded
            If there is no room for a bit per vertex, or transaction, of a single pattern.
        """
        noted = self._growers[0].marking_bytes if self._support.of == "images" else 0
        words, workers = self._support.words, len(self._new_growers(noted))
        each = 4 * columns * (words + 1) * workers + self._support.counting_bytes(columns)
        at_once = max(self._left(noted * workers) // each, 1)
        for begin in range(0, len(candidates), at_once):
            some = candidates.sliced(begin, begin + at_once)
            shape = (len(some), columns, words)
            if self._support.of == "images":
                size = 4 * len(some) * columns * (words + 1) + 4 * some.num_extensions + noted
                with self._reserve(size * workers, "the images of patterns"):
                    yield begin, self._images(table, some, shape)
            else:
                size = 4 * len(some) * words * workers + 4 * some.num_extensions
                with self._reserve(size, "the transactions of patterns"):
                    yield begin, self._groups(table, some, shape)

    def _groups(self, table: Rows, some: Candidates, shape: tuple[int, int, int]) -> Array:
        """Return the transactions of each extension."""
        xp, record = self._xp, self._support.aggregation(some.sizes, self._growers[0].sizes)
        alive = self._alive(some.num_extensions, some.extensions)
        sets = [xp.zeros((shape[0], shape[2]), xp.uint32) for _ in self._growers]
        given = self._given(table, some.growth)
        workers = [
            AggregateContext(*one, record=record, into=(alive, found)) for one, found in zip(given, sets, strict=True)
        ]
        self._run(table, some.growth, MARK[self._support.of], workers, which=_growing(some))
        return record.combine(sets).reshape(shape)

    def _images(self, table: Rows, some: Candidates, shape: tuple[int, int, int]) -> Array:
        """Return the images of the vertices of each grown pattern, at least `enough` if it has as many."""
        xp, record = self._xp, self._support.aggregation(some.sizes, self._growers[0].sizes)
        noted = self._growers[0].marking_bytes
        growers = self._new_growers(noted)  # what they note of every vertex is reserved with the sets
        of_patterns = np.bincount(some.patterns, minlength=len(some.growth.sizes))
        images = [
            Images(
                self._alive(some.num_extensions, some.extensions),
                xp.zeros(shape, xp.uint32),
                xp.full(shape[:2], min(self._support.enough, np.iinfo(np.int32).max), xp.int32),
                xp.asarray(some.sizes.astype(np.int32)),
                xp.asarray(np.concatenate([[len(some)], of_patterns]).astype(np.int32)),
            )
            for _ in growers
        ]
        given = self._given(table, some.growth, growers, noted)
        workers = [
            AggregateContext(*one, record=record, into=(found,), left=found.left)
            for one, found in zip(given, images, strict=True)
        ]
        self._run(table, some.growth, MARK[self._support.of], workers, which=_growing(some))
        return record.combine([one.sets for one in images])

    def children(
        self,
        table: Rows,
        growth: GrowthBatch,
        num_extensions: int,
        extensions: NDArray[np.int64],
        first: int,
        rows: int,
        append: Callable[[EmbeddingTable], None],
    ) -> None:
        """Grow a batch of patterns.

        Parameters
        ----------
        table, growth, num_extensions
            The level; a batch of its patterns, and the number of their extensions.
        extensions : int64[k]
            Those to make, ascending.
        first
            Number of the pattern that the first of them leads to; the others follow.
        rows
            No more rows are made; what is reserved for them is as large as that needs, at most.
        append
            Takes the rows, from several threads; those of a pattern stand together.
        """
        child_bytes = _CHILD_BYTES + _CHILD_COLUMN_BYTES * (table.num_levels + 1)
        most = max(min(self._memory // len(self._growers) // child_bytes, rows), 1)
        with self._reserve(4 * num_extensions + most * child_bytes * len(self._growers), "embeddings that are grown"):
            alive = self._alive(num_extensions, extensions)
            workers = [
                GrowContext(
                    *one,
                    alive=alive,
                    first=first,
                    most=most,
                    child_bytes=child_bytes,
                    reserve=self._reserve,
                    append=append,
                )
                for one in self._given(table, growth)
            ]
            self._run(table, growth, GROW, workers)

    def _alive(self, num_extensions: int, extensions: NDArray[np.int64]) -> Array:
        alive = np.full(num_extensions, -1, np.int32)
        alive[extensions] = np.arange(len(extensions))
        return self._xp.asarray(alive)

    def _given(
        self, table: Rows, growth: GrowthBatch, growers: list[GrowKernel] | None = None, noted: int = 0
    ) -> Iterator[tuple[Any, ...]]:
        """Yield what the context of each worker needs for a batch of patterns; see `GrowerContext`."""
        growers = growers or self._growers
        there, step = growth.to(self._xp), self._step(table, self._left(noted * len(growers)) // len(growers))
        for grower in growers:
            yield grower, there, self._xp, step, self._take, self._check

    def _step(self, table: Rows, memory: int) -> int:
        """How many rows a worker looks at, at once."""
        row_bytes = _ROW_BYTES + _ROW_COLUMN_BYTES * table.num_levels
        return max(min(memory // row_bytes, len(table), _MOST_ROWS), 1)

    def _run(
        self,
        table: Rows,
        growth: GrowthBatch,
        stages: tuple[Stage, ...],
        workers: list[Any],
        which: tuple[int, int] | None = None,
    ) -> None:
        """Send all rows of a batch of patterns, or of some of them, through stages, on a thread for each worker."""
        low, high = which or (0, len(growth.sizes))
        first = int(growth.first[0])
        size = (_ROW_BYTES + _ROW_COLUMN_BYTES * table.num_levels) * sum(worker.step for worker in workers)
        with self._reserve(size, "embeddings"), ThreadPoolExecutor(len(workers)) as threads:
            context = _TableContext(first + low, first + high, workers, threads, self._check)
            stream(table, stages, context)


def _growing(some: Candidates) -> tuple[int, int]:
    """The first of the patterns that grow, and what comes behind the last."""
    return int(some.patterns[0]), int(some.patterns[-1]) + 1
