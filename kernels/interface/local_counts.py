"""Counts around vertices, arcs and edges on an engine: triangles, 4-cycles, motifs, orbits, and their kernels."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import (
    ArrayCounter,
    Block,
    Device,
    RangeCounter,
    Targets,
    Workspace,
)

Array = Any  # a NumPy or a CuPy array

COUNTED = (
    3, 8, 10, 12, 13, 14, 25, 29, 32, 34, 36, 37, 40, 41, 43, 46, 48, 49, 50, 51, 52, 53, 54, 55, 57, 59, 60, 61, 62,
    63, 64, 65, 66, 67, 68, 69, 70, 71, 72,
)  # fmt: skip
"""The orbits of the kernel's rows: those of vertices that have several neighbours and do not cut their graphlet in two.

Homomorphisms that send the vertex of any other orbit to v are products, or sums over the neighbours of v, of those of
smaller graphlets. Numbers as in :mod:`longwall.kernels.host.patterns.graphlets`.
"""


@dataclass(frozen=True, kw_only=True)
class TriangleGraph(GraphArrays):
    """A graph with the number of triangles of every arc, where the engine's kernels can read it.

    Attributes
    ----------
    triangles : uint32[2m]
        By the place of the arc in `indices`.
    most_triangles
        Most triangles that the arcs of a vertex have, added up.
    twins : uint32[n]
        For the first vertex of each class of twins, the size of the class; 0 for the other vertices.
    """

    triangles: Array
    most_triangles: int
    twins: Array


EdgeShape = Literal["triangle", "clique-4", "cycle-4"]
"""What is counted at every edge."""


@dataclass(frozen=True, kw_only=True)
class EdgeGraph(GraphArrays):
    """A graph whose edges are numbered, where the engine's kernels can read it.

    Attributes
    ----------
    edges : int64[n + 1]
        The edges of v with its neighbours of smaller ids have the numbers `edges[v]` to `edges[v + 1]` - 1, in the
        order of these neighbours.
    """

    edges: Array


def edge_numbers(indptr: NDArray[np.int64], split: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the numbers of the edges of every vertex begin, and their end: int64[n + 1]."""
    edges = np.zeros(len(indptr), np.int64)
    np.cumsum(split - indptr[:-1], out=edges[1:])
    return edges


class Corner(Flag):
    """Which arcs of a triangle are counted: those of its largest vertex, or that between the two smaller ones."""

    LARGEST = auto()
    SMALLER = auto()


ArcBlock = tuple[int, int, Targets | None, Corner]
"""A `Block` whose triangles are counted, and at which of their arcs."""


class ArcPiece(NamedTuple):
    """All arcs of some vertices, and the vertices that they lead to, in parts.

    Attributes
    ----------
    arcs
        The first arc, and one past the last.
    targets
        The smaller vertices of pieces before, each a part of one of them, then those of this piece; each with the first
        of its arcs and one past its last. When the next part is asked for, kernels that read the lists of the last one
        have been launched.
    parts
        The parts of vertices that `targets` has.
    final
        Whether there are no more pieces.
    """

    arcs: tuple[int, int]
    targets: Iterable[tuple[Targets, tuple[int, int]]]
    parts: Sequence[Targets]
    final: bool


class TriangleCounter(Workspace, Protocol):
    """Workspace of one worker that counts triangles over ranges of arcs."""

    def count(self, first: int, last: int, targets: Targets | None = None) -> int:
        """Count the triangles of the arcs first to last - 1, or of those of them to `targets`.

        A triangle is of the arc from its largest vertex to the middle one.
        """

    def count_blocks(self, blocks: Iterable[Block]) -> int:
        """Count those of blocks while their lists are streamed."""


class TriangleVertexCounter(ArrayCounter, Protocol):
    """Workspace of one worker that counts triangles per vertex, over ranges of arcs."""

    def add(self, first: int, last: int, targets: Targets | None = None) -> None:
        """Add the triangles of the arcs first to last - 1, or of those of them to `targets`; see `TriangleCounter`."""

    def add_blocks(self, blocks: Callable[[], Iterable[Block]]) -> None:
        """Add those of blocks while their lists are streamed: once, or for one part of the vertices after the other.

        Parameters
        ----------
        blocks
            Has the lists come, each time anew.

        Raises
        ------
        ShortOfMemory
            If there was too little memory; nothing was added.
        EngineLost
            If some were added, but not all.
        """


class ArcDiamondCounter(RangeCounter, Protocol):
    """Workspace of one worker that counts pairs of triangles at the arcs of a range.

    Attributes
    ----------
    arc_capacity
        The most arcs of a range.
    piece_capacity, part_capacity
        The most arcs of an `ArcPiece`, and of a part of its targets; 0 if lists are not streamed.
    count_bytes
        Bytes of host memory that `count_pieces` takes for each arc.
    """

    arc_capacity: int
    piece_capacity: int
    part_capacity: int
    count_bytes: int

    def count(self, first: int, last: int, blocks: Iterable[ArcBlock] | None = None) -> int:
        """Count the pairs of triangles that share the edge of an arc first to last - 1, one to a smaller neighbour.

        Parameters
        ----------
        first, last
            The range.
        blocks
            All blocks that have triangles at these arcs, each once for a corner. When the next one is asked for,
            kernels that read the lists of the last one have been launched. None: lists are read where they are.
        """

    def count_pieces(self, pieces: Iterable[ArcPiece]) -> int:
        """Count the pairs of triangles at all arcs, each triangle once, while lists are streamed.

        The counts take `count_bytes` of host memory for each arc.

        Parameters
        ----------
        pieces
            One after the other, from the first arc to the last one.
        """


class ColumnCycleCounter(RangeCounter, Protocol):
    """Workspace of one worker that counts 4-cycles over ranges of vertices, while lists are streamed.

    Attributes
    ----------
    arc_capacity
        The most arcs that lead from larger vertices to those of a range; a single vertex may have more on a host.
    """

    arc_capacity: int

    def count(self, first: int, last: int, rows: Callable[[], Iterable[Targets]] | None = None) -> int:
        """Count the 4-cycles whose smallest vertices are first to last - 1.

        Parameters
        ----------
        first, last
            The range.
        rows
            Returns the vertices from `first` on, in parts. When the next part is asked for, kernels that read the lists
            of the last one have been launched. None: all lists are where they are read.
        """


class LocalCountKernels(Protocol):
    """Make workspaces that count around vertices, arcs and edges."""

    def triangle_counter(self, device: Device, graph: GraphArrays, memory: int) -> TriangleCounter:
        """Workspace for counting triangles; roots are arcs."""

    def triangle_vertex_counter(self, device: Device, graph: GraphArrays, memory: int) -> TriangleVertexCounter:
        """Workspace for counting triangles per vertex; roots are arcs."""

    def arc_diamond_counter(self, device: Device, graph: GraphArrays, memory: int) -> ArcDiamondCounter:
        """Workspace for counting diamonds, non-induced, at the edges that two triangles share; roots are arcs."""

    def four_cycle_counter(self, device: Device, graph: GraphArrays, memory: int) -> RangeCounter:
        """Workspace for counting 4-cycles by aggregating wedges; roots are vertices."""

    def column_cycle_counter(self, device: Device, graph: GraphArrays, memory: int) -> ColumnCycleCounter:
        """Workspace for counting 4-cycles while lists are streamed; roots are vertices."""

    def motif_counter(
        self, device: Device, graph: GraphArrays, k: int, entries: NDArray[np.uint32], classes: int, memory: int
    ) -> ArrayCounter:
        """Workspace for counting motifs of 3 to 8 vertices; roots are arcs.

        Its counts are int64[classes, 2 ** (k - 1)]: by the class of k - 1 vertices that are connected, and the
        neighbours of one vertex more, as bits over the class' canonical form. A subgraph is counted once for each of
        its vertices without which it stays connected.

        Parameters
        ----------
        device
            The engine's.
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

    def orbit_counter(
        self, device: Device, graph: GraphArrays, k: int, orbits: NDArray[np.int64], memory: int
    ) -> ArrayCounter:
        """Workspace for counting the orbits of motifs of 3 or 4 vertices; roots are arcs.

        A subgraph is counted for a vertex once for each of its other vertices without which it stays connected.

        Parameters
        ----------
        device
            The engine's.
        graph
            The graph.
        k
            Number of vertices.
        orbits : int64[2 ** ((k - 1) (k - 2) / 2), 2 ** (k - 1), k - 1]
            On the host: by code of k - 1 vertices and neighbours of one more, the orbit of each of the k - 1, from 0.
        memory
            The most bytes.
        """

    def arc_triangles(self, device: Device, graph: GraphArrays) -> Array:
        """Count the triangles of every arc.

        Returns
        -------
        uint32[2m]
            Where the engine's kernels read it, by the place of the arc in `indices`.
        """

    def most_triangles(self, device: Device, graph: GraphArrays, triangles: Array) -> int:
        """Return the largest sum, over the arcs of one vertex, of the triangles that `arc_triangles` counted."""

    def edge_counter(
        self, device: Device, graph: EdgeGraph, shape: EdgeShape, first: int, number: int, memory: int
    ) -> ArrayCounter:
        """Workspace for counting what contains each edge; roots are vertices.

        Parameters
        ----------
        device
            The engine's.
        graph
            The graph, with the numbers of its edges.
        shape
            What is counted.
        first, number
            The edges that are counted: `first` to `first` + `number` - 1; its counts are int64[number].
        memory
            The most bytes.
        """

    def orbit_homomorphism_counter(self, device: Device, graph: TriangleGraph, prime: int, memory: int) -> ArrayCounter:
        """Workspace for counting homomorphisms of graphlets of up to 5 vertices; roots are vertices.

        Its counts are int64[rows, num_vertices], modulo a prime below 2**31, or 2**64 if `prime` is 0: a row for each
        orbit of `longwall.kernels.interface.local_counts.COUNTED`, of the maps that send a vertex of the orbit to a
        vertex.
        """
