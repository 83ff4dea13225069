"""What of the graph is brought to a device whose budget does not hold it, and what it takes of the budgets."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from threading import Event, Timer
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cases import each_case
from conftest import set_page_size
from plans import plan_count

from longwall.kernels.cuda.kcliques.tables import CudaTabledCliqueCounter
from longwall.kernels.cuda.local_counts.arc_diamonds import CudaArcDiamondCounter
from longwall.kernels.cuda.runtime.page_buffer import CudaPageFrames
from longwall.kernels.interface.engine import ShortOfMemory
from longwall.kernels.interface.pages import NeighbourRange
from longwall.pipeline.execution import device_graph
from longwall.pipeline.execution.device_graph import (
    bring_ahead,
    bring_small,
    load_edge_labels,
    load_graph,
    loaded_edge_labels,
    release_graph,
)
from longwall.pipeline.execution.reads.oriented_reads import OrientedReads
from longwall.pipeline.execution.reads.streamed_reads import column_ranges, streamed_columns
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.phases.count_per_vertex import CountPerVertex
from longwall.pipeline.phases.search_list import load_searched, search_share
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.stages.range_counting import CountCliques, CountTrianglesOfVertices
from longwall.storage.errors import InputError
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.build import build_graph
from longwall.storage.memory.reservations import BudgetExceeded, Reservation
from longwall.storage.pages import oriented_copy, placement
from longwall.storage.pages.hot_pages import HeatPolicy
from longwall.storage.pages.oriented_copy import OrientedCopy
from longwall.storage.pages.paged_graph import GraphPages

PATTERNS = ("clique-4", "cycle-4", "clique-3", "diamond")


@cache
def rmat() -> Graph:
    return generate("rmat", seed=7, scale=9, edge_factor=6)


def oriented_sizes(least: int) -> tuple[int, int]:
    """Return the vertices up to the last one that has `least` neighbours, and their arcs to smaller ones."""
    number = int(np.flatnonzero(np.diff(rmat().indptr) >= least)[-1]) + 1
    return number, int((rmat().split - rmat().indptr[:-1])[:number].sum())


def counted(context: Any, name: str) -> int:
    return plan_count(parse_pattern(name), context.graph).count(context)


@pytest.fixture(scope="module")
def expected(lab: SimpleNamespace) -> dict[str, int]:
    return {name: counted(lab.context(rmat()), name) for name in PATTERNS}


@pytest.mark.gpu
@pytest.mark.parametrize("access", ["adaptive", "zero-copy", "managed"])
def test_cliques_bring_half_of_the_arcs(
    lab: SimpleNamespace, expected: dict[str, int], access: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_page_size(monkeypatch, 1024)
    context = lab.context(rmat(), engine="cuda", device=4 << 20, memory={"access": access})
    assert counted(context, "clique-4") == expected["clique-4"]
    graph = context.device_graph.graph
    assert graph.oriented
    assert (graph.num_vertices, graph.num_arcs) == oriented_sizes(3)
    assert context.device_graph.placement.access == access
    assert counted(context, "clique-3") == expected["clique-3"]
    graph = context.device_graph.graph
    assert (graph.num_vertices, graph.num_arcs) == oriented_sizes(2)
    assert graph.num_arcs < rmat().num_edges
    assert counted(context, "clique-4") == expected["clique-4"]
    assert context.device_graph.graph is graph


@pytest.mark.gpu
@pytest.mark.parametrize("pages", [12, 19])
@pytest.mark.parametrize("page", [128, 256])
def test_triangles_are_counted_by_pairs_of_blocks(
    lab: SimpleNamespace, expected: dict[str, int], page: int, pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_page_size(monkeypatch, page)
    capacity, held, copied = pages * page // 4, [], 0
    monkeypatch.setattr(GraphPages, "cache_arcs", capacity)
    hold, copy = GraphPages.hold, GraphPages._copy

    def copying(self: GraphPages, moves: Any, behind: Any) -> None:
        nonlocal copied
        copied += moves.admit.size
        copy(self, moves, behind)

    monkeypatch.setattr(GraphPages, "hold", lambda self, *ranges: (held.append(ranges), hold(self, *ranges)))
    monkeypatch.setattr(GraphPages, "_copy", copying)
    context = lab.context(rmat(), engine="cuda", device=4 << 20, memory={"access": "adaptive"})
    assert counted(context, "clique-3") == expected["clique-3"]
    assert len(held) > 4
    for (owners, targets), before in held:
        assert targets[1] <= owners[1]
        both = [owners, targets, *(before[-1] if before and owners in before[-1] else [])]
        assert len({arc * 4 // page for first, last in both for arc in range(first, last)}) <= pages
    # As often as the algorithm must, with a page more at either end of each range.
    reads = OrientedReads(context)
    for _ in reads.pieces(0, context.device_graph.graph.num_arcs):
        pass
    assert page * copied <= reads.predicted * 2 + len(held) * 4 * page


@pytest.mark.gpu
@pytest.mark.parametrize("pattern", ["clique-3", "clique-4", "diamond"])
@pytest.mark.parametrize("pages", [13, 16, 30])
def test_what_running_kernels_read_is_not_written_over(
    lab: SimpleNamespace, expected: dict[str, int], pattern: str, pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are copied while kernels read the ones before: to other places, behind the kernels before these."""
    set_page_size(monkeypatch, 128)
    monkeypatch.setattr(GraphPages, "cache_arcs", pages * 32)
    there: list[int] = []  # the page in each place, before copies are made
    reads: list[set[int]] = []  # pages, since each mark
    marks: list[object] = []
    early = 0
    hold, fill, mark = GraphPages.hold, CudaPageFrames.fill, CudaPageFrames.mark

    def holding(self: GraphPages, ranges: Any, before: Any = ()) -> None:
        if self._buffer is None:
            self._capacity = pages
        there[:] = self._frames.tolist()
        hold(self, ranges, before)
        reads.append({arc // 32 for first, last in ranges for arc in range(first, last)})
        assert reads[-1] <= set(self._frames.tolist())

    def filling(self: CudaPageFrames, moves: Any, table: Any, values: Any, behind: Any = None) -> None:
        nonlocal early
        if behind is not None:
            early += 1
            reading = set().union(*reads[marks.index(behind) :])
            assert not reading & {there[place] for place in moves[1].tolist()}
        fill(self, moves, table, values, behind)

    def marking(self: CudaPageFrames) -> object:
        marks.append(mark(self))
        return marks[-1]

    monkeypatch.setattr(GraphPages, "hold", holding)
    monkeypatch.setattr(CudaPageFrames, "fill", filling)
    monkeypatch.setattr(CudaPageFrames, "mark", marking)
    context = lab.context(rmat(), engine="cuda", device=4 << 20, memory={"access": "adaptive"})
    assert counted(context, pattern) == expected[pattern]
    assert early > 4


@pytest.mark.gpu
@pytest.mark.parametrize("in_turn", [True, False])
@pytest.mark.parametrize("pages", [3, 13, 21, 400])
def test_diamonds_are_counted_block_by_block(
    lab: SimpleNamespace, expected: dict[str, int], pages: int, in_turn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With counts of arcs that come in turn, or, where the host has no room for them, with triangles found twice."""
    set_page_size(monkeypatch, 128)
    monkeypatch.setattr(GraphPages, "cache_arcs", pages * 32)
    monkeypatch.setattr("longwall.kernels.cuda.local_counts.arc_diamonds._COUNT_BYTES", 2000 if pages == 13 else 4)
    held = []
    hold = GraphPages.hold
    monkeypatch.setattr(GraphPages, "hold", lambda self, *ranges: (held.append(ranges), hold(self, *ranges)))
    context = lab.context(rmat(), engine="cuda", device=4 << 20, memory={"access": "adaptive"})
    host, turns = context.resources.host, []
    count, reserve = CudaArcDiamondCounter.count_pieces, host.reserve

    def reserving(size: int, what: str) -> Reservation:
        if what == "triangles of arcs" and not in_turn:
            raise BudgetExceeded("full")
        return reserve(size, what)

    monkeypatch.setattr(host, "reserve", reserving)
    monkeypatch.setattr(
        CudaArcDiamondCounter, "count_pieces", lambda self, pieces: count(self, (turns.append(p) or p for p in pieces))
    )
    used = host.used
    assert counted(context, "diamond") == expected["diamond"]
    assert context.device_graph.graph.oriented
    assert host.used - used == context.device_graph.charged[0]
    assert (len(held) > 30) == (12 < pages < 400)
    assert (len(turns) > 3) == (in_turn and 12 < pages < 400)
    for (owned, *other), before in held:
        both = [owned, *other, *(before[-1] if before and owned in before[-1] else [])]
        assert len({arc // 32 for first, last in both for arc in range(first, last)}) <= pages


@pytest.mark.gpu
@pytest.mark.parametrize("access", ["adaptive", "zero-copy", "managed"])
def test_cycles_are_counted_by_columns(
    lab: SimpleNamespace, expected: dict[str, int], access: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_page_size(monkeypatch, 128)
    monkeypatch.setattr(GraphPages, "cache_arcs", 13 * 32)
    monkeypatch.setattr("longwall.pipeline.execution.task_ranges._LEAST_TASKS", 3)
    parts = []
    monkeypatch.setattr(
        "longwall.pipeline.execution.stage_workers.streamed_columns",
        lambda *given: [parts.append(part[:2]) or part for part in streamed_columns(*given[:4], 200, given[5])],
    )
    held = []
    hold = GraphPages.hold
    monkeypatch.setattr(GraphPages, "hold", lambda self, *ranges: (held.append(ranges), hold(self, *ranges)))
    context = lab.context(rmat(), engine="cuda", device=4 << 20, memory={"access": access})
    assert counted(context, "cycle-4") == expected["cycle-4"]
    assert (len(parts) > 6) == (access != "managed")
    assert (len(held) > 5 * len(parts)) == (access != "managed")
    for (((first, last),),) in held:  # as much as there is room for, or the list of one vertex
        one = rmat().indptr.tolist().index(last) - rmat().indptr.tolist().index(first) == 1
        assert one or (last - 1) // 32 - first // 32 < 13


@each_case("at_once", [3, 50, 1000])
@each_case("most", [1, 40, 700, 1 << 20])
def test_columns_are_cut_by_arcs_from_larger_vertices(at_once: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longwall.pipeline.execution.reads.streamed_reads._VERTICES_AT_ONCE", at_once)
    larger, n = (rmat().indptr[1:] - rmat().split).tolist(), rmat().num_vertices
    for first, last in ((0, n), (5, n - 9), (7, 8)):
        parts = column_ranges(rmat(), first, last, most)
        assert [v for part in parts for v in range(*part)] == list(range(first, last))
        for begin, end in parts:
            assert sum(larger[begin:end]) <= most or end == begin + 1
        for (begin, end), (_, beyond) in pairwise(parts):
            assert sum(larger[begin:end]) + larger[end] > most or end == begin + 1
            assert beyond > end


@pytest.mark.gpu
@pytest.mark.parametrize("pages", [5, 13])
@pytest.mark.parametrize("k", [4, 5])
def test_cliques_are_counted_in_pieces_whose_tables_have_room(
    lab: SimpleNamespace, k: int, pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_page_size(monkeypatch, 128)
    monkeypatch.setattr(GraphPages, "cache_arcs", pages * 32)
    monkeypatch.setattr("longwall.kernels.cuda.kcliques.tables.WORD_BYTES", 16 << 10)  # a small room
    pieces, held = [], []
    plain, hold = OrientedReads.pieces, GraphPages.hold

    def watched(self: OrientedReads, *given: Any) -> Any:
        for piece in plain(self, *given):
            pieces.append(piece.arcs)
            yield piece

    monkeypatch.setattr(OrientedReads, "pieces", watched)
    monkeypatch.setattr(GraphPages, "hold", lambda self, *ranges: (held.append(ranges), hold(self, *ranges)))
    expected = plan_count(parse_pattern(f"clique-{k}"), rmat()).count(lab.context(rmat()))
    context = lab.context(rmat(), engine="cuda", device=4 << 20, memory={"access": "adaptive"})
    assert CountCliques(k) == plan_count(parse_pattern(f"clique-{k}"), rmat()).best.phase.count
    assert counted(context, f"clique-{k}") == expected
    assert len(pieces) > 12
    assert sum(last - first for first, last in pieces) == oriented_sizes(k - 1)[1]
    assert (pages < 12) == (not held)


@pytest.mark.gpu
def test_the_next_lists_are_copied_while_cliques_are_counted(
    lab: SimpleNamespace, expected: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_page_size(monkeypatch, 128)
    monkeypatch.setattr(GraphPages, "cache_arcs", 16 * 32)
    monkeypatch.setattr("longwall.kernels.cuda.kcliques.tables.WORD_BYTES", 16 << 10)  # a small room
    blocks, copied, counts = [], [], []  # blocks of each piece; copies that were begun, at all and before each count
    plain, hold, start = OrientedReads.pieces, GraphPages.hold, CudaTabledCliqueCounter._start

    def watched(self: OrientedReads, *given: Any) -> Any:
        for piece in plain(self, *given):
            blocks.append(len(piece.parts))
            yield piece

    def starting(self: CudaTabledCliqueCounter, *given: Any) -> None:
        counts.append(len(copied))
        start(self, *given)

    monkeypatch.setattr(OrientedReads, "pieces", watched)
    monkeypatch.setattr(GraphPages, "hold", lambda self, *ranges: (copied.append(ranges), hold(self, *ranges)))
    monkeypatch.setattr(CudaTabledCliqueCounter, "_start", starting)
    context = lab.context(rmat(), engine="cuda", device=4 << 20, memory={"access": "adaptive"})
    assert counted(context, "clique-4") == expected["clique-4"]
    assert len(blocks) > 4
    assert counts == [*(sum(blocks[:number]) + 1 for number in range(1, len(blocks))), sum(blocks)]


@pytest.mark.gpu
def test_lists_that_are_read_in_place_do_not_cut_the_tables(
    lab: SimpleNamespace, expected: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every piece costs launches: one for each vertex would take minutes in a graph of a million edges."""
    set_page_size(monkeypatch, 128)
    pieces = []
    plain = OrientedReads.pieces

    def watched(self: OrientedReads, *given: Any) -> Any:
        for piece in plain(self, *given):
            pieces.append(piece.arcs)
            yield piece

    monkeypatch.setattr(OrientedReads, "pieces", watched)
    context = lab.context(rmat(), engine="cuda", device=4 << 20, memory={"access": "zero-copy"})
    assert counted(context, "clique-4") == expected["clique-4"]
    assert pieces == [(0, oriented_sizes(3)[1])]


@pytest.mark.gpu
@pytest.mark.parametrize("pattern", ["clique-3", "clique-4", "diamond", "cycle-4"])
def test_a_run_that_is_cancelled_reads_no_more_pieces(
    lab: SimpleNamespace, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_page_size(monkeypatch, 128)
    monkeypatch.setattr(GraphPages, "cache_arcs", 16 * 32)
    hold = GraphPages.hold

    def holds(*, cancelled: bool) -> int:
        context = lab.context(rmat(), engine="cuda", device=4 << 20, memory={"access": "adaptive"})
        held = []

        def holding(self: GraphPages, *ranges: Any) -> None:
            held.append(ranges)
            if cancelled:
                context.cancel.set()
            hold(self, *ranges)

        monkeypatch.setattr(GraphPages, "hold", holding)
        if cancelled:
            with pytest.raises(KeyboardInterrupt):
                counted(context, pattern)
        else:
            counted(context, pattern)
        return len(held)

    assert holds(cancelled=True) < holds(cancelled=False) / 8


@pytest.mark.gpu
def test_triangles_of_vertices_are_counted_by_pairs_of_blocks(
    lab: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_page_size(monkeypatch, 256)
    monkeypatch.setattr(GraphPages, "cache_arcs", 15 * 64)
    held = []
    hold = GraphPages.hold
    monkeypatch.setattr(GraphPages, "hold", lambda self, *ranges: (held.append(ranges), hold(self, *ranges)))
    phase = CountPerVertex(CountTrianglesOfVertices(), 1.0)
    with phase.run(lab.context(rmat())) as wanted:
        context = lab.context(rmat(), engine="cuda", device=4 << 20, memory={"access": "adaptive"})
        with phase.run(context) as found:
            assert found.tolist() == wanted.tolist()
    assert len(held) > 4


@pytest.mark.gpu
def test_the_hottest_pages_of_a_phase_are_copied_once(
    lab: SimpleNamespace, expected: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_page_size(monkeypatch, 1024)
    monkeypatch.setattr("longwall.pipeline.execution.task_ranges._LEAST_TASKS", 50)
    chosen = []
    choose = HeatPolicy.choose
    monkeypatch.setattr(HeatPolicy, "choose", lambda *a: chosen.append(a[1]) or choose(*a))
    context = lab.context(rmat(), engine="cuda", device=4 << 20, memory={"access": "adaptive"})
    assert counted(context, "clique-4") == expected["clique-4"]
    (heat,) = chosen
    assert heat.sum() > 4 * rmat().num_edges


@pytest.mark.gpu
def test_a_phase_that_reads_more_has_the_whole_graph(
    lab: SimpleNamespace, expected: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_page_size(monkeypatch, 1024)
    context = lab.context(rmat(), engine="cuda", device=4 << 20, memory={"access": "adaptive"})
    host, work = context.resources.host.used, context.resources.work.used
    for name in PATTERNS:
        assert counted(context, name) == expected[name]
        oriented = name != "cycle-4"
        assert context.device_graph.graph.oriented == oriented
        charged = context.device_graph.charged
        assert (context.resources.host.used, context.resources.work.used) == (host + charged[0], work + charged[1])
        assert (context.device_graph.starts is not None) == oriented


@pytest.mark.gpu
def test_searches_that_read_smaller_neighbours_alone_leave_no_room_for_copies(
    lab: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_page_size(monkeypatch, 1024)
    context = lab.context(rmat(), engine="cuda", device=4 << 20, memory={"access": "adaptive"})
    host, work = context.resources.host.used, context.resources.work.used
    rows = {}
    for name in ("diamond", "clique-4", "clique-3", "house"):
        search = plan_match(parse_pattern(name), rmat().stats, counting=False)
        load_searched(search, context)
        share = search_share(search, context)
        assert share.graph is context.device_graph.graph
        assert not share.graph.oriented
        assert (share.graph.pages.cache_arcs > 0) == (name in ("diamond", "house"))
        charged = context.device_graph.charged
        assert (context.resources.host.used, context.resources.work.used) == (host + charged[0], work + charged[1])
        rows[name] = share.memory.workspace
    assert rows["clique-4"] > rows["diamond"]
    assert rows["clique-3"] > rows["diamond"]


@pytest.mark.gpu
def test_the_arcs_to_smaller_neighbours_are_resident_where_all_are_not(
    lab: SimpleNamespace, expected: dict[str, int]
) -> None:
    budget = 4 * len(rmat().indices) + 3 * 8 * rmat().num_vertices  # a quarter of it is for the work
    context = lab.context(rmat(), engine="cuda", device=budget)
    free = context.resources.host.free
    assert counted(context, "clique-3") == expected["clique-3"]
    assert context.device_graph.placement.access == "resident"
    assert context.device_graph.graph.oriented
    assert free - context.resources.host.free == 8 * (oriented_sizes(2)[0] + 1)


@pytest.mark.gpu
@pytest.mark.parametrize("access", ["adaptive", "zero-copy"])
def test_no_vertex_has_enough_neighbours(lab: SimpleNamespace, access: str) -> None:
    star = build_graph(np.zeros(50, np.int64), np.arange(1, 51))
    context = lab.context(star, engine="cuda", device=4 << 20, memory={"access": access})
    assert [counted(context, name) for name in ("clique-4", "clique-3", "diamond")] == [0, 0, 0]
    assert context.device_graph.graph.num_arcs == 0


@pytest.mark.gpu
def test_a_graph_that_fits_is_brought_whole(lab: SimpleNamespace) -> None:
    context = lab.context(rmat(), engine="cuda", device=64 << 20)
    assert not load_graph(context, NeighbourRange.SMALLER)[0].oriented


@pytest.mark.gpu
def test_without_room_on_the_host_kernels_read_the_whole_adjacency(
    lab: SimpleNamespace, expected: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_page_size(monkeypatch, 1024)
    context = lab.context(rmat(), engine="cuda", device=4 << 20, memory={"access": "adaptive"})
    monkeypatch.setattr("longwall.pipeline.execution.device_graph.oriented_bytes", lambda _: 1 << 40)
    assert counted(context, "clique-4") == expected["clique-4"]
    assert not context.device_graph.graph.oriented


def test_an_engine_that_works_on_the_host_reads_the_graph_where_it_is(lab: SimpleNamespace) -> None:
    context = lab.context(rmat())
    graph, _ = load_graph(context, NeighbourRange.SMALLER)
    assert not graph.oriented
    assert graph.indices is rmat().indices


@pytest.mark.gpu
@pytest.mark.parametrize(("engine", "access"), [("cpu", "auto"), ("cuda", "auto"), ("cuda", "adaptive")])
def test_a_graph_comes_ahead_of_phases_where_it_will_be_resident(
    lab: SimpleNamespace, expected: dict[str, int], engine: str, access: str
) -> None:
    """Where a device holds it only in part, phases differ in what they read of it."""
    on_device = {"device": 4 << 20} if engine == "cuda" else {}
    context = lab.context(rmat(), engine=engine, memory={"access": access}, **on_device)
    bring_ahead(context)
    brought = context.device_graph
    assert (brought is not None) == ((engine, access) == ("cuda", "auto"))
    assert counted(context, "clique-4") == expected["clique-4"]
    assert brought is None or context.device_graph is brought


@pytest.mark.gpu
@pytest.mark.parametrize("least", [64 << 20, 1])
def test_a_small_graph_comes_ahead_of_phases(lab: SimpleNamespace, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large graph is copied while it is read, if at all."""
    monkeypatch.setattr(device_graph, "WORTH_BUFFERS", least)
    context = lab.context(rmat(), engine="cuda")
    bring_small(context)
    assert (context.device_graph is not None) == (rmat().nbytes < least)


@pytest.mark.gpu
@pytest.mark.parametrize("access", ["resident", "adaptive"])
def test_a_graph_that_cannot_be_brought_leaves_the_budgets_as_they_were(
    lab: SimpleNamespace, access: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise ShortOfMemory("device")

    context = lab.context(rmat(), engine="cuda", device=64 << 20, memory={"access": access})
    resources = context.resources
    before = resources.host.used, resources.work.used
    monkeypatch.setattr(placement, "load_paged", fail)
    monkeypatch.setattr(type(resources.engine), "load", fail)
    with pytest.raises(InputError, match="the device has less room than"):
        load_graph(context)
    assert (resources.host.used, resources.work.used) == before


@pytest.mark.gpu
def test_labels_of_edges_leave_the_device_with_the_graph(lab: SimpleNamespace) -> None:
    labels = np.arange(rmat().indices.size, dtype=np.int32)
    context = lab.context(replace(rmat(), edge_labels=labels), engine="cuda", device=64 << 20)
    work = context.resources.work
    before = work.used
    load_graph(context)
    with_graph = work.used
    load_edge_labels(context)
    assert loaded_edge_labels(context) is not labels
    assert work.used == with_graph + labels.nbytes
    release_graph(context)
    assert work.used == before


@pytest.mark.gpu
def test_no_thread_copies_arcs_once_a_process_is_done_with_them(
    lab: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, copy_rows = Event(), oriented_copy._copy_rows

    def waiting(*arguments: Any) -> None:
        goes_on.wait(20)
        copy_rows(*arguments)

    monkeypatch.setattr(oriented_copy, "_ARCS_AT_ONCE", 64)
    monkeypatch.setattr(oriented_copy, "core_count", lambda: 2)
    monkeypatch.setattr(oriented_copy, "_copy_rows", waiting)
    set_page_size(monkeypatch, 1024)
    context = lab.context(rmat(), engine="cuda", device=4 << 20, memory={"access": "adaptive"})
    load_graph(context, NeighbourRange.SMALLER)
    copy = context.device_graph.copy
    Timer(0.2, goes_on.set).start()
    context.end()
    assert goes_on.is_set()
    assert any(one.cancelled() for one in copy._copies)
    assert all(one.done() for one in copy._copies)


@pytest.mark.gpu
def test_a_copy_that_cannot_be_begun_leaves_the_budgets_as_they_were(
    lab: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: OrientedCopy) -> None:
        raise RuntimeError("can't start new thread")

    set_page_size(monkeypatch, 1024)
    context = lab.context(rmat(), engine="cuda", device=4 << 20, memory={"access": "adaptive"})
    resources = context.resources
    before = resources.host.used, resources.work.used
    monkeypatch.setattr(OrientedCopy, "begin", fail)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        load_graph(context, NeighbourRange.SMALLER)
    assert (resources.host.used, resources.work.used) == before


@pytest.mark.gpu
def test_what_others_take_meanwhile_is_not_the_graphs(lab: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second engine may be opened, or closed, as the graph comes."""
    context = lab.context(rmat(), engine="cuda", device=64 << 20)
    host, load = context.resources.host, context.engine.load
    before = host.used

    def loading(*arguments: Any, **options: Any) -> Any:
        host.charge(1000, "something else")
        return load(*arguments, **options)

    monkeypatch.setattr(context.engine, "load", loading, raising=False)
    load_graph(context)
    release_graph(context)
    assert host.used == before + 1000
