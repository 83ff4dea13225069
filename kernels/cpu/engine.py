"""The CPU engine: scratch buffers around the Numba kernels, which release the GIL."""

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu import cliques, four_cycles, homomorphisms, search
from longwall.kernels.cpu.compilation import watch_compilation
from longwall.kernels.cpu.edge_extension import CpuEdgeExtender
from longwall.kernels.cpu.motif_counters import CpuMotifCounter, CpuOrbitCounter
from longwall.kernels.cpu.page_bytes import page_bytes
from longwall.kernels.cpu.pattern_growth import CpuGrower
from longwall.kernels.cpu.sorting import CpuChunkSorter, CpuRunMerger
from longwall.kernels.interface.engine import (
    VERTEX_ARRAYS,
    Ablation,
    Access,
    GraphArrays,
    WorkspaceTooLarge,
    host_faults,
)
from longwall.kernels.interface.frontier import RowReads, frontier
from longwall.kernels.interface.homomorphism_program import RowProgram
from longwall.kernels.interface.pages import PageFrames
from longwall.kernels.interface.pattern_growth import TypedGraph
from longwall.kernels.interface.search_program import ProgramArrays, SearchProgram, pack, to_count, to_extend
from longwall.kernels.interface.sorting import KeyLayout, Method
from longwall.kernels.interface.workspaces import Extension

_TASKS_PER_WORKER = 128


class _NoCopies:
    """Copies of pages where none are needed; see :class:`longwall.kernels.interface.pages.PageFrames`."""

    origin = 0

    def fill(self, pages: NDArray[np.int64], places: NDArray[np.int64]) -> None:
        """Nothing is copied."""

    def settle(self) -> None:
        """Nothing is waited for."""

    def shrink(self, number: int) -> None:
        """Nothing is given back."""

    def close(self) -> None:
        """Nothing is waited for."""


class CpuEngine:
    """The engine of machines without a GPU; see :class:`longwall.kernels.interface.engine.Engine`."""

    name = "cpu"
    xp = np

    def __init__(self, threads: int = 0):
        self.workers = threads or len(os.sched_getaffinity(0))
        self.device = f"{self.workers} threads"
        self.ablation = Ablation()
        self.stop_flag = np.zeros(1, np.uint8)

    def load(
        self,
        graph: GraphArrays,
        access: Access = "resident",  # noqa: ARG002
        vertices: Collection[str] = VERTEX_ARRAYS,  # noqa: ARG002
    ) -> GraphArrays:
        """The kernels read host arrays in place, whatever the access."""
        return graph

    can_move_pages = True  # there are none to move

    def host_array(self, length: int, dtype: np.dtype[Any], access: Access) -> NDArray[Any]:  # noqa: ARG002
        """Make an empty array."""
        return np.empty(length, dtype)

    def host_copy(self, graph: GraphArrays, access: Access, vertices: Collection[str] = VERTEX_ARRAYS) -> int:  # noqa: ARG002
        """Nothing is copied."""
        return 0

    def send_back(self, graph: GraphArrays, ranges: NDArray[np.int64]) -> None:
        """All pages are where the kernels are."""

    def spare_memory(self) -> int:
        """The engine has no memory of its own."""
        return 0

    page_unit = 1

    def page_buffer(self, graph: GraphArrays, number: int, page_slots: int) -> PageFrames:  # noqa: ARG002
        """The kernels read pages where they are."""
        return _NoCopies()

    def interrupt(self) -> None:
        """Make running kernels return as soon as they can."""
        self.stop_flag[0] = 1

    def watch_compilation(self, report: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `report` once if a kernel has to be compiled while the context is open."""
        return watch_compilation(report)

    def tasks(self, size: int) -> int:  # noqa: ARG002 - small tasks cost little here, whatever the size
        """Number of tasks into which work over `size` roots should be cut."""
        return self.workers * _TASKS_PER_WORKER

    def free_memory(self) -> None:
        """Host memory is what the kernels work in."""

    def faults(self) -> AbstractContextManager[None]:
        """Raise a `MemoryError` as `ShortOfMemory`."""
        return host_faults()

    def limit_memory(self, size: int) -> None:
        """The kernels take host memory, which is booked."""

    def release(self) -> None:
        """Nothing is cached here."""

    def memory_peak(self) -> None:
        """There is no memory but the host's."""

    def page_bytes(self, graph: GraphArrays, reads: Sequence[RowReads], page_slots: int) -> NDArray[np.uint64]:
        """Count the bytes that will be read of every page of the adjacency."""
        return page_bytes(graph, reads, page_slots)

    def searcher(self, graph: GraphArrays, program: SearchProgram, memory: int) -> "CpuSearcher":
        """Scratch for a search program."""
        return CpuSearcher(graph, program, memory, self.stop_flag)

    def clique_counter(self, graph: GraphArrays, k: int, memory: int) -> "CpuCliqueCounter | CpuTriangleCounter":
        """Scratch for counting k-cliques."""
        if k == 3:
            return CpuTriangleCounter(graph, memory, self.stop_flag)
        return CpuCliqueCounter(graph, k, memory, self.stop_flag)

    def four_cycle_counter(self, graph: GraphArrays, memory: int) -> "CpuFourCycleCounter":
        """Scratch for counting 4-cycles."""
        return CpuFourCycleCounter(graph, memory, self.stop_flag)

    def row_counter(self, graph: GraphArrays, program: RowProgram, memory: int, *, exact: bool) -> "CpuRowCounter":
        """Scratch for a row program."""
        return CpuRowCounter(graph, program, memory, self.stop_flag, exact=exact)

    def triangle_vertex_counter(self, graph: GraphArrays, memory: int) -> "CpuTriangleVertexCounter":
        """Scratch for counting triangles per vertex."""
        return CpuTriangleVertexCounter(graph, memory, self.stop_flag)

    def chunk_sorter(self, layout: KeyLayout, host: int, device: int) -> CpuChunkSorter:  # noqa: ARG002
        """Sort chunks of keys."""
        return CpuChunkSorter(layout, host, self.workers)

    def run_merger(self, layout: KeyLayout, host: int, device: int, method: Method) -> CpuRunMerger:  # noqa: ARG002
        """Merge sorted runs."""
        return CpuRunMerger(layout, host, self.workers, sort=method == "sort")

    def bring(self, array: NDArray[Any], *, mapped: bool) -> NDArray[Any]:  # noqa: ARG002
        """The kernels read host arrays in place."""
        return array

    def grower(self, graph: TypedGraph, memory: int) -> CpuGrower:
        """Scratch for growing patterns by one edge."""
        return CpuGrower(graph, memory, self.stop_flag)

    def motif_counter(
        self, graph: GraphArrays, k: int, entries: NDArray[np.uint32], classes: int, memory: int
    ) -> CpuMotifCounter:
        """Scratch for counting motifs."""
        return CpuMotifCounter(graph, k, entries, classes, memory, self.stop_flag)

    def orbit_counter(self, graph: GraphArrays, k: int, orbits: NDArray[np.int64], memory: int) -> CpuOrbitCounter:
        """Scratch for counting orbits."""
        return CpuOrbitCounter(graph, k, orbits, memory, self.stop_flag)

    def edge_extender(self, graph: GraphArrays, levels: int, rows: int, memory: int) -> CpuEdgeExtender:
        """Scratch for extending tables of edges."""
        return CpuEdgeExtender(graph, levels, rows, memory)


def _fitting(needed: int, memory: int) -> int:
    """The bytes that are needed, if they fit."""
    if needed > memory:
        raise WorkspaceTooLarge(needed)
    return needed


class CpuSearcher:
    """Set buffers and marks of one worker."""

    def __init__(self, graph: GraphArrays, program: SearchProgram, memory: int, stop_flag: NDArray[np.uint8]):
        self._graph = graph
        self._whole, self._program = program, pack(program)
        self._steps: dict[int, ProgramArrays] = {}
        self._room = graph.max_degree + 1
        stored = max(len(program.sets), 1) * self._room
        marked = max(self._program.num_marks, 1) * graph.num_vertices
        self.workspace_bytes = _fitting(stored * 4 + marked, memory)
        self._store = np.empty(stored, np.uint32)
        self._marks = np.zeros(marked, np.uint8)
        width = 1 + max(program.depth, len(program.sets), len(program.blocks))
        self._state = np.zeros((6, width), np.int64)
        self._stop_flag = stop_flag

    def count_rows(self, rows: NDArray[np.uint32]) -> int:
        """Count the embeddings below `rows`."""
        graph, program = self._graph, self._program
        total, estimate = search.count_rows(
            graph.indptr,
            graph.indices,
            graph.labels,
            rows,
            0,
            rows.shape[1],
            program.sets,
            program.first_set,
            program.levels,
            program.blocks,
            program.members,
            program.terms,
            self._store,
            self._room,
            self._marks,
            self._state,
            self._stop_flag,
        )
        return _exact(total, estimate)

    def reads(self, rows: NDArray[np.uint32], *, counting: bool) -> list[RowReads]:
        """Tell what counting below `rows`, or extending them, reads for their own vertices."""
        return frontier((to_count if counting else to_extend)(self._whole, rows.shape[0]), rows)

    def extend_rows(self, rows: NDArray[np.uint32], capacity: int, first: int = 0) -> Extension:
        """Extend `rows` by one level."""
        graph, columns = self._graph, rows.shape[0]
        if columns not in self._steps:
            self._steps[columns] = pack(to_extend(self._whole, columns))
        program = self._steps[columns]
        out = np.empty(capacity, np.uint32)
        counts = np.empty(rows.shape[1], np.int64)
        done, written, begun = search.extend_rows(
            graph.indptr,
            graph.indices,
            graph.labels,
            rows,
            0,
            rows.shape[1],
            program.sets,
            program.first_set,
            program.levels,
            self._store,
            self._room,
            self._marks,
            self._state,
            self._stop_flag,
            out,
            counts,
            first,
        )
        counts[done:] = -1
        return Extension(counts, out[:written], int(begun), counts.size - done - (begun > 0))


class CpuTriangleCounter:
    """Vertex marks of one worker."""

    def __init__(self, graph: GraphArrays, memory: int, stop_flag: NDArray[np.uint8]):
        self.workspace_bytes = _fitting(graph.num_vertices, memory)
        self._graph = graph
        self._marks = np.zeros(graph.num_vertices, np.uint8)
        self._stop_flag = stop_flag

    def count(self, first: int, last: int) -> int:
        """Count the triangles of a range of slots."""
        g = self._graph
        return int(cliques.count_triangles(g.indptr, g.indices, g.split, first, last, self._marks, self._stop_flag))


class CpuTriangleVertexCounter:
    """Vertex marks and counts of one worker."""

    def __init__(self, graph: GraphArrays, memory: int, stop_flag: NDArray[np.uint8]):
        self.workspace_bytes = _fitting(graph.num_vertices * 9, memory)
        self._graph = graph
        self._marks = np.zeros(graph.num_vertices, np.uint8)
        self._counts = np.zeros(graph.num_vertices, np.int64)
        self._stop_flag = stop_flag

    def add(self, first: int, last: int) -> None:
        """Add the triangles of a range of slots."""
        g = self._graph
        cliques.add_triangles_per_vertex(
            g.indptr, g.indices, g.split, first, last, self._marks, self._stop_flag, self._counts
        )

    def counts(self) -> NDArray[np.int64]:
        """Triangles per vertex so far."""
        return self._counts


class CpuCliqueCounter:
    """Bitmap tables of one worker."""

    def __init__(self, graph: GraphArrays, k: int, memory: int, stop_flag: NDArray[np.uint8]):
        words = (graph.max_out_degree + 63) // 64
        self.workspace_bytes = _fitting(graph.num_vertices * 4 + (graph.max_out_degree + 2 * k) * words * 8, memory)
        self._graph = graph
        self._k = k
        self._local = np.zeros(graph.num_vertices, np.int32)
        self._table = np.empty((graph.max_out_degree, words), np.uint64)
        self._chosen = np.empty((k, words), np.uint64)
        self._left = np.empty((k, words), np.uint64)
        self._state = np.empty((2, k), np.int64)
        self._stop_flag = stop_flag

    def count(self, first: int, last: int) -> int:
        """Count the cliques of a range of slots."""
        g = self._graph
        total, estimate = cliques.count_cliques(
            g.indptr,
            g.indices,
            g.split,
            self._k,
            first,
            last,
            self._local,
            self._table,
            self._chosen,
            self._left,
            self._state,
            self._stop_flag,
        )
        return _exact(total, estimate)


class CpuFourCycleCounter:
    """Wedge counters of one worker."""

    def __init__(self, graph: GraphArrays, memory: int, stop_flag: NDArray[np.uint8]):
        self.workspace_bytes = _fitting(graph.num_vertices * 4, memory)
        self._graph = graph
        self._wedges = np.zeros(graph.num_vertices, np.uint32)
        self._stop_flag = stop_flag

    def count(self, first: int, last: int) -> int:
        """Count the 4-cycles of a range of vertices."""
        g = self._graph
        return int(
            four_cycles.count_four_cycles(g.indptr, g.indices, g.split, first, last, self._wedges, self._stop_flag)
        )


class CpuRowCounter:
    """Vectors of one worker."""

    def __init__(
        self,
        graph: GraphArrays,
        program: RowProgram,
        memory: int,
        stop_flag: NDArray[np.uint8],
        *,
        exact: bool,
    ):
        n = graph.num_vertices
        local = max(program.num_local, 1) * graph.max_degree
        self.workspace_bytes = _fitting(
            8 * (local + n * max(program.num_dense + len(program.weights), 1)) + 5 * n, memory
        )
        dtype = np.int64 if exact else np.float64
        self._graph = graph
        self._ops, self._products = program.packed()
        self._weights = np.ones((max(len(program.weights), 1), n), dtype)
        for i, factors in enumerate(program.weights):
            values = np.ones(n, dtype)
            for j in factors:
                values *= self._weights[j]
            homomorphisms.neighbour_sums(graph.indptr, graph.indices, values, self._weights[i])
        self._local = np.empty((max(program.num_local, 1), graph.max_degree), dtype)
        self._dense = np.zeros((max(program.num_dense, 1), n), dtype)
        self._scalars = np.zeros(program.num_scalars, dtype)
        self._reached = np.empty(n, np.uint32)
        self._seen = np.zeros(n, np.uint8)
        self._totals = np.zeros(len(program.products), dtype)
        self._estimates = np.zeros(len(program.products), np.float64)
        self._stop_flag = stop_flag

    def add(self, first: int, last: int) -> None:
        """Run the program for a range of vertices."""
        homomorphisms.run_rows(
            self._graph.indptr,
            self._graph.indices,
            self._ops,
            self._products,
            self._weights,
            self._local,
            self._dense,
            self._scalars,
            self._reached,
            self._seen,
            first,
            last,
            self._totals,
            self._estimates,
            self._stop_flag,
        )

    def totals(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Sums of the program's products so far; the first ones mean nothing where they are not exact."""
        return self._totals.view(np.int64), self._estimates


def _exact(total: int, estimate: float) -> int:
    """A count that the kernels took modulo 2**64, checked by its floating-point twin."""
    if estimate >= 2.0**62:
        raise OverflowError(f"a count of about {estimate:.3g} does not fit 64-bit integers")
    return int(total)
