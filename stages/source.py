"""The source stages: the first levels of an embedding table, straight from the graph, or ranges of roots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np

from longwall.kernels.interface.engine import Engine, ShortOfMemory
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import NeighbourRange, RowReads
from longwall.stages.base import Stage, WorkerContext
from longwall.stages.stage_timer import StageTimer
from longwall.storage.graph.graph import Graph
from longwall.storage.tables.embedding_table import EmbeddingTable, edge_table

if TYPE_CHECKING:
    from longwall.kernels.interface.search_program import Level

Made = TypeVar("Made")


class SourceContext(WorkerContext, Protocol):
    """What `EdgeSource` works with."""

    graph: GraphArrays
    xp: Any
    timer: StageTimer

    def fit(self, stage: Stage, most: int, work: Callable[[int], Made]) -> Made:
        """Do a piece of work that is as large as memory allows, `most` at most."""
        ...


@dataclass(frozen=True)
class EdgeSource(Stage):
    """Levels 0 and 1 of a search: the ordered edges of a range of arcs.

    Attributes
    ----------
    levels
        What the vertices of depths 0 and 1 must satisfy.
    sets
        How the sets of these depths are computed, as text.
    """

    levels: tuple[Level, Level]
    sets: tuple[str, ...]

    verb = "source"

    def describe(self) -> str:
        """See `Stage`."""
        text = "source       edges of the graph (levels 0 and 1)"
        return "\n".join([text, *(f"             {text}" for text in self.sets)])

    def run(self, chunk: tuple[int, int], context: SourceContext) -> Iterator[EmbeddingTable]:
        """Yield the edges of arcs ``chunk[0]`` to ``chunk[1]`` - 1: one table, or several where memory is short."""
        first, last = chunk
        while first < last:
            with context.timer.time(1) as sample:
                made, size = context.fit(self, last - first, partial(self._edges, context, first))
                sample.rows_in, sample.rows_out, sample.size = size, len(made[0]), made[0].nbytes
            yield made.pop()
            first += size

    def _edges(self, context: SourceContext, first: int, size: int) -> tuple[list[EmbeddingTable], int]:
        return [edge_source(context.graph, self.levels, first, first + size, context.xp)], size


ALL_ARCS = 1 << 62
"""More arcs than a graph has: all of it is one range."""


class ScanContext(WorkerContext, Protocol):
    """What `Scan` works with."""

    graph: GraphArrays
    engine: Engine


@dataclass(frozen=True)
class Scan(Stage):
    """Ranges of roots for a kernel that reads the graph on its own; no table is made of them.

    Attributes
    ----------
    kind
        What the roots are.
    part
        What the kernel reads of the rows of both ends of the edges at its roots.
    copies
        Whether the kernel reads copies of the graph's pages: then these have what is left of the device.
    streams
        Whether the lists of all vertices are copied in turn for every range, where pages can be copied.
    arcs
        How many arcs a range has, at least, of a graph that a device holds; 0: as the engine has it.
    share
        The part of a device's memory that a worker's workspace may have beside pages that are copied to it. What is
        read in order needs few of these, but comes as often as the workspace is short.
    lists_tasks
        Whether kernels list the tasks of blocks, which takes memory besides.
    growth
        The power of its number of continuations to which the work at an arc grows; 0: arcs are alike.
    row_growth
        The power of its number of smaller neighbours to which the work at a vertex grows, where it grows far faster
        than the number of its arcs; 0: it does not.
    """

    kind: Literal["arcs", "vertices"]
    part: NeighbourRange = NeighbourRange.ALL
    copies: bool = False
    streams: bool = False
    arcs: int = 0
    share: float = 0.5
    lists_tasks: bool = False
    growth: int = 0
    row_growth: int = 0

    verb = "source"

    def describe(self) -> str:
        """See `Stage`."""
        part = "" if self.part == NeighbourRange.ALL else f"{self.part.name.lower()} "
        return f"source       {self.kind} of the graph, and the {part}neighbours of both ends of their edges"

    def run(self, chunk: tuple[int, int], context: ScanContext) -> Iterable[tuple[int, int]]:  # noqa: ARG002
        """Return the range as it is: a kernel does it in parts where memory is short."""
        return (chunk,)

    def prepare(self, first: int, last: int, context: ScanContext) -> None:
        """Prepare the pages that the kernel reads for a range; without memory to look at that, all stays as it is."""
        graph = context.graph
        if graph.pages is None:
            return
        if self.kind == "vertices":
            first, last = int(graph.indptr[first]), int(graph.indptr[last])
        with suppress(ShortOfMemory), context.engine.faults():
            look = graph.pages.prepare if self.copies else graph.pages.touch
            look(1, list(arc_reads(graph, first, last, self.part, context.engine.xp)))


def host_arrays(graph: Graph) -> GraphArrays:
    """The arrays of a graph as kernels read them."""
    return GraphArrays(
        graph.indptr,
        graph.indices,
        graph.split,
        graph.labels if graph.labels is not None else np.zeros(1, np.int32),
        graph.stats.max_degree,
        graph.stats.max_out_degree,
        slices=None if graph.slices is None else graph.slices.starts,
        slice_labels=() if graph.slices is None else graph.slices.labels,
        slice_arcs=() if graph.slices is None else graph.slices.arcs,
    )


def edge_source(graph: GraphArrays, levels: tuple[Level, Level], first: int, last: int, xp: Any) -> EmbeddingTable:
    """Levels 0 and 1 of a search: the ordered edges of a range of arcs.

    Parameters
    ----------
    graph
        The data graph, in arrays of `xp`.
    levels
        What the vertices of depths 0 and 1 must satisfy.
    first, last
        Range of arcs, that is, of positions in `graph.indices`.
    xp
        numpy or cupy.

    Returns
    -------
    EmbeddingTable
        A v-ET of two levels: the arc's source and its target.
    """
    if graph.pages is not None:
        graph.pages.scan(first, last)
    return edge_table(graph, levels, first, last, xp)


def arc_reads(graph: GraphArrays, first: int, last: int, part: NeighbourRange, xp: Any) -> Iterator[RowReads]:
    """What kernels read that look at the rows of both ends of every edge: each owner's row, each neighbour's.

    Parameters
    ----------
    graph
        The data graph, in arrays of `xp`.
    first, last
        Range of arcs.
    part
        ALL, or SMALLER for kernels that only look at neighbours with smaller ids, and at those neighbours' ones.
    xp
        numpy or cupy.
    """
    vertex = int(xp.searchsorted(graph.indptr, first, side="right")) - 1
    beyond = int(xp.searchsorted(graph.indptr, last, side="left"))
    owners = xp.arange(vertex, beyond, dtype=xp.uint32)
    yield RowReads(owners, part)
    neighbours = graph.indices[first:last]
    if part == NeighbourRange.SMALLER and not graph.oriented:
        offsets = xp.clip(graph.indptr[vertex : beyond + 1], first, last) - first
        owner = EmbeddingTable((owners, neighbours), (offsets,), xp).column(0)
        neighbours = neighbours[neighbours < owner]
    yield RowReads(neighbours, part)
