"""Count wheels of four spokes: cycles of four vertices among the neighbours of a vertex."""

import numpy as np

from longwall.kernels.cpu.device import CpuDevice, CpuRangeCounter, fitting
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import RowTables
from longwall.kernels.jit.bisect import first_above, first_at_least
from longwall.kernels.jit.bits import add_carry
from longwall.kernels.jit.compile import compiled


def wheel_counter(device: CpuDevice, graph: GraphArrays, tables: RowTables, memory: int) -> CpuRangeCounter:
    """Make the workspace that counts wheels at arcs: counters of walks."""
    size = fitting(4 * graph.max_degree, memory)
    arrays, walks = (graph.indptr, tables.common_indptr, tables.common), np.zeros(max(graph.max_degree, 1), np.uint32)
    return CpuRangeCounter(device, count_wheels, arrays, (walks,), size)


@compiled("i8[::1], i8[::1], u4[::1], i8, i8, u4[::1], u1[::1]")
def count_wheels(indptr, starts, common, first, last, walks, stop_flag):
    """Count cycles of four among the neighbours of a vertex r, at the arc (r, x) to their smallest vertex x.

    Walks x - y - z among the neighbours of r, y, z > x, are counted by z; two of them are a cycle (Chiba and
    Nishizeki, 1985, section 3, in every neighbourhood).

    Parameters
    ----------
    indptr : int64[num_vertices + 1]
        The arcs of every vertex.
    starts : int64[num_arcs + 1]
    common : uint32[6 * triangles]
        The common neighbours of arcs; see :class:`longwall.kernels.interface.homomorphism_program.RowTables`.
    first, last
        Range of arcs.
    walks : uint32[max_degree]
        Workspace, all zero; it is left all zero.
    stop_flag : uint8[1]
        The kernel returns early once this is set.

    Returns
    -------
    low, high : int
        The number of wheels: low, modulo 2**64, + 2**64 high.
    """
    low, high = np.int64(0), np.int64(0)
    r = first_above(indptr, first) - 1
    for a in range(first, last):
        if stop_flag[0]:
            break
        while indptr[r + 1] <= a:
            r += 1
        end, own = starts[a + 1], np.uint32(a)
        larger = starts[a] + first_at_least(common[starts[a] : end], own)
        if end - larger < 2:
            continue
        for i in range(larger, end):
            arc = common[i]
            j = starts[arc + 1] - 1
            # Lists ascend, so the places behind that of x stand at the end.
            while j >= starts[arc] and common[j] > own:
                walks[common[j] - own] += 1
                j -= 1
        found = np.int64(0)
        for offset in range(1, indptr[r + 1] - a):
            number = np.int64(walks[offset])
            if number:
                found += number * (number - 1) // 2
                walks[offset] = 0
        low, high = add_carry(low, high, found)
    return low, high
