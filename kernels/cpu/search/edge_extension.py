"""Extension by edges on the CPU: the twin of ``cuda/edge_extension.cu``."""

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.device import CpuDevice
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import NeighbourRange, RowReads
from longwall.kernels.interface.search import Cut
from longwall.kernels.jit.bisect import first_at_least
from longwall.kernels.jit.compile import compiled

_NO_MORE = 2**32 - 1  # behind the positions that are left out of a list


@compiled
def _end(columns, row, number):
    """One of the ends of a row's edges; the larger one of an edge comes first."""
    code = columns[number >> 1, row]
    return code & 0xFFFFFFFF if number & 1 else code >> 32


@compiled
def _is_repeated(columns, row, number):
    """Whether an end stands before in its row; the ends of one edge differ."""
    vertex, found = _end(columns, row, number), False
    for other in range(number >> 1 << 1):
        found |= _end(columns, row, other) == vertex
    return found


@compiled
def _has_edge(columns, row, larger, smaller):
    found = False
    for column in range(columns.shape[0]):
        found |= columns[column, row] == larger << 32 | smaller
    return found


@compiled
def _is_shared(columns, row, width):
    """Whether a row's first columns are those of the row before."""
    if row == 0:
        return False
    same = True
    for column in range(width):
        same &= columns[column, row] == columns[column, row - 1]
    return same


@compiled
def _position(indices, begin, end, vertex):
    """Where a vertex stands among the ascending entries begin to end - 1, counted from begin; -1 where it does not."""
    at = first_at_least(indices[begin:end], vertex)
    return at if begin + at < end and indices[begin + at] == vertex else -1


@compiled("i8[:,::1], u4[::1]")
def _collect_vertices(columns, vertices):
    """Collect the vertices whose lists rows read; rows share those of the prefix that they have in common."""
    found = 0
    for row in range(columns.shape[1]):
        for number in range(2 * columns.shape[0]):
            if not (_is_shared(columns, row, (number >> 1) + 1) or _is_repeated(columns, row, number)):
                vertices[found] = _end(columns, row, number)
                found += 1
    return found


@compiled("const(i8[::1]), const(u4[::1]), i8[:,::1], i8, i8, u4[:,:,::1], i8[::1]")
def _count_edges(indptr, indices, columns, first, last, left_out, row_ends):
    """Count new edges, and find which positions of every list are left out.

    Parameters
    ----------
    indptr, indices
        The graph.
    columns : int64[levels, n]
        Rows, of which those from `first` to last - 1 are looked at.
    left_out : uint32[rows, 2 * levels, 2 * levels - 1]
        The positions that are no new edges, ascending: those of vertices of the row, but for edges that are not in the
        row and are found from their larger end. Of repeated ends nothing is written.
    row_ends : int64[rows]
        Prefix sums of the numbers of new edges.
    """
    ends = 2 * columns.shape[0]
    total = 0
    for row in range(first, last):
        for number in range(ends):
            if _is_repeated(columns, row, number):
                continue
            vertex = _end(columns, row, number)
            begin, end = indptr[vertex], indptr[vertex + 1]
            out = left_out[row - first, number]
            many = 0
            for other in range(ends):
                near = _end(columns, row, other)
                if near == vertex or _is_repeated(columns, row, other):
                    continue
                if vertex > near and not _has_edge(columns, row, vertex, near):
                    continue
                position = _position(indices, begin, end, near)
                if position < 0:
                    continue
                at = many
                while at > 0 and out[at - 1] > position:
                    out[at] = out[at - 1]
                    at -= 1
                out[at] = position
                many += 1
            if many < ends - 1:
                out[many] = _NO_MORE
            total += end - begin - many
        row_ends[row - first] = total


@compiled("const(i8[::1]), const(u4[::1]), i8[:,::1], i8, i8, i8, u4[:,:,::1], i8[::1]")
def _write_edges(indptr, indices, columns, offset, first, last, left_out, out):
    """Write the new edges of the rows first to last - 1, the row `offset` being the first that was counted."""
    ends = 2 * columns.shape[0]
    done = 0
    for row in range(first, last):
        for number in range(ends):
            if _is_repeated(columns, row, number):
                continue
            vertex = _end(columns, row, number)
            begin, end = indptr[vertex], indptr[vertex + 1]
            at = begin
            for i in range(ends):  # what lies before each position that is left out, and behind the last
                left = np.int64(left_out[row - offset, number, i]) if i < ends - 1 else _NO_MORE
                stop = end if left == _NO_MORE else begin + left
                for arc in range(at, stop):
                    neighbour = np.int64(indices[arc])
                    out[done + arc - at] = max(vertex, neighbour) << 32 | min(vertex, neighbour)
                done += stop - at
                at = stop + 1
                if stop == end:
                    break


class CpuEdgeExtender:
    """Workspace for rows of edges; see :class:`longwall.kernels.interface.search.EdgeExtender`."""

    def __init__(self, device: CpuDevice, graph: GraphArrays, levels: int, rows: int, memory: int):  # noqa: ARG002
        ends = 2 * levels
        most = max(min(memory // (8 + 4 * ends * (ends - 1)), rows), 1)
        self._graph = graph
        self._left_out = np.empty((most, ends, ends - 1), np.uint32)
        self._row_ends = np.empty(most, np.int64)
        self.workspace_bytes = self._left_out.nbytes + self._row_ends.nbytes
        self._columns, self._first, self._last = np.empty((levels, 0), np.int64), 0, 0

    def reads(self, columns: NDArray[np.int64]) -> list[RowReads]:
        """Return what extending rows reads of the adjacency."""
        vertices = np.empty(columns.size * 2, np.uint32)
        return [RowReads(vertices[: _collect_vertices(columns, vertices)], NeighbourRange.ALL)]

    def count(self, columns: NDArray[np.int64], first: int, last: int) -> None:
        """Count the new edges of rows."""
        graph, last = self._graph, min(last, columns.shape[1], first + self._row_ends.size)
        self._columns, self._first, self._last = columns, first, last
        _count_edges(graph.indptr, graph.indices, columns, first, last, self._left_out, self._row_ends)

    def is_counted(self, columns: NDArray[np.int64], row: int) -> bool:
        """Whether a row's new edges are counted."""
        return columns is self._columns and self._first <= row < self._last

    def cut(self, first: int, capacity: int) -> Cut:
        """Find how many of the counted rows fit a number of new edges."""
        ends = self._row_ends[: self._last - self._first]
        at = first - self._first
        before = int(ends[at - 1]) if at else 0
        end = max(int(np.searchsorted(ends, before + capacity, side="right")), at + 1)
        all_grow = bool(ends[at] > before and (ends[at + 1 : end] > ends[at : end - 1]).all())
        return Cut(self._first + end, int(ends[end - 1]) - before, all_grow)

    def new_edges(self, first: int, cut: Cut) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the new edges of counted rows."""
        graph, at = self._graph, first - self._first
        edges, offsets = np.empty(cut.number, np.int64), np.zeros(cut.last - first + 1, np.int64)
        offsets[1:] = self._row_ends[at : cut.last - self._first]
        offsets[1:] -= self._row_ends[at - 1] if at else 0
        _write_edges(graph.indptr, graph.indices, self._columns, self._first, first, cut.last, self._left_out, edges)
        return offsets, edges
