"""Maps of patterns that are not connected, as products of maps of connected ones: compared with brute force."""

from __future__ import annotations

import random
from itertools import combinations, permutations
from math import prod

import pytest

from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.planning.hubs.hub_terms import hub_terms
from longwall.pipeline.planning.hubs.parts import Part, Products, TooManyParts, parts_of

KINDS = 3


def maps(edges: set[tuple[int, int]], kinds: list[int], part: Part, *, induced: bool) -> int:
    """Count the maps of a pattern by trying all."""
    found = 0
    pairs = set(part.edges)
    for images in permutations(range(len(kinds)), part.size):
        if not all(need >> kinds[v] & 1 for v, need in zip(images, part.needs, strict=True)):
            continue
        there = {
            (a, b)
            for a, b in combinations(range(part.size), 2)
            if (min(images[a], images[b]), max(images[a], images[b])) in edges
        }
        found += pairs == there if induced else pairs <= there
    return found


@pytest.mark.parametrize("induced", [False, True])
def test_products_add_up(induced: bool) -> None:
    for seed in range(40):
        chance = random.Random(seed)
        n, size = chance.randint(3, 6), chance.randint(2, 4)
        edges = {pair for pair in combinations(range(n), 2) if chance.random() < 0.4}
        kinds = [chance.randrange(KINDS) for _ in range(n)]
        wanted = sorted(pair for pair in combinations(range(size), 2) if chance.random() < 0.25)
        needs = [chance.randrange(1, 1 << KINDS) for _ in range(size)]
        whole = maps(edges, kinds, Part(tuple(wanted), tuple(needs)), induced=induced)
        found = sum(
            coefficient * prod(maps(edges, kinds, part, induced=induced) for part in parts)
            for parts, coefficient in Products(induced=induced).of(parts_of(wanted, needs)).items()
        )
        assert found == whole, (seed, wanted, needs)


def test_parts_are_connected_and_canonical() -> None:
    one = parts_of([(0, 2), (1, 3)], [1, 3, 3, 1])
    assert one == parts_of([(3, 1), (2, 0)], [3, 1, 1, 3])
    assert [part.size for part in one] == [2, 2]
    assert one[0] == one[1]


def test_the_hub_of_a_wheel_closes_paths_of_its_ring() -> None:
    """A vertex of the cycle is sent to the hub, or none; what all vertices are is no need."""
    terms = dict(hub_terms(parse_pattern("cycle-6"), (0,), (1,), induced=False))
    path, cycle = parts_of([(v, v + 1) for v in range(4)], [2] * 5), parts_of(parse_pattern("cycle-6").edges, [2] * 6)
    assert terms == {path: 6, cycle: 1}
    assert dict(hub_terms(parse_pattern("cycle-6"), (0,), (1,), induced=True)) == {cycle: 1}


def test_too_many_parts_are_given_up() -> None:
    with pytest.raises(TooManyParts):
        hub_terms(parse_pattern("star-7"), (0, 0), (0, 1, 2, 3), induced=True)
