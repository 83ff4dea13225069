"""Unguided extension by one vertex: every neighbour of an embedding (GAMMA, Definition 3.1).

This is the stage behind the library's call; a planned search uses :mod:`longwall.stages.extension.planned`, which
intersects instead of uniting. A table goes in, tables come out, cut so that their arrays and all temporaries fit a
number of bytes. What it reads of the adjacency is in :mod:`longwall.stages.extension.adjacency_lists`.
"""

from collections.abc import Callable, Generator, Iterator
from functools import partial, reduce
from typing import Any

import numpy as np

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import NeighbourRange, RowReads
from longwall.stages.extension.adjacency_lists import degrees, is_edge, read_lists
from longwall.stages.extension.candidates import Take, TooManyCandidates, at_once, most_candidates, rows_within
from longwall.storage.tables.embedding_table import EmbeddingTable

Array = Any  # a NumPy or a CuPy array

_IN_WORK_BYTES = 160  # of a candidate of the block in work: list, row, arc, both ends, the binary search's bounds
_LARGEST_BLOCK = 1 << 18  # candidates in work at once: more gains nothing
_DEVICE_BLOCKS = 16  # times as many on a device, where a block takes 60 launches whatever its length

Children = tuple[Array, Array]
"""Number of new values per row (int64), and the values, row by row."""


def all_vertices(graph: GraphArrays, xp: Any, memory: int) -> Generator[EmbeddingTable, None, None]:
    """A v-ET of one level in parts of at most `memory` bytes: every vertex."""
    step = max(memory // 4, 1)
    for first in range(0, graph.num_vertices, step):
        yield EmbeddingTable((xp.arange(first, min(first + step, graph.num_vertices), dtype=xp.uint32),), (), xp)


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
        rows = table.sliced(begin, min(begin + rows_within(memory, table), len(table)))
        columns = rows.columns()
        return rows, columns, xp.cumsum(candidates(columns))

    def part(rows: EmbeddingTable, columns: Array, ends: Array, first: int, less: int) -> tuple[EmbeddingTable, int]:
        before = int(ends[first - 1]) if first else 0
        # Where memory is short a row is tried with less than it may need, but it must fit what was promised.
        last = max(int(xp.searchsorted(ends, before + most_candidates(less), side="right")), first + 1)
        number = int(ends[last - 1]) - before
        if number > most_candidates(memory):
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
