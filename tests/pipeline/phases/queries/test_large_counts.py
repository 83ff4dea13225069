"""Counts and limits of labelled queries of 9 and more vertices are exact, however large the counts are."""

from __future__ import annotations

import random
from itertools import pairwise
from math import comb, prod
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from large_counts import AROUND, count_by_frontier, layered, path, paths_of_number, written
from plans import plan_count
from query_lab import relaxed

import longwall
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.phases.queries import candidates, search
from longwall.pipeline.planning.methods import candidates as plans
from longwall.pipeline.planning.plan import Choice
from longwall.storage.memory.reservations import BudgetExceeded

LIMITS = (1, 5, 2**31, 2**53 + 1, 2**61 + 1, 2**62 - 1, 2**62, 2**62 + 1, 2**63 - 1)


def plan_of(context: Any, pattern: str, *, induced: bool = False) -> Choice:
    found = plan_count(parse_pattern(pattern), context.graph, induced=induced, without=("star-leaves",))
    assert found.method == "candidates"
    return found


def check(lab: Any, edges: Any, labels: dict[int, int], pattern: str, want: int, threads: int = 1) -> None:
    """Compare the count, and the counts with limits, with the number of embeddings that are wanted."""
    context = lab.context(lab.graph(edges, labels), threads=threads)
    plan = plan_of(context, pattern)
    assert plan.count(context) == want
    for limit in (5, 2**62 + 1):
        assert min(plan.count_up_to(limit, lab.context(context.graph, threads=threads)), limit) == min(want, limit)


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(
    "sizes",
    [
        *([4] * layers + [1] for layers in (31, 32, 33, 63)),
        [5] * 29 + [1],
        [3] * 42 + [1],
        [16] * 17 + [1],
        [8] * 21 + [1],
        [2] * 63 + [1],
        [4] * 20 + [1] + [4] * 20,
        [9] * 64,
    ],
    ids=lambda sizes: f"{sizes[0]}^{len(sizes)}",
)
def test_paths_through_layers(lab: Any, sizes: list[int]) -> None:
    check(lab, *layered(sizes), path(len(sizes)), prod(sizes))


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[200] * 9 + [1], [200] * 10 + [1]])
def test_paths_through_wide_layers(lab: Any, sizes: list[int]) -> None:
    check(lab, *layered(sizes), path(len(sizes)), prod(sizes), threads=2)


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("number", AROUND)
def test_numbers_around_powers_of_two(lab: Any, number: int) -> None:
    edges, labels = paths_of_number(number, 33, 16)
    check(lab, edges, labels, path(34), number)


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("times", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("number", [2**61 - 1, 10**30, 2**60 + 1, 4**31])
def test_a_path_hangs_from_a_triangle(lab: Any, number: int, times: int) -> None:
    """The vertex that the path hangs from has several images, each with many images of the path below."""
    inner, labels = paths_of_number(number, 26, 16)
    hanging = [(max(labels) + 1 + at, x) for at in range(times) for u, x in inner if u == 0]
    rest = [pair for pair in inner if pair[0] != 0]
    first = max(labels) + 1
    ends = first + times, first + times + 1
    edges = [*rest, *hanging, ends, *((end, first + at) for end in ends for at in range(times))]
    labels = {x: label + 2 for x, label in labels.items() if x} | {ends[0]: 0, ends[1]: 1}
    labels |= {first + at: 2 for at in range(times)}
    check(lab, edges, labels, f"{path(29)},(v0)-(v2)", times * number)


def test_a_cycle_has_hanging_paths_at_all_vertices(lab: Any) -> None:
    """Every vertex of a cycle of 4 begins a path of 8 more vertices."""
    sizes = [6] * 36
    query = [(at, (at + 1) % 4) for at in range(4)]
    query += [pair for at in range(4) for pair in pairwise([at, *range(4 + 8 * at, 12 + 8 * at)])]
    edges = [(6 * u + a, 6 * v + b) for u, v in query for a in range(6) for b in range(6)]
    labels = {x: x // 6 for x in range(sum(sizes))}
    check(lab, edges, labels, written(query, range(36)), 6**36, threads=2)


@pytest.mark.parametrize("labelled", [True, False])
def test_a_broom_has_leaves_of_one_label(lab: Any, labelled: bool) -> None:
    """A path through wide layers ends in leaves that are distinct vertices of one label, or of any."""
    sizes = [9] * 7 + [1, 400]
    edges, labels = layered(sizes)
    leaf = 8 if labelled else -1
    query = [*pairwise(range(8)), *((7, 8 + at) for at in range(6))]
    context = lab.context(lab.graph(edges, labels))
    plan = plan_of(context, written(query, [*range(8), *[leaf] * 6]))
    others = 0 if labelled else 8  # the other vertices of the last but one layer
    assert plan.automorphisms == 720
    assert plan.count(context) == 9**7 * comb(400 + others, 6)


def test_any_label_in_the_middle(lab: Any) -> None:
    edges, labels = layered([30] * 14)
    context = lab.context(lab.graph(edges, labels), threads=2)
    wanted = [-1 if at == 6 else at for at in range(14)]
    plan = plan_of(context, written(pairwise(range(14)), wanted))
    assert plan.count(context) == 30**14
    assert plan.count_up_to(7, lab.context(context.graph)) == 7


def test_a_hub_with_leaves_of_many_labels(lab: Any) -> None:
    """A hub has 120 leaves of each of 60 labels: about 2**414 choices."""
    edges = [(0, 1 + at) for at in range(60 * 120)]
    labels = {0: 60} | {1 + at: at % 60 for at in range(60 * 120)}
    context = lab.context(lab.graph(edges, labels))
    pattern = written([(0, 1 + at) for at in range(60)], [60, *range(60)])
    assert plan_of(context, pattern).count(context) == 120**60


def test_the_most_that_terms_can_be_says_how_many_primes_are_needed(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where floating point ends, as with the leaves below."""
    monkeypatch.setattr("longwall.pipeline.phases.queries.sums.MOST_KNOWN", 1.0)
    edges, labels = layered([4] * 60)
    context = lab.context(lab.graph(edges, labels))
    assert plan_of(context, path(60)).count(context) == 4**60


@pytest.mark.slow
def test_counts_of_more_than_floating_point_holds() -> None:
    """80,000 leaves of each of 63 labels, and no other one: about 2**1026 choices."""
    leaves = 80_000
    vertices = np.arange(63 * leaves + 1)
    labels = np.concatenate([[63], np.arange(63 * leaves) % 63])
    graph = longwall.graph(np.stack([np.zeros(63 * leaves, np.int64), vertices[1:]], 1), labels=(vertices, labels))
    pattern = written([(0, 1 + at) for at in range(63)], [63, *range(63)])
    assert longwall.count(graph, pattern) == leaves**63


def test_limits_of_mappings(lab: Any) -> None:
    """A star of equal leaves: each embedding is 8! mappings, so that a limit is of more than 64 bits of these."""
    labels = {0: 0} | dict.fromkeys(range(1, 2001), 1)
    context = lab.context(lab.graph([(0, leaf) for leaf in range(1, 2001)], labels))
    pattern = ",".join(f"(c:0)-(a{leaf}:1)" for leaf in range(8))
    plan = plan_of(context, pattern)
    for limit in LIMITS:
        assert min(plan.count_up_to(limit, lab.context(context.graph)), limit) == limit
    assert max(LIMITS) < comb(2000, 8)


def test_a_search_that_goes_on_is_exact(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Terms that are estimated to take too long are added up, if numbers are too large for the search."""
    monkeypatch.setattr(plans, "_MOST_COST", -1.0)
    edges, labels = layered([4] * 40)
    context = lab.context(lab.graph(edges, labels))
    assert plan_of(context, path(40)).count(context) == 4**40


def test_without_room_for_terms_small_numbers_are_searched_for(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of the search are below 2**62 each, and all of them together are not."""

    def refused(*_: Any) -> Any:
        raise BudgetExceeded("the budget has no room")

    monkeypatch.setattr(candidates, "QuerySum", refused)
    monkeypatch.setattr(plans, "_PATIENCE", 1)
    edges, labels = layered([9, *[16] * 15])
    # Both ends of the path are joined, so that nothing hangs from it but from a vertex of the cycle.
    edges += [(u, v) for u in labels if labels[u] == 0 for v in labels if labels[v] == 2]
    context = lab.context(lab.graph(edges, labels))
    pattern = f"{path(16)},(v0)-(v2)"
    monkeypatch.setattr(plans, "terms_of", lambda *_: type("Terms", (), {"cost": 0.0}))
    assert plan_of(context, pattern).count(context) == 9 * 16**15 > 2**62


def test_induced_queries(lab: Any) -> None:
    edges, labels = layered([3] * 11)
    context = lab.context(lab.graph(edges, labels), threads=2)
    plan = plan_of(context, path(11), induced=True)
    assert plan.count(context) == 3**11
    for limit in LIMITS:
        assert min(plan.count_up_to(limit, lab.context(context.graph)), limit) == min(3**11, limit)


@pytest.mark.parametrize("want", [0, 1])
def test_queries_with_no_match_or_one(lab: Any, want: int) -> None:
    edges, labels = layered([1, *[1, 4] * 12])
    if not want:
        edges = [pair for pair in edges if 12 not in (labels[pair[0]], labels[pair[1]])]
    labels |= {x: 100 for x, label in labels.items() if label % 2 == 0 and label and x % 5 != 2}
    check(lab, edges, labels, path(25), want)


@pytest.mark.hypothesis
@settings(relaxed, max_examples=40)
@given(seed=st.integers(0, 2**32), size=st.integers(9, 20), extra=st.integers(0, 2), width=st.integers(1, 6))
def test_random_queries_of_distinct_labels(lab: Any, seed: int, size: int, extra: int, width: int) -> None:
    """Trees, and some with a cycle or two, in graphs of their labels that have most of the edges."""
    choose = random.Random(seed)
    query = [(choose.randrange(max(v - 3, 0), v), v) for v in range(1, size)]
    for _ in range(extra):
        v = choose.randrange(2, size)
        query.append((choose.randrange(max(v - 4, 0), v), v))
    query = sorted(set(query))
    share = choose.choice([0.5, 0.9, 1.0])
    edges = [
        (u * width + a, v * width + b)
        for u, v in query
        for a in range(width)
        for b in range(width)
        if choose.random() < share
    ] or [(0, width)]
    labels = {x: x // width for x in range(size * width)}
    naive_query = naive.Query(size, tuple(query), tuple(range(size)))
    want = count_by_frontier(edges, naive_query, labels)
    context = lab.context(lab.graph(edges, labels), threads=choose.choice([1, 2]))
    plan = plan_of(context, written(query, range(size)))
    assert plan.count(context) == want
    limit = choose.choice([1, 5, max(want - 1, 1), want + 1])
    assert min(plan.count_up_to(limit, lab.context(context.graph)), limit) == min(want, limit)


@pytest.mark.hypothesis
@settings(relaxed, max_examples=40)
@given(seed=st.integers(0, 2**32), size=st.integers(9, 11), induced=st.booleans())
def test_random_queries_against_brute_force(lab: Any, seed: int, size: int, induced: bool) -> None:
    """Few labels, some of them any, in graphs of 12 vertices."""
    choose = random.Random(seed)
    query = sorted({(choose.randrange(v), v) for v in range(1, size)} | {(0, size - 1)})
    wanted = tuple(choose.choice([0, 1, 2, 3, -1]) if choose.random() < 0.3 else v % 4 for v in range(size))
    edges = [(u, v) for v in range(12) for u in range(v) if choose.random() < 0.4] + [(0, 11)]
    labels = {x: x % 4 for x in range(12)}
    naive_query = naive.Query(size, tuple(query), wanted, induced)
    want = naive.count_mappings(edges, naive_query, labels)
    context = lab.context(lab.graph(edges, labels))
    plan = plan_of(context, written(query, wanted), induced=induced)
    assert plan.count(context) * plan.automorphisms == want
    assert min(plan.count_up_to(3, lab.context(context.graph)), 3) == min(want // plan.automorphisms, 3)


def test_the_search_says_up_to_which_limit_it_is_exact(lab: Any) -> None:
    edges, labels = layered([4] * 33)
    context = lab.context(lab.graph(edges, labels))
    phase = plan_of(context, path(33)).best.phase
    with pytest.raises(search.NotEnoughMemory):
        context.run(phase)
