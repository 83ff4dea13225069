"""Independent sets among the neighbours of vertices, against brute force and networkx."""

from __future__ import annotations

import random
from itertools import combinations
from math import comb, prod
from typing import Any

import naive
import networkx as nx
import numpy as np
import pytest

from longwall.kernels.host.stars import counter
from longwall.kernels.host.stars.counter import ChoiceCounter, StarCounter, TakesLong
from longwall.kernels.host.stars.independent_sets import most_joined
from longwall.kernels.host.stars.polynomials import Leaves

PRIMES = (2**31 - 1, 2**31 - 19)


def stars(graph: Any, leaves: int, *, steps: int = 1 << 40, most: int = 1 << 40) -> list[int]:
    """Count induced stars modulo the primes."""
    n = graph.num_vertices
    return labelled_stars(graph, np.zeros(n, np.int8), np.ones(n, bool), Leaves((), leaves), steps=steps, most=most)


def labelled_stars(
    graph: Any, kinds: Any, centres: Any, leaves: Leaves, *, steps: int = 1 << 40, most: int = 1 << 40
) -> list[int]:
    """Count induced stars whose leaves want labels modulo the primes."""
    roots = int(np.count_nonzero(np.diff(graph.indptr) >= leaves.number))
    edges = int(most_joined(graph.indptr, graph.indices, graph.split, roots))
    kernel = StarCounter(graph.indptr, graph.indices, graph.split, kinds, centres, leaves, PRIMES, edges, most)
    return counted(kernel, roots, steps)


def counted(kernel: Any, roots: int, steps: int) -> list[int]:
    at = 0
    while at < roots:
        at, _ = kernel.advance(at, roots, steps)
    return kernel.take()


def independent_sets(near: dict[int, set[int]], leaves: int) -> int:
    return sum(
        all(b not in near[a] for a, b in combinations(some, 2))
        for v in near
        for some in combinations(sorted(near[v]), leaves)
    )


def test_stars_of_random_graphs(lab: Any, seeds: Any) -> None:
    for seed in seeds(200):
        chance = random.Random(seed)
        n, share = chance.randint(3, 13), chance.choice((0.05, 0.1, 0.2, 0.3, 0.5))
        edges = {pair for pair in combinations(range(n), 2) if chance.random() < share}
        edges |= {(0, v) for v in range(1, n) if chance.random() < 0.9} | {(0, 1)}
        leaves = chance.randint(1, 6)
        found = stars(lab.graph(sorted(edges)), leaves, steps=chance.choice((1, 1 << 40)))
        assert found == [independent_sets(naive.adjacency(sorted(edges)), leaves)] * 2, (seed, leaves)


@pytest.mark.parametrize("make", [nx.path_graph, nx.cycle_graph, nx.complete_graph, nx.star_graph, nx.ladder_graph])
def test_a_hub_over_a_graph_that_is_known(lab: Any, make: Any) -> None:
    """Sets of the hub's neighbours, and of the two that the hub and another one have in common are none of five."""
    for size in (3, 4, 7, 12):
        inner = make(size)
        edges = [*inner.edges, *((-1, v) for v in inner)]
        near = {v: set(inner[v]) for v in inner}
        wanted = sum(all(b not in near[a] for a, b in combinations(some, 2)) for some in combinations(sorted(inner), 5))
        others = independent_sets(naive.adjacency(edges), 5) - wanted
        assert stars(lab.graph(edges), 5) == [wanted + others] * 2


def test_numbers_are_modulo_the_primes(lab: Any) -> None:
    n = 5000
    found = stars(lab.graph((0, v) for v in range(1, n + 1)), 8)
    assert found == [comb(n, 8) % prime for prime in PRIMES]


def test_stars_that_take_long_or_do_not_fit_are_given_up(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = nx.gnm_random_graph(60, 200, seed=3)
    graph = lab.graph([*inner.edges, *((-1, v) for v in inner)])
    with pytest.raises(TakesLong):
        stars(graph, 8, most=10_000)
    monkeypatch.setattr(counter, "MOST_FOREST", 20)
    with pytest.raises(TakesLong):
        stars(graph, 8)


def ways(kinds: list[int], leaves: Leaves) -> int:
    """Ways to give vertices of these kinds to the classes of leaves, each vertex to one class."""
    if -1 in kinds or (not leaves.free and len(leaves.named) in kinds):
        return 0
    return prod(comb(kinds.count(c), number) for c, number in enumerate(leaves.named))


def test_labelled_stars_of_random_graphs(lab: Any, seeds: Any) -> None:
    """Paths and cycles of many labels, forests and cuts, with leaves that want labels and others that want none."""
    for seed in seeds(200):
        chance = random.Random(seed)
        n, share = chance.randint(3, 11), chance.choice((0.0, 0.1, 0.2, 0.4))
        edges = {pair for pair in combinations(range(1, n), 2) if chance.random() < share}
        edges |= {(0, v) for v in range(1, n)}
        if chance.random() < 0.4:
            edges |= {(v, v + 1) for v in range(1, n - 1)}
        if chance.random() < 0.4 and n > 3:
            edges |= {(1, n - 1)} | {(v, v + 1) for v in range(1, n - 1)}
        graph = lab.graph(sorted(edges))
        named = tuple(chance.randint(1, 2) for _ in range(chance.randint(0, 3)))
        leaves = Leaves(named, chance.randint(0 if named else 1, 2))
        kinds = np.array([chance.randint(-1, len(named) if leaves.free else len(named) - 1) for _ in range(n)], np.int8)
        kinds[chance.randrange(n)] = 0
        centres = np.array([chance.random() < 0.9 for _ in range(n)])
        near = {v: set(graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist()) for v in range(n)}
        wanted = {True: 0, False: 0}
        for v in np.flatnonzero(centres).tolist():
            for some in combinations(sorted(near[v]), leaves.number):
                found = ways([int(kinds[u]) for u in some], leaves)
                wanted[False] += found
                wanted[True] += found * all(b not in near[a] for a, b in combinations(some, 2))
        steps = chance.choice((1, 1 << 40))
        assert labelled_stars(graph, kinds, centres, leaves, steps=steps) == [wanted[True]] * 2, seed
        every = ChoiceCounter(graph.indptr, graph.indices, kinds, centres, leaves, PRIMES)
        assert counted(every, n, steps) == [wanted[False]] * 2, seed
