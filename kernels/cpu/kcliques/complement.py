"""Count the cliques of four vertices among candidates by the pairs that are not adjacent.

Candidates deep in a search are adjacent nearly all, so there are few such pairs. Sets of four vertices without one are
counted by inclusion and exclusion over the graph of these pairs, the complement: all sets, less those with a pair, and
so on, until the sets of which every two are apart. What that takes of the complement are degrees, and vertices that
both ends of a path or an edge have in common: population counts of rows AND candidates. Where the complement has more
to look at than the graph, cliques are counted one by one.

Candidates are a word or a bitmap. Row i of `apart` has those that candidate i is not adjacent to, without itself.
"""

import numpy as np

from longwall.kernels.jit.bits import pop_bit, pop_bit_of, popcount
from longwall.kernels.jit.compile import compiled


@compiled
def below(i):
    """Candidates with smaller numbers than i, in the word of i."""
    return (np.uint64(1) << np.uint64(i & 63)) - np.uint64(1)


@compiled
def pays(n, pairs, wedges):
    """Whether a complement of n vertices, with a number of edges and paths of two edges, has less to look at.

    Each path and edge, or the triangles of a random graph with as many edges as there are besides.
    """
    everything = 0.5 * n * (n - 1)
    edges = everything - pairs
    return edges * edges * edges * (n - 2) > (wedges + 6.0 * pairs) * everything * everything


@compiled
def by_degrees(n, pairs, wedges, claws):
    """The part of the sum that follows from degrees; numbers of edges, and of stars of two and of three edges."""
    triples = (n * (n - 1) >> 1) * (n - 2) // 3
    total = (triples * (n - 3) >> 2) - pairs * ((n - 2) * (n - 3) >> 1)
    return total + wedges * (n - 4) + (pairs * (pairs - 1) >> 1) - claws


@compiled
def quads_of_word(chosen, apart, degrees):
    """Count the cliques of four vertices among candidates in a word.

    Parameters
    ----------
    chosen
        The candidates.
    apart : uint64[64]
        See above.
    degrees : int64[64]
        Workspace.

    Returns
    -------
    int
    """
    n, pairs, wedges, claws = popcount(chosen), 0, 0, 0
    bits = chosen
    while bits:
        v, bits = pop_bit(bits)
        degree = popcount(apart[v] & chosen)
        degrees[v] = degree
        pairs += degree
        wedges += degree * (degree - 1)
        claws += degree * (degree - 1) * (degree - 2)
    pairs, wedges, claws = pairs >> 1, wedges >> 1, claws // 6
    if pairs and not pays(n, pairs, wedges):
        return _quads_of_word_one_by_one(chosen, apart)
    total = by_degrees(n, pairs, wedges, claws)
    bits = chosen
    while bits:
        v, bits = pop_bit(bits)
        row, under = apart[v] & chosen, chosen & below(v)
        low = row & under
        xs = low
        while xs:
            x, xs = pop_bit(xs)
            near = apart[x]
            common = popcount(row & near)
            total -= (degrees[v] - 1) * (degrees[x] - 1) + (common * (common - 1) >> 1)
            ys, near_under = low & below(x), near & under
            while ys:
                y, ys = pop_bit(ys)
                both = near_under & apart[y]
                total += popcount(both)
                if near >> np.uint64(y) & np.uint64(1):
                    total += degrees[v] + degrees[x] + degrees[y] - n + popcount(both & low & below(y))
    return total


@compiled
def _quads_of_word_one_by_one(chosen, apart):
    total = np.int64(0)
    while chosen:
        v, chosen = pop_bit(chosen)
        xs = chosen & ~apart[v]
        while xs:
            x, xs = pop_bit(xs)
            both = xs & ~apart[x]
            ys = both
            while ys:
                y, ys = pop_bit(ys)
                total += popcount(ys & ~apart[y])
    return total


@compiled
def quads_of_bitmap(chosen, words, apart, degrees):
    """Count the cliques of four vertices among candidates in a bitmap.

    Parameters
    ----------
    chosen : uint64[words]
        The candidates.
    words
        Words that are looked at.
    apart : uint64[size, words]
        See above.
    degrees : int64[size]
        Workspace.

    Returns
    -------
    int
    """
    n, pairs, wedges, claws = 0, 0, 0, 0
    for w in range(words):
        bits = chosen[w]
        n += popcount(bits)
        while bits:
            v, bits = pop_bit_of(bits, w)
            degree = 0
            for x in range(words):
                degree += popcount(apart[v, x] & chosen[x])
            degrees[v] = degree
            pairs += degree
            wedges += degree * (degree - 1)
            claws += degree * (degree - 1) * (degree - 2)
    pairs, wedges, claws = pairs >> 1, wedges >> 1, claws // 6
    if pairs and not pays(n, pairs, wedges):
        return _quads_of_bitmap_one_by_one(chosen, words, apart)
    total = by_degrees(n, pairs, wedges, claws)
    for w in range(words):
        bits = chosen[w]
        while bits:
            v, bits = pop_bit_of(bits, w)
            if degrees[v]:
                total += _terms_of(v, n, chosen, words, apart, degrees)
    return total


@compiled
def _before(row, chosen, w, v):
    """Word w of the candidates in a row that are before v."""
    word = row[w] & chosen[w]
    return word & below(v) if w == v >> 6 else word


@compiled
def _terms_of(v, n, chosen, words, apart, degrees):
    """What edges and paths of the complement add whose largest vertex is v."""
    total, earlier, under = np.int64(0), 0, 0
    for w in range((v >> 6) + 1):
        under += popcount(_before(chosen, chosen, w, v))
        xs = _before(apart[v], chosen, w, v)
        while xs:
            x, xs = pop_bit_of(xs, w)
            common = 0
            for z in range(words):
                common += popcount(apart[v, z] & apart[x, z] & chosen[z])
            earlier += 1
            total -= (degrees[v] - 1) * (degrees[x] - 1) + (common * (common - 1) >> 1)
            for u in range(w + 1 if common else 0):
                ys = apart[v, u] & _before(apart[x], chosen, u, x)
                while ys:
                    y, ys = pop_bit_of(ys, u)
                    total += degrees[v] + degrees[x] + degrees[y] - n
                    for z in range(u + 1):
                        total += popcount(apart[v, z] & apart[x, z] & _before(apart[y], chosen, z, y))
    if earlier * (earlier - 1) >> 1 <= under:
        return total + _cycles_by_pairs(v, chosen, apart)
    return total + _cycles_by_ends(v, chosen, apart)


@compiled
def _cycles_by_pairs(v, chosen, apart):
    """Cycles of four edges in the complement, v the largest of their vertices: by the two neighbours of v."""
    total, last = np.int64(0), v >> 6
    for w in range(last + 1):
        xs = _before(apart[v], chosen, w, v)
        while xs:
            x, xs = pop_bit_of(xs, w)
            for u in range(w + 1):
                ys = _before(apart[v], chosen, u, v)
                if u == w:
                    ys &= below(x)
                while ys:
                    y, ys = pop_bit_of(ys, u)
                    for z in range(last + 1):
                        total += popcount(apart[x, z] & _before(apart[y], chosen, z, v))
    return total


@compiled
def _cycles_by_ends(v, chosen, apart):
    """The same by the vertex opposite to v."""
    total = np.int64(0)
    for w in range((v >> 6) + 1):
        ends = _before(chosen, chosen, w, v)
        while ends:
            end, ends = pop_bit_of(ends, w)
            common = 0
            for z in range((v >> 6) + 1):
                common += popcount(apart[end, z] & _before(apart[v], chosen, z, v))
            total += common * (common - 1) >> 1
    return total


@compiled
def _quads_of_bitmap_one_by_one(chosen, words, apart):
    total = np.int64(0)
    for w in range(words):
        bits = chosen[w]
        while bits:
            v, bits = pop_bit_of(bits, w)
            for u in range(w + 1):
                xs = chosen[u] & ~apart[v, u]
                if u == w:
                    xs &= below(v)
                while xs:
                    x, xs = pop_bit_of(xs, u)
                    total += _pairs_below(v, x, chosen, apart)
    return total


@compiled
def _pairs_below(v, x, chosen, apart):
    """Edges of the graph among the candidates before x that are adjacent to v and x."""
    found, last = np.int64(0), x >> 6
    for w in range(last + 1):
        ys = chosen[w] & ~apart[v, w] & ~apart[x, w]
        if w == last:
            ys &= below(x)
        while ys:
            y, ys = pop_bit_of(ys, w)
            for z in range(w):
                found += popcount(chosen[z] & ~(apart[v, z] | apart[x, z] | apart[y, z]))
            found += popcount(chosen[w] & ~(apart[v, w] | apart[x, w] | apart[y, w]) & below(y))
    return found
