"""Sums over edges are those that a loop over the edges finds, whatever the segments."""

from __future__ import annotations

from contextlib import closing
from functools import cache
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from budgets import make_budgets
from stored import PLENTY, lists_of, short_chunks, store_of

from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.build import build_graph
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.observer import NullObserver
from longwall.storage.streaming.edge_sums import _add_products, add_degree_products

GRAPHS = {
    "rmat": cache(lambda: generate("rmat", seed=7, scale=8, edge_factor=6)),
    "star": cache(lambda: build_graph(np.zeros(50, np.int64), np.arange(1, 51))),
    "one edge": cache(lambda: build_graph(np.array([0]), np.array([1]))),
}


def naively(graph: Graph) -> int:
    degrees = np.diff(graph.indptr).tolist()
    rows = (graph.indices[graph.indptr[v] : graph.split[v]].tolist() for v in range(graph.num_vertices))
    return sum((degrees[u] - 1) * (degrees[v] - 1) for v, row in enumerate(rows) for u in row)


@pytest.mark.parametrize("chunk", [64, 1 << 20])
@pytest.mark.parametrize("kind", list(GRAPHS))
def test_products_of_degrees_add_up(tmp_path: Path, kind: str, chunk: int) -> None:
    host = MemoryBudget("memory.host", PLENTY)
    with short_chunks(chunk), SpillFolder(tmp_path / "spill") as spill:
        stored = store_of(GRAPHS[kind](), tmp_path / "graph")
        with closing(lists_of(stored, make_budgets().at(spill))) as lists:
            assert add_degree_products(stored, lists, host, NullObserver(), Event()) == naively(GRAPHS[kind]())
            assert lists.bytes_read == 4 * stored.num_edges
            assert host.used == 0
            assert host.peak >= 4 * stored.num_vertices
            with pytest.raises(BudgetExceeded, match=r"memory\.host"):
                add_degree_products(stored, lists, MemoryBudget("memory.host", 7), NullObserver(), Event())
            stopped = Event()
            stopped.set()
            with pytest.raises(KeyboardInterrupt):
                add_degree_products(stored, lists, host, NullObserver(), stopped)


@pytest.mark.parametrize("kind", list(GRAPHS))
def test_degrees_of_vertices_are_those_of_the_rows(tmp_path: Path, kind: str) -> None:
    graph = GRAPHS[kind]()
    vertices = np.random.default_rng(1).integers(0, graph.num_vertices, 40)
    expected = np.diff(graph.indptr)[vertices].tolist()
    assert graph.degrees_of(vertices).tolist() == expected
    assert store_of(graph, tmp_path / "graph").degrees_of(vertices).tolist() == expected


def test_sums_are_exact_past_64_bits() -> None:
    most = 2**32 - 1
    low, high = _add_products(np.zeros(3, np.uint32), 0, np.array([0, 0, 3]), np.full(2, most, np.uint32))
    assert int(low) + (int(high) << 32) == 3 * (most - 1) ** 2 > 2**64
