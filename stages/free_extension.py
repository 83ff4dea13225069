"""Unguided extension: every way to grow an embedding by one vertex or one edge (GAMMA, Definition 3.1).

These are the stages behind the library calls; a planned search uses :mod:`longwall.stages.extension`, which
intersects instead of uniting. A table goes in, tables come out, cut so that their arrays and all temporaries fit a
number of bytes: how many candidates a row has is known from the degrees before it is extended.
"""

import operator
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial, reduce
from typing import Any

from longwall.kernels.engine import GraphArrays
from longwall.storage.tables.table import EmbeddingTable

Array = Any  # a NumPy or a CuPy array

_CANDIDATE_BYTES = 24  # a sorted key, its mark, the key or value that is kept
_IN_WORK_BYTES = 160  # of a candidate of the block in work: row, slot, the binary search's bounds
_ROW_BYTES, _ROW_COLUMN_BYTES = 128, 40  # of a row to extend, and for each of its columns
_LARGEST_BLOCK = 1 << 16  # candidates in work at once: more leave the cache

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


def memory_for(candidates: int) -> int:
    """Bytes of memory with which a row of so many candidates can be extended."""
    return 2 * _CANDIDATE_BYTES * candidates


def all_vertices(graph: GraphArrays, xp: Any, memory: int) -> Generator[EmbeddingTable, None, None]:
    """A v-ET of one level in parts of at most `memory` bytes: every vertex."""
    step = max(memory // 4, 1)
    for first in range(0, graph.num_vertices, step):
        yield EmbeddingTable((xp.arange(first, min(first + step, graph.num_vertices), dtype=xp.uint32),), (), xp)


def all_edges(graph: GraphArrays, xp: Any, memory: int) -> Generator[EmbeddingTable, None, None]:
    """An e-ET of one level in parts of at most `memory` bytes: every edge, as the slot to its smaller vertex."""
    step = max(memory // 48, 1)
    for first in range(0, graph.num_slots, step):
        last = min(first + step, graph.num_slots)
        slots = xp.arange(first, last)
        owners = xp.searchsorted(graph.indptr, slots, side="right") - 1
        yield EmbeddingTable((slots[graph.indices[first:last] < owners],), (), xp)


def extend_by_vertex(
    table: EmbeddingTable, graph: GraphArrays, levels: list[int] | None, memory: int
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
    block = _block(memory)
    if levels is None and table.num_levels == 1:
        levels = [0]

    def common(columns: Array) -> Children:
        # Ids are degree ranks: the largest id has the fewest neighbours.
        ordered = xp.sort(columns[levels], axis=0)
        return _common_neighbours(graph, ordered[-1], ordered[:-1], columns, block, xp)

    def united(columns: Array) -> Children:
        keys = xp.empty(_total(_all_degrees(graph, columns), xp), dtype=xp.int64)
        at = 0
        for column in columns:
            for rows, slots in _candidates(graph, column, block, xp):
                rows *= graph.num_vertices
                rows += graph.indices[slots]
                keys[at : at + rows.size] = rows
                at += rows.size
        counts, values = _distinct(keys, columns, graph.num_vertices, xp)
        return counts, values.astype(xp.uint32)

    if levels is None:
        yield from _in_parts(table, lambda columns: _all_degrees(graph, columns), united, memory)
    else:
        fewest = partial(reduce, xp.maximum)
        yield from _in_parts(table, lambda columns: _degrees(graph, fewest(columns[levels])), common, memory)


def extend_by_edge(table: EmbeddingTable, graph: GraphArrays, memory: int) -> Iterator[EmbeddingTable]:
    """Add a level with the edges that touch an embedding and are not part of it.

    Parameters
    ----------
    table
        An e-ET: edges as the slots that lead to their smaller vertex.
    graph
        The data graph, in arrays of the table's module.
    memory
        Bytes that each part of the result and all temporaries may take.

    Yields
    ------
    EmbeddingTable
        The extended rows in order: each row once per new edge.

    Raises
    ------
    TooManyCandidates
        If a single row has more candidates than fit.
    """
    xp = table.xp
    block = _block(memory)

    def all_ends(columns: Array) -> list[Array]:
        return [end for column in columns for end in edge_ends(graph, column, xp)]

    def touching(columns: Array) -> Children:
        ends = all_ends(columns)
        keys = xp.empty(_total(_all_degrees(graph, ends), xp), dtype=xp.int64)
        at = 0
        for end in ends:
            for rows, slots in _candidates(graph, end, block, xp):
                _make_smaller(graph, end[rows], slots, xp)
                rows *= graph.num_slots
                rows += slots
                keys[at : at + rows.size] = rows
                at += rows.size
        return _distinct(keys, columns, graph.num_slots, xp)

    yield from _in_parts(table, lambda columns: _all_degrees(graph, all_ends(columns)), touching, memory)


def edge_ends(graph: GraphArrays, slots: Array, xp: Any) -> tuple[Array, Array]:
    """The owner and the neighbour of adjacency slots, uint32 each."""
    owners = xp.searchsorted(graph.indptr, slots, side="right") - 1
    return owners.astype(xp.uint32), graph.indices[slots]


def is_edge(graph: GraphArrays, first: Array, second: Array, xp: Any) -> Array:
    """Whether pairs of vertices are adjacent: one binary search per pair, all in step."""
    position = _slot_position(graph, first, second, xp)
    inside = position < graph.indptr[first.astype(xp.int64) + 1]
    return inside & (graph.indices[xp.minimum(position, graph.num_slots - 1)] == second)


def _in_parts(
    table: EmbeddingTable,
    candidates: Callable[[Array], Array],
    children: Callable[[Array], Children],
    memory: int,
) -> Iterator[EmbeddingTable]:
    """Extend as many rows at once as fit.

    Parameters
    ----------
    table
        Rows to extend.
    candidates
        Gives the number of candidates of each row, from the flat columns.
    children
        Gives the new values of rows, from their flat columns.
    memory
        Bytes: a quarter for the rows, a quarter for the block in work, half for the candidates.
    """
    xp = table.xp
    rows_at_once = max(memory // 4 // (_ROW_BYTES + _ROW_COLUMN_BYTES * table.num_levels), 1)
    limit = memory // 2 // _CANDIDATE_BYTES
    for begin in range(0, len(table), rows_at_once):
        rows = table.sliced(begin, min(begin + rows_at_once, len(table)))
        columns = rows.columns()
        ends = xp.cumsum(candidates(columns))
        first = before = 0
        while first < len(rows):
            last = int(xp.searchsorted(ends, before + limit, side="right"))
            if last == first:
                raise TooManyCandidates(int(ends[first]) - before)
            yield rows.sliced(first, last).extended(*children(columns[:, first:last]))
            first, before = last, int(ends[last - 1])


def _block(memory: int) -> int:
    return min(max(memory // 4 // _IN_WORK_BYTES, 1), _LARGEST_BLOCK)


def _degrees(graph: GraphArrays, vertices: Array) -> Array:
    return graph.indptr[vertices.astype("int64") + 1] - graph.indptr[vertices]


def _all_degrees(graph: GraphArrays, columns: Iterable[Array]) -> Array:
    """The sum of the degrees of the vertices of each row."""
    return reduce(operator.add, (_degrees(graph, column) for column in columns))


def _total(numbers: Array, xp: Any) -> int:
    return int(xp.cumsum(numbers)[-1])


def _candidates(graph: GraphArrays, vertices: Array, block: int, xp: Any) -> Iterator[tuple[Array, Array]]:
    """All slots of one vertex per row as (rows, slots), int64 each, `block` at a time."""
    ends = xp.cumsum(_degrees(graph, vertices))
    shift = graph.indptr[vertices.astype(xp.int64) + 1] - ends
    total = int(ends[-1]) if ends.size else 0
    for begin in range(0, total, block):
        end = min(begin + block, total)
        first, last = (int(i) for i in xp.searchsorted(ends, xp.asarray([begin, end - 1]), side="right"))
        # No vertex is isolated, so each end but the last begins one more row.
        rows = xp.zeros(end - begin, dtype=xp.int64)
        rows[ends[first:last] - begin] = 1
        xp.cumsum(rows, out=rows)
        rows += first
        slots = xp.arange(begin, end)
        slots += shift[rows]
        yield rows, slots


def _common_neighbours(graph: GraphArrays, base: Array, others: Array, columns: Array, block: int, xp: Any) -> Children:
    """Neighbours of `base` that are adjacent to all `others` and stand in no column; one vertex per row each."""
    counts = xp.zeros(base.size, dtype=xp.int64)
    found = []
    for rows, slots in _candidates(graph, base, block, xp):
        new = graph.indices[slots]
        for other in others:
            kept = is_edge(graph, other[rows], new, xp)
            rows, new = rows[kept], new[kept]
        fresh = xp.ones(new.size, dtype=bool)
        for column in columns:
            fresh &= column[rows] != new
        rows, new = rows[fresh], new[fresh]
        if new.size:
            first, last = int(rows[0]), int(rows[-1]) + 1
            counts[first:last] += xp.diff(xp.searchsorted(rows, xp.arange(first, last + 1)))
            found.append(new)
    return counts, xp.concatenate(found) if found else xp.empty(0, dtype=xp.uint32)


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


def _slot_position(graph: GraphArrays, first: Array, second: Array, xp: Any) -> Array:
    """Position, in the row of `first`, of the first neighbour that is not smaller than `second`."""
    low = graph.indptr[first]
    high = graph.indptr[first.astype(xp.int64) + 1]
    for _ in range(graph.max_degree.bit_length() + 1):
        middle = (low + high) >> 1
        smaller = (low < high) & (graph.indices[xp.minimum(middle, graph.num_slots - 1)] < second)
        high = xp.where(smaller, high, xp.minimum(middle, high))
        low = xp.where(smaller, middle + 1, low)
    return low


def _make_smaller(graph: GraphArrays, owners: Array, slots: Array, xp: Any) -> None:
    """Change slots to those of the same edges that lead to their smaller vertices."""
    others = graph.indices[slots]
    turned = xp.flatnonzero(others > owners)
    slots[turned] = _slot_position(graph, others[turned], owners[turned], xp)
