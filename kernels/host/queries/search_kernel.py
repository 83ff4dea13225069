"""Match the vertices of a query one by one in candidate lists, and count the rest.

The candidates of every query vertex that is not matched yet are kept: those that are adjacent to all its matched
neighbours. The next vertex is the one with the fewest (as DAF chooses, SIGMOD 2019). A search that leads to nothing
says which matched vertices are to blame: where the last one is not among them, its other candidates would lead to
nothing for the same reason, and are passed over (the failing sets of DAF; Prosser's conflict-directed backjumping).
"""

import numpy as np

from longwall.kernels.host.queries.leaf_kernel import ways_of_group
from longwall.kernels.host.queries.saturating import HUGE, plus, times
from longwall.kernels.jit.bisect import first_at_least, stands_in
from longwall.kernels.jit.bits import pop_bit, trailing_zeros
from longwall.kernels.jit.compile import compiled

ROOT, LAST, DEPTH, TOTAL, SATURATED = range(5)
"""Indices into the state: the next root, the end of the roots, the depth (-1: none), the number found, and 1 if that
number is a lower bound because an addend was saturated."""
_ONE, _ZERO = np.uint64(1), np.uint64(0)
_ALL = np.uint64(2**64 - 1)  # the blame of a search that has found something
_FEW = 4  # candidates that may all be taken by other query vertices, which is looked at then
_GALLOP = 16  # times as many elements: the shorter array's are searched for in the longer one
_STEP_SHIFT = 6  # reading 2^6 elements of lists takes as long as one candidate


@compiled
def _common(first, a, b, second, c, d, out, at, owner):
    """Write the common elements of two sorted arrays that are not matched.

    Returns
    -------
    at : int
        Where they end.
    takers : uint64
        The query vertices that others of them are matched to.
    """
    takers = _ZERO
    if (b - a) * _GALLOP < d - c:
        for i in range(a, b):
            x = first[i]
            step, high = 1, c
            while high < d and second[high] < x:
                c = high + 1
                high += step
                step <<= 1
            high = min(high, d)
            c += first_at_least(second[c:high], x)
            if c == d:
                break
            if second[c] == x:
                if owner[x] < 0:
                    out[at] = x
                    at += 1
                else:
                    takers |= _ONE << np.uint64(owner[x])
        return at, takers
    while a < b and c < d:
        x, y = first[a], second[c]
        if x == y:
            if owner[x] < 0:
                out[at] = x
                at += 1
            else:
                takers |= _ONE << np.uint64(owner[x])
        a += x <= y
        c += y <= x
    return at, takers


@compiled
def _takers(array, begin, end, owner):
    """Return the query vertices that all elements are matched to; none where one of them is not matched."""
    takers = _ZERO
    for i in range(begin, end):
        if owner[array[i]] < 0:
            return _ZERO
        takers |= _ONE << np.uint64(owner[array[i]])
    return takers


@compiled
def _rejecter(x, others, values, vertices, indptr, indices):
    """Return a matched query vertex of `others` whose vertex is adjacent to that of position x, as a bit; or none."""
    while others:
        y, others = pop_bit(others)
        u = vertices[values[y]]
        if stands_in(indices[indptr[u] : indptr[u + 1]], vertices[x]):
            return _ONE << np.uint64(y)
    return _ZERO


@compiled
def _narrow(
    u, x, top, unmatched, first_of, row_base, starts, lists, arena, owner, level, begin, end, in_arena, taken
):  # fmt: skip
    """Narrow the candidates of the unmatched neighbours of u, which is matched to position x.

    Returns
    -------
    top : int
        Where the arena is free then.
    done : uint64
        The neighbours that were narrowed.
    wiped : int
        The one that has no candidates left, which is the last of them; -1: all have some.
    work : int
        About the number of elements read.
    """
    left, done, work = unmatched, _ZERO, np.int64(0)
    while left:
        w, left = pop_bit(left)
        done |= _ONE << np.uint64(w)
        row = row_base[u, w] + x - first_of[u]
        a, z = starts[row], starts[row + 1]
        was = level[w]
        level[w] = was + 1
        if was == 0:
            begin[w, 1], end[w, 1], in_arena[w, 1] = a, z, 0
            taken[w, 1] = _takers(lists, a, z, owner)
            if taken[w, 1]:
                return top, done, w, work
        else:
            c, d = begin[w, was], end[w, was]
            begin[w, was + 1], in_arena[w, was + 1] = top, 1
            work += min(d - c, z - a) * _GALLOP if max(d - c, z - a) > min(d - c, z - a) * _GALLOP else d - c + z - a
            if d - c < z - a:
                if in_arena[w, was]:
                    top, takers = _common(arena, c, d, lists, a, z, arena, top, owner)
                else:
                    top, takers = _common(lists, c, d, lists, a, z, arena, top, owner)
            elif in_arena[w, was]:
                top, takers = _common(lists, a, z, arena, c, d, arena, top, owner)
            else:
                top, takers = _common(lists, a, z, lists, c, d, arena, top, owner)
            end[w, was + 1] = top
            taken[w, was + 1] = taken[w, was] | takers
        if begin[w, was + 1] == end[w, was + 1]:
            return top, done, w, work
    return top, done, -1, work


@compiled
def _exhausted(left, level, begin, end, in_arena, lists, arena, owner):
    """Find a query vertex whose few candidates are all matched to others; -1: there is none."""
    while left:
        w, left = pop_bit(left)
        at = level[w]
        if at == 0 or end[w, at] - begin[w, at] > _FEW:
            continue
        if in_arena[w, at]:
            takers = _takers(arena, begin[w, at], end[w, at], owner)
        else:
            takers = _takers(lists, begin[w, at], end[w, at], owner)
        if takers:
            return w, takers
    return -1, _ZERO


@compiled
def _widen(narrowed, level):
    """Undo `_narrow`."""
    while narrowed:
        level[trailing_zeros(narrowed)] -= 1
        narrowed &= narrowed - _ONE


@compiled
def _next_vertex(left, level, begin, end, weight):
    """Return the query vertex with the fewest candidates for its weight, of those that have a matched neighbour."""
    best, least = -1, 0.0
    while left:
        w, left = pop_bit(left)
        at = level[w]
        if at == 0:
            continue
        size = float(end[w, at] - begin[w, at]) / weight[w]
        if best < 0 or size < least:
            best, least = w, size
    return best


@compiled
def _blame(members, lacking, adjacent, begins, ends, in_arena, level, taken, lists, arena, owner):
    """Return the matched vertices for which some counted ones cannot be matched."""
    blame = _ZERO
    while lacking:
        i = trailing_zeros(np.uint64(lacking))
        lacking &= lacking - 1
        s = members[i]
        blame |= adjacent[s] | taken[s, level[s]]
        for j in range(begins[s], ends[s]):
            x = arena[j] if in_arena[s] else lists[j]
            if owner[x] >= 0:
                blame |= _ONE << np.uint64(owner[x])
    return blame


@compiled
def _ways_below(array, begin, end, below, base, owner):
    """Add up the ways to match a vertex to one of array[begin:end] that is not matched, and what hangs from it."""
    ways = np.int64(0)
    for i in range(begin, end):
        if owner[array[i]] < 0:
            ways = plus(ways, below[base + array[i]])
    return ways


@compiled
def _count_rest(
    ways, groups, sizes, adjacent, rivals, below_base, below, first_of, level, begin, end, in_arena, taken, ends_of,
    values, lists, arena, owner, marks, scratch,
):  # fmt: skip
    """Multiply `ways` by the number of ways to match the counted vertices.

    Returns
    -------
    ways : int
        The product.
    blame : uint64
        If the product is 0, the query vertices that are to blame for it.
    work : int
        About the number of elements read.
    """
    work = np.int64(0)
    for g in range(sizes.size):
        size = sizes[g]
        for i in range(size):
            s = groups[g, i]
            at = level[s]
            ends_of[0, s], ends_of[1, s], ends_of[2, s] = begin[s, at], end[s, at], in_arena[s, at]
            if size > 1 or below_base[s] >= 0:
                work += end[s, at] - begin[s, at]
        s = groups[g, 0]
        if below_base[s] >= 0:  # such a vertex is alone in its group
            array = arena if ends_of[2, s] else lists
            here = _ways_below(array, ends_of[0, s], ends_of[1, s], below, below_base[s] - first_of[s], owner)
            lacking = 1
        else:
            here, lacking = ways_of_group(
                groups[g], size, ends_of[0], ends_of[1], ends_of[2], rivals, values, lists, arena, owner, marks,
                scratch,
            )  # fmt: skip
        if here == 0:
            return (
                here,
                _blame(
                    groups[g], lacking, adjacent, ends_of[0], ends_of[1], ends_of[2], level, taken, lists, arena, owner
                ),
                work,
            )
        ways = times(ways, here)
    return ways, _ALL, work


@compiled(
    "u8[::1], u8, u8[::1], u8[::1], i8[:,::1], i8[::1], b1, i8[::1], u4[::1], i8[::1], i8[::1], i8[:,::1], "
    "i8[::1], i4[::1], i8, i8[::1], i8[::1], i8[::1], u8[:,::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], "
    "i8[::1], i8[::1], i8[::1], f8[::1], i8[:,::1], i8[:,::1], i8[:,::1], u8[:,::1], i8[:,::1], i4[::1], i1[::1], "
    "u1[::1], i8[:,::1], i8, i8"
)
def search(
    adjacent, cover, alike, rivals, groups, sizes, induced, indptr, indices, vertices, first_of, row_base, starts,
    lists, first_candidate, below_base, below, state, words, chosen, cursor, stop, from_arena, tops, carry, values,
    level, weight, begin, end, in_arena, taken, ends_of, arena, owner, marks, scratch, most, steps,
):  # fmt: skip
    """Continue the search below roots; the search is over once ``state[DEPTH]`` is -1 and no root is left.

    Parameters
    ----------
    adjacent : uint64[k]
        Neighbours of each query vertex.
    cover
        The query vertices that are matched one by one; ``chosen[0]`` is the first.
    alike : uint64[k]
        For each query vertex, those that may be matched to one of its candidates.
    rivals : uint64[k]
        For each of the counted ones, the vertices of `cover` that may be matched to one of its candidates.
    groups, sizes : int64[g, 8], int64[g]
        The others, by their labels.
    induced
        Whether non-edges of the query must be non-edges of the graph.
    indptr, indices
        The graph, which is read if `induced` is set.
    vertices, first_of, row_base, starts, lists
        The candidate lists; see :mod:`longwall.kernels.host.queries.lists_kernel`.
    first_candidate
        The index in `lists` of the first candidate of the root.
    below_base, below
        The ways to match the trees that hang from a candidate; see `CandidateSpace`.
    state : int64[5]
        See `ROOT`.
    words : uint64[2, k + 1]
        The matched query vertices in ``words[0, 0]``, and the blame of each depth.
    chosen, cursor, stop, from_arena, tops : int64[k + 1]
        For each depth its query vertex, the candidates that are left, and where the arena is free.
    carry : int64[k + 1]
        For each depth the ways to match the trees that hang from the vertices before it.
    values, level : int64[k]
        The position of each matched query vertex (-1: not matched); the matched neighbours of each other one.
    weight : float64[k]
        One more than the times that each query vertex was left without candidates; the largest weight is tried first.
    begin, end, in_arena : int64[k, k + 1]
        The candidates of each vertex, by the number of its matched neighbours.
    taken : uint64[k, k + 1]
        The query vertices whose images are excluded from these candidates.
    ends_of : int64[3, k]
        Workspace.
    arena : int32[size]
        Workspace: candidates that are adjacent to several matched vertices.
    owner : int8[c]
        The query vertex that each position is matched to; -1: none.
    marks : uint8[c]
        Workspace, all zero.
    scratch : int64[2, 256]
        Workspace.
    most
        The search ends once it has found this number, at most `HUGE`; so the total stays below ``2 * HUGE``.
    steps
        The search pauses after this number of candidates, or earlier if lists are long: 64 elements count as one.
    """
    depth, total, matched, saturated = state[DEPTH], state[TOTAL], words[0, 0], False
    blame = words[1]
    while steps > 0 and total < most:
        steps -= 1
        if depth < 0:
            if state[ROOT] == state[LAST]:
                break
            depth = 0
            cursor[0], stop[0] = first_candidate + state[ROOT], first_candidate + state[LAST]
            state[ROOT] = state[LAST]
            from_arena[0], tops[0], blame[0] = 0, 0, _ZERO
        u = chosen[depth]
        own = _ONE << np.uint64(u)
        if values[u] >= 0:  # what was below is done
            owner[values[u]] = -1
            values[u] = -1
            matched ^= own
            _widen(adjacent[u] & ~matched, level)
        if cursor[depth] == stop[depth]:
            reason = blame[depth]
            if reason != _ALL:
                reason = (reason | (adjacent[u] & matched) | taken[u, level[u]]) & ~own
        else:
            x = np.int64(arena[cursor[depth]]) if from_arena[depth] else np.int64(lists[cursor[depth]])
            cursor[depth] += 1
            ways = carry[depth]
            if below_base[u] >= 0:
                ways = times(ways, below[below_base[u] + x - first_of[u]])
                if ways == 0:
                    continue
            if owner[x] >= 0:
                blame[depth] |= _ONE << np.uint64(owner[x])
                continue
            if induced:
                strange = _rejecter(x, matched & ~adjacent[u], values, vertices, indptr, indices)
                if strange:
                    blame[depth] |= strange
                    continue
            top, narrowed, wiped, work = _narrow(
                u, x, tops[depth], adjacent[u] & ~matched, first_of, row_base, starts, lists, arena, owner, level,
                begin, end, in_arena, taken,
            )  # fmt: skip
            steps -= work >> _STEP_SHIFT
            if wiped >= 0:
                _widen(narrowed, level)
                weight[wiped] += 1.0
                blame[depth] |= (adjacent[wiped] & matched) | taken[wiped, level[wiped] + 1] | own
                continue
            matched |= own
            values[u] = x
            owner[x] = u
            wiped, takers = _exhausted(
                alike[u] & ~adjacent[u] & ~matched, level, begin, end, in_arena, lists, arena, owner
            )
            if wiped >= 0:
                weight[wiped] += 1.0
                blame[depth] |= (adjacent[wiped] & matched) | taken[wiped, level[wiped]] | takers
                continue
            left = cover & ~matched
            if left:
                depth += 1
                w = _next_vertex(left, level, begin, end, weight)
                at = level[w]
                chosen[depth], cursor[depth], stop[depth] = w, begin[w, at], end[w, at]
                from_arena[depth], tops[depth], blame[depth] = in_arena[w, at], top, _ZERO
                carry[depth] = ways
                continue
            ways, reason, work = _count_rest(
                ways, groups, sizes, adjacent, rivals, below_base, below, first_of, level, begin, end, in_arena, taken,
                ends_of, values, lists, arena, owner, marks, scratch,
            )  # fmt: skip
            steps -= work >> _STEP_SHIFT
            saturated |= ways == HUGE
            total += ways  # both are at most HUGE: see `most`
            if reason == _ALL or reason & own:
                blame[depth] |= reason
                continue
            depth += 1  # as if a deeper vertex had come to nothing for that reason
        # The vertex of this depth has no candidate left, for a reason; those that are not part of it are passed over.
        depth -= 1
        while depth >= 0:
            v = chosen[depth]
            if reason == _ALL or reason & (_ONE << np.uint64(v)):
                blame[depth] |= reason
                break
            owner[values[v]] = -1
            values[v] = -1
            matched ^= _ONE << np.uint64(v)
            _widen(adjacent[v] & ~matched, level)
            depth -= 1
    state[DEPTH], state[TOTAL], state[SATURATED] = depth, total, saturated
    words[0, 0] = matched
