"""Keys in no order that wait in memory until all are there, and are sorted at once, bucket by bucket on all cores."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from longwall.storage.memory.reservations import BudgetExceeded
from longwall.storage.sorting.scratch_arrays import Scratch, ScratchArray
from longwall.storage.sorting.workspaces import Workspaces
from longwall.storage.system.concurrency import core_count

_SHORT = 2**16  # keys of blocks that wait for others, at most
_LEAST_PIECE, _LARGEST_PIECE, _FRAGMENT = 2**15, 2**17, 64  # keys; those of a bucket in a piece on average, at least
_ADOPTED = 0.75  # of a block's memory that its keys must take, to be kept without a copy
_BUCKET, _MOST_BUCKETS = 2**15, 2**11  # keys of a bucket on average, if there are not too many: they fit a core's cache
_BIN_BITS, _SAMPLED = 14, 16  # bits that keys are distributed by; one key in this number is looked at to see how
_GROUPS_A_CORE, _GROUP = 8, 2**17  # of buckets; keys of one, about as many as the blocks had whose memory is free again
_KEY = 8  # bytes

Keys = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]


class KeyPile:
    """Keys that wait; a context manager, which leaves none.

    Parameters
    ----------
    scratch
        Has the memory. What waits may be spilled where others need it.
    """

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._arrays: list[ScratchArray] = []
        self._short: list[Keys] = []

    def fill(self, blocks: Iterable[Keys]) -> Iterator[Keys] | None:
        """Take blocks, which must not change any more, while there is room.

        Returns
        -------
        Iterator or None
            The blocks that are left, where there was no room for one.
        """
        left = iter(blocks)
        shortest = min(_SHORT, self._scratch.work // 64)
        for keys in left:
            if len(keys) < shortest:
                self._short.append(keys)
                if sum(map(len, self._short)) < shortest:
                    continue
                keys = self._together()
            if not self._adopt(keys):
                return chain((keys,), left)
        last = self._together()
        return None if self._adopt(last) else iter((last,))

    def _together(self) -> Keys:
        short, self._short = self._short, []
        return np.concatenate(short) if short else np.empty(0, np.uint64)

    def _adopt(self, keys: Keys) -> bool:
        if len(keys) == 0:
            return True
        whole = keys.base if isinstance(keys.base, np.ndarray) else keys
        if keys.nbytes < _ADOPTED * whole.nbytes:
            whole = keys = keys.copy()
        try:
            reserved = self._scratch.host.reserve(whole.nbytes, self._scratch.what)
        except BudgetExceeded:
            return False
        array = self._scratch.array(np.uint64)
        array.adopt(keys, reserved)
        self._arrays.append(array)
        return True

    def drain(self, memory: int) -> Iterator[Keys]:
        """Yield all keys, in blocks of at most `memory` bytes where they are in files; nothing is left then."""
        while self._arrays:
            array = self._arrays.pop(0)
            for _, keys in array.tables(memory):
                yield keys
            array.drop()
        if self._short:
            yield self._together()

    def sort_distinct(self) -> ScratchArray | None:
        """Sort all keys, each once: uint64[n]. None, and all keys are still here, where memory is short."""
        total = sum(map(len, self._arrays))
        if self._short or not all(array.is_whole for array in self._arrays):
            return None
        made = self._scratch.array(np.uint64)
        if total == 0:
            return made
        host, what = self._scratch.host, self._scratch.what
        try:
            reserved = host.reserve(total * _KEY, what)
        except BudgetExceeded:
            return None
        buckets = _Buckets([array.read(0, len(array)) for array in self._arrays], self._scratch)
        self.discard()
        try:
            with host.reserve(total * _KEY, what):
                keys = buckets.sort_distinct()
        except (BudgetExceeded, _TooLarge):
            made.adopt(buckets.area, reserved)
            self._arrays.append(made)
            return None
        made.adopt(keys, reserved)
        return made

    def discard(self) -> None:
        """Free all memory and files."""
        for array in self._arrays:
            array.discard()
        self._arrays, self._short = [], []

    def __enter__(self) -> "KeyPile":
        return self

    def __exit__(self, *exc: object) -> None:
        self.discard()


class _TooLarge(Exception):
    """A bucket does not fit the work space."""


class _Buckets:
    """Keys of pieces, those of a bucket together in each.

    Attributes
    ----------
    area : uint64[n]
        The pieces, one behind the other.

    Parameters
    ----------
    pieces
        uint64[k] each; one key at least.
    scratch
        Has cores and a work space.
    """

    def __init__(self, pieces: Sequence[Keys], scratch: Scratch) -> None:
        from longwall.kernels.cpu.sorting.buckets import scatter_piece

        self._scratch = scratch
        bounds = scratch.on_cores(lambda piece: (int(piece.min()), int(piece.max())), pieces)
        low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
        shift = max(0, (high - low).bit_length() - _BIN_BITS)
        total = sum(map(len, pieces))
        bucket_of = _distribute(pieces, low, shift, (high - low >> shift) + 1, total)
        buckets = int(bucket_of[-1]) + 1
        size = max(_LEAST_PIECE, min(_LARGEST_PIECE, _FRAGMENT * buckets))
        parts = [piece[at : at + size] for piece in pieces for at in range(0, len(piece), size)]
        starts = np.cumsum([0, *map(len, parts)]).tolist()
        self.area = np.empty(total, np.uint64)
        self._places = np.empty((len(parts), buckets + 1), np.int64)

        def scatter(number: int) -> None:
            where = starts[number], self.area, self._places[number]
            scatter_piece(parts[number], np.uint64(low), np.uint64(shift), bucket_of, *where)

        scratch.on_cores(scatter, range(len(parts)))

    def sort_distinct(self) -> Keys:
        """Sort each bucket, each key once; returns the beginning of the area, which is overwritten."""
        from longwall.kernels.cpu.sorting.buckets import DIGIT_BITS, DIGITS, sort_distinct_buckets

        area, places, scratch = self.area, self._places, self._scratch
        sizes = np.diff(places, axis=1).sum(axis=0)
        spaces = Workspaces(int(sizes.max()), (DIGITS, 1 << DIGIT_BITS), scratch)
        if spaces.threads == 0:
            raise _TooLarge
        ends, groups = np.cumsum(sizes), max(_GROUPS_A_CORE * core_count(), len(area) // _GROUP)
        cuts = np.searchsorted(ends, np.arange(1, groups) * len(area) // groups, side="right")
        cuts = np.unique(np.concatenate(([0], cuts, [len(sizes)])))

        def sort(group: tuple[int, int]) -> Keys:
            first, last = group
            there = np.empty(ends[last - 1] - ends[first] + sizes[first], np.uint64)
            with spaces.take() as space:
                return there[: sort_distinct_buckets(area, places, first, last, *space, there)]

        parts = scratch.on_cores(sort, list(pairwise(cuts.tolist())), spaces.threads)

        def place(number: int) -> None:
            area[starts[number] : starts[number + 1]] = parts[number]

        starts = np.cumsum([0, *map(len, parts)]).tolist()
        scratch.on_cores(place, range(len(parts)))
        return area[: starts[-1]]


def _distribute(pieces: Sequence[Keys], low: int, shift: int, bins: int, total: int) -> npt.NDArray[np.uint16]:
    """Return a bucket for each bin of keys, so that buckets have about as many keys, judging by some of them."""
    seen = np.concatenate([piece[::_SAMPLED] for piece in pieces])
    counts = np.bincount(((seen - np.uint64(low)) >> np.uint64(shift)).astype(np.int64), minlength=bins)
    buckets = max(1, min(total // _BUCKET, _MOST_BUCKETS))
    return ((np.cumsum(counts) - counts) * buckets // len(seen)).clip(max=buckets - 1).astype(np.uint16)
