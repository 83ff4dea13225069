"""GAMMA's five calls as a library: extend, aggregate, filter and export embeddings in a program of one's own.

Everything is held in memory; for large jobs write a config and run it. A table is never changed: every call gives
a new one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from longwall.kernels import EngineUnavailable, select_engine
from longwall.kernels.engine import GraphArrays
from longwall.stages import aggregation, filtering, free_extension
from longwall.stages.source import host_arrays
from longwall.storage.errors import InputError
from longwall.storage.graph import Graph
from longwall.storage.table import EmbeddingTable

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Embeddings:
    """An embedding table together with the graph that it embeds into.

    Attributes
    ----------
    graph
        The data graph.
    arrays
        The graph's arrays where the engine reads them.
    table
        A v-ET (one vertex per column) or an e-ET (one edge per column), in internal vertex ids.
    kind
        ``"vertex"`` or ``"edge"``.
    """

    graph: Graph
    arrays: GraphArrays
    table: EmbeddingTable
    kind: Literal["vertex", "edge"]

    def __len__(self) -> int:
        return len(self.table)

    def to_arrow(self) -> "pa.Table":
        """The rows as an Arrow table in original vertex ids.

        Returns
        -------
        pyarrow.Table
            int64 columns ``v0``, ``v1``, ... of a v-ET; ``e0_u``, ``e0_v``, ``e1_u``, ... of an e-ET.
        """
        import pyarrow as pa

        columns = self.table.columns()
        named: dict[str, Any] = {}
        for i, column in enumerate(columns):
            if self.kind == "vertex":
                named[f"v{i}"] = column
            else:
                ends = free_extension.edge_ends(self.arrays, column, self.table.xp)
                named[f"e{i}_u"], named[f"e{i}_v"] = ends
        return pa.table({name: self.graph.original_ids[_on_host(column)] for name, column in named.items()})

    def to_pandas(self) -> Any:
        """The rows as a pandas data frame in original vertex ids."""
        return self.to_arrow().to_pandas()


def vertices(graph: Graph, engine: str = "cpu") -> Embeddings:
    """Embeddings of one vertex: every vertex of the graph.

    Parameters
    ----------
    graph
        The data graph.
    engine
        ``"cpu"``, ``"cuda"`` or ``"auto"``: where tables and graph are held.

    Raises
    ------
    InputError
        If the engine does not work here.
    """
    arrays, xp = _load(graph, engine)
    return Embeddings(graph, arrays, free_extension.all_vertices(arrays, xp), "vertex")


def edges(graph: Graph, engine: str = "cpu") -> Embeddings:
    """Embeddings of one edge: every edge of the graph, once; parameters as in :func:`vertices`."""
    arrays, xp = _load(graph, engine)
    return Embeddings(graph, arrays, free_extension.all_edges(arrays, xp), "edge")


def extend_vertices(embeddings: Embeddings, adjacent_to: Sequence[int] | None = None) -> Embeddings:
    """Extend every embedding by one vertex (GAMMA, Definition 3.1).

    Parameters
    ----------
    embeddings
        A v-ET.
    adjacent_to
        Columns that the new vertex must all be adjacent to; by default any one of the matched vertices
        will do.

    Returns
    -------
    Embeddings
        One row per embedding and new vertex; a vertex is never matched twice in a row.
    """
    if embeddings.kind != "vertex":
        raise InputError("extend_vertices takes embeddings made of vertices: start from longwall.vertices(graph)")
    wanted = None if adjacent_to is None else list(adjacent_to)
    columns = embeddings.table.num_levels
    if wanted is not None and (not wanted or not all(0 <= c < columns for c in wanted)):
        raise InputError(f"adjacent_to={wanted} must name columns 0 to {columns - 1}")
    table = free_extension.extend_by_vertex(embeddings.table, embeddings.arrays, wanted)
    return replace(embeddings, table=table)


def extend_edges(embeddings: Embeddings) -> Embeddings:
    """Extend every embedding by one adjacent edge (GAMMA, Definition 3.1).

    Parameters
    ----------
    embeddings
        An e-ET.

    Returns
    -------
    Embeddings
        One row per embedding and new edge; the same set of edges appears once per order in which it grew.
    """
    if embeddings.kind != "edge":
        raise InputError("extend_edges takes embeddings made of edges: start from longwall.edges(graph)")
    return replace(embeddings, table=free_extension.extend_by_edge(embeddings.table, embeddings.arrays))


def aggregate(
    embeddings: Embeddings,
    key: Callable[[Any, GraphArrays, Any], Any] | None = None,
    *,
    labelled: bool | None = None,
) -> "pa.Table":
    """Group the embeddings and count each group.

    Parameters
    ----------
    embeddings
        A v-ET, grouped by the pattern that its vertices induce, or an e-ET, grouped by the pattern of its edges.
    key
        Group by this instead: ``key(columns, graph, xp)`` gives an integer array with one entry per row.
    labelled
        Whether patterns carry vertex labels; by default they do if the graph does.

    Returns
    -------
    pyarrow.Table
        Columns ``pattern`` (edge list), ``labels`` (null where unlabelled) and ``count``; or ``key`` and ``count``.
    """
    import pyarrow as pa

    table, arrays = embeddings.table, embeddings.arrays
    if key is not None:
        groups = aggregation.count_by(key(table.columns(), arrays, table.xp), table.xp)
        return pa.table({"key": [k for k, _ in groups], "count": [c for _, c in groups]})
    wanted = embeddings.graph.has_labels if labelled is None else labelled
    if wanted and not embeddings.graph.has_labels:
        raise InputError("aggregate(labelled=True) needs a graph with labels")
    by_pattern = aggregation.vertex_patterns if embeddings.kind == "vertex" else aggregation.edge_patterns
    found = by_pattern(table, arrays, labelled=wanted)
    return pa.table(
        {
            "pattern": pa.array([",".join(f"{u}-{v}" for u, v in code) for (code, _), _ in found], pa.string()),
            "labels": pa.array([labels for (_, labels), _ in found], pa.list_(pa.int32())),
            "count": pa.array([count for _, count in found], pa.int64()),
        }
    )


def filter(embeddings: Embeddings, keep: filtering.Predicate) -> Embeddings:  # noqa: A001 - GAMMA's name
    """Keep the embeddings for which a function holds.

    Parameters
    ----------
    embeddings
        A v-ET or an e-ET.
    keep
        ``keep(columns, graph, xp)`` gives a bool array with one entry per row; `columns[i]` is the array of
        column i in internal ids, `graph` has `indptr`, `indices` and `labels`, `xp` is numpy or cupy.
    """
    return replace(embeddings, table=filtering.filter_rows(embeddings.table, keep, embeddings.arrays))


def export(embeddings: Embeddings, path: str | Path) -> Path:
    """Write the embeddings as a Parquet file in original vertex ids; it appears whole or not at all.

    Parameters
    ----------
    embeddings
        A v-ET or an e-ET.
    path
        The file; it must not exist.

    Raises
    ------
    InputError
        If the file exists.
    """
    import pyarrow.parquet as pq

    target = Path(path)
    if target.exists():
        raise InputError(f"{target} exists: choose another name or remove it")
    partial = target.with_name(f".{target.name}.partial")
    try:
        pq.write_table(embeddings.to_arrow(), partial, compression="zstd")
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def _load(graph: Graph, kind: str) -> tuple[GraphArrays, Any]:
    try:
        engine = select_engine(kind)
    except EngineUnavailable as reason:
        raise InputError(f'engine "{kind}": {reason}') from None
    return engine.load(host_arrays(graph)), engine.xp


def _on_host(array: Any) -> Any:
    return array if isinstance(array, np.ndarray) else array.get()
