"""An engine's part of an external sort: sort chunks of keys, and merge parts of sorted runs.

Keys and their payloads are columns, arrays of one length: the high words of the keys if they have 128 bits, the low
words, then the payload if there is one. All are uint64; an int64 payload is looked at as uint64.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.workspaces import Device

Array = Any  # a NumPy or a CuPy array
Column = NDArray[np.uint64]
Columns = list[Column]
Reduce = Literal["none", "distinct", "count", "sum"]
"""What becomes of equal keys: all stay, in the order in which they were given; one stays; one stays, with their number
as its payload; one stays, with the sum of their payloads, which are not negative."""
Method = Literal["multi-merge", "naive", "sort"]
"""How a device merges: by Algorithm 3 of GAMMA, each pair of runs searched once; the same with each pair searched both
ways; by sorting what it was given. On the host the first two are one."""

WORD = 8  # bytes


class SumOverflow(Exception):
    """A sum of payloads does not fit int64, or a payload that is to be summed is negative."""


@dataclass(frozen=True)
class KeyLayout:
    """What is sorted.

    Attributes
    ----------
    words
        64-bit words of a key: 1 or 2.
    payload
        Whether keys are given with a payload.
    reduce
        What becomes of equal keys: "count" makes a payload, "sum" needs one.
    """

    words: int = 1
    payload: bool = False
    reduce: Reduce = "none"

    def __post_init__(self) -> None:
        if self.words not in (1, 2) or (self.reduce != "none" and self.payload != (self.reduce == "sum")):
            raise ValueError(f"no such layout: {self}")

    @property
    def given(self) -> int:
        """Columns that are given."""
        return self.words + self.payload

    @property
    def columns(self) -> int:
        """Columns of what is sorted."""
        return self.words + (self.payload or self.reduce == "count")


class Work(Protocol):
    """Something under way."""

    def result(self) -> Columns:
        """Wait for it. Return its result, or raise what it raised."""


class SortBuffers(Protocol):
    """Buffers of an engine for several batches of keys at a time: chunks or windows.

    Attributes
    ----------
    capacity
        Most keys of a batch.
    depth
        Most batches under way: that many may be waited for when the next is begun, less one.
    """

    @property
    def capacity(self) -> int: ...  # noqa: D102
    @property
    def depth(self) -> int: ...  # noqa: D102

    def reserve(self, batches: int) -> None:
        """Prepare memory on the host for the results of a number of batches."""

    def recycle(self, columns: Columns) -> None:
        """Return the columns of a batch, which are no longer needed."""

    def close(self) -> None:
        """Wait for what has begun, begin nothing more, and free all memory."""


class ChunkSorter(SortBuffers, Protocol):
    """Sorts chunk after chunk."""

    def put(self, at: int, columns: Sequence[Array]) -> None:
        """Copy columns, of the engine or the host, to place `at` of the present chunk; they may change afterwards."""

    def sort(self, count: int) -> Work:
        """Sort the first `count` keys of the present chunk and reduce equal ones; another chunk becomes the present.

        The columns that come of it are on the host; they belong to the caller, which may return them by `recycle`.
        """


class RunMerger(SortBuffers, Protocol):
    """Merges windows of sorted runs.

    Attributes
    ----------
    widest
        Most parts of a window.
    """

    @property
    def widest(self) -> int: ...  # noqa: D102

    def merge(self, sizes: Sequence[int], read: Callable[[], Iterator[Columns]]) -> Work:
        """Merge sorted parts of runs and reduce equal keys; of equal keys that stay, those of earlier parts come first.

        Parameters
        ----------
        sizes
            Keys of each part.
        read
            Yields the parts, one after the other; called once, by another thread.

        Returns
        -------
        Work
            Its columns are on the host, and are to be returned by `recycle`.
        """


class SortingKernels(Protocol):
    """Make buffers for sorting and merging keys."""

    def chunk_sorter(self, device: Device, layout: KeyLayout, host_memory: int, device_memory: int) -> ChunkSorter:
        """Buffers for sorting chunks of keys, in at most these bytes of the host and of the device, if any."""

    def run_merger(
        self, device: Device, layout: KeyLayout, host_memory: int, device_memory: int, method: Method
    ) -> RunMerger:
        """Buffers for merging sorted runs, in at most these bytes of the host and of the device, if any."""
