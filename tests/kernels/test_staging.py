"""Lists that rows read are where kernels look for them, with the graph's content; no others are copied."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from conftest import make_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from longwall.kernels.cuda.runtime.staging.staging import _FIXED_BYTES, _ITEM_BYTES, _SORT_BYTES, Staging
from longwall.kernels.interface.engine import EngineUnavailable
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import NeighbourRange
from longwall.stages.source import host_arrays
from longwall.storage.generators.kinds import generate

pytestmark = pytest.mark.gpu

PAGE = 64  # arcs
READ = """
extern "C" __global__ void read(const unsigned* indices, const long long* begins, const int* lengths,
                                const long long* ends, long long number, unsigned* out) {
  for (long long i = blockIdx.x * 64 + threadIdx.x; i < number; i += 64 * gridDim.x)
    for (int j = 0; j < lengths[i]; ++j) out[ends[i] - lengths[i] + j] = indices[begins[i] + j];
}
"""


class Pages:
    """Pages of which some are away; the others have copies, of which some are in the pages' order."""

    page_arcs = PAGE
    prepare = touch = scan = shrink = None  # not called

    def __init__(self, indices: Any, away: Any, xp: Any, *, staged: bool = True):
        self.staged, self.settled = staged, False
        self.shifts = np.zeros(away.size, np.int64)
        shuffled = np.flatnonzero(~away)
        if away.any():  # by pairs
            np.random.default_rng(5).shuffle(shuffled[: shuffled.size // 2 * 2].reshape(-1, 2))
        whole = np.zeros(away.size * PAGE, np.uint32)
        whole[: indices.size] = indices.get()
        self.copies = xp.asarray(whole.reshape(-1, PAGE)[shuffled].ravel())
        origin = (self.copies.data.ptr - indices.data.ptr) // 4
        self.shifts[shuffled] = origin + (np.arange(shuffled.size) - shuffled) * PAGE
        self.places = xp.asarray(np.concatenate([[PAGE.bit_length() - 1], self.shifts]))

    def settle(self) -> None:
        self.settled = True


class Lab:
    """Stages lists of graphs, and looks at what came of it.

    Attributes
    ----------
    copied
        Number of arcs that the last call must have copied.
    """

    def __init__(self) -> None:
        from longwall.kernels.cuda.engine import CudaEngine

        self.engine = CudaEngine()
        self.xp = self.engine.xp
        self._read = self.xp.RawModule(code=READ).get_function("read")
        self._on_device: dict[int, GraphArrays] = {}

    def bring(
        self, host: GraphArrays, away: Any, memory: int, rows: Any, lists: list[tuple[int, NeighbourRange]], **how: bool
    ) -> int:
        """Bring lists, check where they are and what is there, and return the number of rows."""
        with self.engine.faults():
            return self.check(self.staging(host, away, memory, **how), host, rows, lists)

    def staging(self, host: GraphArrays, away: Any, memory: int, *, staged: bool = True) -> Staging:
        loaded = self._on_device.setdefault(id(host), self.engine.load(host, "zero-copy"))
        pages = Pages(loaded.indices, away, self.xp, staged=staged)
        return Staging(self.engine.device, replace(loaded, pages=pages), memory)

    def check(self, staging: Staging, host: GraphArrays, rows: Any, lists: list[tuple[int, NeighbourRange]]) -> int:
        found = staging.bring(self.xp.asarray(rows), lists)
        rows = rows if isinstance(rows, np.ndarray) else rows.get()
        n, shape = found.rows, (len(lists), found.rows)
        assert (n > 0) == (rows.shape[1] > 0)
        assert n <= rows.shape[1]
        assert found.begins.shape == found.lengths.shape == shape
        begins, lengths = found.begins.get(), found.lengths.get()
        assert (begins.dtype, lengths.dtype) == (np.int64, np.int32)
        sources = np.empty(shape, np.int64)
        for number, (column, part) in enumerate(lists):
            vertices = rows[column, :n]
            sources[number] = (host.split if part == NeighbourRange.LARGER else host.indptr)[vertices]
            end = host.split[vertices] if part == NeighbourRange.SMALLER else host.indptr[vertices.astype(np.int64) + 1]
            np.testing.assert_array_equal(lengths[number], end - sources[number])
        # What a kernel reads where the list is.
        ends = np.cumsum(lengths, dtype=np.int64)
        given = self.xp.empty(max(int(ends[-1]) if ends.size else 0, 1), np.uint32)
        arguments = (staging._graph.indices, found.begins, found.lengths, self.xp.asarray(ends), ends.size, given)
        self._read((8,), (64,), arguments)
        expected = [
            host.indices[begin : begin + length] for begin, length in zip(sources.flat, lengths.flat, strict=True)
        ]
        np.testing.assert_array_equal(given.get()[: ends[-1] if ends.size else 0], np.concatenate([[], *expected]))
        names = np.stack([rows[column, :n].astype(np.int64) * 3 + part for column, part in lists])
        self._check_copies(staging, names, sources, begins, lengths)
        return n

    def _check_copies(self, staging: Staging, names: Any, sources: Any, begins: Any, lengths: Any) -> None:
        """Lists are copied if their pages are not, in one piece, nor too long; each once, in the order of the pages."""
        pages: Any = staging._graph.pages
        assert pages.settled
        shifts = np.zeros_like(sources)
        for at in zip(*np.nonzero(lengths > 0), strict=True):
            of_pages = pages.shifts[sources[at] // PAGE : (sources[at] + lengths[at] - 1) // PAGE + 1]
            shifts[at] = of_pages[0] if (of_pages == of_pages[0]).all() else 0
        short = lengths < (staging._capacity // max(16, 2 * len(names)) if pages.staged else 0)
        wanted = (lengths > 0) & short & (shifts == 0)
        np.testing.assert_array_equal(begins == sources + shifts, ~wanted)
        copies = np.unique(np.stack([sources[wanted], lengths[wanted], begins[wanted], names[wanted]]), axis=1)
        assert np.unique(copies[3]).size == copies.shape[1]
        assert copies[1].sum() <= staging._capacity
        if copies.size:
            # In the order of their pages they lie one behind the other, from the buffer's first arc on.
            order = np.argsort(copies[2])
            assert (np.diff(copies[0][order]) >= 0).all()
            np.testing.assert_array_equal(np.diff(copies[2][order]), copies[1][order][:-1])
            assert copies[2].min() * 4 + staging._graph.indices.data.ptr == staging._buffer.data.ptr


@pytest.fixture(scope="module")
def lab() -> Lab:
    try:
        return Lab()
    except EngineUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def host() -> GraphArrays:
    return host_arrays(generate("rmat", seed=6, scale=8, edge_factor=12))


@pytest.fixture(scope="module")
def stars() -> GraphArrays:
    """Hubs with lists of many segments, and the same long lists for many small vertices."""
    edges = [(hub, 10 + i) for hub, number in ((0, 3000), (1, 1900), (2, 700), (3, 513)) for i in range(number)]
    return host_arrays(make_graph([*edges, (0, 1), (1, 2), (2, 3)]))


def number_of_pages(host: GraphArrays) -> int:
    return -(-host.num_arcs // PAGE)


def some_rows(host: GraphArrays, columns: int, n: int, seed: int = 1) -> Any:
    """Rows whose first columns have long runs."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, host.num_vertices, (columns, n)).astype(np.uint32)
    return rows[:, np.lexsort(rows[::-1] // np.array([1, 20, 60, 90])[:columns, None])]


PLENTY = 1 << 22
THREE = [(0, NeighbourRange.SMALLER), (1, NeighbourRange.ALL), (2, NeighbourRange.LARGER)]


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("lists", [[(0, NeighbourRange.ALL)], THREE, list(product(range(3), NeighbourRange))], ids=len)
def test_lists_are_what_the_graph_has(
    lab: Lab, host: GraphArrays, share: float, lists: list[tuple[int, NeighbourRange]]
) -> None:
    away = np.random.default_rng(2).random(number_of_pages(host)) < share
    for n in (1, 31, 1000):
        assert lab.bring(host, away, PLENTY, some_rows(host, 3, n), lists) == n


def test_no_rows_have_no_lists(lab: Lab, host: GraphArrays) -> None:
    assert lab.bring(host, np.ones(number_of_pages(host), bool), PLENTY, some_rows(host, 3, 0), THREE) == 0


def test_nothing_is_copied_where_nothing_is_away(lab: Lab, host: GraphArrays, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Staging, "_copy", None)
    away = np.zeros(number_of_pages(host), bool)
    assert lab.bring(host, away, PLENTY, some_rows(host, 3, 500), THREE) == 500


def test_equal_vertices_in_several_columns_are_copied_once(lab: Lab, host: GraphArrays) -> None:
    rows = np.repeat(np.arange(200, dtype=np.uint32)[None], 3, axis=0)
    away = np.ones(number_of_pages(host), bool)
    assert lab.bring(host, away, PLENTY, rows, list(product(range(3), NeighbourRange))) == 200
    same = np.full((3, 300), 7, np.uint32)
    assert lab.bring(host, away, PLENTY, same, list(product(range(3), NeighbourRange))) == 300


def test_hubs_are_longer_than_what_a_warp_copies_at_once(lab: Lab, stars: GraphArrays) -> None:
    away = np.ones(number_of_pages(stars), bool)
    assert stars.max_degree > 2500
    rows = some_rows(stars, 2, 400)
    rows[0, ::7] = np.arange(rows[0, ::7].size) % 4
    assert lab.bring(stars, away, PLENTY, rows, [(0, NeighbourRange.ALL), (1, NeighbourRange.LARGER)]) == 400


def test_lists_that_would_take_much_of_the_room_stay(lab: Lab, stars: GraphArrays) -> None:
    away = np.ones(number_of_pages(stars), bool)
    rows = np.arange(stars.num_vertices, dtype=np.uint32)[None]
    for capacity in (16, 17, 1000, 16 * 513, 16 * 514, 16 * 1901):
        assert lab.bring(stars, away, _FIXED_BYTES + 8 * capacity, rows, [(0, NeighbourRange.ALL)]) > 0


def test_little_memory_is_for_few_rows(lab: Lab, host: GraphArrays) -> None:
    away = np.ones(number_of_pages(host), bool)
    rows = some_rows(host, 3, 5000)
    known = []
    for memory in (0, 1000, _FIXED_BYTES + 1000, _FIXED_BYTES + 20_000, _FIXED_BYTES + 60_000, PLENTY):
        known.append(lab.bring(host, away, memory, rows, THREE))
    assert known == sorted(known)
    assert known[0] < 30
    assert known[-1] == 5000


@pytest.mark.parametrize("order", [1, -1])
def test_rows_are_as_many_as_there_is_room_for(lab: Lab, order: int) -> None:
    """Where it is the lists that do not fit, and not what is known of the rows."""
    dense = host_arrays(generate("erdos-renyi", seed=3, vertices=300, edges=9000))
    rows = np.arange(dense.num_vertices, dtype=np.uint32)[None, ::order].copy()
    lengths = np.diff(dense.indptr)[rows[0]]
    for capacity in (1500, 3000, 6000, 8500):
        away = np.ones(number_of_pages(dense), bool)
        n = lab.bring(dense, away, _FIXED_BYTES + 8 * capacity, rows, [(0, NeighbourRange.ALL)])
        assert n < rows.shape[1]
        assert capacity < lengths[:n].sum()


def test_rows_may_lie_anyhow(lab: Lab, host: GraphArrays) -> None:
    away = np.ones(number_of_pages(host), bool)
    rows = some_rows(host, 3, 300)
    with lab.engine.faults():
        staging = lab.staging(host, away, PLENTY)
        on_device = lab.xp.asarray(rows)
        turned = lab.xp.asarray(rows.T.copy())
        for given in (on_device[:, 5:200], on_device[:, ::3], turned.T, on_device[:, 9:10]):
            assert lab.check(staging, host, given, THREE) == given.shape[1]


def test_the_memory_is_used_again(lab: Lab, host: GraphArrays) -> None:
    away = np.ones(number_of_pages(host), bool)
    with lab.engine.faults():
        staging = lab.staging(host, away, _FIXED_BYTES + 100_000)
        for seed in range(4):
            rows = some_rows(host, 3, 800, seed)
            done = 0
            while done < 800:
                done += lab.check(staging, host, rows[:, done:], THREE[: seed % 3 + 1])


def test_all_is_inside_the_memory() -> None:
    from longwall.kernels.cuda.engine import CudaEngine

    try:
        engine = CudaEngine()
    except EngineUnavailable as reason:
        pytest.skip(str(reason))
    sparse = host_arrays(generate("erdos-renyi", seed=3, vertices=40_000, edges=60_000))
    away = np.ones(number_of_pages(sparse), bool)
    with engine.faults():
        graph = engine.load(sparse, "zero-copy")
        graph = replace(graph, pages=Pages(graph.indices, away, engine.xp))
        for n in (50, 3000, sparse.num_vertices):
            # Very few rows have a list in common.
            rows = engine.xp.asarray(np.random.default_rng(n).permuted(np.tile(np.arange(n), (3, 1)), axis=1))
            rows = rows.astype(np.uint32)
            engine.memory.release()
            memory = _FIXED_BYTES + 2 * (_ITEM_BYTES + _SORT_BYTES) * 3 * n
            engine.memory.limit(engine.device.memory._pool.total_bytes() + memory)
            assert Staging(engine.device, graph, memory).bring(rows, THREE).rows == n
            engine.memory.limit(1 << 40)


graphs = st.sets(
    st.tuples(st.integers(0, 30), st.integers(0, 30)).filter(lambda edge: edge[0] != edge[1]), min_size=1, max_size=150
)


@settings(deadline=None, max_examples=25)
@given(
    edges=graphs,
    seed=st.integers(0, 1 << 20),
    share=st.sampled_from([0.2, 0.7, 1.0]),
    n=st.integers(1, 200),
    capacity=st.sampled_from([10, 100, 300, 1000, 5000]),
    lists=st.lists(st.tuples(st.integers(0, 2), st.sampled_from(NeighbourRange)), min_size=1, max_size=9, unique=True),
    staged=st.booleans(),
)
def test_any_lists_of_any_graph(lab, edges, seed, share, n, capacity, lists, staged):
    host = host_arrays(make_graph(edges))
    rng = np.random.default_rng(seed)
    away = rng.random(number_of_pages(host)) < share
    rows = rng.integers(0, host.num_vertices, (3, n)).astype(np.uint32)
    rows[0].sort()
    lab._on_device.clear()  # ids of graphs are used again
    lab.bring(host, away, _FIXED_BYTES + 8 * capacity, rows, sorted(lists), staged=staged)
