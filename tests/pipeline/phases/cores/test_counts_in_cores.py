"""Counts in cores: those of the whole graph, whatever is peeled, and on every engine; hubs take no time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb, inf
from typing import Any, cast

import naive
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plans import methods_of, plan_count
from selection import on_device
from strategies import SmallGraph, graphs, queries

import longwall
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import make_pattern
from longwall.pipeline.planning import worth
from longwall.pipeline.planning.plan import Choice
from longwall.pipeline.planning.rewrites.k_core import least_neighbours
from longwall.pipeline.planning.rewrites.pendant_vertices import PendantVerticesPlan
from longwall.storage.graph.graph import Graph

MINUTES = pytest.mark.real_gpu("a kernel takes more than a minute")
relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def plan_in_core(pattern: Any, graph: Graph, *, induced: bool = False) -> Choice:
    """Plan a count in the whole graph, or in a core."""
    return plan_count(pattern, graph, induced=induced, without=("hub-removal", "star-leaves", "candidates"))


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for a core whatever that is worth."""
    for name in ("_LONG", "_STEPS_PER_ARC", "_FEW_LOW"):
        monkeypatch.setattr(worth, name, 0.0)


def tailed(small: SmallGraph, tails: int) -> SmallGraph:
    """A graph with paths of two edges at its first vertices, which no core has."""
    edges, labels, following = list(small.edges), dict(small.labels), 10**6
    for v in sorted(labels)[:tails]:
        edges += [(v, following), (following, following + 1)]
        labels |= {following: labels[v], following + 1: 0}
        following += 2
    return SmallGraph(tuple(edges), labels)


@settings(relaxed, max_examples=on_device(150, 15))
@given(small=graphs(max_vertices=9), query=queries(min_size=3), tails=st.integers(0, 4))
def test_counts_equal_the_naive_oracle(lab: Any, engine_kind: str, small: SmallGraph, query: Any, tails: int) -> None:
    pattern = make_pattern(query.edges, query.labels)
    whole = tailed(small, tails)
    graph = lab.graph(whole.edges, whole.labels if query.labels is not None else None)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_LONG", "_STEPS_PER_ARC", "_FEW_LOW"):
            patch.setattr(worth, name, 0.0)
        plan = plan_in_core(pattern, graph, induced=query.induced)
    if least_neighbours(pattern) > 1:
        assert ("k-core" in methods_of(plan)) != pattern.is_clique
    run = lab.context(graph, engine=engine_kind)
    assert plan.count(run) * plan.automorphisms == naive.count_mappings(whole.edges, query, whole.labels)
    assert plan.count(run) * plan.automorphisms == naive.count_mappings(whole.edges, query, whole.labels)


@pytest.mark.usefixtures("always")
def test_a_budget_without_room_for_a_core_changes_nothing(lab: Any, engine_kind: str) -> None:
    small = tailed(SmallGraph(tuple(combinations(range(30), 2)), dict.fromkeys(range(30), 0)), 30)
    graph, pattern = lab.graph(small.edges), parse_pattern("cycle-4")
    plan = plan_in_core(pattern, graph)
    assert "k-core" in methods_of(plan)
    notes = []
    for host in (1 << 30, graph.nbytes + (1 << 18)):
        run = lab.context(graph, engine=engine_kind, host=host)
        run.observer.note = notes.append
        assert plan.count(run) == 3 * comb(30, 4)
        run.close()
        stays = 0 if run.device_graph is None else run.device_graph.charged[0]
        assert run.resources.host.used == graph.nbytes + stays
    assert any("no room for the 2-core" in note for note in notes)


@pytest.mark.parametrize("labels", [None, [0, 1, 2, 3]])
def test_a_count_has_a_core_if_it_lacks_many_edges(
    lab: Any, labels: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worth, "worth_making", lambda *_: True)
    pattern = parse_pattern("cycle-5" if labels is None else "diamond", labels)
    dense, tree = (list(combinations(range(20), 2)) + [(0, 20 + v) for v in range(tails)] for tails in (5, 40))
    for edges, in_core in ((dense, False), (tree, True)):
        graph = lab.graph(edges, {v: v % 4 for edge in edges for v in edge})
        assert ("k-core" in methods_of(plan_in_core(pattern, graph))) == in_core


@pytest.mark.usefixtures("always")
def test_a_limited_count_searches_the_whole_graph(lab: Any) -> None:
    graph = lab.graph(combinations(range(12), 2))
    plan = plan_count(parse_pattern("cycle-6"), graph, limit=5, without=())
    assert methods_of(plan)[0] == "search"
    assert plan.count_up_to(5, lab.context(graph)) >= 5


def star(leaves: int) -> Iterator[tuple[int, int]]:
    return ((0, v) for v in range(1, leaves + 1))


@pytest.fixture(scope="module")
def large_star(lab: Any) -> Graph:
    return cast(Graph, lab.graph(star(on_device(100_000, 2_000))))


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("induced", [False, True])
@pytest.mark.parametrize(
    "pattern",
    [
        "path-4",
        "path-5",
        pytest.param("path-8", marks=MINUTES),
        "tailed-triangle",
        "cycle-4",
        "cycle-5",
        "cycle-6",
        pytest.param("cycle-8", marks=MINUTES),
        "house",
        "bowtie",
        "wheel-6",
    ],
)
def test_a_star_has_neither_cycles_nor_paths(
    engine_kind: str, large_star: Graph, lab: Any, pattern: str, induced: bool
) -> None:
    plan = plan_in_core(parse_pattern(pattern), large_star, induced=induced)
    assert plan.count(lab.context(large_star, engine=engine_kind, threads=2)) == 0


def double_star(left: int, right: int) -> Iterator[tuple[int, int]]:
    """Two hubs that are adjacent, with leaves of their own."""
    yield 0, 1
    yield from ((0, v) for v in range(2, left + 2))
    yield from ((1, v) for v in range(left + 2, left + right + 2))


@pytest.mark.parametrize("leaves", [1, 3])
def test_the_leaves_of_two_hubs_are_multiplied(engine_kind: str, lab: Any, leaves: int) -> None:
    """Numbers of more than 64 bits, on the way and in the end."""
    left, right = on_device((40_000, 50_000), (400, 500))
    pattern = parse_pattern(",".join(["0-1", *(f"0-{v},1-{v + leaves}" for v in range(2, leaves + 2))]))
    graph = lab.graph(double_star(left, right))
    run = lab.context(graph, engine=engine_kind, threads=2)
    found = PendantVerticesPlan(pattern, inf, induced=False).count(run)
    assert found == comb(left, leaves) * comb(right, leaves)
    if on_device(True, False):
        assert "pendant-vertices" in methods_of(plan_in_core(pattern, graph))


@pytest.mark.parametrize("k", [4, 5])
def test_the_motifs_of_a_star_with_a_chord_and_a_tail(engine_kind: str, lab: Any, tmp_path: Any, k: int) -> None:
    """A hub with leaves, two of which are adjacent, and one of which has a neighbour: sets are counted by hand."""
    leaves = on_device(100_000, 1_000)
    both = k > 4  # of five vertices, the hub, the chord and the tail are one set
    graph = lab.graph([*star(leaves), (1, 2), (3, leaves + 1)])
    counts = {
        "hub only": comb(leaves, k - 1) - comb(leaves - 2, k - 3),  # of its neighbours, but for both of the chord
        "chord": comb(leaves - 2, k - 3),
        "tail": comb(leaves - 1, k - 3) - both,
        "chord and tail": int(both),
    }
    names = {
        4: {"hub only": "0-1,0-2,0-3", "chord": "0-1,0-2,0-3,1-2", "tail": "0-1,0-2,1-3"},
        5: {
            "hub only": "0-1,0-2,0-3,0-4",
            "chord": "0-1,0-2,0-3,0-4,1-2",
            "tail": "0-1,0-2,0-3,1-4",
            "chord and tail": "0-1,0-2,0-3,1-2,3-4",
        },
    }[k]
    found = longwall.run(
        {
            "graph": graph,
            "workload": {"kind": "motifs", "k": k, "method": "counting"},
            "engine": {"kind": engine_kind},
            "run": {"directory": tmp_path},
        }
    )
    by_pattern = {one.pattern: one.count for one in found.patterns}
    for name, text in names.items():
        assert by_pattern.pop(text) == counts[name], name
    assert set(by_pattern.values()) == {0}


def test_a_hub_beside_a_clique_is_peeled(engine_kind: str, lab: Any, tmp_path: Any) -> None:
    """A clique, one of whose vertices has many leaves: cycles are those of the clique."""
    size = on_device(12, 7)
    graph = lab.graph([*combinations(range(0, -size, -1), 2), *star(on_device(100_000, 1_000))])
    plan = plan_in_core(parse_pattern("cycle-6"), graph)
    if on_device(True, False):
        assert "k-core" in methods_of(plan)
        assert "2-core" in plan.describe()
        assert plan.to_dict()["core"] == 2
    assert plan.count(lab.context(graph, engine=engine_kind, threads=2)) == comb(size, 6) * 60
    found = longwall.run(
        {
            "graph": graph,
            "workload": {"kind": "match", "pattern": "cycle-6"},
            "engine": {"kind": engine_kind},
            "run": {"directory": tmp_path},
        }
    )
    assert found.count == comb(size, 6) * 60
    assert longwall.count(graph, "cycle-6", limit=7, engine=engine_kind) == 7
