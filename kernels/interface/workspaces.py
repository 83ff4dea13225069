"""Workspaces of workers, those of several families of kernels; others are in the module of their family."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Device = Any  # of the engine whose kernel it is: a CpuDevice, or the CUDA engine's Device
NARROW = 64
"""Vertices whose bitmaps are a single word."""
Targets = tuple[int, int]
"""Vertices from the first number to the second, less one: only arcs to these count."""


class Block(NamedTuple):
    """A range of arcs, those of them that count, and those that count in blocks to come.

    Attributes
    ----------
    first, last
        The first arc, and one past the last.
    targets
        The vertices that arcs count to; None: all.
    later
        Vertices that arcs of the range will count to.
    """

    first: int
    last: int
    targets: Targets | None
    later: Sequence[Targets | None] = ()


class Workspace(Protocol):
    """What a worker's calls write to.

    Attributes
    ----------
    workspace_bytes
        Its bytes in host memory.
    """

    @property
    def workspace_bytes(self) -> int: ...  # noqa: D102


class RangeCounter(Workspace, Protocol):
    """Workspace of one worker that counts something over ranges of roots."""

    def count(self, first: int, last: int) -> int:
        """Count what belongs to the roots first to last - 1."""


class ArrayCounter(Workspace, Protocol):
    """Workspace of one worker that counts into an array: per vertex, edge, size or class, as its kernel says."""

    def add(self, first: int, last: int) -> None:
        """Add what belongs to the roots first to last - 1."""

    def counts(self) -> NDArray[np.int64]:
        """Counts so far, on the host."""
