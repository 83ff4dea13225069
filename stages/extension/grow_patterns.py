"""Growing patterns by one edge: extension, aggregation and filtering of a level's embeddings, as separate steps.

The embedding table of a level has a column for the number of the pattern, one for vertex 0 and one for the far end of
each edge of the DFS code; the rows of a pattern stand together in every chunk. Rows are the mappings of the pattern.
They are aggregated by (pattern, rightmost extension) before anything is written; then the frequent extensions are made.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import reduce
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.engine import Engine
from longwall.kernels.interface.pattern_growth import GrowKernel, GrowthBatch, Images, TypedGraph
from longwall.stages.aggregation.support import Candidates, Support
from longwall.storage.tables.embedding_table import EmbeddingTable, from_columns

Array = Any  # a NumPy or a CuPy array
Take = Callable[[int, Callable[[int], Any]], Any]
Reserve = Callable[[int, str], AbstractContextManager[object]]

_ROW_BYTES, _ROW_COLUMN_BYTES = 48, 12  # of a row that is looked at, and for each of its columns
_MOST_ROWS = 1 << 31  # at once: kernels number them with 32 bits
_CHILD_BYTES, _CHILD_COLUMN_BYTES = 64, 12  # of a row that is written
_SEEN_BYTES = 8  # of what a worker notes of every vertex, where images are marked


class Rows(Protocol):
    """Rows of a level, in one table or several."""

    num_levels: int

    def __len__(self) -> int:
        """Number of rows."""
        ...

    def stream(self) -> Iterator[EmbeddingTable]:
        """All rows, chunk by chunk; a chunk is in memory until the next one is requested."""
        ...


class GrowPatterns:
    """Grows the patterns of a level.

    Parameters
    ----------
    engine
        The engine.
    graph
        The graph, in the engine's arrays.
    support
        What supports a pattern.
    take
        Does a piece of work of at most so many rows, with fewer where memory is short.
    memory
        Bytes for what is counted, and as much again for the rows in work, where the engine works.
    reserve
        Reserves bytes where the engine works, for what a noun names; chunks of tables make room for them.
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
        check: Callable[[int], None],
    ):
        self._xp, self._take, self._memory = engine.xp, take, memory
        self._reserve = reserve
        self._engine, self._graph, self._support = engine, graph, support
        self._growers = self._new_growers()
        self._check = check

    def _new_growers(self) -> list[GrowKernel]:
        workers = self._engine.workers
        return [
            self._engine.kernels.grower(self._engine.device, self._graph, self._memory // workers)
            for _ in range(workers)
        ]

    def most_extensions(self) -> int:
        """Return how many rightmost extensions can be counted at once."""
        return max(self._memory // (32 * len(self._growers)), 1)

    def count(self, table: Rows, growth: GrowthBatch, num_extensions: int) -> NDArray[np.int64]:
        """Count the rows that each rightmost extension would have: int64[num_extensions]."""
        xp, there = self._xp, growth.to(self._xp)
        with self._reserve(8 * num_extensions * len(self._growers), "the counts of rightmost extensions"):
            counts = [xp.zeros(num_extensions, xp.int64) for _ in self._growers]
            self._for_rows(table, growth, lambda worker, rows: self._growers[worker].count(rows, there, counts[worker]))
            return on_host(reduce(xp.add, counts))

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
        for begin, sets in self.sets(table, candidates, self._support.columns(candidates.sizes)):
            counts = on_host(self._growers[0].sizes(sets))
            end = begin + len(counts)
            found[begin:end] = self._support.least(counts, candidates.sizes[begin:end])
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
        words, workers = self._support.words, len(self._growers)
        at_once = max(self._memory // (4 * columns * words * workers), 1)
        for begin in range(0, len(candidates), at_once):
            some = candidates.sliced(begin, begin + at_once)
            shape = (len(some), columns, words)
            if self._support.of == "images":
                size = 4 * len(some) * columns * (words + 1) + 4 * some.num_extensions
                size += _SEEN_BYTES * self._graph.num_vertices
                with self._reserve(size * workers, "the images of patterns"):
                    yield begin, self._images(table, some, shape)
            else:
                size = 4 * len(some) * words * workers + 4 * some.num_extensions
                with self._reserve(size, "the transactions of patterns"):
                    yield begin, self._groups(table, some, shape)

    def _groups(self, table: Rows, some: Candidates, shape: tuple[int, int, int]) -> Array:
        """Return the transactions of each extension."""
        xp, there = self._xp, some.growth.to(self._xp)
        alive = self._alive(some.num_extensions, some.extensions)
        sets = [xp.zeros((shape[0], shape[2]), xp.uint32) for _ in self._growers]

        def mark(worker: int, rows: Array) -> None:
            self._growers[worker].mark_groups(rows, there, alive, sets[worker])

        self._for_rows(table, some.growth, mark, which=_growing(some))
        return _united(sets).reshape(shape)

    def _images(self, table: Rows, some: Candidates, shape: tuple[int, int, int]) -> Array:
        """Return the images of the vertices of each grown pattern, at least `enough` where there are so many."""
        xp, there = self._xp, some.growth.to(self._xp)
        growers = self._new_growers()  # what they note of every vertex is reserved with the sets
        images = [
            Images(
                self._alive(some.num_extensions, some.extensions),
                xp.zeros(shape, xp.uint32),
                xp.full(shape[:2], min(self._support.enough, np.iinfo(np.int32).max), xp.int32),
                xp.asarray(some.sizes.astype(np.int32)),
                xp.asarray(np.array([len(some)], np.int32)),
            )
            for _ in self._growers
        ]

        def mark(worker: int, rows: Array) -> None:
            growers[worker].mark_images(rows, there, images[worker])

        self._for_rows(table, some.growth, mark, lambda worker: int(images[worker].left[0]) == 0, which=_growing(some))
        return _united([one.sets for one in images])

    def children(
        self,
        table: Rows,
        growth: GrowthBatch,
        num_extensions: int,
        extensions: NDArray[np.int64],
        first: int,
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
        append
            Takes the rows, from several threads; those of a pattern stand together.
        """
        xp, there = self._xp, growth.to(self._xp)
        child_bytes = _CHILD_BYTES + _CHILD_COLUMN_BYTES * (table.num_levels + 1)
        most = max(self._memory // len(self._growers) // child_bytes, 1)
        with self._reserve(4 * num_extensions + most * child_bytes * len(self._growers), "embeddings that are grown"):
            alive = self._alive(num_extensions, extensions)

            def count(worker: int, rows: Array) -> tuple[Array, Array]:
                offsets = xp.zeros(rows.shape[1] + 1, xp.int64)
                xp.cumsum(self._growers[worker].child_counts(rows, there, alive), out=offsets[1:])
                return rows, offsets

            def grow(worker: int, counted: tuple[Array, Array]) -> None:
                rows, offsets = counted
                begin, total = 0, int(offsets[-1])

                def part(size: int) -> tuple[EmbeddingTable, int]:
                    own = offsets[begin : begin + size + 1] - offsets[begin]
                    end = int(xp.searchsorted(own, min(most, int(own[-1])), side="right")) - 1
                    end = max(end, 1)
                    grown = int(own[end])
                    with self._reserve(max(grown - most, 0) * child_bytes, "what one embedding grows into"):
                        return self._grown(
                            self._growers[worker], rows[:, begin : begin + end], there, alive, own[: end + 1], first
                        ), begin + end

                while begin < rows.shape[1] and int(offsets[begin]) < total:
                    self._check(0)
                    made, begin = self._take(rows.shape[1] - begin, part)
                    if len(made):
                        append(made)

            self._for_rows(table, growth, count, after=grow)

    def _grown(
        self, grower: Any, rows: Array, growth: GrowthBatch, alive: Array, offsets: Array, first: int
    ) -> EmbeddingTable:
        xp = self._xp
        rows = xp.ascontiguousarray(rows)
        numbers, vertices = grower.children(rows, growth, alive, offsets)
        total = int(vertices.size)
        place = xp.arange(total, dtype=xp.int64)
        order = xp.argsort(numbers.astype(xp.int64) * total + place)
        parents = (xp.searchsorted(offsets, place, side="right") - 1)[order]
        columns = xp.empty((rows.shape[0] + 1, total), xp.uint32)
        columns[0] = numbers[order] + first
        for level in range(1, rows.shape[0]):
            columns[level] = rows[level][parents]
        columns[-1] = vertices[order]
        return from_columns(columns, xp).to(np)

    def _alive(self, num_extensions: int, extensions: NDArray[np.int64]) -> Array:
        alive = np.full(num_extensions, -1, np.int32)
        alive[extensions] = np.arange(len(extensions))
        return self._xp.asarray(alive)

    def _for_rows(
        self,
        table: Rows,
        growth: GrowthBatch,
        work: Callable[[int, Array], Any],
        done: Callable[[int], bool] = lambda worker: False,  # noqa: ARG005
        after: Callable[[int, Any], None] = lambda worker, made: None,  # noqa: ARG005
        which: tuple[int, int] | None = None,
    ) -> None:
        """Hand all rows of a batch of patterns, or of some of them, to the workers, as long as they are not done.

        `work` is done again, for fewer rows, where memory is short; `after` is called once with its result.
        """
        row_bytes = _ROW_BYTES + _ROW_COLUMN_BYTES * table.num_levels
        step = max(min(self._memory // len(self._growers) // row_bytes, len(table), _MOST_ROWS), 1)
        low, high = which or (0, len(growth.sizes))
        first = int(growth.first[0])

        def some(worker: int, chunk: EmbeddingTable, begin: int, end: int) -> None:
            while begin < end and not done(worker):
                self._check(0)

                def piece(size: int, begin: int = begin) -> tuple[int, Any]:
                    return size, work(worker, self._flat(chunk.sliced(begin, begin + size)))

                size, made = self._take(min(step, end - begin), piece)
                after(worker, made)
                begin += size

        workers = len(self._growers)
        # The main thread only waits: an interrupt is raised in it.
        with self._reserve(row_bytes * step * workers, "embeddings"), ThreadPoolExecutor(workers) as threads:
            for chunk in table.stream():
                begin, end = _rows_of(chunk, first + low, first + high)
                if begin == end:
                    continue
                cuts = np.linspace(begin, end, workers + 1).astype(int).tolist()
                jobs = [threads.submit(some, worker, chunk, *ends) for worker, ends in enumerate(pairwise(cuts))]
                for job in jobs:
                    job.result()
                self._check(end - begin)

    def _flat(self, chunk: EmbeddingTable) -> Array:
        return chunk.to(self._xp).columns()


def _growing(some: Candidates) -> tuple[int, int]:
    """The first of the patterns that grow, and what comes behind the last."""
    return int(some.patterns[0]), int(some.patterns[-1]) + 1


def _rows_of(chunk: EmbeddingTable, first: int, last: int) -> tuple[int, int]:
    """The rows of patterns first to last - 1."""
    begin, end = np.searchsorted(chunk.values[0], np.array([first, last], chunk.values[0].dtype)).tolist()
    for offsets in chunk.offsets:
        begin, end = int(offsets[begin]), int(offsets[end])
    return begin, end


def _united(sets: list[Array]) -> Array:
    """The union of bit sets, in the place of the first."""
    while len(sets) > 1:
        sets[0] |= sets.pop()
    return sets[0]


def on_host(array: Array) -> NDArray[Any]:
    """An engine's array as one of NumPy."""
    host: NDArray[Any] = array if isinstance(array, np.ndarray) else array.get()
    return host
