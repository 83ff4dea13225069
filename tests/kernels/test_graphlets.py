"""Graphlets, their orbits and the linear maps between ways to count them, against networkx and the published figure."""

from __future__ import annotations

from itertools import combinations
from math import comb, perm

import naive_orbits
import networkx as nx
import numpy as np

from longwall.kernels.host.patterns.graphlets import (
    Graphlet,
    graphlet_orbits,
    graphlets,
    injective_of_homomorphisms,
    orbit_of,
    orbits_up_to,
    root_automorphisms,
    spanning_trees_of,
    subgraphs_of_induced,
)


def test_orbits_are_numbered_as_published():
    orbits = graphlet_orbits()
    assert len(orbits) == len(naive_orbits.figure()) == 73
    for orbit, published in zip(orbits, naive_orbits.figure(), strict=True):
        graphlet = graphlets()[orbit.graphlet]
        assert naive_orbits.rooted(tuple(sorted(graphlet.edges)), graphlet.size, orbit.root) == published
    assert [orbits_up_to(size) for size in (2, 3, 4, 5)] == [1, 4, 15, 73]


def test_orbits_are_those_of_automorphisms():
    for number, graphlet in enumerate(graphlets()):
        found = naive_orbits.automorphism_orbits(tuple(graphlet.edges))
        assert sorted(map(len, found)) == sorted(one.size for one in graphlet_orbits() if one.graphlet == number)
        for orbit in found:
            assert len({orbit_of(graphlet, v) for v in orbit}) == 1


def test_every_connected_graph_is_one_graphlet():
    found = set()
    for size in range(2, 6):
        pairs = list(combinations(range(size), 2))
        for bits in range(1 << len(pairs)):
            edges = [pair for i, pair in enumerate(pairs) if bits >> i & 1]
            graph = nx.Graph(edges)
            if len(graph) == size and nx.is_connected(graph):
                number = graphlet_orbits()[orbit_of(Graphlet.of(edges), 0)].graphlet
                known = graphlets()[number]
                if number not in found:
                    assert nx.is_isomorphic(graph, nx.Graph(known.edges))
                found.add(number)
    assert found == set(range(30))


def test_the_maps_are_right_on_complete_graphs():
    """On n vertices that are all adjacent, everything is a product of numbers of choices."""
    n = 6
    automorphisms, injective, within = root_automorphisms(), injective_of_homomorphisms(), subgraphs_of_induced()
    maps, edges = np.zeros(73, np.int64), list(combinations(range(n), 2))
    for number, orbit in enumerate(graphlet_orbits()):
        _, pairs = naive_orbits.figure()[number]
        size = graphlets()[orbit.graphlet].size
        maps[number] = naive_orbits.homomorphisms(edges, pairs, size)[0]
    one_to_one = injective @ maps
    for number, orbit in enumerate(graphlet_orbits()):
        size = graphlets()[orbit.graphlet].size
        assert one_to_one[number] == perm(n - 1, size - 1)
        assert one_to_one[number] % automorphisms[number] == 0
    for size in (2, 3, 4, 5):
        clique = orbits_up_to(size) - 1
        for number in range(orbits_up_to(size - 1) if size > 2 else 0, orbits_up_to(size)):
            subgraphs = one_to_one[number] // automorphisms[number]
            assert subgraphs == within[number, clique] * comb(n - 1, size - 1)


def test_spanning_trees():
    assert spanning_trees_of(0) == [0]
    assert spanning_trees_of(3) == [1, 2]
    assert spanning_trees_of(34) == [15, 16, 17]
    assert spanning_trees_of(72) == list(range(15, 24))
