"""The CUDA engine: the same calls as the CPU engine, over device arrays."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from longwall.kernels.cuda.counters import (
    CudaCliqueCounter,
    CudaFourCycleCounter,
    CudaTriangleCounter,
    CudaTriangleVertexCounter,
)
from longwall.kernels.cuda.device import open_device
from longwall.kernels.cuda.launch import Device
from longwall.kernels.cuda.module import watch_compilation
from longwall.kernels.cuda.rows import CudaRowCounter
from longwall.kernels.cuda.search import CudaSearcher
from longwall.kernels.engine import GraphArrays
from longwall.kernels.program import SearchProgram
from longwall.kernels.row_program import RowProgram

_ROOTS_PER_TASK_LOG2 = 21


class CudaEngine:
    """The engine of the current CUDA device; see :class:`longwall.kernels.engine.Engine`.

    Raises
    ------
    EngineUnavailable
        If there is none that works.
    """

    name = "cuda"
    workers = 1  # one thread keeps the device busy: every kernel fills it

    def __init__(self) -> None:
        self.xp: Any = open_device()
        self._device = Device(self.xp)
        self.device = self._device.name

    def load(self, graph: GraphArrays) -> GraphArrays:
        """Copy a host graph to the device."""
        xp = self.xp
        return replace(
            graph,
            indptr=xp.asarray(graph.indptr),
            indices=xp.asarray(graph.indices),
            split=xp.asarray(graph.split),
            labels=xp.asarray(graph.labels),
        )

    def interrupt(self) -> None:
        """Make running kernels return as soon as they can; the engine is of no further use."""
        self._device.interrupt()

    def watch_compilation(self, report: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `report` once if a kernel has to be compiled while the context is open."""
        return watch_compilation(report)

    def tasks(self, size: int) -> int:
        """Number of tasks into which work over `size` roots should be cut: a launch should outlast its overhead."""
        return max(size >> _ROOTS_PER_TASK_LOG2, 1)

    def free_memory(self) -> int:
        """Bytes free on the device."""
        return self._device.free_memory()

    def searcher(self, graph: GraphArrays, program: SearchProgram, memory: int) -> CudaSearcher:
        """Scratch for a search program."""
        return CudaSearcher(self._device, graph, program, memory)

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
