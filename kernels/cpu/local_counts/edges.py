"""Triangles, 4-cliques and 4-cycles of every edge: each is found once, and counted at its edges."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.device import CpuDevice, fitting
from longwall.kernels.interface.local_counts import EdgeGraph, EdgeShape
from longwall.kernels.jit.bisect import first_above, first_at_least
from longwall.kernels.jit.bits import popcount
from longwall.kernels.jit.compile import compiled


class CpuEdgeCounter:
    """Counts of one worker, and its tables."""

    def __init__(self, device: CpuDevice, graph: EdgeGraph, shape: EdgeShape, first: int, number: int, memory: int):
        n, out = graph.num_vertices, graph.max_out_degree
        words = (out + 63) // 64 if shape == "clique-4" else 0
        self.workspace_bytes = fitting(8 * number + 4 * n + out * 8 * (words + 1), memory)
        self._graph, self._first, self._stop_flag = graph, first, device.stop_flag
        self._counts, self._marks = np.zeros(number, np.int64), np.zeros(n, np.uint32)
        self._sums, self._bits = np.zeros(out, np.int64), np.zeros((out, words), np.uint64)
        self._run = {"triangle": self._triangles, "clique-4": self._cliques, "cycle-4": self._cycles}[shape]

    def add(self, first: int, last: int) -> None:
        """Add what belongs to the vertices first to last - 1."""
        self._run(first, last)

    def counts(self) -> NDArray[np.int64]:
        """Counts of the edges so far."""
        return self._counts

    def _triangles(self, first: int, last: int) -> None:
        self._call(add_triangles, first, last)

    def _cliques(self, first: int, last: int) -> None:
        self._call(add_cliques, first, last, self._sums, self._bits)

    def _cycles(self, first: int, last: int) -> None:
        self._call(add_cycles, first, last)

    def _call(self, kernel: Callable[..., Any], first: int, last: int, *tables: NDArray[Any]) -> None:
        g = self._graph
        kernel(*g.rows, g.edges, first, last, self._marks, *tables, self._stop_flag, self._first, self._counts)


@compiled
def _add(counts, first_edge, edge, number):
    place = edge - first_edge
    if 0 <= place < counts.size:
        counts[place] += number


@compiled
def _owners(edges, first_edge, number):
    """Return the first vertex with an edge to a smaller one among some edges, and one past the last such vertex."""
    return first_above(edges, first_edge) - 1, first_at_least(edges, first_edge + number)


@compiled("i8[::1], u4[::1], i8[::1], i8[::1], i8, i8, u4[::1], u1[::1], i8, i8[::1]")
def add_triangles(indptr, indices, split, edges, first, last, marks, stop_flag, first_edge, counts):
    """Add the triangles whose largest vertex is one of first to last - 1 to the counts of their three edges.

    Parameters
    ----------
    indptr, indices, split, edges
        The graph, and the numbers of its edges.
    first, last
        Range of vertices.
    marks : uint32[num_vertices]
        Workspace, all zero; it is left all zero.
    stop_flag : uint8[1]
        The kernel returns early once this is set.
    first_edge
        Number of the edge at place 0 of `counts`; edges that have no place are left out.
    counts : int64[edges that are counted]
        Numbers are added here.
    """
    low, high = _owners(edges, first_edge, counts.size)
    for x in range(max(first, low), last):
        if stop_flag[0]:
            return
        begin, end = indptr[x], split[x]
        near, far = begin, end
        if x >= high:  # of its own edges none counts
            row = indices[begin:end]
            near, far = begin + first_at_least(row, low), begin + first_at_least(row, high)
            if near == far:
                continue
        for j in range(begin, end):
            marks[indices[j]] = np.uint32(j - begin + 1)
        for j in range(near, far):
            a = indices[j]
            own = np.int64(0)
            for i in range(indptr[a], split[a]):
                mark = np.int64(marks[indices[i]])
                if mark:
                    own += 1
                    _add(counts, first_edge, edges[a] + i - indptr[a], 1)
                    _add(counts, first_edge, edges[x] + mark - 1, 1)
            _add(counts, first_edge, edges[x] + j - begin, own)
        for j in range(begin, end):
            marks[indices[j]] = 0


@compiled("i8[::1], u4[::1], i8[::1], i8[::1], i8, i8, u4[::1], i8[::1], u8[:,::1], u1[::1], i8, i8[::1]")
def add_cliques(indptr, indices, split, edges, first, last, marks, sums, bits, stop_flag, first_edge, counts):
    """Add the cliques of 4 vertices whose largest vertex x is one of first to last - 1 to the counts of their edges.

    Among the out-neighbours of x, as bitmaps, two that are adjacent have as many common neighbours as there are cliques
    with both.

    Parameters
    ----------
    indptr, indices, split, edges, first, last, marks, stop_flag, first_edge, counts
        As of :func:`add_triangles`.
    sums : int64[max_out_degree]
        Workspace, all zero; it is left all zero.
    bits : uint64[max_out_degree, words]
        Workspace, all zero; it is left all zero.
    """
    low, _ = _owners(edges, first_edge, counts.size)
    for x in range(max(first, low), last):
        if stop_flag[0]:
            return
        begin, end = indptr[x], split[x]
        size = end - begin
        if size < 3:
            continue
        words = (size + 63) >> 6
        for j in range(begin, end):
            marks[indices[j]] = np.uint32(j - begin + 1)
        for k in range(size):
            a = indices[begin + k]
            for i in range(indptr[a], split[a]):
                other = np.int64(marks[indices[i]]) - 1
                if other >= 0:
                    bits[k, other >> 6] |= np.uint64(1) << np.uint64(other & 63)
                    bits[other, k >> 6] |= np.uint64(1) << np.uint64(k & 63)
        for k in range(size):
            a = indices[begin + k]
            for i in range(indptr[a], split[a]):
                other = np.int64(marks[indices[i]]) - 1
                if other >= 0:
                    found = np.int64(0)
                    for w in range(words):
                        found += popcount(bits[k, w] & bits[other, w])
                    if found:
                        sums[k] += found
                        sums[other] += found
                        _add(counts, first_edge, edges[a] + i - indptr[a], found)
        for k in range(size):
            _add(counts, first_edge, edges[x] + k, sums[k] >> 1)
            sums[k] = 0
            bits[k, :words] = 0
            marks[indices[begin + k]] = 0


@compiled("i8[::1], u4[::1], i8[::1], i8[::1], i8, i8, u4[::1], u1[::1], i8, i8[::1]")
def add_cycles(indptr, indices, split, edges, first, last, wedges, stop_flag, first_edge, counts):
    """Add the cycles of 4 vertices whose smallest vertex v is one of first to last - 1 to the counts of their edges.

    The wedges v - x - y with x, y > v are counted by y; each is in a cycle with every other one of the same end (Chiba
    and Nishizeki, SIAM J. Comput. 1985).

    Parameters
    ----------
    indptr, indices, split, edges, first, last, stop_flag, first_edge, counts
        As of :func:`add_triangles`.
    wedges : uint32[num_vertices]
        Workspace, all zero; it is left all zero.
    """
    for v in range(first, last):
        if stop_flag[0]:
            return
        for j in range(split[v], indptr[v + 1]):
            x = indices[j]
            i = indptr[x + 1] - 1
            while indices[i] > v:  # v itself is in the list
                wedges[indices[i]] += np.uint32(1)
                i -= 1
        for j in range(split[v], indptr[v + 1]):
            x = indices[j]
            own = np.int64(0)
            i = indptr[x + 1] - 1
            while indices[i] > v:
                y = indices[i]
                others = np.int64(wedges[y]) - 1
                if others > 0:
                    own += others
                    if y < x:
                        _add(counts, first_edge, edges[x] + i - indptr[x], others)
                    else:
                        place = first_at_least(indices[indptr[y] : split[y]], x)
                        _add(counts, first_edge, edges[y] + place, others)
                i -= 1
            if own:
                # Of the neighbours of x those up to v come first.
                _add(counts, first_edge, edges[x] + i - indptr[x], own)
        for j in range(split[v], indptr[v + 1]):
            x = indices[j]
            i = indptr[x + 1] - 1
            while indices[i] > v:
                wedges[indices[i]] = 0
                i -= 1
