"""Numbers of edges: those of a vertex with its neighbours of smaller ids, vertex by vertex."""

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.graph_arrays import GraphArrays

Array = Any  # a NumPy or a CuPy array

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
