"""Pure functions on arrays, twice: ``cpu`` (Numba) and ``cuda`` (CUDA C++, through CuPy)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longwall.kernels.interface.engine import Ablation, Engine

KINDS = ("auto", "cpu", "cuda")

__all__ = ["prepare_engine", "select_engine"]


def prepare_engine(kind: str) -> None:
    """Begin what `select_engine` of that kind will wait for, as far as it can be done meanwhile; errors come there."""
    if kind != "cpu":
        from longwall.kernels.cuda.runtime.open_device import prepare_device

        prepare_device()


def select_engine(
    kind: str, threads: int = 0, ablation: Ablation | None = None, note: Callable[[str], object] | None = None
) -> Engine:
    """Return an engine.

    Parameters
    ----------
    kind
        ``"cpu"``, ``"cuda"``, or ``"auto"``: CUDA where it works.
    threads
        Worker threads of the CPU engine; 0 takes all cores that this process may use.
    ablation
        Optimisations of the CUDA engine to switch off; none if not given.
    note
        Is called with what the user should know: that the CPU stands in for a device whose memory is taken.

    Raises
    ------
    EngineUnavailable
        If there is no such engine, or CUDA is asked for and does not work here.
    """
    from longwall.kernels.interface.engine import Ablation, DeviceFull, EngineUnavailable

    if kind not in KINDS:
        raise EngineUnavailable(f"there is no such engine; choose one of {', '.join(KINDS)}")
    if kind in ("auto", "cuda"):
        from longwall.kernels.cuda.engine import CudaEngine  # another thread may open the device meanwhile
        from longwall.kernels.cuda.runtime.open_device import open_device

        try:
            open_device()
            return CudaEngine(ablation or Ablation())
        except EngineUnavailable as reason:
            if kind == "cuda":
                raise
            if note is not None and isinstance(reason, DeviceFull):
                note(f"the CPU does the work, since {reason}")
    from longwall.kernels.cpu.engine import CpuEngine

    return CpuEngine(threads)
