"""The arcs to smaller neighbours alone: half of the adjacency, from which triangles and cliques are counted.

Ids are degree ranks, so hubs are the smallest neighbours of many vertices and have few smaller ones themselves: lists
that are read often are short, and lie together here. In the whole adjacency, lists of larger neighbours lie between.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.graph_arrays import NARROW_DEGREE, GraphArrays
from longwall.kernels.jit.compile import compiled
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_data import NewArray
from longwall.storage.pages.oriented_copy import OrientedCopy
from longwall.storage.system.concurrency import core_count, map_all

_VERTICES_AT_ONCE = 1 << 20
_LISTS_AT_ONCE = 1 << 16  # where each takes 60 bytes


def oriented_bytes(graph: Graph) -> int:
    """Return the bytes of `oriented_arrays`, and of what filling them takes."""
    return 4 * graph.num_edges + 16 * (graph.num_vertices + 1) + OrientedCopy.nbytes(graph.num_edges)


def oriented_arrays(graph: Graph, new_array: NewArray, least: int = 0) -> GraphArrays:
    """Make the arrays for the arcs to smaller neighbours, which an `OrientedCopy` fills.

    Ids are degree ranks, so vertices with fewer than `least` neighbours are the last ones. They are left out.

    Parameters
    ----------
    graph
        The data graph.
    new_array
        Makes the array for the arcs.
    least
        The least degree of a vertex that may count.

    Returns
    -------
    GraphArrays
        On the host, in `oriented_bytes` bytes: `indptr` int64[n + 1], `indices` uint32[m], which is empty; n and m are
        those of the graph if `least` is 0.
    """
    number = _end_of(graph.indptr, 0, graph.num_vertices, least)
    starts = np.zeros(number + 1, np.int64)
    parts = [*pairwise([*range(0, number, _VERTICES_AT_ONCE), number])]

    ends = np.zeros(len(parts) + 1, np.int64)
    narrow_from = np.zeros(len(parts) + 1, np.int64)  # of each part

    def measure(part: int) -> None:
        ends[part + 1] = _out_arcs(graph.indptr, graph.split, *parts[part])
        if graph.stats.max_degree >= NARROW_DEGREE:
            narrow_from[part] = _end_of(graph.indptr, *parts[part], NARROW_DEGREE)

    def add_up(part: int) -> None:
        _add_up(graph.indptr, graph.split, *parts[part], ends[part], starts)

    cores = core_count()
    with ThreadPoolExecutor(cores) as pool:
        map_all(pool, cores, measure, range(len(parts)))
        np.cumsum(ends, out=ends)
        map_all(pool, cores, add_up, range(len(parts)))
    longest = graph.stats.max_out_degree
    arcs = new_array(int(starts[-1]), np.dtype(np.uint32))
    return GraphArrays(
        starts,
        arcs,
        starts[1:],
        np.zeros(1, np.int32),
        longest,
        longest,
        oriented=True,
        narrow_from=int(narrow_from.max()),
    )


def oriented_arc(graph: Graph, starts: NDArray[np.int64], at: int) -> int:
    """Return how many of the first `at` arcs of a graph lead to smaller neighbours.

    Parameters
    ----------
    graph
        The data graph.
    starts : int64[n + 1]
        `indptr` of what `oriented_arrays` returns.
    at
        An arc, or their number.
    """
    vertex = int(np.searchsorted(graph.indptr, at, side="right")) - 1
    if vertex >= starts.size - 1:
        return int(starts[-1])
    return min(int(starts[vertex]) + at - int(graph.indptr[vertex]), int(starts[vertex + 1]))


def bytes_per_page(graph: Graph, starts: NDArray[np.int64], page_arcs: int) -> NDArray[np.uint64]:
    """Return the bytes that a count reads of every page of the arcs, if it reads each list once for all its arcs.

    A list is read for its own vertex, and for every larger neighbour of it.

    Parameters
    ----------
    graph, starts
        See `oriented_arc`.
    page_arcs
        Arcs of a page.

    Returns
    -------
    uint64[number of pages]
    """
    number, vertices = -(-int(starts[-1]) // page_arcs), starts.size - 1
    arcs, steps = np.zeros(number), np.zeros(number + 1)
    cuts = [*range(0, vertices, _LISTS_AT_ONCE), vertices]
    for first, last in pairwise(cuts):
        begin, end = starts[first:last], starts[first + 1 : last + 1]
        times = graph.indptr[first + 1 : last + 1] - graph.split[first:last] + 1
        there = end > begin
        begin, end, times = begin[there], end[there], times[there]
        page, final = begin // page_arcs, (end - 1) // page_arcs
        within = page == final
        _add_at(arcs, page[within], (times * (end - begin))[within])
        begin, end, times, page, final = (array[~within] for array in (begin, end, times, page, final))
        _add_at(arcs, page, times * ((page + 1) * page_arcs - begin))
        _add_at(arcs, final, times * (end - final * page_arcs))
        for at, sign in ((page + 1, 1.0), (final, -1.0)):  # all of the pages between, as differences
            _add_at(steps, at, sign * times * page_arcs)
    arcs += np.cumsum(steps)[:-1]
    return (4 * arcs).astype(np.uint64)


def _add_at(sums: NDArray[np.float64], at: NDArray[np.int64], values: NDArray[Any]) -> None:
    """Add values at ascending places, which may repeat."""
    if at.size:
        found = np.bincount(at - at[0], values)
        sums[at[0] : at[0] + found.size] += found


def target_blocks(starts: NDArray[np.int64], arcs: int) -> list[tuple[int, int]]:
    """Cut the vertices into ranges, each with the lists of a given number of arcs at most, or one vertex.

    Parameters
    ----------
    starts
        See `oriented_arc`.
    arcs
        The most arcs, at least 1.

    Returns
    -------
    list of (int, int)
        The first vertex of each range, and one past its last; vertices without arcs are in some.
    """
    cuts, number = [0], starts.size - 1
    while cuts[-1] < number:
        end = int(np.searchsorted(starts, starts[cuts[-1]] + arcs, side="right")) - 1
        cuts.append(min(max(end, cuts[-1] + 1), number))
    return list(pairwise(cuts))


@compiled("i8[::1], i8[::1], i8, i8")
def _out_arcs(indptr: Any, split: Any, first: int, last: int) -> int:
    """Add up the smaller neighbours of the vertices first to last - 1."""
    total = 0
    for v in range(first, last):
        total += split[v] - indptr[v]
    return total


@compiled("i8[::1], i8, i8, i8")
def _end_of(indptr: Any, first: int, last: int, degree: int) -> int:
    """Return the vertex after the last one with at least `degree` neighbours among first to last - 1; 0: none has."""
    for v in range(last, first, -1):
        if indptr[v] - indptr[v - 1] >= degree:
            return v
    return 0


@compiled("i8[::1], i8[::1], i8, i8, i8, i8[::1]")
def _add_up(indptr: Any, split: Any, first: int, last: int, before: int, starts: Any) -> None:
    """Write where the smaller neighbours of each of these vertices end, if `before` is the number of those before."""
    for v in range(first, last):
        before += split[v] - indptr[v]
        starts[v + 1] = before
