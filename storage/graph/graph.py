"""The data graph in memory: an undirected, simple graph in CSR form, its vertices numbered by degree rank."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.storage.graph.stats import GraphStats

NewArray = Callable[[int, np.dtype[Any]], npt.NDArray[Any]]
"""Makes an empty array of a length and a type."""

HASHED = ("indptr", "indices", "original_ids", "labels", "edge_labels", "transactions", "transaction_ids")
"""Arrays that the content hash covers; `split` follows from them."""


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected, simple data graph without isolated vertices.

    Internal ids are degree ranks: vertex 0 has the highest degree, ties go to the smaller original id. The
    orientation by (degree, id) is therefore "neighbours with a smaller id", a prefix of each row.
    """

    indptr: npt.NDArray[np.int64]
    """int64[n + 1]: row v is `indices[indptr[v]:indptr[v + 1]]`."""
    indices: npt.NDArray[np.uint32]
    """uint32[2m]: neighbours, each row ascending."""
    split: npt.NDArray[np.int64]
    """int64[n]: `indices[indptr[v]:split[v]]` are the neighbours with an id smaller than v."""
    original_ids: npt.NDArray[np.int64]
    """int64[n]: internal id -> id in the input."""
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

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays together."""
        arrays = (getattr(self, name) for name in ("split", *HASHED))
        return sum(array.nbytes for array in arrays if array is not None)


class ArrayHash:
    """The SHA-256 of one array of a graph, taken block by block.

    Parameters
    ----------
    dtype, length
        Of the whole array.

    Attributes
    ----------
    dtype, length
        See above.
    """

    def __init__(self, dtype: npt.DTypeLike, length: int) -> None:
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self.length = length
        self._digest = hashlib.sha256()

    def update(self, values: npt.NDArray[Any]) -> None:
        """Add the next items."""
        self._digest.update(np.ascontiguousarray(values, self.dtype).data)

    def line(self, name: str) -> str:
        """Return what the content hash is made of: name, type, length and digest."""
        return f"{name} {self.dtype.str} {self.length} {self._digest.hexdigest()}\n"


def content_hash(hashes: Mapping[str, ArrayHash]) -> str:
    """Return the SHA-256 (hex) of a graph's contents, from the hashes of its arrays by name (`HASHED`)."""
    lines = "".join(hashes[name].line(name) for name in HASHED if name in hashes)
    return hashlib.sha256(lines.encode()).hexdigest()
