"""The work of counting cliques along the arcs of a graph, by which ranges for a cluster are cut."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from budgets import make_budgets
from cases import each_case

from longwall.kernels.cpu.engine import CpuEngine
from longwall.pipeline.cluster.work_profile import WorkProfile
from longwall.pipeline.execution import row_work
from longwall.pipeline.execution.phase import Task
from longwall.pipeline.execution.row_work import work_of_rows
from longwall.pipeline.phases.range_count import RangeCount
from longwall.stages.range_counting import CountCliques
from longwall.stages.source import host_arrays
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.build import build_graph

POWERS = {4: lambda d: d * d + 100 * d, 5: lambda d: d * d + 100 * d + d**3 / 50}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return generate("rmat", scale=9, edge_factor=8, seed=2)


def environment(graph: Graph, host: int = 1 << 26) -> Any:
    return SimpleNamespace(graph=graph, resources=SimpleNamespace(host=make_budgets(host=host)[0]))


@each_case("rows", [37, 1 << 18])
@each_case("k", list(POWERS))
@each_case("host", [2_000, 1 << 26])
@each_case("bins", [7, 4096])
def test_work_grows_with_the_smaller_neighbours(
    graph: Graph, k: int, host: int, bins: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_work, "_adjacent_shares", lambda env, rows, power, capacity: np.ones(len(rows) - 1))
    monkeypatch.setattr(row_work, "_ROWS_AT_ONCE", rows)
    monkeypatch.setattr(row_work, "core_count", lambda: 3)
    monkeypatch.setattr(row_work, "_BINS", bins)
    env = environment(graph, host)
    work = work_of_rows(env, k - 2)
    assert env.resources.host.used == 0
    assert (work.roots[0], work.roots[-1]) == (0, 2 * graph.num_edges)
    assert (np.diff(work.roots) > 0).all()
    assert len(work.roots) <= min(bins, graph.num_vertices) + 1
    expected, row = [], 0
    so_far = 0.0
    for root in work.roots.tolist():
        while row < graph.num_vertices and graph.indptr[row] < root:
            so_far += POWERS[k](float(graph.split[row] - graph.indptr[row]))
            row += 1
        assert row == graph.num_vertices or graph.indptr[row] == root
        expected.append(so_far)
    np.testing.assert_allclose(work.ends, expected)


def share_of(graph: Graph, low: int, high: int) -> tuple[int, int]:
    """Count the pairs of smaller neighbours of the vertices low to high - 1, and those that are adjacent."""
    adjacent = pairs = 0
    for v in range(low, high):
        smaller = graph.indices[graph.indptr[v] : graph.split[v]].tolist()
        for i, u in enumerate(smaller):
            near = set(graph.indices[graph.indptr[u] : graph.split[u]].tolist())
            adjacent, pairs = adjacent + len(near.intersection(smaller[:i])), pairs + i
    return adjacent, pairs


def test_shares_of_adjacent_pairs_are_estimated(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_work, "_PAIRS", 2048)
    monkeypatch.setattr(row_work, "_SAMPLED", 3)
    rows, env = np.linspace(0, graph.num_vertices, 7).astype(np.int64), environment(graph)
    found = row_work._adjacent_shares(env, rows, 3, 1 << 26)
    assert env.resources.host.used == 0
    longest = [(graph.split - graph.indptr[:-1])[slice(*rows[i : i + 2])].max() for i in range(6)]
    looked_up = sorted(np.argsort(longest)[-3:].tolist())
    for i in looked_up:
        adjacent, pairs = share_of(graph, *rows[i : i + 2].tolist())
        assert 0.6 * adjacent / pairs < found[i] < 1.7 * adjacent / pairs
    assert len(set(found.tolist())) == 4
    assert found[[i for i in range(6) if i not in looked_up]] == pytest.approx(found[looked_up].mean())


def test_complete_graphs_have_only_adjacent_pairs() -> None:
    graph = build_graph(*np.triu_indices(30, 1))
    env = environment(graph)
    assert (row_work._adjacent_shares(env, np.array([0, 7, 30]), 4, 1 << 26) == 1.0).all()
    with_files = replace(graph, files=object())
    assert (row_work._adjacent_shares(environment(with_files), np.array([0, 7, 30]), 4, 1 << 26) == 1.0).all()


def test_cliques_of_many_vertices_are_cut_by_it() -> None:
    """Ranges of equal work have about equally many cliques; ranges of equal arcs have far more or fewer."""
    graph = generate("rmat", scale=10, edge_factor=60, seed=2)
    env, total = environment(graph), 2 * graph.num_edges
    assert RangeCount(CountCliques(3), 1.0).work(env) is None
    work = RangeCount(CountCliques(6), 1.0).work(env)
    assert work is not None
    cut = WorkProfile([Task(0, total, total)], work).cut(0, total, 8)
    engine = CpuEngine(1)
    counter = engine.kernels.clique_counter(engine.device, host_arrays(graph), 6, 1 << 28)
    equal = [counter.count(at * total // 8, (at + 1) * total // 8) for at in range(8)]
    cliques = [counter.count(*piece) for piece in cut]
    assert sum(cliques) == sum(equal)
    assert max(cliques) < 0.6 * max(equal)
