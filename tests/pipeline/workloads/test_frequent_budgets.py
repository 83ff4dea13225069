"""Frequent patterns, many of them, in budgets: the patterns themselves, their codes, what the commit log knows."""

from __future__ import annotations

import json
import pathlib
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import longwall
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.workloads.frequent.dfs_patterns import DfsPatterns
from longwall.pipeline.workloads.frequent.grown_patterns import (
    GROWN_BYTES,
    FrequentPatterns,
    GrownPatterns,
    PatternParts,
)
from longwall.pipeline.workloads.frequent.pattern_table import PatternTable
from longwall.pipeline.workloads.frequent.plan import FrequentPlan
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.typed_graph import EdgeTypes
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget

MANY = {"kind": "frequent", "min_support": 1, "max_edges": 2}
_OTHERS = 1 << 19  # objects of Python that are no patterns


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Nearly every wedge is a pattern of its own."""
    return generate("erdos-renyi", seed=1, vertices=600, edges=1500, num_labels=200)


def mine(env: Coordinator) -> list[PatternCount]:
    """The patterns of a run; it is not published yet."""
    workload: Any = env.spec.workload
    found: list[PatternCount] = workload.execute(workload.plan(env.graph), env)
    env.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alone", "output"),
    [(True, "embeddings"), (True, "count"), (False, "embeddings"), (False, "count")],
)
def test_what_many_patterns_take_is_reserved(lab: Any, graph: Graph, alone: bool, output: str) -> None:
    def run(host: int, **more: Any) -> tuple[Coordinator, int]:
        env = lab.context(graph, host=host, workload=MANY | {"output": output} | more)
        env.alone = alone
        return env, env.resources.host.used

    mine(run(1 << 30)[0])  # all that is imported, compiled and remembered is there
    env, before = run(40 << 20)
    tracemalloc.start()
    try:
        found = mine(env)
        kept, peak = tracemalloc.get_traced_memory()
        snapshot = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    places = [str(place) for place in snapshot.statistics("lineno")[:10]]
    # Paths are interned: the interpreter's table of all such texts may double at any of them.
    paths = snapshot.filter_traces([tracemalloc.Filter(inclusive=True, filename_pattern=pathlib.__file__)])
    interned = sum(trace.size for trace in paths.traces)
    host = env.resources.host
    assert len(found) > 7000
    assert kept - interned <= host.used - before + _OTHERS, places
    assert peak - interned <= host.peak - before + _OTHERS, places
    assert peak > 2 * _OTHERS
    env.answer.close()
    assert host.used == before


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("host", ["4MiB", "5MiB"])
def test_too_many_patterns_are_refused_with_a_message(tmp_path: Path, host: str) -> None:
    config = {
        "graph": {"generator": {"kind": "erdos-renyi", "seed": 1, "vertices": 600, "edges": 1500, "num_labels": 200}},
        "workload": MANY,
        "engine": {"kind": "cpu", "threads": 1},
        "memory": {"host": host, "spill": str(tmp_path / "spill")},
        "run": {"directory": str(tmp_path), "name": "x"},
    }
    with pytest.raises(longwall.RunError, match=r"no room for .*pattern.* memory.host = .* left: raise memory.host"):
        longwall.run(config)
    memory = json.loads((tmp_path / "x" / "manifest.json").read_text())["memory"]["host"]
    assert memory["peak"] <= memory["limit"]
    assert not (tmp_path / "spill").exists()


def random_level(patterns: int, edges: int) -> FrequentPatterns:
    """Paths whose labels need the most room."""
    rng = np.random.default_rng(edges)
    codes = rng.integers(1000, size=(patterns, edges, 5)).astype(np.int32)
    codes[:, :, 0], codes[:, :, 1] = np.arange(edges), np.arange(1, edges + 1)
    labels, none = np.arange(1000) + 10**8, np.zeros(0, np.int32)
    numbers = rng.integers(10**9, 10**12, patterns)
    level = DfsPatterns(codes[:, 0, 2].copy(), codes)
    types = EdgeTypes(none, none, none, labels, labels)
    return FrequentPatterns(level, types, numbers, np.ones(patterns, np.int64), numbers, numbers)


UNNAMED = SimpleNamespace(label_names=None, edge_label_names=None)


@pytest.mark.slow
@pytest.mark.parametrize("edges", [1, 10, 64])
def test_a_pattern_takes_what_is_reserved_for_it(tmp_path: Path, edges: int) -> None:
    budget = MemoryBudget("memory.host", 1 << 30)
    plan = FrequentPlan("mni", 1, edges, edges + 1, embeddings=False, exact=True)
    level = random_level(2000, edges)
    with PatternTable(tmp_path / "patterns.parquet", plan, UNNAMED, budget.reserve, 1 << 18) as table:
        table.write(random_level(1, edges))
        tracemalloc.start()
        try:
            held = budget.used
            table.write(level)
            kept, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(table.counts) == 2001
        assert 0.5 * (budget.used - held) <= kept <= budget.used - held
        assert peak <= budget.peak - held
    assert budget.used == table.reserved.size
    table.reserved.release()
    assert budget.used == 0


def test_parts_are_reserved_until_the_block_ends() -> None:
    budget = MemoryBudget("memory.host", 20 * GROWN_BYTES)
    numbers = np.arange(15)
    part = GrownPatterns(numbers, np.zeros((15, 5), np.int32), numbers, numbers, numbers)
    with PatternParts(budget.reserve) as parts:
        parts.add(part)
        with pytest.raises(BudgetExceeded, match=r"no room for the patterns of a level .*raise memory.host"):
            parts.add(part)
        assert (len(parts), budget.used) == (15, 15 * GROWN_BYTES)
        assert sum(array.nbytes for array in part) + np.column_stack(part).nbytes == 15 * GROWN_BYTES
    assert budget.used == 0
