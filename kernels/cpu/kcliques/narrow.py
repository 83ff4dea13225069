"""Search for leaves of the pivot tree among at most 64 candidates: every set is a word.

A node has held vertices, pivots and candidates, which are adjacent to all of them. A candidate that is adjacent to
all others becomes a pivot at once. Of the others the one with the most neighbours is the pivot of the node: below it
are its neighbours; each candidate that is not adjacent to it is held in turn, and then no candidate any more. So every
clique of the node is below one branch, with the pivots chosen freely (Pivoter: Jain and Seshadhri, WSDM 2020, section
3).

Where one size is wanted, a node ends as soon as it can: fewer vertices are left than are missing, or one, two or three
are missing, which are candidates and pivots, edges, or triangles among the candidates.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.kcliques import PIVOT_LEVELS
from longwall.kernels.jit.bits import pop_bit, popcount, trailing_zeros
from longwall.kernels.jit.compile import compiled

LEVELS = PIVOT_LEVELS
"""Each level has two candidates less than the one before: the pivot, and one that is not adjacent to it."""


class Narrow(NamedTuple):
    """Candidates and levels of a search among at most 64."""

    ids: NDArray[np.uint32]
    """uint32[64]: their vertices."""
    adjacent: NDArray[np.uint64]
    """uint64[64]"""
    candidates: NDArray[np.uint64]
    """uint64[LEVELS]: those of every level that are not held yet."""
    untried: NDArray[np.uint64]
    """uint64[LEVELS]: those of them that will be held."""
    pivot: NDArray[np.int64]
    """int64[LEVELS]: the pivot of the level, -1 once its branch was taken."""
    held: NDArray[np.int64]
    pivots: NDArray[np.int64]
    """int64[LEVELS]: how many vertices are held, and how many are pivots."""


class Found(NamedTuple):
    """What is wanted, and what was found of it."""

    k: int
    """Vertices of the cliques, 0: any number."""
    leaves: NDArray[np.int64]
    """int64[h, p]: leaves by held vertices and pivots; `leaves[k, 0]` has single cliques of the size that is wanted."""
    held: NDArray[np.uint32]
    pivots: NDArray[np.uint32]
    """uint32[]: the vertices that are held, and those that are pivots, on the way to a node."""
    weights: NDArray[np.uint64]
    """uint64[p, chosen, limbs]: the ways to choose some of p pivots."""
    counts: NDArray[np.uint64]
    """uint64[limbs, num_vertices]: cliques of each vertex; of no vertex, where these are not wanted."""


@compiled
def add_number(counts, vertex, number):
    """Add a number to the limbs of a vertex."""
    limb = 0
    while number and limb < counts.shape[0]:
        total = counts[limb, vertex] + number
        counts[limb, vertex] = total
        number = np.uint64(total < number)
        limb += 1


@compiled
def add_weight(counts, vertex, weight):
    """Add a number of several limbs to those of a vertex."""
    carry = np.uint64(0)
    for limb in range(counts.shape[0]):
        addend = weight[limb] + carry
        total = counts[limb, vertex] + addend
        carry = np.uint64(addend < carry) + np.uint64(total < addend)
        counts[limb, vertex] = total


@compiled
def add_leaf(found, held, pivots):
    """Count a leaf: all cliques of the held vertices and any of the pivots."""
    if not found.counts.shape[1]:
        found.leaves[held, pivots] += 1
        return
    missing = found.k - held
    for i in range(held):
        add_weight(found.counts, found.held[i], found.weights[pivots, missing])
    if missing:
        for i in range(pivots):
            add_weight(found.counts, found.pivots[i], found.weights[pivots - 1, missing - 1])


@compiled
def add_open(found, held, pivots, vertices, edges, triangles):
    """Count the cliques of a node by what they have of its candidates: nothing, one, an edge or a triangle.

    The cliques of one size that miss at most three vertices: what they have besides is pivots.
    """
    missing = found.k - held
    if pivots:
        found.leaves[held, pivots] += 1
        if missing > 1:
            found.leaves[held + 1, pivots] += vertices
        if missing > 2:
            found.leaves[held + 2, pivots] += edges
    found.leaves[found.k, 0] += vertices if missing == 1 else edges if missing == 2 else triangles


@compiled
def enter(level, narrow, found):
    """Begin a level: find its pivot. False where nothing is left to do below it."""
    all_left, held, pivots = narrow.candidates[level], narrow.held[level], narrow.pivots[level]
    k, vertices = found.k, found.counts.shape[1] > 0
    size = popcount(all_left)
    missing = k - held
    if k:
        if pivots + size < missing:
            return False
        if missing == 0:
            add_leaf(found, held, 0)
            return False
        if missing == 1:
            _add_singles(all_left, size, held, pivots, narrow, found)
            return False
        if missing == 2 and not vertices:
            add_open(found, held, pivots, size, _edges(all_left, narrow.adjacent), 0)
            return False
    best, pivot, edges = -1, -1, 0
    universal = np.uint64(0)
    bits = all_left
    while bits:
        i, bits = pop_bit(bits)
        near = popcount(narrow.adjacent[i] & all_left)
        edges += near
        if near == size - 1:
            universal |= np.uint64(1) << np.uint64(i)
        elif near > best:
            best, pivot = near, i
    if missing == 3 and not vertices and edges <= 4 * (size - best) * size:
        add_open(found, held, pivots, size, edges // 2, _triangles(all_left, narrow.adjacent))
        return False
    bits = universal
    while bits:
        found.pivots[pivots] = narrow.ids[trailing_zeros(bits)]
        bits &= bits - np.uint64(1)
        pivots += 1
    all_left &= ~universal
    if not all_left:
        add_leaf(found, held, pivots)
        return False
    narrow.pivots[level] = pivots
    narrow.candidates[level] = all_left
    narrow.untried[level] = all_left & ~narrow.adjacent[pivot] & ~(np.uint64(1) << np.uint64(pivot))
    narrow.pivot[level] = pivot
    return True


@compiled
def _add_singles(all_left, size, held, pivots, narrow, found):
    """Count cliques that miss one vertex: a pivot or a candidate."""
    if not found.counts.shape[1]:
        add_open(found, held, pivots, size, 0, 0)
        return
    for i in range(held):
        add_number(found.counts, found.held[i], np.uint64(pivots + size))
    for i in range(pivots):
        add_number(found.counts, found.pivots[i], np.uint64(1))
    while all_left:
        add_number(found.counts, narrow.ids[trailing_zeros(all_left)], np.uint64(1))
        all_left &= all_left - np.uint64(1)


@compiled
def _edges(all_left, adjacent):
    found = np.int64(0)
    while all_left:
        i, all_left = pop_bit(all_left)
        found += popcount(adjacent[i] & all_left)
    return found


@compiled
def _triangles(all_left, adjacent):
    found = np.int64(0)
    while all_left:
        i, all_left = pop_bit(all_left)
        near = adjacent[i] & all_left
        while near:
            j, near = pop_bit(near)
            found += popcount(adjacent[j] & near)
    return found


@compiled
def search_narrow(held, pivots, narrow, found, stop_flag):
    """Find all leaves below a node, whose candidates are those of the first level.

    Parameters
    ----------
    held, pivots
        How many vertices of `found.held` and of `found.pivots` lead to the node.
    narrow : Narrow
        The candidates with their adjacency.
    found : Found
        Receives the leaves.
    stop_flag : uint8[1]
        The search ends early once this is set.
    """
    narrow.held[0], narrow.pivots[0] = held, pivots
    level = 0 if enter(0, narrow, found) else -1
    while level >= 0 and not stop_flag[0]:
        held, pivots, pivot = narrow.held[level], narrow.pivots[level], narrow.pivot[level]
        below = level + 1
        if pivot >= 0:
            narrow.pivot[level] = -1
            narrow.candidates[below] = narrow.candidates[level] & narrow.adjacent[pivot]
            narrow.candidates[level] &= ~(np.uint64(1) << np.uint64(pivot))
            narrow.held[below], narrow.pivots[below] = held, pivots + 1
            found.pivots[pivots] = narrow.ids[pivot]
        else:
            untried = narrow.untried[level]
            if not untried:
                level -= 1
                continue
            i = trailing_zeros(untried)
            bit = np.uint64(1) << np.uint64(i)
            narrow.untried[level] = untried ^ bit
            narrow.candidates[level] ^= bit
            narrow.candidates[below] = narrow.candidates[level] & narrow.adjacent[i]
            narrow.held[below], narrow.pivots[below] = held + 1, pivots
            found.held[held] = narrow.ids[i]
        if enter(below, narrow, found):
            level = below
