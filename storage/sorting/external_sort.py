"""Sort any number of 64-bit keys in bounded memory: sorted runs, then merges of many runs at once.

A merge takes from all runs the keys between two bounds, and sorts them: NumPy sorts uint64 faster than a heap merges
them, and without the GIL, so that every such range is a task for a thread. The bounds come from fences: every so many
keys, a run's key is kept in memory.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longwall.storage.concurrency import core_count, map_ordered
from longwall.storage.lazy_kernel import lazy_kernel
from longwall.storage.memory.reservations import Reservation
from longwall.storage.sorting.scratch_arrays import Scratch

_FENCE = 256  # keys of a run for one key in memory
_FENCES_HELD = 3  # a merge sorts them, and keeps as many places in runs
_LEAST_SHARE = 2**20  # bytes of work space that are worth a thread
_KEY, _LABELLED = 8, 36  # bytes of a key in a sort; with a label: both, their order and what finds it, a copy of both

Keys = npt.NDArray[np.uint64]
Labels = npt.NDArray[np.int32]


class KeyBlock(NamedTuple):
    """Keys, and a label for each where keys are labelled."""

    keys: Keys
    """uint64[k]"""
    labels: Labels | None
    """int32[k]"""


Clash = Callable[[int, int, int], Exception]
"""Makes the error for a key that is given again and must not be: (key, one label, the other)."""


class _Run(NamedTuple):
    """Ascending, distinct keys."""

    start: int
    stop: int
    """Where it ends in the arrays of keys."""
    fences: Keys
    """Every so many keys, the last of them."""


class _Range(NamedTuple):
    """Keys between two bounds in several runs."""

    above: np.uint64 | None
    """Lower bound, exclusive."""
    to: np.uint64 | None
    """Upper bound, inclusive."""
    slices: list[tuple[int, int]]
    """For each run that has such keys, a slice of the arrays that holds them and a few more on either side."""


class SortedKeys:
    """Distinct keys in ascending order, in scratch arrays; made by `external_sort`, read block by block.

    Attributes
    ----------
    labelled
        Whether keys have labels.
    """

    def __init__(self, scratch: Scratch, labelled: bool, clash: Clash, once: bool, fence: int) -> None:
        self.labelled = labelled
        self._scratch, self._clash, self._once, self._fence = scratch, clash, once, fence
        self._keys, self._labels = scratch.array(np.uint64), scratch.array(np.int32)
        self._runs: list[_Run] = []
        self._reservations: list[Reservation] = []

    def __len__(self) -> int:
        """Keys in all runs together; keys that stand in several runs count for each."""
        return len(self._keys)

    def add_run(self, blocks: Iterable[KeyBlock]) -> None:
        """Add a run: blocks of ascending, distinct keys, which must not change any more."""
        start = len(self._keys)
        fences = []
        for block in blocks:
            fences.append(block.keys[(start - 1 - len(self._keys)) % self._fence :: self._fence].copy())
            self._keys.append(block.keys)
            if block.labels is not None:
                self._labels.append(block.labels)
            size = _FENCES_HELD * fences[-1].nbytes
            self._reservations.append(self._scratch.reserve(size, "sorting the edges"))
        self._runs.append(_Run(start, len(self._keys), np.concatenate(fences) if fences else np.empty(0, np.uint64)))

    def read(self, start: int, stop: int) -> KeyBlock:
        """Return a slice of the runs, one behind the other; see `ScratchArray.read`."""
        return KeyBlock(self._keys.read(start, stop), self._labels.read(start, stop) if self.labelled else None)

    def drop(self) -> None:
        """Free all memory and files."""
        self._keys.drop()
        self._labels.drop()
        for reserved in self._reservations:
            reserved.release()

    def blocks(self, memory: int) -> Iterator[KeyBlock]:
        """Yield all keys in ascending order, each once, in blocks, with about `memory` bytes of temporaries.

        The arrays are not to be changed. Raises the error of `clash` where a key is there again and must not be.
        """
        self._merge_down(self._widest(memory), memory)
        yield from self._merge(self._runs, memory)

    def to_one_run(self, memory: int) -> None:
        """Merge all runs to one, whose length is the number of distinct keys."""
        self._merge_down(1, memory)

    def _capacity(self, memory: int) -> int:
        """Return how many keys a range may have: one for each thread, one in the consumer's hands, one to write."""
        return max(1, memory // ((_workers(memory) + 2) * (_LABELLED if self.labelled else _KEY)))

    def _widest(self, memory: int) -> int:
        """Return how many runs can be merged at once: what is read around the bounds must not outweigh the keys."""
        return max(2, self._capacity(memory) // (2 * self._fence))

    def _merge_down(self, most: int, memory: int) -> None:
        """Merge neighbouring runs until there are at most `most`."""
        while len(self._runs) > most:
            merged = SortedKeys(self._scratch, self.labelled, self._clash, self._once, self._fence)
            widest = self._widest(memory)
            for at in range(0, len(self._runs), widest):
                merged.add_run(self._merge(self._runs[at : at + widest], memory))
            self.drop()
            self._keys, self._labels, self._runs = merged._keys, merged._labels, merged._runs
            self._reservations = merged._reservations

    def _merge(self, runs: list[_Run], memory: int) -> Iterator[KeyBlock]:
        capacity = self._capacity(memory)
        if len(runs) > 1:
            yield from map_ordered(self._collect, self._ranges(runs, capacity), _workers(memory))
            return
        for run in runs:
            for start in range(run.start, run.stop, capacity):
                yield self.read(start, min(start + capacity, run.stop))

    def _ranges(self, runs: list[_Run], capacity: int) -> Iterator[_Range]:
        """Cut the keys of runs into ranges."""
        fences = np.sort(np.concatenate([run.fences for run in runs]))
        step = max(1, capacity // self._fence - len(runs))
        bounds = np.unique(fences[step - 1 :: step])
        del fences
        # For each run and bound, the fences that are not above the bound.
        cuts = np.array([np.searchsorted(run.fences, bounds, side="right") for run in runs]).reshape(len(runs), -1)
        starts, stops = (np.array([getattr(run, name) for run in runs]) for name in ("start", "stop"))
        firsts = starts
        for at in range(len(bounds) + 1):
            last = at == len(bounds)
            ends = stops if last else np.minimum(starts + (cuts[:, at] + 1) * self._fence, stops)
            slices = [(start, stop) for start, stop in zip(firsts.tolist(), ends.tolist(), strict=True) if start < stop]
            yield _Range(bounds[at - 1] if at else None, None if last else bounds[at], slices)
            if not last:
                firsts = starts + cuts[:, at] * self._fence

    def _collect(self, wanted: _Range) -> KeyBlock:
        """Bring the keys of a range together and sort them."""
        gathered = _buffer(sum(stop - start for start, stop in wanted.slices), self.labelled)
        filled = pieces = 0
        for start, stop in wanted.slices:
            block = self.read(start, stop)
            low = 0 if wanted.above is None else int(np.searchsorted(block.keys, wanted.above, side="right"))
            high = len(block.keys) if wanted.to is None else int(np.searchsorted(block.keys, wanted.to, side="right"))
            if low < high:
                _copy(_cut(block, low, high), gathered, filled)
                filled += high - low
                pieces += 1
        gathered = _cut(gathered, 0, filled)
        return gathered if pieces < 2 else sort_block(gathered, self._clash, self._once)


def external_sort(
    blocks: Iterable[KeyBlock],
    scratch: Scratch,
    memory: int,
    *,
    labelled: bool = False,
    clash: Clash | None = None,
    once: bool = False,
) -> SortedKeys:
    """Read blocks of keys to their end and sort them.

    Parameters
    ----------
    blocks
        Keys in any order, repeated or not, with labels if `labelled`; drawn on the caller's thread.
    scratch
        Holds the runs.
    memory
        Bytes for run buffers; they are part of `scratch.work`.
    labelled
        Whether keys have labels. A key that is given again needs the same label.
    clash
        Makes the error where it has not; needed with labels.
    once
        Whether a key with a label may not be given again at all.
    """
    workers = _workers(memory)
    # One buffer is filled, one for each thread is sorted, one is written.
    size = max(16, memory // ((workers + 2) * (_LABELLED if labelled else _KEY)))
    made = SortedKeys(scratch, labelled, clash or _no_clash, once, max(1, min(_FENCE, size // 16)))
    for run in map_ordered(
        lambda block: sort_block(block, made._clash, once), _buffers(blocks, size, labelled), workers
    ):
        made.add_run([run])
    return made


def sort_block(block: KeyBlock, clash: Clash, once: bool = False) -> KeyBlock:
    """Sort a block, in place where it has no labels, and drop repeated keys; see `external_sort`."""
    keys, labels = block
    if labels is None:
        keys.sort()
        return KeyBlock(keys[: _drop_repeated(keys)], None)
    order = np.argsort(keys, kind="stable")
    keys, labels = keys[order], labels[order]
    count, clashing = _drop_repeated_labelled(keys, labels, once)
    if clashing >= 0:
        raise clash(int(keys[count - 1]), int(labels[count - 1]), int(labels[clashing]))
    return KeyBlock(keys[:count], labels[:count])


def _workers(memory: int) -> int:
    return max(1, min(core_count(), memory // _LEAST_SHARE))


def _buffers(blocks: Iterable[KeyBlock], size: int, labelled: bool) -> Iterator[KeyBlock]:
    """Yield the keys of many blocks in buffers of `size` keys."""
    buffer, filled = _buffer(size, labelled), 0
    for block in blocks:
        start = 0
        while start < len(block.keys):
            part = _cut(block, start, start + size - filled)
            stop = filled + len(part.keys)
            _copy(part, buffer, filled)
            start, filled = start + len(part.keys), stop
            if filled == size:
                yield buffer
                buffer, filled = _buffer(size, labelled), 0
    if filled:
        yield _cut(buffer, 0, filled)


def _buffer(size: int, labelled: bool) -> KeyBlock:
    return KeyBlock(np.empty(size, np.uint64), np.empty(size, np.int32) if labelled else None)


def _cut(block: KeyBlock, start: int, stop: int) -> KeyBlock:
    return KeyBlock(block.keys[start:stop], block.labels[start:stop] if block.labels is not None else None)


def _copy(block: KeyBlock, target: KeyBlock, at: int) -> None:
    target.keys[at : at + len(block.keys)] = block.keys
    if target.labels is not None:
        assert block.labels is not None
        target.labels[at : at + len(block.keys)] = block.labels


def _no_clash(key: int, one: int, other: int) -> Exception:
    return AssertionError(f"key {key} has the labels {one} and {other}")


@lazy_kernel
def _drop_repeated(keys: Keys) -> int:
    """Move the distinct keys of a sorted array to its front; return their number."""
    count = 0
    for at in range(keys.size):
        if count == 0 or keys[at] != keys[count - 1]:
            keys[count] = keys[at]
            count += 1
    return count


@lazy_kernel
def _drop_repeated_labelled(keys: Keys, labels: Labels, once: bool) -> tuple[int, int]:
    """As `_drop_repeated`; also the place of a repetition with another label (of any, if `once`), or -1."""
    count = 0
    for at in range(keys.size):
        if count == 0 or keys[at] != keys[count - 1]:
            keys[count] = keys[at]
            labels[count] = labels[at]
            count += 1
        elif once or labels[at] != labels[count - 1]:
            return count, at
    return count, -1
