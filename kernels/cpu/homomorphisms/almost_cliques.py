"""Count cliques of five vertices less an edge: pairs of common neighbours of triangles."""

import numpy as np

from longwall.kernels.cpu.device import CpuDevice, CpuRangeCounter, fitting
from longwall.kernels.exact_numbers import require_fits
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import RowTables
from longwall.kernels.jit.bits import add_carry, popcount
from longwall.kernels.jit.compile import compiled


def almost_clique_counter(device: CpuDevice, graph: GraphArrays, tables: RowTables, memory: int) -> CpuRangeCounter:
    """Make the workspace that counts these patterns at their largest vertex of degree 4: a bitmap table."""
    triangles = min(graph.max_out_degree**2, graph.num_arcs) // 2  # whose largest vertex is the same
    require_fits(triangles * graph.max_degree**2 // 2, 63, "the number of pairs at the triangles of a vertex")
    words = graph.max_out_degree * ((graph.max_degree + 63) // 64)
    size = fitting(8 * words, memory)
    arrays = graph.indptr, graph.split, tables.common_indptr, tables.common
    return CpuRangeCounter(device, count_almost_cliques, arrays, (np.empty(words, np.uint64),), size)


@compiled("i8[::1], i8[::1], i8[::1], u4[::1], i8, i8, u8[::1], u1[::1]")
def count_almost_cliques(indptr, split, starts, common, first, last, table, stop_flag):
    """Count pairs of common neighbours of the triangles whose largest vertex v lies in first to last - 1.

    Row i of a table says which neighbours of v are adjacent to its smaller neighbour i too, so the common neighbours of
    a triangle are an AND of two rows. The rows are lists of common neighbours.

    Parameters
    ----------
    indptr, split
        The graph; `indptr[v]` to `split[v]` are the arcs to smaller neighbours.
    starts : int64[num_arcs + 1]
    common : uint32[6 * triangles]
        The common neighbours of arcs; see :class:`longwall.kernels.interface.homomorphism_program.RowTables`.
    first, last
        Range of vertices.
    table : uint64[rows * words]
        Workspace, for the most smaller neighbours and the most neighbours that a vertex has.
    stop_flag : uint8[1]
        The kernel returns early once this is set.

    Returns
    -------
    low, high : int
        The number: low, modulo 2**64, + 2**64 high.
    """
    low, high = np.int64(0), np.int64(0)
    for v in range(first, last):
        if stop_flag[0]:
            break
        own = indptr[v]
        smaller = split[v] - own
        if smaller < 2:
            continue
        width = (indptr[v + 1] - own + 63) >> 6
        table[: smaller * width] = 0
        found = np.int64(0)
        for i in range(smaller):
            for at in range(starts[own + i], starts[own + i + 1]):
                j = np.int64(common[at]) - own
                table[i * width + (j >> 6)] |= np.uint64(1) << np.uint64(j & 63)
            for at in range(starts[own + i], starts[own + i + 1]):
                j = np.int64(common[at]) - own
                if j >= i:  # lists ascend
                    break
                both = np.int64(0)
                for w in range(width):
                    both += popcount(table[i * width + w] & table[j * width + w])
                found += both * (both - 1) // 2
        low, high = add_carry(low, high, found)
    return low, high
