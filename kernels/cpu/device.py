"""The cores of the host, as kernels know them, and checks that kernels share."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

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
