"""Build a `Graph` from edges in memory: clean, compact the ids, rank by degree, lay out as CSR."""

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError
from longwall.storage.graph import Graph, assemble
from longwall.storage.vertex_labels import LabelList, match_labels

_MAX_VERTICES = 2**32 - 1
_LOW = np.uint64(0xFFFF_FFFF)
_SHIFT = np.uint64(32)

Ids = npt.NDArray[np.int64] | npt.NDArray[np.uint64]


def build_graph(
    src: Ids,
    dst: Ids,
    *,
    edge_labels: npt.NDArray[np.int32] | None = None,
    vertex_labels: LabelList | tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None = None,
    source: str = "the graph",
    id_range: tuple[int, int] | None = None,
) -> Graph:
    """Build a graph; loops, repeated edges, directions and isolated vertices are dropped.

    Parameters
    ----------
    src, dst : integer[e]
        Ends of the edges, any ids in [0, 2^63).
    edge_labels : int32[e], optional
        A label per edge; an edge given twice needs the same label twice.
    vertex_labels : LabelList or (int64[k], int64[k]), optional
        Vertices (in the ids of `src` and `dst`) and their labels.
    source
        What the edges were read from, for messages.
    id_range
        Smallest and largest id that labels may name, where the input declares it; the edges' own otherwise.

    Raises
    ------
    InputError
        No edge is left, 2^32 or more vertices, or labels that do not fit the graph.
    """
    if len(src) == 0:
        raise InputError(f"{source}: there are no edges; give a graph with at least one edge")
    left, right = src.astype(np.int64, copy=False), dst.astype(np.int64, copy=False)
    known = int(min(left.min(), right.min())), int(max(left.max(), right.max()))
    if known[0] < 0:
        raise InputError(f"{source}: vertex ids must lie in [0, 2^63)")
    proper = left != right
    if not proper.all():
        left, right = left[proper], right[proper]
        edge_labels = edge_labels[proper] if edge_labels is not None else None
        if len(left) == 0:
            raise InputError(f"{source}: every edge is a loop; give at least one edge between two vertices")
    ids, left, right = _compact(left, right, known)
    if len(ids) > _MAX_VERTICES:
        raise InputError(f"{source}: {len(ids)} vertices, Longwall holds at most {_MAX_VERTICES}; split the graph")
    keys = _edge_keys(left, right)
    if edge_labels is None:
        keys.sort()
        keys = keys[_firsts(keys)]
    else:
        keys, edge_labels = _unique_labelled(keys, edge_labels, ids, source)

    n = len(ids)
    degrees = np.bincount((keys & _LOW).astype(np.int64), minlength=n)
    degrees += np.bincount((keys >> _SHIFT).astype(np.int64), minlength=n)
    order = np.argsort(-degrees, kind="stable")
    rank = np.empty(n, np.uint64)
    rank[order] = np.arange(n, dtype=np.uint64)
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(degrees[order], out=indptr[1:])

    small, large = _sorted_pair(rank[(keys & _LOW).astype(np.int64)], rank[(keys >> _SHIFT).astype(np.int64)])
    split = indptr[:-1] + np.bincount(large.astype(np.int64), minlength=n)
    both = np.concatenate(((small << _SHIFT) | large, (large << _SHIFT) | small))
    if edge_labels is None:
        both.sort()
    else:
        position = np.argsort(both, kind="stable")
        both, edge_labels = both[position], np.concatenate((edge_labels, edge_labels))[position]
    labels = None
    if vertex_labels is not None:
        if not isinstance(vertex_labels, LabelList):
            vertex_labels = LabelList(*vertex_labels)
        labels = match_labels(vertex_labels, ids, id_range or known)[order]
    return assemble(indptr, (both & _LOW).astype(np.uint32), split, ids[order], labels, edge_labels)


def _compact(
    src: npt.NDArray[np.int64], dst: npt.NDArray[np.int64], known: tuple[int, int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the distinct ids, ascending, and both ends as positions in them."""
    low, high = known
    if high - low < 8 * len(src) + 1024:
        # A table over the range of ids costs less than sorting all ends.
        position = np.zeros(high - low + 1, np.int64)
        position[src - low] = 1
        position[dst - low] = 1
        ids = np.flatnonzero(position)
        position[ids] = np.arange(len(ids))
        return ids + low, position[src - low], position[dst - low]
    ids = np.unique(np.concatenate((src, dst)))
    return ids, np.searchsorted(ids, src), np.searchsorted(ids, dst)


def _sorted_pair(
    a: npt.NDArray[np.uint64], b: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    return np.minimum(a, b), np.maximum(a, b)


def _edge_keys(left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Pack each undirected edge in one word, the smaller end high."""
    keys = np.minimum(left, right).astype(np.uint64)
    keys <<= _SHIFT
    keys |= np.maximum(left, right).astype(np.uint64)
    return keys


def _firsts(ordered: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def _unique_labelled(
    keys: npt.NDArray[np.uint64],
    edge_labels: npt.NDArray[np.int32],
    ids: npt.NDArray[np.int64],
    source: str,
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
    order = np.argsort(keys, kind="stable")
    keys, edge_labels = keys[order], edge_labels[order]
    first = _firsts(keys)
    clash = np.flatnonzero(~first[1:] & (edge_labels[1:] != edge_labels[:-1]))
    if clash.size:
        at = int(clash[0])
        u, v = ids[int(keys[at] >> _SHIFT)], ids[int(keys[at] & _LOW)]
        raise InputError(
            f"{source}: edge {u}-{v} is given twice with different labels ({edge_labels[at]} and "
            f"{edge_labels[at + 1]}); keep one of them"
        )
    return keys[first], edge_labels[first]
