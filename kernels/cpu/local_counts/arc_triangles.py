"""The common neighbours of the ends of every arc, counted."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.device import CpuDevice
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.jit.bisect import first_at_least
from longwall.kernels.jit.compile import compiled

_RANGES = 32  # of a thread's vertices
SKEW = 32  # a list that is this many times as long as the other one is searched, not read


def _ranges(device: CpuDevice, graph: GraphArrays) -> Iterator[tuple[int, int]]:
    """Cut the vertices into ranges of about as many arcs."""
    pieces = max(min(device.workers * _RANGES, graph.num_arcs >> 10), 1)
    if pieces == 1:
        return iter([(0, graph.num_vertices)])
    shares = np.linspace(0, graph.num_arcs, pieces + 1)[1:-1]
    cuts = np.unique([0, *np.searchsorted(graph.indptr, shares), graph.num_vertices])
    return pairwise(cuts.tolist())


def in_parallel(device: CpuDevice, graph: GraphArrays, start: Callable[[], Callable[[int, int], Any]]) -> None:
    """Give ranges of vertices to threads, each of which calls `start` for what does a range.

    One range has a few thousand arcs at most: the caller's thread does it, before an interrupt would be missed.
    """
    ranges = list(_ranges(device, graph))
    workers = min(device.workers, len(ranges))

    def work() -> None:
        run = start()
        while ranges:
            try:
                first, last = ranges.pop()
            except IndexError:
                return
            run(first, last)

    if workers <= 1:
        work()
        return
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(work) for _ in range(workers)]:
            done.result()


def arc_triangles(device: CpuDevice, graph: GraphArrays) -> NDArray[np.uint32]:
    """Count the triangles of every arc."""
    triangles = np.zeros(graph.num_arcs, np.uint32)
    g = graph.rows

    def start() -> Callable[[int, int], Any]:
        marks = np.zeros(graph.num_vertices, np.uint8)
        return lambda first, last: count_arc_triangles(*g, first, last, marks, device.stop_flag, triangles)

    in_parallel(device, graph, start)
    return triangles


def most_triangles(device: CpuDevice, graph: GraphArrays, triangles: NDArray[np.uint32]) -> int:  # noqa: ARG001
    """Return the largest sum, over the arcs of one vertex, of their triangles."""
    return int(largest_row(graph.indptr, triangles))


@compiled("i8[::1], u4[::1], i8[::1], i8, i8, u1[::1], u1[::1], u4[::1]")
def count_arc_triangles(indptr, indices, split, first, last, marks, stop_flag, triangles):
    """Count the triangles of every arc; those of an edge are the neighbours of its smaller end among the larger one's.

    Parameters
    ----------
    indptr, indices, split
        The graph; `indices[split[v]:indptr[v + 1]]` are the neighbours of v with a larger id. They have no larger
        degree, unless the graph is laid out by label.
    first, last
        Range of vertices: the smaller ends of the edges.
    marks : uint8[num_vertices]
        Workspace, all zero; it is left all zero.
    stop_flag : uint8[1]
        The kernel returns early once this is set.
    triangles : uint32[num_arcs]
        Receives the numbers.
    """
    for v in range(first, last):
        if stop_flag[0]:
            return
        if split[v] == indptr[v + 1]:
            continue
        for j in range(indptr[v], indptr[v + 1]):
            marks[indices[j]] = 1
        for j in range(split[v], indptr[v + 1]):
            u = indices[j]
            others, found = indices[indptr[u] : indptr[u + 1]], np.uint32(0)
            if others.size > SKEW * (indptr[v + 1] - indptr[v]):
                for i in range(indptr[v], indptr[v + 1]):
                    at = first_at_least(others, indices[i])
                    found += np.uint32(at < others.size and others[at] == indices[i])
            else:
                for i in range(others.size):
                    found += marks[others[i]]
            triangles[j] = found
            triangles[indptr[u] + first_at_least(others, v)] = found
        for j in range(indptr[v], indptr[v + 1]):
            marks[indices[j]] = 0


@compiled("i8[::1], u4[::1]")
def largest_row(indptr, triangles):
    """Return the largest sum of the numbers of a vertex' arcs."""
    largest = np.int64(0)
    for v in range(indptr.size - 1):
        found = np.int64(0)
        for j in range(indptr[v], indptr[v + 1]):
            found += triangles[j]
        largest = max(largest, found)
    return largest
