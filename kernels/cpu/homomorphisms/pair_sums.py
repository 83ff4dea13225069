"""What four vertices are beside one pair: sums of products of sizes, less what is not injective.

Throughout, C are the common neighbours of a and b, u(x) is the number of neighbours of x in C, and maps are counted
with the four vertices told apart.
"""

import numpy as np

from longwall.kernels.interface.homomorphism_program import CodegreePattern
from longwall.kernels.jit.bits import popcount, trailing_zeros
from longwall.kernels.jit.compile import compiled

_CHERRY, _TRIANGLE, _PATH, _PAW = (
    int(CodegreePattern.CHERRY),
    int(CodegreePattern.TRIANGLE),
    int(CodegreePattern.PATH),
    int(CodegreePattern.PAW),
)
_CYCLE, _ENDS, _FORK, _ZIGZAG = (
    int(CodegreePattern.CYCLE),
    int(CodegreePattern.ENDS),
    int(CodegreePattern.FORK),
    int(CodegreePattern.ZIGZAG),
)


@compiled
def common_table(table, width, both, small, sizes):
    """Make the table of common neighbours of the table of all neighbours, and set `sizes` to the numbers of its bits.

    Parameters
    ----------
    table : uint64[neighbours * width]
    width
        Words of a row of the table.
    both : uint32[common]
        The rows that are wanted.
    small : uint64[common * words]
        Written.
    sizes : int64[common]
        Written.
    """
    one = np.uint64(1)
    words = (both.size + 63) >> 6
    small[: both.size * words] = 0
    sizes[: both.size] = 0
    for k in range(both.size):
        row = both[k] * width
        for m in range(k):
            j = both[m]
            if (table[row + (j >> 6)] >> np.uint64(j & 63)) & one:
                small[k * words + (m >> 6)] |= one << np.uint64(m & 63)
                small[m * words + (k >> 6)] |= one << np.uint64(k & 63)
                sizes[k] += 1
                sizes[m] += 1


@compiled
def common_sum(codegree, common, small, sizes):
    """Count the maps of four vertices to common neighbours: pairs of them, in both orders, with what both see."""
    words = (common + 63) >> 6
    total = np.int64(0)
    if codegree == _CHERRY:
        for k in range(common):
            total += sizes[k] * (sizes[k] - 1)
        return total * (common - 3)
    for k in range(common):
        if sizes[k] < 2:
            continue
        for m in range(k):
            joined = (small[k * words + (m >> 6)] >> np.uint64(m & 63)) & np.uint64(1)
            if sizes[m] < 2 or (codegree != _CYCLE and not joined):
                continue
            seen = np.int64(0)
            for w in range(words):
                seen += popcount(small[k * words + w] & small[m * words + w])
            if codegree == _CYCLE:
                total += 2 * seen * (seen - 1)
            elif codegree == _PATH:
                total += 2 * ((sizes[k] - 1) * (sizes[m] - 1) - seen)
            elif codegree == _PAW:
                total += seen * (sizes[k] + sizes[m] - 4)
            else:
                total += 2 * seen * (common - 3)
    return total


@compiled
def neighbour_sum(codegree, table, width, both, slot, small, vectors):
    """Count the maps of four vertices to neighbours of a, some of which are common.

    Parameters
    ----------
    codegree
        A :class:`longwall.kernels.interface.homomorphism_program.CodegreePattern`.
    table : uint64[neighbours * width]
    width
        Words of a row of the table.
    both : uint32[common]
        The common neighbours.
    slot
        The place of b among the neighbours of a, -1 if it is none: no vertex of the four is b.
    small : uint64[neighbours * words]
        Workspace; of one word where no triangles are counted.
    vectors : int64[3, neighbours]
        Workspace; the first is all zero, and is left so.
    """
    sizes, touched = vectors[0], vectors[1]
    if codegree == _ENDS:
        return _ends_less(table, width, both, slot)
    found = _common_of_neighbours(table, width, both, small, sizes, touched)
    if slot >= 0:
        sizes[slot] = 0
    total = np.int64(0)
    if codegree == _FORK:
        for t in range(found):
            x = touched[t]
            total += sizes[x] * (sizes[x] - 1)
        total *= both.size - 2
        for k in range(both.size):
            total -= sizes[both[k]] * (sizes[both[k]] - 1)
    elif codegree == _ZIGZAG:
        for k in range(both.size):
            total += _zigzags(table, width, both, k, slot, sizes)
    else:
        for t in range(found):
            if sizes[touched[t]] > 2:
                total += _triangles_at(both, small, touched[t]) * (sizes[touched[t]] - 2)
    for t in range(found):
        sizes[touched[t]] = 0
    return total


@compiled
def _common_of_neighbours(table, width, both, small, sizes, touched):
    """List the neighbours of a that have neighbours in C; return how many.

    Parameters
    ----------
    table, width, both
        As for `neighbour_sum`.
    small : uint64[neighbours * words] or uint64[1]
        Where there is room, row x becomes what x is adjacent to in C, for what is listed and for C.
    sizes : int64[neighbours]
        All zero; becomes how many these are.
    touched : int64[neighbours]
        Becomes the list.
    """
    found, words, one = 0, (both.size + 63) >> 6, np.uint64(1)
    listed = small.size > 1
    if listed:
        for k in range(both.size):
            small[both[k] * words : both[k] * words + words] = 0
    for k in range(both.size):
        row = both[k] * width
        for w in range(width):
            bits = table[row + w]
            while bits:
                x = (w << 6) + trailing_zeros(bits)
                bits &= bits - one
                if sizes[x] == 0:
                    touched[found] = x
                    found += 1
                    if listed:
                        small[x * words : x * words + words] = 0
                sizes[x] += 1
                if listed:
                    small[x * words + (k >> 6)] |= one << np.uint64(k & 63)
    return found


@compiled
def _zigzags(table, width, both, k, slot, sizes):
    """Count the paths p - z - x - q whose x is the k-th common neighbour; p and q are common, and z need not be.

    For every z there are u(z) - 1 others for p, and u(x) for q, less one if z is common, less those that are p.
    """
    x, one = both[k], np.uint64(1)
    row = x * width
    around, degree = np.int64(0), np.int64(0)
    for w in range(width):
        bits = table[row + w]
        degree += popcount(bits)
        while bits:
            around += sizes[(w << 6) + trailing_zeros(bits)]
            bits &= bits - one
    adjacent = slot >= 0
    total = sizes[x] * (around - degree + adjacent) - sizes[x] * (sizes[x] - 1)
    for m in range(k):
        if (table[row + (both[m] >> 6)] >> np.uint64(both[m] & 63)) & one:
            seen = -np.int64(adjacent)
            for w in range(width):
                seen += popcount(table[row + w] & table[both[m] * width + w])
            total -= 2 * seen
    return total


@compiled
def _triangles_at(both, small, x):
    """Count the ordered pairs of adjacent common neighbours, both of them adjacent to x."""
    words, total = (both.size + 63) >> 6, np.int64(0)
    for w in range(words):
        bits = small[x * words + w]
        while bits:
            row = both[(w << 6) + trailing_zeros(bits)] * words
            bits &= bits - np.uint64(1)
            for v in range(words):
                total += popcount(small[x * words + v] & small[row + v])
    return total


@compiled
def path_ends_sum(indptr, indices, y, i, degree, counts, places, entries, table, vectors):
    """Count walks p - q - r - s among the neighbours of a, for the pairs of a and every b adjacent to p = y and to s.

    Parameters
    ----------
    indptr, indices
        The graph.
    y, i
        The neighbour p of a, and its place.
    degree
        Neighbours of a.
    counts, places, entries
        The common neighbours of a and b; see :func:`longwall.kernels.cpu.homomorphisms.pairs.list_pairs`.
    table : uint64[degree * width]
    vectors : int64[3, degree]
        Workspace; the first is all zero, and is left so.
    """
    width = (degree + 63) >> 6
    two, three, one = vectors[1], vectors[2], np.uint64(1)
    two[:degree] = 0
    three[:degree] = 0
    for w in range(width):
        bits = table[i * width + w]
        while bits:
            row = ((w << 6) + trailing_zeros(bits)) * width
            bits &= bits - one
            for v in range(width):
                others = table[row + v]
                while others:
                    two[(v << 6) + trailing_zeros(others)] += 1
                    others &= others - one
    for x in range(degree):
        if two[x]:
            for w in range(width):
                bits = table[x * width + w]
                while bits:
                    three[(w << 6) + trailing_zeros(bits)] += two[x]
                    bits &= bits - one
    three[i] = 0
    total = np.int64(0)
    for at in range(indptr[y], indptr[y + 1]):
        b = indices[at]
        for e in range(places[b] - counts[b], places[b]):
            total += three[entries[e]]
    return total


@compiled
def _ends_less(table, width, both, slot):
    """Return what `path_ends_sum` counts too many at a pair, as a negative number.

    Walks p - s - r - s and p - q - p - s have as many r, or q, as s, or p, has neighbours; those that are both are
    taken away twice. If b is a neighbour of a, walks by way of b are p - b - r - s and p - q - b - s, where r, or q,
    is common as well.
    """
    total, inside = np.int64(0), np.int64(0)
    for k in range(both.size):
        row = both[k] * width
        size, degree = np.int64(0), -np.int64(slot >= 0)
        for m in range(both.size):
            size += np.int64((table[row + (both[m] >> 6)] >> np.uint64(both[m] & 63)) & np.uint64(1))
        for w in range(width):
            degree += popcount(table[row + w])
        inside += size
        total += size - 2 * size * degree
    return total - (2 * (both.size - 1) * inside if slot >= 0 else 0)
