"""Maximal cliques on an engine: the degeneracy order that a search follows, and the kernels that count and list."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import NARROW, ArrayCounter, Device, Workspace

Array = Any  # a NumPy or a CuPy array

COUNT, VERTICES, LIST = 0, 1, 2
"""The result of a search: cliques by size, by vertex, or the cliques."""
FINDER_LEVELS = NARROW + 2
"""Levels of a search among `NARROW` candidates."""
_BYTES_PER_VERTEX, _BYTES_PER_EDGE = 24, 4  # for a while three numbers per vertex


@dataclass(frozen=True)
class DegeneracyOrder:
    """An order of the vertices in which each has few later neighbours, where the engine's kernels read it.

    Vertices are peeled in rounds. A round takes away all that have no more neighbours left than the level says, which
    rises to the least number of neighbours left where there are none. Vertices are ordered by their rounds, those of a
    round by descending id: so the order depends on the graph alone, not on the engine.

    Attributes
    ----------
    rank : uint32[n]
        The place of every vertex in the order.
    indptr : int64[n + 1]
    indices : uint32[m]
        `indices[indptr[v]:indptr[v + 1]]` are the neighbours of v that are later than v, ascending by id.
    degeneracy
        The largest number of later neighbours; the largest clique has at most one vertex more.
    wide_words
        The most words of 64 bits that the rows of a vertex's earlier neighbours take, a bit for each later neighbour,
        over the vertices with more than `NARROW` later neighbours.
    """

    rank: Array
    indptr: Array
    indices: Array
    degeneracy: int
    wide_words: int


@dataclass(frozen=True, kw_only=True)
class OrderedGraph(GraphArrays):
    """A graph with its degeneracy order."""

    order: DegeneracyOrder


def order_bytes(num_vertices: int, num_edges: int) -> int:
    """Return the bytes that the order takes, and what else is needed while it is made."""
    return _BYTES_PER_VERTEX * num_vertices + _BYTES_PER_EDGE * num_edges


class CliqueLister(Workspace, Protocol):
    """Workspace of one worker that lists maximal cliques, as many at a time as there is room for."""

    def begin(self, first: int, last: int) -> None:
        """Begin with those whose earliest vertices in the degeneracy order are `first` to `last` - 1."""

    def following(self) -> tuple[NDArray[np.int64], NDArray[np.uint32]] | None:
        """Return the next cliques; None where there are no more.

        Returns
        -------
        offsets : int64[rows + 1]
            Where each clique begins, and where the last one ends.
        members : uint32[offsets[-1]]
            Their vertices. Both arrays are on the host, and written again by the next call.
        """


class MaximalCliqueKernels(Protocol):
    """Order vertices, and make workspaces of searches for maximal cliques."""

    def degeneracy_order(self, device: Device, graph: GraphArrays, later: Any = None) -> DegeneracyOrder:
        """Order the vertices for a search for maximal cliques; it takes `order_bytes`.

        `later`, uint32[m], becomes `DegeneracyOrder.indices`, if given; it is in memory that kernels read.

        Raises
        ------
        EngineUnavailable
            Where the engine has no such kernel; so do the other kernels for maximal cliques.
        """

    def maximal_clique_counter(
        self, device: Device, graph: GraphArrays, order: DegeneracyOrder, min_size: int, memory: int
    ) -> ArrayCounter:
        """Workspace for counting maximal cliques of at least `min_size` vertices by size; roots are vertices.

        Its counts are int64[degeneracy + 2], by the number of vertices. The root of a clique is its earliest vertex in
        the degeneracy order.
        """

    def maximal_clique_vertex_counter(
        self, device: Device, graph: GraphArrays, order: DegeneracyOrder, min_size: int, memory: int
    ) -> ArrayCounter:
        """Workspace for counting maximal cliques of at least `min_size` vertices per vertex; roots are vertices.

        Its counts are int64[3, num_vertices]: the cliques of each vertex, the size of its largest one, and at place
        s - 1 of the last row the cliques of s vertices.
        """

    def maximal_clique_lister(
        self, device: Device, graph: GraphArrays, order: DegeneracyOrder, min_size: int, capacity: int, memory: int
    ) -> CliqueLister:
        """Workspace for listing maximal cliques; roots are vertices.

        Parameters
        ----------
        device
            The engine's.
        graph
            The graph.
        order
            Its degeneracy order.
        min_size
            Vertices of the smallest cliques that are wanted.
        capacity
            Vertices of the cliques that are listed at a time; those of one clique at least.
        memory
            The most bytes.
        """
