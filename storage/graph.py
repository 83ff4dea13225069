"""The data graph in memory: an undirected, simple graph in CSR form, its vertices numbered by degree rank."""

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longwall.storage.stats import GraphStats, measure

_HASHED = ("indptr", "indices", "original_ids", "labels", "edge_labels")


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
    """SHA-256 (hex) over the arrays, however they are stored."""

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
    def nbytes(self) -> int:
        """Bytes of all arrays together."""
        arrays = (self.indptr, self.indices, self.split, self.original_ids, self.labels, self.edge_labels)
        return sum(array.nbytes for array in arrays if array is not None)


def assemble(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.uint32],
    split: npt.NDArray[np.int64],
    original_ids: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int32] | None,
    edge_labels: npt.NDArray[np.int32] | None,
) -> Graph:
    """Make a `Graph` of finished arrays (see its fields): measure and hash them."""
    return Graph(
        indptr=indptr,
        indices=indices,
        split=split,
        original_ids=original_ids,
        labels=labels,
        edge_labels=edge_labels,
        stats=measure(indptr, indices, split, labels),
        content_hash=content_hash(
            indptr=indptr,
            indices=indices,
            original_ids=original_ids,
            labels=labels,
            edge_labels=edge_labels,
        ),
    )


def content_hash(
    *,
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.uint32],
    original_ids: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int32] | None,
    edge_labels: npt.NDArray[np.int32] | None,
) -> str:
    """Return the SHA-256 (hex) of a graph's contents; see `Graph` for the arrays."""
    digest = hashlib.sha256()
    arrays = (indptr, indices, original_ids, labels, edge_labels)
    array: npt.NDArray[np.generic] | None
    for name, array in zip(_HASHED, arrays, strict=True):
        if array is not None:
            little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            digest.update(f"{name} {little.dtype.str} {little.size}\n".encode())
            digest.update(little.data)
    return digest.hexdigest()
