"""The search in candidate lists against brute force, however it is cut and put off, and its parts alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from math import perm
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from query_lab import Budget, query_graph, relaxed, space_of
from strategies import graphs, queries

from longwall.kernels.host.queries.candidate_space import CandidateSpace
from longwall.kernels.host.queries.densest_part import densest_part, densest_parts, part_bytes
from longwall.kernels.host.queries.matcher import QueryMatcher
from longwall.kernels.host.queries.order import MOST_OF_A_GROUP, hanging_vertices, split_query
from longwall.stages.source import host_arrays


def found(space: CandidateSpace, cuts: Any, steps: int = 1 << 20, most: int | None = None) -> int:
    """Search all ranges of roots with one workspace, to the end or until `most` are found."""
    if not space.roots:
        return 0
    matcher, total = QueryMatcher(space), 0
    for first, last in pairwise(sorted({0, space.roots, *(cut % space.roots for cut in cuts)})):
        matcher.begin(first, last)
        while not matcher.over and (most is None or total < most):
            total += matcher.advance(None if most is None else most - total, steps)
    return total


@settings(relaxed, max_examples=300)
@given(small=graphs(max_vertices=10), query=queries(max_size=6, labelled=True), choice=st.data())
def test_mappings_are_those_of_brute_force(lab, small, query, choice):
    some = choice.draw(st.sampled_from(["all", "some", "none"]))
    if some != "all":
        keep = choice.draw(st.lists(st.booleans(), min_size=query.size, max_size=query.size))
        labels = [one if kept and some == "some" else -1 for one, kept in zip(query.labels, keep, strict=True)]
        query = replace(query, labels=tuple(labels))
    want = sum(1 for _ in naive.mappings(small.edges, query, small.labels))
    budget = Budget()
    space = space_of(lab, small.edges, small.labels, query, budget)
    cuts = choice.draw(st.lists(st.integers(0, 9), max_size=3))
    assert found(space, cuts) == want
    assert found(space, cuts, steps=choice.draw(st.integers(1, 5))) == want
    if want:
        most = choice.draw(st.integers(1, want))
        assert most <= found(space, cuts, steps=3, most=most) <= want
    space.close()
    assert not budget.held


def test_a_search_pauses_sooner_if_lists_are_long(lab):
    """A step is a candidate or 64 elements, so that a run ends soon, and other methods have their turn."""
    triangle = naive.Query(3, ((0, 1), (1, 2), (0, 2)), (0, 1, 2))
    for side, pauses in ((8, range(2)), (128, range(200, 1000))):
        edges = [(u, v) for u, v in combinations(range(3 * side), 2) if u % 3 != v % 3]
        space = space_of(lab, edges, {v: v % 3 for v in range(3 * side)}, triangle, Budget())
        matcher, total, seen = QueryMatcher(space), 0, -1
        matcher.begin(0, space.roots)
        while not matcher.over:
            total += matcher.advance(None, 256)
            seen += 1
        assert total == side**3
        assert seen in pauses


@settings(relaxed, max_examples=60)
@given(small=graphs(max_vertices=12), choice=st.data())
def test_the_densest_part_is_the_subgraph_of_the_first_vertices(lab, small, choice):
    whole = host_arrays(lab.graph(small.edges, small.labels))
    number = choice.draw(st.integers(1, whole.num_vertices))
    rows = [whole.indices[begin:end].tolist() for begin, end in pairwise(whole.indptr)]
    want = [[w for w in row if w < number] for row in rows[:number]]
    part = densest_part(whole, number)
    assert [part.indices[begin:end].tolist() for begin, end in pairwise(part.indptr)] == want
    assert (part.split - part.indptr[:-1]).tolist() == [sum(w < v for w in row) for v, row in enumerate(want)]
    assert part.max_degree == max(map(len, want))
    assert part.max_out_degree == max(sum(w < v for w in row) for v, row in enumerate(want))
    if small.labels is not None:
        assert part.labels.tolist() == whole.labels[:number].tolist()
    assert part_bytes(whole, number) >= part.indptr.nbytes + part.indices.nbytes + part.split.nbytes


def test_parts_have_small_shares_of_the_arcs(monkeypatch, lab):
    graph = host_arrays(lab.graph([(u, v) for u, v in combinations(range(300), 2) if v < 40 or v % 7 == u % 7], None))
    assert list(densest_parts(graph)) == []
    monkeypatch.setattr("longwall.kernels.host.queries.densest_part._LEAST_ARCS", graph.num_arcs)
    numbers = list(densest_parts(graph))
    assert numbers == [8, 64][: 1 + (densest_part(graph, 64).num_arcs <= graph.num_arcs // 8)]
    assert densest_part(graph, 8).num_arcs <= graph.num_arcs // 64


@settings(relaxed, max_examples=60)
@given(small=graphs(max_vertices=9), query=queries(min_size=3, max_size=6, labelled=True))
def test_no_match_loses_a_candidate(lab, small, query):
    space = space_of(lab, small.edges, small.labels, query, Budget())
    images = list(naive.mappings(small.edges, query, small.labels))
    for vertex, size in enumerate(space.sizes):
        assert len({image[vertex] for image in images}) <= size


@settings(relaxed, max_examples=100)
@given(small=graphs(max_vertices=10, num_labels=5), query=queries(min_size=3, max_size=6, labelled=True, num_labels=5))
def test_what_hangs_from_others_is_counted_beforehand(lab, small, query):
    want = sum(1 for _ in naive.mappings(small.edges, query, small.labels))
    space = space_of(lab, small.edges, small.labels, query, Budget())
    assert found(space, (1, 2), steps=2) == want


def test_hanging_vertices_begin_at_the_far_ends():
    # A triangle 0, 1, 2; 3 and 4 hang from 2 one behind the other, 5 has the label of 0, 6 hangs from 5.
    near = [0b0000110, 0b0100101, 0b0001011, 0b0010100, 0b0001000, 0b1000010, 0b0100000]
    assert hanging_vertices(near, [0, 1, 2, 3, 4, 0, 5]) == [(4, 3), (3, 2), (6, 5)]
    assert hanging_vertices([0b10, 0b01], [0, 1]) == [(0, 1)]
    assert hanging_vertices([0b10, 0b01], [0, 0]) == []


@pytest.mark.parametrize("leaves", [2, 3, MOST_OF_A_GROUP, MOST_OF_A_GROUP + 1])
def test_leaves_of_one_label_are_counted_as_distinct_vertices(lab, leaves):
    hub = [(0, v) for v in range(1, 31)]
    query = naive.Query(leaves + 1, tuple((0, v) for v in range(1, leaves + 1)), (0, *[1] * leaves))
    space = space_of(lab, hub, {0: 0} | dict.fromkeys(range(1, 31), 1), query, Budget())
    assert space.split is not None
    assert max(map(len, space.split.groups)) == min(leaves, MOST_OF_A_GROUP)
    if leaves <= MOST_OF_A_GROUP:
        assert found(space, ()) == perm(30, leaves)


def test_overlapping_candidates_of_three_leaves(lab):
    # Hubs 0, 1, 2 have leaves of one label, some of which they share.
    hubs = {0: range(10, 20), 1: range(15, 27), 2: range(18, 30)}
    edges = [(0, 1), (1, 2), *((hub, leaf) for hub, leaves in hubs.items() for leaf in leaves)]
    labels = {0: 0, 1: 1, 2: 2} | dict.fromkeys(range(10, 30), 3)
    query = naive.Query(6, ((0, 1), (1, 2), (0, 3), (1, 4), (2, 5)), (0, 1, 2, 3, 3, 3))
    space = space_of(lab, edges, labels, query, Budget())
    want = sum(1 for a in hubs[0] for b in hubs[1] for c in hubs[2] if len({a, b, c}) == 3)
    assert found(space, ()) == want == sum(1 for _ in naive.mappings(edges, query, labels))


def test_a_count_that_passes_64_bits_is_refused_but_for_a_limit(lab):
    hubs = 12
    edges = list(pairwise(range(hubs))) + [(hub, hubs + 100 * hub + leaf) for hub in range(hubs) for leaf in range(100)]
    labels = {vertex: vertex if vertex < hubs else hubs + (vertex - hubs) // 100 for edge in edges for vertex in edge}
    query = naive.Query(
        2 * hubs, (*pairwise(range(hubs)), *((hub, hubs + hub) for hub in range(hubs))), tuple(range(2 * hubs))
    )
    space = space_of(lab, edges, labels, query, Budget())
    with pytest.raises(OverflowError, match="does not fit 64-bit integers"):
        found(space, ())
    assert found(space, (), most=10**6) >= 10**6


@settings(relaxed, max_examples=100)
@given(query=queries(min_size=2, max_size=6), choice=st.data())
def test_what_is_matched_is_a_connected_cover(query, choice):
    near = query_graph(query).adjacent
    kinds = choice.draw(st.lists(st.integers(0, 2), min_size=query.size, max_size=query.size))
    split = split_query(
        near, kinds, choice.draw(st.lists(st.integers(1, 50), min_size=query.size, max_size=query.size))
    )
    counted = [v for group in split.groups for v in group]
    assert sum(1 << v for v in counted) == ((1 << query.size) - 1) & ~split.cover
    assert split.cover >> split.root & 1
    assert not any(near[u] >> v & 1 for u, v in combinations(counted, 2))
    assert all(len({kinds[v] for v in group}) == 1 for group in split.groups)
    assert len({kinds[group[0]] for group in split.groups}) == len(split.groups)
    matched = naive.adjacency((u, v) for u, v in query.edges if split.cover >> u & split.cover >> v & 1)
    reached = {split.root}
    while more := {w for v in reached for w in matched.get(v, ())} - reached:
        reached |= more
    assert reached == {v for v in range(query.size) if split.cover >> v & 1}


def test_64_vertices(lab):
    size = 64
    rng = np.random.default_rng(5)
    tree = [(int(rng.integers(max(0, v - 3), v)), v) for v in range(1, size)]
    query = naive.Query(size, tuple(tree), tuple(range(size)))
    copies = 3
    edges = [(copies * u + a, copies * v + b) for u, v in tree for a in range(copies) for b in range(copies)]
    labels = {copies * v + a: v for v in range(size) for a in range(copies)}
    one = space_of(lab, [(copies * u, copies * v) for u, v in tree], labels, query, Budget())
    assert found(one, ()) == 1
    many = space_of(lab, edges, labels, query, Budget())
    assert found(many, (), most=10**5) >= 10**5
