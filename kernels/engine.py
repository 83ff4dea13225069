"""What an engine is: the same few calls, once over NumPy arrays and once over device arrays.

Nobody above this package asks which engine it has. Workers of one engine may run in parallel threads, each with
a scratch object of its own (`Searcher`, `CliqueCounter`, ...); an engine says how many pay off.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.program import SearchProgram
from longwall.kernels.row_program import RowProgram

Array = Any  # a NumPy or a CuPy array


class EngineUnavailable(Exception):
    """The engine that was asked for does not work on this machine; the message says why."""


class ScratchTooLarge(Exception):
    """Scratch memory of one worker exceeds what the engine was given; carries the bytes that it needs."""

    def __init__(self, needed: int):
        super().__init__(f"scratch memory of {needed} bytes is needed")
        self.needed = needed


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
    """

    indptr: Array
    indices: Array
    split: Array
    labels: Array
    max_degree: int
    max_out_degree: int

    @property
    def num_vertices(self) -> int:
        """Number of vertices."""
        return int(self.indptr.size) - 1

    @property
    def num_slots(self) -> int:
        """Number of adjacency slots: twice the number of edges."""
        return int(self.indices.size)


@dataclass(frozen=True)
class Extension:
    """Rows that were extended by one level.

    Attributes
    ----------
    done
        Number of leading rows that were extended; the rest found no room.
    values : uint32[sum of counts]
        The new vertices, row by row.
    counts : int64[done]
        Number of new vertices per row.
    """

    done: int
    values: Array
    counts: Array


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

    def extend_rows(self, rows: Array, capacity: int) -> Extension:
        """Extend `rows` (uint32[columns, n]) by one level, writing at most `capacity` new vertices."""
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
        """Counts per vertex so far, int64[num_vertices], on the host."""
        ...


class RowCounter(Scratch, Protocol):
    """Scratch of one worker for one row program."""

    def add(self, first: int, last: int) -> None:
        """Run the program for the vertices first to last - 1."""
        ...

    def totals(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Sums of the program's products so far: modulo 2**64, and as floating point; on the host."""
        ...


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
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def xp(self) -> Any: ...  # noqa: D102
    @property
    def workers(self) -> int: ...  # noqa: D102
    @property
    def device(self) -> str: ...  # noqa: D102

    def load(self, graph: GraphArrays) -> GraphArrays:
        """Bring a host graph to where the kernels can read it."""
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
