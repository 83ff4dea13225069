"""Sorted runs of keys in scratch arrays, and the windows in which they are merged.

A run's checkpoints are keys at equal distances. They are kept in memory, and put in order over all runs once: that
says for each checkpoint between which two of every other run's it belongs, and only the keys between those are
searched for its matched index (GAMMA, Algorithm 3). The keys between two checkpoints are a window.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longwall.kernels.interface.sorting import Column, Columns, KeyLayout
from longwall.storage.memory.reservations import BudgetExceeded, Reservation
from longwall.storage.sorting.scratch_arrays import Scratch, ScratchArray

ORDERING = 48
"""Bytes of a checkpoint, besides its words once more, while checkpoints are put in order."""
_MOST_MARKS, LEAST_MARKS = 8, 4
"""Checkpoints in a window for each run that are put in order: more of them make fuller windows."""
ORDER_SHARE = 4
"""What part of the work space they may take, if fewer will do."""
_SAMPLES, _SAMPLED_SHARE = 64, 0.6  # splitters that are looked at for each window, and how full it is to be
NeighbourRange = tuple[int, int]
"""Keys of one run: where they begin and end in the arrays."""


class Run(NamedTuple):
    """Ascending keys."""

    start: int
    stop: int
    """Where it ends in the arrays."""
    checkpoints: Columns
    """Words of the last key of every `spacing` keys."""


class _Marks(NamedTuple):
    """Some keys of a run."""

    places: npt.NDArray[np.int64]
    """Where the key behind each of them is in the arrays; ascending."""
    words: Columns


class SortedRuns:
    """Runs, one behind the other, in an array for each column.

    Parameters
    ----------
    scratch
        Holds them.
    layout
        Their columns. Where equal keys are reduced, those of a run are distinct.
    spacing
        Keys for one checkpoint.
    """

    def __init__(self, scratch: Scratch, layout: KeyLayout, spacing: int) -> None:
        self.runs: list[Run] = []
        self.spacing = spacing
        self._scratch, self._layout = scratch, layout
        self._columns = [scratch.array(np.uint64) for _ in range(layout.columns)]
        self._reservations: list[Reservation] = []

    def __len__(self) -> int:
        """Keys in all runs together."""
        return len(self._columns[0]) if self._columns else 0

    def adopt(self, columns: Columns, size: int) -> bool:
        """Add a run without a copy, if there is room.

        Parameters
        ----------
        columns
            They belong to this object then.
        size
            Bytes of memory that each of them keeps.
        """
        host, reservations = self._scratch.host, []
        try:
            for _ in columns:
                reservations.append(host.reserve(size, self._scratch.what))
        except BudgetExceeded:
            for reserved in reservations:
                reserved.release()
            return False
        start = len(self)
        for array, column, reserved in zip(self._columns, columns, reservations, strict=True):
            array.adopt(column, reserved)
        self._close(start, [self._checkpoints(start, start, columns)])
        return True

    def add(self, blocks: Iterable[Columns]) -> None:
        """Add a run; nothing holds on to a block when the next one is asked for."""
        start, checkpoints = len(self), []
        for columns in blocks:
            checkpoints.append(self._checkpoints(start, len(self), columns))
            for array, column in zip(self._columns, columns, strict=True):
                array.append(column)
            self._scratch.settle()
        self._close(start, checkpoints)

    def _checkpoints(self, start: int, at: int, columns: Columns) -> Columns:
        """The checkpoints among the keys that a run has from place `at` on."""
        first = (start - 1 - at) % self.spacing
        found = [column[first :: self.spacing].copy() for column in columns[: self._layout.words]]
        self._reservations.append(self._scratch.reserve(sum(column.nbytes for column in found), self._scratch.what))
        return found

    def _close(self, start: int, checkpoints: list[Columns]) -> None:
        if checkpoints:
            words = [np.concatenate(parts) for parts in zip(*checkpoints, strict=True)]
            self.runs.append(Run(start, len(self), words))

    def read(self, part: NeighbourRange) -> Columns:
        """Return a part of the runs, not to be changed: views where it is contiguous in memory, else copies."""
        return [array.read(*part) for array in self._columns]

    def check(self) -> None:
        """Check that files still hold what was written; raises RunError where one does not."""
        for array in self._columns:
            array.check()

    def drop(self) -> None:
        """Free all memory and files; raises RunError where a file is damaged."""
        for array in self._columns:
            array.drop()
        self.discard()

    def discard(self) -> None:
        """Free all memory and files without a check; more than once does no harm."""
        for array in self._columns:
            array.discard()
        self.take()

    def take(self) -> list[ScratchArray]:
        """Return the columns, which belong to the caller from now on; here there are no runs left."""
        columns, self._columns, self.runs = self._columns, [], []
        for reserved in self._reservations:
            reserved.release()
        return columns

    def windows(self, runs: list[Run], capacity: int, memory: int) -> Iterator[list[NeighbourRange]]:
        """Cut runs into windows of at most `capacity` keys: the parts of the runs that belong there, in their order.

        Keys of a window come before those of the next. Where equal keys are reduced, they are in one window. There are
        fewer runs than `capacity`; few keys are read if it has four times as many checkpoints as there are runs.

        Parameters
        ----------
        runs, capacity
            See above.
        memory
            Bytes that are worked with; checkpoints take no more than a part of them while they are put in order.
        """
        stride = max(1, capacity // (self.spacing * _MOST_MARKS * len(runs)))
        checkpoints = sum(len(run.checkpoints[0]) for run in runs)
        most = max(1, memory // (ORDER_SHARE * self._mark_bytes))
        if checkpoints // stride > most:
            stride = max(capacity // (self.spacing * LEAST_MARKS * len(runs)), -(-checkpoints // most))
        marks = []
        for run in runs:
            words = [column[stride - 1 :: stride] for column in run.checkpoints]
            places = run.start + self.spacing * stride * np.arange(1, len(words[0]) + 1, dtype=np.int64)
            marks.append(_Marks(places, words))
        # A part has fewer keys than one more mark would make; equal marks are in one window if reduced.
        for window in self._cut(runs, marks, max(1, capacity // (self.spacing * stride) - 2 * len(runs))):
            yield from self._halved(window, capacity)

    def _halved(self, window: list[NeighbourRange], capacity: int) -> Iterator[list[NeighbourRange]]:
        """Cut a window at the middle key of its longest part until it fits: between two checkpoints may be more."""
        lengths = [stop - start for start, stop in window]
        if sum(lengths) <= capacity:
            yield window
            return
        longest = lengths.index(max(lengths))
        middle = window[longest][0] + lengths[longest] // 2
        key, cuts = self._key(middle - 1), []
        for number, (start, stop) in enumerate(window):
            find = bisect_right if self._layout.reduce != "none" or number < longest else bisect_left
            cuts.append(middle if number == longest else start + find(range(start, stop), key, key=self._key))
        yield from self._halved(_filled([start for start, _ in window], cuts), capacity)
        yield from self._halved(_filled(cuts, [stop for _, stop in window]), capacity)

    def sampled_windows(self, runs: list[Run], capacity: int) -> Iterator[list[NeighbourRange]]:
        """As `windows`, cut by a random sample of the keys instead, as xtr2sort does."""
        generator = np.random.Generator(np.random.Philox(1))
        total = sum(run.stop - run.start for run in runs)
        wanted = int(_SAMPLES * max(1, total / (_SAMPLED_SHARE * capacity)))
        while True:
            marks = [self._sample(run, max(1, wanted * (run.stop - run.start) // total), generator) for run in runs]
            sampled = sum(len(mark.places) for mark in marks)
            windows = list(self._cut(runs, marks, max(1, int(sampled * _SAMPLED_SHARE * capacity / total))))
            if all(sum(stop - start for start, stop in window) <= capacity for window in windows):
                yield from windows
                return
            wanted *= 2

    def _sample(self, run: Run, count: int, generator: np.random.Generator) -> _Marks:
        length = run.stop - run.start
        places = np.unique(generator.integers(run.start, run.stop, count)) if count < length else None
        if places is None:
            places = np.arange(run.start, run.stop)
        keys = [self.read((place, place + 1))[: self._layout.words] for place in places.tolist()]
        return _Marks(places + 1, [np.concatenate(column) for column in zip(*keys, strict=True)])

    def _cut(self, runs: list[Run], marks: list[_Marks], step: int) -> Iterator[list[NeighbourRange]]:
        """Cut runs at marks at equal distances in all of them."""
        chosen, before = self._order(marks, step)
        begins = [run.start for run in runs]
        for at, (owner, *key) in enumerate(chosen):
            ends = []
            for number, (run, mark, begin) in enumerate(zip(runs, marks, begins, strict=True)):
                passed = int(before[number][at])
                low = int(mark.places[passed - 1]) if passed else run.start
                if number != owner:
                    high = int(mark.places[passed]) if passed < len(mark.places) else run.stop
                    after = self._layout.reduce != "none" or number < owner
                    low = self._find(run, (low, high), key, after=after)
                ends.append(max(begin, low))  # cuts at equal keys that are reduced fall together
            if ends != begins:
                yield _filled(begins, ends)
            begins = ends
        ends = [run.stop for run in runs]
        if ends != begins:
            yield _filled(begins, ends)

    def _find(self, run: Run, part: NeighbourRange, key: list[int], *, after: bool) -> int:
        """The matched index of a key in a part of a run, as a place in the arrays: only a few keys are read."""
        first, last = ((place - run.start) // self.spacing for place in part)
        passed = first + _matched([column[first:last] for column in run.checkpoints], key, after=after)
        low = max(part[0], run.start + passed * self.spacing)
        high = min(part[1], run.start + (passed + 1) * self.spacing)
        return low + _matched(self._words((low, high)), key, after=after)

    def _order(self, marks: list[_Marks], step: int) -> tuple[list[list[int]], list[npt.NDArray[np.int64]]]:
        """Put marks in order and choose some at equal distances.

        Returns
        -------
        chosen
            For each, the number of its run and its words.
        before
            For each run, how many of its marks are not behind each chosen one: prefix sums over the order.
        """
        size = sum(len(mark.places) for mark in marks) * self._mark_bytes
        with self._scratch.reserve(size, self._scratch.what):
            owners = np.repeat(np.arange(len(marks)), [len(mark.places) for mark in marks])
            words = [np.concatenate(column) for column in zip(*(mark.words for mark in marks), strict=True)]
            # Equal keys in the order of their runs: the sort is stable.
            order = np.lexsort(words[::-1])
            owners = owners[order]
            places = np.arange(step - 1, len(order), step)
            before = [np.cumsum(owners == number)[places] for number in range(len(marks))]
            columns = [owners[places], *(column[order[places]] for column in words)]
            return [list(row) for row in zip(*(column.tolist() for column in columns), strict=True)], before

    @property
    def _mark_bytes(self) -> int:
        return 8 * self._layout.words + ORDERING

    def _key(self, place: int) -> list[int]:
        return [int(column[0]) for column in self._words((place, place + 1))]

    def _words(self, part: NeighbourRange) -> Columns:
        return [array.read(*part) for array in self._columns[: self._layout.words]]


def _filled(begins: list[int], ends: list[int]) -> list[NeighbourRange]:
    return [(begin, end) for begin, end in zip(begins, ends, strict=True) if begin < end]


def _matched(words: Columns, key: list[int], *, after: bool) -> int:
    """The matched index of a key: how many sorted keys are smaller, or not larger where `after`."""
    low, high = 0, len(words[0])
    for column, word in zip(words[:-1], key[:-1], strict=True):
        low, high = (low + _place(column[low:high], word, side) for side in (False, True))
    return low + _place(words[-1][low:high], key[-1], after)


def _place(column: Column, word: int, after: bool) -> int:
    return int(np.searchsorted(column, np.uint64(word), side="right" if after else "left"))
