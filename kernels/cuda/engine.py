"""The CUDA engine: the same calls as the CPU engine, over device arrays."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.counters import (
    CudaCliqueCounter,
    CudaFourCycleCounter,
    CudaTriangleCounter,
    CudaTriangleVertexCounter,
)
from longwall.kernels.cuda.edge_extension import CudaEdgeExtender
from longwall.kernels.cuda.homomorphisms import CudaRowCounter
from longwall.kernels.cuda.motifs import CudaMotifCounter, CudaOrbitCounter
from longwall.kernels.cuda.page_bytes import page_bytes
from longwall.kernels.cuda.pattern_growth import CudaGrower
from longwall.kernels.cuda.runtime.compile import watch_compilation
from longwall.kernels.cuda.runtime.device import open_device
from longwall.kernels.cuda.runtime.errors import cuda_faults
from longwall.kernels.cuda.runtime.host_memory import (
    TAKEN_AT_ONCE,
    ManagedArray,
    can_move_pages,
    copied_to_map,
    is_managed,
    managed_array,
)
from longwall.kernels.cuda.runtime.host_memory import mapped as map_array
from longwall.kernels.cuda.runtime.launch import Device
from longwall.kernels.cuda.runtime.page_buffer import CudaPageFrames
from longwall.kernels.cuda.search import CudaSearcher
from longwall.kernels.cuda.sorting import CudaChunkSorter, CudaRunMerger
from longwall.kernels.interface.engine import VERTEX_ARRAYS, Ablation, Access, EngineLost, GraphArrays, MemoryPeak
from longwall.kernels.interface.frontier import RowReads
from longwall.kernels.interface.homomorphism_program import RowProgram
from longwall.kernels.interface.pattern_growth import TypedGraph
from longwall.kernels.interface.search_program import SearchProgram
from longwall.kernels.interface.sorting import KeyLayout, Method

_ROOTS_PER_TASK_LOG2 = 21


class CudaEngine:
    """The engine of the current CUDA device; see :class:`longwall.kernels.interface.engine.Engine`.

    Raises
    ------
    EngineUnavailable
        If there is none that works.
    """

    name = "cuda"
    workers = 1  # one thread keeps the device busy: every kernel fills it

    def __init__(self, ablation: Ablation = Ablation()) -> None:  # noqa: B008 - immutable
        self.xp: Any = open_device()
        self.ablation = ablation
        self._device = Device(self.xp)
        self.device = self._device.name

    def load(
        self, graph: GraphArrays, access: Access = "resident", vertices: Collection[str] = VERTEX_ARRAYS
    ) -> GraphArrays:
        """Bring a host graph to where the kernels can read it."""
        xp, managed = self.xp, None
        if access == "resident":
            indices = xp.asarray(graph.indices)
        elif access == "zero-copy":
            indices = map_array(xp, graph.indices)
        else:
            managed = ManagedArray(xp, graph.indices, home="host" if access == "adaptive" else None)
            indices = managed.array
        of_vertices = {}
        for name in VERTEX_ARRAYS:
            array = getattr(graph, name)
            of_vertices[name] = xp.asarray(array) if name in vertices else map_array(xp, array)
        return replace(graph, indices=indices, managed=managed, **of_vertices)

    @property
    def can_move_pages(self) -> bool:
        """Whether managed memory works here as "adaptive" and "managed" access need it."""
        return can_move_pages(self.xp)

    def host_array(self, length: int, dtype: np.dtype[Any], access: Access) -> NDArray[Any]:
        """Make an empty array on the host: managed memory, where that is what kernels read."""
        if access in ("adaptive", "managed"):
            return managed_array(self.xp, length, dtype)
        return np.empty(length, dtype)

    def host_copy(self, graph: GraphArrays, access: Access, vertices: Collection[str] = VERTEX_ARRAYS) -> int:
        """Tell how many bytes of the host `load` takes for copies of a graph's arrays."""
        copied = sum(copied_to_map(getattr(graph, name)) for name in VERTEX_ARRAYS if name not in vertices)
        if access == "zero-copy":
            copied += copied_to_map(graph.indices)
        elif access != "resident" and not is_managed(graph.indices):
            copied += graph.indices.nbytes
        return copied

    def send_back(self, graph: GraphArrays, ranges: NDArray[np.int64]) -> None:
        """Move parts of an adjacency in managed memory to the host, before the kernels that are launched next."""
        if len(ranges):
            graph.managed.move(ranges, to_device=False)
            self._device.memory.sample()

    def spare_memory(self) -> int:
        """Bytes of the device that nothing holds under the limit, nor is cached."""
        return self._device.memory.spare()

    @property
    def page_unit(self) -> int:
        """Bytes of the device that copies of pages take at a time."""
        return TAKEN_AT_ONCE

    def page_buffer(self, graph: GraphArrays, number: int, page_slots: int) -> CudaPageFrames:
        """Make room on the device for copies of pages."""
        return CudaPageFrames(self._device, graph, number, page_slots)

    def interrupt(self) -> None:
        """Make running kernels return as soon as they can; the engine is of no further use."""
        with suppress(EngineLost), self.faults():  # a lost device runs no kernels
            self._device.interrupt()

    def faults(self) -> AbstractContextManager[None]:
        """Take this thread's arrays from the engine's memory, and raise CUDA's errors as the engine's."""
        return cuda_faults(self.xp, self._device.memory.allocate)

    def limit_memory(self, size: int) -> None:
        """Let the engine's arrays take at most `size` bytes in all."""
        self._device.memory.limit(size)

    def release(self) -> None:
        """Give cached memory back to the device."""
        self._device.memory.release()

    def memory_peak(self) -> MemoryPeak:
        """Give the most device memory that was in use so far."""
        with suppress(EngineLost), self.faults():
            self._device.memory.sample()
        return self._device.memory.peak()

    def watch_compilation(self, report: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `report` once if a kernel has to be compiled while the context is open."""
        return watch_compilation(report)

    def tasks(self, size: int) -> int:
        """Number of tasks into which work over `size` roots should be cut: a launch should outlast its overhead."""
        return max(size >> _ROOTS_PER_TASK_LOG2, 1)

    def free_memory(self) -> int:
        """Bytes free on the device."""
        return self._device.free_memory()

    def page_bytes(self, graph: GraphArrays, reads: Sequence[RowReads], page_slots: int) -> NDArray[np.uint64]:
        """Count the bytes that will be read of every page of the adjacency."""
        return page_bytes(self._device, graph, reads, page_slots)

    def searcher(self, graph: GraphArrays, program: SearchProgram, memory: int) -> CudaSearcher:
        """Scratch for a search program."""
        return CudaSearcher(self._device, graph, program, memory, self.ablation)

    def clique_counter(self, graph: GraphArrays, k: int, memory: int) -> CudaCliqueCounter | CudaTriangleCounter:
        """Scratch for counting k-cliques."""
        if k == 3:
            return CudaTriangleCounter(self._device, graph)
        return CudaCliqueCounter(self._device, graph, k, memory)

    def four_cycle_counter(self, graph: GraphArrays, memory: int) -> CudaFourCycleCounter:
        """Scratch for counting 4-cycles."""
        return CudaFourCycleCounter(self._device, graph, memory)

    def row_counter(self, graph: GraphArrays, program: RowProgram, memory: int, *, exact: bool) -> CudaRowCounter:
        """Scratch for a row program."""
        return CudaRowCounter(self._device, graph, program, memory, exact=exact)

    def triangle_vertex_counter(self, graph: GraphArrays, memory: int) -> CudaTriangleVertexCounter:
        """Scratch for counting triangles per vertex."""
        return CudaTriangleVertexCounter(self._device, graph, memory)

    def chunk_sorter(self, layout: KeyLayout, host: int, device: int) -> CudaChunkSorter:
        """Sort chunks of keys."""
        return CudaChunkSorter(self._device, self.faults, layout, host, device)

    def run_merger(self, layout: KeyLayout, host: int, device: int, method: Method) -> CudaRunMerger:
        """Merge sorted runs."""
        return CudaRunMerger(self._device, self.faults, layout, host, device, method)

    def bring(self, array: NDArray[Any], *, mapped: bool) -> Any:
        """Copy an array to the device, or map it."""
        return map_array(self.xp, array) if mapped else self.xp.asarray(array)

    def grower(self, graph: TypedGraph, memory: int) -> CudaGrower:
        """Scratch for growing patterns by one edge."""
        return CudaGrower(self._device, graph, memory)

    def motif_counter(
        self, graph: GraphArrays, k: int, entries: NDArray[np.uint32], classes: int, memory: int
    ) -> CudaMotifCounter:
        """Scratch for counting motifs."""
        return CudaMotifCounter(self._device, graph, k, entries, classes, memory)

    def orbit_counter(self, graph: GraphArrays, k: int, orbits: NDArray[np.int64], memory: int) -> CudaOrbitCounter:
        """Scratch for counting orbits."""
        return CudaOrbitCounter(self._device, graph, k, orbits, memory)

    def edge_extender(self, graph: GraphArrays, levels: int, rows: int, memory: int) -> CudaEdgeExtender:
        """Scratch for extending tables of edges."""
        return CudaEdgeExtender(self._device, graph, levels, rows, memory)
