"""Sort, merge and reduce columns of keys; see :mod:`longwall.kernels.interface.sorting`.

A table is three arrays: high words, low words, payload. What a layout has not is empty.
"""

import numpy as np

from longwall.kernels.cpu.jit import compiled

BLOCK = 1 << 14
"""Keys that are sorted together before blocks are merged: they and their copy stay in a core's cache."""


@compiled
def sort_table(high, low, payload, other_high, other_low, other_payload, starts, counts):
    """Sort a table, stably: blocks digit by digit, then pairs of them merged.

    Parameters
    ----------
    high, low, payload : uint64[n]
        The table.
    other_high, other_low, other_payload
        A second table of the same shape, for scratch.
    starts : int64[ceil(n / BLOCK) + 1]
        Scratch.
    counts : int64[256]
        Scratch.

    Returns
    -------
    bool
        Whether the sorted table is the second one.
    """
    n = low.size
    blocks = 0
    for first in range(0, n, BLOCK):
        last = min(first + BLOCK, n)
        a, b, c = high[first:last], low[first:last], payload[first:last]
        x, y, z = other_high[first:last], other_low[first:last], other_payload[first:last]
        moved = False
        for digit in range(8 if high.size == 0 else 16):
            word = digit // 8
            shift = np.uint64(8 * (digit % 8))
            if moved:
                done = _sort_digit(x, y, z, a, b, c, word, shift, counts)
            else:
                done = _sort_digit(a, b, c, x, y, z, word, shift, counts)
            moved ^= done
        if moved:
            _copy(x, 0, x.size, a, 0)
            _copy(y, 0, y.size, b, 0)
            _copy(z, 0, z.size, c, 0)
        starts[blocks] = first
        blocks += 1
    starts[blocks] = n
    return merge_lists(high, low, payload, other_high, other_low, other_payload, starts, blocks)


@compiled
def _sort_digit(a, b, c, x, y, z, word, shift, counts):
    """Order by eight bits of a word, stably; gives False, and moves nothing, where they are all the same."""
    mask = np.uint64(255)
    counts[:] = 0
    keys = b if word == 0 else a
    for i in range(keys.size):
        counts[(keys[i] >> shift) & mask] += 1
    if counts[(keys[0] >> shift) & mask] == keys.size:
        return False
    total = 0
    for digit in range(256):
        total, counts[digit] = total + counts[digit], total
    for i in range(keys.size):
        digit = (keys[i] >> shift) & mask
        to = counts[digit]
        counts[digit] = to + 1
        y[to] = b[i]
        if a.size:
            x[to] = a[i]
        if c.size:
            z[to] = c[i]
    return True


@compiled
def merge_lists(high, low, payload, other_high, other_low, other_payload, starts, lists):
    """Merge neighbouring sorted lists, pair by pair, until there is one.

    Parameters
    ----------
    high, low, payload, other_high, other_low, other_payload
        As in `sort_table`.
    starts : int64[lists + 1]
        Where the lists begin, and the last one ends; overwritten.
    lists
        Their number.

    Returns
    -------
    bool
        Whether the merged list is in the second table. Of equal keys, those of earlier lists come first.
    """
    moved = False
    while lists > 1:
        merged = 0
        for first in range(0, lists, 2):
            begin, middle = starts[first], starts[first + 1]
            end = starts[min(first + 2, lists)]
            if moved:
                _merge(other_high, other_low, other_payload, high, low, payload, begin, middle, end)
            else:
                _merge(high, low, payload, other_high, other_low, other_payload, begin, middle, end)
            starts[merged] = begin
            merged += 1
        starts[merged] = low.size
        lists = merged
        moved = not moved
    return moved


@compiled
def _merge(high, low, payload, to_high, to_low, to_payload, begin, middle, end):
    """Merge the lists begin:middle and middle:end of one table to begin:end of the other."""
    i, j, to = begin, middle, begin
    if high.size == 0 and payload.size == 0:
        # Without branches: which list is next cannot be foretold.
        while i < middle and j < end:
            x, y = low[i], low[j]
            second = y < x
            to_low[to] = y if second else x
            j += second
            i += not second
            to += 1
    elif high.size == 0:
        while i < middle and j < end:
            x, y = low[i], low[j]
            second = y < x
            to_low[to] = y if second else x
            to_payload[to] = payload[j if second else i]
            j += second
            i += not second
            to += 1
    else:
        while i < middle and j < end:
            second = high[j] < high[i] or (high[j] == high[i] and low[j] < low[i])
            at = j if second else i
            to_high[to] = high[at]
            to_low[to] = low[at]
            if payload.size:
                to_payload[to] = payload[at]
            j += second
            i += not second
            to += 1
    if i == middle:
        i = j
    last = i + end - to
    _copy(low, i, last, to_low, to)
    if high.size:
        _copy(high, i, last, to_high, to)
    if payload.size:
        _copy(payload, i, last, to_payload, to)


@compiled
def _copy(source, first, last, target, to):
    """Slices cannot be assigned: Numba would allocate."""
    for i in range(first, last):
        target[to + i - first] = source[i]


@compiled
def reduce_table(high, low, payload, count):
    """Bring equal neighbours of a sorted table together, in place.

    Parameters
    ----------
    high, low, payload : uint64[n]
        The table.
    count
        The payload becomes the number of equal keys; otherwise the sum of their payloads.

    Returns
    -------
    int
        Distinct keys; -1 if a sum does not fit int64, or a payload is negative.
    """
    limit = np.uint64(2**63 - 1)
    found = 0
    for i in range(low.size):
        amount = np.uint64(1) if count else payload[i]
        if amount > limit:
            return -1
        if found and low[found - 1] == low[i] and (high.size == 0 or high[found - 1] == high[i]):
            amount += payload[found - 1]
            if amount > limit:
                return -1
            payload[found - 1] = amount
        else:
            low[found] = low[i]
            if high.size:
                high[found] = high[i]
            payload[found] = amount
            found += 1
    return found
