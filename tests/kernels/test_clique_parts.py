"""Blocks share vertices of many out-neighbours: each part is searched once, and the counts stay the same."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import comb

import numpy as np
import pytest
from cases import each_case
from engines import make_engine
from selection import on_device

from longwall.kernels.cuda.kcliques import bitmaps, leaves
from longwall.kernels.cuda.kcliques.heavy_tasks import LIGHT, Parts, heavy_tasks
from longwall.kernels.interface.kcliques import cliques_of_leaves
from longwall.stages.source import host_arrays
from longwall.storage.ingest.build import build_graph

pytestmark = pytest.mark.gpu
FINE = Parts(20, 3000, 3)
SIZE = 45


@each_case("cuts", [(), (300,), (5, 433, 434, 1500)])
@each_case("parts", [FINE, Parts(1 << 31, 0, 512), Parts(20, 1, 1), Parts(30, 1 << 20, 4, 7)])
def test_each_part_of_each_vertex_is_listed_once(cuts: tuple[int, ...], parts: Parts) -> None:
    engine = make_engine("cuda")
    host = host_arrays(build_graph(*np.triu_indices(SIZE, 1)))
    graph = engine.load(host)
    for first, last in pairwise([0, *cuts, graph.num_arcs]):
        number = engine.xp.zeros(1, np.uint32)
        listed = heavy_tasks(engine.device, graph, (first, last), LIGHT, parts, number).get()[: int(number.get()[0])]
        expected, several = [], 0
        for v in range(SIZE):
            degree, rows = v, parts.most
            if degree > parts.whole:
                rows = min(max(parts.work // degree**2, parts.least), parts.most)
            if degree > LIGHT and max(int(host.indptr[v]), first) < min(int(host.split[v]), last):
                expected += [[v, part] for part in range(-(-degree // rows))]
                several += -(-degree // rows) if degree > parts.whole else 0
        assert sorted(listed.tolist()) == expected
        assert all(v > parts.whole for v, _ in listed[:several].tolist())


@each_case("k", [6, 7, 9])
def test_counts_do_not_depend_on_parts(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A complete graph, less an edge at each vertex."""
    monkeypatch.setattr(bitmaps, "_parts", lambda k: FINE)
    monkeypatch.setattr(leaves, "_PARTS", FINE)
    engine = make_engine("cuda")
    size = on_device(SIZE, 36)
    pairs = np.array([(u, v) for u, v in combinations(range(size), 2) if u // 2 != v // 2])
    graph = engine.load(host_arrays(build_graph(pairs[:, 0], pairs[:, 1])))
    halves = size // 2
    expected = sum(comb(halves, pairs) * 2**pairs * comb(size % 2, k - pairs) for pairs in (k - 1, k))
    ends = [0, 401, 600, graph.num_arcs]
    kernels, device = engine.kernels, engine.device
    counter = kernels.clique_counter(device, graph, k, 1 << 27)
    assert sum(counter.count(first, last) for first, last in pairwise(ends)) == expected
    pivots = kernels.clique_leaf_counter(device, graph, k, 1 << 27)
    for first, last in pairwise(ends):
        pivots.add(first, last)
    assert cliques_of_leaves(pivots.take(), k)[k] == expected
