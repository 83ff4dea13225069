"""A graph on an engine whose memory does not hold it all: which pages of the adjacency are on the device, and when.

Before each extension the bytes that it will read of every page are known. They make the pages' heat (GAMMA section
IV), and the hottest pages that fit are copied to the device; the others are read over the host link. Only the bytes
are counted by the engine: they are a few KiB, which come to the host at once; all else is done there.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.engine import Engine, ShortOfMemory
from longwall.kernels.interface.graph_arrays import VERTEX_ARRAYS, Access, GraphArrays
from longwall.kernels.interface.pages import PageFrames, RowReads
from longwall.storage.pages.access_heat import AccessHeat
from longwall.storage.pages.heat_record import HeatRecord
from longwall.storage.pages.hot_pages import HeatPolicy, LruPolicy, Moves
from longwall.storage.pages.oriented_copy import OrientedCopy

Array = Any  # a NumPy or a CuPy array

PAGE_BYTES = 2 << 20  # of the pages of large graphs: in smaller ones managed memory moves at half of the rate
_LEAST_PAGE_BYTES = 4 << 10
_LEAST_PAGES = 256  # where pages are not the smallest: small graphs have budgets to match
_ARC_BYTES = 4
_LEVELS = 16  # that are recorded, at most: the levels of a pattern
_POOL_UNIT = 512  # bytes: the unit of allocations on a device
_MARKS = 8  # calls of `hold` whose pages may be kept
Range = tuple[int, int]
_COPY_SHARE = 0.25  # of a page's bytes: the admission cost, by which a page must be hotter than the one it displaces


def load_paged(
    engine: Engine,
    host: GraphArrays,
    access: Access,
    capacity: int,
    vertices: Collection[str] = VERTEX_ARRAYS,
    *,
    coming: OrientedCopy | None = None,
    buffers: int = 0,
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
    capacity
        Bytes of the device for the page cache, and for the state of the pages.
    vertices
        The arrays with an entry per vertex that are brought to the device.
    coming
        What fills the adjacency, if that is not there yet.
    buffers
        Bytes of the host for copies to the device.
    """
    arrays = engine.load(host, access, vertices, capacity=buffers)
    return replace(arrays, pages=GraphPages(engine, arrays, access, capacity, coming))


class GraphPages:
    """The pages of a graph, and the page cache on the device; see :class:`longwall.kernels.interface.pages.Pages`.

    Parameters
    ----------
    engine
        The engine.
    arrays
        The graph on the engine.
    access, capacity, coming
        See `load_paged`.

    Attributes
    ----------
    growth
        Bytes by which the page cache may exceed `capacity`.
    """

    def __init__(
        self, engine: Engine, arrays: GraphArrays, access: Access, capacity: int, coming: OrientedCopy | None = None
    ):
        self._engine, self._arrays, self._access, self._coming = engine, arrays, access, coming
        # The driver keeps managed memory on the device in blocks as large as the largest pages.
        self._page_bytes = PAGE_BYTES if access == "managed" else page_bytes(arrays.num_arcs)
        self.page_arcs = self._page_bytes // _ARC_BYTES
        self.staged = access != "managed" and engine.device.ablation.page_order
        number = _pages_of(arrays.num_arcs, self.page_arcs)
        # Page frames (or pages that may migrate on demand) before the cache grew, and now.
        self._base = self._capacity = min(max(capacity - state_bytes(arrays.num_arcs), 0) // self._page_bytes, number)
        self._heat, self._record = AccessHeat(number), HeatRecord(number)
        self._pages, self._used = HeatPolicy(number), LruPolicy(number)
        self._buffer: PageFrames | None = None  # made when the first page is admitted
        self._marks: deque[Any] = deque(maxlen=_MARKS)  # the kernels before each of the last calls of `hold`
        self._frames = np.empty(0, np.int64)  # the page in each frame, -1 where it is free
        self.growth, self._shrunk, self._chosen = 0, False, False
        self._tables: list[Array] = []  # two that take turns
        empty = self._page_table(self._frames)
        self._empty_table = engine.bring(empty, mapped=False) if self.staged or access == "adaptive" else None
        if access == "adaptive":
            # None is allocated while kernels have their arrays: in the pool, it would hold a whole freed block of them.
            self._tables = [engine.bring(np.zeros(1 + 3 * number, np.int64), mapped=False) for _ in range(2)]
        self.places: Array | None = self._empty_table

    @property
    def hot(self) -> NDArray[np.bool_]:
        """The pages in the page cache, bool[pages]; always the same array, on the host."""
        return self._pages.hot

    def prepare(self, level: int, reads: Sequence[RowReads]) -> None:
        """Choose the pages for the page cache in the next extension, and begin to copy them.

        A page is admitted only if it is hotter by a quarter of its bytes than the one that is evicted for it, or that
        hot where there is room. Heat is a weighted mean of the bytes that are about to be read of a page and of all
        that were, so at most what may be read of it if the run lasts as long again; admitting a page moves all of its
        bytes over the link.
        """
        spatial, heat = self._observe(reads)
        self._choose(heat)
        self._record.record(level, spatial, self.hot)

    def prepare_all(self, level: int, spatial: Callable[[], NDArray[np.uint64]]) -> None:
        """Choose the pages for all that a phase reads, unless that was done since the cache was emptied.

        Heat is the bytes that will be read: nothing of the phase is in the history.
        """
        self._wait()
        if not self._chosen:
            coming = spatial()
            self._choose(coming.astype(np.float64))
            self._chosen = True
            self._record.record(level, coming, self.hot)

    def hold(self, ranges: Sequence[Range], before: Sequence[Sequence[Range]] = ()) -> None:
        """Have the pages of ranges of arcs in the page cache, as many as fit; see `Pages`."""
        self._wait(max(-(-last // self.page_arcs) for _, last in ranges) * self.page_arcs)
        wanted, kept, hot = self._pages_of(ranges), 0, _bits(self.hot)
        for earlier in reversed(before):
            pages = self._pages_of(earlier)
            there = kept < len(self._marks) and not pages & ~hot
            if not there or (wanted | pages).bit_count() > self._capacity:
                break
            wanted, kept = wanted | pages, kept + 1
        chosen = _mask(wanted, self.hot.size)
        if wanted.bit_count() > self._capacity:
            chosen[np.flatnonzero(chosen)[self._capacity :]] = False
        self._chosen = False
        # Frames of all other pages than those that are kept may be filled while the kernels since those calls run.
        self._admit(lambda: self._pages.take(chosen), self._marks[-kept] if kept else None)
        if self._buffer is None:
            self._marks.clear()
        else:
            self._marks.append(self._buffer.mark())

    def most_to(self, arcs: Range, vertices: Range) -> int:
        """Return a bound of how many arcs of a range lead to a range of vertices; see `Pages`."""
        return arcs[1] - arcs[0] if self._coming is None else self._coming.most_to(arcs, vertices)

    def cut(self, arcs: Range, vertices: Range, most: int) -> Iterator[tuple[Range, Range]]:
        """Cut a range of arcs, and of the vertices that they lead to; see `Pages`."""
        if self._coming is not None:
            yield from self._coming.cut(arcs, vertices, most)
            return
        for first in range(*arcs, most):
            yield (first, min(first + most, arcs[1])), vertices

    @property
    def cache_arcs(self) -> int:
        """The arcs for which the page cache has room; 0 where no page is copied."""
        return self._capacity * self.page_arcs if self._access == "adaptive" else 0

    def settle(self) -> None:
        """Let kernels that are launched from now on wait for the pages that are being copied."""
        if self._buffer is not None:
            self._buffer.settle()

    def touch(self, level: int, reads: Sequence[RowReads]) -> None:
        """Record what will be read without the page cache."""
        spatial, _ = self._observe(reads)
        self._record.record(level, spatial, np.zeros_like(self.hot))

    def scan(self, first: int, last: int) -> None:
        """Record that a range of arcs is read once, in order: worth no move, but pages may migrate on demand."""
        if self._access == "managed":
            touched = np.zeros(self.hot.size, np.uint64)
            touched[first // self.page_arcs : -(-last // self.page_arcs)] = 1
            self._demand(touched)

    def shrink(self) -> bool:
        """Halve the page cache for good, and drop its pages. Return whether it held memory."""
        if self._buffer is None:
            return False
        self._drop()
        self._limit(self._capacity // 2)
        return True

    @property
    def may_grow_cache(self) -> bool:
        """Whether a larger page cache could be of use: not twice, and not after a `shrink`."""
        return self._access == "adaptive" and not (self.growth or self._shrunk) and self._capacity < self.hot.size

    def grow_cache(self, memory: int) -> int:
        """Let the page cache grow by up to `memory` bytes, until `shrink_cache`; return by how many it may.

        If it may, all its pages are dropped. Nothing is allocated before a page is admitted.
        """
        more = min(max(memory, 0) // self._page_bytes, self.hot.size - self._capacity)
        self.growth = more * self._page_bytes
        if more:
            self._drop()
        self._capacity += more
        return self.growth

    def shrink_cache(self) -> None:
        """Return to the size before `grow_cache`; all pages are dropped."""
        self._drop()
        self._capacity, self.growth = self._base, 0

    def write_heat(self, path: Path) -> None:
        """Write what every level read of every page; see :class:`longwall.storage.pages.heat_record.HeatRecord`."""
        self._record.write(path)

    def _wait(self, arcs: int | None = None) -> None:
        """Wait for a given number of arcs, from the first on; None: for all."""
        if self._coming is not None:
            self._coming.wait(arcs)

    def _pages_of(self, ranges: Sequence[Range]) -> int:
        """Return the pages of ranges of arcs, a bit for each: arrays would take ten times as long."""
        pages = 0
        for first, last in ranges:
            pages |= (1 << max(-(-last // self.page_arcs), first // self.page_arcs)) - (1 << first // self.page_arcs)
        return pages

    def _choose(self, heat: NDArray[np.float64]) -> None:
        self._marks.clear()  # kernels that are launched from now on read any page
        self._admit(lambda: self._pages.choose(heat, self._capacity, _COPY_SHARE * self._page_bytes))

    def _admit(self, choose: Callable[[], Moves], behind: Any = None) -> None:
        if self._access != "adaptive" or not self._capacity:
            return
        try:
            moves = choose()
            if moves:
                self._copy(moves, behind)
        except BaseException as error:  # an interrupt, too, must leave nothing half done
            self._forget()
            if self._buffer is not None or not isinstance(error, ShortOfMemory):
                raise
            self._limit(0)  # smaller work would not make the buffer smaller

    def _demand(self, spatial: NDArray[np.uint64]) -> None:
        """Send pages back before others migrate on demand; these may be sent back by the next call only."""
        self._used.touch(spatial)
        coming = int(np.count_nonzero(spatial))
        leaving = self._used.over(max(self._capacity, coming))
        self._engine.paging.send_back(self._arrays, np.minimum(leaving * self.page_arcs, self._arrays.num_arcs))

    def _observe(self, reads: Sequence[RowReads]) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """The bytes that will be read of every page, and its heat."""
        self._wait()
        spatial = self._engine.kernels.bytes_per_page(self._engine.device, self._arrays, reads, self.page_arcs)
        if self._access == "managed":
            self._demand(spatial)
        return spatial, self._heat.observe(spatial)

    def _copy(self, moves: Moves, behind: Any = None) -> None:
        if self._buffer is None:
            self._frames = np.full(self._capacity, -1)
            self._buffer = self._engine.paging.frames(self._arrays, self._capacity, self.page_arcs)
        leaves = np.zeros(self.hot.size + 1, bool)  # the last one: of a free frame, -1
        leaves[moves.evict] = True
        frames = np.where(leaves[self._frames], -1, self._frames)
        # Both ascend, so consecutive pages mostly get consecutive frames, and lists across two pages are in one piece.
        free = np.flatnonzero(frames < 0)[: moves.admit.size]
        if not moves.admit.size:
            # What was evicted is there until its frames are filled. To write a table for that, behind the kernels of
            # now, could come after the table of copies that wait for fewer kernels.
            self._frames = frames
            return
        frames[free] = moves.admit
        table, values = self._tables[0], self._page_table(frames)
        self.places = self._empty_table  # until the pages are copied, in case that fails
        self._buffer.fill((moves.admit, free), table, values, behind)
        # Kernels that were launched before may still read the other one. A view, another object each time: code that
        # keeps the last one sees that pages have moved.
        self._tables.reverse()
        self._frames, self.places = frames, table[: values.size]

    def _limit(self, capacity: int) -> None:
        """Limit the page cache to a number of pages from now on."""
        self._shrunk, self._capacity, self._base = True, capacity, min(self._base, capacity)

    def _forget(self) -> None:
        self._chosen = False
        self._pages.forget()
        self._frames[:] = -1
        self.places = self._empty_table

    def _drop(self) -> None:
        self._forget()
        if self._buffer is not None:
            self._buffer.close()
        self._buffer, self._frames = None, np.empty(0, np.int64)
        self._marks.clear()

    def _page_table(self, frames: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the values of `places`."""
        places = np.zeros(self.hot.size + 1, np.int64)
        places[0] = self.page_arcs.bit_length() - 1
        (taken,) = np.nonzero(frames >= 0)
        if self._buffer is not None:
            pages = frames[taken]
            places[1 + pages] = self._buffer.origin + (taken - pages) * self.page_arcs
        return places


def _bits(mask: NDArray[np.bool_]) -> int:
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


def _mask(bits: int, size: int) -> NDArray[np.bool_]:
    packed = np.frombuffer(bits.to_bytes(-(-size // 8), "little"), np.uint8)
    return np.unpackbits(packed, count=size, bitorder="little").view(np.bool_)


def page_bytes(num_arcs: int) -> int:
    """Return the bytes of a page of a given number of arcs, unless pages come to the device when they are touched."""
    size = PAGE_BYTES
    while size > _LEAST_PAGE_BYTES and _ARC_BYTES * num_arcs < _LEAST_PAGES * size:
        size //= 2
    return size


def frame_bytes(num_arcs: int, memory: int) -> int:
    """Return the bytes of as many page frames as fit into `memory`, for the pages of a given number of arcs at most."""
    size = page_bytes(num_arcs)
    return min(max(memory, 0) // size, _pages_of(num_arcs, size // _ARC_BYTES)) * size


def state_bytes(num_arcs: int) -> int:
    """Return the bytes of the device for the page tables of a number of arcs, and for what is read of each page."""
    number = _pages_of(num_arcs, page_bytes(num_arcs) // _ARC_BYTES)
    places, sums, copied = 8 * (number + 1), 16 * number, 16 * number
    # One page table is for an empty cache, and two take turns, with what is copied; staged lists have such tables, too.
    arrays = (places, sums, places + copied, places + copied)
    return sum(-(-size // _POOL_UNIT) * _POOL_UNIT for size in arrays)


def host_state_bytes(num_arcs: int) -> int:
    """Return the bytes of the host for the heat of the pages of a given number of arcs."""
    number = _pages_of(num_arcs, page_bytes(num_arcs) // _ARC_BYTES)
    state = AccessHeat.nbytes(number) + HeatPolicy.nbytes(number) + LruPolicy.nbytes(number)
    return state + HeatRecord.nbytes(number, _LEVELS) + 72 * (number + 1)  # sums as they come, page tables and frames


def _pages_of(num_arcs: int, page_arcs: int) -> int:
    return -(-num_arcs // page_arcs)
