"""What `longwall info` says about a graph."""

from typing import Any

from longwall.storage.graph.graph import Graph


def info(graph: Graph) -> dict[str, Any]:
    """Describe a graph as a dict that JSON can hold: sizes, bytes, labels, hash and `GraphStats`' fields."""
    ids = graph.original_ids
    return {
        **graph.stats.to_dict(),
        "smallest_id": int(ids.min()),
        "largest_id": int(ids.max()),
        "vertex_labels": graph.has_labels,
        "edge_labels": graph.edge_labels is not None,
        "transactions": graph.num_transactions,
        "bytes": graph.nbytes,
        "content_hash": graph.content_hash,
    }
