"""Count cliques: below each vertex its out-neighbours become a small bitmap table.

Set operations on local numbers are AND and population count (the idea of GLUMIN, PPoPP 2025, and KCGPU, ICS
2022). Out-neighbours are those with a smaller id, that is, of higher degree; a clique is found once, at its
member with the largest id.
"""

import numpy as np

from longwall.kernels.cpu.bits import popcount, trailing_zeros
from longwall.kernels.cpu.jit import compiled


@compiled
def count_triangles(indptr, indices, split, first, last, marks, stop_flag):
    """Count the triangles whose two largest vertices are joined by the slots first to last - 1.

    Parameters
    ----------
    indptr, indices, split
        The graph; `indices[indptr[v]:split[v]]` are the neighbours of v with a smaller id.
    first, last
        Range of slots, that is, of positions in `indices`.
    marks : uint8[num_vertices]
        Scratch, all zero; it is left all zero.
    stop_flag : uint8[1]
        The kernel returns early once this is set.

    Returns
    -------
    int
        The number of triangles.
    """
    total = np.int64(0)
    v = np.searchsorted(indptr, first, side="right") - 1
    while v < indptr.size - 1 and indptr[v] < last and not stop_flag[0]:
        a, z = indptr[v], split[v]
        begin, end = max(a, first), min(z, last)
        if begin < end:
            for i in range(a, z):
                marks[indices[i]] = 1
            for i in range(begin, end):
                u = indices[i]
                for j in range(indptr[u], split[u]):
                    total += marks[indices[j]]
            for i in range(a, z):
                marks[indices[i]] = 0
        v += 1
    return total


@compiled
def add_triangles_per_vertex(indptr, indices, split, first, last, marks, stop_flag, counts):
    """Add every triangle of :func:`count_triangles` to the `counts` (int64[num_vertices]) of its vertices."""
    v = np.searchsorted(indptr, first, side="right") - 1
    while v < indptr.size - 1 and indptr[v] < last and not stop_flag[0]:
        a, z = indptr[v], split[v]
        begin, end = max(a, first), min(z, last)
        if begin < end:
            for i in range(a, z):
                marks[indices[i]] = 1
            for i in range(begin, end):
                u = indices[i]
                found = np.int64(0)
                for j in range(indptr[u], split[u]):
                    hit = marks[indices[j]]
                    counts[indices[j]] += hit
                    found += hit
                counts[u] += found
                counts[v] += found
            for i in range(a, z):
                marks[indices[i]] = 0
        v += 1


@compiled
def count_cliques(indptr, indices, split, k, first, last, local, table, chosen, left, state, stop_flag):
    """Count the cliques of k >= 4 vertices whose two largest vertices are joined by the slots first to last - 1.

    Parameters
    ----------
    indptr, indices, split, first, last, stop_flag
        As in :func:`count_triangles`.
    k
        Clique size.
    local : int32[num_vertices]
        Scratch, all zero; it is left all zero.
    table : uint64[max_out_degree, words]
        Scratch: the bitmap table, words >= max_out_degree / 64.
    chosen, left : uint64[k, words]
        Scratch: the candidates at each depth, and those of them that were not tried yet.

    state : int64[2, k]
        Scratch.

    Returns
    -------
    total : int
        The count, modulo 2**64.
    estimate : float
        The count as floating point: `total` is exact below 2**63.
    """
    total = np.int64(0)
    estimate = 0.0
    v = np.searchsorted(indptr, first, side="right") - 1
    while v < indptr.size - 1 and indptr[v] < last and not stop_flag[0]:
        a = indptr[v]
        degree = split[v] - a
        begin, end = max(a, first), min(split[v], last)
        if begin < end and degree >= k - 1:
            _build_table(indptr, indices, split, a, degree, local, table)
            for i in range(begin - a, end - a):
                found, size = _count_below(table, i, k - 2, chosen, left, state, stop_flag)
                total += found
                estimate += size
        v += 1
    return total, estimate


@compiled
def _build_table(indptr, indices, split, a, degree, local, table):
    """Row i of the table: which of the first i out-neighbours are adjacent to out-neighbour i."""
    for i in range(degree):
        local[indices[a + i]] = i + 1
    for i in range(degree):
        for w in range((i + 63) >> 6):
            table[i, w] = 0
        u = indices[a + i]
        for j in range(indptr[u], split[u]):
            at = local[indices[j]]
            if at:
                table[i, (at - 1) >> 6] |= np.uint64(1) << np.uint64((at - 1) & 63)
    for i in range(degree):
        local[indices[a + i]] = 0


@compiled
def _count_pairs(table, candidates, words):
    """Number of edges among the candidates."""
    found = np.int64(0)
    for w in range(words):
        bits = candidates[w]
        while bits:
            j = (w << 6) + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
            row = table[j]
            for x in range((j + 63) >> 6):
                found += popcount(candidates[x] & row[x])
    return found


@compiled
def _count_below(table, i, size, chosen, left, state, stop_flag):
    """Count the cliques of `size` vertices among the neighbours in row i of the table."""
    words = (i + 63) >> 6
    present = np.int64(0)
    for w in range(words):
        chosen[0, w] = table[i, w]
        present += popcount(table[i, w])
    if present < size:
        return np.int64(0), 0.0
    if size == 2:
        pairs = _count_pairs(table, chosen[0], words)
        return pairs, float(pairs)
    total = np.int64(0)
    estimate = 0.0
    width, word = state[0], state[1]
    word[0] = 0
    for w in range(words):
        left[0, w] = chosen[0, w]
    width[0] = words
    depth = 0
    while depth >= 0:
        if word[depth] == width[depth] or stop_flag[0]:
            depth -= 1
            continue
        bits = left[depth, word[depth]]
        if not bits:
            word[depth] += 1
            continue
        j = (word[depth] << 6) + trailing_zeros(bits)
        left[depth, word[depth]] = bits & (bits - np.uint64(1))
        span = (j + 63) >> 6
        wanted = size - depth - 1
        present = np.int64(0)
        for w in range(span):
            both = chosen[depth, w] & table[j, w]
            chosen[depth + 1, w] = both
            present += popcount(both)
        if present < wanted:
            continue
        if wanted == 2:
            pairs = _count_pairs(table, chosen[depth + 1], span)
            total += pairs
            estimate += float(pairs)
        else:
            depth += 1
            for w in range(span):
                left[depth, w] = chosen[depth, w]
            width[depth] = span
            word[depth] = 0
    return total, estimate
