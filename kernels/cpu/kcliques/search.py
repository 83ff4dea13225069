"""Search for leaves of the pivot tree below every arc: bitmaps over the out-neighbours of a vertex.

Below an arc its ends are held, and the candidates are their common out-neighbours. The search is that of
:mod:`longwall.kernels.cpu.kcliques.narrow`; it goes on there once 64 candidates or fewer are left.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.kcliques.narrow import Found, Narrow, add_leaf, add_open, search_narrow  # noqa: F401 - in a signature
from longwall.kernels.cpu.kcliques.vertex_tables import build_table, count_pairs
from longwall.kernels.interface.workspaces import NARROW
from longwall.kernels.jit.bisect import first_above
from longwall.kernels.jit.bits import pop_bit_of, popcount, trailing_zeros
from longwall.kernels.jit.compile import compiled


class Wide(NamedTuple):
    """The bitmap tables of a vertex, and the levels of a search among more than 64 candidates."""

    table: NDArray[np.uint64]
    """uint64[max_out_degree, words]: which of the first i out-neighbours are adjacent to out-neighbour i."""
    adjacent: NDArray[np.uint64]
    """uint64[max_out_degree, words]: which of all are; made if there are as many candidates."""
    position: NDArray[np.int32]
    """int32[max_out_degree]: the number of each candidate among those of the narrow search."""
    candidates: NDArray[np.uint64]
    untried: NDArray[np.uint64]
    """uint64[levels, words]: as of `Narrow`."""
    pivot: NDArray[np.int64]
    held: NDArray[np.int64]
    pivots: NDArray[np.int64]


@compiled(
    "i8[::1], u4[::1], i8[::1], i8, i8, i4[::1], Wide(u8[:,::1], u8[:,::1], i4[::1], u8[:,::1], u8[:,::1], "
    "i8[::1], i8[::1], i8[::1]), Narrow(u4[::1], u8[::1], u8[::1], u8[::1], i8[::1], i8[::1], i8[::1]), Found(i8, "
    "i8[:,::1], u4[::1], u4[::1], u8[:,:,::1], u8[:,::1]), u1[::1]"
)
def find_leaves(indptr, indices, split, first, last, local, wide, narrow, found, stop_flag):
    """Count the leaves below the arcs first to last - 1, each from its larger end to its smaller one.

    Parameters
    ----------
    indptr, indices, split, first, last, stop_flag
        As in :func:`longwall.kernels.cpu.local_counts.triangles.count_triangles`.
    local : int32[num_vertices]
        Workspace, all zero; it is left all zero.
    wide, narrow
        Workspaces.
    found : Found
        Receives the leaves.
    """
    v = first_above(indptr, first) - 1
    while v < indptr.size - 1 and indptr[v] < last and not stop_flag[0]:
        a = indptr[v]
        degree = split[v] - a
        begin, end = max(a, first), min(split[v], last)
        if begin < end and degree >= max(found.k - 1, 2):
            build_table(indptr, indices, split, a, degree, local, wide.table)
            complete = False
            found.held[0] = v
            for i in range(begin - a, end - a):
                words, size = (i + 63) >> 6, 0
                for w in range(words):
                    wide.candidates[0, w] = wide.table[i, w]
                    size += popcount(wide.table[i, w])
                if size < max(found.k - 2, 1):
                    continue
                found.held[1] = indices[a + i]
                if found.k == 4 and not found.counts.shape[1]:
                    add_open(found, 2, 0, size, count_pairs(wide.table, wide.candidates[0], words), 0)
                elif size <= NARROW:
                    _begin_narrow(indices, a, words, 0, wide, narrow)
                    search_narrow(2, 0, narrow, found, stop_flag)
                else:
                    if not complete:
                        _complete_table(degree, wide)
                        complete = True
                    _search_wide(indices, a, words, wide, narrow, found, stop_flag)
        v += 1


@compiled
def _begin_narrow(indices, a, words, level, wide, narrow):
    """Number the candidates of a level anew, ascending."""
    size, left = 0, wide.candidates[level]
    for w in range(words):
        bits = left[w]
        while bits:
            i, bits = pop_bit_of(bits, w)
            narrow.ids[size] = indices[a + i]
            wide.position[i] = size
            own = np.uint64(0)
            for x in range(w + 1):
                near = wide.table[i, x] & left[x] if x < (i + 63) >> 6 else np.uint64(0)
                while near:
                    j = wide.position[(x << 6) + trailing_zeros(near)]
                    near &= near - np.uint64(1)
                    own |= np.uint64(1) << np.uint64(j)
                    narrow.adjacent[j] |= np.uint64(1) << np.uint64(size)
            narrow.adjacent[size] = own
            size += 1
    narrow.candidates[0] = ~np.uint64(0) >> np.uint64(64 - size) if size else np.uint64(0)


@compiled
def _complete_table(degree, wide):
    words = (degree + 63) >> 6
    for i in range(degree):
        span = (i + 63) >> 6
        for w in range(words):
            wide.adjacent[i, w] = wide.table[i, w] if w < span else np.uint64(0)
        for w in range(span):
            bits = wide.table[i, w]
            while bits:
                j, bits = pop_bit_of(bits, w)
                wide.adjacent[j, i >> 6] |= np.uint64(1) << np.uint64(i & 63)


@compiled
def _enter_wide(indices, a, words, level, wide, narrow, found, stop_flag):
    """Begin a level; see :func:`longwall.kernels.cpu.kcliques.narrow.enter`."""
    left, held, pivots = wide.candidates[level], wide.held[level], wide.pivots[level]
    k, size = found.k, 0
    for w in range(words):
        size += popcount(left[w])
    missing = k - held
    if k and pivots + size < missing:
        return False
    if size <= NARROW:
        _begin_narrow(indices, a, words, level, wide, narrow)
        search_narrow(held, pivots, narrow, found, stop_flag)
        return False
    if k and missing == 0:
        add_leaf(found, held, 0)
        return False
    if 1 <= missing <= 2 and found.counts.shape[1] == 0:
        edges = count_pairs(wide.table, left, words) if missing == 2 else 0
        add_open(found, held, pivots, size, edges, 0)
        return False
    best, pivot = -1, -1
    universal = wide.untried[level]
    for w in range(words):
        bits, universal[w] = left[w], 0
        while bits:
            i, bits = pop_bit_of(bits, w)
            near = 0
            for x in range(words):
                near += popcount(wide.adjacent[i, x] & left[x])
            if near == size - 1:
                universal[w] |= np.uint64(1) << np.uint64(i & 63)
                found.pivots[pivots] = indices[a + i]
                pivots += 1
            elif near > best:
                best, pivot = near, i
    if pivot < 0:
        add_leaf(found, held, pivots)
        return False
    wide.pivots[level], wide.pivot[level] = pivots, pivot
    for w in range(words):
        left[w] &= ~universal[w]
        wide.untried[level, w] = left[w] & ~wide.adjacent[pivot, w]
    wide.untried[level, pivot >> 6] &= ~(np.uint64(1) << np.uint64(pivot & 63))
    return True


@compiled
def _search_wide(indices, a, words, wide, narrow, found, stop_flag):
    """Find all leaves below an arc, whose candidates are those of the first level."""
    wide.held[0], wide.pivots[0] = 2, 0
    level = 0 if _enter_wide(indices, a, words, 0, wide, narrow, found, stop_flag) else -1
    while level >= 0 and not stop_flag[0]:
        held, pivots, i = wide.held[level], wide.pivots[level], wide.pivot[level]
        below = level + 1
        if i >= 0:
            wide.pivot[level] = -1
            wide.held[below], wide.pivots[below] = held, pivots + 1
            found.pivots[pivots] = indices[a + i]
        else:
            w = 0
            while w < words and not wide.untried[level, w]:
                w += 1
            if w == words:
                level -= 1
                continue
            i = (w << 6) + trailing_zeros(wide.untried[level, w])
            wide.untried[level, w] &= wide.untried[level, w] - np.uint64(1)
            wide.held[below], wide.pivots[below] = held + 1, pivots
            found.held[held] = indices[a + i]
        wide.candidates[level, i >> 6] &= ~(np.uint64(1) << np.uint64(i & 63))
        for w in range(words):
            wide.candidates[below, w] = wide.candidates[level, w] & wide.adjacent[i, w]
        if _enter_wide(indices, a, words, below, wide, narrow, found, stop_flag):
            level = below
