"""Count cycles of five vertices at their smallest vertex, without enumerating them."""

import numpy as np

from longwall.kernels.cpu.device import CpuDevice, CpuRangeCounter, exact, fitting
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.jit.bisect import first_at_least
from longwall.kernels.jit.compile import compiled


def five_cycle_counter(device: CpuDevice, graph: GraphArrays, memory: int) -> CpuRangeCounter:
    """Make the workspace that counts 5-cycles at their smallest vertex: counters of wedges."""
    n = graph.num_vertices
    size = fitting(n * 12, memory)
    workspace = np.zeros(n, np.uint32), np.zeros(n, np.uint32), np.empty(n, np.uint32)
    return CpuRangeCounter(device, count_five_cycles, graph.rows, workspace, size, exact)


@compiled("i8[::1], u4[::1], i8[::1], i8, i8, u4[::1], u4[::1], u4[::1], u1[::1]")
def count_five_cycles(indptr, indices, split, first, last, wedges, places, ends, stop_flag):
    """Count the cycles v, a, b, c, d whose smallest vertex v lies in first to last - 1.

    All other vertices are larger than v. Of the D(b) wedges v - a - b and the D(c) wedges v - d - c that an edge (b, c)
    closes, those with a = c (c is a neighbour of v) or d = b are left out: (D(b) - [c])(D(c) - [b]) remain. Those with
    a = d are triangles a, b, c with a neighbour v of a that is smaller than all three: the triangles of v, as their
    smallest vertex, have as many of them as their vertices have neighbours smaller than v.

    Parameters
    ----------
    indptr, indices, split
        The graph; `indices[split[v]:indptr[v + 1]]` are the neighbours of v with a larger id.
    first, last
        Range of vertices.
    wedges : uint32[num_vertices]
        Workspace, all zero; it is left all zero.
    places : uint32[num_vertices]
        Workspace, all zero; it is left all zero.
    ends : uint32[num_vertices]
        Workspace.
    stop_flag : uint8[1]
        The kernel returns early once this is set.

    Returns
    -------
    total : int
        The number of 5-cycles, less those of the triangles of other ranges; the sum of all ranges is right.
    estimate : float
        How large the parts are of which it is made.
    """
    total = np.int64(0)
    estimate = 0.0
    for v in range(first, last):
        if stop_flag[0]:
            break
        smaller = split[v] - indptr[v]
        for i in range(split[v], indptr[v + 1]):
            x = indices[i]
            # The place of v in x's row, from 1 on.
            places[x] = first_at_least(indices[indptr[x] : indptr[x + 1]], np.uint32(v)) + 1
        found = np.int64(0)
        for i in range(split[v], indptr[v + 1]):
            a = indices[i]
            j = indptr[a + 1] - 1
            while indices[j] > v:
                b = indices[j]
                if not wedges[b]:
                    ends[found] = b
                    found += 1
                wedges[b] += 1
                if places[b] and b > a:
                    total -= smaller + places[a] + places[b] - 2
                j -= 1
        for e in range(found):
            b = ends[e]
            own, beside = np.int64(wedges[b]), np.int64(places[b] > 0)
            j = split[b] - 1
            part = np.int64(0)
            while j >= indptr[b] and indices[j] > v:
                c = indices[j]
                if wedges[c]:
                    part += (own - np.int64(places[c] > 0)) * (np.int64(wedges[c]) - beside)
                j -= 1
            total += part
            estimate += part
        for e in range(found):
            wedges[ends[e]] = 0
        for i in range(split[v], indptr[v + 1]):
            places[indices[i]] = 0
    return total, estimate
