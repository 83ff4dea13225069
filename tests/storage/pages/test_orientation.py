"""The arcs to smaller neighbours: equal to what the definition says, and counted right up to any arc."""

from __future__ import annotations

import numpy as np
import pytest

from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.build import build_graph
from longwall.storage.pages import orientation
from longwall.storage.pages.orientation import bytes_per_page, orient, oriented_arc, oriented_bytes, target_blocks

GRAPHS = {
    "one edge": build_graph(np.array([0]), np.array([1])),
    "star": build_graph(np.zeros(50, np.int64), np.arange(1, 51)),
    "rmat": generate("rmat", seed=5, scale=8, edge_factor=6),
    "even": generate("erdos-renyi", seed=2, vertices=200, edges=900),
}


@pytest.mark.parametrize("name", list(GRAPHS))
@pytest.mark.parametrize("at_once", [1, 7, 1 << 20])
def test_rows_have_the_smaller_neighbours(name: str, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orientation, "_ARCS_AT_ONCE", at_once)
    graph = GRAPHS[name]
    arrays = orient(graph, np.empty)
    assert arrays.oriented
    assert arrays.num_arcs == graph.num_edges
    assert arrays.indptr.nbytes + arrays.indices.nbytes <= oriented_bytes(graph)
    for v in range(graph.num_vertices):
        row = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
        own = arrays.indices[arrays.indptr[v] : arrays.split[v]]
        assert own.tolist() == [w for w in row.tolist() if w < v]
        assert arrays.split[v] == arrays.indptr[v + 1]
    assert arrays.max_degree == arrays.max_out_degree == np.diff(arrays.indptr).max()


@pytest.mark.parametrize("name", list(GRAPHS))
def test_arcs_before_a_place_are_counted(name: str) -> None:
    graph = GRAPHS[name]
    starts = orient(graph, np.empty).indptr
    smaller = np.concatenate([[0], np.cumsum(graph.indices < owners(graph))])
    assert [oriented_arc(graph, starts, at) for at in range(len(graph.indices) + 1)] == smaller.tolist()


@pytest.mark.parametrize("name", list(GRAPHS))
@pytest.mark.parametrize("page_arcs", [1, 4, 64, 4096])
def test_bytes_of_pages_are_those_of_all_lists(name: str, page_arcs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orientation, "_VERTICES_AT_ONCE", 37)
    graph = GRAPHS[name]
    starts = orient(graph, np.empty).indptr
    read = np.zeros(graph.num_edges, int)
    for v in range(graph.num_vertices):
        read[starts[v] : starts[v + 1]] += 1 + graph.indptr[v + 1] - graph.split[v]
    expected = [4 * int(read[at : at + page_arcs].sum()) for at in range(0, graph.num_edges, page_arcs)]
    assert bytes_per_page(graph, starts, page_arcs).tolist() == expected


@pytest.mark.parametrize("name", list(GRAPHS))
@pytest.mark.parametrize("arcs", [1, 5, 300, 1 << 30])
def test_blocks_have_all_vertices_and_so_many_arcs(name: str, arcs: int) -> None:
    starts = orient(GRAPHS[name], np.empty).indptr
    blocks = target_blocks(starts, arcs)
    assert [v for low, high in blocks for v in range(low, high)] == list(range(starts.size - 1))
    for low, high in blocks:
        assert high == low + 1 or starts[high] - starts[low] <= arcs
    assert arcs < 1 << 30 or len(blocks) == 1


def owners(graph: Graph) -> np.ndarray:
    return np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
