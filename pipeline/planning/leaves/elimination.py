"""Take the leaves of patterns away: mappings as sums over patterns without leaves, whose vertices have weights.

A leaf u at v may be mapped to every neighbour of v's image that no other vertex has taken. So the sum, over all
mappings, of the product of the weights of the images is

    sum(pattern) = sum(pattern without u, v weighed by the sum of u's weight over the neighbours of v's image)
                   - for every other vertex w: sum(pattern without u, with the edge v w, w weighed by u's weight too)

since an image that w has taken is an adjacent one exactly if v w is an edge as well. What is left in the end is a
single vertex, a sum over all vertices of the graph, or has no leaf: then it lies in the 2-core of the graph, however
many neighbours the vertices have outside.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from longwall.kernels.host.patterns.pattern_codes import canonical_pattern
from longwall.pipeline.planning.homomorphisms.pattern_core import Expression, product

Edges = tuple[tuple[int, int], ...]
Weights = tuple[tuple[Expression, ...], ...]


class Weighed(NamedTuple):
    """A pattern whose vertices have weights, in its canonical form."""

    edges: Edges
    weights: Weights
    """The factors of every vertex: vertex tables of the whole graph, see `planning/homomorphisms/decompositions.py`."""

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.weights)


def canonical(edges: Edges, weights: Weights) -> Weighed:
    """Return the canonical form of a pattern with weights."""
    if not any(weights):
        found, _ = canonical_pattern(edges, None, len(weights)) if edges else ((), None)
        return Weighed(found, weights)
    kinds = sorted(set(weights), key=repr)
    labels = tuple(map(kinds.index, weights))
    found, ordered = canonical_pattern(edges, labels, len(weights)) if edges else ((), labels)
    assert ordered is not None
    return Weighed(found, tuple(kinds[label] for label in ordered))


def without_leaves(edges: Edges, size: int) -> Counter[Weighed]:
    """Write the mappings of a connected pattern as a sum over patterns without leaves.

    Returns
    -------
    Counter of Weighed
        Patterns of one vertex, or without leaves; each with its coefficient.
    """
    found: Counter[Weighed] = Counter()
    todo: Counter[Weighed] = Counter({canonical(edges, ((),) * size): 1})
    while todo:
        following: Counter[Weighed] = Counter()
        for pattern, coefficient in todo.items():
            leaf = _leaf(pattern)
            if leaf is None:
                found[pattern] += coefficient
                continue
            for smaller, multiple in _without(pattern, *leaf):
                following[smaller] += coefficient * multiple
        todo = following
    return Counter({pattern: coefficient for pattern, coefficient in found.items() if coefficient})


def _leaf(pattern: Weighed) -> tuple[int, int] | None:
    """Return a leaf and its neighbour."""
    degrees = Counter(v for edge in pattern.edges for v in edge)
    for u, v in pattern.edges:
        if degrees[v] == 1:
            return v, u
        if degrees[u] == 1:
            return u, v
    return None


def _without(pattern: Weighed, leaf: int, v: int) -> list[tuple[Weighed, int]]:
    """Return the patterns that are left without a leaf at v, with their signs."""
    rest = [edge for edge in pattern.edges if leaf not in edge]
    own = pattern.weights[leaf]

    def left(edges: list[tuple[int, int]], at: int, more: tuple[Expression, ...]) -> Weighed:
        number = {w: i for i, w in enumerate(w for w in range(pattern.size) if w != leaf)}
        weights = [tuple(sorted((*pattern.weights[w], *(more if w == at else ())), key=repr)) for w in number]
        pairs = sorted({(min(number[a], number[b]), max(number[a], number[b])) for a, b in edges})
        return canonical(tuple(pairs), tuple(weights))

    found = [(left(rest, v, (("nsum", product("vprod", list(own)), None),)), 1)]
    found += [(left([*rest, (v, w)], w, own), -1) for w in range(pattern.size) if w not in (leaf, v)]
    return found
