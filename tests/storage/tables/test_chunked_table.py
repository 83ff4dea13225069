"""Tables in chunks: the same rows whatever the budget, nothing reserved or stored that is not there."""

import gc
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longwall.storage.errors import InputError, RunError
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.tables import chunk_pool
from longwall.storage.tables.chunk_pool import CHUNK_BYTES, ChunkPool
from longwall.storage.tables.chunk_stack import ChunkStack
from longwall.storage.tables.chunked_table import ChunkedTable
from longwall.storage.tables.embedding_table import EmbeddingTable

Rows = list[tuple[int, ...]]


@pytest.fixture(autouse=True, scope="module")
def only_rows_are_booked() -> Iterator[None]:
    """The budgets of these tests are a few chunks of a few rows: what a chunk itself takes is more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk_pool, "CHUNK_BYTES", 0)
        yield


class Place:
    """A pool with its budgets and folder."""

    def __init__(self, parent: Path, host: int, disk: int = 1 << 30):
        self.parent = parent
        self.host, self.disk = MemoryBudget("memory.host", host), MemoryBudget("memory.disk", disk)
        self.folder = SpillFolder(parent)
        self.pool = ChunkPool(self.host, self.disk, self.folder)

    def table(self, chunk_bytes: int = 1, levels: int = 2) -> ChunkedTable:
        return ChunkedTable(self.pool, levels, chunk_bytes)

    def files(self) -> list[str]:
        return sorted(path.name for path in self.parent.rglob("table-*"))

    def assert_empty(self) -> None:
        for thread in threading.enumerate():
            if thread.name.startswith("read-ahead"):  # it releases what was never asked for
                thread.join()
        assert self.host.used == self.disk.used == 0
        assert not self.files()
        self.folder.close()
        assert not self.parent.exists()


@pytest.fixture
def make_place(tmp_path) -> Iterator[Callable[..., Place]]:
    places: list[Place] = []

    def make(host: int, **options: int) -> Place:
        places.append(Place(tmp_path / "spill", host, **options))
        return places[-1]

    yield make
    for place in places:
        place.folder.close()


def part(first: int, rows: int) -> EmbeddingTable:
    """Rows (i // 3, i) from first on."""
    last = np.arange(first, first + rows, dtype=np.uint32)
    values, sizes = np.unique(last // 3, return_counts=True)
    return EmbeddingTable((values, last), (np.concatenate([[0], np.cumsum(sizes)]),))


def rows_of(tables: Iterator[EmbeddingTable]) -> Rows:
    return [tuple(row) for table in tables for row in table.columns().T.tolist()]


def expected(count: int) -> Rows:
    return [(i // 3, i) for i in range(count)]


def fill(table: ChunkedTable, parts: int, rows: int) -> None:
    for i in range(parts):
        table.append(part(i * rows, rows))


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(0, 40), max_size=12),
    host=st.sampled_from([1200, 1500, 2000, 3000, 5000, 1 << 20]),
    chunk_bytes=st.sampled_from([1, 200, 600]),
    consume=st.booleans(),
)
def test_rows_come_back_in_order_whatever_the_budget(make_place, tmp_path, sizes, host, chunk_bytes, consume):
    place = make_place(host)
    table = place.table(chunk_bytes)
    done = 0
    for size in sizes:
        table.append(part(done, size))
        done += size
    assert len(table) == done
    assert rows_of(table.stream()) == expected(done)
    assert rows_of(table.stream(consume=consume)) == expected(done)
    assert len(table) == (0 if consume else done)
    assert place.host.peak <= host
    if not consume:
        for number in range(table.num_chunks):
            with table.chunk(number) as chunk:
                assert rows_of(iter([chunk])) == rows_of(table.stream())[: len(chunk)] or number
    table.drop()
    place.assert_empty()


def test_nothing_is_spilled_while_there_is_room(make_place, tmp_path):
    place = make_place(1 << 20)
    table = place.table()
    fill(table, 20, 51)
    assert rows_of(table.stream()) == expected(1020)
    assert not (tmp_path / "spill").exists()
    assert place.host.used == table.nbytes
    assert table.stored == place.disk.used == 0


def test_the_oldest_chunks_are_spilled(make_place, tmp_path):
    place = make_place(3 * part(0, 51).nbytes)
    table = place.table()
    fill(table, 10, 51)
    assert [chunk.stored > 0 for chunk in table._chunks] == [True] * 7 + [False] * 3
    assert table.stored == place.disk.used > 0


def test_levels_need_their_values_and_the_offsets_from_the_lowest_on() -> None:
    sizes = (1, 10, 100, 1000, 10_000)  # values of three levels, offsets of two
    chunk: Any = SimpleNamespace(nbytes=sum(sizes), level_bytes=sizes)
    for levels, needed in (
        (None, 11_111), ([2], 100), ([1], 10_010), ([0], 11_001), ([0, 2, 0], 11_101), ([1, 2], 10_110),
    ):  # fmt: skip
        assert chunk_pool._needed(chunk, levels) == needed, levels


def test_small_tables_are_put_together(make_place, tmp_path):
    place = make_place(1 << 20)
    table = place.table(chunk_bytes=4000)
    fill(table, 1000, 2)
    assert table.num_chunks < 40
    assert rows_of(table.stream()) == expected(2000)
    assert place.host.used == table.nbytes


def test_chunks_that_are_read_next_are_not_spilled_first(make_place, tmp_path):
    size = part(0, 51).nbytes
    place = make_place(6 * size)
    source, target = place.table(), place.table()
    fill(source, 4, 51)
    for chunk in source.stream():
        target.append(chunk)
        target.append(chunk)
    assert source.stored == 0
    assert rows_of(target.stream())[:51] == expected(51)


def test_a_slice_does_not_keep_the_whole_alive(make_place, tmp_path):
    place = make_place(1 << 20)
    table = place.table()
    whole = part(0, 1000)
    table.append(whole.sliced(0, 3))
    with table.chunk(0) as chunk:
        assert not any(np.shares_memory(array, whole.values[1]) for array in chunk.values)


def test_only_the_wanted_columns_are_booked_and_read(make_place, tmp_path):
    place = make_place(6000)
    table = place.table()
    fill(table, 5, 300)
    place.pool.reserve(place.host.free, "everything").release()
    full = 0
    for _ in table.stream([1]):
        full = max(full, place.host.used)
    assert [chunk.values[0] for chunk in table.stream([1]) if chunk.values[0] is None]
    assert sorted(v for chunk in table.stream([0]) for v in chunk.column(0).tolist()) == [a for a, _ in expected(1500)]
    assert full <= 6000


def test_consumed_chunks_vanish_one_by_one(make_place, tmp_path):
    place = make_place(2 * part(0, 51).nbytes)
    table = place.table()
    fill(table, 8, 51)
    left = [len(place.files()) for _ in table.stream(consume=True)]
    assert left == sorted(left, reverse=True)
    assert left[-1] <= 1
    place.assert_empty()


def test_an_abandoned_reader_gives_everything_back(make_place, tmp_path):
    place = make_place(3 * part(0, 51).nbytes)
    table = place.table()
    fill(table, 8, 51)
    used = place.host.used
    reader = table.stream()
    next(reader)
    reader.close()
    table.drop()
    assert used
    place.assert_empty()


def test_readers_and_tables_may_be_collected_while_the_pool_is_locked(make_place, tmp_path):
    """The collector closes what it finds in whatever thread it runs, in the middle of anything."""
    place = make_place(3 * part(0, 51).nbytes)
    tables = [place.table() for _ in range(2)]
    for table in tables:
        fill(table, 8, 51)
    reader, pinned = tables[0].stream(), tables[1].chunk(0)
    next(reader)
    pinned.__enter__()

    def collect() -> None:
        with place.pool._changed:
            reader.close()
            pinned.__exit__(None, None, None)
            for table in tables:
                table.drop()

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    place.pool.reserve(0, "nothing").release()  # the next call does what was noted
    place.assert_empty()


def test_an_interrupt_while_a_chunk_is_awaited_gives_everything_back(make_place, tmp_path, monkeypatch):
    class Interrupted(Future):
        def result(self, timeout: float | None = None) -> object:
            self.__class__ = Future
            self.result(timeout)
            raise KeyboardInterrupt

    def submit(self: ThreadPoolExecutor, *task: object) -> Future:
        future = original(self, *task)
        future.__class__ = Interrupted
        return future

    original = ThreadPoolExecutor.submit
    place = make_place(3 * part(0, 51).nbytes)
    table = place.table()
    fill(table, 8, 51)
    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)
    with pytest.raises(KeyboardInterrupt) as interrupt:
        rows_of(table.stream())
    table.drop()
    place.assert_empty()
    assert interrupt  # its traceback keeps the reader's frame


def test_a_closed_table_says_so(make_place, tmp_path):
    place = make_place(1 << 20)
    table = place.table()
    fill(table, 4, 51)
    reader = table.stream()
    next(reader)
    table.drop()
    with pytest.raises(RunError, match="closed while it was being read"):
        list(reader)
    uses: list[Callable[[], object]] = [
        lambda: len(table),
        lambda: table.num_chunks,
        lambda: next(table.stream()),
        lambda: table.chunk(0).__enter__(),
        lambda: table.append(part(0, 3)),
    ]
    for use in uses:
        with pytest.raises(InputError, match="the table was closed"):
            use()
    place.assert_empty()


def test_a_spill_file_in_anothers_place_is_found(make_place, tmp_path):
    place = make_place(2 * part(0, 51).nbytes)
    table = place.table()
    fill(table, 6, 51)
    one, two = (place.folder.path / name for name in place.files()[:2])
    one.write_bytes(two.read_bytes())
    with pytest.raises(RunError, match=rf"{one.name}: the spilled chunk is damaged"):
        rows_of(table.stream())


def test_a_workers_spill_file_in_anothers_place_is_found(make_place, tmp_path):
    place = make_place(1)
    stack = ChunkStack(np, 0, 0, place.folder, place.disk, "stack")
    stack.push(part(0, 51))
    stack.push(part(51, 51))
    one, two = sorted(place.folder.path.iterdir())
    two.write_bytes(one.read_bytes())
    with pytest.raises(RunError, match=rf"{two.name}: the spilled chunk is damaged"):
        stack.pop()
    assert rows_of(iter([stack.pop()])) == expected(51)


def test_a_collected_table_leaves_nothing(make_place, tmp_path):
    place = make_place(3 * part(0, 51).nbytes)
    table = place.table()
    fill(table, 8, 51)
    assert place.files()
    del table
    gc.collect()
    place.assert_empty()


def test_a_table_that_is_dropped_while_it_is_read_goes_when_the_reader_is_done(make_place, tmp_path):
    place = make_place(1 << 20)
    table = place.table()
    fill(table, 1, 51)
    with table.chunk(0) as chunk:
        table.drop()
        assert rows_of(iter([chunk])) == expected(51)
        assert place.host.used
    place.assert_empty()


def test_threads_append_and_read_at_once(make_place, tmp_path):
    size = part(0, 51).nbytes
    place = make_place(16 * size)
    source, target = place.table(), place.table(chunk_bytes=3 * size)
    fill(source, 20, 51)
    faults: list[BaseException] = []

    def work() -> None:
        try:
            for chunk in source.stream():
                target.append(chunk)
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not faults
    assert sorted(rows_of(target.stream())) == sorted(expected(1020) * 4)
    assert place.host.peak <= 16 * size
    source.drop()
    target.drop()
    place.assert_empty()


def test_errors_come_in_order(make_place, tmp_path):
    place = make_place(2 * part(0, 51).nbytes)
    table = place.table()
    fill(table, 6, 51)
    damaged = place.parent / place.folder.path.name / place.files()[2]
    damaged.write_bytes(b"x" * damaged.stat().st_size)
    found: list[int] = []
    with pytest.raises(RunError, match="damaged or gone"):
        found.extend(len(chunk) for chunk in table.stream())
    assert found == [51, 51]
    table.drop()
    place.assert_empty()


def test_a_chunk_that_is_larger_than_the_budget_is_stored_but_cannot_be_read(make_place, tmp_path):
    place = make_place(100)
    table = place.table()
    fill(table, 1, 51)
    assert table.stored
    with pytest.raises(BudgetExceeded, match=r"memory\.host"):
        next(table.stream())
    table.drop()
    place.assert_empty()


def test_a_full_disk_budget_is_named_and_the_rows_stay(make_place, tmp_path):
    place = make_place(3 * part(0, 51).nbytes, disk=20_000)
    table = place.table()
    with pytest.raises(BudgetExceeded, match=r"memory\.disk"):
        fill(table, 100, 51)
    with table.chunk(table.num_chunks - 1) as chunk:
        assert rows_of(iter([chunk])) == expected(len(table))[-51:]
    table.drop()
    place.assert_empty()


def test_an_unwritable_folder_is_named(make_place, tmp_path):
    (tmp_path / "spill").write_text("a file")
    place = make_place(3 * part(0, 51).nbytes)
    table = place.table()
    with pytest.raises(RunError, match="choose another"):
        fill(table, 100, 51)
    table.drop()
    assert place.host.used == place.disk.used == 0


def test_two_runs_share_a_folder(make_place, tmp_path):
    places = [make_place(3 * part(0, 51).nbytes) for _ in range(2)]
    tables = [place.table() for place in places]
    for table in tables:
        fill(table, 8, 51)
    places[0].folder.close()
    assert rows_of(tables[1].stream()) == expected(408)
    places[1].folder.close()
    assert not list((tmp_path / "spill").iterdir())


@pytest.mark.slow
def test_what_chunks_themselves_take_is_reserved(make_place, monkeypatch):
    """A table far larger than the budget has very many chunks on disk, and each of them is known in memory."""
    monkeypatch.setattr(chunk_pool, "CHUNK_BYTES", CHUNK_BYTES)
    number = 200
    place = make_place(2 * number * CHUNK_BYTES)
    first, table = place.table(), place.table()
    fill(first, number, 300)  # what is imported and made once
    first.drop()
    tracemalloc.start()
    try:
        fill(table, number, 300)
        with place.pool.reserve(place.host.limit - number * CHUNK_BYTES, "what makes all of them leave"):
            gc.collect()
            snapshot = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    # Of this module's code: threads that other tests have left may allocate meanwhile.
    own = snapshot.filter_traces([tracemalloc.Filter(True, f"{Path(chunk_pool.__file__).parents[1]}/*")])
    used = sum(trace.size for trace in own.traces)
    assert place.host.used == number * CHUNK_BYTES
    assert number * 100 < used <= place.host.used
    table.drop()
    place.assert_empty()


def test_more_chunks_than_memory_can_know_are_refused(make_place, monkeypatch):
    monkeypatch.setattr(chunk_pool, "CHUNK_BYTES", CHUNK_BYTES)
    place = make_place(20 * CHUNK_BYTES)
    table = place.table()
    with pytest.raises(BudgetExceeded, match=r"no room for a chunk of an embedding table .640 B.*raise memory.host"):
        fill(table, 100, 300)
    table.drop()
    place.assert_empty()
