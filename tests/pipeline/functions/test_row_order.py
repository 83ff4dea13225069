"""The order of rows: the same each time with one thread, and in `head`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import longwall

LISTINGS = {
    "diamonds": lambda graph, **options: longwall.match(graph, "diamond", **options),
    "with labels": lambda graph, **options: longwall.match(graph, "(a:0)-(b)-(c:1)", **options),
    "maximal cliques": lambda graph, **options: longwall.maximal_cliques(graph, **options),
}


@pytest.fixture(scope="module")
def graph() -> longwall.Graph:
    drawn = nx.gnp_random_graph(60, 0.2, seed=5)
    return longwall.graph(drawn, labels={v: v % 2 for v in drawn})


@pytest.fixture
def many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small graphs have several tasks, which are handed out and committed one by one."""
    monkeypatch.setattr("longwall.pipeline.execution.task_ranges._ARCS_PER_TASK", 1)
    monkeypatch.setattr("longwall.pipeline.execution.task_ranges._LISTED_STEPS", 1)
    monkeypatch.setattr("longwall.kernels.cpu.engine._TASKS_PER_WORKER", 24)


@pytest.mark.parametrize("name", LISTINGS)
@pytest.mark.usefixtures("many_tasks")
def test_one_thread_writes_the_same_rows_each_time(
    graph: longwall.Graph, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"engine": "cpu", "threads": 1, "spill": tmp_path}
    rows = LISTINGS[name](graph, **options).to_arrow().to_pylist()
    assert len(rows) > 100
    for chunk in (7, 64, 4096):  # sizes that the machine's speed or a budget may lead to
        monkeypatch.setattr("longwall.pipeline.execution.worker_memory.LARGEST_CHUNK", chunk)
        assert LISTINGS[name](graph, **options).to_arrow().to_pylist() == rows


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", LISTINGS)
@pytest.mark.usefixtures("many_tasks")
def test_head_is_the_same_each_time(graph: longwall.Graph, name: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"engine": "cpu", "threads": 2, "spill": tmp_path}
    first = LISTINGS[name](graph, **options).head(40).to_pylist()
    rows = LISTINGS[name](graph, **options | {"threads": 1}).to_arrow().to_pylist()
    for number in (40, 7, 40, 40):
        assert LISTINGS[name](graph, **options).head(number).to_pylist() == first[:number]
    asked = LISTINGS[name](graph, **options)
    assert [asked.head(number).to_pylist() for number in (3, 40, 5)] == [first[:3], first, first[:5]]
    assert LISTINGS[name](graph, limit=9, **options).head(40).to_pylist() == first[:9]
    assert asked.head(len(rows) + 5).num_rows == len(rows)
    asked.to_arrow()
    assert asked.head(40).to_pylist() == first
