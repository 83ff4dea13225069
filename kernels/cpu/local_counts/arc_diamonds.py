"""Count diamonds: the pairs of triangles that share an edge, edge by edge."""

from collections.abc import Iterable

import numpy as np

from longwall.kernels.cpu.device import CpuDevice, fitting
from longwall.kernels.exact_numbers import two_words
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.local_counts import ArcBlock, ArcPiece
from longwall.kernels.jit.bisect import first_above
from longwall.kernels.jit.bits import add_carry
from longwall.kernels.jit.compile import compiled


class CpuArcDiamondCounter:
    """Places and triangles of the out-neighbours of one vertex."""

    def __init__(self, device: CpuDevice, graph: GraphArrays, memory: int):
        self.workspace_bytes = fitting(4 * graph.num_vertices + 8 * graph.max_out_degree, memory)
        self.arc_capacity, self.piece_capacity, self.part_capacity = max(graph.num_arcs, 1), 0, 0
        self.count_bytes = 0
        self._graph = graph
        self._place = np.zeros(graph.num_vertices, np.uint32)
        self._triangles = np.zeros(graph.max_out_degree, np.int64)
        self._stop_flag = device.stop_flag

    def count(self, first: int, last: int, blocks: Iterable[ArcBlock] | None = None) -> int:
        """Count the pairs of triangles at a range of arcs; all lists are where they are read."""
        for _ in blocks or ():
            pass
        g = self._graph
        low, high = count_diamonds(*g.rows, first, last, self._place, self._triangles, self._stop_flag)
        return two_words(low, high)

    def count_pieces(self, pieces: Iterable[ArcPiece]) -> int:
        """Count the pairs of triangles at all arcs; all lists are where they are read."""
        for piece in pieces:
            for _ in piece.targets:
                pass
        return self.count(0, self._graph.num_arcs)


@compiled("i8[::1], u4[::1], i8[::1], i8, i8, u4[::1], i8[::1], u1[::1]")
def count_diamonds(indptr, indices, split, first, last, place, triangles, stop_flag):
    """Count the pairs of triangles that share an edge, of those edges whose larger ends own the arcs first to last - 1.

    An edge of v and a smaller x has a triangle with each w whose out-neighbours x is one of, if w is a neighbour of v,
    and with each out-neighbour of x that is one of v.

    Parameters
    ----------
    indptr, indices, split, first, last, stop_flag
        As in :func:`longwall.kernels.cpu.local_counts.triangles.count_triangles`; the whole adjacency.
    place : uint32[num_vertices]
        Workspace, all zero; it is left all zero.
    triangles : int64[longest list of out-neighbours]
        Workspace.

    Returns
    -------
    low, high : int
        The sum of the edges' numbers: low, modulo 2**64, + 2**64 high.
    """
    low, high = np.int64(0), np.int64(0)
    v = first_above(indptr, first) - 1
    while v < indptr.size - 1 and indptr[v] < last and not stop_flag[0]:
        a, z = indptr[v], split[v]
        begin, end = max(a, first), min(z, last)
        if begin < end:
            for i in range(a, z):
                place[indices[i]] = i - a + 1
                triangles[i - a] = 0
            for i in range(a, indptr[v + 1]):
                w = indices[i]
                found = np.int64(0)
                for j in range(indptr[w], split[w]):
                    x = indices[j]
                    if x >= v:
                        break
                    at = place[x]
                    if at:
                        triangles[at - 1] += 1
                        found += 1
                if i < z:
                    triangles[i - a] += found
            for i in range(a, z):
                place[indices[i]] = 0
            for i in range(begin, end):
                pairs = triangles[i - a] * (triangles[i - a] - 1) // 2
                low, high = add_carry(low, high, pairs)
        v += 1
    return low, high
