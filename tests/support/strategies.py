"""Hypothesis strategies: small data graphs of awkward shapes, and patterns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

import naive
from hypothesis import strategies as st


@dataclass(frozen=True)
class SmallGraph:
    """A data graph: edges between any ids, and a label for every vertex that has an edge."""

    edges: tuple[tuple[int, int], ...]
    labels: dict[int, int]


def _random(n: int, density: int, draw: st.DrawFn) -> set[tuple[int, int]]:
    coins = draw(st.lists(st.integers(0, 9), min_size=n * (n - 1) // 2, max_size=n * (n - 1) // 2))
    return {pair for pair, coin in zip(combinations(range(n), 2), coins, strict=True) if coin < density}


def _shape(kind: str, n: int, draw: st.DrawFn) -> set[tuple[int, int]]:
    match kind:
        case "edge":
            return {(0, 1)}
        case "clique":
            return set(combinations(range(min(n, 8)), 2))
        case "star":
            return {(0, i) for i in range(1, n)}
        case "path":
            return {(i, i + 1) for i in range(n - 1)}
        case "cycle":
            return {(i, (i + 1) % n) for i in range(max(n, 3))} if n >= 3 else {(0, 1)}
        case "bipartite":
            return set(product(range(n // 2), range(n // 2, n)))
        case "hub":
            return _random(n, 2, draw) | {(0, i) for i in range(1, n)}
        case "near-clique":
            members = set(combinations(range(min(n, 8)), 2))
            return members - set(draw(st.lists(st.sampled_from(sorted(members)), max_size=3)))
        case "two parts":
            left = _random(n // 2, 6, draw)
            return left | {(u + n, v + n) for u, v in _random(n - n // 2, 7, draw)}
        case _:
            return _random(n, draw(st.integers(2, 8)), draw)


KINDS = ("random", "random", "random", "hub", "near-clique", "two parts", "clique", "star", "path", "cycle")


@st.composite
def graphs(draw: st.DrawFn, *, max_vertices: int = 9, num_labels: int = 3) -> SmallGraph:
    """Data graphs with at least one edge, ids scattered, edges in any direction and order."""
    n = draw(st.integers(2, max_vertices))
    kind = draw(st.sampled_from((*KINDS, "bipartite", "edge")))
    edges = _shape(kind, n, draw) or {(0, 1)}
    used = sorted({v for edge in edges for v in edge})
    ids = draw(st.permutations([v * 3 + 5 for v in range(max(used) + 1)]))
    flips = draw(st.integers(0, 2**16 - 1))
    named = [(ids[v], ids[u]) if flips >> (i % 16) & 1 else (ids[u], ids[v]) for i, (u, v) in enumerate(sorted(edges))]
    labels = draw(st.lists(st.integers(0, num_labels - 1), min_size=len(used), max_size=len(used)))
    return SmallGraph(tuple(named), {ids[v]: label for v, label in zip(used, labels, strict=True)})


@st.composite
def queries(
    draw: st.DrawFn,
    *,
    min_size: int = 2,
    max_size: int = 5,
    labelled: bool | None = None,
    induced: bool | None = None,
    num_labels: int = 3,
) -> naive.Query:
    """Connected patterns with their vertices in any order; labelled and induced at random unless given."""
    size = draw(st.sampled_from([s for s in (2, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6) if min_size <= s <= max_size]))
    found = draw(st.sampled_from(naive.connected_patterns(size)))
    order = draw(st.permutations(range(size)))
    edges = tuple(sorted((min(order[u], order[v]), max(order[u], order[v])) for u, v in found.edges))
    labels = None
    if draw(st.booleans()) if labelled is None else labelled:
        labels = tuple(draw(st.lists(st.integers(0, num_labels - 1), min_size=size, max_size=size)))
    return naive.Query(size, edges, labels, draw(st.booleans()) if induced is None else induced)
