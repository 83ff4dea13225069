"""Sorting chunks and merging runs on the cores of the host; see :mod:`longwall.kernels.interface.sorting`."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue

import numpy as np

from longwall.kernels.cpu.sort_keys import BLOCK, merge_lists, reduce_table, sort_table
from longwall.kernels.interface.engine import host_faults
from longwall.kernels.interface.sorting import WORD, Array, Column, Columns, KeyLayout, SumOverflow

_LEAST_SHARE = 2**20  # bytes that are worth a thread
_LEAST_CHUNK, _LEAST_WINDOW = 16, 16  # keys
Table = tuple[Column, Column, Column]


class _Threads:
    """A pool of threads, and tables for the kernels."""

    def __init__(self, layout: KeyLayout, memory: int, threads: int):
        self._layout = layout
        self.depth = max(1, min(threads, memory // _LEAST_SHARE))
        self._pool = ThreadPoolExecutor(self.depth, "sort")

    def close(self) -> None:
        """Wait for what has begun, and begin nothing more."""
        self._pool.shutdown(cancel_futures=True)

    def reserve(self, count: int) -> None:
        """Memory of the host needs no preparation here."""

    def _new(self, keys: int) -> Columns:
        return [np.empty(keys, np.uint64) for _ in range(self._layout.columns)]

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
        found = reduce_table(*self._table(columns), count)
        if found < 0:
            raise SumOverflow
        return _cut(columns, found)


class CpuChunkSorter(_Threads):
    """A chunk per thread, one that is filled, and one whose result is looked at.

    Parameters
    ----------
    layout
        What is sorted.
    memory
        Bytes for all of them.
    threads
        Most chunks to sort at a time.
    """

    def __init__(self, layout: KeyLayout, memory: int, threads: int):
        super().__init__(layout, memory, threads)
        # What NumPy sorts in place needs no second table.
        self._plain = layout.given == 1
        tables = (self.depth + 2) if self._plain else 2 * self.depth + 2
        self.capacity = max(_LEAST_CHUNK, memory // (tables * layout.columns * WORD))
        self._present = self._new(self.capacity)

    def put(self, at: int, columns: Sequence[Array]) -> None:
        """Copy columns to the present chunk."""
        for own, given in zip(self._present, columns, strict=False):
            own[at : at + len(given)] = given

    def sort(self, count: int) -> "Future[Columns]":
        """Sort the present chunk."""
        chunk, self._present = _cut(self._present, count), self._new(self.capacity)
        return self._pool.submit(self._sort, chunk)

    def _sort(self, chunk: Columns) -> Columns:
        with host_faults():
            return self._sorted(chunk)

    def _sorted(self, chunk: Columns) -> Columns:
        if self._plain:
            chunk[0].sort()
        else:
            other = self._new(len(chunk[0]))
            starts, counts = np.empty(len(chunk[0]) // BLOCK + 2, np.int64), np.empty(256, np.int64)
            if sort_table(*self._table(chunk), *self._table(other), starts, counts):
                chunk = other
        return self._reduced(chunk, count=self._layout.reduce == "count")

    def recycle(self, columns: Columns) -> None:
        """Chunks are not used again."""


class CpuRunMerger(_Threads):
    """A window per thread, in two tables and the part that is being read, and one that is looked at.

    Parameters
    ----------
    layout, memory, threads
        As of `CpuChunkSorter`.
    sort
        Whether windows are sorted instead of merged.
    """

    widest = 1024

    def __init__(self, layout: KeyLayout, memory: int, threads: int, *, sort: bool):
        super().__init__(layout, memory, threads)
        self._sort = sort
        self.capacity = max(_LEAST_WINDOW, memory // ((3 * self.depth + 2) * layout.columns * WORD))
        self._spare: SimpleQueue[Columns] = SimpleQueue()

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
        if self._sort and len(table) == 1:
            table[0].sort()
        elif self._sort:
            scratch = np.empty(count // BLOCK + 2, np.int64), np.empty(256, np.int64)
            moved = sort_table(*self._table(table), *self._table(other), *scratch)
        else:
            moved = merge_lists(*self._table(table), *self._table(other), starts, len(sizes))
        self.recycle(whole if moved else whole_other)
        return self._reduced(other if moved else table, count=False)

    def _take(self) -> Columns:
        try:
            return self._spare.get_nowait()
        except Empty:
            return self._new(self.capacity)

    def recycle(self, columns: Columns) -> None:
        """Keep a table for later."""
        whole = [column if column.base is None else column.base for column in columns]
        self._spare.put(whole)


def _cut(columns: Columns, count: int) -> Columns:
    return [column[:count] for column in columns]
