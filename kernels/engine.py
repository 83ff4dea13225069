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

from longwall.kernels.frontier import Reads
from longwall.kernels.growth import Grower, TypedGraph
from longwall.kernels.program import SearchProgram
from longwall.kernels.row_program import RowProgram
from longwall.kernels.sorting import ChunkSorter, KeyLayout, Method, RunMerger

Array = Any  # a NumPy or a CuPy array


class EngineUnavailable(Exception):
    """The engine that was asked for does not work on this machine; the message says why."""


class ScratchTooLarge(Exception):
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
    pages: "Pages | None" = None
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


class Pages(Protocol):
    """The pages of an adjacency that is not all on the device.

    Attributes
    ----------
    slots
        Adjacency slots of a page: a power of two.
    places : int64[pages + 1]
        The logarithm of `slots` to the base 2; then for each page in how many slots its copy on the device lies behind
        its place in the adjacency, 0 where there is no copy. An array of the engine, a new one whenever that changes;
        None where there never are copies, and lists are read where they are.
    staged
        Whether lists that lie in other pages are best copied to the device in the order of the pages, before they are
        read in any other order. Not where pages come to the device when they are touched.
    """

    slots: int
    places: Array | None
    staged: bool

    def prepare(self, level: int, reads: Sequence[Reads]) -> None:
        """Choose the pages of which copies should be on the device for what comes next, and begin to copy them.

        What was known of `places` is not true any more.

        Parameters
        ----------
        level
            The level that the reads are for.
        reads
            What will be read; see :func:`longwall.kernels.frontier.frontier`.
        """
        ...

    def settle(self) -> None:
        """Let kernels that are launched from now on wait for the copies that were begun."""
        ...

    def touch(self, level: int, reads: Sequence[Reads]) -> None:
        """Tell what will be read where it is, without a look at `places`; parameters as of `prepare`."""
        ...

    def scan(self, first: int, last: int) -> None:
        """Tell that a range of slots is read once, in order."""
        ...

    def shrink(self) -> bool:
        """Give up half of the room for copies, for good, and all copies; gives whether any memory was held for them."""
        ...


class PageBuffer(Protocol):
    """Copies of pages on the device.

    Attributes
    ----------
    origin
        In how many slots the first place lies behind the adjacency's first slot.
    """

    origin: int

    def fill(self, pages: NDArray[np.int64], places: NDArray[np.int64]) -> None:
        """Begin to copy pages to places, once the kernels have ended that were launched before."""
        ...

    def settle(self) -> None:
        """Let kernels that are launched from now on wait for the copies that were begun."""
        ...

    def shrink(self, number: int) -> None:
        """Give back the memory of all but so many places."""
        ...

    def close(self) -> None:
        """Wait for the copies that were begun; the buffer is of no further use."""
        ...


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


@dataclass(frozen=True)
class Extension:
    """Rows that were extended by one level, as many as there was room for.

    Attributes
    ----------
    counts : int64[rows]
        Number of new vertices per row; -1 for rows that were not extended. Some are, unless the engine was
        interrupted; which ones is the engine's business.
    values : uint32[sum of the counts that are not negative]
        The new vertices, row by row.
    begun
        If not 0, there was no room for all of the first row: it was extended by vertices below `begun` alone, and no
        other row was.
    waiting
        Number of rows that were not extended, the first one not included where it was begun.
    leading
        Whether these are the last rows.
    """

    counts: Array
    values: Array
    begun: int = 0
    waiting: int = 0
    leading: bool = True


class Scratch(Protocol):
    """What a worker's calls write to.

    Attributes
    ----------
    host_bytes
        Bytes of it in host memory.
    """

    @property
    def host_bytes(self) -> int: ...  # noqa: D102


class Searcher(Scratch, Protocol):
    """Scratch of one worker for one search program."""

    def count_rows(self, rows: Array) -> int:
        """Count the embeddings below `rows` (uint32[columns, n])."""
        ...

    def extend_rows(self, rows: Array, capacity: int, first: int = 0) -> Extension:
        """Extend rows by one level.

        Parameters
        ----------
        rows : uint32[columns, n]
            The rows.
        capacity
            Most new vertices; at least 1.
        first
            The first row is extended by vertices from this one on.
        """
        ...

    def reads(self, rows: Array, *, counting: bool) -> list[Reads]:
        """Tell what counting below `rows`, or extending them, reads for their own vertices."""
        ...


class RangeCounter(Scratch, Protocol):
    """Scratch of one worker that counts something over ranges of roots."""

    def count(self, first: int, last: int) -> int:
        """Count what belongs to the roots first to last - 1."""
        ...


class VertexCounter(Scratch, Protocol):
    """Scratch of one worker that counts something per vertex."""

    def add(self, first: int, last: int) -> None:
        """Add what belongs to the roots first to last - 1."""
        ...

    def counts(self) -> NDArray[np.int64]:
        """Counts per vertex so far, int64[num_vertices] or int64[orbits, num_vertices], on the host."""
        ...


class MotifCounter(Scratch, Protocol):
    """Scratch of one worker that counts induced subgraphs of k vertices by pattern."""

    def add(self, first: int, last: int) -> None:
        """Add what belongs to the roots first to last - 1."""
        ...

    def counts(self) -> NDArray[np.int64]:
        """Counts so far, on the host: int64[classes, 2 ** (k - 1)].

        By the class of k - 1 vertices that are connected, and the neighbours of one vertex more, as bits over the
        class' canonical form; a subgraph is counted once for each of its vertices without which it stays connected.
        """
        ...


class RowCounter(Scratch, Protocol):
    """Scratch of one worker for one row program."""

    def add(self, first: int, last: int) -> None:
        """Run the program for the vertices first to last - 1."""
        ...

    def totals(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Sums of the program's products so far: modulo 2**64, and as floating point; on the host."""
        ...


class EdgeExtender(Scratch, Protocol):
    """Scratch of one worker that extends rows of edges by the edges that touch them.

    Rows are int64[levels, n], contiguous; an edge is its larger end << 32 | its smaller end. The new edges of a row are
    those of its vertices, the distinct ends of its edges in order, each with its neighbours ascending; an edge between
    two vertices of the row is found from the larger one. Edges of the row are not new.
    """

    def reads(self, columns: Array) -> list[Reads]:
        """Tell what extending rows reads of the adjacency; takes 8 bytes for each of their edges while it is held."""
        ...

    def count(self, columns: Array, first: int, last: int) -> int:
        """Count the new edges of the rows from `first` on, up to last - 1 at most; gives where the counted rows end.

        The rows must not change, and those that were counted before are forgotten.
        """
        ...

    def cut(self, first: int, capacity: int) -> "Cut":
        """Find which counted rows from `first` on have at most `capacity` new edges; the first one, whatever it has."""
        ...

    def new_edges(self, first: int, cut: "Cut") -> tuple[Array, Array]:
        """Give the new edges of the counted rows from `first` to where they are cut.

        Returns
        -------
        offsets : int64[rows + 1]
            Where the new edges of each row begin, and where they end.
        edges : int64[number]
            Row by row. Nothing beside the results is allocated.
        """
        ...


class Cut(NamedTuple):
    """Rows whose new edges are asked for at once.

    Attributes
    ----------
    last
        Where these rows end.
    number
        How many new edges they have.
    all_grow
        Whether each of them has some.
    """

    last: int
    number: int
    all_grow: bool


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

    def host_copy(self, graph: GraphArrays, access: Access) -> int:
        """Tell how many bytes of the host `load` takes for a copy of the adjacency."""
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

    def page_buffer(self, graph: GraphArrays, number: int, page_slots: int) -> PageBuffer:
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

    def page_bytes(self, graph: GraphArrays, reads: Sequence[Reads], page_slots: int) -> NDArray[np.uint64]:
        """Count the bytes that will be read of every page of the adjacency (GAMMA, Definition 4.1).

        Parameters
        ----------
        graph
            The data graph; of `indices` only the size is looked at.
        reads
            The frontier; see :func:`longwall.kernels.frontier.frontier`.
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

    def grower(self, graph: TypedGraph, memory: int) -> Grower:
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
