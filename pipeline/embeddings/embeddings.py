"""Embeddings as the library's calls take and return them."""

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.embeddings.session import Session
from longwall.stages.extension import unguided_edges
from longwall.stages.tables import ROW_BYTES, ROW_COLUMN_BYTES, host_parts
from longwall.storage.graph.graph import Graph
from longwall.storage.system.arguments import require_package, require_type, wrong_type
from longwall.storage.tables.chunked_table import ChunkedTable
from longwall.storage.tables.embedding_table import EmbeddingTable

if TYPE_CHECKING:
    import pyarrow as pa


_SHOWN = 5  # rows in a notebook


@dataclass(frozen=True, eq=False, repr=False)
class Embeddings:
    """An embedding table together with the graph that it embeds into; a context manager that closes it.

    Attributes
    ----------
    session
        The budgets and the engine, shared with the tables that this one grew from.
    table
        A v-ET (one vertex per column) or an e-ET (one edge per column), in internal vertex ids, in chunks.
    kind
        ``"vertex"`` or ``"edge"``.
    """

    session: Session
    table: ChunkedTable
    kind: Literal["vertex", "edge"]

    def __len__(self) -> int:
        return len(self.table)

    @property
    def graph(self) -> Graph:
        """The data graph."""
        return self.session.graph

    @property
    def arrays(self) -> GraphArrays:
        """The graph's arrays where the engine reads them."""
        return self.session.arrays

    @property
    def names(self) -> list[str]:
        """Names of the columns that users see: ``v0``, ``v1``, ... or ``e0_u``, ``e0_v``, ``e1_u``, ..."""
        numbers = range(self.table.num_levels)
        if self.kind == "vertex":
            return [f"v{i}" for i in numbers]
        return [f"e{i}_{end}" for i in numbers for end in "uv"]

    @property
    def schema(self) -> "pa.Schema":
        """Arrow schema of `batches` and of exported files: columns of ids of the input."""
        import pyarrow as pa

        return pa.schema([pa.field(name, self.graph.id_type) for name in self.names])

    def batches(self) -> "Generator[pa.RecordBatch]":
        """The rows in parts, as Arrow record batches in original vertex ids (see `schema`)."""
        work = self.session.work
        with self.session.pool.reserve(work, "work space"), closing(self.table.stream()) as chunks:
            for chunk in chunks:
                yield from map(self.batch, host_parts(chunk, self.row_bytes, work))

    @property
    def row_bytes(self) -> int:
        """Bytes that `batch` takes for a row."""
        return ROW_BYTES + (ROW_COLUMN_BYTES - 8 + self.graph.id_bytes) * len(self.names)

    def batch(self, part: EmbeddingTable) -> "pa.RecordBatch":
        """Some of the rows, on the host, as `batches` has them."""
        import pyarrow as pa

        columns = [self.graph.ids_of(ids) for ids in self._vertices(part)]
        return pa.record_batch(columns, schema=self.schema)

    def _vertices(self, part: EmbeddingTable) -> Iterator[Any]:
        """The columns in internal vertex ids."""
        for level in range(part.num_levels):
            if self.kind == "vertex":
                yield part.column(level)
            else:
                yield from unguided_edges.edge_ends(part.column(level), part.xp)

    def to_arrow(self) -> "pa.Table":
        """All rows as an Arrow table in original vertex ids; it is not part of the memory budget.

        Returns
        -------
        pyarrow.Table
            int64 columns ``v0``, ``v1``, ... of a v-ET; ``e0_u``, ``e0_v``, ``e1_u``, ... of an e-ET.
        """
        import pyarrow as pa

        return pa.Table.from_batches(list(self.batches()), self.schema)

    def to_pandas(self) -> Any:
        """All rows as a pandas data frame in original vertex ids; it is not part of the memory budget."""
        require_package("pandas", "to_pandas")
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        return f"<longwall.Embeddings: {len(self):,} rows of {self.table.num_levels} {self._noun}>"

    @property
    def _noun(self) -> str:
        plural = {"vertex": "vertices", "edge": "edges"}[self.kind]
        return plural if self.table.num_levels != 1 else self.kind

    def _repr_html_(self) -> str:
        from longwall.storage.system.html import html_table

        title = f"Embeddings: {len(self):,} rows of {self.table.num_levels} {self._noun}"
        first: list[list[int]] = []
        with closing(self.batches()) as batches:
            batch = next(batches, None)
            if batch is not None:
                first = [list(row.values()) for row in batch.slice(0, _SHOWN).to_pylist()]
        return html_table([title], first, self.names)

    def close(self) -> None:
        """Remove the rows, with their files; happens by itself when the object is collected."""
        self.table.drop()

    def __enter__(self) -> "Embeddings":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def require_embeddings(embeddings: object) -> None:
    """Refuse what is no table of embeddings (InputError)."""
    expected = "a longwall.Embeddings, as longwall.vertices(graph) or longwall.edges(graph) returns"
    require_type("embeddings", embeddings, Embeddings, expected)


def require_function(name: str, function: object) -> None:
    """Refuse what cannot be called, as an argument of a call (InputError)."""
    if not callable(function):
        raise wrong_type(name, function, "a function of (columns, graph, xp)")
