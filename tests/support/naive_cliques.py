"""The oracle for maximal cliques: the definition over all sets of vertices, and Bron-Kerbosch as it was in 1973."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set
from itertools import combinations
from math import comb

from naive import Edges, adjacency

Clique = frozenset[int]


def maximal_cliques_by_definition(edges: Edges) -> set[Clique]:
    """Every set of vertices that are pairwise adjacent, and of which no other vertex is adjacent to all."""
    near = adjacency(edges)
    sets = (frozenset(some) for size in range(1, len(near) + 1) for some in combinations(near, size))
    return {
        some
        for some in sets
        if all(v in near[u] for u, v in combinations(some, 2)) and not any(some <= near[v] for v in near)
    }


def maximal_cliques(edges: Edges) -> set[Clique]:
    """By Bron and Kerbosch's first version (CACM 1973), without a pivot."""
    near = adjacency(edges)

    def grow(clique: Clique, candidates: Set[int], excluded: Set[int]) -> Iterator[Clique]:
        if not candidates and not excluded:
            yield clique
        candidates, excluded = set(candidates), set(excluded)
        for vertex in sorted(candidates):
            yield from grow(clique | {vertex}, candidates & near[vertex], excluded & near[vertex])
            candidates.remove(vertex)
            excluded.add(vertex)

    found = list(grow(frozenset(), set(near), set()))
    assert len(found) == len(set(found))
    return set(found)


def cliques_by_definition(edges: Edges) -> set[Clique]:
    """Every set of two vertices or more that are pairwise adjacent."""
    near = adjacency(edges)
    sets = (frozenset(some) for size in range(2, len(near) + 1) for some in combinations(near, size))
    return {some for some in sets if all(v in near[u] for u, v in combinations(some, 2))}


def cliques_without_a_matching(n: int, matching: int, k: int) -> int:
    """Number of k-cliques of the complete graph of n vertices without so many edges, no two of which share a vertex."""
    return sum(
        (-1) ** some * comb(matching, some) * comb(n - 2 * some, k - 2 * some)
        for some in range(matching + 1)
        if k >= 2 * some
    )


def cliques_by_complement(n: int, apart: Edges, k: int) -> int:
    """Number of k-cliques of the complete graph of n vertices without these edges, which should be few.

    A vertex is in such a clique or not: without it, or without it and all that it is not adjacent to.
    """
    near = adjacency(apart)
    degree, vertex = max(((len(around), v) for v, around in near.items()), default=(0, -1))
    if k < 0 or n < k or not degree:
        return comb(n, k) if 0 <= k <= n else 0
    without = [edge for edge in apart if vertex not in edge]
    gone = {vertex, *near[vertex]}
    with_it = [edge for edge in apart if not gone & set(edge)]
    return cliques_by_complement(n - 1, without, k) + cliques_by_complement(n - len(gone), with_it, k - 1)


def sizes(cliques: set[Clique]) -> dict[int, int]:
    """Number of cliques of each size."""
    return dict(Counter(map(len, cliques)))


def per_vertex(cliques: set[Clique]) -> dict[int, tuple[int, int]]:
    """In how many cliques each vertex is, and the size of its largest one; for vertices that are in some."""
    found: dict[int, tuple[int, int]] = {}
    for clique in cliques:
        for vertex in clique:
            number, largest = found.get(vertex, (0, 0))
            found[vertex] = (number + 1, max(largest, len(clique)))
    return found


def degeneracy(edges: Edges) -> int:
    """The largest number of neighbours left of a vertex with the fewest, as such vertices are taken away."""
    near = {vertex: set(around) for vertex, around in adjacency(edges).items()}
    most = 0
    while near:
        vertex = min(near, key=lambda one: len(near[one]))
        most = max(most, len(near[vertex]))
        for other in near.pop(vertex):
            near[other].remove(vertex)
    return most


def moon_moser(parts: int, size: int = 3) -> list[tuple[int, int]]:
    """The complete graph of so many parts of `size` vertices: of 3, it has the most maximal cliques there can be."""
    vertices = range(parts * size)
    return [(u, v) for u, v in combinations(vertices, 2) if u // size != v // size]
