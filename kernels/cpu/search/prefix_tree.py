"""Operations on prefix trees in columns, over NumPy arrays.

A tree is two tuples of arrays: the values of the nodes of each level, and, for each level but the last, the offsets
of their children in the next one; see :class:`longwall.storage.tables.embedding_table.EmbeddingTable`. Every node has
a row.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.search_program import Level
from longwall.kernels.jit.compile import compiled

Array = NDArray[Any]
Tree = tuple[tuple[Any, ...], tuple[Any, ...]]


def edges(graph: GraphArrays, levels: tuple[Level, Level], first: int, last: int) -> Tree:
    """Make the tree of the edges that arcs `first` to `last` - 1 are, where both ends may be at their levels.

    One call without the GIL: beside a device, whose host code waits for the GIL, threads make many small tables.
    """
    vertex = int(np.searchsorted(graph.indptr, first, side="right")) - 1
    beyond = max(int(np.searchsorted(graph.indptr, last, side="left")), vertex)
    owners, ends = np.empty(beyond - vertex, np.uint32), np.zeros(beyond - vertex + 1, np.int64)
    targets = np.empty(last - first, graph.indices.dtype)
    wanted = [(level.degree, level.label) for level in levels]
    order = bool(levels[1].below), bool(levels[1].above)
    arrays = graph.indptr, graph.indices, graph.labels
    kept = _keep_edges(*arrays, first, last, vertex, beyond, *wanted[0], *wanted[1], *order, owners, ends, targets)
    found = targets[: ends[kept]]
    return (owners[:kept], found if 2 * found.size >= targets.size else found.copy()), (ends[: kept + 1],)


@compiled("i8[::1], u4[::1], i4[::1], i8, i8, i8, i8, i8, i8, i8, i8, b1, b1, u4[::1], i8[::1], u4[::1]")
def _keep_edges(
    indptr,
    indices,
    labels,
    first,
    last,
    vertex,
    beyond,
    degree,
    label,
    degree_below,
    label_below,
    smaller,
    larger,
    owners,
    ends,
    targets,
):
    kept = 0
    rows = 0
    for v in range(vertex, beyond):
        if indptr[v + 1] - indptr[v] < degree or (label >= 0 and labels[v] != label):
            continue
        for arc in range(max(indptr[v], first), min(indptr[v + 1], last)):
            x = indices[arc]
            if (smaller and x >= v) or (larger and x <= v):
                continue
            if label_below >= 0 and labels[x] != label_below:
                continue
            if degree_below > 1 and indptr[x + 1] - indptr[x] < degree_below:
                continue
            targets[rows] = x
            rows += 1
        if rows > ends[kept]:
            owners[kept] = v
            kept += 1
            ends[kept] = rows
    return kept


def columns(values: Sequence[Array], offsets: Sequence[Array]) -> Array:
    """Flatten all levels.

    Returns
    -------
    array[levels, rows]
        Of the last level's dtype. Takes 16 bytes per row beside the result.
    """
    last = values[-1]
    flat = np.empty((len(values), last.size), last.dtype)
    flat[-1] = last
    for level in range(len(offsets)):
        flat[level] = column(values, offsets, level, last.size)
    return flat


def column(values: Sequence[Array], offsets: Sequence[Array], level: int, rows: int) -> Array:  # noqa: ARG001 - the device needs it
    """Flatten a level above the last one: array[rows]. Takes 12 bytes per node of the level beside the result."""
    bounds = offsets[level]
    for below in offsets[level + 1 :]:
        bounds = below[bounds]
    counts = np.diff(bounds)
    del bounds  # its memory is for the result
    return np.repeat(values[level], counts)


def looked_up(ids: Array, vertices: Array) -> Array:
    """Return the ids of vertices (uint32[n]): int64[n] or uint64[n]."""
    found = np.empty(vertices.size, ids.dtype)
    _look_up(ids, vertices, found)
    return found


@compiled("const(i8[::1]), u4[::1], i8[::1]", "const(u8[::1]), u4[::1], u8[::1]")
def _look_up(ids, vertices, found):
    for i in range(vertices.size):
        found[i] = ids[vertices[i]]


def filtered(values: Sequence[Array], offsets: Sequence[Array], mask: Array) -> Tree | None:
    """Keep the rows where the mask (bool[rows]) holds, and their ancestors; None if these are all.

    Compaction marks, takes prefix sums and gathers, level by level (GAMMA section V-A).
    """
    if np.count_nonzero(mask) == mask.size:
        return None
    kept = [values[-1][mask]]
    links: list[Array] = []
    before = _prefix_sums(mask)
    for level in range(len(offsets) - 1, -1, -1):
        bounds = before[offsets[level]]
        mask = np.diff(bounds) > 0
        links.insert(0, np.concatenate([np.zeros(1, dtype=np.int64), bounds[1:][mask]]))
        kept.insert(0, values[level][mask])
        before = _prefix_sums(mask) if level else before
    return tuple(kept), tuple(links)


def extended(values: Sequence[Array], offsets: Sequence[Array], counts: Array) -> Tree:
    """Make room for a new level: drop rows without children, and return the offsets of the new one.

    Parameters
    ----------
    values, offsets
        The tree.
    counts : int64[rows]
        Number of children of each row; none where it is not positive.

    Returns
    -------
    values
        As many levels as before.
    offsets
        As many; those of the last level are the new ones.
    """
    kept = counts > 0
    base = filtered(values, offsets, kept)
    if base is not None:
        (values, offsets), counts = base, counts[kept]
    ends = np.zeros(counts.size + 1, dtype=np.int64)
    np.cumsum(counts, out=ends[1:])
    return tuple(values), (*offsets, ends)


def sliced(values: Sequence[Array], offsets: Sequence[Array], begin: int, end: int) -> Tree:
    """Cut rows begin to end - 1 out; the values are views. Levels that were not read (None) stay None."""
    parts: list[Array | None] = [_part(values[-1], begin, end)]
    cut: list[Array | None] = []
    for level in range(len(offsets) - 1, -1, -1):
        whole = offsets[level]
        if whole is None:  # neither this level nor one above it was read
            parts.insert(0, None)
            cut.insert(0, None)
            continue
        first = int(np.searchsorted(whole, begin, side="right")) - 1
        last = int(np.searchsorted(whole, end, side="left")) if end > begin else first
        cut.insert(0, np.clip(whole[first : last + 1], begin, end) - begin)
        begin, end = first, last
        parts.insert(0, _part(values[level], begin, end))
    return tuple(parts), tuple(cut)


def _part(values: Array | None, begin: int, end: int) -> Array | None:
    return None if values is None else values[begin:end]


def _prefix_sums(mask: Array) -> NDArray[np.int64]:
    """How many entries of the mask hold before each position, and in all: int64[len(mask) + 1]."""
    sums = np.zeros(mask.size + 1, dtype=np.int64)
    np.cumsum(mask, out=sums[1:])
    return sums
