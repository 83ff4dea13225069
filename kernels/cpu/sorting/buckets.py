"""Sort words by bringing those of a bucket together, a piece at a time, and then each bucket in a core's cache.

Pieces lie one behind the other in `area`; `places` says where the words of each bucket stand in each of them.
"""

import numpy as np
import numpy.typing as npt

from longwall.kernels.cpu.sorting.words import sort_digits, varying_bits
from longwall.kernels.jit.bisect import first_at_least
from longwall.kernels.jit.compile import Intrinsic, compiled

FINE_BITS = 11  # ranks below 2 to this power have a bin each, the bins of larger ones are wider by and by
DIGITS, DIGIT_BITS = 8, 9  # of a word
COLUMN_DIGITS, COLUMN_BITS = 3, 11


@Intrinsic
def _leading_zeros(_typing_context, word):  # noqa: ARG001 - Numba reads the signature
    """How many bits of a uint64 that is not zero are zero ahead of all others."""
    from llvmlite import ir
    from numba import types

    def generate(_context, builder, _signature, arguments):
        never_zero = ir.Constant(ir.IntType(1), 1)
        return builder.ctlz(arguments[0], never_zero)

    return types.uint64(types.uint64), generate


def bin_starts(ranks: int) -> npt.NDArray[np.int64]:
    """Return int64[bins]: the first rank of each bin of ranks: few enough for a table in a core's cache."""
    starts = [np.arange(min(ranks, 1 << FINE_BITS))]
    for length in range(FINE_BITS, max(FINE_BITS, (ranks - 1).bit_length())):
        starts.append(np.arange(1 << length, min(ranks, 2 << length), 2 << length - FINE_BITS))
    return np.concatenate(starts)


@compiled
def _bin(rank):
    """The bin of a rank: those of the ranks from 2^b on, of one length in bits, are half as many as 2^FINE_BITS."""
    shift = np.uint64(64 - FINE_BITS) - _leading_zeros(rank | np.uint64(1 << (FINE_BITS - 1)))
    return (shift << np.uint64(FINE_BITS - 1)) + (rank >> shift)


@compiled
def _begin(places):
    """Turn numbers of words, each one behind the place of its bucket, into where buckets begin."""
    for bucket in range(1, places.size):
        places[bucket] += places[bucket - 1]


@compiled
def _end(places, start):
    """Turn where buckets end into where they begin, `start` being where their piece does."""
    for bucket in range(places.size - 1, 0, -1):
        places[bucket] = places[bucket - 1] + start
    places[0] = start


@compiled("u8[::1], u8, u8, u2[::1], i8, u8[::1], i8[::1]")
def scatter_piece(words, low, shift, bucket_of, start, area, places):
    """Write a piece of words, those of a bucket together.

    Parameters
    ----------
    words : uint64[n]
        The words.
    low, shift : uint64
        Word `w` belongs to bucket `bucket_of[(w - low) >> shift]`.
    bucket_of : uint16[bins]
        See `shift`.
    start
        Where the piece begins in `area`.
    area : uint64[m]
        Takes the words.
    places : int64[buckets + 1]
        Takes where each bucket begins in `area`, and where the last one ends.
    """
    places[:] = 0
    for at in range(words.size):
        places[np.int64(bucket_of[(words[at] - low) >> shift]) + 1] += 1
    _begin(places)
    piece = area[start : start + words.size]
    for at in range(words.size):
        word = words[at]
        bucket = bucket_of[(word - low) >> shift]
        to = places[bucket]
        places[bucket] = to + 1
        piece[np.uint64(to)] = word
    _end(places, start)


@compiled("u8[::1], u8, u4[::1], u2[::1], u8[::1], i8, u8[::1], i8[::1]")
def scatter_arcs(edges, base, ranks, bucket_of, both, start, area, places):
    """Write both directions of a piece of edges as words of ranks, those of a bucket of rows together.

    Parameters
    ----------
    edges : uint64[n]
        The ends, each `base` more than its position, one in the high half and one in the low half.
    base : uint64
        See there.
    ranks : uint32[positions]
        Of the positions.
    bucket_of : uint16[bins]
        The bucket of the ranks of each bin, see `bin_starts`.
    both : uint64[2n]
        Workspace.
    start, area, places
        As of `scatter_piece`; the row is in the high half.
    """
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    # By itself: a core waits for several ranks at once then.
    for at in range(edges.size):
        u = np.uint64(ranks[(edges[at] >> half) - base])
        v = np.uint64(ranks[(edges[at] & mask) - base])
        both[2 * at] = u << half | v
        both[2 * at + 1] = v << half | u
    places[:] = 0
    for at in range(2 * edges.size):
        places[np.int64(bucket_of[_bin(both[at] >> half)]) + 1] += 1
    _begin(places)
    piece = area[start : start + 2 * edges.size]
    for at in range(2 * edges.size):
        arc = both[at]
        bucket = bucket_of[_bin(arc >> half)]
        to = places[bucket]
        places[bucket] = to + 1
        piece[np.uint64(to)] = arc
    _end(places, start)


@compiled
def _gather(area, places, bucket, words):
    """Copy the words of a bucket together, piece by piece; return their number."""
    count = 0
    for piece in range(places.shape[0]):
        first, last = places[piece, bucket], places[piece, bucket + 1]
        for at in range(first, last):
            words[count + at - first] = area[at]
        count += last - first
    return count


@compiled
def _length(bits):
    length = 0
    while bits:
        bits >>= np.uint64(1)
        length += 1
    return length


@compiled
def _sort(words, other, counts):
    """Sort words, which are not none; return whether the sorted ones are in `other`."""
    varying = varying_bits(words)
    low, high = _length(varying & np.uint64(0xFFFFFFFF)), _length(varying >> np.uint64(32))
    if low + high == 0:
        return False
    digits = (low + high + DIGIT_BITS - 1) // DIGIT_BITS
    bits = (low + high + digits - 1) // digits
    counts[:digits] = 0
    return sort_digits(words, other, low, bits, counts[:digits])


@compiled("u8[::1], i8[:,::1], i8, i8, u8[::1], u8[::1], i8[:,::1], u8[::1]")
def sort_distinct_buckets(area, places, first, last, words, other, counts, out):
    """Sort the words of consecutive buckets, one behind the other, each word once.

    Parameters
    ----------
    area : uint64[m]
        Words of all pieces.
    places : int64[pieces, buckets + 1]
        See `scatter_piece`.
    first, last
        The buckets: `first`, up to and without `last`.
    words, other : uint64[k]
        Workspace for the largest bucket.
    counts : int64[DIGITS, 2^DIGIT_BITS]
        Workspace.
    out : uint64[n]
        Takes the words; it has room for all of them.

    Returns
    -------
    int
        Distinct words.
    """
    found = 0
    for bucket in range(first, last):
        size = _gather(area, places, bucket, words)
        if size == 0:
            continue
        moved = _sort(words[:size], other[:size], counts)
        ordered = other[:size] if moved else words[:size]
        # Without branches: a word is overwritten by the next one if they are equal.
        before = ~ordered[0]
        for at in range(size):
            word = ordered[at]
            out[found] = word
            found += word != before
            before = word
    return found


@compiled("u8[::1], i8[:,::1], i8, i8, i8, i8, i8[::1], u8[::1], u8[::1], i8[:,::1], u4[::1], i8[::1]")
def sort_row_buckets(area, places, first, last, column_bits, first_row, cursors, words, other, counts, out, smaller):
    """Sort the words of consecutive buckets of rows by row and column; rows begin at known places.

    Parameters
    ----------
    area, places, first, last, words, other
        As of `sort_distinct_buckets`; a row is in one bucket.
    column_bits
        Columns are below 2 to this power.
    first_row
        The first row of these buckets.
    cursors : int64[rows]
        Where each row begins in `out`; overwritten.
    counts : int64[COLUMN_DIGITS, 2^COLUMN_BITS]
        Workspace.
    out : uint32[n]
        Takes the columns.
    smaller : int64[rows]
        Takes how many columns of each row are below it.
    """
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    digits = max(1, (column_bits + COLUMN_BITS - 1) // COLUMN_BITS)
    bits = (column_bits + digits - 1) // digits
    digit_mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    for bucket in range(first, last):
        size = _gather(area, places, bucket, words)
        counts[:digits] = 0
        for at in range(size):
            rest = words[at] & mask
            for digit in range(digits):
                counts[digit, rest & digit_mask] += 1
                rest >>= np.uint64(bits)
        source, target = words, other
        for digit in range(digits):
            starts, total = counts[digit], 0
            for value in range(np.int64(digit_mask) + 1):
                total, starts[value] = total + starts[value], total
            shift = np.uint64(digit * bits)
            for at in range(size):
                value = (source[at] >> shift) & digit_mask
                target[starts[value]] = source[at]
                starts[value] += 1
            source, target = target, source
        for at in range(size):
            row = (source[at] >> half) - np.uint64(first_row)
            to = cursors[row]
            cursors[row] = to + 1
            out[np.uint64(to)] = np.uint32(source[at] & mask)
    # Where the next row begins is where a row ends now.
    begin = 0
    for row in range(cursors.size):
        smaller[row] = first_at_least(out[begin : cursors[row]], first_row + row)
        begin = cursors[row]
