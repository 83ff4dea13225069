"""Leaves that are eliminated: sums over all injective maps stay what they are, whatever the vertices weigh."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations
from typing import Any

import naive
import pytest

from longwall.pipeline.planning.leaves.elimination import Weighed, canonical, without_leaves

GRAPH = tuple(pair for pair in combinations(range(9), 2) if random.Random(str(pair)).random() < 0.35)


def weight(table: Any, near: dict[int, set[int]]) -> dict[int, int]:
    """A vertex table, by its definition."""
    if table is None:
        return dict.fromkeys(near, 1)
    kind, *parts = table
    if kind == "nsum":
        below = weight(parts[0], near)
        return {v: sum(below[w] for w in near[v]) for v in near}
    assert kind == "vprod"
    tables = [weight(part, near) for part in parts]
    found = dict.fromkeys(near, 1)
    for one in tables:
        found = {v: found[v] * one[v] for v in near}
    return found


def weighed_sum(pattern: Weighed) -> int:
    """The sum over all injective maps of the product of the weights of the images, by enumeration."""
    near = naive.adjacency(GRAPH)
    weights = [[weight(table, near) for table in tables] for tables in pattern.weights]
    total = 0
    maps = naive.mappings(GRAPH, naive.Query(pattern.size, pattern.edges)) if pattern.edges else ((v,) for v in near)
    for image in maps:
        product = 1
        for v, tables in zip(image, weights, strict=True):
            for table in tables:
                product *= table[v]
        total += product
    return total


@pytest.mark.parametrize("size", [3, 4, 5])
def test_sums_without_leaves_are_the_mappings(size: int) -> None:
    for query in naive.connected_patterns(size):
        found = without_leaves(query.edges, size)
        for one in found:
            assert one.size == 1 or min(Counter(v for edge in one.edges for v in edge).values()) > 1
        want = naive.count_mappings(GRAPH, query)
        assert sum(number * weighed_sum(one) for one, number in found.items()) == want, query


def test_patterns_are_the_same_up_to_isomorphism_with_weights() -> None:
    a, b = (("nsum", None, None),), (("nsum", ("nsum", None, None), None),)
    path = ((0, 1), (1, 2))
    assert canonical(path, (a, (), b)) == canonical(path, (b, (), a))
    assert canonical(path, (a, (), b)) != canonical(path, (a, b, ()))
    assert canonical(((0, 2), (1, 2)), (b, a, ())) == canonical(path, (a, (), b))
