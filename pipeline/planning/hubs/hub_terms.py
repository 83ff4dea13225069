"""Divide the maps of a pattern by which of its vertices they send to which hub."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, permutations

from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.planning.hubs.parts import Need, Parts, Products, TooManyParts, parts_of

MAX_VERTICES = 8  # of a pattern: larger ones have no canonical form
_MOST_TERMS = 2000


@lru_cache(maxsize=64)
def hub_terms(
    pattern: Pattern, joined: tuple[int, ...], kinds: tuple[int, ...], *, induced: bool
) -> tuple[tuple[Parts, int], ...]:
    """Write the maps of a connected pattern as a sum of products of maps into the graph without its hubs.

    Parameters
    ----------
    pattern
        The pattern, without labels.
    joined
        The hubs that each hub is adjacent to, as bits.
    kinds
        The hubs that vertices are adjacent to, as bits, wherever there is a vertex adjacent to just these.
    induced
        Whether non-edges of the pattern must be non-edges of the graph.

    Returns
    -------
    tuple of tuple of Parts and int
        Connected parts, whose maps are multiplied, and a coefficient; no parts where all vertices are sent to hubs.

    Raises
    ------
    TooManyParts
        If the terms are too many: another way to count is quicker.
    """
    left: Counter[Parts] = Counter()
    for images in _sent(pattern, joined, induced=induced):
        kept = [v for v in range(pattern.num_vertices) if v not in images]
        number = {v: at for at, v in enumerate(kept)}
        edges = [(number[u], number[v]) for u, v in pattern.edges if u in number and v in number]
        needs = [_need(pattern, v, images, kinds, induced=induced) for v in kept]
        if all(needs):
            left[parts_of(edges, needs)] += 1
    found: Counter[Parts] = Counter()
    products = Products(induced=induced)
    for parts, times in left.items():
        for one, coefficient in products.of(parts).items():
            found[one] += times * coefficient
        if len(found) > _MOST_TERMS:
            raise TooManyParts
    return tuple((parts, coefficient) for parts, coefficient in found.items() if coefficient)


def _sent(pattern: Pattern, joined: tuple[int, ...], *, induced: bool) -> Iterator[dict[int, int]]:
    """Yield the hubs that vertices are sent to, by vertex, wherever that is no contradiction."""
    for number in range(min(len(joined), pattern.num_vertices) + 1):
        for hubs in combinations(range(len(joined)), number):
            for vertices in permutations(range(pattern.num_vertices), number):
                images = dict(zip(vertices, hubs, strict=True))
                for u, v in combinations(vertices, 2):
                    adjacent = bool(joined[images[u]] >> images[v] & 1)
                    wanted = v in pattern.neighbours[u]
                    if adjacent != wanted and (induced or wanted):
                        break
                else:
                    yield images


def _need(pattern: Pattern, v: int, images: dict[int, int], kinds: tuple[int, ...], *, induced: bool) -> Need:
    """Return the kinds that the image of a vertex may be of that is not sent to a hub."""
    must = sum(1 << hub for u, hub in images.items() if u in pattern.neighbours[v])
    cares = sum(1 << hub for hub in images.values()) if induced else must
    return sum(1 << kind for kind in kinds if kind & cares == must)
