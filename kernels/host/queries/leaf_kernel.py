"""Count the ways to choose distinct vertices for the remaining query vertices, no two of which are adjacent.

Numbers saturate: see :mod:`longwall.kernels.host.queries.saturating`.
"""

import numpy as np

from longwall.kernels.host.queries.saturating import plus, times
from longwall.kernels.jit.bisect import stands_in
from longwall.kernels.jit.bits import pop_bit
from longwall.kernels.jit.compile import compiled

_ONE, _ZERO = np.uint64(1), np.uint64(0)


@compiled
def _free(array, begin, end, rivals, values):
    """Count the elements of the sorted array[begin:end] that none of the matched vertices `rivals` is."""
    free = end - begin
    while rivals:
        y, rivals = pop_bit(rivals)
        if stands_in(array[begin:end], values[y]):
            free -= 1
    return free


@compiled
def _count_kinds(members, size, begins, ends, in_arena, lists, arena, owner, marks, kinds):
    """Count, by the set of members whose candidates they are, the vertices that are not matched."""
    kinds[: 1 << size] = 0
    for i in range(size):
        s = members[i]
        for j in range(begins[s], ends[s]):
            marks[arena[j] if in_arena[s] else lists[j]] |= 1 << i
    for i in range(size):
        s = members[i]
        for j in range(begins[s], ends[s]):
            x = arena[j] if in_arena[s] else lists[j]
            if marks[x] and owner[x] < 0:
                kinds[marks[x]] += 1
            marks[x] = 0


@compiled
def _joined(first, size, kinds):
    """Return the members that share candidates with a member, directly or by others, as bits."""
    joined, before = 1 << first, 0
    while joined != before:
        before = joined
        for kind in range(1 << size):
            if kinds[kind] and kind & joined:
                joined |= kind
    return joined


@compiled
def _ways_of_kinds(whole, kinds, ways):
    """Count the ways to give each of the members `whole` a vertex of its own, given how many there are of each kind.

    Kinds are taken one after the other: `ways[T]` is the number of ways to serve the members T by those so far.
    """
    for taken in range(whole + 1):
        ways[taken] = 0
    ways[0] = 1
    for kind in range(1, whole + 1):
        if kinds[kind] == 0 or kind & ~whole:
            continue
        taken = whole
        while True:
            if ways[taken]:
                free = kind & ~taken
                served = free
                while served:
                    number, left, rest = ways[taken], kinds[kind], served
                    while rest:
                        number = times(number, max(left, 0))
                        left -= 1
                        rest &= rest - 1
                    ways[taken | served] = plus(ways[taken | served], number)
                    served = (served - 1) & free
            if taken == 0:
                break
            taken = (taken - 1) & whole
    return ways[whole]


@compiled
def _too_many(whole, kinds):
    """Return few members of `whole` that have fewer candidates together than they are: there are some (Hall)."""
    best, least = whole, np.int64(64)
    members = whole
    while members:
        wanted, rest = np.int64(0), members
        while rest:
            wanted += 1
            rest &= rest - 1
        if wanted < least:
            there = np.int64(0)
            for kind in range(1, whole + 1):
                if kind & members:
                    there += kinds[kind]
            if there < wanted:
                best, least = members, wanted
        members = (members - 1) & whole
    return best


@compiled
def ways_of_group(
    members, size, begins, ends, in_arena, rivals, values, lists, arena, owner, marks, scratch
):  # fmt: skip
    """Count the ways to match the query vertices of a group to distinct vertices that are not matched.

    Parameters
    ----------
    members, size
        The group: `members[:size]`.
    begins, ends, in_arena
        Where the candidates of each query vertex are: in `arena`, or in `lists`.
    rivals : uint64[k]
        For each query vertex, the matched ones that may be among its candidates.
    values
        What these are matched to.
    lists, arena
        See above.
    owner : int8[c]
        Which query vertex each position is matched to; -1: none.
    marks : uint8[c]
        Workspace, all zero; it is left all zero.
    scratch : int64[2, 256]
        Workspace.

    Returns
    -------
    ways : int
        The number.
    lacking : int
        Members, as bits, that have fewer candidates together than they are; 0 where there are ways.
    """
    for i in range(size):
        s = members[i]
        if in_arena[s]:
            free = _free(arena, begins[s], ends[s], rivals[s], values)
        else:
            free = _free(lists, begins[s], ends[s], rivals[s], values)
        if free == 0:
            return np.int64(0), 1 << i
        if size == 1:
            return np.int64(free), 0
    kinds = scratch[0]
    _count_kinds(members, size, begins, ends, in_arena, lists, arena, owner, marks, kinds)
    ways, left = np.int64(1), (1 << size) - 1
    while left and ways:
        first = 0
        while not left >> first & 1:
            first += 1
        part = _joined(first, size, kinds)
        left &= ~part
        if part == 1 << first:
            ways = times(ways, kinds[part])
            continue
        ways = times(ways, _ways_of_kinds(part, kinds, scratch[1]))
        if ways == 0:
            return ways, _too_many(part, kinds)
    return ways, 0
