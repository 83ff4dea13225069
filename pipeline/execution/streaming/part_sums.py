"""What was found in parts of a graph, added up for the whole graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.stages.base import Aggregation
from longwall.stages.range_counting import CountOfVertices, CountRanges
from longwall.storage.streaming.graph_parts import GraphPart

_MEMBERS_AT_ONCE = 1 << 14

Int64s = NDArray[np.int64]


class PartSums(ABC):
    """Adds up what was found in parts.

    Attributes
    ----------
    nbytes
        What it takes of the host, from the first part on; the caller has reserved that.
    member_bytes
        What is found of a member of a part, which comes from a device into memory of the host.
    """

    nbytes, member_bytes = 0, 0

    @abstractmethod
    def add(self, found: Any, part: GraphPart) -> None:
        """Add what the stage's aggregation has of a part."""

    @abstractmethod
    def take(self) -> Any:
        """Return what was found since the last call, or all of it, as the stage's aggregation has it."""


class SumOfValues(PartSums):
    """One value for the whole graph, combined as the aggregation does."""

    def __init__(self, aggregation: Aggregation[Any, Any]):
        self._combine, self._found = aggregation.combine, list[Any]()

    def add(self, found: Any, part: GraphPart) -> None:  # noqa: ARG002
        """See `PartSums`."""
        self._found = [self._combine([*self._found, found])]

    def take(self) -> Any:
        """See `PartSums`: what was found since the last call."""
        found, self._found = self._found, []
        return self._combine(found)


class SumsOfVertices(PartSums):
    """Numbers of every vertex, added at the ranks' vertices."""

    def __init__(self, count: CountOfVertices, num_vertices: int):
        self._combine, self._shape = count.aggregation.combine, count.counts_shape(num_vertices)
        self.nbytes, self.member_bytes = 8 * count.places(num_vertices), 8 * count.places(1)

    @cached_property
    def _sums(self) -> Int64s:
        return np.zeros(self._shape, np.int64)

    def add(self, found: Any, part: GraphPart) -> None:
        """See `PartSums`."""
        size = part.graph.num_vertices
        for first in range(0, size, _MEMBERS_AT_ONCE):
            last = min(first + _MEMBERS_AT_ONCE, size)
            members = part.members.members(first, last)
            own = self._sums[..., members]
            self._sums[..., members] = self._combine([own, found[..., first:last]])

    def take(self) -> Any:
        """See `PartSums`: all that was found."""
        return self._sums


class WeighedSum(PartSums):
    """One number of what is found of every vertex, which its weight multiplies while the part is there.

    Parameters
    ----------
    weigh
        Adds up what was found, int64[k], of int64[k] vertices, each times its weight; exactly, however large.
    """

    member_bytes = 8

    def __init__(self, weigh: Callable[[Int64s, Int64s], int]):
        self._weigh, self._sum = weigh, 0

    def add(self, found: Any, part: GraphPart) -> None:
        """See `PartSums`."""
        size = part.graph.num_vertices
        for first in range(0, size, _MEMBERS_AT_ONCE):
            last = min(first + _MEMBERS_AT_ONCE, size)
            self._sum += self._weigh(part.members.members(first, last), found[first:last])

    def take(self) -> int:
        """See `PartSums`: what was found since the last call."""
        found, self._sum = self._sum, 0
        return found


def sums_of(count: CountRanges, num_vertices: int) -> PartSums:
    """Return what adds up what a stage finds."""
    if isinstance(count, CountOfVertices):
        return SumsOfVertices(count, num_vertices)
    return SumOfValues(count.aggregation)
