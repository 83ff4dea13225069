"""Graphs of networkx and igraph as streams of edges."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from longwall.storage.errors import InputError
from longwall.storage.ingest.objects.arrays import edge_blocks, integers
from longwall.storage.ingest.readers.edge_stream import EdgeBlock
from longwall.storage.ingest.vertex_labels import LabelArrays

_BLOCK = 1 << 17  # edges


def library_of(source: object) -> str:
    """Return the library that the class of an object comes from, "networkx" or "igraph"; else ""."""
    packages = {kind.__module__.partition(".")[0] for kind in type(source).__mro__}
    return next((name for name in ("networkx", "igraph") if name in packages), "")


def networkx_blocks(graph: Any, edge_label: str | None) -> Iterator[EdgeBlock]:
    """Yield the edges of a networkx graph, whose nodes are integers.

    Parameters
    ----------
    graph : networkx.Graph
        Of any kind.
    edge_label
        The attribute that labels its edges.
    """
    name = "the nodes of the graph"
    edges = iter(graph.edges() if edge_label is None else graph.edges(data=edge_label))
    while part := list(islice(edges, _BLOCK)):
        src, dst = (integers(name, [edge[end] for edge in part]) for end in (0, 1))
        labels = None
        if edge_label is not None:
            labels = integers(f"the edges' attribute {edge_label!r}", [edge[2] for edge in part])
        yield from edge_blocks("the edges", src, dst, labels)


def networkx_labels(graph: Any, attribute: str) -> LabelArrays:
    """Return an attribute of nodes as their labels."""
    found = dict(graph.nodes(data=attribute))
    values = integers(f"the nodes' attribute {attribute!r}", found.values())
    return LabelArrays(integers("the nodes of the graph", found), values)


def igraph_blocks(graph: Any, edge_label: str | None) -> Iterator[EdgeBlock]:
    """Yield the edges of an igraph graph, whose vertices are known by their numbers.

    Parameters
    ----------
    graph : igraph.Graph
        Directed or not.
    edge_label
        The attribute that labels its edges.
    """
    for begin in range(0, graph.ecount(), _BLOCK):
        part = graph.es[begin : min(begin + _BLOCK, graph.ecount())]
        ends = np.array([edge.tuple for edge in part], np.int64)
        labels = None if edge_label is None else _attribute(part, "edges", edge_label)
        yield from edge_blocks("the edges", ends[:, 0], ends[:, 1], labels)


def igraph_labels(graph: Any, attribute: str) -> LabelArrays:
    """Return an attribute of vertices as their labels."""
    return LabelArrays(np.arange(graph.vcount()), _attribute(graph.vs, "vertices", attribute))


def _attribute(sequence: Any, what: str, name: str) -> Any:
    names: Mapping[str, Any] | list[str] = sequence.attributes()
    if name not in names:
        there = ", ".join(map(repr, names)) or "none"
        raise InputError(f"the {what} of the graph have no attribute {name!r}; there are: {there}")
    return integers(f"the {what}' attribute {name!r}", sequence[name])
