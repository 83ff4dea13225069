"""The degeneracy order: peel vertices of the least degree, round by round."""

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.device import CpuDevice
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.maximal_cliques import DegeneracyOrder
from longwall.kernels.interface.workspaces import NARROW
from longwall.kernels.jit.compile import compiled


def degeneracy_order(device: CpuDevice, graph: GraphArrays, later: NDArray[np.uint32] | None = None) -> DegeneracyOrder:
    """Order the vertices by peeling."""
    n = graph.num_vertices
    rank, indptr = np.empty(n, np.uint32), np.empty(n + 1, np.int64)
    degree, left, queue = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    peel(graph.indptr, graph.indices, rank, degree, left, queue, device.stop_flag)
    del left, queue
    largest, rows = count_later(graph.indptr, graph.indices, rank, indptr, NARROW)
    indices = np.empty(graph.num_arcs // 2, np.uint32) if later is None else later
    if not device.stop_flag[0]:
        write_later(graph.indptr, graph.indices, rank, indptr, indices)
    return DegeneracyOrder(rank, indptr, indices, int(largest), int(rows))


@compiled("i8[::1], u4[::1], u4[::1], i4[::1], i4[::1], i4[::1], u1[::1]")
def peel(indptr, indices, rank, degree, left, queue, stop_flag):
    """Rank the vertices by the round in which they are peeled, and those of a round by descending id.

    A round takes away all vertices that have at most as many neighbours left as the level says; the level rises where
    there are none. It takes O(n + m) steps: a vertex is looked at once for every level up to its core number.

    Parameters
    ----------
    indptr, indices
        The graph.
    rank : uint32[n]
        Receives the ranks.
    degree, left, queue : int32[n]
        Workspace.
    stop_flag : uint8[1]
        The kernel returns early once this is set.
    """
    n = rank.size
    for v in range(n):
        degree[v] = indptr[v + 1] - indptr[v]
        left[v] = v
    remaining, begin, end, rounds = n, 0, 0, 0
    while begin < n and not stop_flag[0]:
        level, kept = n, 0
        for i in range(remaining):
            v = left[i]
            if degree[v] >= 0:
                left[kept] = v
                kept += 1
                level = min(level, degree[v])
        remaining = kept
        for i in range(remaining):
            if degree[left[i]] == level:
                queue[end] = left[i]
                end += 1
        # Peeled vertices have the number of their round in `rank`, and a degree below zero.
        while begin < end and not stop_flag[0]:
            last = end
            for i in range(begin, last):
                rank[queue[i]] = rounds
                degree[queue[i]] = -1
            for i in range(begin, last):
                v = queue[i]
                for j in range(indptr[v], indptr[v + 1]):
                    u = indices[j]
                    if degree[u] > level:
                        degree[u] -= 1
                        if degree[u] == level:
                            queue[end] = u
                            end += 1
            begin = last
            rounds += 1
    if stop_flag[0]:
        return
    for r in range(rounds):
        left[r] = 0
    for v in range(n):
        left[rank[v]] += 1
    at = 0
    for r in range(rounds):
        size = left[r]
        left[r] = at
        at += size
    for i in range(n):
        v = n - 1 - i
        r = rank[v]
        rank[v] = left[r]
        left[r] += 1


@compiled("i8[::1], u4[::1], u4[::1], i8[::1], i8")
def count_later(indptr, indices, rank, later_ptr, narrow):
    """Write where the later neighbours of every vertex begin.

    Returns
    -------
    largest : int
        The largest number of later neighbours of a vertex: the degeneracy.
    rows : int
        The most words that the rows of a vertex's earlier neighbours take, of vertices with more than `narrow` later
        neighbours: a bit for each of these.
    """
    largest, rows = np.int64(0), np.int64(0)
    at = np.int64(0)
    for v in range(rank.size):
        later_ptr[v] = at
        own, found = rank[v], np.int64(0)
        for j in range(indptr[v], indptr[v + 1]):
            found += rank[indices[j]] > own
        largest = max(largest, found)
        if found > narrow:
            rows = max(rows, (indptr[v + 1] - indptr[v] - found) * ((found + 63) >> 6))
        at += found
    later_ptr[rank.size] = at
    return largest, rows


@compiled("i8[::1], u4[::1], u4[::1], i8[::1], u4[::1]")
def write_later(indptr, indices, rank, later_ptr, later):
    """Write the later neighbours of every vertex, ascending by id."""
    for v in range(rank.size):
        own, at = rank[v], later_ptr[v]
        for j in range(indptr[v], indptr[v + 1]):
            if rank[indices[j]] > own:
                later[at] = indices[j]
                at += 1
