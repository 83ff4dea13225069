"""Unguided extension: every way to grow an embedding by one vertex or one edge (GAMMA, Definition 3.1).

These are the stages behind the library calls; a planned search uses :mod:`longwall.stages.extension`, which
intersects instead of uniting. They hold the whole result in memory.
"""

from typing import Any

from longwall.kernels.engine import GraphArrays
from longwall.storage.table import EmbeddingTable

Array = Any  # a NumPy or a CuPy array


def all_vertices(graph: GraphArrays, xp: Any) -> EmbeddingTable:
    """A v-ET of one level: every vertex."""
    return EmbeddingTable((xp.arange(graph.num_vertices, dtype=xp.uint32),), (), xp)


def all_edges(graph: GraphArrays, xp: Any) -> EmbeddingTable:
    """An e-ET of one level: every edge, as the slot that leads to its smaller vertex."""
    lengths = graph.split - graph.indptr[:-1]
    return EmbeddingTable((_concatenated_ranges(graph.indptr[:-1], lengths, xp),), (), xp)


def extend_by_vertex(table: EmbeddingTable, graph: GraphArrays, levels: list[int] | None) -> EmbeddingTable:
    """Add a level with the common or the united neighbours of matched vertices.

    Parameters
    ----------
    table
        A v-ET.
    graph
        The data graph, in arrays of the table's module.
    levels
        The new vertex must be adjacent to the vertices of all these levels; None: to any matched vertex.

    Returns
    -------
    EmbeddingTable
        Each row once per new vertex; matched vertices are not matched again.
    """
    xp = table.xp
    columns = table.columns()
    if levels is None:
        rows, new = _united(graph, columns, xp)
    else:
        rows, new = _neighbours(graph, columns[levels[0]], xp)
        for level in levels[1:]:
            kept = is_edge(graph, columns[level][rows], new, xp)
            rows, new = rows[kept], new[kept]
    fresh = xp.ones(new.size, dtype=bool)
    for column in columns:
        fresh &= column[rows] != new
    rows, new = rows[fresh], new[fresh]
    return table.extended(xp.bincount(rows, minlength=len(table)), new)


def extend_by_edge(table: EmbeddingTable, graph: GraphArrays) -> EmbeddingTable:
    """Add a level with the edges that touch an embedding and are not part of it.

    Parameters
    ----------
    table
        An e-ET: edges as the slots that lead to their smaller vertex.
    graph
        The data graph, in arrays of the table's module.

    Returns
    -------
    EmbeddingTable
        Each row once per new edge.
    """
    xp = table.xp
    columns = table.columns()
    ends = xp.concatenate([xp.stack(edge_ends(graph, column, xp)) for column in columns])
    every_row, every_slot = [], []
    for end in ends:
        counts = graph.indptr[end.astype(xp.int64) + 1] - graph.indptr[end]
        rows = xp.searchsorted(xp.cumsum(counts), xp.arange(int(counts.sum())), side="right")
        slots = _concatenated_ranges(graph.indptr[end], counts, xp)
        every_row.append(rows)
        every_slot.append(_smaller_slot(graph, end[rows], slots, xp))
    rows, slots = _distinct(xp.concatenate(every_row), xp.concatenate(every_slot), graph.num_slots, xp)
    fresh = xp.ones(slots.size, dtype=bool)
    for column in columns:
        fresh &= column[rows] != slots
    rows, slots = rows[fresh], slots[fresh]
    return table.extended(xp.bincount(rows, minlength=len(table)), slots)


def edge_ends(graph: GraphArrays, slots: Array, xp: Any) -> tuple[Array, Array]:
    """The owner and the neighbour of adjacency slots, uint32 each."""
    owners = xp.searchsorted(graph.indptr, slots, side="right") - 1
    return owners.astype(xp.uint32), graph.indices[slots]


def is_edge(graph: GraphArrays, first: Array, second: Array, xp: Any) -> Array:
    """Whether pairs of vertices are adjacent: one binary search per pair, all in step."""
    position = _slot_position(graph, first, second, xp)
    inside = position < graph.indptr[first.astype(xp.int64) + 1]
    return inside & (graph.indices[xp.minimum(position, graph.num_slots - 1)] == second)


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


def _smaller_slot(graph: GraphArrays, owners: Array, slots: Array, xp: Any) -> Array:
    """The slot of the same edge that leads to its smaller vertex."""
    others = graph.indices[slots]
    return xp.where(others < owners, slots, _slot_position(graph, others, owners, xp))


def _concatenated_ranges(starts: Array, lengths: Array, xp: Any) -> Array:
    """starts[0], starts[0] + 1, ... (lengths[0] numbers), then starts[1], ...; int64."""
    ends = xp.cumsum(lengths)
    total = int(ends[-1]) if lengths.size else 0
    positions = xp.arange(total)
    owner = xp.searchsorted(ends, positions, side="right")
    return positions - (ends - lengths)[owner] + starts[owner]


def _neighbours(graph: GraphArrays, vertices: Array, xp: Any) -> tuple[Array, Array]:
    """All neighbours of one vertex per row: (row, neighbour)."""
    counts = graph.indptr[vertices.astype(xp.int64) + 1] - graph.indptr[vertices]
    slots = _concatenated_ranges(graph.indptr[vertices], counts, xp)
    rows = xp.searchsorted(xp.cumsum(counts), xp.arange(slots.size), side="right")
    return rows, graph.indices[slots]


def _united(graph: GraphArrays, columns: Array, xp: Any) -> tuple[Array, Array]:
    parts = [_neighbours(graph, column, xp) for column in columns]
    rows = xp.concatenate([rows for rows, _ in parts])
    new = xp.concatenate([new for _, new in parts])
    rows, new = _distinct(rows, new.astype(xp.int64), graph.num_vertices, xp)
    return rows, new.astype(xp.uint32)


def _distinct(rows: Array, values: Array, bound: int, xp: Any) -> tuple[Array, Array]:
    """Distinct pairs (row, value), sorted; values lie below `bound`."""
    keys = xp.unique(rows.astype(xp.int64) * bound + values)
    return keys // bound, keys % bound
