"""Which pages of the adjacency are on the device: the hottest, or for the rival the last used.

Pages go and come as ranges, [first, last), of consecutive pages. Who moves the bytes is not this module's business.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = Any  # a NumPy or a CuPy array
Ranges = NDArray[np.int64]


@dataclass(frozen=True)
class Moves:
    """What has to move.

    Attributes
    ----------
    leave, enter : int64[k, 2]
        Ranges of pages that leave the device and that enter it, ascending, on the host; no two of one array touch.
    """

    leave: Ranges
    enter: Ranges


class HotPages:
    """The pages that are on the device because they are hot.

    Parameters
    ----------
    num_pages
        Number of pages.
    xp
        The module of all arrays: numpy or cupy.

    Attributes
    ----------
    hot : bool[num_pages]
        The pages that are on the device once all moves are made; always the same array.
    """

    def __init__(self, num_pages: int, xp: Any):
        self._xp = xp
        self._heat: Array = xp.zeros(num_pages)
        self.hot: Array = xp.zeros(num_pages, dtype=bool)

    @staticmethod
    def nbytes(num_pages: int) -> int:
        """Bytes that the pages' state takes, with the heat that is kept and the most that a choice needs."""
        return 64 * num_pages

    def choose(self, heat: Array, room: int) -> Moves:
        """Make the hottest pages those that are on the device.

        Among pages of equal heat those that are there already stay, then the smaller number wins. A page without
        heat never enters, but stays where there is room.

        Parameters
        ----------
        heat : float64[num_pages]
            See :class:`longwall.storage.access_heat.AccessHeat`; it is kept for `shrink`.
        room
            Number of pages that the device has room for.
        """
        self._heat = heat
        return self._become(_largest(heat, (heat > 0) | self.hot, self.hot, room, self._xp))

    @property
    def number(self) -> int:
        """Number of pages that are on the device."""
        return int(self._xp.flatnonzero(self.hot).size)

    def shrink(self, room: int) -> Ranges:
        """Give up the coldest pages by the heat that was last seen, until `room` are left; gives their ranges."""
        return self._become(_largest(self._heat, self.hot, self.hot, room, self._xp)).leave

    def _become(self, chosen: Array) -> Moves:
        moves = Moves(_ranges(self.hot & ~chosen, self._xp), _ranges(chosen & ~self.hot, self._xp))
        self.hot[:] = chosen
        return moves


class LastUsed:
    """The pages that are on the device because they were read there, which brought them; the longest unused leave.

    Parameters are those of `HotPages`.
    """

    def __init__(self, num_pages: int, xp: Any):
        self._xp = xp
        self._extensions = 0
        self._used: Array = xp.zeros(num_pages, dtype=xp.int64)  # number of the last extension; 0: not on the device

    @staticmethod
    def nbytes(num_pages: int) -> int:
        """Bytes that the pages' state takes, with the most that a call needs."""
        return 64 * num_pages

    def touch(self, spatial: Array) -> None:
        """An extension reads the pages whose `spatial` (uint64[num_pages]) is not zero: they are on the device."""
        self._extensions += 1
        self._used[spatial > 0] = self._extensions

    def over(self, room: int) -> Ranges:
        """Give up the pages that were not used for the longest time, until `room` are left; gives their ranges.

        Among pages that were last used by the same extension the smaller number stays.
        """
        here = self._used > 0
        leaving = here & ~_largest(self._used, here, here, room, self._xp)
        self._used[leaving] = 0
        return _ranges(leaving, self._xp)


def _largest(keys: Array, eligible: Array, preferred: Array, room: int, xp: Any) -> Array:
    """Choose at most `room` eligible entries of the largest keys (>= 0), as a mask.

    Among equal keys preferred entries win, then the smaller number.
    """
    size = int(keys.size)
    if room >= size:
        return eligible
    if room <= 0:
        return xp.zeros(size, dtype=bool)
    worth = xp.where(eligible, keys, -1)
    least = xp.sort(worth)[size - room]
    chosen = worth > least
    equal = eligible & (worth == least)
    for ties in (equal & preferred, equal & ~preferred):
        left = room - xp.cumsum(chosen)[-1]
        chosen |= ties & (xp.cumsum(ties) <= left)
    return chosen


def _ranges(mask: Array, xp: Any) -> Ranges:
    """The runs of True, as int64[k, 2] on the host: first, and one past the last."""
    padded = xp.zeros(int(mask.size) + 2, dtype=bool)
    padded[1:-1] = mask
    edges = xp.flatnonzero(padded[1:] != padded[:-1])
    host: Ranges = edges if xp is np else edges.get()
    return host.reshape(-1, 2)
