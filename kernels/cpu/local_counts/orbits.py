"""Homomorphisms of graphlets of 3 to 5 vertices that send a vertex to v, for every vertex v of a graph.

Each vertex x is looked at with what is around it; W(x, y) is the number of common neighbours of x and y, which for
y = x is the degree, and t the number of triangles of an edge:

- its wedges x - p - y, which give W(x, .): all that is a cycle with chords at p alone, cut at x and y;
- its triangles, that is, the edges between its neighbours, as lists by the neighbours: what triangles with a common
  edge make;
- the wedges of these lists: cycles of 4 vertices around x, and pairs of neighbours with a common triangle (cliques);
- the wedges of its triangles beyond x (two triangles with a common edge), which give E(x, y): the edges between common
  neighbours of x and y.

The work is the sum over arcs (x, p) of the degree of p, over triangles of a smaller degree, over edges of t squared,
and, for cycles of 5 vertices alone, over all pairs x, y with a common neighbour of the degree of y. ESCAPE (WWW 2017)
and EVOKE (WSDM 2020) count by such tables, too, with formulas for what is injective; here maps are counted that need
not be, so that no formula has corrections: :mod:`longwall.kernels.host.patterns.graphlets` makes them.

Of vertices with the same neighbours (twins) only the first one is looked at: what is found around it is added to each
neighbour as often as there are twins, and the numbers of the others are its own, so that the leaves of a hub cost no
more than one. The kernel leaves the numbers of the others unfinished.

Numbers are modulo 2**64, or modulo a prime below 2**31: then each product is reduced, and each sum is of fewer than
2**32 residues, or of numbers of distinct arcs, before it is reduced as well.
"""

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.device import CpuDevice, fitting
from longwall.kernels.interface.local_counts import COUNTED, TriangleGraph
from longwall.kernels.jit.bits import popcount
from longwall.kernels.jit.compile import compiled

# The row of an orbit.
(
    _3, _8, _10, _12, _13, _14, _25, _29, _32, _34, _36, _37, _40, _41, _43, _46, _48, _49, _50, _51, _52, _53, _54,
    _55, _57, _59, _60, _61, _62, _63, _64, _65, _66, _67, _68, _69, _70, _71, _72,
) = range(len(COUNTED))  # fmt: skip


class CpuOrbitHomomorphismCounter:
    """Counts of one worker, and its tables around a vertex."""

    def __init__(self, device: CpuDevice, graph: TriangleGraph, prime: int, memory: int):
        n, degree = graph.num_vertices, graph.max_degree
        words = (graph.max_out_degree + 63) // 64
        bitmap = graph.max_out_degree * words
        size = 8 * len(COUNTED) * n + 24 * n + 20 * (degree + 1) + 8 * graph.most_triangles + 8 * bitmap
        self.workspace_bytes = fitting(size, memory)
        self._graph, self._stop_flag = graph, device.stop_flag
        self._prime = prime or None  # the kernel is compiled without reductions for None
        self._counts = np.zeros((len(COUNTED), n), np.int64)
        self._wedges, self._reached, self._marks, self._seen = (np.zeros(n, np.uint32) for _ in range(4))
        self._diamonds = np.zeros(n, np.int64)
        self._near = np.zeros(degree + 1, np.int64)
        self._pairs, self._slots = np.zeros(degree, np.uint32), np.zeros(degree, np.uint32)
        self._inner, self._inner_triangles = (np.zeros(max(graph.most_triangles, 1), np.uint32) for _ in range(2))
        self._bits = np.zeros(max(bitmap, 1), np.uint64)

    def add(self, first: int, last: int) -> None:
        """Add what is found around the vertices first to last - 1."""
        g = self._graph
        add_orbit_homomorphisms(
            g.indptr, g.indices, g.triangles, g.twins, first, last, self._wedges, self._reached, self._marks,
            self._seen, self._diamonds, self._near, self._pairs, self._slots, self._inner, self._inner_triangles,
            self._bits, self._stop_flag, self._prime, self._counts,
        )  # fmt: skip

    def counts(self) -> NDArray[np.int64]:
        """Homomorphisms by row and vertex so far, modulo 2**64 or the prime."""
        return self._counts


@compiled(
    "i8[::1], u4[::1], u4[::1], u4[::1], i8, i8, u4[::1], u4[::1], u4[::1], u4[::1], i8[::1], i8[::1], u4[::1], "
    "u4[::1], u4[::1], u4[::1], u8[::1], u1[::1], i8, i8[:,::1]",
    "i8[::1], u4[::1], u4[::1], u4[::1], i8, i8, u4[::1], u4[::1], u4[::1], u4[::1], i8[::1], i8[::1], u4[::1], "
    "u4[::1], u4[::1], u4[::1], u8[::1], u1[::1], none, i8[:,::1]",
)
def add_orbit_homomorphisms(
    indptr, indices, triangles, twins, first, last, wedges, reached, marks, seen, diamonds, near, pairs, slots, inner,
    inner_triangles, bits, stop_flag, prime, counts,
):  # fmt: skip
    """Add the homomorphisms that are found around a range of vertices, for each row of `COUNTED`.

    Parameters
    ----------
    indptr, indices, triangles, twins
        As in `TriangleGraph`.
    first, last
        Range of vertices.
    wedges, marks, seen : uint32[num_vertices]
    diamonds : int64[num_vertices]
    pairs : uint32[max_degree]
        Workspace, all zero; it is left all zero.
    reached : uint32[num_vertices]
    near : int64[max_degree + 1]
    slots : uint32[max_degree]
    inner, inner_triangles : uint32[most triangles of the arcs of a vertex]
    bits : uint64[max_out_degree * words]
        Workspace.
    stop_flag : uint8[1]
        The kernel returns early once this is set.
    prime
        What numbers are modulo; None for 2**64.
    counts : int64[rows, num_vertices]
        Numbers are added here.
    """
    for x in range(first, last):
        if stop_flag[0]:
            return
        times = np.int64(twins[x])
        if times == 0:
            continue
        begin, end = indptr[x], indptr[x + 1]
        number = _walk_wedges(indptr, indices, begin, end, wedges, reached, marks)
        _add_cycles(indptr, indices, x, wedges, reached, number, prime, counts)
        _add_wedges(indptr, indices, triangles, x, times, wedges, marks, near, inner, inner_triangles, prime, counts)
        _add_triangles(indptr, indices, triangles, x, near, inner, inner_triangles, prime, counts)
        _add_inner_wedges(
            indptr, indices, triangles, x, times, near, inner, inner_triangles, pairs, slots, prime, counts
        )
        _add_five_cliques(x, end - begin, near, inner, slots, bits, prime, counts)
        _add_diamonds(indptr, indices, triangles, x, times, near, inner, wedges, seen, diamonds, prime, counts)
        degree_sum, product = np.int64(0), np.int64(0)
        for i in range(number):
            y = reached[i]
            diamonds[y] = _reduced(diamonds[y], prime)
            degree_sum += _times(diamonds[y], indptr[y + 1] - indptr[y], prime)
            product += _times(diamonds[y], np.int64(wedges[y]), prime)
        _add(counts, _46, x, degree_sum, prime)
        _add(counts, _63, x, product, prime)
        for j in range(begin, end):
            p = indices[j]
            marks[p] = 0
            found = np.int64(0)
            for i in range(indptr[p], indptr[p + 1]):
                found += diamonds[indices[i]]
            _add(counts, _62, p, _times(times, _reduced(found, prime), prime), prime)
        for i in range(number):
            wedges[reached[i]] = 0
            diamonds[reached[i]] = 0


@compiled
def _reduced(number, prime):
    """Return a number that is not negative modulo the prime, if there is one."""
    if prime is None:
        return number
    return number % prime


@compiled
def _times(a, b, prime):
    """Multiply two numbers; with a prime both are below 2**32."""
    if prime is None:
        return a * b
    return np.int64(np.uint64(a) * np.uint64(b) % np.uint64(prime))


@compiled
def _add(counts, row, vertex, number, prime):
    counts[row, vertex] = _reduced(counts[row, vertex] + _reduced(number, prime), prime)


@compiled
def _walk_wedges(indptr, indices, begin, end, wedges, reached, marks):
    """Count the wedges of x by their other end, and list these ends; number the neighbours of x from 1 in `marks`."""
    number = 0
    for j in range(begin, end):
        p = indices[j]
        marks[p] = np.uint32(j - begin + 1)
        for i in range(indptr[p], indptr[p + 1]):
            y = indices[i]
            if wedges[y] == 0:
                reached[number] = y
                number += 1
            wedges[y] += np.uint32(1)
    return number


@compiled
def _add_cycles(indptr, indices, x, wedges, reached, number, prime, counts):
    """Cycles of 4 and 5 vertices, and the two wedges more that make K(2, 3) of the one of 4: sums over the ends."""
    squares, weighed, cubes, fives = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for i in range(number):
        y = reached[i]
        w = np.int64(wedges[y])
        square = _times(w, w, prime)
        squares += square
        weighed += _times(square, indptr[y + 1] - indptr[y], prime)
        cubes += _times(square, w, prime)
        found = np.int64(0)
        for j in range(indptr[y], indptr[y + 1]):
            found += wedges[indices[j]]
        fives += _times(w, _reduced(found, prime), prime)
    _add(counts, _8, x, squares, prime)
    _add(counts, _36, x, weighed, prime)
    _add(counts, _50, x, cubes, prime)
    _add(counts, _34, x, fives, prime)


@compiled
def _add_wedges(indptr, indices, triangles, x, times, wedges, marks, near, inner, inner_triangles, prime, counts):
    """Sums over the wedges x - p - y; writes the edges between neighbours of x, list by list, with their triangles."""
    begin, end = indptr[x], indptr[x + 1]
    at = np.int64(0)
    for j in range(begin, end):
        p, t = indices[j], np.int64(triangles[j])
        near[j - begin] = at
        squares, cycles, roofs, degrees, around = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        for i in range(indptr[p], indptr[p + 1]):
            y = indices[i]
            w, beyond = np.int64(wedges[y]), np.int64(triangles[i])
            cycles += w
            squares += _times(w, w, prime)
            roofs += _times(w, beyond, prime)
            degrees += indptr[y + 1] - indptr[y]
            around += beyond
            if marks[y]:
                inner[at] = marks[y] - np.uint32(1)
                inner_triangles[at] = triangles[i]
                at += 1
        degree = indptr[p + 1] - indptr[p]
        cycles, around, weighed = _reduced(cycles, prime), _reduced(around, prime), _times(t, degree, prime)
        _add(counts, _3, x, t, prime)
        _add(counts, _10, x, weighed, prime)
        _add(counts, _32, x, _times(weighed, degree, prime), prime)
        _add(counts, _29, x, _times(t, _reduced(degrees, prime), prime), prime)
        _add(counts, _43, x, _times(t, around, prime), prime)
        _add(counts, _37, x, _times(degree, cycles, prime), prime)
        _add(counts, _49, p, _times(times, _reduced(squares, prime), prime), prime)
        _add(counts, _51, x, roofs, prime)
        _add(counts, _53, x, _times(cycles, t, prime), prime)
        cycles = _times(cycles, times, prime)
        for i in range(near[j - begin], at):
            _add(counts, _52, indices[begin + inner[i]], cycles, prime)
    near[end - begin] = at


@compiled
def _add_triangles(indptr, indices, triangles, x, near, inner, inner_triangles, prime, counts):
    """Sums over the triangles of x, each with either of its other vertices as the first one, p."""
    begin = indptr[x]
    s12 = s13 = s25 = s40 = s41 = s48 = s54 = s55 = s60 = s61 = np.int64(0)
    for a in range(indptr[x + 1] - begin):
        p, t = indices[begin + a], np.int64(triangles[begin + a])
        degree = indptr[p + 1] - indptr[p]
        square = _times(t, t, prime)
        s13 += square
        s41 += _times(square, degree, prime)
        s55 += _times(square, t, prime)
        for i in range(near[a], near[a + 1]):
            b = inner[i]
            y, beyond = indices[begin + b], np.int64(inner_triangles[i])
            other = indptr[y + 1] - indptr[y]
            s12 += beyond
            s25 += _times(degree, other, prime)
            s40 += _times(beyond, degree, prime)
            s48 += _times(t, other, prime)
            s54 += _times(beyond, beyond, prime)
            s60 += _times(t, beyond, prime)
            s61 += _times(t, np.int64(triangles[begin + b]), prime)
        s12, s25, s40, s48 = _reduced(s12, prime), _reduced(s25, prime), _reduced(s40, prime), _reduced(s48, prime)
        s54, s60, s61 = _reduced(s54, prime), _reduced(s60, prime), _reduced(s61, prime)
    _add(counts, _12, x, s12, prime)
    _add(counts, _13, x, s13, prime)
    _add(counts, _25, x, s25, prime)
    _add(counts, _40, x, s40, prime)
    _add(counts, _41, x, s41, prime)
    _add(counts, _48, x, s48, prime)
    _add(counts, _54, x, s54, prime)
    _add(counts, _55, x, s55, prime)
    _add(counts, _60, x, s60, prime)
    _add(counts, _61, x, s61, prime)


@compiled
def _add_inner_wedges(
    indptr, indices, triangles, x, times, near, inner, inner_triangles, pairs, slots, prime, counts
):  # fmt: skip
    """Sums over the wedges of the edges between neighbours of x: wheels, and what has cliques of 4 vertices."""
    begin = indptr[x]
    degree = indptr[x + 1] - begin
    s14 = s57 = s66 = s67 = s69 = s71 = np.int64(0)
    for a in range(degree):
        if near[a] == near[a + 1]:
            continue
        p, t = indices[begin + a], np.int64(triangles[begin + a])
        steps = np.int64(0)
        for i in range(near[a], near[a + 1]):
            b = inner[i]
            steps += near[b + 1] - near[b]
            for j in range(near[b], near[b + 1]):
                pairs[inner[j]] += np.uint32(1)
        cliques = np.int64(0)
        for i in range(near[a], near[a + 1]):
            z = np.int64(pairs[inner[i]])
            cliques += z
            s66 += _times(z, np.int64(inner_triangles[i]), prime)
            s71 += _times(z, z, prime)
        if cliques:
            cliques = _reduced(cliques, prime)
            s14 += cliques
            s57 += _times(cliques, indptr[p + 1] - indptr[p], prime)
            s67 += _times(cliques, t, prime)
            s66, s71 = _reduced(s66, prime), _reduced(s71, prime)
            cliques = _times(cliques, times, prime)
            for i in range(near[a], near[a + 1]):
                _add(counts, _65, indices[begin + inner[i]], cliques, prime)
            _add_clique_pairs(indices, begin, a, times, near, inner, pairs, slots, prime, counts)
        squares = _reduced(_take_squares(a, degree, steps, near, inner, pairs, prime), prime)
        _add(counts, _68, p, _times(times, squares, prime), prime)
        s69 += squares
    _add(counts, _14, x, s14, prime)
    _add(counts, _57, x, s57, prime)
    _add(counts, _66, x, s66, prime)
    _add(counts, _67, x, s67, prime)
    _add(counts, _69, x, s69, prime)
    _add(counts, _71, x, s71, prime)


@compiled
def _take_squares(a, degree, steps, near, inner, pairs, prime):
    """Add up the squares of `pairs`, and clear it; `steps` additions were made, which are few around a wheel's hub."""
    squares = np.int64(0)
    if steps < degree:
        for i in range(near[a], near[a + 1]):
            b = inner[i]
            for j in range(near[b], near[b + 1]):
                z = np.int64(pairs[inner[j]])
                squares += _times(z, z, prime)
                pairs[inner[j]] = 0
    else:
        for b in range(degree):
            z = np.int64(pairs[b])
            squares += _times(z, z, prime)
            pairs[b] = 0
    return squares


@compiled
def _add_clique_pairs(indices, begin, a, times, near, inner, pairs, slots, prime, counts):
    """Two cliques of 4 vertices that share the triangle of x and its neighbours a and b, b < a, for their last vertex.

    `pairs` has the common neighbours of a with each neighbour of x; `slots` is workspace.
    """
    for i in range(near[a], near[a + 1]):
        slots[inner[i]] = a + 1
    for i in range(near[a], near[a + 1]):
        b = inner[i]
        if b >= a:
            break
        z = 2 * _times(times, np.int64(pairs[b]), prime)
        if z:
            for j in range(near[b], near[b + 1]):
                if slots[inner[j]] == a + 1:
                    _add(counts, _70, indices[begin + inner[j]], z, prime)
    for i in range(near[a], near[a + 1]):
        slots[inner[i]] = 0


@compiled
def _add_five_cliques(x, degree, near, inner, slots, bits, prime, counts):
    """Cliques of 5 vertices: of 3 among the common neighbours of x and a that are before a, by bitmaps."""
    found = np.int64(0)
    for a in range(degree):
        size = 0
        for i in range(near[a], near[a + 1]):
            if inner[i] >= a:
                break
            size += 1
            slots[inner[i]] = size
        if size < 3:
            for i in range(near[a], near[a] + size):
                slots[inner[i]] = 0
            continue
        words = (size + 63) >> 6
        for k in range(size):
            b = inner[near[a] + k]
            row = bits[k * words : (k + 1) * words]
            for w in range(words):
                row[w] = 0
            for j in range(near[b], near[b + 1]):
                c = inner[j]
                if c >= b:
                    break
                slot = slots[c]
                if slot:
                    row[(slot - 1) >> 6] |= np.uint64(1) << np.uint64((slot - 1) & 63)
        for k in range(size):
            row = bits[k * words : (k + 1) * words]
            b = inner[near[a] + k]
            for j in range(near[b], near[b + 1]):
                c = inner[j]
                if c >= b:
                    break
                slot = slots[c]
                if slot:
                    other = bits[(slot - 1) * words : slot * words]
                    for w in range(((slot - 1) >> 6) + 1):
                        found += popcount(row[w] & other[w])
        for i in range(near[a], near[a] + size):
            slots[inner[i]] = 0
    _add(counts, _72, x, 24 * _reduced(found, prime), prime)


@compiled
def _add_diamonds(indptr, indices, triangles, x, times, near, inner, wedges, seen, diamonds, prime, counts):
    """Walk over what triangles x, p, q lead to: the common neighbours y of p and q; E(x, y) is left in `diamonds`."""
    begin = indptr[x]
    ends = np.int64(0)
    for a in range(indptr[x + 1] - begin):
        if near[a] == near[a + 1] or inner[near[a + 1] - 1] < a:
            continue
        p = indices[begin + a]
        for i in range(indptr[p], indptr[p + 1]):
            seen[indices[i]] = triangles[i] + np.uint32(1)
        own = np.int64(0)
        for k in range(near[a], near[a + 1]):
            if inner[k] < a:
                continue
            q = indices[begin + inner[k]]
            both, roofs = np.int64(0), np.int64(0)
            for i in range(indptr[q], indptr[q + 1]):
                y = indices[i]
                t = seen[y]
                if t:
                    diamonds[y] += 2
                    both += wedges[y]
                    roofs += np.int64(t) - 1 + np.int64(triangles[i])
            ends = _reduced(ends + roofs, prime)
            both = _reduced(both, prime)
            own += both
            _add(counts, _64, q, _times(times, both, prime), prime)
        _add(counts, _64, p, _times(times, _reduced(own, prime), prime), prime)
        for i in range(indptr[p], indptr[p + 1]):
            seen[indices[i]] = 0
    _add(counts, _59, x, ends, prime)
