"""Words of Philox (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011) and edges of R-MAT, compiled.

The words are those of `numpy.random.Philox`, in less time.
"""

from typing import Any

import numpy as np

from longwall.kernels.jit.compile import Intrinsic, compiled

_FIRST, _SECOND = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)  # Philox4x64's multipliers
_WEYL_FIRST, _WEYL_SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_ROUNDS = 10


@Intrinsic
def _product(typing: Any, left: Any, right: Any) -> Any:  # noqa: ARG001 - Numba's interface
    """Both halves of the product of two words, the upper one first: one multiplication, where two are twice as long."""
    from llvmlite import ir
    from numba import types

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(values[0], wide), builder.zext(values[1], wide))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))
        return context.make_tuple(builder, signature.return_type, (high, builder.trunc(product, ir.IntType(64))))

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), build


@compiled
def _four(seed, stream, counter):
    """The four words of a counter."""
    a, b, c, d = counter, np.uint64(0), np.uint64(0), np.uint64(0)
    for _ in range(_ROUNDS):
        high_a, low_a = _product(_FIRST, a)
        high_c, low_c = _product(_SECOND, c)
        a, b, c, d = high_c ^ b ^ seed, low_c, high_a ^ d ^ stream, low_a
        seed += _WEYL_FIRST
        stream += _WEYL_SECOND
    return a, b, c, d


@compiled
def _one(seed, stream, word, out, at):
    """Write one word."""
    a, b, c, d = _four(seed, stream, (word >> np.uint64(2)) + np.uint64(1))
    place = word & np.uint64(3)
    out[at] = a if place == 0 else b if place == 1 else c if place == 2 else d


@compiled("u8, u8, u8, u8[::1]")
def fill_words(seed, stream, start, out):
    """Write words from number `start` on, for a key of two words.

    Parameters
    ----------
    seed, stream : uint64
        The key.
    start : uint64
        The first word's number.
    out : uint64[n]
        Takes them.
    """
    at = 0
    while at < out.size and (start + np.uint64(at)) & np.uint64(3):
        _one(seed, stream, start + np.uint64(at), out, at)
        at += 1
    counter = ((start + np.uint64(at)) >> np.uint64(2)) + np.uint64(1)  # NumPy counts before it draws
    for four in range((out.size - at) // 4):
        a, b, c, d = _four(seed, stream, counter + np.uint64(four))
        out[at + 4 * four] = a
        out[at + 4 * four + 1] = b
        out[at + 4 * four + 2] = c
        out[at + 4 * four + 3] = d
    for last in range(at + (out.size - at) // 4 * 4, out.size):
        _one(seed, stream, start + np.uint64(last), out, last)


@compiled("u8, u8, i8, i8, i8, u8[::1], u4[::1], u8[::1], i8[::1], i8[::1]")
def draw_edges(seed, stream, length, start, scale, thresholds, permutation, words, src, dst):
    """Draw edges of R-MAT.

    Parameters
    ----------
    seed, stream : uint64
        The key of a block's words.
    length, start
        Edges of the block, and the first one that is wanted. Word `pair * length + edge` chooses the quadrants of an
        edge on two levels.
    scale
        Levels.
    thresholds : uint64[3]
        Of half a word: the quadrants.
    permutation : uint32[2^scale]
        Of the vertices.
    words : uint64[k]
        Workspace: this many edges are drawn at a time.
    src, dst : int64[n]
        Zeros; take the edges.
    """
    for low in range(0, src.size, words.size):
        high = min(low + words.size, src.size)
        for pair in range((scale + 1) // 2):
            fill_words(seed, stream, np.uint64(pair * length + start + low), words[: high - low])
            _descend(words[: high - low], thresholds, 2 * pair + 1 < scale, src[low:high], dst[low:high])
        for at in range(low, high):
            src[at] = permutation[src[at]]
            dst[at] = permutation[dst[at]]


@compiled
def _descend(words, thresholds, twice, src, dst):
    """Choose a quadrant by the low half of each word and, if `twice`, a quadrant of that by the high half."""
    a, b, c = thresholds[0], thresholds[1], thresholds[2]
    if twice:
        for at in range(words.size):
            x, y = words[at] & np.uint64(0xFFFFFFFF), words[at] >> np.uint64(32)
            below = np.int64(x >= b) << 1 | np.int64(y >= b)
            right = np.int64(x >= a) ^ np.int64(x >= b) ^ np.int64(x >= c)
            right = right << 1 | (np.int64(y >= a) ^ np.int64(y >= b) ^ np.int64(y >= c))
            src[at] = src[at] << 2 | below
            dst[at] = dst[at] << 2 | right
    else:
        for at in range(words.size):
            x = words[at] & np.uint64(0xFFFFFFFF)
            src[at] = src[at] << 1 | np.int64(x >= b)
            dst[at] = dst[at] << 1 | (np.int64(x >= a) ^ np.int64(x >= b) ^ np.int64(x >= c))


@compiled
def _leading(word, bits):
    return np.int64(word >> np.uint64(63 - bits) >> np.uint64(1))  # a shift by 64 is none


@compiled("u8[::1], i8, i8[::1], u8[::1], u4[::1]")
def scatter_words(words, bits, starts, scattered, places):
    """Bring words of the same leading bits together, stably.

    Parameters
    ----------
    words : uint64[n]
        The words.
    bits
        Leading bits.
    starts : int64[2^bits + 1]
        Zeros; takes where each bucket begins.
    scattered : uint64[n]
        Takes the words.
    places : uint32[n]
        Takes where they stood.
    """
    for at in range(words.size):
        starts[_leading(words[at], bits) + 1] += 1
    for bucket in range(1, starts.size):
        starts[bucket] += starts[bucket - 1]
    for at in range(words.size):
        bucket = _leading(words[at], bits)
        to = starts[bucket]
        starts[bucket] = to + 1
        scattered[to] = words[at]
        places[to] = at
    for bucket in range(starts.size - 1, 0, -1):
        starts[bucket] = starts[bucket - 1]
    starts[0] = 0
