"""Counts of labelled patterns on graphs that are laid out by label, against brute force and networkx."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import naive
import networkx as nx
import pytest
from conftest import set_page_size
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from plans import plan_count
from selection import on_device
from strategies import SmallGraph, graphs, queries

from longwall.pipeline.execution import device_graph
from longwall.pipeline.execution.device_graph import release_graph
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import ANY_LABEL, Pattern, make_pattern
from longwall.pipeline.phases.by_label.layouts import clique_layout, one_label, search_layout
from longwall.pipeline.planning.methods import search
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.derived.label_layout import ANY
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
K9 = SmallGraph(tuple(combinations(range(9), 2)), {v: v % 2 for v in range(9)})
HUBS = SmallGraph((*product((0, 1, 2), range(3, 23)), (0, 1), (0, 2), (1, 2)), {v: v % 3 for v in range(23)})
ALL_DIFFERENT = SmallGraph(K9.edges, {v: v for v in range(9)})
ONE = SmallGraph(HUBS.edges, dict.fromkeys(range(23), 1))


@pytest.fixture(scope="session")
def count(lab: Any, engine_kind: str) -> Any:
    def by_plan(small: SmallGraph, query: naive.Query, *, tables: bool = False, **context: Any) -> int:
        graph = lab.graph(small.edges, small.labels)
        pattern = Pattern(query.size, query.edges, query.labels)
        env = lab.context(graph, engine=engine_kind, **context)
        before = env.resources.host.used
        with pytest.MonkeyPatch.context() as patch:
            if tables:  # wherever the pattern decomposes
                patch.setattr(
                    search, "plan_match", lambda *args, **keys: replace(plan_match(*args, **keys), cost=1e300)
                )
            plan = plan_count(pattern, graph, induced=query.induced)
        found = plan.count(env) * plan.automorphisms
        assert plan.describe()
        assert plan.to_dict()["pattern"] == pattern.edge_text
        env.close()
        on_engine = (0, 0) if env.device_graph is None else env.device_graph.charged
        assert env.resources.host.used - before in (0, on_engine[0])
        return found

    return by_plan


def clique(*labels: int) -> naive.Query:
    return naive.Query(len(labels), tuple(combinations(range(len(labels)), 2)), labels)


@settings(relaxed, max_examples=on_device(150, 12, 80))
@given(small=graphs(max_vertices=10, num_labels=4), query=queries(labelled=True, num_labels=4))
@example(small=HUBS, query=naive.Query(4, ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3)), (0, 1, 2, 0)))
@example(small=HUBS, query=naive.Query(4, ((0, 1), (1, 2), (2, 3), (0, 3)), (0, 1, 0, 2), True))
@example(small=HUBS, query=naive.Query(3, ((0, 1), (1, 2)), (0, 7, 1)))
@example(small=ONE, query=naive.Query(4, ((0, 1), (1, 2), (2, 3), (0, 3)), (1, 1, 1, 1)))
@example(small=ONE, query=naive.Query(4, ((0, 1), (0, 2), (0, 3)), (1, 1, 1, 1), True))
@example(small=ALL_DIFFERENT, query=naive.Query(4, ((0, 1), (1, 2), (2, 3)), (3, 1, 8, 0)))
@example(small=K9, query=clique(0, 0, 1, 1))
@example(small=K9, query=clique(0, 0, 0, 1, 1))
@example(small=ALL_DIFFERENT, query=clique(4, 0, 7, 2))
def test_counts_equal_the_naive_oracle(count: Any, small: SmallGraph, query: naive.Query) -> None:
    assert count(small, query) == naive.count_mappings(small.edges, query, small.labels)


@settings(relaxed, max_examples=on_device(150, 12, 60))
@given(small=graphs(max_vertices=10), query=queries(labelled=True, induced=False), free=st.integers(0, 5))
@example(small=HUBS, query=naive.Query(4, ((0, 1), (1, 2), (2, 3), (0, 3)), (0, 1, 0, 2)), free=5)
@example(
    small=HUBS, query=naive.Query(5, ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 4), (3, 4)), (0, 1, 2, 2, 0)), free=4
)
@example(small=K9, query=naive.Query(5, ((0, 1), (1, 2), (2, 3), (3, 4)), (0, 1, 0, 1, 0)), free=2)
def test_tables_count_labelled_patterns(count: Any, small: SmallGraph, query: naive.Query, free: int) -> None:
    """One vertex may have any label, if the pattern has that vertex."""
    assert query.labels is not None
    if free < query.size:
        query = replace(query, labels=(*query.labels[:free], ANY_LABEL, *query.labels[free + 1 :]))
    assert count(small, query, tables=True) == naive.count_mappings(small.edges, query, small.labels)


def test_a_table_of_a_part_has_the_number_of_each_vertex(count: Any) -> None:
    """A cycle that a vertex separates from the rest; some vertices have no label."""
    edges = ((0, 1), (0, 3), (1, 2), (1, 5), (2, 6), (3, 4), (4, 7), (5, 6))
    labels = (4, 1, 3, ANY_LABEL, 4, 4, 5, ANY_LABEL)
    data = nx.gnp_random_graph(36, 0.6, seed=8)
    small = SmallGraph(tuple(data.edges), {v: v % 6 for v in data})
    query = naive.Query(len(labels), edges, labels)
    want = naive.count_mappings_by_masks(small.edges, query, small.labels)
    assert want > 1000
    assert count(small, query, tables=True) == want


@settings(relaxed, max_examples=on_device(60, 6))
@given(small=graphs(max_vertices=9), labels=st.lists(st.integers(0, 3), min_size=3, max_size=5))
def test_cliques_equal_networkx(count: Any, small: SmallGraph, labels: list[int]) -> None:
    query = clique(*labels)
    assert count(small, query) == naive.networkx_count_mappings(small.edges, query, small.labels)


@settings(relaxed, max_examples=on_device(50, 5))
@given(small=graphs(max_vertices=12), query=queries(labelled=True), threads=st.integers(1, 3))
def test_without_room_for_the_layout_the_whole_graph_is_searched(
    count: Any, small: SmallGraph, query: naive.Query, threads: int
) -> None:
    reserve = MemoryBudget.reserve

    def refuse(self: MemoryBudget, size: int, what: str) -> Any:
        if what == "the graph by label":
            raise BudgetExceeded("no room")
        return reserve(self, size, what)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryBudget, "reserve", refuse)
        found = count(small, query, threads=threads)
    assert found == naive.igraph_count_mappings(small.edges, query, small.labels)


def test_layouts_have_what_a_pattern_reads(lab: Any) -> None:
    stats = lab.graph(HUBS.edges, HUBS.labels).stats

    def layout(edges: Any, labels: Any, induced: bool = False) -> Any:
        return search_layout(plan_match(make_pattern(edges, labels), stats, induced=induced))

    path = ((0, 1), (1, 2))
    found = layout(path, [0, 1, 0])
    assert sorted(found.roles) == [0, 1]
    assert found.edges == ((0, 1, ANY),)
    assert layout(path, [0, 1, 0], induced=True).edges == ((0, 0, ANY), (0, 1, ANY), (1, 1, ANY))
    assert layout(path, None) is None
    assert one_label(make_pattern(path, [2, 2, 2])).roles == (2,)
    assert one_label(make_pattern(path, [2, 2, 1])) is None
    assert clique_layout(make_pattern(path, [2, 2, 1]), stats) is None
    triangle = make_pattern(((0, 1), (0, 2), (1, 2)), [1, 0, 1])
    assert clique_layout(triangle, stats).roles == (0, 1, 1)
    assert clique_layout(make_pattern(tuple(combinations(range(10), 2)), [0] * 5 + [1] * 5), stats) is None
    assert ANY_LABEL == ANY


def test_plans_for_labels_say_what_they_do(lab: Any) -> None:
    graph = lab.graph(HUBS.edges, HUBS.labels)
    inside = {}
    for text, labels in (
        ("clique-4", [0, 1, 2, 0]),
        ("cycle-4", [1] * 4),
        ("cycle-4", [0, 1, 0, 2]),
        ("path-3", [5, 0, 1]),
    ):
        plan = plan_count(parse_pattern(text, labels), graph)
        inside[text, tuple(labels)] = plan.to_dict()["kind"], plan.method == "label-partition"
    assert list(inside.values()) == [
        ("clique bitmaps", True), ("wedge aggregation", True), ("homomorphisms", True), ("search", False),
    ]  # fmt: skip


@pytest.mark.gpu
@pytest.mark.parametrize("access", ["resident", "adaptive"])
@pytest.mark.parametrize("close_first", [False, True])
def test_a_layout_gives_back_once_what_it_takes(
    lab: Any, access: str, close_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others that need the device's memory release the graph there, which may be that of a layout."""
    set_page_size(monkeypatch, 1024)
    graph = generate("rmat", seed=7, num_labels=2, scale=9, edge_factor=6)
    env = lab.context(graph, engine="cuda", device=4 << 20, memory={"access": access})
    budgets = env.resources.host, env.resources.work
    before = [budget.used for budget in budgets]
    plan = plan_count(parse_pattern("clique-4", [0, 0, 1, 1]), graph)
    assert plan.method == "label-partition"
    plan.count(env)
    assert env.device_graph is not None
    assert [budget.used for budget in budgets] != before
    if close_first:
        env.close()
    release_graph(env)
    assert [budget.used for budget in budgets] == before
    assert env.device_graph is None


def test_a_layout_is_gone_when_another_one_is_made(lab: Any) -> None:
    """Its bytes are given back then: it must not wait until Python looks for garbage."""
    env = lab.context(lab.graph(HUBS.edges, HUBS.labels))
    gc.disable()
    try:
        made = []
        for labels in ([0, 1, 2], [0, 0, 1], [1, 1, 1]):
            plan_count(parse_pattern("clique-3", labels), env.graph).count(env)
            (layout,) = env.derived.values()
            made.append(weakref.ref(layout.env.graph))
            del layout
            assert [graph() is not None for graph in made] == [False] * (len(made) - 1) + [True]
    finally:
        gc.enable()


@pytest.mark.gpu
def test_what_is_brought_of_a_layout_goes_before_another_part_comes(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    set_page_size(monkeypatch, 1024)
    bring, seen = device_graph._bring, []

    def bringing(env: Any, *rest: Any) -> Any:
        if env.own is not None:
            seen.append(env.own.whole.device_graph)
        return bring(env, *rest)

    monkeypatch.setattr(device_graph, "_bring", bringing)
    graph = generate("rmat", seed=7, num_labels=1, scale=9, edge_factor=6)
    env = lab.context(graph, engine="cuda", device=1 << 20, memory={"access": "adaptive"})
    plan = plan_count(parse_pattern("cycle-4", [0] * 4), graph, induced=True)
    assert plan.method == "label-partition"
    plan.count(env)
    assert len(seen) > 1
    assert not any(seen)
