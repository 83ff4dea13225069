"""The edges of a graph as other libraries have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from longwall.storage.errors import InputError
from longwall.storage.system.arguments import require_package

if TYPE_CHECKING:
    from longwall.storage.graph.graph_data import GraphData

_MOST_EDGES = 10_000_000  # in a graph of another library: they take some GB there


def edge_table(graph: GraphData) -> pa.Table:
    """See `Graph.to_arrow`."""
    rows = np.repeat(np.arange(graph.num_vertices), graph.split - graph.indptr[:-1])
    places = _smaller(graph)
    columns: dict[str, Any] = {
        "source": graph.ids_of(rows),
        "target": graph.ids_of(graph.indices[places]),
    }
    if graph.edge_labels is not None:
        columns["label"] = graph.edge_labels[places]
    return pa.table(columns)


def _smaller(graph: GraphData) -> npt.NDArray[np.int64]:
    """Return where in `indices` the smaller neighbours are: they are the first ones of each row."""
    starts, lengths = graph.indptr[:-1], graph.split - graph.indptr[:-1]
    before = np.cumsum(lengths) - lengths
    places: npt.NDArray[np.int64] = np.arange(graph.num_edges) + np.repeat(starts - before, lengths)
    return places


def networkx_graph(graph: GraphData) -> networkx.Graph[int]:
    """See `Graph.to_networkx`."""
    _require_few(graph, "networkx", 500)
    made: networkx.Graph[int] = networkx.Graph()
    ids, labels, sources, targets, edge_labels = _lists(graph)
    if labels is None:
        made.add_nodes_from(ids)
    else:
        made.add_nodes_from((v, {"label": label}) for v, label in zip(ids, labels, strict=True))
    if edge_labels is None:
        made.add_edges_from(zip(sources, targets, strict=True))
    else:
        made.add_edges_from((u, v, {"label": it}) for u, v, it in zip(sources, targets, edge_labels, strict=True))
    return made


def igraph_graph(graph: GraphData) -> Any:
    """See `Graph.to_igraph`."""
    igraph = require_package("igraph", "to_igraph")
    _require_few(graph, "igraph", 200)
    ids, labels, _, _, edge_labels = _lists(graph)
    ends = np.repeat(np.arange(graph.num_vertices), graph.split - graph.indptr[:-1])
    made = igraph.Graph(graph.num_vertices, np.column_stack([ends, graph.indices[_smaller(graph)]]).tolist())
    made.vs["name"] = ids
    if labels is not None:
        made.vs["label"] = labels
    if edge_labels is not None:
        made.es["label"] = edge_labels
    return made


def same_content(first: GraphData, second: GraphData) -> bool:
    """Whether two graphs have the same ids, edges and labels.

    Ids and labels that are texts are numbered as they are read, so graphs with different hashes can be equal.
    """
    if hash(first) != hash(second) or first.num_transactions != second.num_transactions:
        return False
    if not any(graph.has_names or graph.label_names or graph.edge_label_names for graph in (first, second)):
        return False  # all that their hashes cover is their content
    tables = [(_sorted_edges(graph), _sorted_vertices(graph)) for graph in (first, second)]
    return bool(tables[0][0].equals(tables[1][0]) and tables[0][1].equals(tables[1][1]))


def _sorted_edges(graph: GraphData) -> pa.Table:
    """Return the edges in an order that depends on the ids alone."""
    table = edge_table(graph)
    ends = [table["source"], table["target"]]
    swapped = pc.greater(*ends)
    columns = {"source": pc.if_else(swapped, *ends[::-1]), "target": pc.if_else(swapped, *ends)}
    if "label" in table.column_names:
        columns["label"] = _texts(table["label"], graph.edge_label_names)
    return pa.table(columns).sort_by([("source", "ascending"), ("target", "ascending")]).combine_chunks()


def _sorted_vertices(graph: GraphData) -> pa.Table:
    """Return ids, labels and transactions of the vertices in an order that depends on the ids alone."""
    columns = {"vertex": pa.chunked_array([graph.all_ids()])}
    if graph.labels is not None:
        columns["label"] = _texts(pa.chunked_array([pa.array(graph.labels)]), graph.label_names)
    if graph.transactions is not None and graph.transaction_ids is not None:
        columns["transaction"] = pa.chunked_array([pa.array(graph.transaction_ids[graph.transactions])])
    return pa.table(columns).sort_by("vertex").combine_chunks()


def _lists(graph: GraphData) -> tuple[list[Any], list[Any] | None, list[Any], list[Any], list[Any] | None]:
    """Return the ids of the vertices and their labels, both ends of the edges and their labels."""
    table = edge_table(graph)
    labels = edge_labels = None
    if graph.labels is not None:
        labels = _texts(pa.chunked_array([pa.array(graph.labels)]), graph.label_names).to_pylist()
    if graph.edge_labels is not None:
        edge_labels = _texts(table["label"], graph.edge_label_names).to_pylist()
    return graph.all_ids().to_pylist(), labels, table["source"].to_pylist(), table["target"].to_pylist(), edge_labels


def _texts(labels: pa.ChunkedArray, names: tuple[str, ...] | None) -> pa.ChunkedArray:
    """Return labels as the input has them: texts if they have names."""
    return (
        labels if not names else pa.chunked_array([pa.array(names).take(part) for part in labels.chunks], pa.string())
    )


def _require_few(graph: GraphData, library: str, size: int) -> None:
    if graph.num_edges > _MOST_EDGES:
        raise InputError(
            f"a graph of {graph.num_edges:,} edges is too large for {library}, which takes some {size} bytes for each; "
            "use to_arrow()"
        )
