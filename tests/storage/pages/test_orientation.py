"""The arcs to smaller neighbours: equal to what the definition says, and counted right up to any arc."""

from __future__ import annotations

import threading
import time
from functools import cache
from typing import Any

import numpy as np
import pytest
from cases import each_case
from oriented import orient

from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.build import build_graph
from longwall.storage.pages import orientation, oriented_copy
from longwall.storage.pages.orientation import (
    bytes_per_page,
    oriented_arc,
    oriented_arrays,
    oriented_bytes,
    target_blocks,
)
from longwall.storage.pages.oriented_copy import OrientedCopy

GRAPHS = {
    "one edge": cache(lambda: build_graph(np.array([0]), np.array([1]))),
    "star": cache(lambda: build_graph(np.zeros(50, np.int64), np.arange(1, 51))),
    "rmat": cache(lambda: generate("rmat", seed=5, scale=8, edge_factor=6)),
    "even": cache(lambda: generate("erdos-renyi", seed=2, vertices=200, edges=900)),
}


@each_case("name", list(GRAPHS))
@each_case("at_once", [1, 7, 1 << 20])
@each_case("least", [0, 2, 5, 60])
def test_rows_have_the_smaller_neighbours(name: str, at_once: int, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oriented_copy, "_ARCS_AT_ONCE", at_once)
    monkeypatch.setattr(orientation, "_VERTICES_AT_ONCE", at_once)
    graph = GRAPHS[name]()
    arrays = orient(graph, least)
    degrees = np.diff(graph.indptr)
    assert arrays.oriented
    assert arrays.num_vertices == max(np.flatnonzero(degrees >= least), default=-1) + 1
    assert arrays.num_arcs == arrays.indptr[-1] == (graph.split - graph.indptr[:-1])[: arrays.num_vertices].sum()
    assert arrays.indptr.nbytes + arrays.indices.nbytes <= oriented_bytes(graph)
    for v in range(arrays.num_vertices):
        row = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
        own = arrays.indices[arrays.indptr[v] : arrays.split[v]]
        assert own.tolist() == [w for w in row.tolist() if w < v]
        assert arrays.split[v] == arrays.indptr[v + 1]
    assert arrays.max_degree == arrays.max_out_degree == (graph.split - graph.indptr[:-1]).max()


@each_case("name", list(GRAPHS))
@each_case("at_once", [7, 1 << 20])
@pytest.mark.parametrize("degree", [1, 2, 12, 50, 1000])
def test_all_vertices_behind_the_hubs_have_few_neighbours(
    name: str, at_once: int, degree: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orientation, "_VERTICES_AT_ONCE", at_once)
    monkeypatch.setattr(orientation, "NARROW_DEGREE", degree)
    graph = GRAPHS[name]()
    hubs = [v for v, neighbours in enumerate(np.diff(graph.indptr).tolist()) if neighbours >= degree]
    assert oriented_arrays(graph, np.empty).narrow_from == (hubs[-1] + 1 if hubs else 0)


@pytest.mark.slow
@each_case("name", list(GRAPHS))
@each_case("at_once", [1, 40, 1 << 20])
@each_case("most", [1, 9, 100, 1 << 20])
def test_pieces_have_every_arc_once_and_few_enough(
    name: str, at_once: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oriented_copy, "_ARCS_AT_ONCE", at_once)
    graph = GRAPHS[name]()
    arrays = oriented_arrays(graph, np.empty)
    copy = OrientedCopy(graph, arrays)
    copy.begin()
    m, n, random = graph.num_edges, graph.num_vertices, np.random.default_rng(3)
    for _ in range(4 if most == 1 else 20):  # pieces of an arc are a thousand each time
        first, last = sorted(random.integers(0, m + 1, 2).tolist())
        low, high = sorted(random.integers(0, n + 1, 2).tolist())
        copy.wait(last)
        own = arrays.indices[first:last]
        found = np.zeros(own.size, int)
        for (begin, end), (least, beyond) in copy.cut((first, last), (low, high), most):
            assert first <= begin < end <= last
            some = own[begin - first : end - first]
            there = (some >= least) & (some < beyond)
            assert np.count_nonzero(there) <= most
            found[begin - first : end - first] += there
        assert found.tolist() == ((own >= low) & (own < high)).astype(int).tolist()
        if at_once == 1 and most == 1 << 20 and first < last and low < high:
            assert len([*copy.cut((first, last), (low, high), most)]) == bool(found.any())
    copy.close()


def test_an_array_is_filled_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oriented_copy, "_ARCS_AT_ONCE", 50)
    graph, gate = GRAPHS["even"](), threading.Event()
    expected, arrays = orient(graph).indices, oriented_arrays(graph, np.zeros)
    copy, plain = OrientedCopy(graph, arrays), oriented_copy._copy_rows

    def held(indptr: np.ndarray, indices: np.ndarray, starts: np.ndarray, first: int, *rest: Any) -> None:
        assert starts[first] < 500 or gate.wait(20)
        plain(indptr, indices, starts, first, *rest)

    monkeypatch.setattr(oriented_copy, "_copy_rows", held)
    copy.begin()
    copy.wait(400)
    assert arrays.indices[:400].tolist() == expected[:400].tolist()
    assert not arrays.indices[600:].any()
    gate.set()
    copy.wait()
    assert arrays.indices.tolist() == expected.tolist()


def test_a_fault_of_a_thread_is_raised_where_arcs_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = GRAPHS["even"]()
    copy = OrientedCopy(graph, oriented_arrays(graph, np.zeros))
    monkeypatch.setattr(oriented_copy, "_copy_rows", lambda *_: 1 // 0)
    copy.begin()
    with pytest.raises(ZeroDivisionError):
        copy.wait(1)
    copy.close()


def test_nothing_is_copied_any_more_where_a_thread_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oriented_copy, "_ARCS_AT_ONCE", 1)
    monkeypatch.setattr(oriented_copy, "core_count", lambda: 9)
    graph, started, running = GRAPHS["even"](), [], []
    start, plain = threading.Thread.start, oriented_copy._copy_rows

    def one(thread: threading.Thread) -> None:
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    def slow(*given: Any) -> None:
        running.append(1)
        time.sleep(0.02)
        plain(*given)
        running.pop()

    monkeypatch.setattr(oriented_copy, "_copy_rows", slow)
    monkeypatch.setattr(threading.Thread, "start", one)
    copy = OrientedCopy(graph, oriented_arrays(graph, np.zeros))
    with pytest.raises(RuntimeError, match="can't start new thread"):
        copy.begin()
    assert not running
    assert not started[0].is_alive()
    copy.close()


@pytest.mark.parametrize("name", list(GRAPHS))
@pytest.mark.parametrize("least", [0, 2, 60])
def test_arcs_before_a_place_are_counted(name: str, least: int) -> None:
    graph = GRAPHS[name]()
    starts = orient(graph, least).indptr
    smaller = np.concatenate([[0], np.cumsum(graph.indices < owners(graph))]).clip(max=starts[-1])
    assert [oriented_arc(graph, starts, at) for at in range(len(graph.indices) + 1)] == smaller.tolist()


@each_case("name", list(GRAPHS))
@each_case("page_arcs", [1, 4, 64, 4096])
def test_bytes_of_pages_are_those_of_all_lists(name: str, page_arcs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orientation, "_LISTS_AT_ONCE", 37)
    graph = GRAPHS[name]()
    starts = orient(graph).indptr
    read = np.zeros(graph.num_edges, int)
    for v in range(graph.num_vertices):
        read[starts[v] : starts[v + 1]] += 1 + graph.indptr[v + 1] - graph.split[v]
    expected = [4 * int(read[at : at + page_arcs].sum()) for at in range(0, graph.num_edges, page_arcs)]
    assert bytes_per_page(graph, starts, page_arcs).tolist() == expected


@each_case("name", list(GRAPHS))
@each_case("arcs", [1, 5, 300, 1 << 30])
def test_blocks_have_all_vertices_and_so_many_arcs(name: str, arcs: int) -> None:
    starts = orient(GRAPHS[name]()).indptr
    blocks = target_blocks(starts, arcs)
    assert [v for low, high in blocks for v in range(low, high)] == list(range(starts.size - 1))
    for low, high in blocks:
        assert high == low + 1 or starts[high] - starts[low] <= arcs
    assert arcs < 1 << 30 or len(blocks) == 1


def owners(graph: Graph) -> np.ndarray:
    return np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
