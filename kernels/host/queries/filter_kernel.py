"""Which query vertices each vertex of the graph may be: bits of one word a vertex, refined until nothing changes.

A set of query vertices is a word, so that all candidates of a vertex are tested against its neighbours at once.
"""

import numpy as np

from longwall.kernels.jit.bisect import first_at_least
from longwall.kernels.jit.bits import pop_bit, popcount
from longwall.kernels.jit.compile import compiled

_ONE, _ZERO = np.uint64(1), np.uint64(0)


@compiled("i8[::1], i4[::1], i8[::1], u8[::1], u8, u8[::1], u8[::1]")
def first_candidates(indptr, labels, query_labels, label_masks, any_label, degree_masks, masks):
    """Find what the label and the degree of each vertex leave of the query.

    Parameters
    ----------
    indptr : int64[n + 1]
    labels : int32[n] or int32[1]
        Labels of the vertices.
    query_labels : int64[labels]
        The labels of the query, ascending; empty where it has none.
    label_masks : uint64[labels]
        The query vertices of each.
    any_label
        The query vertices that may have any label.
    degree_masks : uint64[64]
        The query vertices with few neighbours, at most.
    masks : uint64[n]
        Receives the query vertices that each vertex may be.
    """
    for v in range(indptr.size - 1):
        mask = any_label
        if query_labels.size:
            label = np.int64(labels[v])
            at = first_at_least(query_labels, label)
            if at < query_labels.size and query_labels[at] == label:
                mask |= label_masks[at]
        masks[v] = mask & degree_masks[min(indptr[v + 1] - indptr[v], 63)]


@compiled
def _has_enough(indptr, indices, v, group, need, masks):
    """Whether `need` neighbours of a vertex may be one of a group of query vertices."""
    for e in range(indptr[v], indptr[v + 1]):
        if masks[indices[e]] & group:
            need -= 1
            if need == 0:
                return True
    return False


@compiled("i8[::1], u4[::1], i8[::1], u8[::1], i8[::1], u8[::1], i8[::1], u8[::1]")
def refine(indptr, indices, active, adjacent, first_group, groups, needs, masks):
    """Take away what a vertex cannot be, since its neighbours cannot be what they should; one pass over the vertices.

    A vertex that is query vertex u needs a neighbour for every neighbour of u (arc consistency, as GraphQL, CFL and
    DAF refine their candidates), and as many as u has for every label of them.

    Parameters
    ----------
    indptr, indices
        The graph.
    active : int64[a]
        Vertices with a mask that is not zero.
    adjacent : uint64[k]
        Neighbours of each query vertex.
    first_group : int64[k + 1]
        The groups of query vertex u are `groups[first_group[u]:first_group[u + 1]]`.
    groups, needs : uint64[g], int64[g]
        Neighbours of u that have the same label, and how many these are; two at least.
    masks : uint64[n]
        What each vertex may be.

    Returns
    -------
    int
        How many bits were taken away.
    """
    removed = np.int64(0)
    for i in range(active.size):
        v = active[i]
        mask = masks[v]
        near = _ZERO
        for e in range(indptr[v], indptr[v + 1]):
            near |= masks[indices[e]]
        kept, left = mask, mask
        while left:
            u, left = pop_bit(left)
            fits = (adjacent[u] & ~near) == _ZERO
            g = first_group[u]
            while fits and g < first_group[u + 1]:
                fits = _has_enough(indptr, indices, v, groups[g], needs[g], masks)
                g += 1
            if not fits:
                kept ^= _ONE << np.uint64(u)
        if kept != mask:
            masks[v] = kept
            removed += popcount(mask ^ kept)
    return removed
