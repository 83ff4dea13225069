"""The cores of the host, as kernels know them, and checks that kernels share."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.exact_numbers import two_words
from longwall.kernels.interface.engine import Ablation, WorkspaceTooLarge


@dataclass(frozen=True)
class CpuDevice:
    """The cores of the host; see :class:`longwall.kernels.interface.engine.Device`.

    Attributes
    ----------
    workers
        Number of threads.
    stop_flag : uint8[1]
        Kernels return early once this is set.
    """

    workers: int
    stop_flag: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(1, np.uint8))
    ablation = Ablation()

    @property
    def name(self) -> str:
        """The number of threads."""
        return f"{self.workers} threads"

    def stream(self) -> AbstractContextManager[None]:
        """Return a context without effect: threads run beside each other in any case."""
        return nullcontext()


def fitting(needed: int, memory: int) -> int:
    """Return the bytes of a workspace.

    Raises
    ------
    WorkspaceTooLarge
        If they exceed `memory`.
    """
    if needed > memory:
        raise WorkspaceTooLarge(needed)
    return needed


def exact(total: int, estimate: float) -> int:
    """Return a count that a kernel took modulo 2**64, checked by its floating-point twin.

    Raises
    ------
    OverflowError
        If the count does not fit 64-bit integers.
    """
    if estimate >= 2.0**62:
        raise OverflowError(f"a count of about {estimate:.3g} does not fit 64-bit integers")
    return int(total)


class CpuRangeCounter:
    """Counts ranges of roots with a compiled kernel; the workspace of one worker.

    Parameters
    ----------
    device
        The device of the engine.
    kernel
        Called with `before`, the first root, the end of the range, `after`, and the stop flag; returns two values.
    before, after
        Arguments of the kernel: arrays of the graph, and workspaces.
    workspace_bytes
        Bytes of the workspaces.
    number
        Makes the count of the two values that the kernel returns.
    """

    def __init__(
        self,
        device: CpuDevice,
        kernel: Callable[..., Any],
        before: tuple[Any, ...],
        after: tuple[Any, ...],
        workspace_bytes: int,
        number: Callable[[int, float], int] | Callable[[int, int], int] = two_words,
    ):
        self.workspace_bytes = workspace_bytes
        self._kernel, self._before, self._after, self._number = kernel, before, (*after, device.stop_flag), number

    def count(self, first: int, last: int) -> int:
        """Return the count of the roots first to last - 1."""
        return self._number(*self._kernel(*self._before, first, last, *self._after))
