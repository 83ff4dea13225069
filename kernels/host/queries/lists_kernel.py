"""Candidate lists: for every edge of the query and every candidate of one end, the candidates of the other end."""

import numpy as np

from longwall.kernels.host.queries.saturating import plus, times
from longwall.kernels.jit.bits import pop_bit
from longwall.kernels.jit.compile import compiled

_ONE = np.uint64(1)


@compiled("i8[::1], u4[::1], i8[::1], u8[::1], u8[::1], i8[::1], i8[:,::1], i8[::1]")
def count_lists(indptr, indices, vertices, masks, adjacent, first_of, row_base, ends):
    """Count the entries of every candidate list.

    Parameters
    ----------
    indptr, indices
        The graph.
    vertices : int64[c]
        The vertices that are candidates; their positions are what lists hold.
    masks : uint64[n]
        The query vertices that each vertex may be.
    adjacent : uint64[k]
        Neighbours of each query vertex.
    first_of : int64[k]
        The first position of a vertex with the label of each query vertex.
    row_base : int64[k, k]
        Row ``row_base[u, w] + x - first_of[u]`` is the list of w for position x as u.
    ends : int64[rows + 1]
        All zero; `ends[row + 1]` receives the number of entries.
    """
    for c in range(vertices.size):
        v = vertices[c]
        left = masks[v]
        while left:
            u, left = pop_bit(left)
            place = c - first_of[u] + 1
            for e in range(indptr[v], indptr[v + 1]):
                both = masks[indices[e]] & adjacent[u]
                while both:
                    w, both = pop_bit(both)
                    ends[row_base[u, w] + place] += 1


@compiled("i8[::1], u4[::1], i8[::1], u8[::1], u8[::1], i8[::1], i8[:,::1], i8[::1], i4[::1], i8[::1], i4[::1]")
def fill_lists(indptr, indices, vertices, masks, adjacent, first_of, row_base, starts, position, cursors, lists):
    """Write every candidate list, ascending; parameters not named here are those of :func:`count_lists`.

    Parameters
    ----------
    starts : int64[rows + 1]
        Where each list begins in `lists`, and where the last one ends.
    position : int32[n]
        The position of each candidate in `vertices`.
    cursors : int64[64]
        Workspace.
    lists : int32[starts[-1]]
        Receives the lists.
    """
    for c in range(vertices.size):
        v = vertices[c]
        left = masks[v]
        while left:
            u, left = pop_bit(left)
            place = c - first_of[u]
            near = adjacent[u]
            while near:
                w, near = pop_bit(near)
                cursors[w] = starts[row_base[u, w] + place]
            for e in range(indptr[v], indptr[v + 1]):
                x = indices[e]
                both = masks[x] & adjacent[u]
                while both:
                    w, both = pop_bit(both)
                    lists[cursors[w]] = position[x]
                    cursors[w] += 1


@compiled("i8[::1], i4[::1], i8, i8, i8, i8, i8, i8[::1]")
def hang(starts, lists, first_row, number, first, begin, own, below):
    """Multiply the ways below the candidates of a query vertex by the ways to match a vertex that hangs from it.

    Parameters
    ----------
    starts, lists
        The candidate lists.
    first_row
        Row of the first position of the vertex, with candidates of the hanging vertex.
    number
        Number of rows: all positions of the vertex's label.
    first, begin
        The first position of the label of the hanging vertex, and the index of its first ways below; -1: it has none.
    own
        The index of the first ways below of the vertex itself.
    below : int64[size]
        The ways; they saturate (:mod:`longwall.kernels.host.queries.saturating`).
    """
    for place in range(number):
        ways = np.int64(0)
        for i in range(starts[first_row + place], starts[first_row + place + 1]):
            if begin < 0:
                ways += 1
            else:
                ways = plus(ways, below[begin + lists[i] - first])
        below[own + place] = times(below[own + place], ways)
