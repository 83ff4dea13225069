"""What users write for an algorithm of their own: a class that extends rows and looks at them, chunk by chunk.

The model is G-thinkerCG's (section IV): roots, a step that extends the candidates, a step that processes them; rows are
columns, as in GAMMA (section III). Everything else (chunks inside budgets, the stack that spills, resuming, clusters,
metrics, Parquet) is Longwall's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import NeighbourRange, RowReads
from longwall.stages.extension.adjacency_lists import degrees, find_arcs, list_arcs

Array = Any  # a NumPy or a CuPy array


@dataclass(frozen=True)
class Found:
    """What `Algorithm.process` finds in a chunk.

    Attributes
    ----------
    value
        What JSON can hold: a number, a text, a list or a dict of such; None where the chunk adds nothing.
    rows
        Rows for the result table ``rows``: a column, an array with one dimension, for each name of `Algorithm.schema`.
    """

    value: Any = None
    rows: Mapping[str, Array] | None = None


class GraphView:
    """The data graph as an algorithm reads it, in arrays of the engine; vertices are internal ids, 0 to n - 1.

    Internal ids are ranks by degree: vertex 0 has the most neighbours. Every vertex has a neighbour.

    Parameters
    ----------
    arrays
        The graph where the engine reads it.
    edge_labels
        Of its arcs, if it has any.
    original_ids : int64[n]
        Of the vertices, on the host.
    xp
        numpy or cupy.

    Attributes
    ----------
    indptr : int64[n + 1]
    indices : uint32[2m]
        The neighbours of v are ``indices[indptr[v]:indptr[v + 1]]``, ascending. A place in it is an arc.
    labels : int32[n] or None
        Vertex labels.
    edge_labels : int32[2m] or None
        The label of each arc; both arcs of an edge have the same.
    num_vertices, max_degree : int
    """

    def __init__(self, arrays: GraphArrays, edge_labels: Array | None, original_ids: Any, xp: Any):
        self._arrays, self._original_ids, self._xp = arrays, original_ids, xp
        self.indptr, self.indices, self.edge_labels = arrays.indptr, arrays.indices, edge_labels
        self.num_vertices, self.max_degree = arrays.num_vertices, arrays.max_degree
        self.labels = arrays.labels if arrays.labels.size == self.num_vertices else None

    def degrees(self, vertices: Array) -> Array:
        """Return how many neighbours vertices have: int64[k]."""
        return degrees(self._arrays, vertices)

    def neighbours(self, vertices: Array) -> tuple[Array, Array, Array]:
        """Return the neighbours of vertices, all lists one behind the other.

        Returns
        -------
        rows : int64[t]
            Positions in `vertices`, ascending.
        neighbours : int64[t]
            A neighbour of each of these; ascending for each of them.
        arcs : int64[t]
            The arc to it: its place in `indices` and in `edge_labels`.
        """
        xp = self._xp
        if not vertices.size:
            nothing = xp.empty(0, xp.int64)
            return nothing, nothing, nothing
        owners = vertices.astype(xp.uint32)
        if self._arrays.pages is not None:
            self._arrays.pages.touch(1, [RowReads(owners, NeighbourRange.ALL)])
        sizes = self.degrees(vertices)
        ((rows, arcs),) = list_arcs(self.indptr[owners], sizes, int(sizes.sum()), xp)
        return rows, self.indices[arcs].astype(xp.int64), arcs

    def has_edge(self, first: Array, second: Array) -> Array:
        """Return whether pairs of vertices are adjacent: bool[k]."""
        return self.arcs(first, second) >= 0

    def arcs(self, first: Array, second: Array) -> Array:
        """Return the arcs of pairs of vertices, -1 where they are not adjacent: int64[k]."""
        return find_arcs(self._arrays, first, second, self._xp)

    def original_ids(self, vertices: Array) -> Any:
        """Return the ids of vertices in the input, or the numbers of their names: int64[k], an array of NumPy."""
        return self._original_ids[vertices if self._xp is np else vertices.get()]


class Algorithm(ABC):
    """An algorithm of your own. Longwall makes one object for each process; threads call it at the same time.

    Rows are embeddings, or any other tuples of integers that are not negative. `columns` are the columns of a chunk:
    ``columns[i]`` is int64[rows] and read-only, ``columns[-1]`` is the one that was added last, ``len(columns)`` is
    their number. `xp` is numpy or cupy, the module of all arrays. A call that runs out of memory is made again for
    fewer rows, so it should change nothing of the object that must be counted once. The parameters of a class's
    ``__init__`` are those of ``workload.parameters``.

    Attributes
    ----------
    schema
        The columns of the result table ``rows``: a name, and ``"vertex"`` (internal ids, which are written as ids of
        the input) or a type of Arrow such as ``"int64"`` or ``"float64"``. None: there is no such table.
    candidate_bytes
        Bytes of arrays that `extend` and `process` make for each candidate.
    needs_edge_labels
        Whether `GraphView.edge_labels` is read.

    Examples
    --------
    >>> import longwall, networkx
    >>> class Triangles(longwall.Algorithm):
    ...     def extend(self, columns, graph, xp):
    ...         if len(columns) == 3:
    ...             return None
    ...         rows, neighbours, _ = graph.neighbours(columns[-1])
    ...         keep = neighbours > columns[-1][rows]
    ...         if len(columns) == 2:
    ...             keep &= graph.has_edge(columns[0][rows], neighbours)
    ...         return rows[keep], neighbours[keep]
    ...
    ...     def process(self, columns, graph, xp):
    ...         return longwall.Found(len(columns[0])) if len(columns) == 3 else None
    >>> karate = longwall.graph(networkx.karate_club_graph())
    >>> longwall.run({"graph": karate, "workload": {"kind": "custom", "algorithm": Triangles}}).count
    45
    """

    schema: ClassVar[Mapping[str, str]] = {}
    candidate_bytes: ClassVar[int] = 128
    needs_edge_labels: ClassVar[bool] = False

    def roots(self, first: int, last: int, graph: GraphView, xp: Any) -> Sequence[Array]:  # noqa: ARG002
        """Return the first rows that the vertices `first` to `last` - 1 lead to, as columns; by default themselves."""
        return [xp.arange(first, last)]

    def candidates(self, columns: Sequence[Array], graph: GraphView, xp: Any) -> Array:  # noqa: ARG002
        """Return how many candidates `extend` looks at for each row, at most: int64[rows].

        Chunks are cut so that they fit the memory. By default a row has the degrees of all its vertices.
        """
        return sum(graph.degrees(column) for column in columns)

    @abstractmethod
    def extend(self, columns: Sequence[Array], graph: GraphView, xp: Any) -> tuple[Array, Array] | None:
        """Extend the rows of a chunk by one column.

        Returns
        -------
        parents : int64[k]
            The row that each new row extends, ascending; rows that are in none are not extended.
        values : int64[k]
            The new column, 0 or more.

        Notes
        -----
        None means that no row is extended.
        """

    @abstractmethod
    def process(self, columns: Sequence[Array], graph: GraphView, xp: Any) -> Found | None:
        """Look at the rows of a chunk; every row, of every length, comes here once. Return what is found, or None."""

    def combine(self, values: Sequence[Any]) -> Any:
        """Return one value for several, in any order; by default their sum."""
        return sum(values)

    def finalize(self, value: Any) -> Any:
        """Return the answer for the value of everything, None if nothing was found; by default the value, or 0."""
        return 0 if value is None else value
