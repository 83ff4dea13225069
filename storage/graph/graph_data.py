"""The arrays of a graph in memory: undirected and simple, in CSR form, its vertices numbered by degree rank."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from longwall.kernels.interface.engine import Put
from longwall.kernels.interface.graph_arrays import LabelSlices
from longwall.storage.graph.graph_sink import HASHED
from longwall.storage.graph.stats import GraphStats
from longwall.storage.ingest.data_notes import Noted

if TYPE_CHECKING:
    import pyarrow as pa

    from longwall.storage.mapping.mapped_arrays import MappedArrays

NewArray = Callable[[int, np.dtype[Any]], npt.NDArray[Any]]
"""Makes an empty array of a length and a type."""


class NewAdjacency(Protocol):
    """Makes an empty array for neighbours; `beside`: bytes of the graph's other arrays for kernels, None if unknown."""

    def __call__(self, length: int, dtype: np.dtype[Any], beside: int | None = None, /) -> npt.NDArray[Any]:
        """See above."""


def in_memory(length: int, dtype: np.dtype[Any], beside: int | None = None, /) -> npt.NDArray[Any]:  # noqa: ARG001
    """Make an array in plain memory, wherever kernels will work."""
    return np.empty(length, dtype)


CheckRows = Callable[[npt.NDArray[np.uint64]], tuple[bool, int]]
"""Checks the rows of a graph with a key; see :class:`longwall.kernels.interface.kernels.Kernels`."""


class Puts(dict[str, Put]):
    """Callables that take the pieces of arrays, by name; and one that checks the rows in the copies, or None."""

    check_rows: CheckRows | None = None


Ahead = Callable[[Mapping[str, Any]], AbstractContextManager[Puts]]
"""Takes the arrays of a graph before they are filled, None for one that it lacks; returns takers of their pieces."""


def no_copies(arrays: Mapping[str, Any]) -> AbstractContextManager[Puts]:  # noqa: ARG001
    """Want no pieces."""
    return nullcontext(Puts())


@dataclass(frozen=True, eq=False, repr=False)
class GraphData:
    """An undirected, simple data graph without isolated vertices: its arrays, and what follows from them.

    Internal ids are degree ranks: vertex 0 has the highest degree, ties go to the smaller original id. The
    orientation by (degree, id) is therefore "neighbours with a smaller id", a prefix of each row.
    """

    indptr: npt.NDArray[np.int64]
    """int64[n + 1]: row v is `indices[indptr[v]:indptr[v + 1]]`."""
    indices: npt.NDArray[np.uint32]
    """uint32[2m]: neighbours, each row ascending."""
    split: npt.NDArray[np.int64]
    """int64[n]: `indices[indptr[v]:split[v]]` are the neighbours with an id smaller than v."""
    original_ids: npt.NDArray[np.int64] | npt.NDArray[np.uint64]
    """int64[n], uint64[n] if one is 2^63 or more: internal id -> id in the input; the number of its name where vertices
    have names."""
    labels: npt.NDArray[np.int32] | None
    """int32[n]: vertex labels."""
    edge_labels: npt.NDArray[np.int32] | None
    """int32[2m]: edge labels, aligned with `indices`."""
    stats: GraphStats
    content_hash: str
    """SHA-256 (hex) over the hashes of the arrays, however they are stored."""
    transactions: npt.NDArray[np.int32] | None = None
    """int32[n]: the transaction that each vertex belongs to, in [0, num_transactions); edges join vertices of one."""
    transaction_ids: npt.NDArray[np.int64] | None = None
    """int64[t]: transaction -> its id in the input, ascending; transactions without an edge are there, too."""

    name_starts: npt.NDArray[np.int64] | None = None
    """int64[k + 1]: name i is `name_bytes[name_starts[i]:name_starts[i + 1]]`, in UTF-8."""
    name_bytes: npt.NDArray[np.uint8] | None = None
    """uint8[size]: the names of the vertices, where they have some; names of vertices without an edge may be there."""
    label_names: tuple[str, ...] | None = None
    """The vertex labels by number, where the labels of the input are texts."""
    edge_label_names: tuple[str, ...] | None = None
    """The edge labels by number, where the labels of the input are texts."""
    notes: tuple[Noted, ...] = ()
    """The data that was dropped, merged or guessed as the graph was read: the kind, number and sentence of each."""
    slices: LabelSlices | None = None
    """Where rows are laid out by label, for a labelled search: the slices of each; see `LabelLayout`."""
    files: "MappedArrays | None" = None
    """What has made those arrays that are in files, because memory does not hold them."""

    @property
    def has_names(self) -> bool:
        """Whether the ids of the input are texts."""
        return self.name_starts is not None

    @property
    def id_type(self) -> "pa.DataType":
        """The type of the ids of the input: int64, uint64 if one is 2^63 or more, or large_string."""
        import pyarrow as pa

        return pa.large_string() if self.has_names else pa.from_numpy_dtype(self.original_ids.dtype)

    @property
    def id_bytes(self) -> int:
        """What an id of the input takes in a column, about twice the mean of names."""
        if self.name_bytes is None or self.name_starts is None:
            return 8
        return 16 + 2 * len(self.name_bytes) // max(1, len(self.name_starts) - 1)

    def ids_of(self, vertices: npt.NDArray[Any]) -> "pa.Array":
        """Return the ids of the input of vertices.

        Parameters
        ----------
        vertices : integer[k]
            Internal ids.

        Returns
        -------
        pyarrow.Array
            Of `id_type`.
        """
        return self.as_ids(self.original_ids[vertices])

    def as_ids(self, original_ids: npt.NDArray[Any]) -> "pa.Array":
        """Return values of `original_ids` as ids of the input."""
        from longwall.storage.tables.arrow_columns import of_array

        numbers = of_array(original_ids)
        return numbers if self.names is None else self.names.take(numbers)

    def all_ids(self) -> "pa.Array":
        """Return the ids of the input of all vertices, by internal id."""
        return self.ids_of(np.arange(self.num_vertices))

    @cached_property
    def names(self) -> "pa.LargeStringArray | None":
        """The names by number, in the memory of the graph; None where the ids of the input are integers."""
        if self.name_starts is None:
            return None
        import pyarrow as pa

        buffers = [None, pa.py_buffer(self.name_starts), pa.py_buffer(self.name_bytes)]
        return pa.Array.from_buffers(pa.large_string(), len(self.name_starts) - 1, buffers)

    @property
    def num_vertices(self) -> int:
        """Vertices (each has at least one edge)."""
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        """Undirected edges."""
        return len(self.indices) // 2

    @property
    def has_labels(self) -> bool:
        """Whether the vertices are labelled."""
        return self.labels is not None

    @property
    def num_transactions(self) -> int:
        """Transactions, those without an edge too; 0 where the graph is not made of transactions."""
        return 0 if self.transaction_ids is None else len(self.transaction_ids)

    def degree_powers(self) -> list[tuple[int, int]]:
        """Return the powers of two up to the largest degree, and how many vertices have a degree from each to the next.

        Vertices are in the order of their degrees: a search for each power is enough.
        """
        powers = [1 << bit for bit in range(int(self.stats.max_degree).bit_length())]
        ranks, rows = range(self.num_vertices), self.indptr
        first = [bisect_left(ranks, 1 - power, key=lambda rank: int(rows[rank] - rows[rank + 1])) for power in powers]
        return [(power, here - above) for power, here, above in zip(powers, first, [*first, 0][1:], strict=True)]

    def degrees_of(self, vertices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return int64[k]: the degrees of k vertices."""
        return self.indptr[vertices + 1] - self.indptr[vertices]

    def out_degrees(self) -> tuple[list[int], list[int]]:
        """Return the numbers of neighbours with a smaller id, ascending, and how many vertices have each."""
        counts = np.bincount(self.split - self.indptr[:-1])
        degrees = np.flatnonzero(counts)
        return degrees.tolist(), counts[degrees].tolist()

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays together."""
        arrays = (getattr(self, name) for name in ("split", *HASHED) if name != "indices")
        slices = None if self.slices is None else self.slices.starts
        beside: int = sum(array.nbytes for array in (slices, *arrays) if array is not None)
        return 8 * self.num_edges + beside
