"""The data graphs of the suite, as graph stores that are made once."""

from pathlib import Path
from typing import Any

import longwall
from longwall.storage.graph.store_header import is_store
from longwall.storage.graph.store_writer import write_graph


def make_rmat(store: str, scale: int, edge_factor: int) -> dict[str, Any]:
    """Make the store of an R-MAT graph (.57 .19 .19 .05, seed 1) unless it is there; gives its facts."""
    if not is_store(store):
        graph = longwall.generate_graph("rmat", seed=1, scale=scale, edge_factor=edge_factor, a=0.57, b=0.19, c=0.19)
        write_graph(graph, store)
    return _facts(store)


def make_real(store: str, edges: str) -> dict[str, Any]:
    """Make the store of an edge list unless it is there; gives its facts."""
    if not is_store(store):
        write_graph(longwall.open_graph(edges), store)
    return _facts(store)


def _facts(store: str) -> dict[str, Any]:
    graph = longwall.open_graph(store)
    return {
        "store": str(Path(store)),
        "vertices": graph.num_vertices,
        "edges": graph.num_edges,
        "max_degree": graph.stats.max_degree,
        "hash": graph.content_hash,
    }
