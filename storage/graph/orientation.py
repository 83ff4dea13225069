"""The arcs to smaller neighbours alone: half of the adjacency, from which triangles and cliques are counted.

Ids are degree ranks, so hubs are the smallest neighbours of many vertices and have few smaller ones themselves: lists
that are read often are short, and lie together here. In the whole adjacency, lists of larger neighbours lie between.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.storage.concurrency import core_count, map_ordered
from longwall.storage.graph.graph import Graph, NewArray
from longwall.storage.lazy_kernel import lazy_kernel

_ARCS_AT_ONCE = 1 << 20


def oriented_bytes(graph: Graph) -> int:
    """Return the bytes of the arrays of `orient`, with what it needs for a moment."""
    return 4 * graph.num_edges + 16 * (graph.num_vertices + 1)


def orient(graph: Graph, new_array: NewArray) -> GraphArrays:
    """Copy the arcs to smaller neighbours, on all cores.

    Parameters
    ----------
    graph
        The data graph.
    new_array
        Makes the array for the arcs.

    Returns
    -------
    GraphArrays
        On the host, in `oriented_bytes` bytes: `indptr` int64[n + 1], `indices` uint32[m], rows ascending.
    """
    starts = np.zeros(graph.num_vertices + 1, np.int64)
    np.subtract(graph.split, graph.indptr[:-1], out=starts[1:])
    np.cumsum(starts[1:], out=starts[1:])
    arcs = new_array(graph.num_edges, np.dtype(np.uint32))
    cuts = np.searchsorted(starts, range(0, graph.num_edges, _ARCS_AT_ONCE), side="left")
    bounds = np.unique([0, *cuts, graph.num_vertices]).tolist()

    def copy(rows: tuple[int, int]) -> None:
        _copy_rows(graph.indptr, graph.indices, starts, *rows, arcs)

    for _ in map_ordered(copy, pairwise(bounds), min(core_count(), len(bounds))):
        pass
    longest = graph.stats.max_out_degree
    return GraphArrays(starts, arcs, starts[1:], np.zeros(1, np.int32), longest, longest, oriented=True)


def oriented_arc(graph: Graph, starts: NDArray[np.int64], at: int) -> int:
    """Return how many of the first `at` arcs of a graph lead to smaller neighbours.

    Parameters
    ----------
    graph
        The data graph.
    starts : int64[n + 1]
        `indptr` of what `orient` returns.
    at
        An arc, or their number.
    """
    if at >= len(graph.indices):
        return graph.num_edges
    vertex = int(np.searchsorted(graph.indptr, at, side="right")) - 1
    return min(int(starts[vertex]) + at - int(graph.indptr[vertex]), int(starts[vertex + 1]))


@lazy_kernel
def _copy_rows(indptr: Any, indices: Any, starts: Any, first: int, last: int, out: Any) -> None:
    """Copy the beginnings of the rows first to last - 1, each as long as `starts` says."""
    for v in range(first, last):
        begin, shift = starts[v], indptr[v] - starts[v]
        for i in range(begin, starts[v + 1]):
            out[i] = indices[i + shift]
