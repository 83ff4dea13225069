"""Quasi-cliques: as many, and the same, as a look at every set of vertices finds."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from explained import explain
from hypothesis import given, settings
from hypothesis import strategies as st
from run_configs import run_config, write_edges
from strategies import graphs

import longwall
from longwall.pipeline.workloads.base import answer_pattern
from longwall.pipeline.workloads.quasi_cliques import quasi_cliques


def brute_force(edges: Any, k: int, missing: int) -> set[frozenset[int]]:
    """Every connected set of k vertices with so many edges between them."""
    graph = nx.Graph(list(edges))
    sets = (graph.subgraph(chosen) for chosen in combinations(graph, k))
    least = k * (k - 1) // 2 - missing
    return {frozenset(one) for one in sets if one.number_of_edges() >= least and nx.is_connected(one)}


def mine(context: Any) -> list[longwall.PatternCount]:
    workload = context.spec.workload
    found: list[longwall.PatternCount] = workload.execute(workload.plan(context.graph), context)
    return found


@settings(deadline=None, max_examples=20)
@given(small=graphs(max_vertices=10), k=st.integers(3, 6), missing=st.integers(0, 4))
def test_as_many_as_brute_force_finds(lab: Any, engine_kind: str, small: Any, k: int, missing: int) -> None:
    section = {"kind": "quasi-cliques", "k": k, "missing": missing}
    context = lab.context(lab.graph(small.edges), engine=engine_kind, threads=2, workload=section)
    assert sum(one.count for one in mine(context)) == len(brute_force(small.edges, k, missing))


DENSE = [(u, v) for u, v in combinations(range(11), 2) if (u * 7 + v * 5) % 4]


def config(tmp_path: Path, engine: str, **workload: Any) -> dict[str, Any]:
    wanted = {"kind": "quasi-cliques", "output": "embeddings"} | workload
    return run_config(tmp_path, write_edges(tmp_path, DENSE), wanted, engine={"kind": engine, "threads": 2})


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(("k", "missing"), [(4, 1), (5, 2), (5, 4), (7, 1)])
def test_each_set_is_written_once(tmp_path: Path, engine_kind: str, k: int, missing: int) -> None:
    result = longwall.run(config(tmp_path, engine_kind, k=k, missing=missing))
    rows = np.column_stack([column.to_numpy() for column in result.table().columns]).tolist()
    assert {frozenset(row) for row in rows} == brute_force(DENSE, k, missing)
    assert len(rows) == len({frozenset(row) for row in rows}) == result.count
    assert [one.count for one in result.patterns] == [row["count"] for row in result.table("counts").to_pylist()]


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_limit_is_for_all_patterns_together(tmp_path: Path, share: float) -> None:
    whole = longwall.run(config(tmp_path, "cpu", k=4))
    assert whole.count is not None
    limit = max(int(whole.count * share), 1)
    result = longwall.run(config(tmp_path, "cpu", k=4), overrides=[f"export.limit={limit}"])
    assert (result.count, len(result.table()), result.truncated) == (limit, limit, True)
    above = longwall.run(config(tmp_path, "cpu", k=4), overrides=[f"export.limit={whole.count + 1}"])
    assert (above.count, above.truncated) == (whole.count, False)


@pytest.mark.parametrize(("k", "missing", "number"), [(4, 0, 1), (4, 3, 6), (5, 2, 4), (10, 3, 9), (16, 4, 20)])
def test_patterns_are_all_there_are(k: int, missing: int, number: int) -> None:
    found = quasi_cliques(k, missing)
    assert len(found) == number
    absent = [k * (k - 1) // 2 - len(pattern.edges) for pattern in found]
    assert absent == sorted(absent)
    assert absent[0] == 0
    assert absent[-1] <= missing
    graphs = [nx.Graph(list(pattern.edges)) for pattern in found]
    assert all(nx.is_connected(graph) and len(graph) == k for graph in graphs)
    assert not any(nx.faster_could_be_isomorphic(a, b) and nx.is_isomorphic(a, b) for a, b in combinations(graphs, 2))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("limit", [None, 60])
def test_a_run_that_failed_between_two_patterns_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int | None
) -> None:
    overrides = [] if limit is None else [f"export.limit={limit}"]
    patterns: list[Any] = []

    def failing(plan: Any, context: Any, **options: Any) -> longwall.PatternCount:
        patterns.append(plan)
        if len(patterns) == 3:
            raise longwall.RunError("the test ends it")
        return answer_pattern(plan, context, **options)

    monkeypatch.setattr("longwall.pipeline.workloads.quasi_cliques.answer_pattern", failing)
    with pytest.raises(longwall.RunError, match="the test ends it"):
        longwall.run(config(tmp_path, "cpu", k=4, missing=3), overrides=[*overrides, "run.name=one"])
    monkeypatch.undo()
    result = longwall.resume(tmp_path / "runs" / "one")
    rows = np.column_stack([column.to_numpy() for column in result.table().columns]).tolist()
    found, expected = {frozenset(row) for row in rows}, brute_force(DENSE, 4, 3)
    assert len(rows) == len(found) == result.count == (limit or len(expected))
    assert found <= expected


def test_level_by_level_the_patterns_are_the_same(tmp_path: Path) -> None:
    result = longwall.run(config(tmp_path, "cpu", k=4, missing=2), overrides=["scheduler.order=levels"])
    rows = np.column_stack([column.to_numpy() for column in result.table().columns]).tolist()
    assert {frozenset(row) for row in rows} == brute_force(DENSE, 4, 2)
    assert len(rows) == result.count == len({frozenset(row) for row in rows})


def test_the_plan_names_every_pattern(tmp_path: Path) -> None:
    text = explain(config(tmp_path, "cpu", k=5, missing=2))
    assert "patterns     4, one after another" in text
    assert text.count("matching     induced") == 4
