"""Frequent patterns, the slow and obvious way: every connected set of edges, grouped up to isomorphism.

Nothing here uses the package. networkx finds isomorphisms of small patterns; igraph's canonical permutations make keys
of patterns of any size; gspan-mining mines transactions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import igraph
import networkx as nx
from networkx.algorithms.isomorphism import GraphMatcher, categorical_edge_match, categorical_node_match

Edge = tuple[int, int]

same_vertex = categorical_node_match("label", None)
same_edge = categorical_edge_match("label", None)


@dataclass(frozen=True)
class LabelledGraph:
    """A data graph: every edge once, with its label; a label and a transaction for every vertex."""

    labels: Mapping[int, int]
    edges: Mapping[Edge, int]
    transactions: Mapping[int, int] = field(default_factory=dict)

    def part(self, edges: Iterable[Edge]) -> nx.Graph:
        """The subgraph of some edges."""
        return pattern_of(self.labels, {edge: self.edges[edge] for edge in edges})


@dataclass
class Support:
    """How often a pattern occurs."""

    instances: int
    """Distinct subgraphs."""
    mni: int
    """Distinct graph vertices that a pattern vertex stands for, of the pattern vertex with the fewest."""
    transactions: int
    """Transactions with an instance."""


def pattern_of(labels: Mapping[int, int] | Sequence[int], edges: Mapping[Edge, int]) -> nx.Graph:
    """A pattern as a networkx graph with the attribute `label` on vertices and edges."""
    graph = nx.Graph()
    for (u, v), label in edges.items():
        graph.add_node(u, label=labels[u])
        graph.add_node(v, label=labels[v])
        graph.add_edge(u, v, label=label)
    return graph


def key_of(pattern: nx.Graph) -> Hashable:
    """The same for isomorphic patterns, labels of vertices and edges included, and only for them."""
    vertices = {vertex: at for at, vertex in enumerate(pattern)}
    colours: list[tuple[int, int]] = [(0, pattern.nodes[vertex]["label"]) for vertex in pattern]
    ends = []
    for at, (u, v, label) in enumerate(pattern.edges(data="label"), start=len(vertices)):
        # An edge is a vertex of another kind in the middle of its ends.
        colours.append((1, label))
        ends += [(at, vertices[u]), (at, vertices[v])]
    names = sorted(set(colours))
    graph = igraph.Graph(len(colours), ends, vertex_attrs={"colour": [names.index(colour) for colour in colours]})
    canonical = graph.permute_vertices(graph.canonical_permutation(color="colour"))
    edges = sorted((min(edge), max(edge)) for edge in canonical.get_edgelist())
    return tuple(names[at] for at in canonical.vs["colour"]), tuple(edges)


def connected_edge_sets(edges: Iterable[Edge], most: int) -> Iterator[frozenset[Edge]]:
    """Every connected set of 1 to `most` edges, once."""
    touching: dict[int, set[Edge]] = defaultdict(set)
    for edge in edges:
        for end in edge:
            touching[end].add(edge)
    level = {frozenset([edge]) for found in touching.values() for edge in found}
    for size in range(1, most + 1):
        yield from level
        if size < most:
            level = {
                grown | {edge}
                for grown in level
                for end in {v for e in grown for v in e}
                for edge in touching[end] - grown
            }


def frequent(
    graph: LabelledGraph, max_edges: int, max_vertices: int | None = None
) -> dict[Hashable, tuple[nx.Graph, Support]]:
    """Every connected pattern that occurs in the graph, by its `key_of`, with all its supports."""
    # A part of the graph by its vertices' order in it: parts that look alike are compared with the patterns once.
    known: dict[Hashable, tuple[int, list[list[int]]]] = {}
    patterns: list[nx.Graph] = []
    instances: Counter[int] = Counter()
    images: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    inside: dict[int, set[int]] = defaultdict(set)
    for edges in connected_edge_sets(graph.edges, max_edges):
        vertices = sorted({v for edge in edges for v in edge})
        if max_vertices is not None and len(vertices) > max_vertices:
            continue
        at = {vertex: i for i, vertex in enumerate(vertices)}
        drawn = frozenset((frozenset((at[u], at[v])), graph.edges[u, v]) for u, v in edges)
        look = drawn, tuple(graph.labels[v] for v in vertices)
        if look not in known:
            known[look] = _identify(nx.relabel_nodes(graph.part(edges), at), patterns)
        number, maps = known[look]
        instances[number] += 1
        for image in maps:
            for i, where in enumerate(image):
                images[number][i].add(vertices[where])
        inside[number] |= {graph.transactions[v] for v in vertices if v in graph.transactions}
    return {
        key_of(pattern): (
            pattern,
            Support(instances[number], min(map(len, images[number].values())), len(inside[number])),
        )
        for number, pattern in enumerate(patterns)
    }


def _labels_of(graph: nx.Graph) -> tuple[list[int], list[int]]:
    """The labels of all vertices, and of all edges."""
    return sorted(dict(graph.nodes(data="label")).values()), sorted(label for _, _, label in graph.edges(data="label"))


def _identify(part: nx.Graph, patterns: list[nx.Graph]) -> tuple[int, list[list[int]]]:
    """The number of the pattern that a part is isomorphic to, perhaps a new one, and all maps of the pattern to it."""
    labels = _labels_of(part)
    for number, pattern in enumerate([*patterns, part]):
        if pattern.number_of_edges() != part.number_of_edges() or len(pattern) != len(part):
            continue
        if _labels_of(pattern) != labels:
            continue
        maps = list(GraphMatcher(pattern, part, same_vertex, same_edge).isomorphisms_iter())
        if maps:
            if number == len(patterns):
                patterns.append(part)
            return number, [[one[i] for i in range(len(part))] for one in maps]
    raise AssertionError("a part is isomorphic to itself")


def gspan(path: Path, min_support: int, max_vertices: int | None = None) -> dict[Hashable, int]:
    """What gspan-mining finds in a database (a file of plain text): supports by `key_of`, patterns with an edge."""
    from gspan_mining.gspan import gSpan

    found: dict[Hashable, int] = {}

    class Miner(gSpan):  # type: ignore[misc]
        """Keeps what it finds; the package's own report needs a method that pandas no longer has."""

        def _report(self, projected: object) -> None:
            labels: dict[int, int] = {}
            edges: dict[Edge, int] = {}
            for step in self._DFScode:
                first, label, second = step.vevlb
                for vertex, given in ((step.frm, first), (step.to, second)):
                    if given != -1:
                        labels[vertex] = int(given)
                edges[step.frm, step.to] = int(label)
            key = key_of(pattern_of(labels, edges))
            assert key not in found
            found[key] = self._support

    bound = float("inf") if max_vertices is None else max_vertices
    Miner(str(path), min_support, min_num_vertices=2, max_num_vertices=bound).run()
    return found


def found_by(result: Any) -> dict[Hashable, tuple[int, int | None]]:
    """What a run of the package found, by `key_of`: count and support. A pattern that comes twice is an error."""
    found: dict[Hashable, tuple[int, int | None]] = {}
    for one in result.patterns:
        edges = [tuple(map(int, edge.split("-"))) for edge in one.pattern.split(",")]
        size = 1 + max(max(edge) for edge in edges)
        labels = [0] * size if one.labels is None else one.labels
        edge_labels = [0] * len(edges) if one.edge_labels is None else one.edge_labels
        assert len(labels) == size
        pattern = pattern_of(labels, {(u, v): label for (u, v), label in zip(edges, edge_labels, strict=True)})
        assert len(pattern) == size
        assert nx.is_connected(pattern)
        key = key_of(pattern)
        assert key not in found, f"{one.pattern} is there twice"
        found[key] = one.count, one.support
    return found
