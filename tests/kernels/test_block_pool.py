"""Extension with very few blocks and a very small workspace, against the CPU engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from longwall.kernels import select_engine
from longwall.kernels.cuda.search import search
from longwall.kernels.cuda.search.block_pool import BLOCK_BYTES, LEAST_BLOCKS
from longwall.kernels.cuda.search.search_header import stored_sets
from longwall.kernels.interface.search_program import SearchProgram, emitted_set, to_extend
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.stages.source import edge_source, host_arrays
from longwall.storage.generators.kinds import generate

pytestmark = pytest.mark.gpu

PLENTY = 1 << 24


def test_a_row_on_its_own_has_all_blocks_whatever_workspace_it_needs(
    cuda: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each tier of workspace takes a block: there are more tiers than blocks."""
    monkeypatch.setattr(search, "_LEAST_ROOM", 1)
    monkeypatch.setattr(search, "_TIER", 2)
    monkeypatch.setattr(search, "SHARED_ROOM", 0)
    graph = generate("rmat", seed=6, scale=8, edge_factor=20)
    host = host_arrays(graph)
    program = plan_match(parse_pattern("house"), graph.stats, induced=True, counting=False).program
    levels = (program.levels[0], program.levels[1])
    on_host = select_engine("cpu", 1)
    cpu = on_host.kernels.searcher(on_host.device, host, program, PLENTY)
    edges = edge_source(host, levels, 0, host.num_arcs, np)
    found = cpu.extend_rows(edges.columns(), PLENTY)
    rows = edges.extended(found.counts, found.values).columns()
    expected = cpu.extend_rows(rows, PLENTY)
    ends = np.cumsum(expected.counts)
    with cuda.faults():
        searcher = cuda.kernels.searcher(cuda.device, cuda.load(host), program, 1 << 22)
        extender = searcher._extender
        extender._store = extender._store[: words_of_a_warp(program, 3, host)]
        extender._pool._memory = LEAST_BLOCKS * BLOCK_BYTES
        for row in range(0, rows.shape[1], rows.shape[1] // 60):
            one = searcher.extend_rows(cuda.xp.asarray(np.ascontiguousarray(rows[:, row : row + 1])), 1 << 16)
            assert (one.waiting, one.begun) == (0, 0)
            assert one.counts.tolist() == [expected.counts[row]]
            np.testing.assert_array_equal(
                one.values.get(), expected.values[ends[row] - expected.counts[row] : ends[row]]
            )


def words_of_a_warp(program: SearchProgram, columns: int, host: Any) -> int:
    """Of workspace, for the longest sets that there are."""
    extending = to_extend(program, columns)
    plain, oriented = stored_sets(extending, emitted_set(extending, columns))
    return plain * host.max_degree + oriented * host.max_out_degree
