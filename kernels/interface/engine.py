"""What an engine is: the same few calls, once over NumPy arrays and once over device arrays.

Nobody above this package asks which engine it has. Workers of one engine may run in parallel threads, each with
a scratch object of its own (`Searcher`, `CliqueCounter`, ...); an engine says how many pay off.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.frontier import RowReads
from longwall.kernels.interface.homomorphism_program import RowProgram
from longwall.kernels.interface.pages import PageFrames, Pages
from longwall.kernels.interface.pattern_growth import GrowKernel, TypedGraph
from longwall.kernels.interface.search_program import SearchProgram
from longwall.kernels.interface.sorting import ChunkSorter, KeyLayout, Method, RunMerger
from longwall.kernels.interface.workspaces import (
    EdgeExtender,
    MotifCounter,
    RangeCounter,
    RowCounter,
    Searcher,
    VertexCounter,
)

Array = Any  # a NumPy or a CuPy array


class EngineUnavailable(Exception):
    """The engine that was asked for does not work on this machine; the message says why."""


class WorkspaceTooLarge(Exception):
    """Scratch memory of one worker exceeds what the engine was given; carries the bytes that it needs."""

    def __init__(self, needed: int):
        super().__init__(f"scratch memory of {needed} bytes is needed")
        self.needed = needed


class ShortOfMemory(MemoryError):
    """An allocation failed; a smaller one may work.

    Attributes
    ----------
    place
        What has no memory left: the ``"host"``, the ``"device"``, or what the ``"limit"`` lets the engine have of it.
    wanted
        The bytes that were asked for, None where nobody says.
    """

    def __init__(self, place: Literal["host", "device", "limit"], wanted: int | None = None):
        super().__init__(f"no memory left ({place}), {wanted} bytes were wanted")
        self.place, self.wanted = place, wanted


class EngineLost(Exception):
    """The engine's device is gone or its context broken, for good; the message says what was seen."""


@contextmanager
def host_faults() -> Iterator[None]:
    """Raise a `MemoryError` as `ShortOfMemory`."""
    try:
        yield
    except ShortOfMemory:
        raise
    except MemoryError as error:
        raise ShortOfMemory("host") from error


class MemoryPeak(NamedTuple):
    """The most device memory that was in use while an engine was open, in bytes.

    Attributes
    ----------
    allocator
        What the engine's pool held, its cache included.
    driver
        What the driver missed of what was free when the engine was opened, looked at whenever the pool grew: the pool,
        the kernels' code and stacks, and whatever other processes took meanwhile.
    before
        What was in use when the engine was opened: the context, and other processes.
    """

    allocator: int
    driver: int
    before: int


@dataclass(frozen=True)
class GraphArrays:
    """The data graph where the engine's kernels can read it.

    Attributes
    ----------
    indptr : int64[n + 1]
    indices : uint32[2m]
        Rows sorted ascending.
    split : int64[n]
        `indices[indptr[v]:split[v]]` are the neighbours of v with a smaller id.
    labels : int32[n] or int32[1]
        Vertex labels; one zero where there are none.
    max_degree, max_out_degree
        Largest length of a row, and of its part before the split.
    pages
        The pages of `indices`, where these are not all in the memory that the engine works in.
    managed
        What the engine moves pages with, where they are in managed memory.
    """

    indptr: Array
    indices: Array
    split: Array
    labels: Array
    max_degree: int
    max_out_degree: int
    pages: Pages | None = None
    managed: Any = None

    @property
    def num_vertices(self) -> int:
        """Number of vertices."""
        return int(self.indptr.size) - 1

    @property
    def num_slots(self) -> int:
        """Number of adjacency slots: twice the number of edges."""
        return int(self.indices.size)


VERTEX_ARRAYS = ("labels", "indptr", "split")
"""The arrays of a graph with an entry per vertex; first what kernels read most often: a label for every candidate."""

Access = Literal["resident", "adaptive", "managed", "zero-copy"]
"""Where the adjacency is: on the device; in managed memory, whose hot pages are copied there and whose other pages are
read over the link; in managed memory, whose pages move when they are touched; or in mapped, page-locked host memory."""


@dataclass(frozen=True)
class Ablation:
    """What an engine can do the plain way instead, so that benchmarks can tell what it is worth.

    Attributes
    ----------
    two_pass
        Extensions are done twice, to count and to write, instead of once into blocks of a pool.
    grouped
        Rows that share a prefix are extended together.
    page_order
        What is read of host memory is read in the order of its pages.
    """

    two_pass: bool = False
    grouped: bool = True
    page_order: bool = True


class Engine(Protocol):
    """One implementation of the kernels.

    Attributes
    ----------
    name
        ``"cpu"`` or ``"cuda"``.
    xp
        The array module: numpy or cupy.
    workers
        Number of worker threads that pay off.
    device
        The hardware, in words.
    ablation
        What it does the plain way.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def xp(self) -> Any: ...  # noqa: D102
    @property
    def workers(self) -> int: ...  # noqa: D102
    @property
    def device(self) -> str: ...  # noqa: D102
    @property
    def ablation(self) -> Ablation: ...  # noqa: D102

    def load(
        self, graph: GraphArrays, access: Access = "resident", vertices: Collection[str] = VERTEX_ARRAYS
    ) -> GraphArrays:
        """Bring a host graph to where the kernels can read it.

        Parameters
        ----------
        graph
            On the host. Mapped arrays are read where they are: they must not change.
        access
            Where the adjacency is to be; an engine that works in host memory reads it where it is.
        vertices
            The arrays with an entry per vertex that are brought to the device; the others are mapped.

        Raises
        ------
        EngineUnavailable
            If this machine cannot do it.
        """
        ...

    @property
    def can_move_pages(self) -> bool:
        """Whether "adaptive" and "managed" access work here."""
        ...

    def host_array(self, length: int, dtype: np.dtype[Any], access: Access) -> NDArray[Any]:
        """Make an empty array on the host for an adjacency that `load` brings to such an access without a copy."""
        ...

    def host_copy(self, graph: GraphArrays, access: Access, vertices: Collection[str] = VERTEX_ARRAYS) -> int:
        """Tell how many bytes of the host `load` takes for copies of a graph's arrays; parameters as of `load`."""
        ...

    def send_back(self, graph: GraphArrays, ranges: NDArray[np.int64]) -> None:
        """Move parts of an adjacency that is loaded for "managed" access to the host: ranges of slots, int64[k, 2]."""
        ...

    def spare_memory(self) -> int:
        """Bytes of the engine's own memory that nothing holds under its limit, nor is cached."""
        ...

    @property
    def page_unit(self) -> int:
        """Bytes of the device that a `page_buffer` takes at a time."""
        ...

    def page_buffer(self, graph: GraphArrays, number: int, page_slots: int) -> PageFrames:
        """Make room on the device for copies of pages of an adjacency that is loaded for "adaptive" access."""
        ...

    def interrupt(self) -> None:
        """Make running kernels return as soon as they can; the engine is of no further use."""
        ...

    def watch_compilation(self, report: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `report` once if a kernel has to be compiled while the context is open."""
        ...

    def tasks(self, size: int) -> int:
        """Number of tasks into which work over `size` roots should be cut: enough to balance and to show progress."""
        ...

    def free_memory(self) -> int | None:
        """Bytes free on the device, None where the engine works in host memory."""
        ...

    def faults(self) -> AbstractContextManager[None]:
        """A thread's work with the engine: a context in which its arrays come from the engine's memory.

        It also turns what the engine's libraries raise into what is said here; everything else passes. Each thread
        needs one of its own; they may be nested.

        Raises
        ------
        ShortOfMemory
            If an allocation fails.
        EngineLost
            If the device or its context is of no further use.
        """
        ...

    def limit_memory(self, size: int) -> None:
        """Let the arrays that are made within `faults` take at most `size` bytes of the device, all together."""
        ...

    def release(self) -> None:
        """Give cached memory back to the device: what an allocation that failed may be waiting for."""
        ...

    def memory_peak(self) -> MemoryPeak | None:
        """Give the most device memory that was in use so far, None where the engine works in host memory."""
        ...

    def page_bytes(self, graph: GraphArrays, reads: Sequence[RowReads], page_slots: int) -> NDArray[np.uint64]:
        """Count the bytes that will be read of every page of the adjacency (GAMMA, Definition 4.1).

        Parameters
        ----------
        graph
            The data graph; of `indices` only the size is looked at.
        reads
            The frontier; see :func:`longwall.kernels.interface.frontier.frontier`.
        page_slots
            Adjacency slots, of 4 bytes, in a page; page p begins at slot ``p * page_slots``.

        Returns
        -------
        uint64[number of pages]
            On the host. The last page may be shorter than the others. For a moment 16 bytes a page are needed where the
            engine works, and as many on the host.
        """
        ...

    def searcher(self, graph: GraphArrays, program: SearchProgram, memory: int) -> Searcher:
        """Scratch for a search program; at most `memory` bytes.

        Raises
        ------
        ScratchTooLarge
            Where the program cannot run in that much memory.
        """
        ...

    def clique_counter(self, graph: GraphArrays, k: int, memory: int) -> RangeCounter:
        """Scratch for counting k-cliques (k >= 3); roots are adjacency slots."""
        ...

    def four_cycle_counter(self, graph: GraphArrays, memory: int) -> RangeCounter:
        """Scratch for counting 4-cycles by aggregating wedges; roots are vertices."""
        ...

    def row_counter(self, graph: GraphArrays, program: RowProgram, memory: int, *, exact: bool) -> RowCounter:
        """Scratch for a row program; `exact` counts modulo 2**64, otherwise in floating point throughout."""
        ...

    def triangle_vertex_counter(self, graph: GraphArrays, memory: int) -> VertexCounter:
        """Scratch for counting triangles per vertex; roots are adjacency slots."""
        ...

    def chunk_sorter(self, layout: KeyLayout, host: int, device: int) -> ChunkSorter:
        """Buffers for sorting chunks of keys, in so many bytes of the host and of the device, where there is one."""
        ...

    def run_merger(self, layout: KeyLayout, host: int, device: int, method: Method) -> RunMerger:
        """Buffers for merging sorted runs, in so many bytes of the host and of the device, where there is one."""
        ...

    def grower(self, graph: TypedGraph, memory: int) -> GrowKernel:
        """Scratch for growing patterns by one edge, at most `memory` bytes; the graph is in the engine's arrays."""
        ...

    def motif_counter(
        self, graph: GraphArrays, k: int, entries: NDArray[np.uint32], classes: int, memory: int
    ) -> MotifCounter:
        """Scratch for counting motifs of 3 to 8 vertices; roots are adjacency slots.

        Parameters
        ----------
        graph
            The graph.
        k
            Number of vertices.
        entries : uint32[2 ** ((k - 1) (k - 2) / 2)]
            The dictionary of k - 1 vertices, on the host: by code (bit v (v - 1) / 2 + u for the edge (u, v), u < v)
            the class in the lowest 10 bits, and above them, 3 bits per vertex, where it stands in the class' canonical
            form.
        classes
            Their number.
        memory
            The most bytes.
        """
        ...

    def orbit_counter(self, graph: GraphArrays, k: int, orbits: NDArray[np.int64], memory: int) -> VertexCounter:
        """Scratch for counting the orbits of motifs of 3 or 4 vertices; roots are adjacency slots.

        A subgraph is counted for a vertex once for each of its other vertices without which it stays connected.

        Parameters
        ----------
        graph
            The graph.
        k
            Number of vertices.
        orbits : int64[2 ** ((k - 1) (k - 2) / 2), 2 ** (k - 1), k - 1]
            On the host: by code of k - 1 vertices and neighbours of one more, the orbit of each of the k - 1, from 0.
        memory
            The most bytes.
        """
        ...

    def bring(self, array: NDArray[Any], *, mapped: bool) -> Array:
        """Bring an array of the host to where the kernels can read it; `mapped`: read it where it is."""
        ...

    def edge_extender(self, graph: GraphArrays, levels: int, rows: int, memory: int) -> EdgeExtender:
        """Scratch for extending tables of edges.

        Parameters
        ----------
        graph
            The data graph.
        levels
            Of the tables.
        rows
            The most that are extended at once.
        memory
            The most bytes, but where a single row takes more.
        """
        ...
