"""The search among at most 64 candidates: their sets are single words, and so are the rows of the excluded vertices.

Bron-Kerbosch with pivots (Tomita, Tanaka and Takahashi, TCS 2006) on a stack of its own. Excluded vertices that were
candidates before are a word, too; the others are a list of rows, the neighbours of each among the candidates, which is
partitioned in place: those that a level still has are at the front. Candidates that are adjacent to all others join the
clique at once, and where nothing is excluded and each candidate has at most one candidate that it is not adjacent
to, the cliques are counted without a search (a 2-plex: Wang, Yu and Long, SIGMOD 2024).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.maximal_cliques import COUNT, FINDER_LEVELS, LIST, VERTICES
from longwall.kernels.jit.bits import popcount, trailing_zeros
from longwall.kernels.jit.compile import compiled

ROOT, DEPTH, WIDE, WORDS, TOTAL, PEAK, ROWS, FILL = range(8)
"""Places of the state of a search: the next root, the levels of both stacks (-1: none), the words of a wide bitmap; for
counts per vertex the cliques of this root so far, and the largest of the level; the rows and ids that are listed."""
STATES = 8

P, UNTRIED, X = range(3)  # of a level's words: candidates, those that are still to be tried, excluded ones
ALIVE, LENGTH, START, _TOTAL, _PEAK = range(5)  # of a level's numbers: see `Narrow`
LEVELS = FINDER_LEVELS
_ONE, _ZERO = np.uint64(1), np.uint64(0)
# Typed, since Numba compiles a function again for a literal.
NONE, SOME = np.int64(0), np.int64(1)


class Narrow(NamedTuple):
    """The candidates of a narrow search, and its stack.

    Attributes
    ----------
    ids : uint32[64]
        The candidates.
    adjacent : uint64[64]
        The candidates that each is adjacent to.
    excluded : uint64[max_degree]
        The candidates that each vertex excludes, those of a level in front.
    sets : uint64[3, LEVELS]
        Words of each level.
    numbers : int64[5, LEVELS]
        Excluding rows of each level, the length of the path at its end and at its begin, and what was found before.
    """

    ids: NDArray[np.uint32]
    adjacent: NDArray[np.uint64]
    excluded: NDArray[np.uint64]
    sets: NDArray[np.uint64]
    numbers: NDArray[np.int64]


class Found(NamedTuple):
    """What is wanted, and where it goes.

    Attributes
    ----------
    mode
        `COUNT`, `VERTICES` or `LIST`.
    min_size
        Of the cliques that are wanted.
    clique : uint32[degeneracy + 1]
        The one that the search is at.
    sizes : int64[degeneracy + 2]
        Cliques by size.
    estimate : float64[1]
        Their number: `sizes` are exact where it is below 2**63.
    vertices : int64[3, num_vertices]
        For `VERTICES`, the cliques of each vertex and the size of its largest one; the last row is not written here.
    offsets : int64[rows + 1], members : uint32[room]
        For `LIST`: where the cliques end, and their vertices.
    """

    mode: int
    min_size: int
    clique: NDArray[np.uint32]
    sizes: NDArray[np.int64]
    estimate: NDArray[np.float64]
    vertices: NDArray[np.int64]
    offsets: NDArray[np.int64]
    members: NDArray[np.uint32]


@compiled
def lowest(word):
    """Return the lowest one bit of a word."""
    return word & ~(word - _ONE)


@compiled
def has_room(found, state, size):
    """Whether a clique of a size can be listed."""
    return state[ROWS] + 1 < found.offsets.size and state[FILL] + size <= found.members.size


@compiled
def note(found, vertex, times, size):
    """Count cliques for one of their vertices."""
    found.vertices[0, vertex] += times
    found.vertices[1, vertex] = max(found.vertices[1, vertex], size)


@compiled
def emit(found, state, known, length, ids, rest):
    """Take a maximal clique: the first `length` vertices of the path, and the candidates in the word `rest`.

    For counts per vertex the first `known` ones are left to their levels.
    """
    size = length + popcount(rest)
    if size < found.min_size:
        return
    found.sizes[size] += 1
    found.estimate[0] += 1.0
    if found.mode == COUNT:
        return
    if found.mode == VERTICES:
        state[TOTAL] += 1
        state[PEAK] = max(state[PEAK], size)
        for i in range(known, length):
            note(found, found.clique[i], SOME, size)
        while rest:
            note(found, ids[trailing_zeros(rest)], SOME, size)
            rest &= rest - _ONE
        return
    at = state[FILL]
    for i in range(length):
        found.members[at + i] = found.clique[i]
    at += length
    while rest:
        found.members[at] = ids[trailing_zeros(rest)]
        at += 1
        rest &= rest - _ONE
    state[FILL] = at
    state[ROWS] += 1
    found.offsets[state[ROWS]] = at


@compiled
def _emit_pairs(narrow, found, state, known, length, rest):
    """Take all cliques that choose one of each pair of candidates that are not adjacent: `rest` is all such pairs."""
    pairs = popcount(rest) >> 1
    size = length + pairs
    if size < found.min_size:
        return
    times = _ONE << np.uint64(pairs)
    found.sizes[size] += np.int64(times)
    found.estimate[0] += float(times)
    if found.mode == VERTICES:
        state[TOTAL] += np.int64(times)
        state[PEAK] = max(state[PEAK], size)
        for i in range(known, length):
            note(found, found.clique[i], np.int64(times), size)
        while rest:
            note(found, narrow.ids[trailing_zeros(rest)], np.int64(times >> _ONE), size)
            rest &= rest - _ONE


@compiled
def push_totals(state, numbers, level):
    """Begin a level: keep what was found before."""
    numbers[_TOTAL, level] = state[TOTAL]
    numbers[_PEAK, level] = state[PEAK]
    state[PEAK] = 0


@compiled
def pop_totals(found, state, numbers, level):
    """End a level: count what was found in it for the vertices of the path that joined it there."""
    found_here = state[TOTAL] - numbers[_TOTAL, level]
    if found_here:
        for i in range(numbers[START, level], numbers[LENGTH, level]):
            note(found, found.clique[i], found_here, state[PEAK])
    state[PEAK] = max(state[PEAK], numbers[_PEAK, level])


@compiled
def enter(narrow, found, state, known, length, candidates, excluded, alive, best, best_row):
    """Begin a level of a search, or take its cliques at once.

    Parameters
    ----------
    narrow, found, state
        The search.
    known, length
        Vertices of the path that levels above have, and all of them.
    candidates, excluded
        Words; there are candidates.
    alive
        Number of rows of excluding vertices, each with some of the candidates, none with all.
    best, best_row
        The most candidates that an excluding vertex is adjacent to, and its row.
    """
    adjacent = narrow.adjacent
    size = popcount(candidates)
    if length + size < found.min_size:
        return
    universal, pivot, most, least = _ZERO, _ZERO, np.int64(-1), np.int64(64)
    rest = candidates
    while rest:
        row = adjacent[trailing_zeros(rest)] & candidates
        common = popcount(row)
        if common == size - 1:
            universal |= lowest(rest)
        else:
            least = min(least, common)
            if common > most:
                most, pivot = common, row
        rest &= rest - _ONE
    if universal == candidates:
        emit(found, state, known, length, narrow.ids, candidates)
        return
    if universal:
        rest = universal
        while rest:
            found.clique[length] = narrow.ids[trailing_zeros(rest)]
            length += 1
            rest &= rest - _ONE
        candidates &= ~universal
        most -= popcount(universal)
        best, kept = np.int64(-1), _ZERO
        rest = excluded
        while rest:
            row = adjacent[trailing_zeros(rest)]
            if row & universal == universal and row & candidates:
                kept |= lowest(rest)
                common = popcount(row & candidates)
                if common > best:
                    best, best_row = common, row
            rest &= rest - _ONE
        excluded = kept
        count = NONE
        for i in range(alive):
            row = narrow.excluded[i]
            if row & universal == universal and row & candidates:
                narrow.excluded[i] = narrow.excluded[count]
                narrow.excluded[count] = row
                count += 1
                common = popcount(row & candidates)
                if common > best:
                    best, best_row = common, row
        alive = count
    if found.mode != LIST and alive == 0 and excluded == _ZERO and least == size - 2:
        _emit_pairs(narrow, found, state, known, length, candidates)
        return
    if best > most:
        pivot = best_row
    level = state[DEPTH] + 1
    state[DEPTH] = level
    narrow.sets[P, level] = candidates
    narrow.sets[UNTRIED, level] = candidates & ~pivot
    narrow.sets[X, level] = excluded
    narrow.numbers[ALIVE, level] = alive
    narrow.numbers[LENGTH, level] = length
    if found.mode == VERTICES:
        narrow.numbers[START, level] = known
        push_totals(state, narrow.numbers, level)


@compiled
def search_narrow(narrow, found, state, stop_flag):
    """Go on with a narrow search. Return whether it has ended; else the list is full, or it was interrupted."""
    sets, numbers, adjacent = narrow.sets, narrow.numbers, narrow.adjacent
    while state[DEPTH] >= 0:
        if stop_flag[0]:
            return False
        level = state[DEPTH]
        todo = sets[UNTRIED, level]
        length = numbers[LENGTH, level]
        if todo == _ZERO:
            if found.mode == VERTICES:
                pop_totals(found, state, numbers, level)
            state[DEPTH] = level - 1
            continue
        candidates, excluded = sets[P, level], sets[X, level]
        if found.mode == LIST and not has_room(found, state, length + popcount(candidates)):
            return False
        at = trailing_zeros(todo)
        bit = lowest(todo)
        near = adjacent[at]
        sets[UNTRIED, level] = todo ^ bit
        sets[P, level] = candidates ^ bit
        sets[X, level] = excluded | bit
        candidates &= near
        excluded &= near
        if length + 1 + popcount(candidates) < found.min_size:
            continue
        alive = numbers[ALIVE, level]
        found.clique[length] = narrow.ids[at]
        if candidates == _ZERO:
            maximal = excluded == _ZERO
            i = 0
            while maximal and i < alive:
                maximal = narrow.excluded[i] & bit == _ZERO
                i += 1
            if maximal:
                emit(found, state, length, length + 1, narrow.ids, candidates)
            continue
        best, best_row, dominated = np.int64(-1), _ZERO, False
        kept, rest = _ZERO, excluded
        while rest:
            row = adjacent[trailing_zeros(rest)]
            common = row & candidates
            if common:
                if common == candidates:
                    dominated = True
                    break
                kept |= lowest(rest)
                number = popcount(common)
                if number > best:
                    best, best_row = number, row
            rest &= rest - _ONE
        if dominated:
            continue
        count = NONE
        for i in range(alive):
            row = narrow.excluded[i]
            common = row & candidates
            if row & bit and common:
                if common == candidates:
                    dominated = True
                    break
                narrow.excluded[i] = narrow.excluded[count]
                narrow.excluded[count] = row
                count += 1
                number = popcount(common)
                if number > best:
                    best, best_row = number, row
        if not dominated:
            enter(narrow, found, state, length, length + 1, candidates, kept, count, best, best_row)
    return True


@compiled
def renumbered(row, begin, sets, level, words, place):
    """Return the candidates of a level that a row, from `begin` on, has, as they are numbered in a narrow search."""
    found = _ZERO
    for w in range(words):
        rest = row[begin + w] & sets[P, level, w]
        while rest:
            found |= _ONE << np.uint64(place[(w << 6) + trailing_zeros(rest)])
            rest &= rest - _ONE
    return found
