"""The work of counting cliques along the arcs of a graph, by which ranges for a cluster are cut."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from budgets import make_budgets
from cases import each_case

from longwall.pipeline.cluster.work_profile import WorkProfile
from longwall.pipeline.execution import row_work
from longwall.pipeline.execution.phase import Task
from longwall.pipeline.execution.row_work import work_of_rows
from longwall.pipeline.phases.range_count import RangeCount
from longwall.stages.range_counting import CountCliques
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph

POWERS = {4: lambda d: d * d + 100 * d, 5: lambda d: d * d + 100 * d + d**3 / 10}


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


def test_cliques_of_many_vertices_are_cut_by_it(graph: Graph) -> None:
    env = environment(graph)
    assert RangeCount(CountCliques(3), 1.0).work(env) is None
    work = RangeCount(CountCliques(6), 1.0).work(env)
    assert work is not None
    total = 2 * graph.num_edges
    cut = WorkProfile([Task(0, total, total)], work).cut(0, total, 8)
    smaller = (graph.split - graph.indptr[:-1]).astype(float) ** 4
    shares = [smaller[slice(*np.searchsorted(graph.indptr[:-1], piece))].sum() for piece in cut]
    equal = [
        smaller[slice(*np.searchsorted(graph.indptr[:-1], (at * total // 8, (at + 1) * total // 8)))].sum()
        for at in range(8)
    ]
    assert max(shares) < 0.6 * max(equal)
