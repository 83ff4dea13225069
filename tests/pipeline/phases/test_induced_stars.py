"""Induced and labelled stars: closed forms at large hubs, brute force, and the search if it is needed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from math import comb, inf
from typing import Any

import naive
import networkx as nx
import numpy as np
import pytest
from plans import methods_of, plan_count, tried_first
from selection import on_device

import longwall
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases import star_count
from longwall.pipeline.planning.methods import star_leaves
from longwall.pipeline.planning.methods.star_leaves import StarLeavesPlan
from longwall.pipeline.planning.plan import Choice
from longwall.storage.graph.graph import Graph

Edge = tuple[int, int]


def star(leaves: int) -> Iterator[Edge]:
    return ((0, v) for v in range(1, leaves + 1))


def plan(graph: Graph, leaves: int) -> Choice:
    """The plan, whatever it is worth, ahead of the others."""
    pattern = parse_pattern(f"star-{leaves}")
    first = StarLeavesPlan(pattern, inf, induced=True, method="star-leaves")
    return tried_first(first, plan_count(pattern, graph, induced=True))


def counts_leaves(pattern: Pattern, graph: Graph, *, induced: bool = False, limit: int | None = None) -> bool:
    """Whether the choices of leaves are tried."""
    return "star-leaves" in methods_of(plan_count(pattern, graph, induced=induced, limit=limit, without=()))


def test_counts_equal_igraph(lab: Any, engine_kind: str, seeds: Any) -> None:
    for seed in seeds(on_device(60, 10)):
        chance = random.Random(seed)
        n, leaves = chance.randint(4, 12), chance.randint(3, 5)
        edges = {pair for pair in combinations(range(n), 2) if chance.random() < chance.choice((0.1, 0.3))}
        edges |= {(0, v) for v in range(1, n) if chance.random() < 0.9} | {(0, 1)}
        graph = lab.graph(sorted(edges))
        query = naive.Query(leaves + 1, tuple((0, v) for v in range(1, leaves + 1)), None, True)
        run, chosen = lab.context(graph, engine=engine_kind, threads=2), plan(graph, leaves)
        found = chosen.count(run) * chosen.automorphisms
        assert found == naive.igraph_count_mappings(sorted(edges), query), seed
        run.close()


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("leaves", [4, 8, 15])
def test_a_star_and_a_wheel(lab: Any, engine_kind: str, leaves: int) -> None:
    """The hub of a wheel has as many stars as its ring has independent sets; there are no others."""
    n = on_device(100_000, 300)
    assert plan(lab.graph(star(n)), leaves).count(lab.context(lab.graph(star(n)), engine=engine_kind)) == comb(
        n, leaves
    )
    wheel = lab.graph([*star(n), *((v, v % n + 1) for v in range(1, n + 1))])
    found = plan(wheel, leaves).count(lab.context(wheel, engine=engine_kind))
    assert found == comb(n - leaves, leaves) + comb(n - leaves - 1, leaves - 1)


def test_a_star_with_a_few_more_edges(lab: Any, engine_kind: str) -> None:
    """Sets of leaves without a chord, by inclusion and exclusion: two chords with a common end, and one apart."""
    n, leaves = on_device(100_000, 300), 8
    graph = lab.graph([*star(n), (1, 2), (2, 3), (4, 5)])
    wanted = comb(n, leaves) - 3 * comb(n - 2, leaves - 2) + comb(n - 3, leaves - 3) + 2 * comb(n - 4, leaves - 4)
    wanted -= comb(n - 5, leaves - 5)
    assert plan(graph, leaves).count(lab.context(graph, engine=engine_kind)) == wanted


def test_too_many_edges_around_a_vertex_are_counted_otherwise(
    lab: Any, engine_kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both arcs of an edge between neighbours have places of 32 bits: with more edges, other plans count."""
    n = 30
    graph = lab.graph([*star(n), (1, 2), (2, 3), (4, 5)])
    want = plan(graph, 4).count(lab.context(graph, engine=engine_kind))
    assert want == comb(n, 4) - 3 * comb(n - 2, 2) + comb(n - 3, 1) + 2
    monkeypatch.setattr(star_count, "_MOST_JOINED", 2)
    monkeypatch.setattr(star_count, "StarCounter", lambda *_: pytest.fail("independent sets were counted"))
    assert plan(graph, 4).count(lab.context(graph, engine=engine_kind)) == want


def test_there_are_none_in_a_clique_and_where_degrees_are_small(lab: Any, engine_kind: str) -> None:
    for edges in (combinations(range(60), 2), ((v, v + 1) for v in range(500))):
        graph = lab.graph(edges)
        assert plan(graph, 5).count(lab.context(graph, engine=engine_kind)) == 0


def test_what_takes_long_is_searched(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = nx.gnm_random_graph(40, 120, seed=3)
    edges = [*inner.edges, *((-1, v) for v in inner)]
    graph, pattern = lab.graph(edges), parse_pattern("star-5")
    wanted = plan_count(pattern, graph, induced=True).count(lab.context(graph))
    assert plan(graph, 5).count(lab.context(graph)) == wanted
    monkeypatch.setattr(star_leaves, "_MOST_STEPS", 1000)
    assert plan(graph, 5).count(lab.context(graph)) == wanted


def test_a_budget_without_room_changes_nothing(lab: Any) -> None:
    graph = lab.graph([*star(300), (1, 2)])
    run = lab.context(graph, host=graph.nbytes + (1 << 15))
    assert plan(graph, 3).count(run) == comb(300, 3) - 298
    run.close()
    assert run.resources.host.used == graph.nbytes


def test_when_it_is_chosen(lab: Any) -> None:
    graph, pattern = lab.graph(star(20_000)), parse_pattern("star-8")
    chosen = plan_count(pattern, graph, induced=True, without=())
    assert methods_of(chosen)[0] == "star-leaves"
    assert "independent sets of 8" in chosen.describe()
    assert chosen.to_dict()["stars"] == 8
    assert not counts_leaves(pattern, graph)
    assert not counts_leaves(pattern, lab.graph(star(5)), induced=True)
    assert not counts_leaves(parse_pattern("cycle-6"), graph, induced=True)


def test_runs_count_so(lab: Any, engine_kind: str) -> None:
    n = on_device(20_000, 200)
    graph = lab.graph(star(n))
    assert longwall.count(graph, "star-8", induced=True, engine=engine_kind) == comb(n, 8)


def test_labelled_stars_equal_brute_force(lab: Any, engine_kind: str, seeds: Any) -> None:
    for seed in seeds(on_device(60, 10)):
        chance = random.Random(seed)
        n, leaves, induced = chance.randint(4, 10), chance.randint(2, 5), chance.random() < 0.6
        edges = {pair for pair in combinations(range(n), 2) if chance.random() < chance.choice((0.1, 0.3))}
        edges |= {(0, v) for v in range(1, n) if chance.random() < 0.9} | {(0, 1)}
        labels = {v: chance.randint(0, 2) for v in range(n)}
        wanted = tuple(chance.choice((-1, 0, 0, 1, 2)) for _ in range(leaves + 1))
        query = naive.Query(leaves + 1, tuple((0, v) for v in range(1, leaves + 1)), wanted, induced)
        graph = lab.graph(sorted(edges), labels=labels)
        pattern = Pattern(query.size, query.edges, None if set(wanted) == {-1} else wanted)
        run = lab.context(graph, engine=engine_kind, threads=2)
        chosen = StarLeavesPlan(pattern, inf, induced)
        assert chosen.count(run) * chosen.automorphisms == naive.count_mappings(sorted(edges), query, labels), seed
        run.close()


def labelled_star(n: int, kinds: int, extra: Sequence[Edge] = ()) -> Graph:
    """A hub of label 0, and leaves of the labels from 1 on."""
    edges = np.array([*star(n), *extra])
    return longwall.graph(edges, labels=(np.arange(n + 1), np.r_[0, 1 + np.arange(n) % kinds]))


@pytest.mark.parametrize("induced", [False, True])
def test_labelled_stars_at_a_large_hub(engine_kind: str, induced: bool) -> None:
    """Such stars were searched for: a row for each pair of leaves, and much more."""
    n = on_device(66_000, 600)
    graph, third = labelled_star(n, 3), n // 3
    few = "(a:0)-(b:1), (a)-(c:1), (a)-(d:2), (a)-(e)"
    assert longwall.count(graph, few, induced=induced, engine=engine_kind) == comb(third, 2) * third * (n - 3)
    many = "(a)-(b1:1), (a)-(b2:1), (a)-(b3:1), (a)-(b4:1), (a)-(b5:1), (a)-(b6:1), (a)-(b7:1), (a)-(b8:1), (a)-(b9:1)"
    assert longwall.count(graph, many, induced=induced, engine=engine_kind) == comb(third, 9)
    pair = "(a:0)-(b:1), (a)-(c:2)"
    assert longwall.count(graph, pair, induced=induced, engine=engine_kind) == third**2


def test_labelled_stars_at_a_hub_of_few_edges_between_leaves(engine_kind: str) -> None:
    """A path through four leaves of the labels 1, 2, 3 and 1: pairs of adjacent ones are left out."""
    n = on_device(66_000, 600)
    graph, third = labelled_star(n, 3, [(1, 2), (2, 3), (3, 4)]), n // 3
    three = "(a:0)-(b:1), (a)-(c:2), (a)-(d:3)"
    joined = 3 * third - 1  # the path's edges, of labels 1 2, 2 3 and 3 1, with a third leaf; 1 2 3 and 2 3 1 have two
    assert longwall.count(graph, three, induced=True, engine=engine_kind) == third**3 - joined + 1


def test_when_labelled_stars_are_counted_so() -> None:
    graph = labelled_star(20_000, 2)
    for text, induced in (("(a:0)-(b:1), (a)-(c:2)", True), ("(a)-(b:1), (a)-(c:1), (a)-(d:1)", True)):
        plan = plan_count(parse_pattern(text), graph, induced=induced, without=())
        assert methods_of(plan)[0] == "star-leaves"
        assert "independent sets" in plan.describe()
    nine = parse_pattern("(a:0)-(b:1), " + ", ".join(f"(a)-(c{i}:2)" for i in range(8)))
    assert "choices of 9" in plan_count(nine, graph, without=()).describe()
    assert counts_leaves(nine, graph, induced=True)
    for text, induced, limit in (
        ("(a:0)-(b:1), (a)-(c:2)", False, None),
        ("(a:0)-(b:1)-(c:0)-(d:1)", True, None),
        ("(a:0)-(b:1), (a)-(c:7)", True, None),
        ("(a:0)-(b:1), (a)-(c:2)", True, 5),
    ):
        assert not counts_leaves(parse_pattern(text), graph, induced=induced, limit=limit), text
    distinct = "(a:0)" + "".join(f", (a)-(b{i}:{i})" for i in range(1, 13))
    graph = labelled_star(20_000, 12)
    assert not counts_leaves(parse_pattern(distinct), graph, induced=True)
    assert counts_leaves(parse_pattern(distinct), graph)


@pytest.mark.parametrize("pattern", ["star-5", "(a:0)-(b:1), (a)-(c:2), (a)-(d)"])
def test_limits_of_induced_stars(engine_kind: str, pattern: str) -> None:
    """A low limit is searched for; a search for a high one would take too long."""
    n = on_device(66_000, 600)
    graph, count = labelled_star(n, 2), partial(longwall.count, engine=engine_kind, induced=True)
    found = {limit: count(graph, pattern, limit=limit) for limit in (5, 2**64 - 1)}
    every = comb(n, 5) if pattern == "star-5" else (n // 2) ** 2 * (n - 2)
    assert found == {5: 5, 2**64 - 1: min(every, 2**64 - 1)}
