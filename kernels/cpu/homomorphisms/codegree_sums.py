"""What is beside pairs of vertices, and adjacent to neither: sums over the common neighbours of two neighbours."""

import numpy as np

from longwall.kernels.jit.bits import add_carry, trailing_zeros
from longwall.kernels.jit.compile import compiled


@compiled
def count_codegrees(degree, found, ends, counts, places, entries, codegrees, stop_flag):
    """Count the common neighbours of every two neighbours of a, a itself left out.

    Every b adds a pair for every two common neighbours of a and b.

    Parameters
    ----------
    degree
        Neighbours of a.
    found
        How many `ends` there are.
    ends, counts, places, entries
        See :func:`longwall.kernels.cpu.homomorphisms.pairs.list_pairs`.
    codegrees : uint32[degree, degree], flat
        Written.
    stop_flag : uint8[1]
        The kernel returns early once this is set.
    """
    codegrees[: degree * degree] = 0
    for e in range(found):
        if stop_flag[0]:
            return
        b = ends[e]
        both = entries[places[b] - counts[b] : places[b]]
        for k in range(1, both.size):
            row = both[k] * degree
            for m in range(k):
                codegrees[row + both[m]] += 1
    for i in range(degree):
        for j in range(i):
            codegrees[j * degree + i] = codegrees[i * degree + j]


@compiled
def cross_sum(degree, both, codegrees):
    """Count, for a pair, two common neighbours, a third one, and a vertex adjacent to the two, which is not a or b."""
    total = np.int64(0)
    for k in range(1, both.size):
        row = both[k] * degree
        for m in range(k):
            total += np.int64(codegrees[row + both[m]]) - 1
    return 2 * total * (both.size - 2)


@compiled
def split_sum(degree, table, codegrees, stop_flag):
    """Count three neighbours x, y, z of a vertex with y and z adjacent, and walks of two steps from x to y and to z.

    Neither walk passes through the vertex. The walk to z does not pass through y, nor the walk to y through z.

    Parameters
    ----------
    degree
        Its neighbours.
    table : uint64[degree * words]
        Row i says which of them are adjacent to number i.
    codegrees : uint32[degree, degree], flat
        From `count_codegrees`.
    stop_flag : uint8[1]
        The kernel returns early once this is set.

    Returns
    -------
    low, high : int
        The number: low, modulo 2**64, + 2**64 high.
    """
    width, one = (degree + 63) >> 6, np.uint64(1)
    low, high = np.int64(0), np.int64(0)
    for x in range(degree):
        if stop_flag[0]:
            break
        own, near, total = x * degree, x * width, np.int64(0)
        for y in range(degree):
            if y == x:
                continue
            to_y = np.int64(codegrees[own + y])
            beside_y = np.int64((table[near + (y >> 6)] >> np.uint64(y & 63)) & one)
            part = np.int64(0)
            for w in range((y >> 6) + 1):
                bits = table[y * width + w]
                if w == y >> 6:
                    bits &= (one << np.uint64(y & 63)) - one
                if w == x >> 6:
                    bits &= ~(one << np.uint64(x & 63))
                beside = table[near + w]
                while bits:
                    at = trailing_zeros(bits)
                    bits &= bits - one
                    beside_z = np.int64((beside >> np.uint64(at)) & one)
                    part += (np.int64(codegrees[own + (w << 6) + at]) - beside_y) * (to_y - beside_z)
            total += 2 * part
        low, high = add_carry(low, high, total)
    return low, high


@compiled
def star_sum(indptr, indices, own, b, both, counts, tally, touched):
    """Count ordered triples of common neighbours of a, b and a third vertex, smaller than both.

    Parameters
    ----------
    indptr, indices
        The graph.
    own
        Where the row of a begins.
    b
        The second vertex, smaller than a.
    both : uint32[common]
        The common neighbours, as places in the row of a.
    counts : uint32[num_vertices]
        Not zero for vertices that have enough common neighbours with a.
    tally : uint32[num_vertices]
        Workspace, all zero; it is left all zero.
    touched : uint32[num_vertices]
        Workspace.
    """
    found, total = 0, np.int64(0)
    for k in range(both.size):
        y = indices[own + both[k]]
        for at in range(indptr[y], indptr[y + 1]):
            x = indices[at]
            if x >= b:
                break
            if counts[x]:
                if tally[x] == 0:
                    touched[found] = x
                    found += 1
                tally[x] += 1
    for t in range(found):
        number = np.int64(tally[touched[t]])
        total += number * (number - 1) * (number - 2)
        tally[touched[t]] = 0
    return total
