"""Stacks of counting searches: what memory is shared out into, and counts that do not depend on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from selection import on_device

from longwall.kernels.cpu.engine import CpuEngine
from longwall.kernels.cuda.search import search as cuda_search
from longwall.kernels.cuda.search.search_stacks import SearchStacks
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.stages.source import edge_source
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph

PLENTY = 1 << 30


@given(wanted=st.integers(1, 5000), long=st.integers(0, 10**6), part=st.floats(0, 1.2))
def test_stacks_stay_in_memory_and_one_is_long(wanted: int, long: int, part: float) -> None:
    memory = 4 * max(int(wanted * long * part), long)
    stacks = SearchStacks.within(wanted, long, memory)
    assert 4 * stacks.elements <= memory
    assert 1 <= stacks.warps <= wanted
    assert (stacks.own == long) if not stacks.longs else (0 < stacks.own < long)


def test_all_warps_work_where_few_long_stacks_fit() -> None:
    wanted, long = 1000, 10_000
    assert SearchStacks.within(wanted, long, 4 * wanted * long) == SearchStacks(wanted, long, 0, long)
    eighth = SearchStacks.within(wanted, long, wanted * long // 2)
    assert (eighth.warps, eighth.longs) == (wanted, wanted // 16)
    assert SearchStacks.within(wanted, long, 4 * long) == SearchStacks(1, long, 0, long)


def arrays(graph: Graph) -> GraphArrays:
    labels = np.zeros(1, np.int32)
    return GraphArrays(
        graph.indptr, graph.indices, graph.split, labels, graph.stats.max_degree, graph.stats.max_out_degree
    )


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "induced"), [("0-1,0-2,0-3,1-2,1-3,2-4,3-4", False), ("wheel-5", True)])
@pytest.mark.parametrize("longs", [1, 3, 12])
def test_counts_do_not_depend_on_the_stacks(
    cuda: Any, monkeypatch: pytest.MonkeyPatch, name: str, induced: bool, longs: int
) -> None:
    """Own stacks of a few elements overflow; long ones are lent again and again, and work is handed over meanwhile."""
    graph = generate("rmat", seed=6, scale=on_device(10, 7), edge_factor=8)
    host, device = arrays(graph), cuda.load(arrays(graph))
    plan = plan_match(parse_pattern(name), graph.stats, induced=induced)
    rows = edge_source(host, (plan.program.levels[0], plan.program.levels[1]), 0, host.num_arcs, np).columns()
    cpu = CpuEngine(1)
    expected = cpu.kernels.searcher(cpu.device, host, plan.program, PLENTY).count_rows(rows)
    assert expected > 1000
    lent: list[int] = []

    def few(wanted: int, long: int, memory: int) -> SearchStacks:
        lent.append(long)
        return SearchStacks(min(wanted, 64), 8, longs, long)

    monkeypatch.setattr(SearchStacks, "within", few)
    for patience in (cuda_search.PATIENCE, 0):
        monkeypatch.setattr(cuda_search, "PATIENCE", patience)
        searcher = cuda.kernels.searcher(cuda.device, device, plan.program, PLENTY)
        assert [searcher.count_rows(cuda.xp.asarray(rows)) for _ in range(2)] == [expected] * 2
    assert lent[0] > 8
