"""Frontier, bytes per page, access heat and the choice of pages, each against plain loops."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs, queries

from longwall.kernels.interface.engine import Engine
from longwall.kernels.interface.frontier import frontier
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import NeighbourRange, RowReads
from longwall.kernels.interface.search_program import Level, SearchProgram, SetKind, SetOp
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.stages.source import edge_source, host_arrays
from longwall.storage.pages.access_heat import AccessHeat
from longwall.storage.pages.heat_record import HeatRecord, add_records
from longwall.storage.pages.hot_pages import HeatPolicy, LruPolicy

relaxed = settings(deadline=None, max_examples=100)

Rows = list[tuple[int, ...]]


@pytest.fixture(scope="session")
def xp(engine: Engine) -> Any:
    return engine.xp


def on_host(array: Any) -> Any:
    return array if isinstance(array, np.ndarray) else array.get()


# --- the frontier -----------------------------------------------------------------------------------------------


def reads_of_a_walk(program: SearchProgram, rows: Rows, grouped: bool) -> Counter[tuple[int, NeighbourRange]]:
    """Walk the rows as the kernels do, and note each adjacency that a set operation reads."""
    seen: Counter[tuple[int, NeighbourRange]] = Counter()
    before: tuple[int, ...] = ()
    for row in rows:
        kept = 0
        while grouped and kept < len(before) and before[kept] == row[kept]:
            kept += 1
        for depth in range(kept, len(row)):
            for op in program.sets:
                if op.depth == depth:
                    own = 1 << op.adjacent
                    part = (
                        NeighbourRange.SMALLER
                        if op.below & own
                        else NeighbourRange.LARGER
                        if op.above & own
                        else NeighbourRange.ALL
                    )
                    seen[row[op.adjacent], part] += 1
        before = row
    return seen


def vertices_of(read: RowReads) -> list[int]:
    """Whose rows are read."""
    assert read.vertices.dtype == np.uint32
    vertices: list[int] = on_host(read.vertices).tolist()
    if read.prefix is None:
        return vertices
    prefixes = on_host(read.prefix).T.tolist()
    return [v for i, v in enumerate(vertices) if i == 0 or prefixes[i] != prefixes[i - 1]]


def counted(reads: list[RowReads]) -> Counter[tuple[int, NeighbourRange]]:
    seen: Counter[tuple[int, NeighbourRange]] = Counter()
    for read in reads:
        for vertex in vertices_of(read):
            seen[vertex, read.part] += read.times
    return seen


@st.composite
def programs_with_rows(draw: st.DrawFn) -> tuple[SearchProgram, Rows, int]:
    """Set operations of any kind, and distinct rows in which shared prefixes stand together."""
    depths = draw(st.integers(1, 5))
    sets = []
    for depth in sorted(draw(st.lists(st.integers(0, depths - 1), max_size=8))):
        adjacent = draw(st.integers(0, depth))
        others = draw(st.integers(0, 2**depth)) & ~(1 << adjacent)
        own = draw(st.sampled_from([(0, 0), (1, 0), (0, 1)]))
        below, above = (bit << adjacent for bit in own)
        sets.append(SetOp(depth, SetKind.ADJACENCY, -1, adjacent, below | others, above))
    columns = draw(st.integers(1, depths))
    rows = draw(st.lists(st.tuples(*[st.integers(0, 3)] * columns), max_size=30, unique=True))
    return SearchProgram(tuple(sets), (Level(-1),) * depths), sorted(rows, reverse=draw(st.booleans())), columns


def flat(rows: Rows, columns: int, xp: Any) -> Any:
    return xp.asarray(np.array(rows, np.uint32).reshape(-1, columns).T.copy())


@relaxed
@given(case=programs_with_rows(), grouped=st.booleans())
def test_the_frontier_is_what_a_walk_over_the_rows_reads(
    xp: Any, case: tuple[SearchProgram, Rows, int], grouped: bool
) -> None:
    program, rows, columns = case
    reads = frontier(program, flat(rows, columns, xp), grouped=grouped)
    assert counted(reads) == reads_of_a_walk(program, rows, grouped)


def test_reads_that_are_alike_are_found_once(xp: Any) -> None:
    twice = SetOp(1, SetKind.INTERSECT, 0, 0)
    program = SearchProgram((SetOp(0, SetKind.ADJACENCY, -1, 0), twice, twice), (Level(-1),) * 3)
    reads = frontier(program, flat([(4, 1), (4, 2), (5, 1)], 2, xp))
    assert [(vertices_of(r), r.part, r.times) for r in reads] == [
        ([4, 5], NeighbourRange.ALL, 1),
        ([4, 4, 5], NeighbourRange.ALL, 2),
    ]


@settings(deadline=None, max_examples=25)
@given(data=graphs(), query=queries(min_size=3, labelled=False))
def test_pages_of_real_programs_and_levels(engine: Engine, lab: Any, data: Any, query: Any) -> None:
    graph = lab.graph(data.edges)
    program = plan_match(parse_pattern(query.text), graph.stats, induced=query.induced, counting=False).program
    host = host_arrays(graph)
    device = engine.load(host)
    searcher = engine.kernels.searcher(engine.device, device, program, 1 << 26)
    table = edge_source(device, program.levels[:2], 0, device.num_arcs, engine.xp)
    while table.num_levels < program.depth and len(table):
        columns = table.columns()
        rows = [tuple(row) for row in on_host(columns).T.tolist()]
        for grouped in (True, False):
            found = engine.kernels.bytes_per_page(engine.device, device, frontier(program, columns, grouped=grouped), 3)
            walk = reads_of_a_walk(program, rows, grouped)
            assert found.tolist() == bytes_by_arcs(host, walk, 3)
        extension = searcher.extend_rows(columns, 1 << 16)
        table = table.extended(extension.counts, extension.values)


# --- bytes per page ---------------------------------------------------------------------------------------------


def bytes_by_arcs(graph: GraphArrays, reads: Counter[tuple[int, NeighbourRange]], page_arcs: int) -> list[int]:
    """Count arc by arc."""
    found = [0] * -(-graph.num_arcs // page_arcs)
    for (vertex, part), times in reads.items():
        begin, middle, end = (int(x) for x in (graph.indptr[vertex], graph.split[vertex], graph.indptr[vertex + 1]))
        arcs = {
            NeighbourRange.ALL: range(begin, end),
            NeighbourRange.SMALLER: range(begin, middle),
            NeighbourRange.LARGER: range(middle, end),
        }
        for arc in arcs[part]:
            found[arc // page_arcs] += 4 * times
    return found


def rows_of_lengths(smaller: list[int], larger: list[int]) -> GraphArrays:
    """A graph of which only `indptr` and `split` mean anything."""
    lengths = np.array([smaller, larger], np.int64)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths.sum(axis=0))])
    return GraphArrays(
        indptr, np.zeros(int(indptr[-1]), np.uint32), indptr[:-1] + lengths[0], np.zeros(1, np.int32), 0, 0
    )


@st.composite
def row_reads(
    draw: st.DrawFn,
) -> tuple[GraphArrays, list[tuple[list[int], NeighbourRange, int, list[list[int]] | None]]]:
    """Rows of which a few are long, and reads of them, some with prefixes."""
    n = draw(st.integers(1, 8))
    length = st.one_of(st.integers(0, 5), st.integers(0, 200))
    graph = rows_of_lengths(*(draw(st.lists(length, min_size=n, max_size=n)) for _ in range(2)))

    @st.composite
    def read(draw: st.DrawFn) -> tuple[list[int], NeighbourRange, int, list[list[int]] | None]:
        vertices = draw(st.lists(st.integers(0, n - 1), max_size=20))
        column = st.lists(st.integers(0, 1), min_size=len(vertices), max_size=len(vertices))
        prefix = draw(st.none() | st.lists(column, min_size=1, max_size=3))
        return vertices, draw(st.sampled_from(NeighbourRange)), draw(st.integers(1, 3)), prefix

    return graph, draw(st.lists(read(), max_size=4))


def array_of(values: Any, xp: Any) -> Any:
    return xp.asarray(np.array(values, np.uint32))


@relaxed
@given(case=row_reads(), page_arcs=st.one_of(st.integers(1, 40), st.just(5000)))
def test_page_bytes_are_those_of_the_arcs(engine: Engine, case: Any, page_arcs: int) -> None:
    graph, given_reads = case
    xp = engine.xp
    reads = [
        RowReads(array_of(vertices, xp), part, times, None if prefix is None else array_of(prefix, xp))
        for vertices, part, times, prefix in given_reads
    ]
    found = engine.kernels.bytes_per_page(engine.device, engine.load(graph), reads, page_arcs)
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.uint64
    assert found.tolist() == bytes_by_arcs(graph, counted(reads), page_arcs)


def test_pages_sum_up_to_rows(engine: Engine) -> None:
    """A hub over thousands of pages, and more rows than a launch has threads."""
    rng = np.random.default_rng(3)
    smaller, larger = rng.integers(0, 30, (2, 2000))
    larger[0] = 1_000_000
    graph = rows_of_lengths(smaller.tolist(), larger.tolist())
    vertices = rng.integers(0, 2000, 500_000).astype(np.uint32)
    prefix = np.sort(rng.integers(0, 100_000, (2, 500_000)).astype(np.uint32))
    new = np.append(True, (np.diff(prefix.astype(np.int64)) != 0).any(axis=0))
    device = engine.load(graph)
    for part, lengths in (
        (NeighbourRange.ALL, smaller + larger),
        (NeighbourRange.SMALLER, smaller),
        (NeighbourRange.LARGER, larger),
    ):
        for given_prefix, read in ((None, vertices), (array_of(prefix, engine.xp), vertices[new])):
            reads = [RowReads(array_of(vertices, engine.xp), part, 2, given_prefix)]
            for page_arcs in (64, 1 << 12, 1 << 30):
                found = engine.kernels.bytes_per_page(engine.device, device, reads, page_arcs)
                assert found.size == -(-graph.num_arcs // page_arcs)
                assert int(found.sum()) == 8 * int(lengths[read].sum())


def test_an_empty_frontier_reads_nothing(engine: Engine) -> None:
    graph, xp = engine.load(rows_of_lengths([2, 0], [0, 2])), engine.xp
    empty = RowReads(xp.zeros(0, np.uint32), NeighbourRange.ALL)
    grouped = RowReads(xp.zeros(0, np.uint32), NeighbourRange.ALL, 1, xp.zeros((2, 0), np.uint32))
    for reads in ([], [empty], [grouped]):
        assert engine.kernels.bytes_per_page(engine.device, graph, reads, 3).tolist() == [0, 0]


def test_vertices_and_prefixes_may_be_strided_views(engine: Engine) -> None:
    graph, xp = engine.load(rows_of_lengths([1, 1, 1, 1], [0, 0, 0, 0])), engine.xp
    vertices = array_of([3, 0, 3, 1], xp)[::2]
    assert engine.kernels.bytes_per_page(
        engine.device, graph, [RowReads(vertices, NeighbourRange.ALL)], 1
    ).tolist() == [0, 0, 0, 8]
    rows = array_of([[0, 7, 0, 7, 2, 7], [1, 7, 1, 7, 1, 7], [3, 7, 3, 7, 3, 7]], xp)
    for prefix in (rows[:2, ::2], xp.ascontiguousarray(rows[:, ::2])[:2]):
        reads = [RowReads(rows[2, ::2], NeighbourRange.ALL, 1, prefix)]
        assert engine.kernels.bytes_per_page(engine.device, graph, reads, 1).tolist() == [0, 0, 0, 8]
    part = array_of([[0, 5, 5, 6], [1, 3, 3, 3]], xp)[:, 1:]  # columns are further apart than they are long
    assert engine.kernels.bytes_per_page(
        engine.device, graph, [RowReads(part[1], NeighbourRange.ALL, 1, part[:2])], 1
    ).tolist() == [0, 0, 0, 8]


# --- the three definitions --------------------------------------------------------------------------------------

PAGES = 7
per_page = st.lists(st.integers(0, 5), min_size=PAGES, max_size=PAGES)
spatials = st.lists(st.one_of(per_page, st.just([0] * PAGES), per_page.map(lambda x: [v << 40 for v in x])), max_size=6)


@relaxed
@given(extensions=spatials)
def test_heat_follows_the_definitions(extensions: list[list[int]]) -> None:
    heat = AccessHeat(PAGES)
    totals = [sum(spatial) for spatial in extensions]
    for i, spatial in enumerate(extensions):
        found = heat.observe(np.array(spatial, np.uint64))
        assert found.dtype == np.float64
        all_bytes = sum(totals[: i + 1])
        for page in range(PAGES):
            history = sum(earlier[page] for earlier in extensions[:i])
            expected = Fraction(0)
            if all_bytes:
                expected += Fraction(totals[i], all_bytes) * spatial[page]
                expected += Fraction(sum(totals[:i]), all_bytes) * history
            assert found[page] == pytest.approx(float(expected), rel=1e-14)
    assert heat.total == sum(totals)
    assert heat.history.tolist() == [sum(column) for column in zip([0] * PAGES, *extensions, strict=True)]


def test_history_is_exact_beyond_what_floating_point_holds() -> None:
    heat = AccessHeat(2)
    for spatial in ([2**63, 1], [1, 1], [0, 2**62]):
        heat.observe(np.array(spatial, np.uint64))
    assert heat.history.tolist() == [2**63 + 1, 2**62 + 2]
    assert heat.total == 2**63 + 2**62 + 3


# --- the choice of pages ----------------------------------------------------------------------------------------


def pages_of(ranges: Any) -> set[int]:
    """The pages of ranges, which must be few: ascending, not empty, never touching."""
    assert ranges.dtype == np.int64
    assert ranges.shape[1:] == (2,)
    pages: set[int] = set()
    beyond = -1
    for first, last in ranges.tolist():
        assert beyond < first < last
        pages |= set(range(first, last))
        beyond = last
    return pages


def marked(mask: Any) -> set[int]:
    assert mask.dtype == bool
    return set(np.flatnonzero(mask).tolist())


heats = st.lists(st.sampled_from([0.0, 0.0, 0.5, 1.0, 1.5, 1e300]), min_size=PAGES, max_size=PAGES)
choices = st.tuples(st.just("choose"), heats, st.integers(0, PAGES + 2))
forgetting = st.tuples(st.just("forget"), st.just([]), st.just(0))


@relaxed
@given(steps=st.lists(st.one_of(choices, forgetting), max_size=6))
def test_the_hottest_pages_are_chosen(steps: list[tuple[str, list[float], int]]) -> None:
    pages = HeatPolicy(PAGES)
    mask = pages.hot
    hot: set[int] = set()
    for kind, heat, capacity in steps:
        if kind == "choose":
            moves = pages.choose(np.array(heat), capacity)
            eligible = [p for p in range(PAGES) if heat[p] > 0 or p in hot]
            expected = set(sorted(eligible, key=lambda p: (-heat[p], p not in hot, p))[:capacity])
            assert moves.evict.tolist() == sorted(hot - expected)
            assert moves.admit.tolist() == sorted(expected - hot)
        else:
            expected = set()
            pages.forget()
        hot = expected
        assert marked(pages.hot) == hot
        assert pages.hot is mask


@relaxed
@given(
    steps=st.lists(
        st.tuples(per_page, st.integers(0, PAGES + 2), st.integers(0, 6).map(lambda x: x / 2)), min_size=1, max_size=5
    )
)
def test_pages_that_are_not_worth_their_move_do_not_enter(steps: list[tuple[list[int], int, float]]) -> None:
    pages = HeatPolicy(PAGES)
    hot: set[int] = set()
    for heat, capacity, cost in steps:

        def worth(chosen: Iterable[int], heat: list[int] = heat, cost: float = cost) -> float:
            return sum(heat[p] - cost * (p not in hot) for p in chosen)  # noqa: B023 - called before `hot` changes

        moves = pages.choose(np.array(heat, np.float64), capacity, cost)
        found = marked(pages.hot)
        entered = found - hot
        assert moves.admit.tolist() == sorted(entered)
        assert moves.evict.tolist() == sorted(hot - found)
        assert bool(moves) == (found != hot)
        assert len(found) <= capacity
        assert all(heat[p] > 0 for p in entered)
        subsets = chain.from_iterable(combinations(range(PAGES), n) for n in range(min(capacity, PAGES) + 1))
        assert worth(found) == max(map(worth, subsets))
        if len(found) < capacity:
            assert hot <= found
        hot = found


def test_pages_that_stay_hot_do_not_move() -> None:
    pages = HeatPolicy(6)
    moves = pages.choose(np.array([5.0, 4, 3, 2, 1, 0]), 4)
    assert moves.admit.tolist() == [0, 1, 2, 3]
    moves = pages.choose(np.array([5.0, 0, 3, 2, 9, 9]), 4)
    assert (moves.evict.tolist(), moves.admit.tolist()) == ([1, 3], [4, 5])
    moves = pages.choose(np.zeros(6), 6)
    assert (moves.evict.tolist(), moves.admit.tolist()) == ([], [])


@relaxed
@given(steps=st.lists(st.tuples(per_page, st.integers(0, PAGES + 2)), max_size=8))
def test_the_pages_that_were_not_used_for_longest_leave(steps: list[tuple[list[int], int]]) -> None:
    pages = LruPolicy(PAGES)
    used: dict[int, int] = {}
    for now, (spatial, capacity) in enumerate(steps):
        pages.touch(np.array(spatial, np.uint64))
        used |= {page: now for page, size in enumerate(spatial) if size}
        kept = sorted(used, key=lambda page: (-used[page], page))[:capacity]
        assert pages_of(pages.over(capacity)) == set(used) - set(kept)
        used = {page: used[page] for page in kept}


def test_choosing_takes_no_more_memory_than_it_says() -> None:
    n = 100_000
    rng = np.random.default_rng(1)
    spatial = rng.integers(0, 3, n).astype(np.uint64)
    tracemalloc.start()
    try:
        for cls, use in ((HeatPolicy, choose_pages), (LruPolicy, use_pages), (AccessHeat, observe)):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            use(cls(n), spatial)
            assert tracemalloc.get_traced_memory()[1] - before <= cls.nbytes(n) + 20_000, cls
    finally:
        tracemalloc.stop()


def choose_pages(pages: HeatPolicy, spatial: Any) -> None:
    pages.choose(spatial.astype(np.float64), spatial.size // 2, 1.0)
    pages.choose(spatial[::-1].astype(np.float64), spatial.size // 3, 1.0)
    pages.forget()


def use_pages(pages: LruPolicy, spatial: Any) -> None:
    pages.touch(spatial)
    pages.over(spatial.size // 2)


def observe(heat: AccessHeat, spatial: Any) -> None:
    heat.observe(spatial)
    heat.observe(spatial)


# --- the record -------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(
    steps=st.lists(
        st.tuples(st.integers(1, 4), per_page, st.lists(st.booleans(), min_size=PAGES, max_size=PAGES)), max_size=8
    )
)
def test_the_record_sums_up_levels(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, list[int], list[bool]]]
) -> None:
    record = HeatRecord(PAGES)
    for level, spatial, hot in steps:
        record.record(level, np.array(spatial, np.uint64), np.array(hot))
    path: Path = tmp_path_factory.mktemp("heat") / "heat.parquet"
    record.write(path)
    expected = []
    for level in sorted({level for level, _, _ in steps}):
        own = [(spatial, hot) for at, spatial, hot in steps if at == level]
        for page in range(PAGES):
            size = sum(spatial[page] for spatial, _ in own)
            history = sum(spatial[page] for at, spatial, _ in steps if at <= level)
            if size:
                expected.append((level, page, size, history, len(own), sum(hot[page] for _, hot in own)))
    table = pq.read_table(path)
    assert table.column_names == ["level", "page", "bytes", "history", "extensions", "hot_extensions"]
    assert [tuple(row.values()) for row in table.to_pylist()] == expected


every_page = st.lists(st.integers(1, 5), min_size=PAGES, max_size=PAGES)
some_pages = st.lists(st.booleans(), min_size=PAGES, max_size=PAGES)


@relaxed
@given(
    parts=st.lists(st.lists(st.tuples(st.integers(1, 3), every_page, some_pages), max_size=5), min_size=1, max_size=4)
)
def test_records_of_several_processes_add_up_to_the_record_of_one(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[tuple[int, list[int], list[bool]]]]
) -> None:
    folder = tmp_path_factory.mktemp("heat")
    whole = HeatRecord(PAGES)
    for number, extensions in enumerate(parts):
        record = HeatRecord(PAGES)
        for level, spatial, hot in extensions:
            for one in (record, whole):
                one.record(level, np.array(spatial, np.uint64), np.array(hot, np.bool_))
        record.write(folder / f"{number}.parquet")
    whole.write(folder / "whole.parquet")
    add_records([folder / f"{number}.parquet" for number in range(len(parts))], folder / "sum.parquet")
    expected = pq.read_table(folder / "whole.parquet").to_pylist()
    assert pq.read_table(folder / "sum.parquet").to_pylist() == expected
