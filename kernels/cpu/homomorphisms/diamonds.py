"""Count diamonds: pairs of triangles with an edge in common."""

import numpy as np

from longwall.kernels.cpu.device import CpuDevice, CpuRangeCounter, fitting
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.jit.bits import add_carry
from longwall.kernels.jit.compile import compiled


def diamond_counter(device: CpuDevice, graph: GraphArrays, memory: int) -> CpuRangeCounter:
    """Make the workspace that counts diamonds at the smaller end of their inner edge: marks of vertices."""
    size = fitting(graph.num_vertices, memory)
    return CpuRangeCounter(device, count_diamonds, graph.rows, (np.zeros(graph.num_vertices, np.uint8),), size)


@compiled("i8[::1], u4[::1], i8[::1], i8, i8, u1[::1], u1[::1]")
def count_diamonds(indptr, indices, split, first, last, marks, stop_flag):
    """Count pairs of triangles at the edges whose smaller end lies in first to last - 1.

    The smaller end has no lower degree, so its neighbours are marked, and those of the larger end are looked up.

    Parameters
    ----------
    indptr, indices, split
        The graph; `indices[split[v]:indptr[v + 1]]` are the neighbours of v with a larger id.
    first, last
        Range of vertices.
    marks : uint8[num_vertices]
        Workspace, all zero; it is left all zero.
    stop_flag : uint8[1]
        The kernel returns early once this is set.

    Returns
    -------
    low, high : int
        The number of diamonds: low, modulo 2**64, + 2**64 high.
    """
    low, high = np.int64(0), np.int64(0)
    for x in range(first, last):
        if stop_flag[0]:
            break
        if split[x] == indptr[x + 1]:
            continue
        for i in range(indptr[x], indptr[x + 1]):
            marks[indices[i]] = 1
        for i in range(split[x], indptr[x + 1]):
            v = indices[i]
            common = np.int64(0)
            for j in range(indptr[v], indptr[v + 1]):
                common += marks[indices[j]]
            low, high = add_carry(low, high, common * (common - 1) // 2)
        for i in range(indptr[x], indptr[x + 1]):
            marks[indices[i]] = 0
    return low, high
