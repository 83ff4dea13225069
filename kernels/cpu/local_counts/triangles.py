"""Count triangles, in all or per vertex: a triangle is found once, at its member with the largest id."""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.device import CpuDevice, fitting
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import Block, Targets
from longwall.kernels.jit.bisect import first_above, first_at_least
from longwall.kernels.jit.compile import compiled


class CpuTriangleCounter:
    """Vertex marks of one worker."""

    def __init__(self, device: CpuDevice, graph: GraphArrays, memory: int):
        self.workspace_bytes = fitting(graph.num_vertices, memory)
        self._graph = graph
        self._marks = np.zeros(graph.num_vertices, np.uint8)
        self._stop_flag = device.stop_flag

    def count(self, first: int, last: int, targets: Targets | None = None) -> int:
        """Count the triangles of a range of arcs, or those of its arcs to `targets`."""
        g = self._graph
        low, high = targets or (0, g.num_vertices)
        return int(count_triangles(*g.rows, first, last, low, high, self._marks, self._stop_flag))

    def count_blocks(self, blocks: Iterable[Block]) -> int:
        """Count the triangles of blocks, while their lists are streamed."""
        return sum(self.count(*block[:3]) for block in blocks)


class CpuTriangleVertexCounter:
    """Vertex marks and counts of one worker."""

    def __init__(self, device: CpuDevice, graph: GraphArrays, memory: int):
        self.workspace_bytes = fitting(graph.num_vertices * 9, memory)
        self._graph = graph
        self._marks = np.zeros(graph.num_vertices, np.uint8)
        self._counts = np.zeros(graph.num_vertices, np.int64)
        self._stop_flag = device.stop_flag

    def add(self, first: int, last: int, targets: Targets | None = None) -> None:
        """Add the triangles of a range of arcs, or those of its arcs to `targets`."""
        g = self._graph
        low, high = targets or (0, g.num_vertices)
        add_triangles_per_vertex(*g.rows, first, last, low, high, self._marks, self._stop_flag, self._counts)

    def add_blocks(self, blocks: Callable[[], Iterable[Block]]) -> None:
        """Add the triangles of blocks, while their lists are streamed."""
        for block in blocks():
            self.add(*block[:3])

    def counts(self) -> NDArray[np.int64]:
        """Triangles per vertex so far."""
        return self._counts


@compiled("i8[::1], u4[::1], i8[::1], i8, i8, i8, i8, u1[::1], u1[::1]")
def count_triangles(indptr, indices, split, first, last, low, high, marks, stop_flag):
    """Count the triangles whose two largest vertices are joined by the arcs first to last - 1.

    Parameters
    ----------
    indptr, indices, split
        The graph; `indices[indptr[v]:split[v]]` are the neighbours of v with a smaller id.
    first, last
        Range of arcs, that is, of positions in `indices`.
    low, high
        Only arcs to the vertices low to high - 1 count.
    marks : uint8[num_vertices]
        Workspace, all zero; it is left all zero.
    stop_flag : uint8[1]
        The kernel returns early once this is set.

    Returns
    -------
    int
        The number of triangles.
    """
    total = np.int64(0)
    v = first_above(indptr, first) - 1
    while v < indptr.size - 1 and indptr[v] < last and not stop_flag[0]:
        a, z = indptr[v], split[v]
        begin, end = max(a, first), min(z, last)
        if low > 0 or high < v:
            row = indices[a:z]
            begin = max(begin, a + first_at_least(row, low))
            end = min(end, a + first_at_least(row, high))
        if begin < end:
            for i in range(a, z):
                marks[indices[i]] = 1
            for i in range(begin, end):
                u = indices[i]
                for j in range(indptr[u], split[u]):
                    total += marks[indices[j]]
            for i in range(a, z):
                marks[indices[i]] = 0
        v += 1
    return total


@compiled("i8[::1], u4[::1], i8[::1], i8, i8, i8, i8, u1[::1], u1[::1], i8[::1]")
def add_triangles_per_vertex(indptr, indices, split, first, last, low, high, marks, stop_flag, counts):
    """Add every triangle of :func:`count_triangles` to the `counts` (int64[num_vertices]) of its vertices."""
    v = first_above(indptr, first) - 1
    while v < indptr.size - 1 and indptr[v] < last and not stop_flag[0]:
        a, z = indptr[v], split[v]
        begin, end = max(a, first), min(z, last)
        if low > 0 or high < v:
            row = indices[a:z]
            begin = max(begin, a + first_at_least(row, low))
            end = min(end, a + first_at_least(row, high))
        if begin < end:
            for i in range(a, z):
                marks[indices[i]] = 1
            for i in range(begin, end):
                u = indices[i]
                found = np.int64(0)
                for j in range(indptr[u], split[u]):
                    hit = marks[indices[j]]
                    counts[indices[j]] += hit
                    found += hit
                counts[u] += found
                counts[v] += found
            for i in range(a, z):
                marks[indices[i]] = 0
        v += 1
