"""The CUDA engine: kernels of CUDA C++ over device arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels import cuda
from longwall.kernels.cuda.device import Device
from longwall.kernels.cuda.runtime.compile import compilations, watch_compilation
from longwall.kernels.cuda.runtime.host_memory import (
    ManagedArray,
    can_move_pages,
    copied_to_map,
    is_managed,
    managed_array,
)
from longwall.kernels.cuda.runtime.host_memory import mapped as map_array
from longwall.kernels.cuda.runtime.memory import DeviceMemory, check_room, copied, copied_array
from longwall.kernels.cuda.runtime.open_device import open_device
from longwall.kernels.cuda.runtime.page_buffer import CudaPageFrames
from longwall.kernels.cuda.runtime.pinned_buffers import StagedCopies
from longwall.kernels.cuda.runtime.sources import sources_of
from longwall.kernels.interface.engine import (
    COPY_BUFFER,
    WORTH_BUFFERS,
    Ablation,
    Call,
    CopiesAhead,
    EngineLost,
)
from longwall.kernels.interface.graph_arrays import VERTEX_ARRAYS, Access, GraphArrays

if TYPE_CHECKING:
    from longwall.kernels.interface.kernels import Kernels

_ROOTS_PER_TASK_LOG2 = 21


class CudaPaging:
    """Adjacencies in managed memory; see :class:`longwall.kernels.interface.engine.Paging`.

    Parameters
    ----------
    device
        The device.
    """

    def __init__(self, device: Device):
        self._device = device

    @property
    def supported(self) -> bool:
        """Whether managed memory works here as "adaptive" and "managed" access need it."""
        return can_move_pages(self._device.xp)

    def host_array(self, length: int, dtype: np.dtype[Any], access: Access) -> NDArray[Any]:
        """Make an empty array on the host: managed memory, where that is what kernels read."""
        if access in ("adaptive", "managed"):
            return managed_array(self._device.xp, length, dtype)
        return np.empty(length, dtype)

    def send_back(self, graph: GraphArrays, ranges: NDArray[np.int64]) -> None:
        """Move parts of an adjacency in managed memory to the host, before the kernels that are launched next."""
        if len(ranges):
            graph.managed.move(ranges, to_device=False)
            self._device.memory.sample()

    def frames(self, graph: GraphArrays, number: int, page_arcs: int) -> CudaPageFrames:
        """Make room on the device for copies of pages."""
        return CudaPageFrames(self._device, graph, number, page_arcs)


class CudaEngine:
    """The engine of the current CUDA device; see :class:`longwall.kernels.interface.engine.Engine`.

    Raises
    ------
    EngineUnavailable
        If there is none that works.
    DeviceFull
        If its memory is taken.
    """

    name = "cuda"
    workers = 1  # one thread keeps the device busy: every kernel fills it
    kernels: Kernels = cuda

    def __init__(self, ablation: Ablation = Ablation()) -> None:  # noqa: B008 - immutable
        self.xp: Any = open_device()
        check_room(self.xp)
        self.device = Device(self.xp, ablation)
        self.memory: DeviceMemory = self.device.memory
        self.paging = CudaPaging(self.device)

    def tasks(self, size: int) -> int:
        """Number of tasks into which work over `size` roots should be cut: a launch should outlast its overhead."""
        return max(size >> _ROOTS_PER_TASK_LOG2, 1)

    @contextmanager
    def copying_ahead(self, arrays: Sequence[NDArray[Any]], capacity: int) -> Iterator[CopiesAhead]:
        """Copy arrays of a graph to the device while they are filled, so that `load` finds them there."""
        with self.faults():
            copies = StagedCopies(self.device, capacity)
            begun = [copies.begin(array) for array in arrays]
        with copies:
            yield CopiesAhead([put for _, put in begun], partial(_copied, copies, [there for there, _ in begun]))
        self.memory.keep(arrays, [there for there, _ in begun])

    def load(
        self,
        graph: GraphArrays,
        access: Access = "resident",
        vertices: Collection[str] = VERTEX_ARRAYS,
        *,
        capacity: int = 0,
    ) -> GraphArrays:
        """Bring a host graph to where the kernels can read it."""
        xp, managed = self.xp, None
        arrays = {name: getattr(graph, name) for name in graph.vertex_arrays if name in vertices}
        if access == "resident":
            arrays["indices"] = graph.indices
        arrays = self._brought(arrays, capacity)
        if access == "zero-copy":
            arrays["indices"] = map_array(xp, graph.indices)
        elif access != "resident":
            managed = ManagedArray(xp, graph.indices, home="host" if access == "adaptive" else None)
            arrays["indices"] = managed.array
        for name in set(graph.vertex_arrays) - set(vertices):
            arrays[name] = map_array(xp, getattr(graph, name))
        if graph.oriented:
            arrays["split"] = arrays["indptr"][1:]
        return replace(graph, managed=managed, **arrays)

    def _brought(self, arrays: dict[str, NDArray[Any]], capacity: int) -> dict[str, Any]:
        """Copy arrays to the device that are not there yet: long ones by way of buffers, if there is room for them."""
        kept = self.memory.take_kept(list(arrays.values()))
        there = {name: made for name, made in zip(arrays, kept, strict=True) if made is not None}
        missing = {name: array for name, array in arrays.items() if name not in there}
        staged = [name for name, array in missing.items() if array.nbytes >= COPY_BUFFER <= capacity]
        if sum(missing[name].nbytes for name in staged) >= WORTH_BUFFERS:
            with StagedCopies(self.device, capacity) as copies:
                there |= {name: copies.send(missing.pop(name)) for name in staged}
        return there | copied(self.xp, missing)

    def host_copy(self, graph: GraphArrays, access: Access, vertices: Collection[str] = VERTEX_ARRAYS) -> int:
        """Return the bytes of the host that `load` takes for copies of a graph's arrays."""
        copied = sum(copied_to_map(getattr(graph, name)) for name in graph.vertex_arrays if name not in vertices)
        if access == "zero-copy":
            copied += copied_to_map(graph.indices)
        elif access != "resident" and not is_managed(graph.indices):
            copied += graph.indices.nbytes
        return copied

    def bring(self, array: NDArray[Any], *, mapped: bool) -> Any:
        """Copy an array to the device, or map it."""
        return map_array(self.xp, array) if mapped else copied_array(self.xp, array)

    def faults(self) -> AbstractContextManager[None]:
        """Take this thread's arrays from the engine's memory, and raise CUDA's errors as the engine's."""
        return self.device.faults()

    def watch_compilation(self, report: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `report` once if a kernel has to be compiled while the context is open."""
        return watch_compilation(report)

    def compilations(self, calls: Iterable[Call]) -> list[Callable[[], object]]:
        """Return a function for each source that calls need and that is not loaded yet; it compiles the source."""
        sources = {source for name, arguments in calls for source in sources_of(getattr(self.kernels, name), arguments)}
        return compilations(self.device.number, sources)

    def interrupt(self) -> None:
        """Make running kernels return as soon as they can; the engine is of no further use."""
        with suppress(EngineLost), self.faults():  # a lost device runs no kernels
            self.device.interrupt()


def _copied(copies: StagedCopies, arrays: list[Any]) -> list[Any]:
    """Wait until the pieces that were put so far are copied, and return the arrays."""
    copies.wait()
    return arrays
