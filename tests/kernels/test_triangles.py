"""Triangles of the arcs to some vertices, in the whole adjacency and in the arcs to smaller neighbours alone."""

from __future__ import annotations

from functools import cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from oriented import orient

from longwall.kernels.cuda.local_counts import reverse_adjacency
from longwall.kernels.cuda.local_counts import triangles as cuda_triangles
from longwall.kernels.interface.engine import Engine
from longwall.stages.source import host_arrays
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph

GRAPHS = {
    "rmat": cache(lambda: generate("rmat", seed=4, scale=7, edge_factor=8)),
    "dense": cache(lambda: generate("erdos-renyi", seed=1, vertices=90, edges=2500)),
}


def triangles(graph: Graph) -> np.ndarray:
    """All of them, the largest vertex first."""
    near = [set(graph.indices[a:z].tolist()) for a, z in pairwise(graph.indptr.tolist())]
    found = [
        (v, u, w)
        for v in range(graph.num_vertices)
        for w, u in combinations(sorted(x for x in near[v] if x < v), 2)
        if w in near[u]
    ]
    return np.array(found).reshape(-1, 3)


@pytest.mark.parametrize("oriented", [False, True])
@pytest.mark.parametrize("name", list(GRAPHS))
def test_triangles_of_arcs_to_some_vertices(name: str, oriented: bool, engine: Engine) -> None:
    graph = GRAPHS[name]()
    host: Any = orient(graph) if oriented else host_arrays(graph)
    counter = engine.kernels.triangle_counter(engine.device, engine.load(host), 1 << 28)
    expected, middle = triangles(graph), triangles(graph)[:, 1]
    assert counter.count(0, host.num_arcs) == len(expected)
    for low, high in pairwise([0, 1, 5, 17, 18, 40, graph.num_vertices]):
        wanted = expected[(middle >= low) & (middle < high)]
        assert counter.count(0, host.num_arcs, (low, high)) == len(wanted)
    half = host.num_arcs // 2
    parts = [counter.count(*arcs, (3, 30)) for arcs in ((0, half), (half, host.num_arcs))]
    assert sum(parts) == np.count_nonzero((middle >= 3) & (middle < 30))


@pytest.mark.parametrize("short", [0, 1000])
@pytest.mark.parametrize("long_tasks", [1e-9, 64])
@pytest.mark.parametrize("name", list(GRAPHS))
def test_triangles_of_long_ranges_by_warps_and_by_blocks(
    name: str, long_tasks: float, short: int, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_triangles, "_SHORT", short)
    monkeypatch.setattr(reverse_adjacency, "_LONG_TASKS", long_tasks)  # few, so that tasks are long
    graph = GRAPHS[name]()
    counter = engine.kernels.triangle_counter(engine.device, engine.load(host_arrays(graph)), 1 << 28)
    arcs, expected = 2 * graph.num_edges, triangles(graph)
    begins = [
        graph.indptr[v] + np.searchsorted(graph.indices[slice(*graph.indptr[v : v + 2])], u) for v, u, _ in expected
    ]
    for first, last in ((0, arcs), (0, arcs // 2), (arcs // 3, arcs), (arcs // 4 + 7, arcs * 3 // 4), (0, arcs)):
        wanted = np.count_nonzero((first <= np.array(begins)) & (np.array(begins) < last))
        assert counter.count(first, last) == wanted


@pytest.mark.parametrize("memory", [1 << 28, 8 * 16])
@pytest.mark.parametrize("name", list(GRAPHS))
def test_triangles_of_vertices_by_arcs_to_some_vertices(name: str, memory: int, engine: Engine) -> None:
    graph = GRAPHS[name]()
    host, n = orient(graph), graph.num_vertices
    counter = engine.kernels.triangle_vertex_counter(
        engine.device, engine.load(host), memory if engine.name == "cuda" else 1 << 28
    )
    expected = triangles(graph)
    for low, high in ((5, 17), (0, 5), (40, n)):
        for arcs in pairwise([0, host.num_arcs // 3, host.num_arcs]):
            counter.add(*arcs, (low, high))
    wanted = expected[(expected[:, 1] < 17) | (expected[:, 1] >= 40)]
    assert counter.counts().tolist() == np.bincount(wanted.ravel(), minlength=n).tolist()
    counter.add(0, host.num_arcs, (17, 40))
    assert counter.counts().tolist() == np.bincount(expected.ravel(), minlength=n).tolist()
