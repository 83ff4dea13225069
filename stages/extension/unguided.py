"""Unguided extension: every extension of an embedding by one vertex or one edge (GAMMA, Definition 3.1).

These are the stages behind the library calls; a planned search uses :mod:`longwall.stages.extension.planned`, which
intersects instead of uniting. A table goes in, tables come out, cut so that their arrays and all temporaries fit a
number of bytes: how many candidates a row has is known, from the degrees or by counting, before it is extended.

An edge is coded by its ends: ``larger << 32 | smaller``, int64. Extension by edges is the engines'; what extension by
vertices reads of the adjacency is in :mod:`longwall.stages.extension.adjacency_lists`.
"""

from collections.abc import Callable, Generator, Iterator
from functools import partial, reduce
from typing import Any, Protocol, TypeVar

import numpy as np

from longwall.kernels.interface.engine import Engine
from longwall.kernels.interface.frontier import NeighbourRange, RowReads
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.stages.extension.adjacency_lists import degrees, read_lists
from longwall.storage.errors import InputError
from longwall.storage.tables.embedding_table import EmbeddingTable

Array = Any  # a NumPy or a CuPy array
Found = TypeVar("Found")

_CANDIDATE_BYTES = 24  # its copy on the device; a sorted key, its mark and the key or value that is kept, or the latter
_IN_WORK_BYTES = 160  # of a candidate of the block in work: list, row, arc, both ends, the binary search's bounds
_ROW_BYTES, _ROW_COLUMN_BYTES = 160, 288  # of a row to extend, and for each of its columns, which may have two lists
_LARGEST_BLOCK = 1 << 18  # candidates in work at once: more gains nothing
_DEVICE_BLOCKS = 16  # times as many on a device, where a block takes 60 launches whatever its length
_MOST_VERTICES = 1 << 31  # whose edges have codes that are not negative

Children = tuple[Array, Array]
"""Number of new values per row (int64), and the values, row by row."""


class TooManyCandidates(Exception):
    """A single row has more candidates than fit the memory of a call.

    Attributes
    ----------
    candidates
        Of the row.
    needed
        Bytes of memory that would do for it.
    """

    def __init__(self, candidates: int):
        super().__init__(f"{candidates} candidates of one row do not fit")
        self.candidates, self.needed = candidates, memory_for(candidates)


class Take(Protocol):
    """How a piece of work is done: by ``work(memory)``, where memory is at most `most` bytes.

    A piece that fails for want of memory may be tried again with less.
    """

    def __call__(self, most: int, work: Callable[[int], Found]) -> Found: ...  # noqa: D102


def at_once(most: int, work: Callable[[int], Found]) -> Found:
    """Do the work with all the memory there is."""
    return work(most)


def memory_for(candidates: int) -> int:
    """Bytes of memory with which a row of so many candidates can be extended."""
    return 2 * _CANDIDATE_BYTES * candidates


def all_vertices(graph: GraphArrays, xp: Any, memory: int) -> Generator[EmbeddingTable, None, None]:
    """A v-ET of one level in parts of at most `memory` bytes: every vertex."""
    step = max(memory // 4, 1)
    for first in range(0, graph.num_vertices, step):
        yield EmbeddingTable((xp.arange(first, min(first + step, graph.num_vertices), dtype=xp.uint32),), (), xp)


def all_edges(graph: GraphArrays, xp: Any, memory: int) -> Generator[EmbeddingTable, None, None]:
    """An e-ET of one level in parts of at most `memory` bytes: the code of every edge, ascending.

    Raises
    ------
    InputError
        If the graph has more vertices than codes can distinguish.
    """
    if graph.num_vertices > _MOST_VERTICES:
        raise InputError(f"tables of edges take graphs of at most {_MOST_VERTICES:,} vertices: use tables of vertices")
    step = max(memory // 48, 1)
    for first in range(0, graph.num_arcs, step):
        last = min(first + step, graph.num_arcs)
        owners = xp.searchsorted(graph.indptr, xp.arange(first, last), side="right")
        owners -= 1
        if graph.pages is not None:
            vertices = xp.arange(int(owners[0]), int(owners[-1]) + 1, dtype=xp.uint32)
            graph.pages.touch(0, [RowReads(vertices, NeighbourRange.ALL)])
        neighbours = graph.indices[first:last]
        smaller = neighbours < owners
        codes = owners[smaller]
        codes <<= 32
        codes |= neighbours[smaller]
        yield EmbeddingTable((codes,), (), xp)


def extend_by_vertex(
    table: EmbeddingTable, graph: GraphArrays, levels: list[int] | None, memory: int, take: Take = at_once
) -> Iterator[EmbeddingTable]:
    """Add a level with the common or the united neighbours of matched vertices.

    Parameters
    ----------
    table
        A v-ET.
    graph
        The data graph, in arrays of the table's module.
    levels
        The new vertex must be adjacent to the vertices of all these levels; None: to any matched vertex.
    memory
        Bytes that each part of the result and all temporaries may take.
    take
        How each piece of the work is done.

    Yields
    ------
    EmbeddingTable
        The extended rows in order: each row once per new vertex; matched vertices are not matched again.

    Raises
    ------
    TooManyCandidates
        If a single row has more candidates than fit.
    """
    xp = table.xp
    if levels is None and table.num_levels == 1:
        levels = [0]
    chosen = levels

    def common_candidates(columns: Array) -> Array:
        return degrees(graph, reduce(xp.maximum, columns[chosen]))

    def common(columns: Array, block: int) -> Children:
        # Ids are degree ranks: the largest id has the fewest neighbours.
        ordered = xp.sort(columns[chosen], axis=0)
        return _common_neighbours(graph, ordered[-1], ordered[:-1], columns, block, xp)

    def united_candidates(columns: Array) -> Array:
        return sum(degrees(graph, column) for column in columns)

    def united(columns: Array, block: int) -> Children:
        counts, values = _distinct(_united_neighbours(graph, columns, block, xp), columns, graph.num_vertices, xp)
        return counts, values.astype(xp.uint32)

    if levels is None:
        yield from _in_parts(table, united_candidates, united, memory, take)
    else:
        yield from _in_parts(table, common_candidates, common, memory, take)


def extend_by_edge(
    table: EmbeddingTable, graph: GraphArrays, engine: Engine, memory: int, take: Take = at_once
) -> Iterator[EmbeddingTable]:
    """Add a level with the edges that touch an embedding and are not part of it.

    Parameters
    ----------
    table
        An e-ET: edges as codes.
    graph
        The data graph, in arrays of the engine.
    engine
        Finds the edges.
    memory
        Bytes that each part of the result and all temporaries may take: five eighths for what the engine knows of the
        rows in work, an eighth for these rows, the rest for their new edges.
    take
        How each piece of the work is done.

    Yields
    ------
    EmbeddingTable
        The extended rows in order: each row once per new edge; see
        :class:`longwall.kernels.interface.workspaces.EdgeExtender`.

    Raises
    ------
    TooManyCandidates
        If a single row has more new edges than fit.
    """
    if not len(table):
        return
    most = min(_rows_within(memory // 2, table), len(table))
    extender = take(
        memory * 5 // 8, lambda less: engine.kernels.edge_extender(engine.device, graph, table.num_levels, most, less)
    )

    def window(begin: int, less: int) -> tuple[EmbeddingTable, Array]:
        rows = table.sliced(begin, min(begin + _rows_within(less // 2, table), len(table)))
        columns = rows.columns()
        if graph.pages is not None:
            prepare = graph.pages.prepare if graph.pages.staged else graph.pages.touch
            prepare(table.num_levels, extender.reads(columns))
        return rows, columns

    def count(columns: Array, first: int, less: int) -> None:
        extender.count(columns, first, first + _rows_within(less // 2, table))

    def part(rows: EmbeddingTable, first: int, less: int) -> tuple[EmbeddingTable, int]:
        # Where memory is short a row is tried with less than it may need, but it must fit what was promised.
        cut = extender.cut(first, _limit(less))
        if cut.number > _limit(memory):
            raise TooManyCandidates(cut.number)
        offsets, edges = extender.new_edges(first, cut)
        growing = rows.sliced(first, cut.last)
        if not cut.all_grow:
            return growing.extended(offsets[1:] - offsets[:-1], edges), cut.last
        return EmbeddingTable((*growing.values, edges), (*growing.offsets, offsets), growing.xp), cut.last

    begin = 0
    while begin < len(table):
        rows, columns = take(memory, partial(window, begin))
        first = 0
        while first < len(rows):
            if not extender.is_counted(columns, first):
                take(memory, partial(count, columns, first))
            extended, first = take(memory, partial(part, rows, first))
            yield extended
            del extended  # not kept while the next one is made
        begin += len(rows)


def edge_ends(codes: Array, xp: Any) -> tuple[Array, Array]:
    """The larger and the smaller end of edges, uint32 each."""
    return (codes >> 32).astype(xp.uint32), codes.astype(xp.uint32)  # 32 bits hold the lower half


def is_edge(graph: GraphArrays, first: Array, second: Array, xp: Any) -> Array:
    """Whether pairs of vertices are adjacent: one binary search per pair, all in step."""
    low = graph.indptr[first]
    end = high = graph.indptr[first.astype(xp.int64) + 1]
    for _ in range(graph.max_degree.bit_length() + 1):
        middle = (low + high) >> 1
        smaller = (low < high) & (graph.indices[xp.minimum(middle, graph.num_arcs - 1)] < second)
        high = xp.where(smaller, high, xp.minimum(middle, high))
        low = xp.where(smaller, middle + 1, low)
    return (low < end) & (graph.indices[xp.minimum(low, graph.num_arcs - 1)] == second)


def _in_parts(
    table: EmbeddingTable,
    candidates: Callable[[Array], Array],
    children: Callable[[Array, int], Children],
    memory: int,
    take: Take,
) -> Iterator[EmbeddingTable]:
    """Extend as many rows at once as fit.

    Parameters
    ----------
    table
        Rows to extend.
    candidates
        Returns the number of candidates of each row, from the flat columns.
    children
        Returns the new values of rows, from their flat columns and the number of candidates in work at once.
    memory
        Bytes: a quarter for the rows, a quarter for the block in work, half for the candidates.
    take
        How each piece of the work is done.
    """
    xp = table.xp

    def window(begin: int, memory: int) -> tuple[EmbeddingTable, Array, Array]:
        rows = table.sliced(begin, min(begin + _rows_within(memory, table), len(table)))
        columns = rows.columns()
        return rows, columns, xp.cumsum(candidates(columns))

    def part(rows: EmbeddingTable, columns: Array, ends: Array, first: int, less: int) -> tuple[EmbeddingTable, int]:
        before = int(ends[first - 1]) if first else 0
        # Where memory is short a row is tried with less than it may need, but it must fit what was promised.
        last = max(int(xp.searchsorted(ends, before + _limit(less), side="right")), first + 1)
        number = int(ends[last - 1]) - before
        if number > _limit(memory):
            raise TooManyCandidates(number)
        largest = _LARGEST_BLOCK if xp is np else _DEVICE_BLOCKS * _LARGEST_BLOCK
        block = min(max(less // 4 // _IN_WORK_BYTES, 1), largest)
        return rows.sliced(first, last).extended(*children(columns[:, first:last], block)), last

    begin = 0
    while begin < len(table):
        rows, columns, ends = take(memory, partial(window, begin))
        first = 0
        while first < len(rows):
            extended, first = take(memory, partial(part, rows, columns, ends, first))
            yield extended
            del extended  # not kept while the next one is made
        begin += len(rows)


def _rows_within(memory: int, table: EmbeddingTable) -> int:
    """How many rows of a table are extended at once."""
    return max(memory // 4 // (_ROW_BYTES + _ROW_COLUMN_BYTES * table.num_levels), 1)


def _limit(memory: int) -> int:
    """How many candidates fit."""
    return memory // 2 // _CANDIDATE_BYTES


def _common_neighbours(graph: GraphArrays, base: Array, others: Array, columns: Array, block: int, xp: Any) -> Children:
    """Neighbours of `base` that are adjacent to all `others` and stand in no column; one vertex per row each."""
    counts = xp.zeros(base.size, dtype=xp.int64)
    found = []
    searched = [RowReads(other, NeighbourRange.ALL) for other in others]
    for rows, new in read_lists(graph, base, columns.shape[0], searched, block, xp):
        for other in others:
            kept = is_edge(graph, other[rows], new, xp)
            rows, new = rows[kept], new[kept]
        fresh = ~_stands_in(columns, rows, new, xp)
        rows, new = rows[fresh], new[fresh]
        _count(counts, rows, xp)
        found.append(new)
    return counts, _joined(found, xp.uint32, xp)


def _united_neighbours(graph: GraphArrays, columns: Array, block: int, xp: Any) -> Array:
    """Neighbours of the vertices of each row, as keys ``row * number of vertices + neighbour``."""
    levels = columns.shape[0]
    owners = columns.T.ravel()
    row_keys = xp.arange(owners.size) // levels
    row_keys *= graph.num_vertices
    keys = xp.empty(int(xp.cumsum(degrees(graph, owners))[-1]), dtype=xp.int64)
    at = 0
    for lists, new in read_lists(graph, owners, levels, [], block, xp):
        here = keys[at : at + lists.size]
        here[:] = row_keys[lists]
        here += new
        at += lists.size
    return keys


def _stands_in(columns: Array, rows: Array, values: Array, xp: Any) -> Array:
    """Whether values stand in one of the columns of their rows: bool[len(values)]."""
    found = xp.zeros(values.size, dtype=bool)
    for column in columns:
        found |= column[rows] == values
    return found


def _count(counts: Array, rows: Array, xp: Any) -> None:
    """Add how often each row stands in `rows`, ascending, to its count."""
    if rows.size:
        first, last = int(rows[0]), int(rows[-1]) + 1
        counts[first:last] += xp.diff(xp.searchsorted(rows, xp.arange(first, last + 1)))


def _joined(found: list[Array], dtype: Any, xp: Any) -> Array:
    return xp.concatenate(found) if found else xp.empty(0, dtype=dtype)


def _distinct(keys: Array, columns: Array, bound: int, xp: Any) -> Children:
    """The distinct values of each row that stand in none of its columns.

    Parameters
    ----------
    keys : int64[candidates]
        row * bound + value; sorted in place.
    columns : array[levels, rows]
        What to leave out.
    bound
        Values lie below it.
    """
    keys.sort()
    keep = xp.ones(keys.size, dtype=bool)
    xp.not_equal(keys[1:], keys[:-1], out=keep[1:])
    base = xp.arange(columns.shape[1] + 1) * bound
    for column in columns:
        own = base[:-1] + column
        at = xp.minimum(xp.searchsorted(keys, own), keys.size - 1)
        keep[at[keys[at] == own]] = False
    kept = keys[keep]
    counts = xp.diff(xp.searchsorted(kept, base))
    kept %= bound
    return counts, kept
