"""A graph on an engine whose memory does not hold it all: which pages of the adjacency are on the device, and when.

Before each extension the bytes that it will read of every page are known. They make the pages' heat (GAMMA section
IV), and the hottest pages that fit are moved to the device; the others are read over the host link. Only the bytes
are counted by the engine: they are a few KiB, which come to the host at once; all else is done there.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.engine import VERTEX_ARRAYS, Access, Engine, GraphArrays
from longwall.kernels.frontier import Reads
from longwall.storage.access_heat import AccessHeat
from longwall.storage.heat_record import HeatRecord
from longwall.storage.hot_pages import HotPages, LastUsed, Ranges

Array = Any  # a NumPy or a CuPy array

PAGE_BYTES = 2 << 20  # smaller ones take as much of the device, and move at a tenth of the rate
_SLOT_BYTES = 4
_LEVELS = 16  # that are recorded, at most: the levels of a pattern
_POOL_UNIT = 512  # bytes: what a device's memory is given out in
_MOVE_SHARE = 0.25  # of a page's bytes, that a page must be hotter than the one it displaces


def load_paged(
    engine: Engine, host: GraphArrays, access: Access, room: int, vertices: Collection[str] = VERTEX_ARRAYS
) -> GraphArrays:
    """Bring a graph to an engine, page by page.

    Parameters
    ----------
    engine
        The engine.
    host
        The graph on the host.
    access
        Not ``"resident"``.
    room
        Bytes of the device for pages, and for what is known of them.
    vertices
        The arrays with an entry per vertex that are brought to the device.
    """
    arrays = engine.load(host, access, vertices)
    return replace(arrays, pages=GraphPages(engine, arrays, access, room))


class GraphPages:
    """Where the pages are; see :class:`longwall.kernels.engine.Pages`.

    Parameters
    ----------
    engine
        The engine.
    arrays
        The graph on the engine.
    access, room
        See `load_paged`.
    """

    slots = PAGE_BYTES // _SLOT_BYTES

    def __init__(self, engine: Engine, arrays: GraphArrays, access: Access, room: int):
        self._engine, self._arrays, self._access = engine, arrays, access
        self.staged = access != "managed" and engine.ablation.page_order
        number = _pages_of(arrays.num_slots, self.slots)
        self._room = max((room - state_bytes(arrays.num_slots)) // PAGE_BYTES, 0)
        self._heat, self._record = AccessHeat(number), HeatRecord(number)
        self._pages, self._used = HotPages(number), LastUsed(number)
        self.away: Array = engine.bring(np.zeros(number + 1, np.int32), mapped=False)
        if access != "managed":
            self._tell()

    @property
    def hot(self) -> NDArray[np.bool_]:
        """The pages that were moved to the device, bool[pages]; always the same array, on the host."""
        return self._pages.hot

    def prepare(self, level: int, reads: Sequence[Reads]) -> None:
        """Choose the pages that should be on the device for what comes next, and move them.

        A page enters only if it is hotter by a quarter of its bytes than the one that leaves for it, or that hot where
        there is room. Heat is a weighted mean of the bytes that are about to be read of a page and of all that were, so
        at most what may be read of it if the run goes on as long again; the move brings all of its bytes over the link.
        """
        spatial = self._engine.page_bytes(self._arrays, reads, self.slots)
        heat = self._heat.observe(spatial)
        if self._access == "adaptive":
            moves = self._pages.choose(heat, self._room, _MOVE_SHARE * PAGE_BYTES)
            if moves:
                self._move(moves.leave, to_device=False)
                self._move(moves.enter, to_device=True)
                self._tell()
        elif self._access == "managed":
            self._demand(spatial)
        self._record.record(level, spatial, self.hot)

    def scan(self, first: int, last: int) -> None:
        """Tell that a range of slots is read once, in order: worth no move, but it may bring pages by itself."""
        if self._access == "managed":
            touched = np.zeros(self.hot.size, np.uint64)
            touched[first // self.slots : -(-last // self.slots)] = 1
            self._demand(touched)

    def shrink(self) -> bool:
        """Give up half of the pages on the device, the coldest, for good; gives whether there were any."""
        held = self._pages.number
        if not held:
            return False
        self._room = held // 2
        self._move(self._pages.shrink(self._room), to_device=False)
        self._tell()
        return True

    def write_heat(self, path: Path) -> None:
        """Write what every level read of every page; see :class:`longwall.storage.heat_record.HeatRecord`."""
        self._record.write(path)

    def _demand(self, spatial: NDArray[np.uint64]) -> None:
        """Pages are about to come by themselves: send others back, but none of these, which the next call can send."""
        self._used.touch(spatial)
        coming = int(np.count_nonzero(spatial))
        self._move(self._used.over(max(self._room, coming)), to_device=False)

    def _tell(self) -> None:
        # A new array: what was launched before may still read the old one.
        away = np.zeros(self.hot.size + 1, np.int32)
        np.cumsum(~self.hot, out=away[1:])
        self.away = self._engine.bring(away, mapped=False)

    def _move(self, pages: Ranges, *, to_device: bool) -> None:
        slots = np.minimum(pages * self.slots, self._arrays.num_slots)
        self._engine.move_pages(self._arrays, slots, to_device=to_device)


def state_bytes(num_slots: int) -> int:
    """Bytes of the device that it takes to know where the pages of so many slots are, and what is read of them."""
    number = _pages_of(num_slots, PAGE_BYTES // _SLOT_BYTES)
    arrays = (4 * (number + 1), 4 * (number + 1), 16 * number)  # `away` twice, while it changes; sums
    return sum(-(-size // _POOL_UNIT) * _POOL_UNIT for size in arrays)


def host_state_bytes(num_slots: int) -> int:
    """Bytes of the host that it takes to know how hot the pages of so many slots are."""
    number = _pages_of(num_slots, PAGE_BYTES // _SLOT_BYTES)
    state = AccessHeat.nbytes(number) + HotPages.nbytes(number) + LastUsed.nbytes(number)
    return state + HeatRecord.nbytes(number, _LEVELS) + 24 * (number + 1)  # sums as they come, `away`


def _pages_of(num_slots: int, page_slots: int) -> int:
    return -(-num_slots // page_slots)
