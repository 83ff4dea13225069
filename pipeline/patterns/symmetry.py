"""Automorphisms of patterns, without ever listing the group (clique-10 has 3.6 million of them).

An orbit is found by asking "is there an automorphism that fixes these vertices and sends u to v"; the size
of the group is the product of the orbit sizes along a chain of stabilisers.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from longwall.pipeline.patterns.pattern import Pattern

_REMEMBERED = 1 << 14  # answers: planning all motifs of 6 vertices asks for the same ones again and again


def _extend_isomorphism(first: Pattern, second: Pattern, image: dict[int, int]) -> bool:
    """Whether the partial map `image` from `first` to `second` grows to an isomorphism (it is grown in place)."""
    near, far = first.neighbours, second.neighbours
    if first.num_vertices != second.num_vertices or not all(
        (w in near[u]) == (x in far[v]) for u, v in image.items() for w, x in image.items() if w != u
    ):
        return False
    colours = _refined(first, second, image)
    if colours is None:
        return False
    here, there = colours

    def grow() -> bool:
        if len(image) == first.num_vertices:
            return True
        left = [v for v in range(first.num_vertices) if v not in image]
        u = max(left, key=lambda v: len(near[v] & image.keys()))
        taken = set(image.values())
        for v in range(second.num_vertices):
            if v in taken or here[u] != there[v]:
                continue
            if all((w in near[u]) == (x in far[v]) for w, x in image.items()):
                image[u] = v
                if grow():
                    return True
                del image[u]
        return False

    return grow()


def _refined(first: Pattern, second: Pattern, image: dict[int, int]) -> tuple[list[int], list[int]] | None:
    """Return colours of the vertices of two patterns, None if they say that the map grows to no isomorphism.

    An isomorphism keeps colours. They begin as the label, the degree and the place in `image`, and are refined by the
    colours of the neighbours until nothing changes (Weisfeiler and Leman, 1968). Without them, a map that grows to
    nothing is found out only after all orders of vertices that look the same: the plan for quasi-cliques of 13
    vertices with 4 absent edges, which takes 2.6 s, was not there after four minutes.
    """
    places = {u: (place, v) for place, (u, v) in enumerate(image.items())}
    ways = (
        (first, {u: place for u, (place, _) in places.items()}),
        (second, {v: place for place, v in places.values()}),
    )
    looks: list[list[Any]] = [
        [(pattern.label(v), len(near), marks.get(v, -1)) for v, near in enumerate(pattern.neighbours)]
        for pattern, marks in ways
    ]
    classes = 0
    while True:
        if sorted(looks[0]) != sorted(looks[1]):
            return None
        number = {look: at for at, look in enumerate(sorted(set(looks[0])))}
        colours = [[number[look] for look in some] for some in looks]
        if len(number) == classes or len(number) == first.num_vertices:
            return colours[0], colours[1]
        classes = len(number)
        looks = [
            [(own[v], *sorted([own[w] for w in near])) for v, near in enumerate(pattern.neighbours)]
            for (pattern, _), own in zip(ways, colours, strict=True)
        ]


def isomorphic(first: Pattern, second: Pattern) -> bool:
    """Whether two patterns are the same, with their labels, up to the numbering of their vertices."""
    kinds = _edge_kinds(first, second)
    first, second = subdivided(first, kinds), subdivided(second, kinds)
    degrees = [sorted(map(len, pattern.neighbours)) for pattern in (first, second)]
    return degrees[0] == degrees[1] and _extend_isomorphism(first, second, {})


def extended_automorphism(pattern: Pattern, image: Mapping[int, int]) -> dict[int, int] | None:
    """Return an automorphism that extends `image`, a partial map; None if none exists."""
    whole = dict(image)
    return whole if _extend_isomorphism(pattern, pattern, whole) else None


def _automorphism_exists(pattern: Pattern, fixed: frozenset[int], source: int, target: int) -> bool:
    """Whether an automorphism fixes every vertex of `fixed` and sends `source` to `target`."""
    if source in fixed or target in fixed:
        return source == target
    return _extend_isomorphism(pattern, pattern, {v: v for v in fixed} | {source: target})


def _edge_kinds(*patterns: Pattern) -> dict[int | str, int]:
    """Return, for each label of an edge, a label that no vertex has."""
    labels = dict.fromkeys(label for one in patterns for label in one.edge_labels or () if label is not None)
    return {label: -2 - number for number, label in enumerate(labels)}


def subdivided(pattern: Pattern, kinds: Mapping[int | str, int] | None = None) -> Pattern:
    """Return a pattern without labels of edges that has the same automorphisms: labelled edges have a vertex inside.

    These vertices come after the others, and have labels that no other vertex has: `kinds` of the edge's label. So an
    automorphism is determined by the images of the other vertices, and keeps the labels of edges.
    """
    if pattern.edge_labels is None:
        return pattern
    kinds = _edge_kinds(pattern) if kinds is None else kinds
    labels, edges = [pattern.label(v) for v in range(pattern.num_vertices)], []
    for (u, v), label in zip(pattern.edges, pattern.edge_labels, strict=True):
        if label is None:
            edges.append((u, v))
        else:
            edges += [(u, len(labels)), (v, len(labels))]
            labels.append(kinds[label])
    return Pattern(len(labels), tuple(sorted(edges)), tuple(labels))


def orbit(pattern: Pattern, vertex: int, fixed: Sequence[int] = ()) -> frozenset[int]:
    """Vertices to which automorphisms that fix `fixed` point by point can send `vertex`."""
    pattern = subdivided(pattern)
    return _orbit(pattern, vertex, frozenset(fixed))


@lru_cache(maxsize=_REMEMBERED)
def _orbit(pattern: Pattern, vertex: int, fixed: frozenset[int]) -> frozenset[int]:
    colours = colours_of(pattern, fixed)
    alike = [v for v, colour in enumerate(colours) if colour == colours[vertex]]
    if len(alike) == 1:
        return frozenset(alike)
    return frozenset(
        v for v in alike if are_twins(pattern, vertex, v) or _automorphism_exists(pattern, fixed, vertex, v)
    )


def are_twins(pattern: Pattern, first: int, second: int) -> bool:
    """Whether two vertices have the same label and the same other neighbours."""
    near = pattern.neighbours
    return pattern.label(first) == pattern.label(second) and near[first] - {second} == near[second] - {first}


@lru_cache(maxsize=_REMEMBERED)
def colours_of(pattern: Pattern, fixed: frozenset[int]) -> tuple[int, ...]:
    """Return colours of the vertices that automorphisms keep which fix some vertices, each of a colour of its own.

    They begin as the label and the degree, and are refined by the colours of the neighbours until nothing changes.
    Labels mostly tell all vertices of a query apart: then nothing else has to be looked at.
    """
    near = pattern.neighbours
    looks: list[Any] = [(v if v in fixed else -1, pattern.label(v), len(near[v])) for v in range(pattern.num_vertices)]
    classes = 0
    while True:
        number = {look: at for at, look in enumerate(sorted(set(looks)))}
        colours = [number[look] for look in looks]
        if len(number) in (classes, pattern.num_vertices):
            return tuple(colours)
        classes = len(number)
        looks = [(colours[v], *sorted([colours[w] for w in near[v]])) for v in range(pattern.num_vertices)]


@lru_cache(maxsize=_REMEMBERED)
def automorphism_count(pattern: Pattern) -> int:
    """Size of the automorphism group, by the orbit-stabiliser theorem."""
    pattern = subdivided(pattern)
    size = 1
    fixed: frozenset[int] = frozenset()
    for v in range(pattern.num_vertices):
        moved = _orbit(pattern, v, fixed)
        if len(moved) > 1:
            size *= len(moved)
            fixed |= {v}
    return size


def restrictions(pattern: Pattern, order: Sequence[int], suffix: int = 0) -> tuple[list[tuple[int, int]], int]:
    """Symmetry-breaking restrictions for a matching order.

    Each vertex of the order in turn is required to be the extreme one of its orbit under the automorphisms
    that fix the vertices treated before it (Grochow and Kellis, RECOMB 2007). Vertices whose orbit reaches
    into the suffix are passed over, so that the suffix stays unrestricted and can be counted by
    inclusion-exclusion (the idea of GraphPi, SC 2020).

    Parameters
    ----------
    pattern
        The pattern.
    order
        Matching order: pattern vertices.
    suffix
        Number of last vertices of the order that must stay unrestricted.

    Returns
    -------
    pairs : list of (int, int)
        Pairs (first, second) of pattern vertices: `first` is the extreme one.
    redundancy : int
        How often each embedding is found under these restrictions.
    """
    pattern = subdivided(pattern)
    free = set(order[len(order) - suffix :]) if suffix else set()
    fixed: list[int] = []
    pairs: list[tuple[int, int]] = []
    divided = 1
    for v in order[: len(order) - suffix]:
        moved = orbit(pattern, v, fixed)
        if moved & free:
            continue
        if len(moved) > 1:  # what moves no vertex fixes it already
            pairs += [(v, w) for w in sorted(moved) if w != v]
            divided *= len(moved)
            fixed.append(v)
    return pairs, automorphism_count(pattern) // divided
