"""Count what is beside two vertices: patterns of six vertices by the common neighbours of every pair."""

import numpy as np

from longwall.kernels.cpu.device import CpuDevice, CpuRangeCounter, fitting
from longwall.kernels.cpu.homomorphisms.codegree_sums import count_codegrees, cross_sum, split_sum, star_sum
from longwall.kernels.cpu.homomorphisms.pair_sums import common_sum, common_table, neighbour_sum, path_ends_sum
from longwall.kernels.exact_numbers import require_fits
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import CodegreePattern, largest_part
from longwall.kernels.jit.bits import add_carry
from longwall.kernels.jit.compile import compiled

_ENDS, _STAR, _CROSS, _SPLIT = (
    int(CodegreePattern.ENDS),
    int(CodegreePattern.STAR),
    int(CodegreePattern.CROSS),
    int(CodegreePattern.SPLIT),
)


def pair_counter(device: CpuDevice, graph: GraphArrays, codegree: CodegreePattern, memory: int) -> CpuRangeCounter:
    """Make the workspace that counts maps at their vertex a: the wedges of a vertex, and a table of its neighbours."""
    n, longest = graph.num_vertices, max(graph.max_degree, 1)
    words = longest * ((longest + 63) // 64)
    wedges = int(most_wedges(graph.indptr, graph.indices))
    small = words if codegree.symmetric or codegree == CodegreePattern.TAIL else 1
    square = max(longest, 2) ** 2 if codegree.has_codegrees else 1
    thirds = n if codegree == CodegreePattern.STAR else 1
    size = fitting(20 * n + 4 * wedges + 8 * (words + small) + 24 * longest + 4 * square + 8 * thirds, memory)
    require_fits(largest_part(graph.num_arcs, longest), 63, "the number of maps beside a pair")
    before = graph.indptr, graph.indices, int(codegree), codegree.symmetric, codegree.common
    ends = np.zeros(n, np.uint32), np.zeros(n, np.uint32), np.empty(n, np.uint32), np.empty(n, np.int64)
    tables = np.empty(max(wedges, 1), np.uint32), np.empty(words, np.uint64), np.empty(small, np.uint64)
    vectors, codegrees = np.zeros((3, longest), np.int64), np.empty(square, np.uint32)
    third = np.zeros(thirds, np.uint32), np.empty(thirds, np.uint32)
    return CpuRangeCounter(device, count_pairs, before, (*ends, *tables, vectors, codegrees, *third), size)


@compiled("i8[::1], u4[::1]")
def most_wedges(indptr, indices):
    """Return the most walks of two steps from a vertex."""
    most = np.int64(0)
    for v in range(indptr.size - 1):
        walks = np.int64(0)
        for at in range(indptr[v], indptr[v + 1]):
            walks += indptr[indices[at] + 1] - indptr[indices[at]]
        most = max(most, walks)
    return most


@compiled(
    "i8[::1], u4[::1], i8, b1, i8, i8, i8, u4[::1], u4[::1], u4[::1], i8[::1], u4[::1], u8[::1], u8[::1], "
    "i8[:,::1], u4[::1], u4[::1], u4[::1], u1[::1]"
)
def count_pairs(
    indptr, indices, codegree, symmetric, common, first, last, slots, counts, ends, places, entries, table, small,
    vectors, codegrees, tally, touched, stop_flag,
):  # fmt: skip
    """Count the maps of four vertices beside all pairs of a, from first to last - 1, and b.

    Parameters
    ----------
    indptr, indices
        The graph.
    codegree
        A :class:`longwall.kernels.interface.homomorphism_program.CodegreePattern`.
    symmetric
        Whether only pairs with b < a are looked at: ids are ranks, so a has fewer neighbours, which fill a table.
    common
        The fewest common neighbours of a pair.
    first, last
        Range of vertices.
    slots, counts : uint32[num_vertices]
        Workspace, all zero; it is left all zero.
    ends : uint32[num_vertices]
    places : int64[num_vertices]
        Workspace.
    entries : uint32[most wedges]
        Workspace.
    table, small : uint64[max_degree * words]
        Workspace; `small` may be of one word where no triangles of common neighbours are counted.
    vectors : int64[3, max_degree]
        Workspace, all zero; it is left all zero.
    codegrees : uint32[max_degree ** 2] or uint32[1]
        Workspace, where common neighbours of neighbours are counted.
    tally, touched : uint32[num_vertices] or uint32[1]
        Workspace, where third vertices are looked for; `tally` is all zero, and is left so.
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
        own, degree = indptr[a], indptr[a + 1] - indptr[a]
        if degree < common:
            continue
        width = (degree + 63) >> 6
        found = list_pairs(indptr, indices, a, symmetric, common, slots, counts, ends, places, entries, table)
        if found and codegree == _ENDS:
            for i in range(degree):
                if stop_flag[0]:
                    break
                y = indices[own + i]
                part = path_ends_sum(indptr, indices, y, i, degree, counts, places, entries, table, vectors)
                low, high = add_carry(low, high, part)
        if found and codegrees.size > 1:
            count_codegrees(degree, found, ends, counts, places, entries, codegrees, stop_flag)
            if codegree == _SPLIT:
                lower, higher = split_sum(degree, table, codegrees, stop_flag)
                low, high = add_carry(low, high, lower)
                high += higher + (lower < 0)  # for its low word has no sign
        for e in range(found):
            if codegree == _SPLIT or stop_flag[0]:  # those of a hub take long
                break
            b = ends[e]
            both = entries[places[b] - counts[b] : places[b]]
            if codegree == _CROSS:
                part = cross_sum(degree, both, codegrees)
            elif codegree == _STAR:
                part = star_sum(indptr, indices, own, b, both, counts, tally, touched)
            elif symmetric:
                common_table(table, width, both, small, vectors[0])
                part = common_sum(codegree, both.size, small, vectors[0])
            else:
                part = neighbour_sum(codegree, table, width, both, np.int64(slots[b]) - 1, small, vectors)
            low, high = add_carry(low, high, part)
        for e in range(found):
            counts[ends[e]] = 0
        for i in range(degree):
            slots[indices[own + i]] = 0
            vectors[0, i] = 0
    return low, high


@compiled
def list_pairs(indptr, indices, a, symmetric, common, slots, counts, ends, places, entries, table):
    """List the common neighbours of a and of every b that has enough of them, as places in the row of a.

    Those of b end before `places[b]`, and are `counts[b]`; all other counts are 0. Row i of the table says which
    neighbours of a are adjacent to number i.

    Returns
    -------
    int
        How many there are; the first `ends`.
    """
    own, degree = indptr[a], indptr[a + 1] - indptr[a]
    width = (degree + 63) >> 6
    table[: degree * width] = 0
    for i in range(degree):
        slots[indices[own + i]] = i + 1
    reached = 0
    for i in range(degree):
        y = indices[own + i]
        for at in range(indptr[y], indptr[y + 1]):
            z = indices[at]
            slot = np.int64(slots[z]) - 1
            if slot >= 0:
                table[i * width + (slot >> 6)] |= np.uint64(1) << np.uint64(slot & 63)
            if z < a or (z > a and not symmetric):
                if counts[z] == 0:
                    ends[reached] = z
                    reached += 1
                counts[z] += 1
    kept, total = 0, np.int64(0)
    for e in range(reached):
        b = ends[e]
        if counts[b] < common:
            counts[b] = 0
        else:
            places[b] = total
            total += counts[b]
            ends[kept] = b
            kept += 1
    if kept == 0:
        return kept
    for i in range(degree):
        y = indices[own + i]
        for at in range(indptr[y], indptr[y + 1]):
            z = indices[at]
            if counts[z]:
                entries[places[z]] = i
                places[z] += 1
    return kept
