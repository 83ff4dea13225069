"""The oracles: obvious loops over Python sets, and what igraph and networkx say.

Nothing here uses the package. A graph is a set of edges (u, v); labels are a dict from vertex to label. A
pattern is a number of vertices, a list of edges, and a list of labels or None.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations
from math import factorial, prod

import igraph
import networkx as nx

Edges = Iterable[tuple[int, int]]


def adjacency(edges: Edges) -> dict[int, set[int]]:
    """Neighbours of every vertex that has an edge."""
    near: dict[int, set[int]] = {}
    for u, v in edges:
        if u != v:
            near.setdefault(u, set()).add(v)
            near.setdefault(v, set()).add(u)
    return near


@dataclass(frozen=True)
class Query:
    """A pattern, and how it is to be matched; a label of -1 stands for any."""

    size: int
    edges: tuple[tuple[int, int], ...]
    labels: tuple[int, ...] | None = None
    induced: bool = False

    @property
    def text(self) -> str:
        return ",".join(f"{u}-{v}" for u, v in self.edges)

    def __repr__(self) -> str:
        labels = "" if self.labels is None else f" labels {list(self.labels)}"
        return f"<{self.text}{labels}{' induced' if self.induced else ''}>"


def mappings(edges: Edges, query: Query, labels: Mapping[int, int] | None = None) -> Iterator[tuple[int, ...]]:
    """Every injective map of the pattern into the graph: the image of pattern vertex i at position i."""
    near = adjacency(edges)
    wanted = adjacency(query.edges)

    def fits(image: tuple[int, ...], vertex: int) -> bool:
        i = len(image)
        if vertex in image:
            return False
        wanted_label = -1 if query.labels is None else query.labels[i]
        if wanted_label >= 0 and (labels is None or labels.get(vertex) != wanted_label):
            return False
        for j, other in enumerate(image):
            if j in wanted[i]:
                if other not in near[vertex]:
                    return False
            elif query.induced and other in near[vertex]:
                return False
        return True

    def grow(image: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(image) == query.size:
            yield image
            return
        for vertex in near:
            if fits(image, vertex):
                yield from grow((*image, vertex))

    yield from grow(())


def automorphisms(query: Query) -> list[tuple[int, ...]]:
    """Every permutation of the pattern's vertices that keeps its edges and labels."""
    edges = {frozenset(edge) for edge in query.edges}
    return [
        order
        for order in permutations(range(query.size))
        if (query.labels is None or all(query.labels[order[v]] == query.labels[v] for v in range(query.size)))
        and all(frozenset((order[u], order[v])) in edges for u, v in query.edges)
    ]


def count_mappings(edges: Edges, query: Query, labels: Mapping[int, int] | None = None) -> int:
    """Number of maps."""
    return sum(1 for _ in mappings(edges, query, labels))


def count_embeddings(edges: Edges, query: Query, labels: Mapping[int, int] | None = None) -> int:
    """Number of distinct subgraphs."""
    return len(embeddings(edges, query, labels))


def embeddings(edges: Edges, query: Query, labels: Mapping[int, int] | None = None) -> set[frozenset[frozenset[int]]]:
    """Every distinct subgraph, as the set of its edges (an edge is the set of its two ends)."""
    return {edge_set(image, query) for image in mappings(edges, query, labels)}


def count_subgraphs(
    edges: Edges,
    query: Query,
    labels: Mapping[int, int] | None = None,
    kinds: Mapping[frozenset[int], int] | None = None,
    wanted: Sequence[int | None] | None = None,
) -> int:
    """Number of distinct images: sets of vertices and edges or, induced, of vertices. `wanted` has kinds of edges."""
    found = set()
    for image in mappings(edges, query, labels):
        pairs = [frozenset((image[u], image[v])) for u, v in query.edges]
        if wanted is None or all(one in (None, kinds[pair]) for one, pair in zip(wanted, pairs, strict=True)):
            found.add(frozenset(image) if query.induced else (frozenset(image), frozenset(pairs)))
    return len(found)


def edge_set(image: Sequence[int], query: Query) -> frozenset[frozenset[int]]:
    """The edges of the graph that an image covers: the identity of an embedding."""
    return frozenset(frozenset((image[u], image[v])) for u, v in query.edges)


def cliques(edges: Edges, k: int) -> set[frozenset[int]]:
    """Every set of k vertices that are pairwise adjacent."""
    near = adjacency(edges)
    return {
        frozenset(members)
        for members in combinations(sorted(near), k)
        if all(v in near[u] for u, v in combinations(members, 2))
    }


def triangles_per_vertex(edges: Edges) -> dict[int, int]:
    """Number of triangles through each vertex."""
    near = adjacency(edges)
    return {
        vertex: sum(1 for u, v in combinations(sorted(around), 2) if v in near[u]) for vertex, around in near.items()
    }


def binomial(n: int, k: int) -> int:
    """Ways to choose k of n: k of them in a row, less their orders."""
    return prod(range(n - k + 1, n + 1)) // factorial(k) if 0 <= k <= n else 0


def _igraphs(
    edges: Edges, query: Query, labels: Mapping[int, int] | None
) -> tuple[igraph.Graph, igraph.Graph, list[int] | None, list[int] | None]:
    near = adjacency(edges)
    number = {vertex: i for i, vertex in enumerate(near)}
    graph = igraph.Graph(
        len(number), sorted({(min(number[u], number[v]), max(number[u], number[v])) for u in near for v in near[u]})
    )
    pattern = igraph.Graph(query.size, list(query.edges))
    if query.labels is None:
        return graph, pattern, None, None
    assert labels is not None
    return graph, pattern, [labels[vertex] for vertex in near], list(query.labels)


def igraph_count_mappings(edges: Edges, query: Query, labels: Mapping[int, int] | None = None) -> int:
    """Number of maps, by igraph: VF2 for non-induced matching, LAD for induced."""
    graph, pattern, colours, pattern_colours = _igraphs(edges, query, labels)
    if not query.induced:
        found: int = graph.count_subisomorphisms_vf2(pattern, color1=colours, color2=pattern_colours)
        return found
    domains = None
    if colours is not None and pattern_colours is not None:
        domains = [[v for v, c in enumerate(colours) if c == wanted] for wanted in pattern_colours]
        if not all(domains):
            return 0
    return len(graph.get_subisomorphisms_lad(pattern, domains=domains, induced=True))


def igraph_count_cliques(edges: Edges, k: int) -> int:
    """Number of k-cliques, by igraph."""
    graph = _igraphs(edges, Query(2, ((0, 1),)), None)[0]
    return len(graph.cliques(min=k, max=k))


def igraph_motifs(edges: Edges, size: int) -> dict[int, int]:
    """Induced counts of the connected motifs of 3 or 4 vertices, by igraph: isomorphism class -> count."""
    graph = _igraphs(edges, Query(2, ((0, 1),)), None)[0]
    counts = graph.motifs_randesu(size=size)
    return {i: int(count) for i, count in enumerate(counts) if count == count}


def isomorphism_class(query: Query) -> int:
    """The number under which igraph counts a motif."""
    found: int = igraph.Graph(query.size, list(query.edges)).isoclass()
    return found


def networkx_count_mappings(edges: Edges, query: Query, labels: Mapping[int, int] | None = None) -> int:
    """Number of maps, by networkx."""
    graph, pattern = nx.Graph(list(edges)), nx.Graph(list(query.edges))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    if query.labels is None:
        matcher = nx.algorithms.isomorphism.GraphMatcher(graph, pattern)
    else:
        assert labels is not None
        nx.set_node_attributes(graph, dict(labels), "label")
        nx.set_node_attributes(pattern, dict(enumerate(query.labels)), "label")
        matcher = nx.algorithms.isomorphism.GraphMatcher(
            graph, pattern, node_match=lambda a, b: a["label"] == b["label"]
        )
    found = matcher.subgraph_isomorphisms_iter() if query.induced else matcher.subgraph_monomorphisms_iter()
    return sum(1 for _ in found)


@cache
def _atlas() -> list[nx.Graph]:
    return nx.graph_atlas_g()


@cache
def connected_patterns(size: int) -> list[Query]:
    """Every connected pattern of `size` vertices (2 to 7), up to isomorphism: from networkx' atlas of graphs."""
    return [
        Query(size, tuple(sorted((min(e), max(e)) for e in graph.edges)))
        for graph in _atlas()
        if graph.number_of_nodes() == size and nx.is_connected(graph)
    ]


def embeddings_per_edge(edges: Edges, shape: str) -> dict[frozenset[int], int]:
    """How many triangles, 4-cliques or 4-cycles contain each edge, which is the set of its ends."""
    near = adjacency(edges)
    found = {frozenset((u, v)): 0 for u in near for v in near[u]}
    for chosen in combinations(sorted(near), 3 if shape == "triangle" else 4):
        shapes = [list(combinations(chosen, 2))]
        if shape == "cycle-4":
            a, b, c, d = chosen
            shapes = [[(w, x), (x, y), (y, z), (z, w)] for w, x, y, z in ((a, b, c, d), (a, c, b, d), (a, b, d, c))]
        for pairs in shapes:
            if all(v in near[u] for u, v in pairs):
                for pair in pairs:
                    found[frozenset(pair)] += 1
    return found


def count_mappings_by_masks(edges: Edges, query: Query, labels: Mapping[int, int] | None = None) -> int:
    """Number of maps, vertex by vertex: sets of vertices are integers, and the images of the last one are bits."""
    near = adjacency(edges)
    number = {vertex: i for i, vertex in enumerate(near)}
    rows = [sum(1 << number[w] for w in near[v]) for v in near]
    every, wanted = (1 << len(rows)) - 1, adjacency(query.edges)
    allowed = [
        every if label < 0 else sum(1 << number[v] for v in near if labels is not None and labels[v] == label)
        for label in query.labels or [-1] * query.size
    ]

    def grow(image: list[int], free: int) -> int:
        i = len(image)
        found = free & allowed[i]
        for j, other in enumerate(image):
            if j in wanted[i]:
                found &= rows[other]
            elif query.induced:
                found &= ~rows[other]
        if i == query.size - 1:
            return found.bit_count()
        total = 0
        while found:
            bit = found & -found
            found ^= bit
            total += grow([*image, bit.bit_length() - 1], free ^ bit)
        return total

    return grow([], every)
