"""What kernels make the rows of a graph by label of, and what makes them; see `LabelLayout` of the storage."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = Any  # a NumPy or a CuPy array


class RoleNumbers(NamedTuple):
    """The vertices of the new graph: those of the data graph in their roles.

    Attributes
    ----------
    kind : uint8[n]
        Of each vertex of the data graph: which of the distinct labels of the roles it has; one more for none, which has
        no role.
    place : uint32[n]
        Its number in the first of its roles; those in its other roles follow.
    origin : int64[new vertices]
        The vertex of the data graph.
    role : int16[new vertices]
    first_role : int64[kinds + 2]
        The roles of each kind.
    final : uint32[numbers]
        What becomes of each number: vertices without an edge are left out.
    """

    kind: NDArray[np.uint8]
    place: NDArray[np.uint32]
    origin: NDArray[np.int64]
    role: NDArray[np.int16]
    first_role: NDArray[np.int64]
    final: NDArray[np.uint32]


class KeptEdges(NamedTuple):
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


class RowArrays(NamedTuple):
    """The rows of the new graph; see `GraphArrays`.

    Attributes
    ----------
    labels : int32[n] or int32[1]
    slices : uint32[n, roles + 1]
        Where the neighbours of each role begin in a row, and where it ends.
    indptr : int64[n + 1]
    split : int64[n]
    indices : uint32[arcs + 1]
        The last place is for what is left out.
    edge_labels : int32[arcs + 1] or int32[1]
    """

    labels: Array
    slices: Array
    indptr: Array
    split: Array
    indices: Array
    edge_labels: Array


class LabelRows(Protocol):
    """Makes rows, first their lengths."""

    def count(self) -> NDArray[np.uint32]:
        """Return uint32[new vertices, roles + 1]: how many neighbours in roles before each a vertex has, and all."""
        ...

    def fill(self, vertices: RoleNumbers, rows: RowArrays) -> tuple[RowArrays, Callable[[], None] | None]:
        """Write `split`, `indices` and `edge_labels` of rows on the host, whose other arrays are known.

        Parameters
        ----------
        vertices
            The vertices, now without those that are left out.
        rows
            On the host.

        Returns
        -------
        rows : RowArrays
            The same where the engine's kernels read them, but for labels of edges.
        copy : callable or None
            Writes `indices` on the host; None where they are there.
        """
        ...
