"""Extension by edges: what brute force finds, in the same order, on both engines and wherever the graph is."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise, zip_longest
from typing import Any

import numpy as np
import pytest
from conftest import make_graph, set_page_size
from hypothesis import given, settings
from hypothesis import strategies as st

from longwall.kernels.interface.graph_arrays import VERTEX_ARRAYS, GraphArrays
from longwall.kernels.interface.pages import NeighbourRange, RowReads
from longwall.stages.extension.unguided_edges import extend_by_edge
from longwall.stages.source import host_arrays
from longwall.storage.generators.kinds import generate
from longwall.storage.pages.paged_graph import load_paged, state_bytes
from longwall.storage.tables.embedding_table import EmbeddingTable

PLENTY = 1 << 20
SEGMENT = 1024  # kSegment of search/edge_extension.cu


def ends_of(row: list[int]) -> list[int]:
    """The vertices of a row, each where it is met first."""
    return list(dict.fromkeys(end for code in row for end in (code >> 32, code & 0xFFFFFFFF)))


def new_edges(graph: GraphArrays, row: list[int]) -> list[int]:
    vertices, found = ends_of(row), []
    for u in vertices:
        for v in graph.indices[graph.indptr[u] : graph.indptr[u + 1]].tolist():
            code = max(u, v) << 32 | min(u, v)
            if code not in row and not (v in vertices and u < v):
                found.append(code)
    return found


def codes_of(graph: GraphArrays) -> list[int]:
    owners = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
    return [u << 32 | v for u, v in zip(owners.tolist(), graph.indices.tolist(), strict=True) if v < u]


def extended(engine: Any, graph: GraphArrays, rows: list[list[int]], memory: int, capacity: int) -> list[list[int]]:
    """The new edges of each row: as many rows at once as fit."""
    found: list[list[int]] = []
    with engine.faults():
        columns = engine.xp.asarray(np.array(rows, np.int64).T.copy())
        extender = engine.kernels.edge_extender(engine.device, graph, len(rows[0]), len(rows), memory)
        while len(found) < len(rows):
            first = len(found)
            extender.count(columns, first, len(rows))
            counted = first
            while counted < len(rows) and extender.is_counted(columns, counted):
                counted += 1
            assert first < counted
            assert not extender.is_counted(columns, first - 1)
            assert not extender.is_counted(columns, counted)
            while first < counted:
                cut = extender.cut(first, capacity)
                assert first < cut.last <= counted
                assert cut.number <= capacity or cut.last == first + 1
                offsets, edges = extender.new_edges(first, cut)
                assert offsets.dtype == edges.dtype == np.int64
                assert edges.size == cut.number
                ends = offsets.tolist()
                assert (len(ends), ends[0], ends[-1]) == (cut.last - first + 1, 0, cut.number)
                assert cut.all_grow == all(b < e for b, e in pairwise(ends))
                if cut.last < counted:  # one row more would be too many
                    assert extender.cut(first, max(capacity, cut.number)).number == cut.number
                values = edges.tolist()
                found += [values[b:e] for b, e in pairwise(ends)]
                first = cut.last
    return found


edge_sets = st.sets(
    st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda edge: edge[0] != edge[1]), min_size=1, max_size=20
)


@settings(deadline=None, max_examples=40)
@given(
    edges=edge_sets,
    levels=st.integers(1, 4),
    memory=st.sampled_from([1, 300, 2000, PLENTY]),
    capacity=st.sampled_from([1, 7, 40, PLENTY]),
    data=st.data(),
)
def test_rows_grow_as_by_brute_force_and_in_its_order(engine, edges, levels, memory, capacity, data):
    graph = host_arrays(make_graph(edges))
    every = codes_of(graph)
    # Any edges, which may hang together or not, beside each other or not.
    row = st.lists(st.sampled_from(every), min_size=levels, max_size=levels, unique=True)
    if len(every) < levels:
        return
    rows = data.draw(st.lists(row, min_size=1, max_size=12))
    found = extended(engine, engine.load(graph), rows, memory, capacity)
    assert found == [new_edges(graph, row) for row in rows]


@pytest.fixture(scope="module")
def skewed() -> GraphArrays:
    return host_arrays(generate("rmat", seed=5, scale=6, edge_factor=4))


@pytest.mark.parametrize("capacity", [100, 1_000_000])
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_rows_that_share_prefixes_grow_as_by_brute_force(engine, skewed, levels, capacity):
    rows = [[code] for code in codes_of(skewed)]
    for _ in range(levels - 1):
        rows = [[*row, new] for row in rows[:: max(len(rows) // 30, 1)] for new in new_edges(skewed, row)[::7]]
    rows = rows[:300]
    found = extended(engine, engine.load(skewed), rows, PLENTY, capacity)
    assert found == [new_edges(skewed, row) for row in rows]


@pytest.mark.parametrize("leaves", [SEGMENT - 1, SEGMENT + 1, 3 * SEGMENT])
def test_lists_may_be_longer_than_what_a_warp_writes(engine, leaves):
    hubs = [(hub, 10 + leaf) for hub in (0, 1) for leaf in range(leaves)]
    graph = host_arrays(make_graph([*hubs, (0, 1), (0, 2), (2, 3)]))
    every = codes_of(graph)
    rows = [every[:1], every[-1:], every[:1], every[leaves : leaves + 1], every[5:6]]
    for capacity in (1, 2 * leaves, PLENTY):
        assert extended(engine, engine.load(graph), rows, PLENTY, capacity) == [new_edges(graph, row) for row in rows]
    pairs = [[one, other] for one, other in zip(every[:4], every[-4:], strict=True)]
    assert extended(engine, engine.load(graph), pairs, PLENTY, PLENTY) == [new_edges(graph, row) for row in pairs]


def test_rows_whose_vertices_are_all_adjacent_grow_inwards_once(engine):
    graph = host_arrays(make_graph(combinations(range(5), 2)))
    every = codes_of(graph)
    for levels in (1, 2, 3, 4):
        rows = [list(row) for row in combinations(every, levels)]
        assert extended(engine, engine.load(graph), rows, PLENTY, 50) == [new_edges(graph, row) for row in rows]
    # Nothing is left to grow by.
    rows = [every, every[::-1]]
    assert extended(engine, engine.load(graph), rows, PLENTY, PLENTY) == [[], []]


def test_rows_without_new_edges_are_counted_as_such(engine):
    graph = host_arrays(make_graph([(2 * i, 2 * i + 1) for i in range(100)]))
    rows = [[code] for code in codes_of(graph)]
    assert extended(engine, engine.load(graph), rows, PLENTY, 10) == [[] for _ in rows]


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_new_vertices_are_read_once_for_every_prefix(engine, skewed, levels):
    rows = [[code] for code in codes_of(skewed)]
    for _ in range(levels - 1):
        rows = [[*row, new] for row in rows[:40] for new in new_edges(skewed, row)[:9]]
    expected = []
    for i, row in enumerate(rows):
        for column in range(levels):
            if i == 0 or row[: column + 1] != rows[i - 1][: column + 1]:
                expected += ends_of(row[: column + 1])[len(ends_of(row[:column])) :]
    with engine.faults():
        extender = engine.kernels.edge_extender(engine.device, engine.load(skewed), levels, len(rows), PLENTY)
        (read,) = extender.reads(engine.xp.asarray(np.array(rows, np.int64).T.copy()))
        assert (read.part, read.times, read.prefix) == (NeighbourRange.ALL, 1, None)
        assert read.vertices.dtype == np.uint32
        assert sorted(read.vertices.tolist()) == sorted(expected)


@pytest.mark.parametrize("memory", [40_000, 80_000, PLENTY])
@pytest.mark.parametrize("access", ["adaptive", "managed", "zero-copy"])
def test_lists_may_be_away(engine, skewed, access, memory, monkeypatch):
    set_page_size(monkeypatch, 256)
    rows = [[code] for code in codes_of(skewed)]
    pairs = [[*row, new] for row in rows[::5] for new in new_edges(skewed, row)[::11]]
    with engine.faults():
        capacity = state_bytes(skewed.num_arcs) + skewed.indices.nbytes // 4
        paged = load_paged(engine, skewed, access, capacity, VERTEX_ARRAYS if access != "zero-copy" else ())
    for some in (rows, pairs):
        assert extended(engine, paged, some, memory, 500) == [new_edges(skewed, row) for row in some]


@pytest.mark.gpu
def test_copies_of_pages_may_change_before_new_edges_are_read(cuda, skewed, monkeypatch):
    set_page_size(monkeypatch, 256)
    rows = [[code] for code in codes_of(skewed)]
    with cuda.faults():
        paged = load_paged(cuda, skewed, "adaptive", state_bytes(skewed.num_arcs) + skewed.indices.nbytes // 4)
        columns = cuda.xp.asarray(np.array(rows, np.int64).T.copy())
        extender = cuda.kernels.edge_extender(cuda.device, paged, 1, len(rows), PLENTY)
        paged.pages.prepare(1, extender.reads(columns))
        hot = paged.pages.hot.copy()
        extender.count(columns, 0, len(rows))
        assert extender.is_counted(columns, 0)
        others = np.flatnonzero(~hot[skewed.indptr[:-1] // 64]).astype(np.uint32)
        paged.pages.prepare(2, [RowReads(cuda.xp.asarray(np.repeat(others, 999)), NeighbourRange.ALL)])
        assert (paged.pages.hot & ~hot).any()
        assert not extender.is_counted(columns, 0)
        extender.count(columns, 0, len(rows))
        assert extender.is_counted(columns, 0)
        paged.pages.prepare(2, [])  # nothing moves
        assert extender.is_counted(columns, 0)
        _, edges = extender.new_edges(0, extender.cut(0, PLENTY))
        assert edges.tolist() == [code for row in rows for code in new_edges(skewed, row)]


@pytest.mark.gpu
def test_rows_grow_by_turns(cuda, monkeypatch):
    """Two tables of one graph, of which each makes the pages ready that it reads while the other is not done."""
    set_page_size(monkeypatch, 256)
    # Without a history pages move all the time.
    monkeypatch.setattr("longwall.storage.pages.access_heat.AccessHeat.observe", lambda self, spatial: 1e3 * spatial)
    graph = host_arrays(make_graph([(hub, 1000 * hub + leaf) for hub in range(1, 7) for leaf in range(1, 301)]))
    every = codes_of(graph)
    halves = [every[::20][: len(every) // 40], every[::20][len(every) // 40 :]]
    found: list[list[int]] = [[], []]
    places: list[Any] = []
    with cuda.faults():
        paged = load_paged(cuda, graph, "adaptive", state_bytes(graph.num_arcs) + graph.indices.nbytes // 4)
        tables = [EmbeddingTable((cuda.xp.asarray(np.array(half)),), (), cuda.xp) for half in halves]
        for parts in zip_longest(*(extend_by_edge(table, paged, cuda, 40_000) for table in tables)):
            for number, part in enumerate(parts):
                if part is not None:
                    found[number] += part.values[-1].tolist()
            if not any(paged.pages.places is known for known in places):
                places.append(paged.pages.places)
    assert len(places) > 3
    for half, edges in zip(halves, found, strict=True):
        assert edges == [new for code in half for new in new_edges(graph, [code])]


@pytest.mark.gpu
def test_new_edges_are_read_from_where_lists_were_brought(cuda, skewed):
    mapped = replace(skewed, indices=skewed.indices.copy())
    rows = [[code] for code in codes_of(skewed)]
    with cuda.faults():
        paged = load_paged(cuda, mapped, "zero-copy", 0)
        columns = cuda.xp.asarray(np.array(rows, np.int64).T.copy())
        extender = cuda.kernels.edge_extender(cuda.device, paged, 1, len(rows), PLENTY)
        extender.count(columns, 0, len(rows))
        mapped.indices[:] = 0
        _, edges = extender.new_edges(0, extender.cut(0, PLENTY))
        assert edges.tolist() == [code for row in rows for code in new_edges(skewed, row)]
