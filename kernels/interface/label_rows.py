"""What kernels make the graph of a layout by label of, and what they return; see `LabelLayout` of the storage."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = Any  # a NumPy or a CuPy array
NewArray = Callable[[int, np.dtype[Any]], NDArray[Any]]
"""Makes an empty array of the host."""


@dataclass(frozen=True, eq=False)
class Roles:
    """The roles of a layout: the vertices of the new graph are those of the data graph in their roles.

    Attributes
    ----------
    labels : int32[kinds - 1]
        The distinct labels that roles have. A vertex whose label is here at place i is of kind i, all others are of the
        last kind.
    times : int64[kinds]
        How many roles each kind has: none, where vertices of this kind are left out.
    first_role : int64[kinds + 1]
        The roles of each kind follow each other.
    sizes : int64[kinds]
        Vertices of each kind.
    """

    labels: NDArray[np.int32]
    times: NDArray[np.int64]
    first_role: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @cached_property
    def number(self) -> int:
        """Vertices in their roles."""
        return sum(map(mul, self.sizes.tolist(), self.times.tolist()))


class WrongSizes(Exception):
    """The graph has other labels than its statistics say."""


@dataclass(frozen=True, eq=False)
class KeptEdges:
    """The edges that are kept, as kernels look them up.

    Attributes
    ----------
    labels : int32[k]
        Labels of edges that are distinguished; all others are number k.
    allowed : int8[roles, roles, k + 1]
        1: edges with such ends and such a label are kept; 2: if the first end has the smaller id; 3: the larger one.
    """

    labels: NDArray[np.int32]
    allowed: NDArray[np.int8]


class LabelRows(NamedTuple):
    """The rows of the new graph where the engine's kernels read them; see `GraphArrays`.

    Vertices without an edge are left out.

    Attributes
    ----------
    origin : integer[n]
        The vertex of the data graph.
    labels : int32[n] or int32[1]
    slices : uint32[n * (roles + 1)] or None
        Where the neighbours of each role begin in a row, and where the last ones end; None where rows have no slices.
    indptr : int64[n + 1]
    split : int64[n]
    indices : uint32[arcs]
    edge_labels : int32[arcs] or None
    role_arcs
        The arcs of the vertices in the first role, in the first two, ...; of no meaning without slices.
    max_degree, max_out_degree, sum_degree_squared
        See `GraphStats`.
    capacity
        Bytes of the arrays where the engine works.
    fetch
        Copies one of the arrays to the host, into a second one if that is given, from any thread and beside other
        kernels; None where they are there.
    """

    origin: Array
    labels: Array
    slices: Array
    indptr: Array
    split: Array
    indices: Array
    edge_labels: Array
    role_arcs: tuple[int, ...]
    max_degree: int
    max_out_degree: int
    sum_degree_squared: int
    capacity: int
    fetch: Callable[..., NDArray[Any]] | None
