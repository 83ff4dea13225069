"""Induced stars: closed forms at hubs of many leaves, brute force, and the search where it is needed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import comb, inf
from typing import Any

import naive
import networkx as nx
import pytest
from selection import on_device

import longwall
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.by_label.plans import plan_count
from longwall.pipeline.phases.stars import star_count, star_plan
from longwall.pipeline.phases.stars.star_plan import CountInducedStars, plan_by_degrees
from longwall.storage.graph.graph import Graph

Edge = tuple[int, int]


def star(leaves: int) -> Iterator[Edge]:
    return ((0, v) for v in range(1, leaves + 1))


def plan(graph: Graph, leaves: int) -> CountInducedStars:
    """The plan, whatever it is worth."""
    pattern = parse_pattern(f"star-{leaves}")
    return CountInducedStars(pattern, inf, replace(plan_count(pattern, graph, induced=True), cost=inf))


def test_counts_equal_igraph(lab: Any, engine_kind: str) -> None:
    for seed in range(on_device(60, 10)):
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
    monkeypatch.setattr(star_plan, "_MOST_STEPS", 1000)
    assert plan(graph, 5).count(lab.context(graph)) == wanted


def test_a_budget_without_room_changes_nothing(lab: Any) -> None:
    graph = lab.graph([*star(300), (1, 2)])
    run = lab.context(graph, host=graph.nbytes + (1 << 15))
    chosen = replace(plan(graph, 3), whole=plan_count(parse_pattern("star-3"), graph, induced=True))
    chosen = replace(chosen, whole=replace(chosen.whole, cost=inf))
    assert chosen.count(run) == comb(300, 3) - 298
    run.close()
    assert run.resources.host.used == graph.nbytes


def test_when_it_is_chosen(lab: Any) -> None:
    graph, pattern = lab.graph(star(20_000)), parse_pattern("star-8")
    chosen = plan_by_degrees(pattern, graph, induced=True)
    assert isinstance(chosen, CountInducedStars)
    assert "independent sets of 8" in chosen.describe()
    assert chosen.to_dict()["stars"] == 8
    assert not isinstance(plan_by_degrees(pattern, graph), CountInducedStars)
    assert not isinstance(plan_by_degrees(pattern, lab.graph(star(5)), induced=True), CountInducedStars)
    assert not isinstance(plan_by_degrees(parse_pattern("cycle-6"), graph, induced=True), CountInducedStars)
    labelled = Pattern(pattern.num_vertices, pattern.edges, (0,) * pattern.num_vertices)
    assert not isinstance(plan_by_degrees(labelled, graph, induced=True), CountInducedStars)


def test_runs_count_so(lab: Any, engine_kind: str) -> None:
    n = on_device(20_000, 200)
    graph = lab.graph(star(n))
    assert longwall.count(graph, "star-8", induced=True, engine=engine_kind) == comb(n, 8)
