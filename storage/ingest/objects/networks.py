"""Graphs of networkx and igraph as streams of edges."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from types import NoneType
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.storage.errors import InputError
from longwall.storage.ingest.data_notes import DataNotes
from longwall.storage.ingest.names.label_names import LabelNames
from longwall.storage.ingest.names.vertex_names import note_of_nodes
from longwall.storage.ingest.objects.arrays import edge_blocks
from longwall.storage.ingest.objects.listed_values import ListedLabels, edges_between, label_numbers
from longwall.storage.ingest.readers.edge_stream import Declared, EdgeBlock
from longwall.storage.ingest.vertex_labels import LabelSource
from longwall.storage.system.arguments import type_name

_NODES, _NAMES = "the nodes of the graph", "the names of the vertices"
_BLOCK = 1 << 17  # edges


def library_of(source: object) -> str:
    """Return the library that the class of an object comes from, "networkx" or "igraph"; else ""."""
    packages = {kind.__module__.partition(".")[0] for kind in type(source).__mro__}
    return next((name for name in ("networkx", "igraph") if name in packages), "")


def networkx_blocks(
    graph: Any, edge_label: str | None, names: LabelNames, declared: Declared, vertex_name: str | None = None
) -> Iterator[EdgeBlock]:
    """Yield the edges of a networkx graph, whose nodes are integers or texts.

    Parameters
    ----------
    graph : networkx.Graph
        Of any kind.
    edge_label
        The attribute that labels its edges.
    names
        Numbers the labels that are texts.
    declared
        Takes the number of nodes, and whether edges have directions.
    vertex_name
        The attribute with the names of the nodes; None: the nodes themselves are the names.
    """
    declared.vertices, declared.directed = len(graph), graph.is_directed()
    declared.may_be_empty |= len(graph) > 0
    named = _networkx_names(graph, vertex_name)
    _require_one_kind(graph if named is None else named.values(), of_nodes=named is None)
    edges = iter(graph.edges() if edge_label is None else graph.edges(data=edge_label))
    while part := list(islice(edges, _BLOCK)):
        labels = None
        if edge_label is not None:
            labels = _edge_labels(edge_label, [edge[2] for edge in part], names)
        ends = [end for edge in part for end in edge[:2]]
        yield from edges_between(_NODES, ends if named is None else [named[end] for end in ends], labels)


def networkx_labels(graph: Any, attribute: str, vertex_name: str | None = None) -> LabelSource:
    """Return an attribute of nodes as their labels; nodes without it have none."""
    found = {node: label for node, label in graph.nodes(data=attribute) if label is not None}
    if not found:
        there = ", ".join(map(repr, islice({name: None for _, data in graph.nodes(data=True) for name in data}, 10)))
        raise InputError(f"no node of the graph has the attribute {attribute!r}; there are: {there or 'none'}")
    named = _networkx_names(graph, vertex_name)
    nodes = list(found) if named is None else [named[node] for node in found]
    return ListedLabels(_NODES, nodes, f"the nodes' attribute {attribute!r}", list(found.values()))


def igraph_blocks(
    graph: Any, edge_label: str | None, names: LabelNames, declared: Declared, vertex_name: str | None = None
) -> Iterator[EdgeBlock]:
    """Yield the edges of an igraph graph, whose vertices are known by their names, or else by their numbers.

    Parameters
    ----------
    graph : igraph.Graph
        Directed or not.
    edge_label
        The attribute that labels its edges.
    names
        Numbers the labels that are texts.
    declared
        Takes the number of vertices, and whether edges have directions.
    vertex_name
        The attribute with the names of the vertices; None: `name`, if the graph has it.
    """
    declared.vertices, declared.directed = graph.vcount(), graph.is_directed()
    vertices = _igraph_names(graph, vertex_name)
    for begin in range(0, graph.ecount(), _BLOCK):
        part = graph.es[begin : min(begin + _BLOCK, graph.ecount())]
        labels = None
        if edge_label is not None:
            labels = _edge_labels(edge_label, _attribute(part, "edges", edge_label), names)
        if vertices is not None:
            yield from edges_between(_NAMES, [vertices[end] for edge in part for end in edge.tuple], labels)
            continue
        ends = np.array([edge.tuple for edge in part], np.int64)
        yield from edge_blocks("the edges", ends[:, 0], ends[:, 1], labels)


def igraph_labels(graph: Any, attribute: str, vertex_name: str | None = None) -> LabelSource:
    """Return an attribute of vertices as their labels."""
    values = _attribute(graph.vs, "vertices", attribute)
    names = _igraph_names(graph, vertex_name) or list(range(graph.vcount()))
    found = [(vertex, label) for vertex, label in zip(names, values, strict=True) if label is not None]
    vertices, labels = [vertex for vertex, _ in found], [label for _, label in found]
    return ListedLabels(_NAMES, vertices, f"the vertices' attribute {attribute!r}", labels)


def _edge_labels(attribute: str, values: list[Any], names: LabelNames) -> npt.NDArray[np.int64]:
    if None in values:
        raise InputError(f"an edge of the graph has no attribute {attribute!r}, its label; give one to every edge")
    return label_numbers(f"the edges' attribute {attribute!r}", values, names)


def note_unread_names(library: str, graph: Any, notes: DataNotes, label: str | None) -> None:
    """Note an attribute of the nodes that looks like their names, other than the one that labels them."""
    if library == "networkx":
        note_of_nodes(notes, graph.nodes(data=True), len(graph), label)
    elif "name" not in graph.vs.attributes():
        first = ((vertex.index, vertex.attributes()) for vertex in graph.vs)
        note_of_nodes(notes, first, graph.vcount(), label)


def _networkx_names(graph: Any, attribute: str | None) -> dict[Any, Any] | None:
    """Return the name of each node by an attribute; None if `attribute` is None."""
    if attribute is None:
        return None
    named = dict(graph.nodes(data=attribute))
    bare = next((node for node, name in named.items() if name is None or name == ""), None)
    if bare is not None:
        there = ", ".join(map(repr, islice({name: None for _, data in graph.nodes(data=True) for name in data}, 10)))
        raise InputError(
            f"node {bare!r:.40} has no attribute {attribute!r}, its name; give one to every node, or choose another "
            f"attribute as vertex_name; there are: {there or 'none'}"
        )
    _require_different(named.values())
    return named


def _require_one_kind(nodes: Iterable[Any], *, of_nodes: bool) -> None:
    """Refuse nodes of networkx that are neither all integers nor all texts; bool is no integer here."""
    nodes = list(nodes)
    kinds = sorted(set(map(type, nodes)), key=lambda kind: kind.__name__)
    texts = [kind for kind in kinds if issubclass(kind, str)]
    others = [kind for kind in kinds if not issubclass(kind, str | int | np.integer) or kind is bool]
    if not others and len(texts) in (0, len(kinds)):
        return
    shown = [next(node for node in nodes if type(node) is kind) for kind in (others or kinds)[:2]]
    found = " and ".join(f"{node!r:.40} ({type_name(node)})" for node in shown)
    way_out = "use networkx.convert_node_labels_to_integers(graph), or networkx.relabel_nodes(graph, str)"
    raise InputError(
        f"{_NODES if of_nodes else 'the names of the nodes'}: all must be integers, or all texts, not {found}; "
        f"{way_out if of_nodes else 'convert them'}"
    )


def _require_different(names: Iterable[Any]) -> None:
    again = next((name for name, times in Counter(names).items() if times > 1), None)
    if again is not None:
        raise InputError(
            f"two vertices of the graph are named {again!r:.80}; give each a name of its own, delete the names, or "
            "choose another attribute as vertex_name"
        )


def _igraph_names(graph: Any, attribute: str | None = None) -> list[Any] | None:
    """Return the names of the vertices, if they have names: all integers (ids), or all texts."""
    if attribute is not None:
        names = _attribute(graph.vs, "vertices", attribute)
        if None in names:
            raise InputError(f"vertex {names.index(None)} has no attribute {attribute!r}, its name; give one to each")
    else:
        names = graph.vs["name"] if "name" in graph.vs.attributes() else []
    kinds = set(map(type, names))
    if not kinds - {NoneType}:
        return None
    texts = all(issubclass(kind, str) for kind in kinds)
    if not texts and (bool in kinds or not all(issubclass(kind, int | np.integer) for kind in kinds)):
        other = next(name for name in names if not isinstance(name, str))
        raise InputError(
            f"{_NAMES}: all must be integers, or all texts, and there is {other!r:.40} ({type_name(other)}); "
            'convert them, graph.vs["name"] = list(map(str, graph.vs["name"])), or delete them, del graph.vs["name"]'
        )
    _require_different(names)
    return names


def _attribute(sequence: Any, what: str, name: str) -> list[Any]:
    names: list[str] = list(sequence.attributes())
    if name not in names:
        there = ", ".join(map(repr, names)) or "none"
        raise InputError(f"the {what} of the graph have no attribute {name!r}; there are: {there}")
    values: list[Any] = sequence[name]
    return values
