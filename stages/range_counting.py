"""Counting stages over ranges of roots: the kernel of each reads the graph on its own, and no rows are made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from operator import methodcaller
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.engine import Call, Engine, call
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.kcliques import ROOTED_FROM, TabledCliqueCounter, TablePiece
from longwall.kernels.interface.kernels import Kernels
from longwall.kernels.interface.local_counts import (
    ArcBlock,
    ArcDiamondCounter,
    ArcPiece,
    TriangleCounter,
    TriangleVertexCounter,
)
from longwall.kernels.interface.pages import NeighbourRange
from longwall.kernels.interface.workspaces import ArrayCounter, Block, RangeCounter, Targets, Workspace
from longwall.stages.base import Aggregation, Stage
from longwall.stages.source import Scan, ScanContext
from longwall.storage.errors import FinalError

_EXACT_BELOW = 2.0**62
# Arcs of a range of a graph that a device holds, by the size of the cliques. An H200 takes a tenth of a second for a
# range of 4-cliques, and a third for one of triangles, whose kernel goes over all arcs for each range.
_ARCS = {3: 1 << 30, 4: 1 << 26}


class Counter(Workspace, Protocol):
    """The workspace of one worker of a counting stage."""

    def add(self, first: int, last: int) -> None:
        """Count what belongs to the roots `first` to `last` - 1; where it fails, nothing has changed."""
        ...


class CountingContext(ScanContext, Protocol):
    """What a `CountRanges` works with."""

    counter: Counter

    def fit(self, stage: Stage, most: int, work: Callable[[int], int]) -> int:
        """Do a piece of work that is as large as memory allows, `most` at most."""
        ...

    def prepare(self, first: int, last: int) -> None:
        """Prepare the pages that the kernel reads for a range of roots."""
        ...

    def blocks(self, first: int, last: int) -> Iterator[Block]:
        """Prepare the pages for a range of arcs, for some of them and of the vertices that they lead to at a time."""
        ...

    def pieces(self, first: int, last: int, tables: TabledCliqueCounter) -> Iterator[TablePiece]:
        """Prepare the pages for pieces of a range whose tables have room, for some of the vertices there at a time."""
        ...

    def arc_pieces(self, first: int, last: int, most: int) -> Iterator[tuple[int, int, Iterator[ArcBlock] | None]]:
        """Prepare the pages for pieces of a range, of at most `most` arcs, for one block of triangles at a time."""
        ...

    def counts_in_turn(
        self, first: int, last: int, counter: ArcDiamondCounter
    ) -> AbstractContextManager[Iterator[ArcPiece] | None]:
        """Prepare the pages for all arcs, piece by piece, where counts of arcs have room on the host; else None."""
        ...

    def columns(
        self, first: int, last: int, most: int
    ) -> Iterator[tuple[int, int, Callable[[], Iterator[Targets]] | None]]:
        """Cut a range of vertices by the arcs from larger ones, and prepare the pages of all lists in turn for each."""
        ...

    def root(self, at: int) -> int:
        """Return a root, or the end of a range of them, as the kernel's graph counts them."""
        ...


class CountRanges(Stage):
    """Count what belongs to ranges of roots.

    Attributes
    ----------
    method
        What the stage is called in metrics and manifests.
    optional
        Whether the plan has another way if the workspace does not fit.
    estimated
        Whether its steps are known: at most about the sum of the squared degrees, or as the phase estimates.
    """

    verb = "count"
    method: ClassVar[str]
    optional: ClassVar[bool] = False

    @property
    def estimated(self) -> bool:
        """See above."""
        return False

    interruptible: ClassVar[bool] = False
    """Whether a signal ends its kernel on a device while the main thread waits for that kernel."""

    @property
    def kernels(self) -> tuple[Callable[..., Any] | Call, ...]:
        """The functions of `Kernels` that make its workspace, with the arguments that determine their sources."""
        return ()

    @property
    def streams(self) -> bool:
        """Whether it reads only smaller neighbours, so that it can count part after part of a graph."""
        return self.source.kind == "arcs" and self.source.part == NeighbourRange.SMALLER

    @property
    def overlaps(self) -> bool:
        """Whether a device works on two ranges at a time, so that the blocks of one follow those of the other."""
        return False

    @property
    def follows(self) -> bool:
        """Whether a worker is quicker at a range that follows its last one."""
        return False

    @property
    def smallest(self) -> int:
        """Vertices of the smallest subgraphs that are counted; roots have as many smaller neighbours, less one."""
        return 3

    @property
    def least(self) -> int:
        """The least degree of a vertex that may be in such a subgraph; 0 if every vertex gets a count."""
        return self.smallest - 1

    @property
    def splits(self) -> bool:
        """Whether it can count the arcs to some vertices alone."""
        return False

    @property
    @abstractmethod
    def how(self) -> str:
        """How it counts, as text."""

    @property
    @abstractmethod
    def source(self) -> Scan:
        """The stage before it: the roots, and what is read for them."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What distinguishes the count from others of a run."""

    @property
    @abstractmethod
    def aggregation(self) -> Aggregation[Any, Any]:
        """From a worker's counter, what it found since it was last asked; how that is combined, and the result."""

    @abstractmethod
    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> Counter:
        """Make a worker's workspace of at most a given number of bytes."""

    def found(self, partial: Any) -> int:  # noqa: ARG002
        """Return how many rows the metrics say were found, for the partial value of everything."""
        return 0

    def host_bytes(self, workers: int) -> int:  # noqa: ARG002
        """Return the bytes of the host that the counters of a given number of workers take besides their workspaces."""
        return 0

    def describe(self) -> str:
        """See `Stage`."""
        return f"count        {self.how}"

    def run(self, chunk: tuple[int, int], context: CountingContext) -> Iterable[Any]:
        """Count a range, in parts where memory is short."""
        first, last = chunk
        while first < last and not context.done:
            first = context.fit(self, last - first, partial(self._count, context, first))
        return ()

    def _count(self, context: CountingContext, first: int, size: int) -> int:
        begin, end = context.root(first), context.root(first + size)
        if begin < end:
            self.add(begin, end, context)
        return first + size

    def add(self, first: int, last: int, context: CountingContext) -> None:
        """Count a range of roots of the kernel's graph; where that fails, nothing has changed."""
        if isinstance(context.counter, BlockCounter):
            context.counter.add_blocks(first, last, context)
        else:
            context.prepare(first, last)
            context.counter.add(first, last)

    def add_to(self, counter: Any, first: int, last: int, targets: Targets | None) -> None:
        """Count a range of roots of a counter's graph, or of arcs to `targets` where it `splits`."""
        assert targets is None
        counter.add(first, last)


Kernel = TypeVar("Kernel", bound=Counter)


class KernelCounter(Generic[Kernel]):
    """The workspace of a kernel; a subclass has `take`, which returns what was found since it was last asked."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel

    @property
    def workspace_bytes(self) -> int:
        """See `Workspace`."""
        return self.kernel.workspace_bytes

    def add(self, first: int, last: int) -> None:
        """See `Counter`."""
        self.kernel.add(first, last)


class SubgraphCounter:
    """The workspace of a kernel that counts subgraphs of ranges, and their sum."""

    def __init__(self, kernel: RangeCounter):
        self._kernel, self._sum = kernel, 0
        self.workspace_bytes = kernel.workspace_bytes

    def add(self, first: int, last: int) -> None:
        """See `Counter`."""
        self._sum += self._kernel.count(first, last)

    def take(self) -> int:
        """Return the number of those found since the last call."""
        found, self._sum = self._sum, 0
        return found


class BlockCounter(SubgraphCounter, ABC):
    """The workspace of a kernel that reads a range block by block, as a context prepares it."""

    @abstractmethod
    def add_blocks(self, first: int, last: int, context: CountingContext) -> None:
        """Count a range, as `CountRanges.add` does."""


class _TriangleSum(BlockCounter):
    _kernel: TriangleCounter

    def add_to(self, first: int, last: int, targets: Targets | None) -> None:
        self._sum += self._kernel.count_blocks([Block(first, last, targets)])

    def add_blocks(self, first: int, last: int, context: CountingContext) -> None:
        self._sum += self._kernel.count_blocks(context.blocks(first, last))


class _TabledSum(BlockCounter):
    _kernel: TabledCliqueCounter

    def add_blocks(self, first: int, last: int, context: CountingContext) -> None:
        self._sum += self._kernel.count_pieces(context.pieces(first, last, self._kernel))


@dataclass(frozen=True)
class CountSubgraphs(CountRanges):
    """Count the embeddings of one pattern."""

    optional = True
    aggregation = Aggregation(methodcaller("take"), sum, int)

    def found(self, partial: int) -> int:
        """See `CountRanges`."""
        return partial


@cache
def _clique_source(k: int) -> Scan:
    triangles = k == 3
    return Scan(
        "arcs",
        NeighbourRange.SMALLER,
        copies=True,
        arcs=_ARCS.get(k, 0),
        share=0.5 if triangles else 0.6,
        lists_tasks=not triangles,
        row_growth=0 if triangles else k - 2,
    )


@dataclass(frozen=True)
class CountCliques(CountSubgraphs):
    """Count the cliques of `k` vertices (k >= 3)."""

    k: int

    method = "clique bitmaps"
    interruptible = True

    @cached_property
    def source(self) -> Scan:
        """See `CountRanges`."""
        return _clique_source(self.k)

    @property
    def name(self) -> str:
        """See `CountRanges`."""
        return f"{self.method} of {self.k} vertices"

    @property
    def how(self) -> str:
        """See `CountRanges`."""
        how = f"{self.method}: bitmap tables of the out-neighbours of each vertex; AND, population count"
        return how if self.k < ROOTED_FROM else f"{how}; the last four vertices by the pairs that are not adjacent"

    @property
    def kernels(self) -> tuple[Callable[..., Any] | Call, ...]:
        """See `CountRanges`."""
        if self.k == 3:
            return (Kernels.triangle_counter,)
        function = Kernels.clique_counter if self.k < ROOTED_FROM else Kernels.large_clique_counter
        return (call(function, k=self.k),)

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> Counter:
        """See `CountRanges`."""
        if self.k == 3:
            return _TriangleSum(engine.kernels.triangle_counter(engine.device, graph, memory))
        if graph.oriented and graph.pages is not None and graph.pages.staged:
            return _TabledSum(self.tabled_counter(engine, graph, memory))
        return SubgraphCounter(engine.kernels.clique_counter(engine.device, graph, self.k, memory))

    def tabled_counter(self, engine: Engine, graph: GraphArrays, memory: int) -> TabledCliqueCounter:
        """Make a worker's workspace, as `counter` does, for an oriented graph whose lists come in turn; k >= 4."""
        return engine.kernels.tabled_clique_counter(engine.device, graph, self.k, memory)

    @property
    def overlaps(self) -> bool:
        """See `CountRanges`."""
        return self.k > 3

    @property
    def follows(self) -> bool:
        """See `CountRanges`: tables are made for many vertices at once, and serve the next range."""
        return self.k < ROOTED_FROM

    @property
    def estimated(self) -> bool:
        """See `CountRanges`; no estimate says the number of larger cliques."""
        return self.k < ROOTED_FROM

    @property
    def smallest(self) -> int:
        """See `CountRanges`."""
        return self.k

    @property
    def splits(self) -> bool:
        """See `CountRanges`."""
        return self.k == 3

    def add_to(self, counter: Any, first: int, last: int, targets: Targets | None) -> None:
        """See `CountRanges`."""
        if isinstance(counter, _TriangleSum):
            counter.add_to(first, last, targets)
        else:
            super().add_to(counter, first, last, targets)


@dataclass(frozen=True)
class CountDiamonds(CountSubgraphs):
    """Count cliques of 4 vertices less an edge: pairs of triangles with an edge in common."""

    method = "triangle pairs"
    estimated = True
    name = "triangle pairs of 4 vertices"
    how = "triangle pairs: the common neighbours of every edge; c of them are c (c - 1) / 2 diamonds"
    source = Scan("vertices")

    kernels = (Kernels.diamond_counter,)

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> Counter:
        """See `CountRanges`."""
        return SubgraphCounter(engine.kernels.diamond_counter(engine.device, graph, memory))


@dataclass(frozen=True)
class CountFiveCycles(CountSubgraphs):
    """Count the cycles of 5 vertices by two wedges from their smallest vertex, whose ends are adjacent."""

    method = "wedge pairs"
    estimated = True
    name = "wedge pairs of 5 vertices"
    how = "wedge pairs: wedges from every vertex to larger ones, grouped by their ends; edges between ends close them"
    source = Scan("vertices")

    kernels = (Kernels.five_cycle_counter,)

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> Counter:
        """See `CountRanges`."""
        return SubgraphCounter(engine.kernels.five_cycle_counter(engine.device, graph, memory))


@dataclass(frozen=True)
class CountPrisms(CountSubgraphs):
    """Count prisms: two triangles whose vertices are joined in pairs."""

    method = "bitmaps of edges"
    estimated = True
    name = "prisms"
    how = (
        "prisms: edges between vertices that are adjacent to two smaller neighbours of a vertex; "
        "bitmap tables of these neighbours"
    )
    source = Scan("vertices")

    kernels = (Kernels.prism_counter,)

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> Counter:
        """See `CountRanges`."""
        return SubgraphCounter(engine.kernels.prism_counter(engine.device, graph, memory))


VertexCounts = NDArray[np.int64]


def _require_exact(counts: Sequence[VertexCounts]) -> None:
    """Check that counts add up to what 64-bit integers hold.

    Raises
    ------
    FinalError
        If they may not.
    """
    size = sum(float(one.sum(dtype=np.float64)) for one in counts)
    if size >= _EXACT_BELOW:
        raise FinalError(f"counts that add up to about {size:.3g} do not fit 64-bit integers")


class CountOfVertices(CountRanges):
    """Count something for every vertex; partial values are arrays of all that a worker found so far."""

    least = 0
    wraps: ClassVar[bool] = False
    """Whether numbers are residues or words of larger ones, so that no sum of them is too large."""

    @property
    def rows(self) -> int:
        """Numbers per vertex."""
        return 1

    def places(self, num_vertices: int) -> int:
        """Return how many numbers there are in all."""
        return self.rows * num_vertices

    def counts_shape(self, num_vertices: int) -> tuple[int, ...]:
        """Return the shape of the array of numbers."""
        return (num_vertices,) if self.rows == 1 else (self.rows, num_vertices)

    @property
    def aggregation(self) -> Aggregation[VertexCounts, VertexCounts]:
        """Arrays, which are added up into the first one."""
        return Aggregation(methodcaller("counts"), self._added_up, self._finished)

    @abstractmethod
    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> ArrayCounter:
        """See `CountRanges`."""

    def _added_up(self, counts: Sequence[VertexCounts]) -> VertexCounts:
        if not self.wraps:
            _require_exact(counts)
        total, *others = counts
        for other in others:
            self._add(total, other)
        return total

    def _add(self, total: VertexCounts, other: VertexCounts) -> None:
        """Add an array to the first one."""
        np.add(total, other, out=total)

    def _finished(self, counts: VertexCounts) -> VertexCounts:
        """Return the result for the sums of what the kernel found; it may take their place."""
        return counts


@dataclass(frozen=True)
class CountTrianglesOfVertices(CountOfVertices):
    """Count the triangles of every vertex."""

    method = name = "triangles per vertex"
    how = "triangles of every vertex: the common out-neighbours of both ends of every edge"
    source = Scan("arcs", NeighbourRange.SMALLER, copies=True, arcs=_ARCS[3])

    kernels = (Kernels.triangle_vertex_counter,)
    splits = True

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> TriangleVertexCounter:
        """See `CountRanges`."""
        return engine.kernels.triangle_vertex_counter(engine.device, graph, memory)

    def add(self, first: int, last: int, context: CountingContext) -> None:
        """See `CountRanges`."""
        cast(TriangleVertexCounter, context.counter).add_blocks(partial(context.blocks, first, last))

    def add_to(self, counter: Any, first: int, last: int, targets: Targets | None) -> None:
        """See `CountRanges`."""
        counter.add(first, last, targets)
