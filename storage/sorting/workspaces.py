"""Workspaces in which threads sort buckets, as many as the work space of a scratch has room for."""

from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue

import numpy as np
import numpy.typing as npt

from longwall.storage.sorting.scratch_arrays import Scratch
from longwall.storage.system.concurrency import core_count

_WORD = 8  # bytes

Space = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.int64]]
"""Two times room for the largest bucket, and counters of digits."""


class Workspaces:
    """One for each thread.

    Parameters
    ----------
    largest
        Words of the largest bucket.
    counters
        Shape of the counters.
    scratch
        Its work space pays for them.
    more
        Bytes that a thread takes besides.

    Attributes
    ----------
    threads
        How many have room; 0 if none has.
    """

    def __init__(self, largest: int, counters: tuple[int, int], scratch: Scratch, more: int = 0) -> None:
        self._largest, self._counters = largest, counters
        each = _WORD * (2 * largest + counters[0] * counters[1]) + more
        self.threads = min(core_count(), scratch.work // each)
        self._spare: SimpleQueue[Space] = SimpleQueue()

    @contextmanager
    def take(self) -> Iterator[Space]:
        """Lend one, which no other thread has meanwhile."""
        try:
            space = self._spare.get_nowait()
        except Empty:
            space = self._new()
        yield space
        self._spare.put(space)

    def _new(self) -> Space:
        words, other = np.empty(self._largest, np.uint64), np.empty(self._largest, np.uint64)
        return words, other, np.empty(self._counters, np.int64)
