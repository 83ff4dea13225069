"""Labelled queries that are drawn from a graph, so that each occurs there, and their counts by other programs."""

import gzip
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

_SPARSE = 1.3  # edges for each vertex

Edges = list[tuple[int, int]]
Adjacency = dict[int, set[int]]
Labels = dict[int, int]


class Neighbours(Protocol):
    """The neighbours of each vertex."""

    def __getitem__(self, vertex: int, /) -> Iterable[int]:
        """Return the neighbours of a vertex."""


class GraphNeighbours:
    """The neighbours of each vertex of a graph of Longwall, by internal ids.

    Parameters
    ----------
    graph
        The graph.
    """

    def __init__(self, graph: Any):
        self._graph = graph

    def __getitem__(self, vertex: int) -> list[int]:
        """Return the neighbours of a vertex."""
        begin, end = self._graph.indptr[vertex : vertex + 2]
        found: list[int] = np.asarray(self._graph.indices[begin:end]).tolist()
        return found


class DrawnQuery(NamedTuple):
    """A query: its edges, and the label of each vertex."""

    edges: Edges
    labels: list[int]

    @property
    def pattern(self) -> str:
        """The edges as a text."""
        return ",".join(f"{u}-{v}" for u, v in self.edges)


def read(data: Path, name: str) -> tuple[Adjacency, Labels]:
    """Read a graph as sets of neighbours, and its labels."""
    near: Adjacency = {}
    with gzip.open(data / "graphs" / f"{name}.edges.gz", "rt") as file:
        for line in file:
            u, v = map(int, line.split())
            near.setdefault(u, set()).add(v)
            near.setdefault(v, set()).add(u)
    with gzip.open(data / "graphs" / f"{name}.labels.gz", "rt") as file:
        labels = dict(tuple(map(int, line.split())) for line in file)  # type: ignore[misc]
    return near, labels


def draw(near: Neighbours, vertices: Sequence[int], size: int, dense: bool, choose: random.Random) -> Edges | None:
    """Return the edges of a query between the vertices of a random walk; None if the walk does not find enough.

    A dense query has all edges of the graph between its vertices, a sparse one a spanning tree and a few others.
    """
    at = choose.choice(vertices)
    found = {at: 0}
    for _ in range(1000 * size):
        if len(found) == size:
            break
        at = choose.choice(sorted(near[at]))
        found.setdefault(at, len(found))
    else:
        return None
    edges = [(u, v) for u in found for v in near[u] if v in found and found[u] < found[v]]
    if not dense:
        choose.shuffle(edges)
        part = {v: v for v in found}
        tree, rest = [], []
        for u, v in edges:
            a, b = _root(part, u), _root(part, v)
            part[a] = b
            (tree if a != b else rest).append((u, v))
        edges = tree + rest[: max(int(size * _SPARSE) - len(tree), 0)]
    return edges


def _root(part: dict[int, int], v: int) -> int:
    while part[v] != v:
        v = part[v]
    return v


def numbered(edges: Edges, labels: Any) -> DrawnQuery:
    """Number the vertices of a query from 0 up."""
    number = {v: at for at, v in enumerate(sorted({v for edge in edges for v in edge}))}
    return DrawnQuery([(number[u], number[v]) for u, v in edges], [int(labels[v]) for v in number])


def write(path: Path, edges: Edges, labels: Labels) -> None:
    """Write a query as a ``.graph`` file."""
    query = numbered(edges, labels)
    degrees = [sum(v in edge for edge in query.edges) for v in range(len(query.labels))]
    lines = [f"t {len(degrees)} {len(edges)}"]
    lines += [f"v {v} {label} {degree}" for v, (label, degree) in enumerate(zip(query.labels, degrees, strict=True))]
    path.write_text("\n".join([*lines, *(f"e {u} {v}" for u, v in query.edges)]) + "\n")


def by_igraph(edges: Edges, labels: Sequence[int], query: DrawnQuery) -> tuple[int, int]:
    """Count the mappings of a query to a graph of some edges and labels by VF2 and by LAD."""
    import igraph

    large = igraph.Graph(len(labels), edges)
    small = igraph.Graph(len(query.labels), query.edges)
    domains = [[i for i, label in enumerate(labels) if label == wanted] for wanted in query.labels]
    lad = len(large.get_subisomorphisms_lad(small, domains=domains, induced=False))
    return large.count_subisomorphisms_vf2(small, color1=list(labels), color2=query.labels), lad


def by_networkx(edges: Edges, labels: Sequence[int], query: DrawnQuery) -> int:
    """Count the mappings of a query by the VF2 of networkx, which is written in Python."""
    from networkx import Graph
    from networkx.algorithms.isomorphism import GraphMatcher, categorical_node_match

    large, small = Graph(edges), Graph(query.edges)
    for graph, of_graph in ((large, labels), (small, query.labels)):
        for v in graph:
            graph.nodes[v]["label"] = of_graph[v]
    matcher = GraphMatcher(large, small, node_match=categorical_node_match("label", None))
    return sum(1 for _ in matcher.subgraph_monomorphisms_iter())
