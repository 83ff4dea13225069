"""Count 4-cycles without enumerating them: two wedges with the same ends are a 4-cycle."""

from collections.abc import Callable, Iterable

import numpy as np

from longwall.kernels.cpu.device import CpuDevice, CpuRangeCounter, fitting
from longwall.kernels.exact_numbers import require_fits
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import Targets
from longwall.kernels.jit.bits import add_carry
from longwall.kernels.jit.compile import compiled


class CpuFourCycleCounter(CpuRangeCounter):
    """Counts 4-cycles at vertices, with a counter of wedges for each vertex."""

    def __init__(self, device: CpuDevice, graph: GraphArrays, memory: int):
        # Two opposite edges, one of them at the vertex, are in two of its cycles at most; each has two such pairs.
        require_fits(graph.max_degree * graph.num_arcs // 2, 63, "the number of 4-cycles at a vertex")
        size = fitting(graph.num_vertices * 4, memory)
        super().__init__(device, count_four_cycles, graph.rows, (np.zeros(graph.num_vertices, np.uint32),), size)


class CpuColumnCycleCounter(CpuFourCycleCounter):
    """Counts when all lists have come: to an engine that works in host memory, at once."""

    def __init__(self, device: CpuDevice, graph: GraphArrays, memory: int):
        super().__init__(device, graph, memory)
        self.arc_capacity = max(graph.num_arcs, 1)

    def count(self, first: int, last: int, rows: Callable[[], Iterable[Targets]] | None = None) -> int:
        """Count the 4-cycles of a range of vertices, after the lists of all vertices."""
        for _ in rows() if rows else ():
            pass
        return super().count(first, last)


@compiled("i8[::1], u4[::1], i8[::1], i8, i8, u4[::1], u1[::1]")
def count_four_cycles(indptr, indices, split, first, last, wedges, stop_flag):
    """Count the 4-cycles whose smallest vertex (the one of highest degree) lies in first to last - 1.

    The wedges v - x - y with x, y > v are aggregated by y; c wedges with the same ends make c (c - 1) / 2
    cycles. The work is the sum of the smaller degrees over all edges (Chiba and Nishizeki, SIAM J. Comput. 1985).

    Parameters
    ----------
    indptr, indices, split
        The graph; `indices[split[v]:indptr[v + 1]]` are the neighbours of v with a larger id.
    first, last
        Range of vertices.
    wedges : uint32[num_vertices]
        Workspace, all zero; it is left all zero.
    stop_flag : uint8[1]
        The kernel returns early once this is set.

    Returns
    -------
    low, high : int
        The number of 4-cycles: low, modulo 2**64, + 2**64 high.
    """
    low, high = np.int64(0), np.int64(0)
    for v in range(first, last):
        if stop_flag[0]:
            break
        touched, total = np.int64(0), np.int64(0)
        for i in range(split[v], indptr[v + 1]):
            x = indices[i]
            j = indptr[x + 1] - 1
            touched += 1
            # Rows ascend, so the vertices beyond v stand at the end.
            while indices[j] > v:
                y = indices[j]
                seen = wedges[y]
                total += seen
                wedges[y] = seen + np.uint32(1)
                j -= 1
                touched += 1
        low, high = add_carry(low, high, total)
        if touched > indptr.size:
            wedges[v:] = 0
        else:
            for i in range(split[v], indptr[v + 1]):
                x = indices[i]
                j = indptr[x + 1] - 1
                while indices[j] > v:
                    wedges[indices[j]] = 0
                    j -= 1
    return low, high
