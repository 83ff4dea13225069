"""What the kernels that count around vertices and edges take: orbits, triangles of arcs, edges."""

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.graph_arrays import GraphArrays

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

    @classmethod
    def of(cls, graph: GraphArrays, triangles: Array, most_triangles: int, twins: Array) -> "TriangleGraph":
        """Put a graph, its triangles and its twins together; nothing is copied."""
        same = {field.name: getattr(graph, field.name) for field in fields(graph)}
        return cls(**same, triangles=triangles, most_triangles=most_triangles, twins=twins)


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

    @classmethod
    def of(cls, graph: GraphArrays, edges: Array) -> "EdgeGraph":
        """Put a graph and the numbers of its edges together; nothing is copied."""
        return cls(**{field.name: getattr(graph, field.name) for field in fields(graph)}, edges=edges)


def edge_numbers(indptr: NDArray[np.int64], split: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the numbers of the edges of every vertex begin, and their end: int64[n + 1]."""
    edges = np.zeros(len(indptr), np.int64)
    np.cumsum(split - indptr[:-1], out=edges[1:])
    return edges
