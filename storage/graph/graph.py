"""The data graph in memory: an undirected, simple graph in CSR form, its vertices numbered by degree rank."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from longwall.storage.graph.graph_sink import HASHED
from longwall.storage.graph.stats import GraphStats

if TYPE_CHECKING:
    import networkx
    import pyarrow as pa

NewArray = Callable[[int, np.dtype[Any]], npt.NDArray[Any]]
"""Makes an empty array of a length and a type."""


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

    def to_arrow(self) -> "pa.Table":
        """Return the edges as a table, each once, with the ids of the input.

        Returns
        -------
        pyarrow.Table
            The columns ``source`` and ``target``, int64, and ``label``, int32, where edges are labelled.
        """
        from longwall.storage.ingest.objects.graph_to import edge_table

        return edge_table(self)

    def to_networkx(self) -> "networkx.Graph[int]":
        """Return a copy of a small graph, with the ids of the input and the attribute ``label``, where there is one.

        Raises
        ------
        InputError
            If the graph has more than ten million edges.
        """
        from longwall.storage.ingest.objects.graph_to import networkx_graph

        return networkx_graph(self)

    def save(self, path: str | Path) -> None:
        """Write a graph store, which `longwall.open_graph` and configs read.

        Raises
        ------
        InputError
            If the path exists already, or cannot be written to.
        RunError
            If the disk is full.
        """
        from longwall.storage.graph.store_writer import write_graph

        write_graph(self, path)

    def degree_powers(self) -> list[tuple[int, int]]:
        """Return the powers of two up to the largest degree, and how many vertices have a degree from each to the next.

        Vertices are in the order of their degrees: a search for each power is enough.
        """
        powers = [1 << bit for bit in range(int(self.stats.max_degree).bit_length())]
        ranks, rows = range(self.num_vertices), self.indptr
        first = [bisect_left(ranks, 1 - power, key=lambda rank: int(rows[rank] - rows[rank + 1])) for power in powers]
        return [(power, here - above) for power, here, above in zip(powers, first, [*first[1:], 0], strict=True)]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays together."""
        arrays = (getattr(self, name) for name in ("split", *HASHED))
        return sum(array.nbytes for array in arrays if array is not None)
