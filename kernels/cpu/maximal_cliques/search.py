"""Find the maximal cliques whose earliest vertices in the degeneracy order are in a range.

Below each vertex its later neighbours are the candidates, and its earlier neighbours are excluded (Eppstein, Löffler
and Strash, ISAAC 2010). Both become bitmaps over the candidates. More than 64 of these are searched as bitmaps of many
words, until 64 or fewer are left: those are numbered anew, and the rest is a narrow search.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.maximal_cliques.narrow import (  # noqa: F401 - two are named in a signature
    ALIVE,
    LENGTH,
    NONE,
    PEAK,
    ROOT,
    SOME,
    START,
    TOTAL,
    UNTRIED,
    WIDE,
    WORDS,
    Found,
    Narrow,
    P,
    X,
    emit,
    enter,
    has_room,
    lowest,
    note,
    pop_totals,
    push_totals,
    renumbered,
    search_narrow,
)
from longwall.kernels.interface.maximal_cliques import LIST, VERTICES
from longwall.kernels.interface.workspaces import NARROW
from longwall.kernels.jit.bits import pop_bit_of, popcount, trailing_zeros
from longwall.kernels.jit.compile import compiled

_SIZE = 5  # of a level's numbers, beside those of a narrow one: candidates when it began
WIDE_NUMBERS = 6
_ONE, _ZERO = np.uint64(1), np.uint64(0)


class Wide(NamedTuple):
    """The candidates of a wide search, and its stack.

    Attributes
    ----------
    ids : uint32[degeneracy]
        The candidates.
    adjacent : uint64[degeneracy, words]
        The candidates that each is adjacent to.
    excluded : uint64[wide_words]
        The candidates that each earlier neighbour is adjacent to, in as many words as the candidates take.
    order : int32[max_degree]
        The numbers of these rows, those of a level in front.
    sets : uint64[3, levels, words]
        Bitmaps of each level.
    numbers : int64[WIDE_NUMBERS, levels]
        Numbers of each level.
    place : uint8[degeneracy]
        The numbers of candidates in a narrow search.
    """

    ids: NDArray[np.uint32]
    adjacent: NDArray[np.uint64]
    excluded: NDArray[np.uint64]
    order: NDArray[np.int32]
    sets: NDArray[np.uint64]
    numbers: NDArray[np.int64]
    place: NDArray[np.uint8]


@compiled(
    "i8[::1], u4[::1], u4[::1], i8[::1], u4[::1], i8, i4[::1], Narrow(u4[::1], u8[::1], u8[::1], u8[:,::1], "
    "i8[:,::1]), none, Found(i8, i8, u4[::1], i8[::1], f8[::1], i8[:,::1], i8[::1], u4[::1]), i8[::1], u1[::1]",
    "i8[::1], u4[::1], u4[::1], i8[::1], u4[::1], i8, i4[::1], Narrow(u4[::1], u8[::1], u8[::1], u8[:,::1], "
    "i8[:,::1]), Wide(u4[::1], u8[:,::1], u8[::1], i4[::1], u8[:,:,::1], i8[:,::1], u1[::1]), Found(i8, i8, "
    "u4[::1], i8[::1], f8[::1], i8[:,::1], i8[::1], u4[::1]), i8[::1], u1[::1]",
)
def find_cliques(indptr, indices, rank, later_ptr, later, last, local, narrow, wide, found, state, stop_flag):
    """Find the maximal cliques whose earliest vertex is one of `state[ROOT]` to `last` - 1.

    Parameters
    ----------
    indptr, indices
        The graph.
    rank, later_ptr, later
        The degeneracy order.
    last
        Where the range of vertices ends.
    local : int32[num_vertices]
        Workspace, all zero; it is left all zero.
    narrow, wide, found
        Workspace, and what is wanted; `wide` is None where no vertex has more than 64 later neighbours.
    state : int64[STATES]
        Where the search is; before it begins both depths are -1.
    stop_flag : uint8[1]
        The kernel returns early once this is set; it also does where a list is full.
    """
    while True:
        ended = search_narrow(narrow, found, state, stop_flag)
        if wide is not None and ended:
            ended = search_wide(narrow, wide, found, state, stop_flag)
        if not ended:
            return
        v = state[ROOT]
        if state[TOTAL]:
            note(found, v - 1, state[TOTAL], state[PEAK])
        state[TOTAL] = state[PEAK] = 0
        if v >= last or stop_flag[0]:
            return
        size = later_ptr[v + 1] - later_ptr[v]
        if found.mode == LIST and not has_room(found, state, size + 1):
            return
        state[ROOT] = v + 1
        if size == 0 or size + 1 < found.min_size:
            continue
        found.clique[0] = v
        for i in range(size):
            local[later[later_ptr[v] + i]] = i + 1
        if size <= NARROW:
            _begin_narrow(indptr, indices, rank, later_ptr, later, v, size, local, narrow, found, state)
        elif wide is not None:
            _begin_wide(indptr, indices, rank, later_ptr, later, v, size, local, wide, found, state)
        for i in range(size):
            local[later[later_ptr[v] + i]] = 0


@compiled
def _begin_narrow(indptr, indices, rank, later_ptr, later, v, size, local, narrow, found, state):
    """Begin the search below a vertex with at most 64 later neighbours."""
    everyone = ~_ZERO >> np.uint64(64 - size)
    alive, best, best_row = NONE, np.int64(-1), _ZERO
    for at in range(indptr[v], indptr[v + 1]):
        x = indices[at]
        if rank[x] < rank[v]:
            row = _ZERO
            for j in range(later_ptr[x], later_ptr[x + 1]):
                place = local[later[j]]
                if place:
                    row |= _ONE << np.uint64(place - 1)
            if row == everyone:
                return
            if row:
                alive, best, best_row = _exclude(narrow, row, alive, best, best_row)
    begin = later_ptr[v]
    for i in range(size):
        narrow.ids[i] = later[begin + i]
        narrow.adjacent[i] = _ZERO
    for i in range(size):
        u = later[begin + i]
        row = _ZERO
        for j in range(later_ptr[u], later_ptr[u + 1]):
            place = local[later[j]]
            if place:
                row |= _ONE << np.uint64(place - 1)
                narrow.adjacent[place - 1] |= _ONE << np.uint64(i)
        narrow.adjacent[i] |= row
    enter(narrow, found, state, SOME, SOME, everyone, _ZERO, alive, best, best_row)


@compiled
def _exclude(narrow, row, alive, best, best_row):
    """Add the row of an excluding vertex; return the number of rows, and the one with the most candidates."""
    narrow.excluded[alive] = row
    common = popcount(row)
    if common > best:
        best, best_row = common, row
    return alive + 1, best, best_row


@compiled
def _begin_wide(indptr, indices, rank, later_ptr, later, v, size, local, wide, found, state):
    """Begin the search below a vertex with more than 64 later neighbours."""
    words = (size + 63) >> 6
    state[WORDS] = words
    begin, rows = later_ptr[v], NONE
    for at in range(indptr[v], indptr[v + 1]):
        x = indices[at]
        if rank[x] < rank[v]:
            for w in range(words):
                wide.excluded[rows * words + w] = _ZERO
            for j in range(later_ptr[x], later_ptr[x + 1]):
                place = local[later[j]] - 1
                if place >= 0:
                    wide.excluded[rows * words + (place >> 6)] |= _ONE << np.uint64(place & 63)
            wide.order[rows] = rows
            rows += 1
    for i in range(size):
        wide.ids[i] = later[begin + i]
        for w in range(words):
            wide.adjacent[i, w] = _ZERO
    for i in range(size):
        u = later[begin + i]
        for j in range(later_ptr[u], later_ptr[u + 1]):
            place = local[later[j]] - 1
            if place >= 0:
                wide.adjacent[i, place >> 6] |= _ONE << np.uint64(place & 63)
                wide.adjacent[place, i >> 6] |= _ONE << np.uint64(i & 63)
    for w in range(words):
        wide.sets[P, 0, w] = ~_ZERO
        wide.sets[X, 0, w] = _ZERO
    wide.sets[P, 0, words - 1] = ~_ZERO >> np.uint64((words << 6) - size)
    _enter_wide(wide, found, state, NONE, SOME, SOME, size, rows, words, -SOME)


@compiled
def _enter_wide(wide, found, state, level, known, length, size, alive, words, member):
    """Begin a level whose candidates and excluded candidates are in its bitmaps, or take its clique.

    Parameters
    ----------
    wide, found, state
        The search.
    level
        The level.
    known, length
        Vertices of the path that levels above have, and all of them.
    size
        Number of candidates.
    alive
        Rows of excluding vertices of the level above: those without `member` are left out.
    words
        Of a bitmap.
    member
        The candidate that was chosen; -1 at the root.
    """
    sets, adjacent = wide.sets, wide.adjacent
    count, best, best_row = NONE, np.int64(-1), np.int64(-1)
    for i in range(alive):
        row = np.int64(wide.order[i]) * words
        if member >= 0 and not wide.excluded[row + (member >> 6)] >> np.uint64(member & 63) & _ONE:
            continue
        common = np.int64(0)
        for w in range(words):
            common += popcount(wide.excluded[row + w] & sets[P, level, w])
        if common == size:
            return
        if common:
            wide.order[i] = wide.order[count]
            wide.order[count] = row // words
            count += 1
            if common > best:
                best, best_row = common, row
    alive = count
    most, pivot = best, np.int64(-1)  # a pivot that is no candidate is in best_row
    for w in range(words):
        rest = sets[X, level, w]
        while rest:
            u, rest = pop_bit_of(rest, w)
            common = _common(adjacent, u, sets, level, words)
            if common == size:
                return
            if common > most:
                most, pivot = common, u
    universal = np.int64(0)
    for w in range(words):
        sets[UNTRIED, level, w] = _ZERO
        rest = sets[P, level, w]
        while rest:
            u = (w << 6) + trailing_zeros(rest)
            common = _common(adjacent, u, sets, level, words)
            if common == size - 1:
                sets[UNTRIED, level, w] |= lowest(rest)
                found.clique[length + universal] = wide.ids[u]
                universal += 1
            elif common > most:
                most, pivot = common, u
            rest &= rest - _ONE
    if universal == size:
        emit(found, state, known, length + universal, wide.ids, _ZERO)
        return
    if universal:
        length += universal
        size -= universal
        alive, best_row, pivot = _absorb(wide, level, words, alive)
    for w in range(words):
        near = adjacent[pivot, w] if pivot >= 0 else wide.excluded[best_row + w]
        sets[UNTRIED, level, w] = sets[P, level, w] & ~near
    wide.numbers[ALIVE, level] = alive
    wide.numbers[LENGTH, level] = length
    wide.numbers[_SIZE, level] = size
    state[WIDE] = level
    if found.mode == VERTICES:
        wide.numbers[START, level] = known
        push_totals(state, wide.numbers, level)


@compiled
def _common(adjacent, u, sets, level, words):
    """Count the candidates of a level that a vertex is adjacent to."""
    common = np.int64(0)
    for w in range(words):
        common += popcount(adjacent[u, w] & sets[P, level, w])
    return common


@compiled
def _absorb(wide, level, words, alive):
    """Take the candidates in `UNTRIED` of a level, which joined the clique, out; leave those that exclude them.

    Returns
    -------
    alive : int
        Rows of excluding vertices.
    best_row, pivot : int
        The new pivot, in one of them; the other is -1.
    """
    sets, adjacent = wide.sets, wide.adjacent
    for w in range(words):
        sets[P, level, w] &= ~sets[UNTRIED, level, w]
    count, most, best_row, pivot = NONE, np.int64(-1), np.int64(-1), np.int64(-1)
    for i in range(alive):
        row = np.int64(wide.order[i]) * words
        common, covers = np.int64(0), True
        for w in range(words):
            bits = wide.excluded[row + w]
            covers &= sets[UNTRIED, level, w] & ~bits == _ZERO
            common += popcount(bits & sets[P, level, w])
        if covers and common:
            wide.order[i] = wide.order[count]
            wide.order[count] = row // words
            count += 1
            if common > most:
                most, best_row = common, row
    for w in range(words):
        rest = sets[X, level, w]
        while rest:
            u = (w << 6) + trailing_zeros(rest)
            covers = True
            for x in range(words):
                covers &= sets[UNTRIED, level, x] & ~adjacent[u, x] == _ZERO
            common = _common(adjacent, u, sets, level, words)
            if not covers or not common:
                sets[X, level, w] ^= lowest(rest)
            elif common > most:
                most, best_row, pivot = common, -1, u
            rest &= rest - _ONE
    for w in range(words):
        rest = sets[P, level, w]
        while rest:
            u, rest = pop_bit_of(rest, w)
            common = _common(adjacent, u, sets, level, words)
            if common > most:
                most, best_row, pivot = common, -1, u
    return count, best_row, pivot


@compiled
def search_wide(narrow, wide, found, state, stop_flag):
    """Go on with a wide search; return as :func:`search_narrow` does."""
    sets, numbers, words = wide.sets, wide.numbers, state[WORDS]
    while state[WIDE] >= 0:
        if stop_flag[0]:
            return False
        level = state[WIDE]
        w = 0
        while w < words and not sets[UNTRIED, level, w]:
            w += 1
        length = numbers[LENGTH, level]
        if w == words:
            if found.mode == VERTICES:
                pop_totals(found, state, numbers, level)
            state[WIDE] = level - 1
            continue
        if found.mode == LIST and not has_room(found, state, length + numbers[_SIZE, level]):
            return False
        bit = lowest(sets[UNTRIED, level, w])
        member = (w << 6) + trailing_zeros(bit)
        sets[UNTRIED, level, w] ^= bit
        sets[P, level, w] ^= bit
        size, any_excluded = np.int64(0), False
        for x in range(words):
            near = wide.adjacent[member, x]
            sets[P, level + 1, x] = sets[P, level, x] & near
            sets[X, level + 1, x] = sets[X, level, x] & near
            size += popcount(sets[P, level + 1, x])
            any_excluded |= sets[X, level + 1, x] != _ZERO
        sets[X, level, w] |= bit
        if length + 1 + size < found.min_size:
            continue
        found.clique[length] = wide.ids[member]
        alive = numbers[ALIVE, level]
        if size > NARROW:
            _enter_wide(wide, found, state, level + 1, length, length + 1, size, alive, words, member)
        elif size:
            _narrow_down(narrow, wide, found, state, level + 1, length, alive, words, member)
            if not search_narrow(narrow, found, state, stop_flag):
                return False
        elif not any_excluded and not _is_excluded(wide, alive, words, member):
            emit(found, state, length, length + 1, wide.ids, _ZERO)
    return True


@compiled
def _is_excluded(wide, alive, words, member):
    """Whether one of the first excluding rows has a candidate."""
    for i in range(alive):
        row = np.int64(wide.order[i]) * words
        if wide.excluded[row + (member >> 6)] >> np.uint64(member & 63) & _ONE:
            return True
    return False


@compiled
def _narrow_down(narrow, wide, found, state, level, length, alive, words, member):
    """Begin a narrow search with the candidates and the excluded ones of a level, of which there are 64 at most."""
    sets = wide.sets
    size = 0
    for w in range(words):
        rest = sets[P, level, w]
        while rest:
            u, rest = pop_bit_of(rest, w)
            wide.place[u] = size
            narrow.ids[size] = wide.ids[u]
            size += 1
    everyone = ~_ZERO >> np.uint64(64 - size)
    count, best, best_row = NONE, np.int64(-1), _ZERO
    for w in range(words):
        rest = sets[X, level, w]
        while rest:
            u, rest = pop_bit_of(rest, w)
            row = renumbered(wide.adjacent[u], NONE, sets, level, words, wide.place)
            if row == everyone:
                return
            if row:
                count, best, best_row = _exclude(narrow, row, count, best, best_row)
    for i in range(alive):
        begin = np.int64(wide.order[i]) * words
        if not wide.excluded[begin + (member >> 6)] >> np.uint64(member & 63) & _ONE:
            continue
        row = renumbered(wide.excluded, begin, sets, level, words, wide.place)
        if row == everyone:
            return
        if row:
            count, best, best_row = _exclude(narrow, row, count, best, best_row)
    for w in range(words):
        rest = sets[P, level, w]
        while rest:
            u, rest = pop_bit_of(rest, w)
            narrow.adjacent[wide.place[u]] = renumbered(wide.adjacent[u], NONE, sets, level, words, wide.place)
    enter(narrow, found, state, length, length + 1, everyone, _ZERO, count, best, best_row)
