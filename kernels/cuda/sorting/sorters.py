"""Sorting chunks and merging runs on the device; see :mod:`longwall.kernels.interface.sorting`.

Every chunk or window under way has a thread, which waits for it, and buffers on the device: one is copied there while
another is worked on and a third comes back, so that the host link is used both ways. Buffers are made once: what is
locked on the host or allocated on the device takes as long as some windows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from longwall.kernels.cuda.device import Device
from longwall.kernels.cuda.runtime.compile import constants, kernel
from longwall.kernels.cuda.runtime.pinned_buffers import locked_column
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.sorting import WORD, Columns, KeyLayout, Method, SumOverflow

Array = Any  # a CuPy array

TILE = 4096
"""Keys that a block merges in shared memory."""
STRETCH = 1024
"""Keys that a warp reduces."""
_MOST_LISTS = 64
_MERGE, _REDUCE = "sorting/merge_keys.cu", "sorting/reduce_keys.cu"
_KERNELS = {_MERGE: "merge_tiles", _REDUCE: "reduce_keys"}
_SORTED, _MERGED = 2, 4  # chunks and windows under way on the device: one more than would do if all took their turn
_MERGE_THREADS = 512
_MERGE_BLOCKS = 3  # per multiprocessor: as many as it holds
_PAIRS = 6  # words of workspace of a key while keys are sorted that carry something: CuPy's copy, indices, both twice
_PIECES = 2  # words more where pairs are sorted: what CuPy's pool keeps of blocks of which a part is in use
_COUNTS = 1 / 16  # of a word of a key, besides: a radix sort's counts of its tiles, at most 1 KiB for 3,840 keys
_MOST_WINDOW = 256 << 20  # bytes of a column; longer windows only take longer to fill
_LEAST = 16  # keys of a chunk or a window
_ROUNDED = 64 << 10  # bytes that pools round up, and the small arrays of a chunk or window


def sort_header(layout: KeyLayout, *, tile: int, both_ways: bool = False, count: bool = False) -> str:
    """Write the ``generated.cuh`` of the kernels.

    Parameters
    ----------
    layout
        What is sorted.
    tile
        See `TILE`.
    both_ways
        Whether each pair of lists is searched both ways.
    count
        Whether keys are counted, rather than their payloads summed.
    """
    return constants(
        {
            "kWords": layout.words,
            "kPayload": int(layout.columns > layout.words),
            "kCount": int(count),
            "kHalf": int(not both_ways),
            "kTile": tile,
            "kStretch": STRETCH,
            "kMostLists": _MOST_LISTS,
            "kMergeThreads": _MERGE_THREADS,
        }
    )


class _DeviceWork(ABC):
    """What sorting and merging share: threads, columns on the device, locked columns on the host."""

    def __init__(self, device: Device, layout: KeyLayout, threads: int):
        self._device, self._xp, self._layout = device, device.xp, layout
        self._spare: SimpleQueue[Columns] = SimpleQueue()
        self._pool = ThreadPoolExecutor(threads, "sort")
        self._leaving = Lock()
        with device.faults():
            self._download = self._xp.cuda.Stream(non_blocking=True)

    def recycle(self, columns: Columns) -> None:
        """Keep locked memory for later."""
        self._spare.put([column.base for column in columns])  # type: ignore[misc]

    def reserve(self, count: int) -> None:
        """Prepare page-locked memory for the results of an amount of work."""
        with self._device.faults():
            for _ in range(count):
                self._spare.put(self._new_on_host())

    def close(self) -> None:
        """Wait for what has begun, begin nothing more, and free all memory."""
        self._pool.shutdown(cancel_futures=True)
        while not self._spare.empty():
            self._spare.get()
        self._drop()
        self._device.memory.release()  # who comes next takes other sizes

    @abstractmethod
    def _drop(self) -> None:
        """Let go of the columns on the device."""

    capacity: int

    def _compile(self, source: str, header: str) -> None:
        """Compile kernels before threads ask for them, each for itself."""
        with self._xp.cuda.Device(self._device.number):
            kernel(source, _KERNELS[source], header)

    def _new_on_host(self) -> Columns:
        return [locked_column(self._xp, self.capacity) for _ in range(self._layout.columns)]

    def _new_on_device(self, columns: int) -> list[Array]:
        return [self._xp.empty(self.capacity, self._xp.uint64) for _ in range(columns)]

    def _to_host(self, columns: Sequence[Array], made: Any = None) -> Columns:
        """Copy columns to the host, once they are made (an event; None: they are), and wait."""
        count = len(columns[0])
        try:
            whole = self._spare.get_nowait()
        except Empty:
            whole = self._new_on_host()
        with self._leaving:
            if made is not None:
                self._download.wait_event(made)
            if count:
                for own, column in zip(whole, columns, strict=True):
                    column.data.copy_to_host_async(own.ctypes.data, column.nbytes, self._download)
            left = self._download.record()
        left.synchronize()
        return [own[:count] for own in whole]

    def _launch(self, source: str, function: str, arguments: tuple[Any, ...], units: int, header: str) -> None:
        """Launch a kernel that has a warp for each of a number of units."""
        self._device.launch_over(source, function, units * 32, arguments, generated=header)

    def _high(self, columns: Sequence[Array]) -> Array:
        return columns[0]  # not read where keys have one word

    def _sort(self, columns: list[Array]) -> list[Array]:
        """Sort columns, stably; in place if there is one."""
        words = self._layout.words
        if len(columns) == 1:
            columns[0].sort()
            return columns
        order = columns[words - 1].argsort()
        if words == 2:
            order = order[columns[0][order].argsort()]
        return [column[order] for column in columns]

    def _reduce_header(self, *, count: bool) -> str:
        return sort_header(self._layout, tile=TILE, count=count)

    def _reduce(self, columns: Sequence[Array], out: Sequence[Array], *, count: bool, stream: Any) -> list[Array]:
        """Bring equal neighbours together, in `out`; waits for the stream."""
        xp, layout, length = self._xp, self._layout, len(columns[0])
        if not length:
            return [column[:0] for column in out]
        stretches = -(-length // STRETCH)
        counts = xp.empty(stretches, xp.int64)
        header, words = self._reduce_header(count=count), layout.words
        keys = (self._high(columns), columns[words - 1])
        self._launch(_REDUCE, "count_distinct", (*keys, length, stretches, counts), stretches, header)
        ends = xp.cumsum(counts)
        overflow = xp.zeros(1, xp.uint32)
        payload = sums = keys[1]  # not read where the layout has none
        if layout.columns > words:
            payload, sums = columns[words - 1 if count else words], out[words][:length]
            sums.fill(0)
        arguments = (*keys, payload, length, stretches, ends, self._high(out), out[words - 1], sums, overflow)
        self._launch(_REDUCE, "reduce_keys", arguments, stretches, header)
        stream.synchronize()  # a copy to pageable memory would keep other threads from the driver meanwhile
        if int(overflow[0]):
            raise SumOverflow
        found = int(ends[-1])
        return [column[:found] for column in out]


class CudaChunkSorter(_DeviceWork):
    """One chunk is filled, one is sorted, one is copied to the host."""

    def __init__(self, device: Device, layout: KeyLayout, host_memory: int, device_memory: int):
        super().__init__(device, layout, _SORTED)
        self.depth = _SORTED + 1  # who waits for the oldest waits for none that is still sorted
        self._plain = layout.given == 1
        reduced = layout.columns if layout.reduce != "none" else 0
        # The next chunk is sorted while the one before leaves.
        made = reduced if self._plain else layout.given + reduced
        sorting = 1 if self._plain else _PAIRS + _PIECES
        words = (_SORTED + 1) * layout.given + sorting + _COUNTS + 2 * made
        self.capacity = _fitting(words, device_memory, (self.depth + 1) * layout.columns, host_memory)
        if layout.reduce != "none":
            self._compile(_REDUCE, self._reduce_header(count=layout.reduce == "count"))
        self._lock = Lock()
        with device.faults():
            self._free: SimpleQueue[list[Array]] = SimpleQueue()
            for _ in range(_SORTED):
                self._free.put(self._new_on_device(layout.given))
            self._present = self._new_on_device(layout.given)
            self._stream = self._xp.cuda.Stream(non_blocking=True)
            self._xp.cuda.get_current_stream().synchronize()

    def put(self, at: int, columns: Sequence[Array]) -> None:
        """Copy columns to the present chunk."""
        with self._device.faults():
            stream = self._xp.cuda.get_current_stream()
            for own, column in zip(self._present, columns, strict=True):
                if not len(column):
                    continue
                if isinstance(column, np.ndarray):
                    _upload(column, own, at, stream)
                else:
                    own[at : at + len(column)] = column
            stream.synchronize()

    def sort(self, count: int) -> "Future[Columns]":
        """Sort the present chunk."""
        work = self._pool.submit(self._sort_chunk, self._present, count)
        self._present = self._free.get()  # of the chunk before the last, which may still be on its way
        return work

    def _sort_chunk(self, chunk: list[Array], count: int) -> Columns:
        try:
            with self._device.faults(), self._xp.cuda.Device(self._device.number):
                # One at a time, on one stream: pools keep what is freed for the stream that it was made on.
                with self._lock, self._stream:
                    made = self._sort([column[:count] for column in chunk])
                    if self._layout.reduce != "none":
                        out = self._new_on_device(self._layout.columns)
                        counting = self._layout.reduce == "count"
                        made = self._reduce(made, out, count=counting, stream=self._stream)
                    self._stream.synchronize()
                return self._to_host(made)
        finally:
            self._free.put(chunk)

    def _drop(self) -> None:
        self._present = []
        while not self._free.empty():
            self._free.get()


class _Slot(NamedTuple):
    """What a window has of the device."""

    table: list[Array]
    other: list[Array]


class _Tiles(NamedTuple):
    """How the lists of a window are divided; see ``merge_keys.cu``."""

    starts: Array
    first_checkpoints: Array
    spacing: int
    step: int
    checkpoints: int


class CudaRunMerger(_DeviceWork):
    """One window is copied to the device, one is merged, one is copied to the host.

    Each of these has a stream of its own, on which windows follow each other: with a stream for each window, copies of
    several windows share an engine by turns, all end late, and the other direction waits (10 ms a window on an H200
    instead of 5).
    """

    def __init__(self, device: Device, layout: KeyLayout, host_memory: int, device_memory: int, method: Method):
        super().__init__(device, layout, _MERGED)
        self.depth = _MERGED
        self._method, self._tile = method, TILE
        self.widest = min(_MOST_LISTS, self._tile // 4)
        self._header = sort_header(layout, tile=self._tile, both_ways=method == "naive")
        workspace = 1  # for cuts: less than a word for a key
        if method == "sort":
            workspace += 1 if layout.columns == 1 else _PAIRS + layout.columns + _PIECES
        words = self.depth * (2 * layout.columns + workspace)
        # Results, one that is looked at, and parts that come from files.
        host_words = (2 * self.depth + 2) * layout.columns
        self.capacity = min(_fitting(words, device_memory, host_words, host_memory), _MOST_WINDOW // WORD)
        self._slots: SimpleQueue[_Slot] = SimpleQueue()
        self._num_slots = 0
        self._arriving, self._merging = Lock(), Lock()  # windows are not mixed on a stream
        with device.faults():
            self._upload, self._work = (self._xp.cuda.Stream(non_blocking=True) for _ in range(2))

    def merge(self, sizes: Sequence[int], read: Callable[[], Iterator[Columns]]) -> "Future[Columns]":
        """Merge sorted parts of runs."""
        if self._num_slots < self.depth:
            with self._device.faults():
                self._compile_all()
                columns = self._layout.columns
                self._slots.put(_Slot(self._new_on_device(columns), self._new_on_device(columns)))
                self._xp.cuda.get_current_stream().synchronize()
            self._num_slots += 1
        return self._pool.submit(self._merge, sizes, read)

    def _compile_all(self) -> None:
        if self._method != "sort":
            self._compile(_MERGE, self._header)
        if self._layout.reduce != "none":
            self._compile(_REDUCE, self._reduce_header(count=False))

    def _merge(self, sizes: Sequence[int], read: Callable[[], Iterator[Columns]]) -> Columns:
        slot = self._slots.get()
        try:
            with self._device.faults(), self._xp.cuda.Device(self._device.number):
                try:
                    return self._merged(slot, sizes, read)
                except BaseException:
                    # Copies may still be under way from memory that is freed next.
                    for stream in (self._upload, self._work, self._download):
                        stream.synchronize()
                    raise
        finally:
            self._slots.put(slot)

    def _merged(self, slot: _Slot, sizes: Sequence[int], read: Callable[[], Iterator[Columns]]) -> Columns:
        starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        count = int(starts[-1])
        parts = list(read())  # until they are copied
        with self._arriving:
            for start, part in zip(starts.tolist(), parts, strict=False):
                for own, column in zip(slot.table, part, strict=True):
                    _upload(column, own, start, self._upload)
            # Later this would wait for the copies of the windows that come.
            tiles = self._tiles(starts) if self._method != "sort" else None
            arrived = self._upload.record()
        table, other = ([column[:count] for column in columns] for columns in slot)
        # Pools keep what is freed for the stream that it was made on: workspace is all of one stream.
        with self._merging, self._work:
            self._work.wait_event(arrived)
            if len(sizes) > 1:
                if tiles is None:
                    table = self._sort(table)
                else:
                    self._merge_lists(table, other, tiles)
                    table, other = other, table
                if self._layout.reduce != "none":
                    table = self._reduce(table, other, count=False, stream=self._work)
            merged = self._work.record()
        return self._to_host(table, merged)

    def _tiles(self, starts: Any) -> _Tiles:
        lists = len(starts) - 1
        # A tile has fewer keys than `step` checkpoints and one more of each list would make.
        spacing = max(1, self._tile // (4 * lists))
        checkpoints = np.concatenate([[0], np.cumsum(np.diff(starts) // spacing)])
        with self._upload:
            places, numbers = self._xp.asarray(starts), self._xp.asarray(checkpoints)
        return _Tiles(places, numbers, spacing, self._tile // spacing - lists, int(checkpoints[-1]))

    def _merge_lists(self, table: list[Array], out: list[Array], lists: _Tiles) -> None:
        words, number = self._layout.words, len(lists.starts) - 1
        tiles = lists.checkpoints // lists.step + 1
        cuts = self._xp.zeros(max(1, tiles - 1) * number, self._xp.uint32)
        keys = (self._high(table), table[words - 1])
        arguments = (*keys, lists.starts, number, lists.spacing, lists.step, lists.first_checkpoints, cuts)
        if tiles > 1:
            self._launch(_MERGE, "find_cuts", arguments, lists.checkpoints, self._header)
        self._device.launch(
            _MERGE,
            "merge_tiles",
            (*keys, table[-1], lists.starts, number, cuts, tiles, self._high(out), out[words - 1], out[-1]),
            blocks=min(tiles, self._device.multiprocessors * _MERGE_BLOCKS),
            threads=_MERGE_THREADS,
            shared=merge_bytes(self._layout, self._tile),
            generated=self._header,
        )

    def _drop(self) -> None:
        while not self._slots.empty():
            self._slots.get()


def merge_bytes(layout: KeyLayout, tile: int) -> int:
    """Bytes of shared memory that a block of ``merge_tiles`` takes."""
    numbers = tile + _MOST_LISTS + _MOST_LISTS + 1 + 32
    return WORD * (tile * layout.words + _MOST_LISTS + 1) + 4 * numbers + 2 * tile


def _fitting(words: float, memory: int, host_words: int, host: int) -> int:
    """Keys whose words are in both memories."""
    keys = min(int((memory - _ROUNDED) / (WORD * words)), host // (WORD * host_words))
    if keys < _LEAST:
        raise WorkspaceTooLarge(_ROUNDED + int(WORD * words * _LEAST))
    return keys


def _upload(column: Any, own: Array, at: int, stream: Any) -> None:
    column = np.ascontiguousarray(column)
    if len(column):
        own[at : at + len(column)].data.copy_from_host_async(column.ctypes.data, column.nbytes, stream)
