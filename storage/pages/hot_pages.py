"""Which pages of the adjacency are on the device: the hottest ones, or (baseline) the most recently used.

This module only chooses; `paged_graph` moves the bytes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Moves:
    """The pages that have to move.

    Attributes
    ----------
    evict, admit : int64[k]
        Pages to evict from the device and to admit to it, ascending.
    """

    evict: NDArray[np.int64]
    admit: NDArray[np.int64]

    def __bool__(self) -> bool:
        return bool(self.evict.size or self.admit.size)


class HeatPolicy:
    """The pages that are on the device because they are hot.

    Parameters
    ----------
    num_pages
        Number of pages.

    Attributes
    ----------
    hot : bool[num_pages]
        The pages that are on the device once all moves are made; always the same array.
    """

    def __init__(self, num_pages: int):
        self.hot = np.zeros(num_pages, bool)

    @staticmethod
    def nbytes(num_pages: int) -> int:
        """Bytes that the pages' state takes, with the most that a choice needs."""
        return 64 * num_pages

    def choose(self, heat: NDArray[np.float64], capacity: int, cost: float = 0.0) -> Moves:
        """Choose the pages on the device: those with the most heat, less the cost of admitting them.

        Without a cost these are the hottest pages, as in GAMMA. With one, a page is admitted only if it is hotter by
        the cost than the page that is evicted for it, or has that much heat where there is room; no other choice has
        more heat on the device less the costs of the pages admitted.

        Among pages of equal worth those on the device stay, then the smaller number wins. A page without heat is never
        admitted, but stays where there is room.

        Parameters
        ----------
        heat : float64[num_pages]
            See :class:`longwall.storage.pages.access_heat.AccessHeat`.
        capacity
            Number of pages that the device has room for.
        cost
            Admission cost: heat that a page must have to be worth its move.
        """
        eligible = (heat > 0) & (heat >= cost)
        eligible |= self.hot
        chosen = _largest(heat + cost * self.hot, eligible, self.hot, capacity)
        return self.take(chosen)

    def take(self, wanted: Mask) -> Moves:
        """Have these pages (bool[num_pages]) on the device, and no others."""
        moves = Moves(np.flatnonzero(self.hot & ~wanted), np.flatnonzero(wanted & ~self.hot))
        self.hot[:] = wanted
        return moves

    def forget(self) -> None:
        """Drop all pages from the device."""
        self.hot[:] = False


class LruPolicy:
    """The pages that are on the device because kernels read them; the least recently used are evicted first.

    Parameters are those of `HeatPolicy`.
    """

    def __init__(self, num_pages: int):
        self._extensions = 0
        self._used = np.zeros(num_pages, np.int64)  # number of the last extension; 0: not on the device

    @staticmethod
    def nbytes(num_pages: int) -> int:
        """Bytes that the pages' state takes, with the most that a call needs."""
        return 64 * num_pages

    def touch(self, spatial: NDArray[np.uint64]) -> None:
        """Note an extension that reads, and so brings, the pages whose `spatial` (uint64[num_pages]) is not zero."""
        self._extensions += 1
        self._used[spatial > 0] = self._extensions

    def over(self, capacity: int) -> NDArray[np.int64]:
        """Evict the least recently used pages until `room` are left, and return them.

        They are ranges, int64[k, 2]: first, and one past the last. Among pages that were last used by the same
        extension the smaller number stays.
        """
        here = self._used > 0
        leaving = here & ~_largest(self._used, here, here, capacity)
        self._used[leaving] = 0
        return _ranges(leaving)


def _largest(keys: NDArray[Any], eligible: Mask, preferred: Mask, capacity: int) -> Mask:
    """Choose at most `room` eligible entries of the largest keys (>= 0), as a mask.

    Among equal keys preferred entries win, then the smaller number.
    """
    if np.count_nonzero(eligible) <= capacity:
        return eligible
    if capacity <= 0:
        return np.zeros(keys.size, bool)
    worth = np.where(eligible, keys, -1)
    least = np.partition(worth, keys.size - capacity)[keys.size - capacity]
    chosen: Mask = worth > least
    equal = eligible & (worth == least)
    for ties in (equal & preferred, equal & ~preferred):
        chosen[np.flatnonzero(ties)[: capacity - np.count_nonzero(chosen)]] = True
    return chosen


def _ranges(mask: Mask) -> NDArray[np.int64]:
    """The runs of True, as int64[k, 2]: first, and one past the last."""
    padded = np.zeros(mask.size + 2, bool)
    padded[1:-1] = mask
    return np.flatnonzero(padded[1:] != padded[:-1]).reshape(-1, 2)
