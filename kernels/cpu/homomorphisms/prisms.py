"""Count prisms: two triangles whose vertices are joined in pairs, by three rungs."""

import numpy as np

from longwall.kernels.cpu.device import CpuDevice, CpuRangeCounter, fitting
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.jit.bits import add_carry, pop_bit_of, popcount
from longwall.kernels.jit.compile import compiled


def prism_counter(device: CpuDevice, graph: GraphArrays, memory: int) -> CpuRangeCounter:
    """Make the workspace that counts prisms at their largest vertex: bitmap tables."""
    n, smaller = graph.num_vertices, graph.max_out_degree
    width = (smaller + 63) >> 6
    rows = min(n, smaller * graph.max_degree // 2)  # vertices adjacent to two smaller neighbours of a
    size = fitting(12 * n + 8 * width * (rows + smaller), memory)
    vertices = np.zeros(n, np.uint32), np.zeros(n, np.uint32), np.empty(n, np.uint32)
    tables = np.empty(max(rows * width, 1), np.uint64), np.empty(max(smaller * width, 1), np.uint64)
    return CpuRangeCounter(device, count_prisms, graph.rows, (*vertices, *tables), size)


@compiled("i8[::1], u4[::1], i8[::1], i8, i8, u4[::1], u4[::1], u4[::1], u8[::1], u8[::1], u1[::1]")
def count_prisms(indptr, indices, split, first, last, places, rows, ends, table, inner, stop_flag):
    """Count the prisms whose largest vertex a lies in first to last - 1.

    Let the triangles be a, x, z and b, y, w, and the rungs (a, b), (x, y) and (z, w). Then b, x and z are smaller
    neighbours of a. Row v of a table says which of these are adjacent to v. So the prisms at an edge (y, w) are the
    edges (x, z) from the row of y to that of w, once for every other vertex b that is in both rows.

    Parameters
    ----------
    indptr, indices, split
        The graph; `indices[indptr[v]:split[v]]` are the neighbours of v with a smaller id.
    first, last
        Range of vertices.
    places, rows : uint32[num_vertices]
        Workspace, all zero; it is left all zero.
    ends : uint32[num_vertices]
        Workspace.
    table : uint64[rows * words]
        Workspace, for the most vertices that are adjacent to two smaller neighbours of a vertex.
    inner : uint64[max_out_degree * words]
        Workspace, for the rows of the smaller neighbours themselves.
    stop_flag : uint8[1]
        The kernel returns early once this is set.

    Returns
    -------
    low, high : int
        The number: low, modulo 2**64, + 2**64 high.
    """
    low, high = np.int64(0), np.int64(0)
    for a in range(first, last):
        if stop_flag[0]:
            break
        own, smaller = indptr[a], split[a] - indptr[a]
        if smaller < 3:
            continue
        width = (smaller + 63) >> 6
        for i in range(smaller):
            places[indices[own + i]] = i + 1
        if _edges_within(indptr, indices, split, own, smaller, width, places, inner):
            reached, kept = _list_rows(indptr, indices, a, smaller, width, rows, ends, table)
            for k in range(kept):
                if stop_flag[0]:  # the prisms of one vertex take minutes in a dense graph
                    break
                y = ends[k]
                for at in range(indptr[y], split[y]):
                    w = indices[at]
                    if rows[w]:
                        part = _prisms_at(table, inner, width, k, np.int64(rows[w]) - 1, places[y], places[w])
                        low, high = add_carry(low, high, part)
            for e in range(reached):
                rows[ends[e]] = 0
        for i in range(smaller):
            places[indices[own + i]] = 0
    return low, high


@compiled
def _edges_within(indptr, indices, split, own, smaller, width, places, inner):
    """Fill the rows of a's smaller neighbours; return the number of edges between these."""
    inner[: smaller * width] = 0
    found = 0
    for i in range(smaller):
        x = indices[own + i]
        for at in range(indptr[x], split[x]):
            j = np.int64(places[indices[at]]) - 1
            if j >= 0:
                inner[i * width + (j >> 6)] |= np.uint64(1) << np.uint64(j & 63)
                inner[j * width + (i >> 6)] |= np.uint64(1) << np.uint64(i & 63)
                found += 1
    return found


@compiled
def _list_rows(indptr, indices, a, smaller, width, rows, ends, table):
    """List the vertices below a that are adjacent to two of its smaller neighbours or more, and fill their rows.

    Returns
    -------
    reached, kept : int
        The number of vertices in `ends`, which are adjacent to any smaller neighbour, and the number of those that are
        listed: they come first. The row of a listed vertex v is number `rows[v]` - 1; all other vertices have 0 there.
    """
    own, reached = indptr[a], 0
    for i in range(smaller):
        x = indices[own + i]
        for at in range(indptr[x], indptr[x + 1]):
            v = indices[at]
            if v >= a:
                break
            if rows[v] == 0:
                ends[reached] = v
                reached += 1
            rows[v] += 1
    kept = 0
    for e in range(reached):
        v = ends[e]
        if rows[v] < 2:
            rows[v] = 0
        else:
            ends[e], ends[kept] = ends[kept], v
            kept += 1
            rows[v] = kept
    table[: kept * width] = 0
    for i in range(smaller):
        x = indices[own + i]
        bit = np.uint64(1) << np.uint64(i & 63)
        for at in range(indptr[x], indptr[x + 1]):
            v = indices[at]
            if v >= a:
                break
            if rows[v]:
                table[(np.int64(rows[v]) - 1) * width + (i >> 6)] |= bit
    return reached, kept


@compiled
def _prisms_at(table, inner, width, k, m, place_y, place_w):
    """Count the prisms at the edge (y, w), whose rows are numbers k and m.

    With X and Z for the rows of y and w, less w and y themselves, they are |B| e(X, Z), B being the vertices of both
    rows and e the pairs of adjacent x and z, less those with x = b or z = b.
    """
    one, other = k * width, m * width
    both = np.int64(0)
    for u in range(width):
        both += popcount(table[one + u] & table[other + u])
    if both == 0:
        return both
    without_y, without_w = np.int64(place_y) - 1, np.int64(place_w) - 1
    total = np.int64(0)
    for u in range(width):
        x_bits, z_bits = table[one + u], table[other + u]
        common = x_bits & z_bits
        if without_w >= 0 and without_w >> 6 == u:
            x_bits &= ~(np.uint64(1) << np.uint64(without_w & 63))
        rest = x_bits
        while rest:
            x, rest = pop_bit_of(rest, u)
            total += both * _seen(table, inner, other, x * width, width, without_y)
        while common:
            b, common = pop_bit_of(common, u)
            total -= _seen(table, inner, other, b * width, width, without_y)
            total -= _seen(table, inner, one, b * width, width, without_w)
    return total


@compiled
def _seen(table, inner, row, near, width, without):
    """Count the vertices of a row of the table, less one, that are adjacent to one whose own row begins at `near`."""
    found = np.int64(0)
    for u in range(width):
        found += popcount(table[row + u] & inner[near + u])
    if without >= 0:
        both = table[row + (without >> 6)] & inner[near + (without >> 6)]
        found -= np.int64(both >> np.uint64(without & 63) & np.uint64(1))
    return found
