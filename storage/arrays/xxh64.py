"""XXH64, a hash of 64 bits (its specification is public, at xxhash.com), of the segments of an array."""

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.compile import compiled
from longwall.storage.arrays.raw_memory import load_byte, load_word

_PRIME_1 = np.uint64(0x9E3779B185EBCA87)
_PRIME_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_PRIME_3 = np.uint64(0x165667B19E3779F9)
_PRIME_4 = np.uint64(0x85EBCA77C2B2AE63)
_PRIME_5 = np.uint64(0x27D4EB2F165667C5)
_SUM = np.uint64((0x9E3779B185EBCA87 + 0xC2B2AE3D27D4EB4F) % 2**64)  # of the first two
_MINUS = np.uint64(2**64 - 0x9E3779B185EBCA87)
_NONE = np.uint64(0)
STRIPE = 32
"""Bytes that are hashed at a time, in four lanes."""

UInt64s = npt.NDArray[np.uint64]
Lanes = tuple[np.uint64, np.uint64, np.uint64, np.uint64]


@compiled("i8, i8, i8, u8[::1]")
def hash_segments(address: int, nbytes: int, segment: int, digests: UInt64s) -> None:
    """Hash each `segment` bytes of memory, the last ones too where they are fewer, into uint64[segments]."""
    for at in range(0, nbytes, segment):
        size = min(segment, nbytes - at)
        lanes = _hash_stripes(_SUM, _PRIME_2, _NONE, _MINUS, address + at, size)
        digests[at // segment] = _end(lanes, size, address + at + size // STRIPE * STRIPE, size % STRIPE)


@compiled("u8[::1], i8, i8")
def hash_more(state: UInt64s, address: int, nbytes: int) -> np.uint64:
    """Hash the next bytes: whole stripes, but at the end.

    Parameters
    ----------
    state
        uint64[5]: the lanes, and how many bytes there were; zeros at the beginning.
    address, nbytes
        Where they are.

    Returns
    -------
    uint64
        The hash, if these were the last.
    """
    if state[4] == _NONE:
        state[0], state[1], state[3] = _SUM, _PRIME_2, _MINUS
    lanes = _hash_stripes(state[0], state[1], state[2], state[3], address, nbytes)
    state[0], state[1], state[2], state[3] = lanes
    state[4] += np.uint64(nbytes)
    return _end(lanes, int(state[4]), address + nbytes // STRIPE * STRIPE, nbytes % STRIPE)


@compiled
def _hash_stripes(one: np.uint64, two: np.uint64, three: np.uint64, four: np.uint64, at: int, nbytes: int) -> Lanes:
    """Hash whole stripes, and leave the rest."""
    for _ in range(nbytes // STRIPE):
        one = _round(one, load_word(at))
        two = _round(two, load_word(at + 8))
        three = _round(three, load_word(at + 16))
        four = _round(four, load_word(at + 24))
        at += STRIPE
    return one, two, three, four


@compiled
def _end(lanes: Lanes, total: int, at: int, left: int) -> np.uint64:
    """Return the hash of `total` bytes, of which `left` are no whole stripe."""
    end, mixed = at + left, _PRIME_5
    if total >= STRIPE:
        mixed = _rotate(lanes[0], 1) + _rotate(lanes[1], 7) + _rotate(lanes[2], 12) + _rotate(lanes[3], 18)
        for lane in lanes:
            mixed = (mixed ^ _round(_NONE, lane)) * _PRIME_1 + _PRIME_4
    mixed += np.uint64(total)
    while at + 8 <= end:
        mixed = _rotate(mixed ^ _round(_NONE, load_word(at)), 27) * _PRIME_1 + _PRIME_4
        at += 8
    if at + 4 <= end:
        half = load_byte(at) | load_byte(at + 1) << np.uint64(8)
        half |= load_byte(at + 2) << np.uint64(16) | load_byte(at + 3) << np.uint64(24)
        mixed = _rotate(mixed ^ half * _PRIME_1, 23) * _PRIME_2 + _PRIME_3
        at += 4
    while at < end:
        mixed = _rotate(mixed ^ load_byte(at) * _PRIME_5, 11) * _PRIME_1
        at += 1
    mixed = (mixed ^ mixed >> np.uint64(33)) * _PRIME_2
    mixed = (mixed ^ mixed >> np.uint64(29)) * _PRIME_3
    return mixed ^ mixed >> np.uint64(32)


@compiled
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _rotate(lane + word * _PRIME_2, 31) * _PRIME_1


@compiled
def _rotate(word: np.uint64, by: int) -> np.uint64:
    return word << np.uint64(by) | word >> np.uint64(64 - by)
