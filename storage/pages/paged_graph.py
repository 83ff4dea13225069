"""A graph on an engine whose memory does not hold it all: which pages of the adjacency are on the device, and when.

Before each extension the bytes that it will read of every page are known. They make the pages' heat (GAMMA section
IV), and the hottest pages that fit are copied to the device; the others are read over the host link. Only the bytes
are counted by the engine: they are a few KiB, which come to the host at once; all else is done there.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.engine import Engine, ShortOfMemory
from longwall.kernels.interface.frontier import RowReads
from longwall.kernels.interface.graph_arrays import VERTEX_ARRAYS, Access, GraphArrays
from longwall.kernels.interface.pages import PageFrames
from longwall.storage.pages.access_heat import AccessHeat
from longwall.storage.pages.heat_record import HeatRecord
from longwall.storage.pages.hot_pages import HeatPolicy, LruPolicy, Moves

Array = Any  # a NumPy or a CuPy array

PAGE_BYTES = 2 << 20
_SLOT_BYTES = 4
_LEVELS = 16  # that are recorded, at most: the levels of a pattern
_POOL_UNIT = 512  # bytes: what a device's memory is given out in
_COPY_SHARE = 0.25  # of a page's bytes, that a page must be hotter than the one it displaces


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
    """Where the pages are; see :class:`longwall.kernels.interface.pages.Pages`.

    Parameters
    ----------
    engine
        The engine.
    arrays
        The graph on the engine.
    access, room
        See `load_paged`.

    Attributes
    ----------
    lent
        Bytes that copies may have besides `room`.
    """

    page_arcs = PAGE_BYTES // _SLOT_BYTES

    def __init__(self, engine: Engine, arrays: GraphArrays, access: Access, room: int):
        self._engine, self._arrays, self._access = engine, arrays, access
        self.staged = access != "managed" and engine.device.ablation.page_order
        number = _pages_of(arrays.num_arcs, self.page_arcs)
        # Pages that may have copies, or that may come by themselves, before anything is lent; and now.
        self._base = self._room = min(max(room - state_bytes(arrays.num_arcs), 0) // PAGE_BYTES, number)
        self._heat, self._record = AccessHeat(number), HeatRecord(number)
        self._pages, self._used = HeatPolicy(number), LruPolicy(number)
        self._buffer: PageFrames | None = None  # made when the first page is copied
        self._owners = np.empty(0, np.int64)  # the page that has a copy in each place
        self.lent, self._gave_up = 0, False
        self._nowhere = self._tell(self._owners) if self.staged or access == "adaptive" else None
        self.places: Array | None = self._nowhere

    @property
    def hot(self) -> NDArray[np.bool_]:
        """The pages that have copies on the device, bool[pages]; always the same array, on the host."""
        return self._pages.hot

    def prepare(self, level: int, reads: Sequence[RowReads]) -> None:
        """Choose the pages of which copies should be on the device for what comes next, and begin to copy them.

        A page enters only if it is hotter by a quarter of its bytes than the one that leaves for it, or that hot where
        there is room. Heat is a weighted mean of the bytes that are about to be read of a page and of all that were, so
        at most what may be read of it if the run goes on as long again; a copy brings all of its bytes over the link.
        """
        spatial, heat = self._observe(reads)
        if self._access == "adaptive" and self._room:
            try:
                moves = self._pages.choose(heat, self._room, _COPY_SHARE * PAGE_BYTES)
                if moves:
                    self._copy(moves)
            except BaseException as error:  # an interrupt, too, must leave nothing half done
                self._forget()
                if self._buffer is not None or not isinstance(error, ShortOfMemory):
                    raise
                self._give_up(0)  # smaller work would not make the buffer smaller
        self._record.record(level, spatial, self.hot)

    def settle(self) -> None:
        """Let kernels that are launched from now on wait for the copies that were begun."""
        if self._buffer is not None:
            self._buffer.settle()

    def touch(self, level: int, reads: Sequence[RowReads]) -> None:
        """Tell what will be read where it is."""
        spatial, _ = self._observe(reads)
        self._record.record(level, spatial, np.zeros_like(self.hot))

    def scan(self, first: int, last: int) -> None:
        """Tell that a range of slots is read once, in order: worth no move, but it may bring pages by itself."""
        if self._access == "managed":
            touched = np.zeros(self.hot.size, np.uint64)
            touched[first // self.page_arcs : -(-last // self.page_arcs)] = 1
            self._demand(touched)

    def shrink(self) -> bool:
        """Give up half of the room for copies, for good, and all copies; gives whether any memory was held for them."""
        if self._buffer is None:
            return False
        unit = self._engine.paging.unit
        self._drop()
        self._give_up(self._room * PAGE_BYTES // 2 // unit * unit // PAGE_BYTES)
        return True

    @property
    def may_lend(self) -> bool:
        """Whether copies of more pages could be of use: not twice, and not after a `shrink`."""
        return self._access == "adaptive" and not (self.lent or self._gave_up) and self._room < self.hot.size

    def lend(self, memory: int) -> int:
        """Let copies have up to `memory` bytes more, until `give_back`; gives how many they may take.

        Where that is anything, all copies are forgotten; nothing is taken before a page is copied.
        """
        unit, missing = self._engine.paging.unit, (self.hot.size - self._room) * PAGE_BYTES
        self.lent = min(max(memory, 0) // unit, -(-missing // unit)) * unit
        if self.lent:
            self._drop()
        self._room = min(self._room + self.lent // PAGE_BYTES, self.hot.size)
        return self.lent

    def give_back(self) -> None:
        """Have only the room that there was before something was lent; all copies are forgotten."""
        self._drop()
        self._room, self.lent = self._base, 0

    def write_heat(self, path: Path) -> None:
        """Write what every level read of every page; see :class:`longwall.storage.pages.heat_record.HeatRecord`."""
        self._record.write(path)

    def _demand(self, spatial: NDArray[np.uint64]) -> None:
        """Pages are about to come by themselves: send others back, but none of these, which the next call can send."""
        self._used.touch(spatial)
        coming = int(np.count_nonzero(spatial))
        leaving = self._used.over(max(self._room, coming))
        self._engine.paging.send_back(self._arrays, np.minimum(leaving * self.page_arcs, self._arrays.num_arcs))

    def _observe(self, reads: Sequence[RowReads]) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """The bytes that will be read of every page, and its heat."""
        spatial = self._engine.kernels.bytes_per_page(self._engine.device, self._arrays, reads, self.page_arcs)
        if self._access == "managed":
            self._demand(spatial)
        return spatial, self._heat.observe(spatial)

    def _copy(self, moves: Moves) -> None:
        if self._buffer is None:
            self._owners = np.full(self._room, -1)
            self._buffer = self._engine.paging.frames(self._arrays, self._room, self.page_arcs)
        owners = self._owners.copy()
        owners[np.isin(owners, moves.leave)] = -1
        # Both ascend, so pages that follow each other mostly do so there, too, and lists in both are in one piece.
        free = np.flatnonzero(owners < 0)[: moves.enter.size]
        owners[free] = moves.enter
        places = self._tell(owners)
        self.places = self._nowhere  # until the copies are made, should anything go wrong
        if free.size:
            self._buffer.fill(moves.enter, free)
        self._owners, self.places = owners, places

    def _give_up(self, room: int) -> None:
        """Have that much room from now on."""
        self._gave_up, self._room, self._base = True, room, min(self._base, room)

    def _forget(self) -> None:
        self._pages.forget()
        self._owners[:] = -1
        self.places = self._nowhere

    def _drop(self) -> None:
        self._forget()
        if self._buffer is not None:
            self._buffer.close()
        self._buffer, self._owners = None, np.empty(0, np.int64)

    def _tell(self, owners: NDArray[np.int64]) -> Array:
        """An array for `places`, a new one: what was launched before may still read the old one."""
        places = np.zeros(self.hot.size + 1, np.int64)
        places[0] = self.page_arcs.bit_length() - 1
        (taken,) = np.nonzero(owners >= 0)
        if self._buffer is not None:
            pages = owners[taken]
            places[1 + pages] = self._buffer.origin + (taken - pages) * self.page_arcs
        return self._engine.bring(places, mapped=False)


def state_bytes(num_arcs: int) -> int:
    """Bytes of the device that it takes to know where the pages of so many slots are, and what is read of them."""
    number = _pages_of(num_arcs, PAGE_BYTES // _SLOT_BYTES)
    places, sums, copied = 8 * (number + 1), 16 * number, 16 * number
    # One of `places` is for no copies, and there are two more while it changes; what is copied is told in the same way.
    arrays = (3 * places, sums, 2 * copied)
    return sum(-(-size // _POOL_UNIT) * _POOL_UNIT for size in arrays)


def host_state_bytes(num_arcs: int) -> int:
    """Bytes of the host that it takes to know how hot the pages of so many slots are."""
    number = _pages_of(num_arcs, PAGE_BYTES // _SLOT_BYTES)
    state = AccessHeat.nbytes(number) + HeatPolicy.nbytes(number) + LruPolicy.nbytes(number)
    return state + HeatRecord.nbytes(number, _LEVELS) + 72 * (number + 1)  # sums as they come, places and their owners


def _pages_of(num_arcs: int, page_arcs: int) -> int:
    return -(-num_arcs // page_arcs)
