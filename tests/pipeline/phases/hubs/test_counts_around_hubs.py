"""Counts around hubs: those of all other methods, closed forms at hubs of many leaves, and when they are chosen."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations
from math import comb, inf, perm
from pathlib import Path
from typing import Any

import naive
import pytest
from plans import methods_of, motifs, plan_count, tried_first
from selection import on_device

import longwall
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.homomorphisms.count import HomomorphismCount
from longwall.pipeline.phases.hubs import part_counts
from longwall.pipeline.planning.plan import Choice
from longwall.pipeline.planning.planner import PLANNER
from longwall.pipeline.planning.rewrites import hub_removal
from longwall.pipeline.planning.rewrites.hub_removal import HubRemovalPlan
from longwall.storage.graph.derived.hubs import count_hubs
from longwall.storage.graph.graph import Graph

Edge = tuple[int, int]
CASES = 240


def around(pattern: Pattern, graph: Graph, hubs: int, *, induced: bool = False) -> Choice:
    """The plan, whatever it is worth, ahead of those for the whole graph."""
    first = HubRemovalPlan(pattern, inf, induced, hubs, PLANNER, method="hub-removal")
    return tried_first(first, plan_count(pattern, graph, induced=induced))


def hubbed(chance: random.Random, hubs: int, others: int) -> set[Edge]:
    """A random graph with hubs, which share some of their neighbours, or all."""
    edges = {(u, v) for u, v in combinations(range(hubs, hubs + others), 2) if chance.random() < 1.6 / others}
    share = chance.choice((0.5, 0.8, 1.0))
    edges |= {(h, v) for h in range(hubs) for v in range(hubs, hubs + others) if chance.random() < share}
    return edges | {pair for pair in combinations(range(hubs), 2) if chance.random() < 0.5} | {(0, hubs)}


def connected(chance: random.Random, size: int) -> tuple[Edge, ...]:
    """A random tree, often with more edges."""
    tree = {(chance.randrange(v), v) for v in range(1, size)}
    more = chance.choice((0.0, 0.0, 0.2, 0.5))
    return tuple(sorted(tree | {pair for pair in combinations(range(size), 2) if chance.random() < more}))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("slice_", range(24))
def test_counts_equal_igraph(lab: Any, engine_kind: str, slice_: int) -> None:
    cases = CASES // 24 if engine_kind == "cpu" else int(slice_ < 8)
    for seed in range(slice_ * 1000, slice_ * 1000 + cases):
        chance = random.Random(seed)
        hubs, size = chance.randint(1, 3), chance.choice((3, 4, 4, 5, 5, 6))
        edges = sorted(hubbed(chance, hubs, chance.randint(4, 14 - size)))
        query = naive.Query(size, connected(chance, size), None, chance.random() < 0.5)
        graph, pattern = lab.graph(edges), Pattern(size, query.edges)
        taken = min(hubs + chance.choice((-1, 0, 0, 1)), graph.num_vertices, 3) or 1
        run = lab.context(graph, engine=engine_kind)
        plan = around(pattern, graph, taken, induced=query.induced)
        assert plan.count(run) * plan.automorphisms == naive.igraph_count_mappings(edges, query), (seed, query)
        run.close()


def star(leaves: int, hub: int = 0, first: int = 1) -> Iterator[Edge]:
    return ((hub, v) for v in range(first, first + leaves))


def wheel(leaves: int) -> list[Edge]:
    return [*star(leaves), *((v, v % leaves + 1) for v in range(1, leaves + 1))]


def paths_in_a_wheel(size: int, n: int) -> int:
    """Paths of `size` vertices: in the ring, and through the hub with any two disjoint paths beside it."""
    ends = 0
    for left in range(size):
        right = size - 1 - left
        if left and right:  # the second path lies where the first is not
            ends += n * min(2, left) * (n - left - right + 1) * min(2, right)
        else:
            ends += n * min(2, left + right)
    return n + ends // 2


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("size", [5, 6, 7, 8])
def test_cycles_of_a_wheel(lab: Any, engine_kind: str, size: int) -> None:
    n = on_device(100_000, 500)
    graph = lab.graph(wheel(n))
    plan = plan_count(parse_pattern(f"cycle-{size}"), graph, without=())
    if size > 5 and on_device(True, False):
        assert methods_of(plan)[0] == "hub-removal"
        assert "in the graph without them" in plan.describe()
        assert plan.to_dict()["hubs"] == 1
    assert plan.count(lab.context(graph, engine=engine_kind)) == n


def test_a_wheel_has_the_paths_of_its_ring_and_through_its_hub(lab: Any, engine_kind: str) -> None:
    small = wheel(12)
    for size in (4, 5, 6):
        query = naive.Query(size, tuple((v, v + 1) for v in range(size - 1)), None, False)
        assert paths_in_a_wheel(size, 12) * 2 == naive.igraph_count_mappings(small, query)
    n, size = on_device((50_000, 7), (200, 5))
    graph = lab.graph(wheel(n))
    plan = around(parse_pattern(f"path-{size}"), graph, 1)
    assert plan.count(lab.context(graph, engine=engine_kind)) == paths_in_a_wheel(size, n)


def test_two_hubs_with_all_leaves_in_common(lab: Any, engine_kind: str) -> None:
    """Cycles of four are pairs of leaves, those of six do not exist; nothing is left without the hubs."""
    n = on_device(50_000, 300)
    graph = lab.graph([*star(n, 0, 2), *star(n, 1, 2)])
    for text, found in (("cycle-4", comb(n, 2)), ("cycle-6", 0), ("path-5", perm(n, 3)), ("path-6", 0)):
        plan = around(parse_pattern(text), graph, 2)
        assert plan.count(lab.context(graph, engine=engine_kind)) == found
    induced = around(parse_pattern("path-5"), graph, 2, induced=True)
    assert induced.count(lab.context(graph, engine=engine_kind)) == 0
    assert count_hubs(graph) == 2


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("pattern", ["cycle-6", "path-6", "house", "0-1,1-2,2-3,3-4,4-5,1-4"])
def test_what_a_wheel_has_not_as_an_induced_subgraph(lab: Any, engine_kind: str, pattern: str) -> None:
    """The hub is adjacent to all others, so an induced pattern without such a vertex is one of the ring."""
    n = on_device(100_000, 300)
    graph = lab.graph(wheel(n))
    plan = around(parse_pattern(pattern), graph, 1, induced=True)
    assert plan.count(lab.context(graph, engine=engine_kind)) == (n if pattern == "path-6" else 0)


def test_a_budget_without_room_changes_nothing(lab: Any, engine_kind: str) -> None:
    graph = lab.graph(wheel(200))
    plan, notes = around(parse_pattern("cycle-6"), graph, 1), list[str]()
    for host in (1 << 30, graph.nbytes + (1 << 18)):
        run = lab.context(graph, engine=engine_kind, host=host)
        run.observer.note = notes.append
        assert plan.count(run) == 200
        run.close()
        stays = 0 if run.device_graph is None else run.device_graph.charged[0]
        assert run.resources.host.used == graph.nbytes + stays
    assert any("without its hubs" in note for note in notes)


def test_where_the_parts_are_more_work_the_whole_is_counted(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = lab.graph(wheel(50))
    plan = around(parse_pattern("path-6"), graph, 1)
    monkeypatch.setattr(hub_removal, "_GAIN", -1.0)
    assert plan.count(lab.context(graph)) == paths_in_a_wheel(6, 50)
    monkeypatch.undo()
    monkeypatch.setattr(part_counts, "_MOST_PLANS", 1)
    assert plan.count(lab.context(graph)) == paths_in_a_wheel(6, 50)


def regular(n: int) -> Iterable[Edge]:
    return ((v, (v + step) % n) for v in range(n) for step in (1, 2, 3))


def test_it_is_chosen_where_hubs_have_most_of_the_work(lab: Any) -> None:
    pattern, leaves = parse_pattern("cycle-6"), 20_000
    for edges, chosen in ((wheel(leaves), True), (wheel(20), False), (regular(leaves), False)):
        plan = plan_count(pattern, lab.graph(edges), without=())
        assert ("hub-removal" in methods_of(plan)) == chosen
    assert count_hubs(lab.graph([(0, v) for v in range(1, 9)])) == 1
    assert count_hubs(lab.graph(regular(100))) == 0


def test_runs_and_calls_count_so(lab: Any, engine_kind: str) -> None:
    n = on_device(20_000, 100)
    graph = lab.graph(wheel(n))
    assert longwall.count(graph, "cycle-6", engine=engine_kind) == n
    assert longwall.count(graph, "cycle-6", induced=True, engine=engine_kind) == 0
    assert longwall.count(graph, "cycle-6", limit=7, engine=engine_kind) == 7


@pytest.mark.parametrize("k", [4, 5])
def test_motifs_around_hubs_equal_brute_force(lab: Any, engine_kind: str, k: int) -> None:
    for seed in range(on_device(4, 1)):
        chance = random.Random(seed)
        hubs = chance.randint(1, 3)
        edges = sorted(hubbed(chance, hubs, chance.randint(5, 8)))
        graph = lab.graph(edges)
        wanted = motifs("motif-counting", k, graph)
        around = replace(wanted, cost=inf, hubs=min(hubs + chance.choice((-1, 0, 1)), 3) or 1)
        run = lab.context(graph, engine=engine_kind)
        for pattern, found in zip(around.patterns, around.counts(run), strict=True):
            query = naive.Query(k, pattern.edges, None, True)
            each = naive.count_mappings(list(pattern.edges), query)
            assert found * each == naive.igraph_count_mappings(edges, query), (seed, pattern)
        run.close()


@pytest.mark.parametrize("shared", [2, 3])
def test_motifs_of_a_few_hubs_with_the_same_neighbours(
    lab: Any, engine_kind: str, shared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of all vertices would take as many steps as the square of the neighbours."""
    n = on_device(65_537, 300)
    graph = lab.graph((h, v) for h in range(shared) for v in range(shared, shared + n))
    plan = replace(motifs("motif-counting", 5, graph), cost=inf, hubs=shared)
    assert on_device(motifs("motif-counting", 5, graph).hubs, shared) == shared
    assert f"the {shared} vertices" in plan.describe()
    monkeypatch.setattr(HomomorphismCount, "mappings", lambda *_: pytest.fail("rows were counted"))
    found = dict(zip(plan.patterns, plan.counts(lab.context(graph, engine=engine_kind)), strict=True))
    stars = shared * comb(n, 4) + n * comb(shared, 4)
    others = comb(shared, 2) * comb(n, 3) + comb(shared, 3) * comb(n, 2)  # K(2, 3) of one side or the other
    assert sorted(filter(None, found.values())) == sorted((stars, others))


@pytest.mark.parametrize(("limit", "method"), [(10, "search"), (2**63 - 1, "hub-removal")])
def test_a_high_limit_allows_counts_around_hubs(tmp_path: Path, limit: int, method: str) -> None:
    leaves = 300
    edges = [(0, 1), *((hub, 2 + hub * leaves + leaf) for hub in (0, 1) for leaf in range(leaves))]
    workload = {"kind": "match", "pattern": "0-1,0-2,0-3,0-4,1-5", "induced": True, "limit": limit}
    config = {"graph": longwall.graph(edges), "workload": workload, "run": {"directory": str(tmp_path)}}
    found = longwall.run({**config, "engine": {"kind": "cpu"}})
    assert found.count == min(limit, 2 * leaves * comb(leaves, 3))
    assert found.patterns[0].method == method
