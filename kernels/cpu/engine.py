"""The CPU engine: Numba kernels over NumPy arrays, which release the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels import cpu
from longwall.kernels.cpu.device import CpuDevice
from longwall.kernels.interface.engine import Call, CopiesAhead, host_faults
from longwall.kernels.interface.graph_arrays import VERTEX_ARRAYS, Access, GraphArrays
from longwall.kernels.jit.compile import watch_compilation

if TYPE_CHECKING:
    from longwall.kernels.interface.kernels import Kernels
    from longwall.kernels.interface.pages import PageFrames

_TASKS_PER_WORKER = 128


Int64s = NDArray[np.int64]


class _HostMemory:
    """No memory of its own: the kernels work in host memory, which callers reserve."""

    def free(self) -> None:
        """Host memory is what the kernels work in."""

    def spare(self) -> int:
        """The engine has no memory of its own."""
        return 0

    def limit(self, size: int) -> None:
        """Callers reserve what the kernels take."""

    def fill(self, there: NDArray[Any], values: NDArray[Any]) -> None:
        """Copy an array into another one."""
        there[...] = values

    def release(self, *, garbage: bool = True) -> None:
        """Nothing is cached here."""

    def trim(self) -> None:
        """Nothing is cached here."""

    def peak(self) -> None:
        """There is no memory but the host's."""


class _NoFrames:
    """Page frames where none are needed; see :class:`longwall.kernels.interface.pages.PageFrames`."""

    origin = 0

    def mark(self) -> None:
        """Nothing is waited for."""

    def fill(self, moves: tuple[Int64s, Int64s], table: Any, values: Int64s, behind: Any = None) -> None:
        """Nothing is copied."""

    def settle(self) -> None:
        """Nothing is waited for."""

    def close(self) -> None:
        """Nothing is waited for."""


class NoPaging:
    """Paging where all pages are in the memory that the kernels work in."""

    supported = True

    def host_array(self, length: int, dtype: np.dtype[Any], access: Access) -> NDArray[Any]:  # noqa: ARG002
        """Make an empty array."""
        return np.empty(length, dtype)

    def send_back(self, graph: GraphArrays, ranges: NDArray[np.int64]) -> None:
        """All pages are where the kernels are."""

    def frames(self, graph: GraphArrays, number: int, page_arcs: int) -> PageFrames:  # noqa: ARG002
        """The kernels read pages where they are."""
        return _NoFrames()


class CpuEngine:
    """The engine of machines without a GPU; see :class:`longwall.kernels.interface.engine.Engine`."""

    name = "cpu"
    xp = np
    kernels: Kernels = cpu
    memory = _HostMemory()
    paging = NoPaging()

    def __init__(self, threads: int = 0):
        self.workers = threads or len(os.sched_getaffinity(0))
        self.device = CpuDevice(self.workers)

    def tasks(self, size: int) -> int:  # noqa: ARG002 - small tasks cost little here, whatever the size
        """Number of tasks into which work over `size` roots should be cut."""
        return self.workers * _TASKS_PER_WORKER

    def copying_ahead(self, arrays: Sequence[NDArray[Any]], capacity: int) -> AbstractContextManager[CopiesAhead]:  # noqa: ARG002
        """The kernels read host arrays in place."""
        return nullcontext(CopiesAhead([lambda start, items: None for _ in arrays], lambda: list(arrays)))  # noqa: ARG005

    def load(
        self,
        graph: GraphArrays,
        access: Access = "resident",  # noqa: ARG002
        vertices: Collection[str] = VERTEX_ARRAYS,  # noqa: ARG002
        *,
        capacity: int = 0,  # noqa: ARG002
    ) -> GraphArrays:
        """The kernels read host arrays in place, whatever the access."""
        return graph

    def host_copy(self, graph: GraphArrays, access: Access, vertices: Collection[str] = VERTEX_ARRAYS) -> int:  # noqa: ARG002
        """Nothing is copied."""
        return 0

    def bring(self, array: NDArray[Any], *, mapped: bool) -> NDArray[Any]:  # noqa: ARG002
        """The kernels read host arrays in place."""
        return array

    def faults(self) -> AbstractContextManager[None]:
        """Raise a `MemoryError` as `ShortOfMemory`."""
        return host_faults()

    def watch_compilation(self, report: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `report` once if a kernel has to be compiled while the context is open."""
        return watch_compilation(report)

    def compilations(self, calls: Iterable[Call]) -> list[Callable[[], object]]:  # noqa: ARG002
        """Return nothing: processes of :class:`longwall.kernels.jit.compile_pool.CompilePool` compile its kernels."""
        return []

    def interrupt(self) -> None:
        """Make running kernels return as soon as they can."""
        self.device.stop_flag[0] = 1
