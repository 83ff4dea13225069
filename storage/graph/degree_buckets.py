"""Count degrees of many vertices in memory: ends that are counted together stay in a core's cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.compile import compiled
from longwall.storage.memory.reservations import BudgetExceeded
from longwall.storage.system.concurrency import core_count

if TYPE_CHECKING:
    from longwall.storage.sorting.scratch_arrays import Scratch

_POSITION_BITS, _MOST_BUCKETS = (
    15,
    2**9,
)  # positions that are counted together: two to this power, or more if many are left
_PIECES_A_CORE = 4
_END = 4  # bytes

Keys = npt.NDArray[np.uint64]
UInt32s = npt.NDArray[np.uint32]


def count_in_buckets(edges: Keys, low: int, table: UInt32s, scratch: Scratch) -> bool:
    """Count both ends of edges; return False, and count nothing, where memory is short.

    Parameters
    ----------
    edges : uint64[m]
        In ascending order, the smaller end in the high half; ends lie in [low, low + positions).
    low
        See there.
    table : uint32[positions]
        Zeros; takes how often each end occurs.
    scratch
        Has the memory, and cores.
    """
    shift = max(_POSITION_BITS, (len(table) - 1).bit_length() - _MOST_BUCKETS.bit_length() + 1)
    buckets = (len(table) - 1 >> shift) + 1
    pieces = min(len(edges), _PIECES_A_CORE * core_count())
    bounds = [len(edges) * piece // pieces for piece in range(pieces + 1)]
    try:
        reserved = scratch.host.reserve(_END * len(edges), "counting degrees")
    except BudgetExceeded:
        return False
    with reserved:
        ends, places = np.empty(len(edges), np.uint32), np.empty((pieces, buckets + 1), np.int64)
        starts = (np.arange(buckets, dtype=np.uint64) << np.uint64(shift)) + np.uint64(low)
        firsts: list[int] = [*np.searchsorted(edges, starts << np.uint64(32)).tolist(), len(edges)]

        def scatter(piece: int) -> None:
            first, last = bounds[piece], bounds[piece + 1]
            _scatter_ends(edges[first:last], np.uint64(low), np.uint64(shift), first, ends, places[piece])

        def count(bucket: int) -> None:
            own = table[bucket << shift : bucket + 1 << shift]
            base = low + (bucket << shift)
            _count_smaller(edges[firsts[bucket] : firsts[bucket + 1]], np.uint64(base), own)
            _count_larger(ends, places, bucket, np.uint64(bucket << shift), own)

        scratch.on_cores(scatter, range(pieces))
        scratch.on_cores(count, range(buckets))
    return True


@compiled("u8[::1], u8, u8, i8, u4[::1], i8[::1]")
def _scatter_ends(
    edges: Keys, low: np.uint64, shift: np.uint64, start: int, ends: UInt32s, places: npt.NDArray[np.int64]
) -> None:
    """Write the larger ends of a piece, less `low`, from `start` on, those of a bucket together; say where they are."""
    mask = np.uint64(0xFFFFFFFF)
    places[:] = 0
    for at in range(edges.size):
        places[np.int64(((edges[at] & mask) - low) >> shift) + 1] += 1
    places[0] = start
    for bucket in range(1, places.size):
        places[bucket] += places[bucket - 1]
    for at in range(edges.size):
        end = (edges[at] & mask) - low
        to = places[end >> shift]
        places[end >> shift] = to + 1
        ends[np.uint64(to)] = np.uint32(end)
    for bucket in range(places.size - 1, 0, -1):
        places[bucket] = places[bucket - 1]
    places[0] = start


@compiled("u8[::1], u8, u4[::1]")
def _count_smaller(edges: Keys, base: np.uint64, table: UInt32s) -> None:
    for at in range(edges.size):
        table[(edges[at] >> np.uint64(32)) - base] += np.uint32(1)


@compiled("u4[::1], i8[:,::1], i8, u8, u4[::1]")
def _count_larger(ends: UInt32s, places: npt.NDArray[np.int64], bucket: int, base: np.uint64, table: UInt32s) -> None:
    for piece in range(places.shape[0]):
        for at in range(places[piece, bucket], places[piece, bucket + 1]):
            table[np.uint64(ends[at]) - base] += np.uint32(1)
