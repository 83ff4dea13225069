"""Sums of counts of a query's parts against brute force, however they are cut, put off, cached, and modulo what."""

from __future__ import annotations

from itertools import combinations, pairwise, product
from math import comb
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from query_lab import Budget, query_graph, relaxed, space_of
from strategies import graphs, queries

from longwall.kernels.host.queries.candidate_space import CandidateSpace
from longwall.kernels.host.queries.sums import separators, terms
from longwall.kernels.host.queries.sums.counter import QueryAdder, QuerySum, bytes_for
from longwall.kernels.host.queries.sums.separators import Constraints, SeparatorTree, bits, separator_tree

PRIME = 2**31 - 1


def added(sums: QuerySum, cuts: Any = (), steps: int = 1 << 20, modulus: int = 0) -> tuple[int, float]:
    """Add up all ranges of roots with one workspace."""
    adder, total, magnitude = QueryAdder(sums, modulus), 0, 0.0
    for first, last in pairwise(sorted({0, sums.roots, *(cut % sums.roots for cut in cuts)})):
        adder.begin(first, last)
        while not adder.over:
            number, size = adder.advance(steps)
            total, magnitude = total + number, magnitude + size
    return total % (modulus or 2**64), magnitude


def sums_of(space: CandidateSpace, budget: Budget, **cache: int) -> QuerySum:
    return QuerySum(space, budget.reserve, **cache)


@pytest.mark.hypothesis
@settings(relaxed, max_examples=120)
@given(small=graphs(max_vertices=10), query=queries(min_size=2, max_size=6, labelled=True), choice=st.data())
def test_sums_are_counts_of_brute_force(lab, small, query, choice):
    labels = choice.draw(st.sampled_from([query.labels, (-1,) * query.size]))
    query = naive.Query(query.size, query.edges, labels)
    want = sum(1 for _ in naive.mappings(small.edges, query, small.labels))
    budget = Budget()
    space = space_of(lab, small.edges, small.labels, query, budget)
    if not space.roots:
        assert not want
        return
    sums = sums_of(space, budget, cache_bytes=choice.draw(st.sampled_from([0, 200, 1 << 20])))
    cuts = choice.draw(st.lists(st.integers(0, 9), max_size=3))
    number, magnitude = added(sums, cuts)
    assert number == want
    assert magnitude >= want
    assert added(sums, cuts, steps=choice.draw(st.integers(1, 5))) == (number, pytest.approx(magnitude))
    assert added(sums, modulus=PRIME)[0] == want % PRIME
    assert bytes_for(sums) > 0
    sums.close()
    space.close()
    assert not budget.held


@pytest.mark.parametrize("most", [0, 3, 1000])
@pytest.mark.parametrize("worth", [0.0, 2.0, 1e9])
def test_pairs_are_told_apart_in_either_way(lab, monkeypatch, most, worth):
    """Whatever is left to inclusion-exclusion, and whatever is kept apart while matching, the count is the same."""
    monkeypatch.setattr(terms, "_MOST_TERMS", most)
    monkeypatch.setattr(terms, "_WORTH", worth)
    monkeypatch.setattr(terms, "TERM_COST", 0.0)
    rng = np.random.default_rng(3)
    edges = [(u, v) for u, v in combinations(range(12), 2) if rng.random() < 0.5]
    query = naive.Query(7, ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (2, 6)), (0, 1, 0, 1, 0, 1, 1))
    labels = {v: v % 2 for v in range(12)}
    budget = Budget()
    space = space_of(lab, edges, labels, query, budget)
    sums = sums_of(space, budget)
    assert added(sums)[0] == sum(1 for _ in naive.mappings(edges, query, labels))
    assert (len(sums.terms) > 1) == (worth < 1e9 and most > 0)


@pytest.mark.quick_cases(12)
@pytest.mark.parametrize("most", [0, 3, 20, 1000])
@pytest.mark.parametrize("worth", [0.0, 1.5, 3.0])
@pytest.mark.parametrize(
    "ends",
    [((0, 2), (1, 3), (0, 4), (1, 5), (0, 6)), ((0, 2), (0, 3), (0, 4), (1, 5)), ((2, 3), (1, 4), (1, 5), (1, 6))],
)
def test_copies_are_added_up_vertex_by_vertex(lab, monkeypatch, most, worth, ends):
    """Leaves of one label at two or three vertices, in any order, with some pairs kept apart while matching."""
    monkeypatch.setattr(terms, "_MOST_TERMS", most)
    monkeypatch.setattr(terms, "_WORTH", worth)
    monkeypatch.setattr(terms, "TERM_COST", 0.0)
    rng = np.random.default_rng(4)
    edges = [(u, v) for u, v in combinations(range(9), 2) if rng.random() < 0.6]
    pairs = ((0, 1), *ends) if (2, 3) not in ends else ((0, 1), (1, 2), *ends)
    query = naive.Query(1 + max(map(max, pairs)), pairs, (0,) * (1 + max(map(max, pairs))))
    labels = dict.fromkeys(range(9), 0)
    budget = Budget()
    sums = sums_of(space_of(lab, edges, labels, query, budget), budget)
    assert added(sums)[0] == sum(1 for _ in naive.mappings(edges, query, labels))


def ways_to_share(first: int, second: int) -> int:
    """Ways to part leaves of two vertices into classes, the leaves of each being alike."""
    ways = {(0, 0): 1}
    for part in product(range(first + 1), range(second + 1)):
        if any(part):
            for whole in sorted(product(range(first + 1), range(second + 1))):
                before = whole[0] - part[0], whole[1] - part[1]
                ways[whole] = ways.get(whole, 0) + ways.get(before, 0)
    return ways[first, second]


def test_double_stars_have_no_more_terms_than_ways_to_share_leaves(lab, monkeypatch):
    """Nine leaves of one label can coincide in 21,147 ways; those that differ by the order of leaves are one."""
    monkeypatch.setattr(terms, "_WORTH", 0.0)
    monkeypatch.setattr(terms, "TERM_COST", 0.0)
    own, common = 40, 60
    first, second = range(2, 2 + own + common), range(2 + own, 2 + 2 * own + common)
    edges = [(0, 1), *((0, v) for v in first), *((1, v) for v in second)]
    leaves = [(0, 2), (1, 3), (0, 4), (1, 5), (0, 6), (1, 7), (0, 8), (1, 9), (0, 10)]
    query = naive.Query(11, ((0, 1), *leaves), (0, 1, *[2] * 9))
    budget = Budget()
    labels = {0: 0, 1: 1} | dict.fromkeys(range(2, 2 + 2 * own + common), 2)
    sums = sums_of(space_of(lab, edges, labels, query, budget), budget)
    assert len(sums.terms) == ways_to_share(5, 4)
    assert not any(distinct for term in sums.terms for distinct in term.constraints.distinct)
    ways = (comb(common, s) * comb(own, 5 - s) * comb(own + common - s, 4) for s in range(6))
    assert added(sums)[0] == 120 * 24 * sum(ways)


def test_a_count_of_more_than_64_bits_is_known_modulo_several_numbers(lab):
    hubs = 12
    edges = list(pairwise(range(hubs))) + [(hub, hubs + 100 * hub + leaf) for hub in range(hubs) for leaf in range(100)]
    labels = {vertex: vertex if vertex < hubs else hubs + (vertex - hubs) // 100 for edge in edges for vertex in edge}
    pattern = (*pairwise(range(hubs)), *((hub, hubs + hub) for hub in range(hubs)))
    budget = Budget()
    space = space_of(lab, edges, labels, naive.Query(2 * hubs, pattern, tuple(range(2 * hubs))), budget)
    sums = sums_of(space, budget)
    for modulus in (0, PRIME):
        number, magnitude = added(sums, modulus=modulus)
        assert number == 100**hubs % (modulus or 2**64)
        assert magnitude == pytest.approx(100.0**hubs)


def check(tree: SeparatorTree, wanted: Constraints) -> None:
    """A part below a vertex is joined to its separator alone, and that lies above."""
    place = {v: at for at, v in enumerate(tree.order)}
    assert sorted(tree.order) == list(range(len(wanted.adjacent)))
    below = [1 << v for v in range(len(tree.order))]
    for v in reversed(tree.order[1:]):
        assert place[tree.parents[v]] < place[v]
        below[tree.parents[v]] |= below[v]
    above = {tree.order[0]: 0}
    for v in tree.order[1:]:
        above[v] = above[tree.parents[v]] | 1 << tree.parents[v]
    for v in tree.order:
        joined = 0
        for w in bits(below[v]):
            joined |= wanted.adjacent[w] | wanted.distinct[w]
        assert tree.separators[v] == joined & ~below[v] == tree.separators[v] & above[v]


@settings(relaxed, max_examples=60)
@given(query=queries(min_size=2, max_size=7), choice=st.data())
def test_separators_are_what_a_part_is_joined_to(query, choice):
    near = query_graph(query).adjacent
    size = query.size
    pairs = choice.draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=4))
    distinct = [0] * size
    for u, v in pairs:
        if u != v and not near[u] >> v & 1:
            distinct[u] |= 1 << v
            distinct[v] |= 1 << u
    sizes = tuple(choice.draw(st.lists(st.floats(0, 9), min_size=size, max_size=size)))
    wanted = Constraints(near, tuple(distinct), sizes, tuple(dict.fromkeys(bits(one), -2.0) for one in near))
    check(separator_tree(wanted), wanted)
    order = choice.draw(st.permutations(range(size)))
    known = separators.tree_of(wanted, order)
    check(known, wanted)
    assert separator_tree(wanted, [order]).cost <= known.cost


def test_a_cycle_is_followed_from_one_vertex():
    """Else a long cycle of many candidates each would need all triples of them."""
    size, candidates, neighbours = 12, 100.0, 5.0
    near = tuple(1 << (v + 1) % size | 1 << (v - 1) % size for v in range(size))
    density = float(np.log(neighbours / candidates))
    wanted = Constraints(near, (0,) * size, (float(np.log(candidates)),) * size, tuple(
        dict.fromkeys(bits(one), density) for one in near
    ))  # fmt: skip
    assert separator_tree(wanted).cost < 2 * size * candidates**2 * neighbours
