"""Encode a column of a prefix tree as pages of Parquet: numbers of values (dictionary indices), in runs."""

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.jit.compile import compiled

_TABLE_BITS = 18
MOST_NUMBERS = 1 << _TABLE_BITS - 1
"""The most values of a dictionary: 1 MiB of ids."""
_LITERALS = 504  # numbers of a bit-packed run, at most: the header of 63 groups of 8 is one byte
_HEADER = 10  # bytes of the header and the number of a run, at most
_MULTIPLIER = 2654435769  # 2^32 over the golden ratio: Fibonacci hashing


def hash_table() -> NDArray[np.uint64]:
    """Return an empty table for `number_values`."""
    return np.zeros(1 << _TABLE_BITS, np.uint64)


def page_room(rows: int, width: int) -> int:
    """Return the most bytes of a page of numbers of `width` bits: runs of 8 or more, with bit-packed ones between."""
    return (rows // 8 + 2) * (width + 2 * _HEADER)


@compiled("u4[::1], u8[::1], u4[::1], i8, u4[::1]")
def number_values(values, table, distinct, known, numbers):
    """Number values in the order in which they first come.

    Parameters
    ----------
    values : uint32[n]
        The values.
    table : uint64[2^18]
        Hash table of the known values, with their numbers.
    distinct : uint32[MOST_NUMBERS]
        The known values, by number.
    known
        The number of known values.
    numbers : uint32[n]
        Receives the numbers.

    Returns
    -------
    int
        The number of known values, -1 if a dictionary has no room for all.
    """
    shift, mask = np.uint64(32 - _TABLE_BITS), np.uint64(table.size - 1)
    one, half, low = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)
    count = np.uint64(known)
    for i in range(values.size):
        value = np.uint64(values[i])
        slot = ((value * np.uint64(_MULTIPLIER)) & low) >> shift
        while table[slot] != 0 and table[slot] >> half != value:
            slot = (slot + one) & mask
        if table[slot] == 0:
            if count == distinct.size:
                return -1
            distinct[count] = values[i]
            count += one
            table[slot] = value << half | count
        numbers[i] = (table[slot] & low) - one
    return np.int64(count)


@compiled
def _put_varint(out, at, number):
    while number > 127:
        out[at] = number & 127 | 128
        at += 1
        number >>= 7
    out[at] = number
    return at + 1


@compiled
def _pack(numbers, begin, end, width, out, at):
    """Bit-pack numbers, with zeros after the last group of 8; return the end of the output."""
    last = at + (end - begin + 7) // 8 * width
    kept, bits, byte, wide = np.uint64(0), np.uint64(0), np.uint64(8), np.uint64(width)
    for number in numbers[begin:end]:
        kept |= np.uint64(number) << bits
        bits += wide
        while bits >= byte:
            out[at] = kept & np.uint64(255)
            at += 1
            kept >>= byte
            bits -= byte
    while at < last:
        out[at] = kept & np.uint64(255)
        at += 1
        kept = np.uint64(0)
    return at


@compiled("u4[::1], i8, u1[::1]")
def pack_numbers(numbers, width, out):
    """Encode numbers of `width` bits as one bit-packed run; return the bytes of `out` that it takes."""
    at = _put_varint(out, 0, (numbers.size + 7) // 8 << 1 | 1)
    return _pack(numbers, 0, numbers.size, width, out, at)


@compiled("u4[::1], i8[::1], i8, i8, i8, u4[::1], u1[::1]")
def pack_runs(numbers, ends, first, last, width, literals, out):
    """Encode rows `first` to `last` - 1, which repeat numbers; the rows of number i end before `ends[i]`.

    A run of 8 or more rows is a length and a number; the rows between such runs are bit-packed.

    Parameters
    ----------
    numbers, ends : uint32[n], int64[n]
        The numbers, from that of row `first` on.
    first, last, width
        The rows, and the bits of a number.
    literals : uint32[504]
        Workspace.
    out : uint8[page_room(last - first, width)]
        Receives the runs.

    Returns
    -------
    int
        The bytes of `out` that the runs take.
    """
    at, waiting, row, i = 0, 0, first, 0
    while row < last:
        end = min(ends[i], last)
        left = end - row
        while left:
            open_places = -waiting % 8
            if open_places == 0 and left >= 8:
                if waiting:
                    at = _pack(literals, 0, waiting, width, out, _put_varint(out, at, waiting // 8 << 1 | 1))
                    waiting = 0
                at = _put_varint(out, at, left << 1)
                for byte in range((width + 7) // 8):
                    out[at] = numbers[i] >> np.uint32(8 * byte) & np.uint32(255)
                    at += 1
                break
            taken = min(left, open_places if open_places else 8)
            for _ in range(taken):
                literals[waiting] = numbers[i]
                waiting += 1
            left -= taken
            if waiting == literals.size:
                at = _pack(literals, 0, waiting, width, out, _put_varint(out, at, waiting // 8 << 1 | 1))
                waiting = 0
        row = end
        i += 1
    if waiting:
        at = _pack(literals, 0, waiting, width, out, _put_varint(out, at, (waiting + 7) // 8 << 1 | 1))
    return at


def literals_room() -> NDArray[np.uint32]:
    """Return the workspace of `pack_runs`."""
    return np.empty(_LITERALS, np.uint32)
