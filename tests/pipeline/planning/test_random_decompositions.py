"""Decompositions of random patterns of 4 to 8 vertices, with labels or without, against sums over all maps."""

from __future__ import annotations

import random
from itertools import combinations, pairwise
from typing import Any

import pytest
from naive_homomorphisms import count_homomorphisms
from selection import on_device

from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.homomorphisms.count import HomomorphismCount
from longwall.pipeline.planning.homomorphisms.decompositions import Decomposer
from longwall.pipeline.planning.homomorphisms.pattern_core import Expression, NoDecomposition, PassCosts
from longwall.pipeline.planning.homomorphisms.sums import HomomorphismSums, Term
from longwall.pipeline.planning.homomorphisms.table_compiler import compile_sums

SLICES, PATTERNS = 10, 400  # of a slice
VERTICES, LABELS = 9, 3
STORED = (1167, 1275, 2313, 2326)  # in these the table of a part is made of sums over vertices
COSTS = tuple(
    PassCosts(1e6, arcs, wide, lists=lists, common=common)
    for arcs in (1e3, 1e6, 1e9)
    for wide in (1.0, 1e9)
    for lists, common in ((True, 0.0), (True, 1e9), (False, 0.0))
)


def draw_pattern(chance: random.Random) -> Pattern:
    """Draw a tree with further edges, or cycles and cliques that share vertices and edges."""
    edges: set[tuple[int, int]] = {(0, 1)}
    size, most = 2, chance.choice((4, 5, 6, 7, 8, 8, 8))
    if chance.random() < 0.3:
        edges = {(chance.randrange(v), v) for v in range(1, most)}
        edges |= {tuple(sorted(chance.sample(range(most), 2))) for _ in range(chance.randrange(most))}
        return Pattern(most, tuple(sorted(edges)))
    while size < most:
        new = range(size, min(size + chance.choice((1, 2, 2, 3, 3)), most))
        ends = chance.choice(sorted(edges)) if chance.random() < 0.5 else (chance.randrange(size),) * 2
        part = [ends[0], *new, ends[1]]
        edges |= {tuple(sorted(pair)) for pair in pairwise(part)}
        if chance.random() < 0.3:
            edges |= {tuple(sorted(pair)) for pair in combinations(sorted({*part}), 2) if chance.random() < 0.7}
        size = new.stop
    return Pattern(size, tuple(sorted(edges)))


def draw_labels(chance: random.Random, size: int) -> dict[int, int]:
    """Draw the labels of no vertex, of some, or of all."""
    share = chance.choice((0.0, 0.2, 0.5, 0.8, 1.0))
    return {v: chance.randrange(LABELS) for v in range(size) if chance.random() < share}


def check(lab: Any, engine: str, seed: int) -> bool:
    """Compare the number of homomorphisms with the definition; return whether the pattern has a decomposition."""
    chance = random.Random(seed)
    pattern, costs = draw_pattern(chance), chance.choice(COSTS)
    labels, share = draw_labels(chance, pattern.num_vertices), chance.choice((0.4, 0.6, 0.9))
    weights: dict[int, Expression] = {v: ("label", label) for v, label in labels.items()}
    try:
        program, _ = compile_sums([Decomposer(costs).count(pattern, weights)], lists=False)
    except NoDecomposition:
        return False
    edges = [pair for pair in combinations(range(VERTICES), 2) if chance.random() < share] or [(0, 1)]
    number = {v: i for i, v in enumerate(sorted({v for edge in edges for v in edge}))}
    edges = [(number[u], number[v]) for u, v in edges]
    data_labels = {v: chance.randrange(LABELS) for v in number.values()}
    images = {v: [x for x, found in data_labels.items() if found == label] for v, label in labels.items()}
    sums = HomomorphismSums((pattern,), program, (pattern,), ((Term(1, "total", 0),),), costs)
    run = lab.context(lab.graph(edges, data_labels if labels else None), engine=engine, threads=2)
    found = HomomorphismCount(sums)._homomorphisms(run)
    run.close()
    assert found == [count_homomorphisms(edges, pattern.edges, images)], (seed, pattern.edges, labels, costs)
    return True


def test_the_first_patterns(lab: Any, engine_kind: str) -> None:
    seeds = (*STORED, *range(on_device(150, 4, 2)))
    assert sum(check(lab, engine_kind, seed) for seed in seeds) > 0.8 * len(seeds)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(SLICES))
def test_more_patterns(lab: Any, engine_kind: str, number: int) -> None:
    first, number_of_seeds = number * PATTERNS + 1000, on_device(PATTERNS, 4, 2)
    found = sum(check(lab, engine_kind, seed) for seed in range(first, first + number_of_seeds))
    assert found > 0.4 * number_of_seeds
