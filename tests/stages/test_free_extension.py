"""Every way to grow an embedding by a vertex or an edge: brute force, cut anyhow, wherever the graph is."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from conftest import make_graph, set_page_size
from engines import make_engine
from hypothesis import given, settings
from hypothesis import strategies as st

from longwall.kernels.cpu.engine import CpuEngine
from longwall.kernels.interface.graph_arrays import VERTEX_ARRAYS, GraphArrays
from longwall.kernels.interface.pages import NeighbourRange, RowReads
from longwall.pipeline.execution.adaptive_batch import AdaptiveBatch
from longwall.stages.aggregation.pattern_keys import PatternKeys
from longwall.stages.extension.candidates import TooManyCandidates, memory_for
from longwall.stages.extension.unguided_edges import all_edges, edge_ends, extend_by_edge
from longwall.stages.extension.unguided_vertices import all_vertices, extend_by_vertex
from longwall.stages.source import host_arrays
from longwall.storage.errors import InputError
from longwall.storage.generators.kinds import generate
from longwall.storage.pages.paged_graph import load_paged, state_bytes
from longwall.storage.tables.embedding_table import EmbeddingTable, concatenated

PLENTY = 1 << 26
Neighbours = dict[int, set[int]]


def neighbours_of(graph: GraphArrays) -> Neighbours:
    return {v: set(graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist()) for v in range(graph.num_vertices)}


def grown_by_edges(near: Neighbours, edges: int) -> Counter[tuple[int, ...]]:
    """All rows of so many edges, each by its code."""
    every = {(u, v) for u in near for v in near[u] if v < u}
    rows: list[tuple[tuple[int, int], ...]] = [(edge,) for edge in every]
    for _ in range(edges - 1):
        rows = [(*row, new) for row in rows for new in every if new not in row and set(new) & set(sum(row, ()))]
    return Counter(tuple(u << 32 | v for u, v in row) for row in rows)


def grown_by_vertices(near: Neighbours, steps: Sequence[list[int] | None]) -> Counter[tuple[int, ...]]:
    """All rows that grow by the neighbours of any vertex (None), or by the common ones of these levels."""
    rows: list[tuple[int, ...]] = [(v,) for v in near]
    for levels in steps:
        rows = [
            (*row, new)
            for row in rows
            for new in (
                set.union(*(near[v] for v in row))
                if levels is None
                else set.intersection(*(near[row[i]] for i in levels))
            )
            - set(row)
        ]
    return Counter(rows)


Extend = Callable[[EmbeddingTable], Any]


def grow(source: Any, steps: Sequence[Extend]) -> EmbeddingTable:
    table = concatenated(list(source))
    for step in steps:
        table = concatenated([table.sliced(0, 0).extended(np.zeros(0, np.int64), table.values[0][:0]), *step(table)])
    return table


def by_edges(graph: GraphArrays, edges: int, memory: int = PLENTY, **options: Any) -> EmbeddingTable:
    step = partial(extend_by_edge, graph=graph, engine=CpuEngine(1), memory=memory, **options)
    return grow(all_edges(graph, np, memory), [step] * (edges - 1))


def by_vertices(graph: GraphArrays, steps: Sequence[list[int] | None], memory: int = PLENTY) -> EmbeddingTable:
    return grow(
        all_vertices(graph, np, memory),
        [partial(extend_by_vertex, graph=graph, levels=levels, memory=memory) for levels in steps],
    )


def rows_of(table: EmbeddingTable) -> Counter[tuple[int, ...]]:
    return Counter(map(tuple, table.to(np).columns().T.tolist()))


STEPS: list[list[list[int] | None]] = [[None, None], [[0], [0, 1]], [[0], [1], None], [[0], [0, 1], [0, 1, 2]]]

edge_lists = st.sets(
    st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda edge: edge[0] != edge[1]), min_size=1, max_size=14
)


@settings(deadline=None, max_examples=60)
@given(edges=edge_lists, memory=st.sampled_from([3_000, 20_000, PLENTY]))
def test_edges_grow_as_by_brute_force(edges, memory):
    graph = host_arrays(make_graph(edges))
    near = neighbours_of(graph)
    for number in (1, 2, 3):
        assert rows_of(by_edges(graph, number, memory)) == grown_by_edges(near, number)


@settings(deadline=None, max_examples=60)
@given(edges=edge_lists, steps=st.sampled_from(STEPS), memory=st.sampled_from([3_000, 20_000, PLENTY]))
def test_vertices_grow_as_by_brute_force(edges, steps, memory):
    graph = host_arrays(make_graph(edges))
    assert rows_of(by_vertices(graph, steps, memory)) == grown_by_vertices(neighbours_of(graph), steps)


@pytest.fixture(scope="module")
def graph() -> GraphArrays:
    return host_arrays(generate("rmat", seed=4, scale=7, edge_factor=5))


def test_rows_come_in_the_order_of_the_rows_that_they_grew_from(graph):
    edges = by_edges(graph, 1)
    assert (np.diff(edges.values[0]) > 0).all()
    larger, smaller = edge_ends(edges.values[0], np)
    assert (larger > smaller).all()
    assert larger.dtype == smaller.dtype == np.uint32
    assert (np.diff(by_edges(graph, 2, 40_000).column(0)) >= 0).all()


def test_a_code_keeps_large_ids():
    codes = np.array([2**32 - 1 << 32 | 2**32 - 2, 2**31 << 32 | 7], np.uint64).view(np.int64)
    larger, smaller = edge_ends(codes, np)
    assert larger.tolist() == [2**32 - 1, 2**31]
    assert smaller.tolist() == [2**32 - 2, 7]


def test_a_graph_whose_edges_have_no_codes_is_refused(graph):
    large = replace(graph, indptr=np.broadcast_to(np.int64(0), (2**31 + 2,)))
    with pytest.raises(InputError, match="at most 2,147,483,648 vertices"):
        next(all_edges(large, np, PLENTY))


def test_a_row_with_too_many_candidates_is_refused_with_what_it_needs():
    star = host_arrays(make_graph([(0, i) for i in range(1, 3001)]))
    edge = by_edges(star, 1).sliced(0, 1)
    with pytest.raises(TooManyCandidates) as refusal:
        list(extend_by_edge(edge, star, CpuEngine(1), memory_for(2999) - 1))
    assert refusal.value.candidates == 2999
    (extended,) = extend_by_edge(edge, star, CpuEngine(1), refusal.value.needed)
    assert len(extended) == 2999


@pytest.mark.parametrize("most", [1_000, 30_000, 300_000])
def test_pieces_that_fail_for_want_of_memory_are_tried_again_smaller(graph, most):
    batch, asked = AdaptiveBatch(CpuEngine(1)), []

    def take(memory, work):
        def limited(memory):
            asked.append(memory)
            if memory > most:
                raise MemoryError
            return work(memory)

        return batch.run(memory, limited)

    assert rows_of(by_edges(graph, 2, take=take)) == rows_of(by_edges(graph, 2))
    assert max(asked) > most


# Memory


class PagesThatDoNotMove:
    """Pages of which nothing is known."""

    page_arcs, places, staged = 16, None, True

    def prepare(self, level: int, reads: Sequence[RowReads]) -> None:
        pass

    touch = prepare


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("memory", [200_000, 1 << 20, 1 << 23])
@pytest.mark.parametrize("kind", ["edges", "united", "common"])
def test_temporaries_and_results_stay_within_the_memory(kind, memory, staged):
    graph = host_arrays(generate("rmat", seed=2, scale=10, edge_factor=6))
    if staged:
        graph = replace(graph, pages=PagesThatDoNotMove())
    if kind == "edges":
        step, table = partial(extend_by_edge, graph=graph, engine=CpuEngine(1)), by_edges(graph, 2)
    else:
        levels = None if kind == "united" else [0, 1]
        step, table = partial(extend_by_vertex, graph=graph, levels=levels), by_vertices(graph, [[0]])
    some = table.sliced(len(table) // 3, len(table) // 3 + 3000)
    next(iter(step(some.sliced(0, 10), memory=memory)))  # what is imported and cached at first
    parts = 0
    tracemalloc.start()
    for _ in step(some, memory=memory):
        parts += 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert parts > 1 or memory == 1 << 23
    assert peak <= memory


# Pages


class NothingElse:
    """Pages that hold garbage, but for the lists that were prepared."""

    page_arcs, places = 16, None

    def __init__(self, graph: GraphArrays, *, staged: bool):
        self.staged, self._graph, self.levels = staged, graph, Counter[int]()
        self.lists: list[list[int]] = []
        self.paged = replace(graph, indices=np.empty_like(graph.indices), pages=self)

    def prepare(self, level: int, reads: Sequence[RowReads]) -> None:
        self.levels[level] += 1
        self.lists.append(reads[0].vertices.tolist())
        whole, there = self._graph, self.paged.indices
        there[:] = np.iinfo(np.uint32).max
        for read in reads:
            assert read.part == NeighbourRange.ALL
            for v in read.vertices.tolist():
                there[whole.indptr[v] : whole.indptr[v + 1]] = whole.indices[whole.indptr[v] : whole.indptr[v + 1]]

    touch = prepare


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("memory", [10_000, PLENTY])
def test_what_is_read_is_prepared(memory, staged):
    graph = host_arrays(generate("rmat", seed=4, scale=5, edge_factor=3))
    pages = NothingElse(graph, staged=staged)
    assert rows_of(by_edges(pages.paged, 2, memory)) == rows_of(by_edges(graph, 2))
    assert set(pages.levels) == {0, 1}
    for steps in STEPS[:3]:
        assert rows_of(by_vertices(pages.paged, steps, memory)) == rows_of(by_vertices(graph, steps))
    wedges = by_vertices(graph, [[0], [1]])
    keys = PatternKeys.of_table("vertex", 3, None)
    assert (keys.of_rows(wedges, pages.paged) == keys.of_rows(wedges, graph)).all()


def test_lists_are_copied_once_and_in_order(graph):
    class Watched(np.ndarray):
        """Knows which arcs were read."""

        def __getitem__(self, key: Any) -> Any:
            read.append(np.arange(self.size)[key])
            return np.asarray(self)[key]

    pages = NothingElse(graph, staged=True)
    table, read = by_vertices(graph, [[0]]), []
    watched = replace(pages.paged, indices=pages.paged.indices.view(Watched))
    (extended,) = extend_by_vertex(table.sliced(0, 500), watched, None, PLENTY)
    assert len(extended)
    (owners,) = pages.lists
    assert owners == sorted(set(owners))
    np.testing.assert_array_equal(
        np.concatenate(read), np.concatenate([np.arange(*graph.indptr[[v, v + 1]]) for v in owners])
    )


@pytest.mark.parametrize("kind", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(
    ("access", "page_order"), [("adaptive", True), ("adaptive", False), ("managed", True), ("zero-copy", True)]
)
def test_rows_do_not_depend_on_where_the_graph_is(graph, monkeypatch, kind, access, page_order):
    set_page_size(monkeypatch, 256)
    engine = make_engine(kind, page_order=page_order)
    capacity = state_bytes(graph.num_arcs) + graph.indices.nbytes // 4
    with engine.faults():
        paged = load_paged(engine, graph, access, capacity, VERTEX_ARRAYS if access != "zero-copy" else ())
        assert paged.pages is not None
        assert paged.pages.staged == (access != "managed" and (page_order or kind == "cpu"))
        edges = concatenated(list(all_edges(paged, engine.xp, 3_000)))
        grown = concatenated(list(extend_by_edge(edges, paged, engine, 100_000)))
        np.testing.assert_array_equal(grown.to(np).columns(), by_edges(graph, 2).columns())
        table = concatenated(list(all_vertices(paged, engine.xp, 300)))
        for levels in ([0], None, [0, 2]):
            table = concatenated(list(extend_by_vertex(table, paged, levels, 100_000)))
            table = table.filtered(engine.xp.arange(len(table)) % 5 == 0)
        expected = concatenated(list(all_vertices(graph, np, 300)))
        for levels in ([0], None, [0, 2]):
            expected = concatenated(list(extend_by_vertex(expected, graph, levels, 100_000)))
            expected = expected.filtered(np.arange(len(expected)) % 5 == 0)
        assert rows_of(table) == rows_of(expected)
        keys = PatternKeys.of_table("vertex", 4, None)
        of_rows = keys.of_rows(table, paged)
    assert (EmbeddingTable((of_rows,), (), engine.xp).to(np).values[0] == keys.of_rows(expected, graph)).all()
