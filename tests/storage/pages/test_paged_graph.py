"""A graph in pages gives what a resident one gives, wherever its pages are; and hot pages are where they should be."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from conftest import set_page_size
from engines import make_engine

from longwall.kernels.cpu.engine import CpuEngine, NoPaging
from longwall.kernels.cuda.runtime.host_memory import is_managed
from longwall.kernels.interface.engine import ShortOfMemory
from longwall.kernels.interface.graph_arrays import VERTEX_ARRAYS, GraphArrays
from longwall.kernels.interface.kcliques import ALL_SIZES, cliques_of_leaves
from longwall.kernels.interface.pages import NeighbourRange, RowReads
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.stages.counting import count_planned
from longwall.stages.extension.planned import extend_planned
from longwall.stages.source import arc_reads, edge_source, host_arrays
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_store import open_store
from longwall.storage.graph.store_writer import write_graph
from longwall.storage.memory.resources import EngineChoice, open_resources
from longwall.storage.pages.paged_graph import (
    GraphPages,
    frame_bytes,
    host_state_bytes,
    load_paged,
    page_bytes,
    state_bytes,
)
from longwall.storage.pages.placement import access_of, adjacency_maker
from longwall.storage.tables.embedding_table import EmbeddingTable

ACCESS = ["adaptive", "managed", "zero-copy"]
PLENTY = 1 << 28


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    set_page_size(monkeypatch, 256)


@pytest.fixture(scope="module", params=[None, 2], ids=["unlabelled", "labelled"])
def graph(request: pytest.FixtureRequest) -> Graph:
    labels = {} if request.param is None else {"num_labels": request.param}
    return generate("rmat", seed=6, scale=7, edge_factor=6, **labels)


def room_for(graph: GraphArrays, share: float) -> int:
    """Room for a share of the pages."""
    return state_bytes(graph.num_arcs) + int(graph.indices.nbytes * share)


def rows_of(table: EmbeddingTable) -> Any:
    rows = table.to(np).columns()
    return rows[:, np.lexsort(rows[::-1])]


def all_rows(graph: GraphArrays, program: Any, engine: Any, capacity: int, memory: int) -> tuple[Any, int]:
    """Every row of the last level, sorted, and the number of embeddings by counting below the second to last level."""
    searcher = engine.kernels.searcher(engine.device, graph, program, memory)
    levels = (program.levels[0], program.levels[1])
    waiting = [(edge_source(graph, levels, 0, graph.num_arcs, engine.xp), 0)]
    found, counted = [], 0
    while waiting:
        chunk, first = waiting.pop()
        extended, rest, begun = extend_planned(chunk, searcher, capacity, graph.pages, first)
        if rest is not None:
            waiting.append((rest, begun))
        if extended.num_levels == program.depth:
            found.append(extended)
        else:
            waiting.append((extended, 0))
        if extended.num_levels == program.depth - 1:
            counted += count_planned(extended, searcher, graph.pages)
    rows = np.concatenate([rows_of(table) for table in found], axis=1)
    return rows[:, np.lexsort(rows[::-1])], counted


@pytest.mark.gpu
@pytest.mark.parametrize("plain", [{}, {"two_pass": True}, {"grouped": False}, {"page_order": False}], ids=str)
@pytest.mark.parametrize("access", ACCESS)
@pytest.mark.parametrize(("name", "induced"), [("clique-4", False), ("house", False), ("cycle-4", True)])
def test_rows_do_not_depend_on_where_the_graph_is(
    graph: Graph, access: str, name: str, induced: bool, plain: dict[str, bool]
) -> None:
    pattern = parse_pattern(name)
    if graph.has_labels:
        pattern = parse_pattern(name, (0, 1, 1, 0, 1)[: pattern.num_vertices])
    program = plan_match(pattern, graph.stats, induced=induced, counting=False).program
    host = host_arrays(graph)
    expected, number = all_rows(host, program, CpuEngine(1), PLENTY, PLENTY)
    assert number == expected.shape[1]
    engine = make_engine("cuda", **plain)
    for share, vertices, capacity, memory in ((0.0, (), 600, 1 << 20), (0.3, VERTEX_ARRAYS, 10**6, 1 << 24)):
        with engine.faults():
            paged = load_paged(engine, host, access, room_for(host, share), vertices)
            rows, counted = all_rows(paged, program, engine, capacity, memory)
        np.testing.assert_array_equal(rows, expected)
        assert counted == number


@pytest.mark.gpu
@pytest.mark.parametrize("access", ACCESS)
def test_counts_over_ranges_do_not_depend_on_where_the_graph_is(graph: Graph, access: str) -> None:
    host, cpu, engine = host_arrays(graph), CpuEngine(1), make_engine("cuda")
    with engine.faults():
        paged = load_paged(engine, host, access, room_for(host, 0.2))
        pages, end = paged.pages, host.num_arcs
        assert pages is not None
        for k in (3, 4, 5):
            counter = engine.kernels.clique_counter(engine.device, paged, k, 1 << 24)
            total = 0
            for first, last in ((0, end // 3), (end // 3, end)):
                pages.prepare(1, list(arc_reads(paged, first, last, NeighbourRange.SMALLER, engine.xp)))
                assert pages.hot.any() == (access == "adaptive")
                total += counter.count(first, last)
            assert total == cpu.kernels.clique_counter(cpu.device, host, k, PLENTY).count(0, end)
        for k in (ALL_SIZES, 5):
            leaves = [
                one.kernels.clique_leaf_counter(one.device, of, k, 1 << 24)
                for one, of in ((engine, paged), (cpu, host))
            ]
            pages.prepare(1, list(arc_reads(paged, 0, end, NeighbourRange.SMALLER, engine.xp)))
            for counter in leaves:
                counter.add(0, end)
            found, expected = (cliques_of_leaves(counter.take(), k)[3:] for counter in leaves)
            assert found == expected
        pages.prepare(1, list(arc_reads(paged, 0, end, NeighbourRange.ALL, engine.xp)))
        cycles = engine.kernels.four_cycle_counter(engine.device, paged, 1 << 24).count(0, host.num_vertices)
    assert cycles == cpu.kernels.four_cycle_counter(cpu.device, host, PLENTY).count(0, host.num_vertices)


@pytest.mark.gpu
@pytest.mark.parametrize("access", ["adaptive", "managed"])
def test_an_adjacency_that_was_made_for_it_is_not_copied(access: Any) -> None:
    engine = make_engine("cuda")
    with engine.faults():
        made = generate(
            "rmat",
            seed=6,
            scale=8,
            edge_factor=6,
            adjacency=lambda length, dtype: engine.paging.host_array(length, dtype, access),
        )
        host = host_arrays(made)
        assert engine.host_copy(host, access) == 0
        loaded = engine.load(host, access)
        assert loaded.indices.data.ptr == made.indices.ctypes.data
        np.testing.assert_array_equal(loaded.indices.get(), generate("rmat", seed=6, scale=8, edge_factor=6).indices)
        other = host_arrays(generate("rmat", seed=6, scale=8, edge_factor=6))
        assert engine.host_copy(other, access) == other.indices.nbytes
        assert engine.host_copy(other, "resident") == 0
        # Short arrays cannot be locked where they are.
        assert engine.host_copy(other, "zero-copy") == other.indices.nbytes
        assert engine.host_copy(host, access, ["indptr"]) == host.split.nbytes + host.labels.nbytes
        long = replace(other, indices=np.zeros(2 << 20, np.uint32))
        assert engine.host_copy(long, "zero-copy") == 0


@pytest.mark.gpu
@pytest.mark.parametrize(("part", "access"), [(1.0, "adaptive"), (1.6, "resident")])
def test_a_store_is_in_plain_memory_if_the_device_holds_the_graph(part: float, access: Any, tmp_path: Path) -> None:
    write_graph(generate("rmat", seed=6, scale=8, edge_factor=16), tmp_path / "store")
    whole = host_arrays(open_store(tmp_path / "store"))
    size = whole.indices.nbytes + sum(getattr(whole, name).nbytes for name in whole.vertex_arrays)
    assert part * 0.75 * size < 2 * whole.indices.nbytes  # an adjacency alone does not tell that the graph is small
    chosen = EngineChoice("cuda")
    with open_resources(device=int(part * size * 64 / 63), spill=tmp_path / "spill", engine=chosen) as resources:
        graph = open_store(tmp_path / "store", resources.host, adjacency_maker(resources, "auto"))
        assert access_of(host_arrays(graph), resources, "auto") == access
        assert is_managed(graph.indices) == (access == "adaptive")


ORIGIN = 10**9


class Buffer:
    """Knows which page has a copy in each place."""

    origin = ORIGIN

    def __init__(self, number: int):
        self.owners = np.full(number, -1)
        self.copied = self.marks = 0
        self.filled: set[int] = set()  # last, and behind which kernels
        self.behind: Any = None

    def mark(self) -> int:
        self.marks += 1
        return self.marks

    def fill(self, moves: Any, table: Any, values: Any, behind: Any = None) -> None:
        pages, places = moves
        assert np.unique(places).size == pages.size > 0
        assert table.size >= values.size + 2 * pages.size
        table[: values.size] = values
        self.filled, self.behind = set(places.tolist()), behind
        self.owners[places] = pages
        self.copied += pages.size

    def settle(self) -> None:
        pass

    def close(self) -> None:
        self.owners = self.owners[:0]


class WatchedPaging(NoPaging):
    """Knows its page frames."""

    def __init__(self) -> None:
        self.buffer = Buffer(0)

    def frames(self, graph: GraphArrays, number: int, page_arcs: int) -> Buffer:
        assert page_arcs == 64
        self.buffer = Buffer(number)
        return self.buffer


class Watched(CpuEngine):
    """Knows its copies of pages."""

    def __init__(self, threads: int):
        super().__init__(threads)
        self.paging: WatchedPaging = WatchedPaging()

    @property
    def buffer(self) -> Buffer:
        return self.paging.buffer

    def check(self, pages: GraphPages) -> set[int]:
        """See that the page table is true, and return the pages in the cache."""
        assert pages.places is not None
        assert pages.places.dtype == np.int64
        assert 1 << pages.places[0] == 64
        shifts = pages.places[1:]
        copied = np.flatnonzero(shifts)
        places, rest = np.divmod(shifts[copied] - ORIGIN + copied * 64, 64)
        assert not rest.any()
        assert np.unique(places).size == copied.size
        np.testing.assert_array_equal(self.buffer.owners[places], copied)
        hot = set(np.flatnonzero(pages.hot).tolist())
        assert hot <= set(copied.tolist())  # others are there until their places are filled
        return hot


def chosen_naively(heat: list[float], hot: set[int], capacity: int, cost: float) -> set[int]:
    """The pages of the most heat, those to be moved for `cost` more of it."""
    eligible = [p for p, h in enumerate(heat) if p in hot or (h > 0 and h >= cost)]
    return set(sorted(eligible, key=lambda p: (-heat[p] - cost * (p in hot), p not in hot, p))[:capacity])


@pytest.mark.parametrize("share", [0.0, 0.125])
def test_the_hottest_pages_are_on_the_device(graph: Graph, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longwall.storage.pages.paged_graph._COPY_SHARE", share)
    host = host_arrays(graph)
    engine = Watched(1)
    pages = load_paged(engine, host, "adaptive", room_for(host, 0.25)).pages
    assert isinstance(pages, GraphPages)
    most = int(host.indices.nbytes * 0.25) // 256
    history = np.zeros(-(-host.num_arcs // 64))
    hot: set[int] = set()
    rng = np.random.default_rng(3)
    for level in (2, 3, 4, 4):
        vertices = rng.integers(0, host.num_vertices, 200).astype(np.uint32) // rng.integers(1, 9)
        reads = [RowReads(vertices, NeighbourRange.ALL)]
        spatial = np.zeros(len(history))
        for vertex in vertices:
            np.add.at(spatial, np.arange(host.indptr[vertex], host.indptr[vertex + 1]) // 64, 4)
        coming, before = spatial.sum(), history.sum()
        heat = coming / (coming + before) * spatial + before / (coming + before) * history
        pages.prepare(level, reads)
        hot = chosen_naively(heat.tolist(), hot, most, 256 * share)
        assert engine.check(pages) == hot
        if not share:  # GAMMA's choice
            there = pages.hot
            assert there.sum() == min(most, np.count_nonzero(heat))
            assert heat[there].min() >= heat[~there].max()
        history += spatial
    copied, places = engine.buffer.copied, pages.places
    pages.prepare(4, [])  # nothing new: nothing is copied
    pages.touch(4, [RowReads(np.arange(host.num_vertices, dtype=np.uint32)[::-1], NeighbourRange.ALL)])
    assert engine.buffer.copied == copied
    assert pages.places is places
    capacity = len(engine.buffer.owners)
    while pages.shrink():
        capacity //= 2
        assert not len(engine.buffer.owners)
        assert not engine.check(pages)
        pages.prepare(4, reads)
        assert len(engine.buffer.owners) == capacity
        assert len(engine.check(pages)) <= capacity
    assert not pages.hot.any()


def test_pages_are_copied_beside_what_kernels_read(graph: Graph) -> None:
    host = host_arrays(graph)
    engine = Watched(1)
    pages = load_paged(engine, host, "adaptive", state_bytes(host.num_arcs) + 9 * 256).pages
    assert isinstance(pages, GraphPages)

    def held(*parts: tuple[int, int], reading: tuple[tuple[int, int], ...] = (), earlier: int = 0) -> Any:
        before = dict(enumerate(engine.buffer.owners.tolist()))
        calls = [[part] for part in reading[:earlier]] + ([[*reading[earlier:]]] if reading else [])
        pages.hold([(64 * a, 64 * z) for a, z in parts], [[(64 * a, 64 * z) for a, z in call] for call in calls])
        read = {page for a, z in reading for page in range(a, z)}
        assert engine.buffer.behind is None or not read & {before[place] for place in engine.buffer.filled}
        assert {page for a, z in parts for page in range(a, z)} <= engine.check(pages)
        return engine.buffer.behind

    assert held((0, 3), (4, 7)) is None
    assert held((0, 3), (7, 10), reading=((0, 3), (4, 7))) == 1
    assert held((0, 3), (10, 13), reading=((0, 3), (7, 10))) == 2
    assert engine.check(pages) == {0, 1, 2, *range(7, 13)}
    # There is no room beside the last ones.
    assert held((0, 3), (4, 9), reading=((0, 3), (10, 13))) is None
    assert held((0, 3), (9, 10), reading=((0, 3), (4, 9))) == 4
    assert held((13, 15)) is None
    # Those of several calls have room.
    assert held((0, 1), reading=((13, 15),)) == 6
    assert held((1, 3), reading=((13, 15), (0, 1)), earlier=1) == 6
    assert held((3, 7), reading=((13, 15), (0, 1), (1, 3)), earlier=2) == 6
    assert held((7, 9), reading=((0, 1), (1, 3), (3, 7)), earlier=2) == 7


def test_pages_that_leave_change_no_page_table(graph: Graph) -> None:
    host = host_arrays(graph)
    engine = Watched(1)
    pages = load_paged(engine, host, "adaptive", state_bytes(host.num_arcs) + 9 * 256).pages
    assert isinstance(pages, GraphPages)
    parts = [[(0, 192), (256 + 64 * at, 320 + 64 * at)] for at in range(5)]
    for number, part in enumerate(parts):
        pages.hold(part, parts[:number])
    table = pages.places
    assert isinstance(table, np.ndarray)
    before, copied = table.copy(), engine.buffer.copied
    # Kernels of before read the other table, and copies that wait for none of these may change it at once: what is
    # written behind the kernels would come after that.
    pages.hold(parts[-1])
    pages.hold([(0, 192)])
    assert engine.check(pages) == {0, 1, 2}
    assert pages.places is table
    np.testing.assert_array_equal(table, before)
    assert engine.buffer.copied == copied
    pages.hold(parts[0])
    assert engine.check(pages) == {0, 1, 2, 4}


def test_a_room_shrinks_by_half(graph: Graph) -> None:
    host = host_arrays(graph)
    engine = Watched(1)
    pages = load_paged(engine, host, "adaptive", state_bytes(host.num_arcs) + 9 * 256).pages
    assert isinstance(pages, GraphPages)
    everything = [RowReads(np.repeat(np.arange(host.num_vertices, dtype=np.uint32), 9), NeighbourRange.ALL)]
    assert not pages.shrink()  # nothing is there yet
    for capacity in (9, 4, 2, 1, 0):
        pages.prepare(2, everything)
        assert len(engine.check(pages)) == capacity
        assert pages.shrink() == (capacity > 0)


def test_room_is_lent_and_given_back(graph: Graph) -> None:
    host = host_arrays(graph)
    engine = Watched(1)
    pages = load_paged(engine, host, "adaptive", room_for(host, 0.1)).pages
    assert isinstance(pages, GraphPages)
    number = pages.hot.size
    everything = [RowReads(np.repeat(np.arange(host.num_vertices, dtype=np.uint32), 9), NeighbourRange.ALL)]
    pages.prepare(2, everything)
    few = len(engine.check(pages))
    assert 0 < few < number // 2
    assert pages.may_grow_cache
    for memory, lent in ((-5, 0), (5 * 256 + 9, 5 * 256), (1 << 40, (number - few) * 256)):
        assert pages.grow_cache(memory) == pages.growth == lent
        assert pages.may_grow_cache == (not lent)
        assert not lent or not engine.check(pages)
        pages.prepare(2, everything)
        assert len(engine.check(pages)) == few + lent // 256
        pages.shrink_cache()
        assert (pages.growth, engine.check(pages)) == (0, set())
        pages.prepare(2, everything)
        assert len(engine.check(pages)) == few
    pages.grow_cache(5 * 256)
    pages.prepare(2, everything)
    pages.shrink()  # others want the memory
    pages.shrink_cache()
    pages.prepare(2, everything)
    assert len(engine.check(pages)) == min(few, (few + 5) // 2)
    assert not pages.may_grow_cache
    other = load_paged(engine, host, "zero-copy", room_for(host, 0.1)).pages
    assert isinstance(other, GraphPages)
    assert not other.may_grow_cache


def watched(graph: Graph) -> tuple[Watched, GraphPages, list[RowReads]]:
    """An engine that knows its copies, room there for a quarter of the pages, and what makes all pages hot."""
    host = host_arrays(graph)
    engine = Watched(1)
    pages = load_paged(engine, host, "adaptive", room_for(host, 0.25)).pages
    assert isinstance(pages, GraphPages)
    return engine, pages, [RowReads(np.repeat(np.arange(host.num_vertices, dtype=np.uint32), 9), NeighbourRange.ALL)]


def test_without_room_for_a_buffer_pages_have_no_copies(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, pages, everything = watched(graph)

    def refusing(*_: Any) -> None:
        raise ShortOfMemory("device")

    with monkeypatch.context() as patch:
        patch.setattr(engine.paging, "frames", refusing)
        pages.prepare(2, everything)
    for _ in range(2):
        assert not engine.check(pages)
        assert not pages.shrink()
        assert not pages.may_grow_cache
        pages.prepare(2, everything)


def test_an_interrupted_buffer_can_be_made_again(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, pages, everything = watched(graph)

    def interrupted(*arguments: Any) -> Any:
        WatchedPaging.frames(engine.paging, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(engine.paging, "frames", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pages.prepare(2, everything)
    assert not pages.hot.any()
    pages.prepare(2, everything)
    assert engine.check(pages)


@pytest.mark.parametrize("error", [ShortOfMemory("device"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("fault", ["fill", "_page_table", "choose"])
def test_nothing_is_read_from_copies_that_were_not_made(
    graph: Graph, fault: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = host_arrays(graph)
    engine = Watched(1)
    pages = load_paged(engine, host, "adaptive", room_for(host, 0.25)).pages
    assert isinstance(pages, GraphPages)
    everything = np.arange(host.num_vertices, dtype=np.uint32)
    first, last = (
        [RowReads(everything[:20], NeighbourRange.ALL)],
        [RowReads(everything[-20:].repeat(50), NeighbourRange.ALL)],
    )
    pages.prepare(2, first)
    before = engine.check(pages)

    place = {"fill": engine.buffer, "_page_table": pages, "choose": pages._pages}[fault]
    plain = getattr(place, fault)

    def failing(*given: Any, **named: Any) -> None:
        plain(*given, **named)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(place, fault, failing)
        with pytest.raises(type(error)):
            pages.prepare(2, last)
    assert (pages.places[1:] == 0).all()
    assert not pages.hot.any()
    pages.prepare(2, last)
    assert engine.check(pages) not in (before, set())


@pytest.mark.gpu
@pytest.mark.parametrize("access", ACCESS)
def test_the_host_fetches_once_what_an_extension_reads(
    graph: Graph, access: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine("cuda")
    array = engine.xp.ndarray
    if not hasattr(engine.xp, "emulated"):
        pytest.skip("CuPy's own arrays cannot be watched")
    program = plan_match(parse_pattern("house"), graph.stats, counting=False).program
    host = host_arrays(graph)
    fetches: list[str] = []

    def watched(name: str) -> Any:
        plain = getattr(array, name)

        def fetch(*given: Any, **named: Any) -> Any:
            fetches.append(name)
            return plain(*given, **named)

        return fetch

    with engine.faults():
        paged = load_paged(engine, host, access, room_for(host, 0.3))
        searcher = engine.kernels.searcher(engine.device, paged, program, 1 << 22)
        table = edge_source(paged, program.levels[:2], 0, host.num_arcs, engine.xp)
        rows = extend_planned(table, searcher, PLENTY >> 8, paged.pages).rows.columns()
        for name in ("get", "__int__", "__bool__", "__float__", "__index__", "__iter__"):
            monkeypatch.setattr(array, name, watched(name))
        assert paged.pages is not None
        for repetition in range(3):  # pages move, or not
            paged.pages.prepare(3 + repetition, searcher.reads(rows, counting=False))
            assert fetches == ["get"]
            fetches.clear()


def test_the_last_used_pages_stay_where_pages_come_on_demand(graph: Graph) -> None:
    host = host_arrays(graph)
    sent: list[list[int]] = []
    engine = CpuEngine(1)
    engine.paging.send_back = lambda graph, ranges: sent.extend(ranges.tolist())  # type: ignore[method-assign]
    pages = load_paged(engine, host, "managed", room_for(host, 0) + 2 * 256).pages
    assert pages is not None
    owner = np.searchsorted(host.indptr, np.array([0, 640, host.num_arcs - 1]), side="right") - 1
    for vertex in owner:
        pages.prepare(2, [RowReads(np.array([vertex], np.uint32), NeighbourRange.ALL)])
    first = sent[0]
    assert first[0] <= 0 < first[1]
    assert pages.places is None
    sent.clear()
    pages.scan(0, 256)  # four pages come, although there is room for two
    assert all(first >= 256 for first, _ in sent)
    sent.clear()
    pages.scan(640, 704)
    assert sum(last - first for first, last in sent) == 3 * 64


@pytest.mark.parametrize("access", ACCESS)
def test_what_is_known_of_pages_takes_no_more_memory_than_it_says(graph: Graph, access: Any, tmp_path: Path) -> None:
    host = host_arrays(graph)
    # A small graph's pages, repeated until they are what takes the memory.
    host = replace(host, indices=np.zeros(64 * 50_000, np.uint32))
    everything = np.arange(host.num_vertices, dtype=np.uint32)
    engine = CpuEngine(1)
    engine.kernels.bytes_per_page(engine.device, host, [RowReads(everything, NeighbourRange.ALL)], 64)  # compiles
    pytest.importorskip("pandas")  # pyarrow imports it with its first table
    tracemalloc.start()
    try:
        pages = load_paged(engine, host, access, room_for(host, 0.5)).pages
        assert isinstance(pages, GraphPages)
        for level in range(16):
            pages.prepare(level, [RowReads(everything[level:], NeighbourRange.ALL)])
        pages.shrink()
        pages.write_heat(tmp_path / "heat.parquet")
        assert tracemalloc.get_traced_memory()[1] <= host_state_bytes(host.num_arcs) + 100_000
    finally:
        tracemalloc.stop()


def test_heat_is_recorded(graph: Graph, tmp_path: Path) -> None:
    host = host_arrays(graph)
    pages = load_paged(CpuEngine(1), host, "adaptive", room_for(host, 0.5)).pages
    assert isinstance(pages, GraphPages)
    everything = np.arange(host.num_vertices, dtype=np.uint32)
    pages.prepare(2, [RowReads(everything, NeighbourRange.ALL)])
    pages.prepare(
        3, [RowReads(everything[:1], NeighbourRange.SMALLER), RowReads(everything[:1], NeighbourRange.LARGER)]
    )
    pages.write_heat(tmp_path / "heat.parquet")
    table = pq.read_table(tmp_path / "heat.parquet").to_pandas()
    assert table.groupby("level")["bytes"].sum().to_dict() == {
        2: host.indices.nbytes,
        3: 4 * int(host.indptr[1]),
    }


@pytest.mark.parametrize(
    ("num_arcs", "size"), [(10, 4096), (1 << 20, 16 << 10), (1 << 26, 1 << 20), (1 << 40, 2 << 20)]
)
def test_small_graphs_have_smaller_pages(num_arcs: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the pages of this module
    assert page_bytes(num_arcs) == size
    pages = -(-4 * num_arcs // size)
    for memory, number in ((-1, 0), (size - 1, 0), (3 * size + 5, min(3, pages)), (1 << 60, pages)):
        assert frame_bytes(num_arcs, memory) == number * size
