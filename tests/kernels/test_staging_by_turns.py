"""Two rooms for lists: edges grow as with one, whatever is copied while kernels run, in the memory that was given."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from conftest import set_page_size

from longwall.kernels import select_engine
from longwall.kernels.cuda.runtime.staging import by_turns
from longwall.kernels.cuda.runtime.staging.by_turns import LEAST_BY_TURNS
from longwall.kernels.cuda.runtime.staging.staging import Staging
from longwall.kernels.interface.engine import ShortOfMemory
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import NeighbourRange, RowReads
from longwall.stages.source import host_arrays
from longwall.storage.generators.kinds import generate
from longwall.storage.pages.paged_graph import load_paged, state_bytes

pytestmark = pytest.mark.gpu

MEMORY = 160_000  # two rooms, and several pieces of the rows below
ALL = [(0, NeighbourRange.ALL)]


@pytest.fixture(scope="module")
def host() -> GraphArrays:
    return host_arrays(generate("rmat", seed=5, scale=11, edge_factor=6))


@pytest.fixture(params=[False, True], ids=["at once", "late"])
def late(request: pytest.FixtureRequest, cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies run as soon as they are launched, and when what waits for them is reached; on a device as they come."""
    emulated = getattr(cuda.xp, "emulated", None)
    if emulated is not None:
        monkeypatch.setattr(emulated, "late", request.param)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pages be small, and rooms as well."""
    set_page_size(monkeypatch, 256)
    monkeypatch.setattr(by_turns, "LEAST_BY_TURNS", 100_000)


def rows_of(host: GraphArrays, levels: int) -> Any:
    """Rows of edges: every fifteenth, and with two levels each with the next ones."""
    owners = np.repeat(np.arange(host.num_vertices), np.diff(host.indptr))
    codes = (owners << 32 | host.indices)[host.indices < owners]
    if levels == 1:
        return codes[None, ::15].copy()
    return np.stack([np.repeat(codes[::70], 5), np.roll(codes, 7)[: 5 * codes[::70].size]])


def expected_of(host: GraphArrays, rows: Any) -> tuple[Any, Any]:
    """What the CPU engine finds."""
    cpu = select_engine("cpu", 1)
    extender = cpu.kernels.edge_extender(cpu.device, host, len(rows), rows.shape[1], 1 << 26)
    extender.count(rows, 0, rows.shape[1])
    return extender.new_edges(0, extender.cut(0, 1 << 40))


def grown(extender: Any, columns: Any, capacity: int) -> Iterator[tuple[Any, Any]]:
    """Piece by piece, and each a part at a time."""
    first = 0
    while first < columns.shape[1]:
        if not extender.is_counted(columns, first):
            extender.count(columns, first, columns.shape[1])
        cut = extender.cut(first, capacity)
        yield extender.new_edges(first, cut)
        first = cut.last


def paged_of(cuda: Any, host: GraphArrays, access: Any) -> GraphArrays:
    return load_paged(cuda, host, access, state_bytes(host.num_arcs) + host.indices.nbytes // 8)


def check(cuda: Any, host: GraphArrays, paged: GraphArrays, rows: Any, memory: int, capacity: int) -> Any:
    """Check what rows grow by, and return the extender."""
    offsets, edges = expected_of(host, rows)
    columns = cuda.xp.asarray(rows)
    extender = cuda.kernels.edge_extender(cuda.device, paged, len(rows), rows.shape[1], memory)
    if paged.pages is not None and paged.pages.staged:
        paged.pages.prepare(1, extender.reads(columns))
    found = [(part.get(), new.get()) for part, new in grown(extender, columns, capacity)]
    np.testing.assert_array_equal(np.concatenate([new for _, new in found]), edges)
    np.testing.assert_array_equal(np.concatenate([np.diff(part) for part, _ in found]), np.diff(offsets))
    return extender


@pytest.mark.parametrize("memory", [30_000, 90_000, MEMORY, 2 * MEMORY, 1 << 21])
@pytest.mark.parametrize("access", ["adaptive", "zero-copy", "managed"])
@pytest.mark.parametrize("levels", [1, 2])
def test_edges_grow_alike_with_every_budget_and_access(
    cuda: Any, host: GraphArrays, late: None, access: str, memory: int, levels: int
) -> None:
    with cuda.faults():
        extender = check(cuda, host, paged_of(cuda, host, access), rows_of(host, levels), memory, 20_000)
    assert (extender.staging is None) == (access == "managed")
    if extender.staging is not None:
        assert len(extender.staging.capacities) == (2 if memory >= levels * MEMORY else 1)


def test_pieces_are_brought_while_others_are_written(
    cuda: Any, host: GraphArrays, late: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every piece but the first; each once."""
    calls, gather = [], Staging.gather

    def watched(self: Staging, *arguments: Any) -> Any:
        calls.append((cuda.xp.cuda.get_current_stream() is cuda.device.copies, self))
        return gather(self, *arguments)

    monkeypatch.setattr(Staging, "gather", watched)
    with cuda.faults():
        extender = check(cuda, host, paged_of(cuda, host, "zero-copy"), rows_of(host, 1), MEMORY, 20_000)
        rows = rows_of(host, 1)
        columns, pieces, first = cuda.xp.asarray(rows), 0, 0
        calls.clear()
        while first < rows.shape[1]:
            extender.count(columns, first, rows.shape[1])
            first, pieces = extender.cut(first, 1 << 40).last, pieces + 1
    assert pieces > 3
    assert len(calls) == pieces
    assert all(beside for beside, _ in calls)
    assert all(one is not other for (_, one), (_, other) in pairwise(calls))


def test_lists_of_the_piece_before_do_not_cross_the_link_again(cuda: Any, host: GraphArrays, late: None) -> None:
    with cuda.faults():
        extender = check(cuda, host, paged_of(cuda, host, "zero-copy"), rows_of(host, 1), MEMORY, 1 << 40)
        copied, brought = (
            sum(getattr(one, name) for one in extender.staging.capacities) for name in ("copied", "brought")
        )
    assert 0 < copied < brought * 3 // 4


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_another_room_has_some_of_the_lists(cuda: Any, host: GraphArrays, late: None, share: float) -> None:
    with cuda.faults():
        paged = paged_of(cuda, host, "zero-copy")
        one, other = (Staging(cuda.device, paged, 1 << 20, beside=True) for _ in range(2))
        shown = np.random.default_rng(4).permutation(host.num_vertices)[: int(share * host.num_vertices)]
        everyone = np.arange(host.num_vertices)
        if shown.size:
            one.gather(cuda.xp.asarray(shown.astype(np.uint32)[None]), ALL)
        before = 0
        for _ in range(2):  # again, with what the first time gave
            found = other.gather(cuda.xp.asarray(everyone.astype(np.uint32)[None]), ALL, one)
            assert found.rows == everyone.size
            begins, arcs = found.begins.get()[0], other._buffer.get()
            at = begins - other._offset()
            for vertex in everyone:
                size = int(host.indptr[vertex + 1] - host.indptr[vertex])
                where = arcs[at[vertex] : at[vertex] + size]
                np.testing.assert_array_equal(where, host.indices[host.indptr[vertex] : host.indptr[vertex + 1]])
            reused = other.brought - other.copied - before
            assert reused == 4 * np.diff(host.indptr)[shown].sum()
            before += reused


def test_lists_that_were_brought_ahead_are_not_read_where_other_pages_are_by_now(
    cuda: Any, host: GraphArrays, late: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without a history pages move all the time.
    monkeypatch.setattr("longwall.storage.pages.access_heat.AccessHeat.observe", lambda self, spatial: 1e3 * spatial)
    rows = rows_of(host, 1)
    edges, found, places = expected_of(host, rows)[1], [], []
    with cuda.faults():
        paged = paged_of(cuda, host, "adaptive")
        pages: Any = paged.pages
        columns = cuda.xp.asarray(rows)
        extender = cuda.kernels.edge_extender(cuda.device, paged, 1, rows.shape[1], MEMORY)
        first = 0
        while first < rows.shape[1]:
            extender.count(columns, first, rows.shape[1])
            cut = extender.cut(first, 1 << 40)
            found.append(extender.new_edges(first, cut)[1].get())
            first = cut.last
            # What others read, and in every other round what comes next.
            vertices = np.flatnonzero(np.diff(host.indptr) > 0)[len(found) :: 7].astype(np.uint32)
            ends = (rows[0, first:] >> 32).astype(np.uint32) if len(found) % 2 else vertices
            pages.prepare(1, [RowReads(cuda.xp.asarray(np.repeat(ends, 50)), NeighbourRange.ALL)])
            places.append(pages.places)
    assert len(found) > 3
    assert len({id(one) for one in places}) > 3
    np.testing.assert_array_equal(np.concatenate(found), edges)


def test_work_may_end_while_lists_are_on_their_way(cuda: Any, host: GraphArrays, late: None) -> None:
    rows = rows_of(host, 1)
    with cuda.faults():
        paged = paged_of(cuda, host, "zero-copy")
        columns = cuda.xp.asarray(rows)
        for _ in range(3):
            extender = cuda.kernels.edge_extender(cuda.device, paged, 1, rows.shape[1], MEMORY)
            extender.count(columns, 0, rows.shape[1])
            del extender
            # Its memory is that of others now.
            ones = cuda.xp.full(MEMORY // 8, 7, np.int64)
            check(cuda, host, paged, rows, MEMORY, 20_000)
            assert int(ones.sum()) == 7 * ones.size


def test_an_extender_is_freed_when_it_is_of_no_use(cuda: Any, host: GraphArrays) -> None:
    gc.collect()
    gc.disable()
    try:
        with cuda.faults():
            paged = paged_of(cuda, host, "zero-copy")
            pool = cuda.device.memory._pool
            before = pool.used_bytes()
            extender = cuda.kernels.edge_extender(cuda.device, paged, 1, 100, MEMORY)
            assert pool.used_bytes() > before
            del extender
            assert pool.used_bytes() == before
    finally:
        gc.enable()


def test_both_rooms_are_inside_the_memory(cuda: Any, host: GraphArrays) -> None:
    rows = rows_of(host, 1)
    columns = cuda.xp.asarray(rows)
    with cuda.faults():
        paged = paged_of(cuda, host, "zero-copy")
        for memory in (MEMORY, 2 * MEMORY, 1 << 21):
            cuda.memory.release()
            cuda.memory.limit(cuda.device.memory._pool.total_bytes() + memory)
            try:
                extender = cuda.kernels.edge_extender(cuda.device, paged, 1, rows.shape[1], memory)
                assert extender.staging is not None
                assert len(extender.staging.capacities) == 2
                first = 0
                while first < rows.shape[1]:
                    extender.count(columns, first, rows.shape[1])
                    first = extender.cut(first, 1 << 40).last
                del extender
            finally:
                cuda.memory.limit(1 << 40)


def test_what_there_is_no_memory_for_is_not_brought_ahead(
    cuda: Any, host: GraphArrays, late: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it taken for brought: the next call brings it."""
    copy, refused = Staging._copy, []

    def short(self: Staging, *arguments: Any) -> None:
        if cuda.xp.cuda.get_current_stream() is cuda.device.copies and len(refused) % 2 == 0:
            refused.append(self)
            raise ShortOfMemory("device")
        refused.append(self)
        copy(self, *arguments)

    with cuda.faults():
        paged, rows = paged_of(cuda, host, "zero-copy"), rows_of(host, 1)
        columns, edges = cuda.xp.asarray(rows), expected_of(host, rows)[1]
        extender = cuda.kernels.edge_extender(cuda.device, paged, 1, rows.shape[1], MEMORY)
        extender.count(columns, 0, 10)
        monkeypatch.setattr(Staging, "_copy", short)
        found = []
        first = 0
        while first < rows.shape[1]:
            if not extender.is_counted(columns, first):
                try:
                    extender.count(columns, first, rows.shape[1])
                except ShortOfMemory:
                    continue
            cut = extender.cut(first, 9000)
            found.append(extender.new_edges(first, cut)[1].get())
            first = cut.last
    assert len(refused) > 6
    np.testing.assert_array_equal(np.concatenate(found), edges)


def test_rooms_as_they_are_outside_of_tests_are_not_tiny() -> None:
    assert LEAST_BY_TURNS >= 1 << 18
