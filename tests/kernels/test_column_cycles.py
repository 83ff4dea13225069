"""4-cycles by columns of the adjacency, whose lists come in turn: equal to cycles that are found vertex by vertex."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import combinations, pairwise

import numpy as np
import pytest
from engines import make_engine

from longwall.kernels.interface.engine import Engine, WorkspaceTooLarge
from longwall.stages.source import host_arrays
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.build import build_graph

GRAPHS = {
    "rmat": cache(lambda: generate("rmat", seed=4, scale=8, edge_factor=8)),
    "dense": cache(lambda: generate("erdos-renyi", seed=1, vertices=90, edges=2500)),
    "two hubs": cache(lambda: build_graph(np.repeat([0, 1], 700), np.tile(np.arange(2, 702), 2))),
    "path": cache(lambda: build_graph(np.arange(50), np.arange(1, 51))),
}


def cycles_of(graph: Graph) -> list[int]:
    """4-cycles by their smallest vertices: pairs of larger neighbours, by what larger ones they have in common."""
    near = [graph.indices[a:z].tolist() for a, z in pairwise(graph.indptr.tolist())]
    found = []
    for v in range(graph.num_vertices):
        ends = Counter(y for x in near[v] if x > v for y in near[x] if y > v)
        found.append(sum(len(list(combinations(range(c), 2))) if c < 50 else c * (c - 1) // 2 for c in ends.values()))
    return found


@pytest.mark.parametrize("window", [None, 400])
@pytest.mark.parametrize("name", list(GRAPHS))
def test_cycles_of_ranges(name: str, window: int | None, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = GRAPHS[name]()
    if (
        window is not None and engine.name == "cuda"
    ):  # less shared memory: longer tables than it, and several passes over the columns
        monkeypatch.setattr(engine.device, "shared_memory", window)
    host, expected, n = host_arrays(graph), cycles_of(graph), graph.num_vertices
    counter = engine.kernels.column_cycle_counter(engine.device, engine.load(host), 1 << 24)
    assert counter.arc_capacity
    for first, last in pairwise([0, 1, n // 3, n // 3 + 2, n]):
        wanted = sum(expected[first:last])
        assert counter.count(first, last) == wanted
        cuts = [first, first + (n - first) // 3, n - (n - first) // 4, n]
        assert counter.count(first, last, lambda cuts=cuts: pairwise(cuts)) == wanted


@pytest.mark.gpu
def test_few_vertices_are_counted_at_once() -> None:
    graph, chosen = GRAPHS["rmat"](), make_engine("cuda")
    host, n = host_arrays(graph), graph.num_vertices
    counter = chosen.kernels.column_cycle_counter(chosen.device, chosen.load(host), 12 * n + 4 * n + 8000)
    assert counter._most < n  # type: ignore[attr-defined]
    expected, found, first = sum(cycles_of(graph)), 0, 0
    larger = np.cumsum([0, *(graph.indptr[1:] - graph.split)])
    while first < n:
        last = int(np.searchsorted(larger, larger[first] + counter.arc_capacity, "right")) - 1
        assert last > first
        found, first = found + counter.count(first, last), last
    assert found == expected
    with pytest.raises(WorkspaceTooLarge):
        chosen.kernels.column_cycle_counter(chosen.device, chosen.load(host), 4 * n)
