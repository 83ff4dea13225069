"""Interface of a paged adjacency, one of which not all is on the device, and of the rows that are read of it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = Any  # a NumPy or a CuPy array


class NeighbourRange(IntEnum):
    """The part of a vertex's row that is read."""

    ALL = 0
    SMALLER = 1  # neighbours with a smaller id: before the row's split
    LARGER = 2  # neighbours with a larger id: from the row's split


@dataclass(frozen=True)
class RowReads:
    """Rows of the adjacency that are read alike.

    Attributes
    ----------
    vertices : uint32[n]
        Owners of the rows; a vertex stands here as often as its row is read.
    part
        What is read of each row.
    times
        How often all of it is read.
    prefix : uint32[columns, n] or None
        A vertex' row is read only where a column of these differs from the position before: neighbouring positions
        that are equal share a read. None: the row of every vertex is read.
    """

    vertices: Array
    part: NeighbourRange
    times: int = 1
    prefix: Array | None = None


class Pages(Protocol):
    """The pages of an adjacency that is not all on the device.

    Attributes
    ----------
    page_arcs
        Arcs of a page: a power of two.
    places : int64[pages + 1]
        The logarithm of `page_arcs` to the base 2; then for each page how many arcs its copy on the device lies behind
        its place in the adjacency, 0 where there is no copy. An array of the engine, a new one whenever that changes;
        None where there never are copies, and lists are read where they are.
    staged
        Whether lists that lie in other pages are best copied to the device in the order of the pages, before they are
        read in any other order. Not where pages come to the device when they are touched.
    """

    page_arcs: int
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

    def prepare_all(self, level: int, spatial: Callable[[], NDArray[np.uint64]]) -> None:
        """Choose the pages for all that a phase reads, unless that was done since copies were dropped.

        Parameters
        ----------
        level
            The level that the reads are for.
        spatial
            Returns the bytes that will be read of every page, uint64[pages].
        """

    def hold(self, ranges: Sequence[tuple[int, int]], before: Sequence[Sequence[tuple[int, int]]] = ()) -> None:
        """Have copies of the pages of ranges of arcs, as many as there is room for, and begin to make them.

        Parameters
        ----------
        ranges
            The ranges.
        before
            The ranges of the last calls, the latest ones last: all that kernels read that were launched since each of
            these. As many of them are kept as there is room for, and pages are copied while those kernels run. Copies
            wait for all others.
        """

    def most_to(self, arcs: tuple[int, int], vertices: tuple[int, int]) -> int:
        """Return a bound of how many arcs of a range, which is held, lead to a range of vertices."""

    def cut(
        self, arcs: tuple[int, int], vertices: tuple[int, int], most: int
    ) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Cut a range of arcs, and of the vertices that they lead to, so that a piece has few enough arcs.

        Parameters
        ----------
        arcs
            The range, which is held.
        vertices
            The first vertex, and one past the last.
        most
            The most arcs of a piece, at least 1.

        Yields
        ------
        ((int, int), (int, int))
            A range of arcs, of which at most `most` lead to the range of vertices.
        """

    @property
    def cache_arcs(self) -> int:
        """The arcs for which there is room in copies."""

    def settle(self) -> None:
        """Let kernels that are launched from now on wait for the copies that were begun."""

    def touch(self, level: int, reads: Sequence[RowReads]) -> None:
        """Record reads that do not look at `places`, but read lists where they are; parameters as of `prepare`."""

    def scan(self, first: int, last: int) -> None:
        """Record that a range of arcs is read once, in order."""

    def shrink(self) -> bool:
        """Free half of the room for copies, for good, and drop all copies. Return whether any memory was held."""


class PageFrames(Protocol):
    """Copies of pages on the device.

    Attributes
    ----------
    origin
        How many arcs the first place lies behind the adjacency's first arc.
    """

    origin: int

    def mark(self) -> Any:
        """Return the kernels that were launched so far, for `fill`."""

    def fill(
        self,
        moves: tuple[NDArray[np.int64], NDArray[np.int64]],
        table: Array,
        values: NDArray[np.int64],
        behind: Any = None,
    ) -> None:
        """Begin to copy pages to places, once kernels have ended, and write a page table.

        Parameters
        ----------
        moves : int64[k], int64[k]
            The pages, and their places.
        table : int64[at least len(values) + 2k]
            The engine's array for the page table; behind that it says what is copied.
        values : int64[pages + 1]
            What the page table holds then.
        behind
            What `mark` returned: those kernels must have ended, and others look at the page table after `settle`. None:
            all that were launched, and those that are launched next may look at it.
        """

    def settle(self) -> None:
        """Let kernels that are launched from now on wait for the copies that were begun."""

    def close(self) -> None:
        """Wait for the copies that were begun; the buffer is of no further use."""
