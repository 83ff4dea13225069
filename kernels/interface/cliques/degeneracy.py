"""The degeneracy order of a graph, which a search for maximal cliques follows."""

from dataclasses import dataclass, fields
from typing import Any

from longwall.kernels.interface.graph_arrays import GraphArrays

Array = Any  # a NumPy or a CuPy array

NARROW = 64
"""Vertices whose bitmaps are a single word."""

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

    @classmethod
    def of(cls, graph: GraphArrays, order: DegeneracyOrder) -> "OrderedGraph":
        """Put a graph and its order together; nothing is copied."""
        return cls(**{field.name: getattr(graph, field.name) for field in fields(graph)}, order=order)


def order_bytes(num_vertices: int, num_edges: int) -> int:
    """Return the bytes that the order takes, and what else is needed while it is made."""
    return _BYTES_PER_VERTEX * num_vertices + _BYTES_PER_EDGE * num_edges
