"""The edges of a graph as other libraries have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx
import numpy as np
import pyarrow as pa

from longwall.storage.errors import InputError

if TYPE_CHECKING:
    from longwall.storage.graph.graph import Graph

_MOST_EDGES = 10_000_000  # in a networkx graph: they take some GB there


def edge_table(graph: Graph) -> pa.Table:
    """See `Graph.to_arrow`."""
    starts, ends = graph.indptr[:-1], graph.split
    lengths = ends - starts
    rows = np.repeat(np.arange(graph.num_vertices), lengths)
    # The smaller neighbours of a vertex are the first ones of its row, so they are runs of `indices`.
    places = np.arange(graph.num_edges) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    columns: dict[str, Any] = {
        "source": graph.ids_of(rows),
        "target": graph.ids_of(graph.indices[places]),
    }
    if graph.edge_labels is not None:
        columns["label"] = graph.edge_labels[places]
    return pa.table(columns)


def networkx_graph(graph: Graph) -> networkx.Graph[int]:
    """See `Graph.to_networkx`."""
    if graph.num_edges > _MOST_EDGES:
        raise InputError(
            f"a graph of {graph.num_edges:,} edges is too large for networkx, which takes some 500 bytes for each; "
            "use to_arrow()"
        )
    made: networkx.Graph[int] = networkx.Graph()
    ids = graph.all_ids().to_pylist()
    if graph.labels is None:
        made.add_nodes_from(ids)
    else:
        made.add_nodes_from((v, {"label": label}) for v, label in zip(ids, graph.labels.tolist(), strict=True))
    table = edge_table(graph)
    sources, targets = table["source"].to_pylist(), table["target"].to_pylist()
    if graph.edge_labels is None:
        made.add_edges_from(zip(sources, targets, strict=True))
    else:
        labels = table["label"].to_pylist()
        made.add_edges_from((u, v, {"label": it}) for u, v, it in zip(sources, targets, labels, strict=True))
    return made
