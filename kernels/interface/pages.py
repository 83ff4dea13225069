"""What engines are told of a graph whose adjacency is not all on the device."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.frontier import RowReads

Array = Any  # a NumPy or a CuPy array


class Pages(Protocol):
    """The pages of an adjacency that is not all on the device.

    Attributes
    ----------
    slots
        Adjacency slots of a page: a power of two.
    places : int64[pages + 1]
        The logarithm of `slots` to the base 2; then for each page in how many slots its copy on the device lies behind
        its place in the adjacency, 0 where there is no copy. An array of the engine, a new one whenever that changes;
        None where there never are copies, and lists are read where they are.
    staged
        Whether lists that lie in other pages are best copied to the device in the order of the pages, before they are
        read in any other order. Not where pages come to the device when they are touched.
    """

    slots: int
    places: Array | None
    staged: bool

    def prepare(self, level: int, reads: Sequence[RowReads]) -> None:
        """Choose the pages of which copies should be on the device for what comes next, and begin to copy them.

        What was known of `places` is not true any more.

        Parameters
        ----------
        level
            The level that the reads are for.
        reads
            What will be read; see :func:`longwall.kernels.interface.frontier.frontier`.
        """
        ...

    def settle(self) -> None:
        """Let kernels that are launched from now on wait for the copies that were begun."""
        ...

    def touch(self, level: int, reads: Sequence[RowReads]) -> None:
        """Tell what will be read where it is, without a look at `places`; parameters as of `prepare`."""
        ...

    def scan(self, first: int, last: int) -> None:
        """Tell that a range of slots is read once, in order."""
        ...

    def shrink(self) -> bool:
        """Give up half of the room for copies, for good, and all copies; gives whether any memory was held for them."""
        ...


class PageFrames(Protocol):
    """Copies of pages on the device.

    Attributes
    ----------
    origin
        In how many slots the first place lies behind the adjacency's first slot.
    """

    origin: int

    def fill(self, pages: NDArray[np.int64], places: NDArray[np.int64]) -> None:
        """Begin to copy pages to places, once the kernels have ended that were launched before."""
        ...

    def settle(self) -> None:
        """Let kernels that are launched from now on wait for the copies that were begun."""
        ...

    def close(self) -> None:
        """Wait for the copies that were begun; the buffer is of no further use."""
        ...
