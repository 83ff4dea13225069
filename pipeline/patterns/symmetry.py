"""Automorphisms of patterns, without ever listing the group (clique-10 has 3.6 million of them).

An orbit is found by asking "is there an automorphism that fixes these vertices and sends u to v"; the size
of the group is the product of the orbit sizes along a chain of stabilisers.
"""

from collections.abc import Sequence
from functools import lru_cache

from longwall.pipeline.patterns.pattern import Pattern

_REMEMBERED = 1 << 14  # answers: planning all motifs of 6 vertices asks for the same ones again and again


def _extend_isomorphism(first: Pattern, second: Pattern, image: dict[int, int]) -> bool:
    """Whether the partial map `image` from `first` to `second` grows to an isomorphism (it is grown in place)."""

    def fits(u: int, v: int) -> bool:
        return (
            len(first.neighbours[u]) == len(second.neighbours[v])
            and first.label(u) == second.label(v)
            and all((w in first.neighbours[u]) == (x in second.neighbours[v]) for w, x in image.items() if w != u)
        )

    if not all(fits(u, v) for u, v in image.items()):
        return False

    def grow() -> bool:
        if len(image) == first.num_vertices:
            return True
        left = [v for v in range(first.num_vertices) if v not in image]
        u = max(left, key=lambda v: len(first.neighbours[v] & image.keys()))
        taken = set(image.values())
        for v in range(second.num_vertices):
            if v not in taken and fits(u, v):
                image[u] = v
                if grow():
                    return True
                del image[u]
        return False

    return grow()


def isomorphic(first: Pattern, second: Pattern) -> bool:
    """Whether two patterns are the same up to the numbering of their vertices."""
    degrees = [sorted(map(len, pattern.neighbours)) for pattern in (first, second)]
    return degrees[0] == degrees[1] and _extend_isomorphism(first, second, {})


def _automorphism_exists(pattern: Pattern, fixed: frozenset[int], source: int, target: int) -> bool:
    """Whether an automorphism fixes every vertex of `fixed` and sends `source` to `target`."""
    if source in fixed or target in fixed:
        return source == target
    return _extend_isomorphism(pattern, pattern, {v: v for v in fixed} | {source: target})


def orbit(pattern: Pattern, vertex: int, fixed: Sequence[int] = ()) -> frozenset[int]:
    """Vertices to which automorphisms that fix `fixed` point by point can send `vertex`."""
    return _orbit(pattern, vertex, frozenset(fixed))


@lru_cache(maxsize=_REMEMBERED)
def _orbit(pattern: Pattern, vertex: int, fixed: frozenset[int]) -> frozenset[int]:
    return frozenset(v for v in range(pattern.num_vertices) if _automorphism_exists(pattern, fixed, vertex, v))


@lru_cache(maxsize=_REMEMBERED)
def automorphism_count(pattern: Pattern) -> int:
    """Size of the automorphism group, by the orbit-stabiliser theorem."""
    size = 1
    for v in range(pattern.num_vertices):
        size *= len(orbit(pattern, v, range(v)))
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
    free = set(order[len(order) - suffix :]) if suffix else set()
    fixed: list[int] = []
    pairs: list[tuple[int, int]] = []
    divided = 1
    for v in order[: len(order) - suffix]:
        moved = orbit(pattern, v, fixed)
        if moved & free:
            continue
        pairs += [(v, w) for w in sorted(moved) if w != v]
        divided *= len(moved)
        fixed.append(v)
    return pairs, automorphism_count(pattern) // divided
