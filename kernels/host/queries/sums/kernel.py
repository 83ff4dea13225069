"""Add up the matches of a query vertex by vertex, with a cache of sums by the images of a separator.

Each value is computed twice: modulo a number, and in floating point, for its magnitude and to see whether it is 0.
The floating-point value is at most `MOST_KNOWN`, so that no infinity is multiplied by 0.
"""

import numpy as np

from longwall.kernels.jit.bisect import first_at_least
from longwall.kernels.jit.compile import compiled

_GALLOP = 16  # times as many elements: the shorter array's are searched for in the longer one
_PROBES = 16  # places of the cache where a value may be
_NONE = np.int32(-1)  # in place of an image: one that no vertex of the part may be
_HASH = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
MOST_KNOWN = 1e300
"""The largest floating-point value: it stands for itself and every larger one."""
_IN_LISTS, _IN_ARENA, _IN_ALL = 0, 1, 2


@compiled
def _times(a, b, modulus):
    return a * b if modulus == 0 else a * b % modulus


@compiled
def _plus(a, b, modulus):
    return a + b if modulus == 0 else (a + b) % modulus


@compiled
def _common(first, a, b, second, c, d, out, at):
    """Write the common elements of two sorted arrays; return where they end."""
    if (b - a) * _GALLOP < d - c:
        for i in range(a, b):
            x = first[i]
            c += first_at_least(second[c:d], x)
            if c == d:
                break
            if second[c] == x:
                out[at] = x
                at += 1
        return at
    while a < b and c < d:
        x, y = first[a], second[c]
        if x == y:
            out[at] = x
            at += 1
        a += x <= y
        c += y <= x
    return at


@compiled
def _candidates(v, con_ptr, con_var, con_base, all_first, all_last, starts, lists, values, arena, capacity):
    """Find the candidates of v: those that its matched neighbours have in common.

    Returns
    -------
    begin, end : int
        Where they are.
    source : int
        In which array.
    """
    first, last = con_ptr[v], con_ptr[v + 1]
    if first == last:
        return all_first[v], all_last[v], _IN_ALL
    row = con_base[first] + values[con_var[first]]
    begin, end, shortest = starts[row], starts[row + 1], first
    for i in range(first + 1, last):
        row = con_base[i] + values[con_var[i]]
        if starts[row + 1] - starts[row] < end - begin:
            begin, end, shortest = starts[row], starts[row + 1], i
    if last - first == 1 or begin == end:
        return begin, end, _IN_LISTS
    source, at = _IN_LISTS, capacity[v]
    for i in range(first, last):
        if i != shortest:
            row = con_base[i] + values[con_var[i]]
            if source == _IN_LISTS:
                end = _common(lists, begin, end, lists, starts[row], starts[row + 1], arena, at)
            else:
                end = _common(arena, begin, end, lists, starts[row], starts[row + 1], arena, at)
            begin, source = at, _IN_ARENA
            if begin == end:
                break
    return begin, end, source


@compiled
def _taken(v, x, not_ptr, not_var, values):
    """Whether x is a vertex that v must not be."""
    taken = False
    for i in range(not_ptr[v], not_ptr[v + 1]):
        taken |= values[not_var[i]] == x
    return taken


@compiled
def _number_free(v, array, begin, end, not_ptr, not_var, values):
    """Count the elements of array[begin:end] that are none of those that v must not be."""
    free = end - begin
    for i in range(not_ptr[v], not_ptr[v + 1]):
        x = values[not_var[i]]
        known = False
        for j in range(not_ptr[v], i):
            known |= values[not_var[j]] == x
        if not known:
            at = begin + first_at_least(array[begin:end], x)
            if at < end and array[at] == x:
                free -= 1
    return free


@compiled
def _write_key(v, key_ptr, key_var, key_bits, kinds, values, key):
    """Write the images that the part below v depends on; return a number that is mixed of them."""
    mixed = np.uint64(0)
    for i in range(key_ptr[v], key_ptr[v + 1]):
        x = np.int32(values[key_var[i]])
        if key_bits[i] and not kinds[x] & key_bits[i]:
            x = _NONE
        key[i] = x
        mixed = (mixed ^ np.uint64(x + 2)) * _HASH
        mixed ^= mixed >> _SHIFT
    return np.int64(mixed >> np.uint64(1))


@compiled
def _find(v, mixed, epoch, key_ptr, key, cache_first, cache_mask, key_first, cache_keys):
    """Look for the part below v in the cache, in a few places beginning at one that the images choose.

    Returns
    -------
    slot : int
        Where it is or, where it is not there, its place: a free one, or else the first.
    found : bool
        Whether it is there.
    """
    begin, length, mask = key_ptr[v], key_ptr[v + 1] - key_ptr[v], cache_mask[v]
    for i in range(_PROBES):
        slot = (mixed + i) & mask
        at = key_first[v] + slot * (length + 1)
        if cache_keys[at] != epoch:
            return cache_first[v] + slot, False
        same = True
        for j in range(length):
            if cache_keys[at + 1 + j] != key[begin + j]:
                same = False
                break
        if same:
            return cache_first[v] + slot, True
    return cache_first[v] + (mixed & mask), False


@compiled
def _keep(slot, v, epoch, key_ptr, key, key_first, cache_first, cache_keys):
    """Write the key of the part below v to the cache."""
    length = key_ptr[v + 1] - key_ptr[v]
    at = key_first[v] + (slot - cache_first[v]) * (length + 1)
    cache_keys[at] = epoch
    for i in range(length):
        cache_keys[at + 1 + i] = key[key_ptr[v] + i]


@compiled(
    "i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], u8[::1], i8[::1], "
    "i8[::1], i8[::1], i8[::1], i8[::1], i4[::1], i8[::1], i8[::1], i4[::1], u8[::1], i8[::1], i8[::1], i8[::1], "
    "i8[::1], i8[::1], i8[::1], i8[::1], u8[::1], u8[::1], f8[::1], f8[::1], i4[::1], i4[::1], i4[::1], u8[::1], "
    "f8[::1], i4, u8, i8"
)
def add_up(
    parents, con_ptr, con_var, con_base, not_ptr, not_var, child_ptr, child_var, key_ptr, key_var, key_bits,
    cache_first, cache_mask, key_first, all_first, all_last, everything, capacity, starts, lists, kinds, state, values,
    cursor, stop, source, child_at, slots, sums, parts, large_sums, large_parts, key, arena, cache_keys, cache_sums,
    cache_large, epoch, modulus, steps,
):  # fmt: skip
    """Go on with a sum; it is complete once ``state[0]`` is -1.

    Vertices are numbered so that parents come first; 0 is the one whose candidates are the roots.

    Parameters
    ----------
    parents : int64[n]
        The parent of each vertex in the separator tree.
    con_ptr, con_var, con_base : int64
        What vertex v must be adjacent to: ``con_var[con_ptr[v]:con_ptr[v + 1]]``; where these have the image x, the
        candidates are row ``con_base + x`` of the candidate lists.
    not_ptr, not_var : int64
        What it must not be the same as, of those above it.
    child_ptr, child_var : int64
        Its children.
    key_ptr, key_var : int64
        Its separator.
    key_bits : uint64
        Where not 0, the image matters only if it may be one of these query vertices.
    cache_first, cache_mask, key_first : int64
        Where its part of the cache begins, and that of the keys; how many places there are, less 1. A mask of -1: none.
    all_first, all_last, everything : int64, int64, int32
        Where all candidates are, of vertices without a matched neighbour.
    capacity : int64
        Where its candidates are written to in the arena.
    starts, lists : int64, int32
        The candidate lists.
    kinds : uint64
        Which query vertices each position may be.
    state, values, cursor, stop, source, child_at, slots : int64
        What the sum is at: the current vertex; images, candidates, the next child, and the place in the cache of each.
    sums, parts : uint64[n]
        The sum over the candidates so far, and the product over the children so far.
    large_sums, large_parts : float64[n]
        The same in floating point.
    key, arena, cache_keys : int32
        Workspace.
    cache_sums, cache_large : uint64, float64
        The values in the cache.
    epoch : int32
        What the first word of a key in the cache is, else it is an old one: below -1, and another one for each term.
    modulus : uint64
        Values are modulo this number; 0: 2**64.
    steps
        The sum is put off after this number of candidates.
    """
    v = state[0]
    while v >= 0 and steps > 0:
        if values[v] >= 0 and child_at[v] < child_ptr[v + 1] and large_parts[v] > 0.0:
            c = child_var[child_at[v]]
            child_at[v] += 1
            slot = np.int64(-1)
            if cache_mask[c] >= 0:
                mixed = _write_key(c, key_ptr, key_var, key_bits, kinds, values, key)
                slot, found = _find(c, mixed, epoch, key_ptr, key, cache_first, cache_mask, key_first, cache_keys)
                if found:
                    parts[v] = _times(parts[v], cache_sums[slot], modulus)
                    large_parts[v] = min(large_parts[v] * cache_large[slot], MOST_KNOWN)
                    continue
            begin, end, where = _candidates(
                c, con_ptr, con_var, con_base, all_first, all_last, starts, lists, values, arena, capacity
            )
            if child_ptr[c] == child_ptr[c + 1]:
                if where == _IN_LISTS:
                    free = _number_free(c, lists, begin, end, not_ptr, not_var, values)
                elif where == _IN_ARENA:
                    free = _number_free(c, arena, begin, end, not_ptr, not_var, values)
                else:
                    free = _number_free(c, everything, begin, end, not_ptr, not_var, values)
                steps -= 1
                if slot >= 0:
                    _keep(slot, c, epoch, key_ptr, key, key_first, cache_first, cache_keys)
                    cache_sums[slot], cache_large[slot] = np.uint64(free), float(free)
                parts[v] = _times(parts[v], np.uint64(free), modulus)
                large_parts[v] = min(large_parts[v] * float(free), MOST_KNOWN)
                continue
            cursor[c], stop[c], source[c], slots[c] = begin, end, where, slot
            sums[c], large_sums[c] = np.uint64(0), 0.0
            v = c
            continue
        if values[v] >= 0:
            sums[v] = _plus(sums[v], parts[v], modulus)
            large_sums[v] = min(large_sums[v] + large_parts[v], MOST_KNOWN)
        x = np.int64(-1)
        while cursor[v] < stop[v]:
            at = cursor[v]
            cursor[v] += 1
            y = np.int64(
                lists[at] if source[v] == _IN_LISTS else arena[at] if source[v] == _IN_ARENA else everything[at]
            )
            if not _taken(v, y, not_ptr, not_var, values):
                x = y
                break
        steps -= 1
        values[v] = x
        if x >= 0:
            parts[v], large_parts[v], child_at[v] = np.uint64(1), 1.0, child_ptr[v]
            continue
        if v == 0:
            v = -1
            break
        if slots[v] >= 0:
            slot = slots[v]
            _write_key(v, key_ptr, key_var, key_bits, kinds, values, key)
            _keep(slot, v, epoch, key_ptr, key, key_first, cache_first, cache_keys)
            cache_sums[slot], cache_large[slot] = sums[v], large_sums[v]
        p = parents[v]
        parts[p] = _times(parts[p], sums[v], modulus)
        large_parts[p] = min(large_parts[p] * large_sums[v], MOST_KNOWN)
        v = p
    state[0] = v
