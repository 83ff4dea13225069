"""Sorting chunks and merging runs on the cores of the host; see :mod:`longwall.kernels.interface.sorting`."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue

import numpy as np

from longwall.kernels.cpu.device import CpuDevice
from longwall.kernels.cpu.sorting.words import sort_words
from longwall.kernels.interface.engine import host_faults
from longwall.kernels.interface.sorting import WORD, Array, Column, Columns, KeyLayout, Method, SumOverflow
from longwall.kernels.jit.compile import compiled

_LEAST_SHARE = 2**20  # bytes that are worth a thread
_LEAST_CHUNK, _LEAST_WINDOW = 16, 16  # keys
_COPIED = 1 << 18  # keys that a core copies at a time
_MANY_LISTS = 24  # lists of words that are sorted again: each doubling of their number costs a third of that
BLOCK = 1 << 14
"""Keys that are sorted together before blocks are merged: they and their copy stay in a core's cache."""
Table = tuple[Column, Column, Column]
"""High words, low words, payload. What a layout has not is empty."""


class _Threads:
    """A pool of threads, and tables for the kernels, each of `capacity` keys."""

    capacity: int

    def __init__(self, layout: KeyLayout, memory: int, threads: int):
        self._layout = layout
        self._spare: SimpleQueue[Columns] = SimpleQueue()
        self.depth = max(1, min(threads, memory // _LEAST_SHARE))
        self._pool = ThreadPoolExecutor(self.depth, "sort")

    def close(self) -> None:
        """Wait for what has begun, and begin nothing more."""
        self._pool.shutdown(cancel_futures=True)

    def reserve(self, count: int) -> None:
        """Memory of the host needs no preparation here."""

    def _take(self) -> Columns:
        """A table that is used again, or a new one: fresh memory comes page by page, which takes time."""
        try:
            return self._spare.get_nowait()
        except Empty:
            return [np.empty(self.capacity, np.uint64) for _ in range(self._layout.columns)]

    def recycle(self, columns: Columns) -> None:
        """Keep a table for later: the whole of it, if it was cut."""
        self._spare.put([column if column.base is None else column.base for column in columns])

    def _table(self, columns: Columns) -> Table:
        """Columns in the kernels' order, empty where the layout has none."""
        nothing = np.empty(0, np.uint64)
        words = self._layout.words
        return (
            columns[0] if words == 2 else nothing,
            columns[words - 1],
            columns[words] if self._layout.columns > words else nothing,
        )

    def _reduced(self, columns: Columns, *, count: bool) -> Columns:
        if self._layout.reduce == "none" or not len(columns[0]):
            return columns
        if self._layout.reduce == "distinct":
            return _cut(columns, drop_repeated(*self._table(columns)[:2]))
        found = reduce_table(*self._table(columns), count)
        if found < 0:
            raise SumOverflow
        return _cut(columns, found)


class CpuChunkSorter(_Threads):
    """A chunk per thread, one that is filled, and one whose result is looked at."""

    def __init__(self, device: CpuDevice, layout: KeyLayout, host_memory: int, device_memory: int):  # noqa: ARG002
        super().__init__(layout, host_memory, device.workers)
        self._plain = layout.given == 1
        self._copiers = ThreadPoolExecutor(self.depth, "copy")
        self.capacity = max(_LEAST_CHUNK, host_memory // ((2 * self.depth + 2) * layout.columns * WORD))
        self._present = self._take()

    def close(self) -> None:
        """Wait for what has begun, and begin nothing more."""
        super().close()
        self._copiers.shutdown()

    def put(self, at: int, columns: Sequence[Array]) -> None:
        """Copy columns to the present chunk, on all cores where they are long: fresh memory comes page by page."""
        for own, given in zip(self._present, columns, strict=False):
            target = own[at : at + len(given)]

            def copy(start: int, target: Column = target, given: Array = given) -> None:
                target[start : start + _COPIED] = given[start : start + _COPIED]

            starts = range(0, len(given), _COPIED)
            for _ in self._copiers.map(copy, starts) if len(starts) > 1 else map(copy, starts):
                """It is in its place."""

    def sort(self, count: int) -> "Future[Columns]":
        """Sort the present chunk."""
        chunk, self._present = _cut(self._present, count), self._take()
        return self._pool.submit(self._sort, chunk)

    def _sort(self, chunk: Columns) -> Columns:
        with host_faults():
            return self._sorted(chunk)

    def _sorted(self, chunk: Columns) -> Columns:
        other = _cut(self._take(), len(chunk[0]))
        if self._plain:
            moved = sort_words(chunk[0], other[0])
        else:
            starts, counts = np.empty(len(chunk[0]) // BLOCK + 2, np.int64), np.empty(256, np.int64)
            moved = sort_table(*self._table(chunk), *self._table(other), starts, counts)
        if moved:
            chunk, other = other, chunk
        self.recycle(other)
        return self._reduced(chunk, count=self._layout.reduce == "count")


class CpuRunMerger(_Threads):
    """A window per thread, in two tables and the part that is being read, and one that is looked at."""

    widest = 1024

    def __init__(
        self,
        device: CpuDevice,
        layout: KeyLayout,
        host_memory: int,
        device_memory: int,  # noqa: ARG002
        method: Method,
    ):
        super().__init__(layout, host_memory, device.workers)
        self._sort = method == "sort"  # instead of merging
        self.capacity = max(_LEAST_WINDOW, host_memory // ((3 * self.depth + 2) * layout.columns * WORD))

    def merge(self, sizes: Sequence[int], read: Callable[[], Iterator[Columns]]) -> "Future[Columns]":
        """Merge sorted parts of runs."""
        return self._pool.submit(self._merge, sizes, read)

    def _merge(self, sizes: Sequence[int], read: Callable[[], Iterator[Columns]]) -> Columns:
        with host_faults():
            return self._merged(sizes, read)

    def _merged(self, sizes: Sequence[int], read: Callable[[], Iterator[Columns]]) -> Columns:
        starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        count = int(starts[-1])
        whole, whole_other = self._take(), self._take()
        table, other = _cut(whole, count), _cut(whole_other, count)
        for start, part in zip(starts, read(), strict=False):
            for own, column in zip(table, part, strict=True):
                own[start : start + len(column)] = column
        moved = False
        if len(table) == 1 and (self._sort or len(sizes) >= _MANY_LISTS):
            moved = sort_words(table[0], other[0])
        elif self._sort:
            workspace = np.empty(count // BLOCK + 2, np.int64), np.empty(256, np.int64)
            moved = sort_table(*self._table(table), *self._table(other), *workspace)
        else:
            moved = merge_lists(*self._table(table), *self._table(other), starts, len(sizes))
        self.recycle(whole if moved else whole_other)
        return self._reduced(other if moved else table, count=False)


def _cut(columns: Columns, count: int) -> Columns:
    return [column[:count] for column in columns]


@compiled("u8[::1], u8[::1], u8[::1], u8[::1], u8[::1], u8[::1], i8[::1], i8[::1]")
def sort_table(high, low, payload, other_high, other_low, other_payload, starts, counts):
    """Sort a table, stably: blocks digit by digit, then pairs of them merged.

    Parameters
    ----------
    high, low, payload : uint64[n]
        The table.
    other_high, other_low, other_payload
        A second table of the same shape, as workspace.
    starts : int64[ceil(n / BLOCK) + 1]
        Workspace.
    counts : int64[256]
        Workspace.

    Returns
    -------
    bool
        Whether the sorted table is the second one.
    """
    n = low.size
    blocks = 0
    for first in range(0, n, BLOCK):
        last = min(first + BLOCK, n)
        a, b, c = high[first:last], low[first:last], payload[first:last]
        x, y, z = other_high[first:last], other_low[first:last], other_payload[first:last]
        moved = False
        for digit in range(8 if high.size == 0 else 16):
            word = digit // 8
            shift = np.uint64(8 * (digit % 8))
            if moved:
                done = _sort_digit(x, y, z, a, b, c, word, shift, counts)
            else:
                done = _sort_digit(a, b, c, x, y, z, word, shift, counts)
            moved ^= done
        if moved:
            _copy(x, 0, x.size, a, 0)
            _copy(y, 0, y.size, b, 0)
            _copy(z, 0, z.size, c, 0)
        starts[blocks] = first
        blocks += 1
    starts[blocks] = n
    return merge_lists(high, low, payload, other_high, other_low, other_payload, starts, blocks)


@compiled
def _sort_digit(a, b, c, x, y, z, word, shift, counts):
    """Order by eight bits of a word, stably. Return False, and move nothing, where they are all the same."""
    mask = np.uint64(255)
    counts[:] = 0
    keys = b if word == 0 else a
    for i in range(keys.size):
        counts[(keys[i] >> shift) & mask] += 1
    if counts[(keys[0] >> shift) & mask] == keys.size:
        return False
    total = 0
    for digit in range(256):
        total, counts[digit] = total + counts[digit], total
    for i in range(keys.size):
        digit = (keys[i] >> shift) & mask
        to = counts[digit]
        counts[digit] = to + 1
        y[to] = b[i]
        if a.size:
            x[to] = a[i]
        if c.size:
            z[to] = c[i]
    return True


@compiled("u8[::1], u8[::1], u8[::1], u8[::1], u8[::1], u8[::1], i8[::1], i8")
def merge_lists(high, low, payload, other_high, other_low, other_payload, starts, lists):
    """Merge neighbouring sorted lists, pair by pair, until there is one.

    Parameters
    ----------
    high, low, payload, other_high, other_low, other_payload
        As in `sort_table`.
    starts : int64[lists + 1]
        Where the lists begin, and the last one ends; overwritten.
    lists
        Their number.

    Returns
    -------
    bool
        Whether the merged list is in the second table. Of equal keys, those of earlier lists come first.
    """
    moved = False
    while lists > 1:
        merged = 0
        for first in range(0, lists, 2):
            begin, middle = starts[first], starts[first + 1]
            end = starts[min(first + 2, lists)]
            if moved:
                _merge(other_high, other_low, other_payload, high, low, payload, begin, middle, end)
            else:
                _merge(high, low, payload, other_high, other_low, other_payload, begin, middle, end)
            starts[merged] = begin
            merged += 1
        starts[merged] = low.size
        lists = merged
        moved = not moved
    return moved


@compiled
def _merge(high, low, payload, to_high, to_low, to_payload, begin, middle, end):
    """Merge the lists begin:middle and middle:end of one table to begin:end of the other."""
    i, j, to = begin, middle, begin
    if high.size == 0 and payload.size == 0:
        # Without branches: which list is next cannot be predicted.
        while i < middle and j < end:
            x, y = low[i], low[j]
            second = y < x
            to_low[to] = y if second else x
            j += second
            i += not second
            to += 1
    elif high.size == 0:
        while i < middle and j < end:
            x, y = low[i], low[j]
            second = y < x
            to_low[to] = y if second else x
            to_payload[to] = payload[j if second else i]
            j += second
            i += not second
            to += 1
    else:
        while i < middle and j < end:
            second = high[j] < high[i] or (high[j] == high[i] and low[j] < low[i])
            at = j if second else i
            to_high[to] = high[at]
            to_low[to] = low[at]
            if payload.size:
                to_payload[to] = payload[at]
            j += second
            i += not second
            to += 1
    if i == middle:
        i = j
    last = i + end - to
    _copy(low, i, last, to_low, to)
    if high.size:
        _copy(high, i, last, to_high, to)
    if payload.size:
        _copy(payload, i, last, to_payload, to)


@compiled
def _copy(source, first, last, target, to):
    """Slices cannot be assigned: Numba would allocate."""
    for i in range(first, last):
        target[to + i - first] = source[i]


@compiled("u8[::1], u8[::1]")
def drop_repeated(high, low):
    """Keep one of equal neighbours of a sorted table without a payload, in place; return the number of distinct keys.

    Parameters
    ----------
    high, low : uint64[n]
        The table; n is at least 1.
    """
    found = 1
    if high.size == 0:
        # Without branches: a key is overwritten by the next one if they are equal.
        last = low[0]
        for i in range(1, low.size):
            key = low[i]
            low[found] = key
            found += key != last
            last = key
        return found
    for i in range(1, low.size):
        if low[i] != low[found - 1] or high[i] != high[found - 1]:
            low[found] = low[i]
            high[found] = high[i]
            found += 1
    return found


@compiled("u8[::1], u8[::1], u8[::1], b1")
def reduce_table(high, low, payload, count):
    """Bring equal neighbours of a sorted table together, in place.

    Parameters
    ----------
    high, low, payload : uint64[n]
        The table.
    count
        The payload becomes the number of equal keys; otherwise the sum of their payloads.

    Returns
    -------
    int
        Distinct keys; -1 if a sum does not fit int64, or a payload is negative.
    """
    limit = np.uint64(2**63 - 1)
    found = 0
    for i in range(low.size):
        amount = np.uint64(1) if count else payload[i]
        if amount > limit:
            return -1
        if found and low[found - 1] == low[i] and (high.size == 0 or high[found - 1] == high[i]):
            amount += payload[found - 1]
            if amount > limit:
                return -1
            payload[found - 1] = amount
        else:
            low[found] = low[i]
            if high.size:
                high[found] = high[i]
            payload[found] = amount
            found += 1
    return found
