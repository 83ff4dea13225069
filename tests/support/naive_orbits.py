"""Orbits of graphlets of up to 5 vertices by trying every set of vertices, and every rooted numbering of it."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import combinations, permutations

import naive
import networkx as nx

Pairs = tuple[tuple[int, int], ...]

# As published by Przulj and with ORCA, orbit by orbit: the edges of the graphlet, with the vertex as number 0.
FIGURE = """
01
01 12 | 01 02 | 01 02 12
01 12 23 | 01 02 13 | 01 12 13 | 01 02 03 | 01 12 23 03
01 12 13 23 | 01 02 12 13 | 01 02 12 03 | 01 02 12 13 23 | 01 02 03 12 13 | 01 02 03 12 13 23
01 12 23 34 | 01 02 23 34 | 01 02 13 24
01 12 23 24 | 01 12 13 34 | 01 02 13 14 | 01 02 03 34
01 12 13 14 | 01 02 03 04
01 12 13 23 24 | 01 02 12 13 24 | 01 02 12 03 14
01 12 23 24 34 | 01 02 23 24 34 | 01 02 12 23 34 | 01 02 12 03 34
01 12 13 14 34 | 01 02 12 23 24 | 01 02 12 03 04
01 12 23 34 04
01 12 23 34 14 | 01 12 23 03 24 | 01 12 23 03 14 | 01 12 23 03 04
01 12 13 14 23 24 | 01 02 12 13 23 14 | 01 02 03 12 13 14 | 01 02 03 12 13 04
01 02 12 23 24 34 | 01 02 12 03 04 34
01 12 13 23 24 34 | 01 02 12 13 23 34 | 01 02 12 13 23 04 | 01 02 12 03 13 24
01 02 13 23 14 24 | 02 03 04 12 13 14
01 12 23 03 24 34 | 01 02 12 13 34 24 | 01 02 12 03 34 14
01 02 12 13 23 14 24 | 01 02 12 03 13 04 14
01 12 13 14 23 24 34 | 01 02 03 12 13 23 14 | 01 02 03 12 13 23 04
01 12 23 04 14 24 34 | 01 02 23 04 14 24 34 | 01 02 03 04 12 23 34
01 02 13 14 23 24 34 | 01 12 03 04 23 24 34 | 01 02 03 12 13 24 34
01 02 12 13 14 23 24 34 | 01 02 03 12 13 23 14 24 | 01 02 03 12 13 23 04 14
01 12 23 03 04 14 24 34 | 01 02 03 04 12 23 34 14
02 03 04 12 13 14 23 24 34 | 01 02 03 04 13 14 23 24 34
01 02 03 04 12 13 14 23 24 34
"""


@cache
def rooted(edges: Pairs, k: int, root: int) -> tuple[int, Pairs]:
    """The smallest renumbering of a pattern that sends the root to 0."""
    found = []
    for order in permutations(range(1, k)):
        number = [*order[:root], 0, *order[root:]]
        pairs = (sorted((number[u], number[v])) for u, v in edges)
        found.append(tuple(sorted((u, v) for u, v in pairs)))
    return k, min(found)


@cache
def figure() -> tuple[tuple[int, Pairs], ...]:
    """The rooted graphlet of every orbit."""
    found = []
    for text in FIGURE.replace("|", "\n").strip().splitlines():
        pairs = tuple((int(a), int(b)) for a, b in text.split())
        found.append(rooted(pairs, 1 + max(max(pair) for pair in pairs), 0))
    return tuple(found)


@cache
def numbers() -> dict[tuple[int, Pairs], int]:
    """The orbit of every rooted graphlet."""
    return {one: orbit for orbit, one in enumerate(figure())}


def orbits(edges: naive.Edges, k: int) -> dict[int, Counter[int]]:
    """How often every vertex stands in each orbit of the connected induced subgraphs of 2 to k vertices."""
    near = naive.adjacency(edges)
    found: dict[int, Counter[int]] = {vertex: Counter() for vertex in near}
    for size in range(2, k + 1):
        for chosen in combinations(sorted(near), size):
            inside = tuple((i, j) for i, j in combinations(range(size), 2) if chosen[j] in near[chosen[i]])
            for vertex, orbit in zip(chosen, orbits_of(inside, size), strict=False):
                found[vertex][orbit] += 1
    return found


@cache
def orbits_of(edges: Pairs, size: int) -> tuple[int, ...]:
    """The orbit of every vertex; none where the vertices are not connected."""
    if len({i for edge in edges for i in edge}) < size or not nx.is_connected(nx.Graph(edges)):
        return ()
    return tuple(numbers()[rooted(edges, size, i)] for i in range(size))


def automorphism_orbits(edges: Pairs) -> set[frozenset[int]]:
    """The classes of vertices that automorphisms map to each other, by networkx."""
    graph = nx.Graph(edges)
    maps = list(nx.isomorphism.GraphMatcher(graph, graph).isomorphisms_iter())
    return {frozenset(one[vertex] for one in maps) for vertex in graph}


def homomorphisms(edges: naive.Edges, pattern: Pairs, k: int) -> Counter[int]:
    """Maps of a pattern that keep its edges, by the image of vertex 0: in the order of its vertices."""
    near = naive.adjacency(edges)
    wanted = naive.adjacency(pattern)
    found: Counter[int] = Counter()

    def grow(image: tuple[int, ...]) -> None:
        if len(image) == k:
            found[image[0]] += 1
            return
        before = [near[image[j]] for j in wanted[len(image)] if j < len(image)]
        for vertex in set.intersection(*before) if before else near:
            grow((*image, vertex))

    grow(())
    return found
