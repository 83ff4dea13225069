"""External sort and reduction of keys against NumPy, from one chunk in memory to merges of merges on disk."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from budgets import make_budgets
from cases import each_case
from engines import make_engine
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longwall.kernels.interface.engine import Engine
from longwall.kernels.interface.sorting import KeyLayout
from longwall.storage.errors import RunError
from longwall.storage.memory.reservations import BudgetExceeded
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.sorting.key_sorter import KeySorter, Merge
from longwall.storage.sorting.runs import SortedRuns
from longwall.storage.sorting.scratch_arrays import Scratch

MERGES: list[Merge] = ["multi-merge", "naive", "split", "host"]
LAYOUTS = [
    KeyLayout(words, payload, reduce)
    for words in (1, 2)
    for payload, reduce in ((False, "none"), (True, "none"), (False, "distinct"), (False, "count"), (True, "sum"))
]
DISK = 1 << 30
TIGHT, DEVICE = 150_000, 300_000
"""Budgets of the host and the device in which a few thousand keys are several runs, that do not all stay in memory."""


class Table(NamedTuple):
    keys: Any
    """uint64[n] or uint64[2, n]"""
    payload: Any


@pytest.fixture(scope="module")
def engine(engine_kind: str) -> Engine:
    return make_engine(engine_kind, threads=2)


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of the device merge few keys, so that there are many tiles."""
    from longwall.kernels.cuda.sorting import sorters as sorting

    monkeypatch.setattr(sorting, "TILE", 64)
    monkeypatch.setattr(sorting, "STRETCH", 64)


def make_keys(shape: str, words: int, count: int) -> Any:
    generator = np.random.Generator(np.random.Philox(7))
    if shape == "random":
        low = generator.integers(0, 2**64, count, dtype=np.uint64)
    elif shape == "skewed":
        low = (generator.zipf(1.3, count) % 1000).astype(np.uint64)
    elif shape == "equal":
        low = np.full(count, 2**63 + 5, np.uint64)
    else:
        low = np.sort(generator.integers(0, 2**64, count, dtype=np.uint64))
        low = low if shape == "sorted" else low[::-1].copy()
    if words == 1:
        return low
    return np.stack([low >> np.uint64(61), low * np.uint64(0x9E3779B97F4A7C15) if shape == "random" else low])


def expected(given: Table, layout: KeyLayout) -> Table:
    """The same by NumPy."""
    rows = given.keys.reshape(layout.words, -1)
    order = np.lexsort(rows[::-1])
    rows = rows[:, order]
    if layout.reduce == "none":
        return Table(rows, None if given.payload is None else given.payload[order])
    new = np.ones(rows.shape[1], bool)
    new[1:] = (rows[:, 1:] != rows[:, :-1]).any(axis=0)
    if layout.reduce == "distinct":
        return Table(rows[:, new], None)
    sums = np.zeros(int(new.sum()), np.int64)
    np.add.at(sums, np.cumsum(new) - 1, 1 if given.payload is None else given.payload[order])
    return Table(rows[:, new], sums)


def run(sorter: KeySorter, given: Table, *, cut: int, move: Any = np.asarray) -> tuple[Table, list[int]]:
    """Add keys part by part and collect the blocks. Return the lengths of these, too."""
    count = given.keys.shape[-1]
    for start in range(0, count, cut):
        part = slice(start, start + cut)
        payload = None if given.payload is None else move(given.payload[part])
        keys = given.keys[..., part].copy()
        sorter.add(move(keys), payload)
        keys[...] = 0  # it may change afterwards
    words = 1 if given.keys.ndim == 1 else 2
    keys, payloads, lengths = [np.empty((words, 0), np.uint64)], [np.empty(0, np.int64)], []
    for block in sorter.blocks():
        keys.append(block.keys.reshape(words, -1).copy())
        lengths.append(keys[-1].shape[1])
        if block.payload is not None:
            payloads.append(block.payload.copy())
    return Table(np.concatenate(keys, axis=1), np.concatenate(payloads)), lengths


def check(found: Table, given: Table, layout: KeyLayout) -> None:
    wanted = expected(given, layout)
    np.testing.assert_array_equal(found.keys, wanted.keys)
    if wanted.payload is not None:
        np.testing.assert_array_equal(found.payload, wanted.payload)


def make_table(keys: Any, layout: KeyLayout) -> Table:
    count = keys.shape[-1]
    return Table(keys, np.arange(count, dtype=np.int64) if layout.payload else None)


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@each_case("shape", ["random", "sorted", "reversed", "equal", "skewed"])
def test_keys_beyond_every_budget_come_out_in_order(
    engine: Engine, tmp_path: Path, small_tiles: None, layout: KeyLayout, shape: str
) -> None:
    given = make_table(make_keys(shape, layout.words, 12_000), layout)
    budgets = make_budgets(TIGHT)
    with SpillFolder(tmp_path / "spill") as spill:
        with KeySorter(budgets.at(spill, engine=engine), layout, device=DEVICE) as sorter:
            found, _ = run(sorter, given, cut=2_000)
            if layout.reduce == "none":
                assert sorter.spilled > 0
        check(found, given, layout)
        assert budgets.host.peak <= TIGHT
        assert budgets.host.used == budgets.disk.used == 0
        assert list(spill.path.iterdir()) == []


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@each_case("merge", MERGES)
def test_all_ways_to_merge_give_the_same(
    engine: Engine, tmp_path: Path, small_tiles: None, layout: KeyLayout, merge: Merge
) -> None:
    for shape in ("random", "skewed", "equal"):
        given = make_table(make_keys(shape, layout.words, 3_000), layout)
        with (
            SpillFolder(tmp_path / "spill") as spill,
            KeySorter(make_budgets(200_000).at(spill, engine=engine), layout, device=DEVICE, merge=merge) as sorter,
        ):
            check(run(sorter, given, cut=700)[0], given, layout)


def test_keys_may_be_given_in_the_arrays_of_the_engine(engine: Engine, tmp_path: Path) -> None:
    layout = KeyLayout(1, True, "sum")
    given = make_table(make_keys("skewed", 1, 3_000), layout)
    with (
        engine.faults(),
        SpillFolder(tmp_path / "spill") as spill,
        KeySorter(make_budgets(TIGHT).at(spill, engine=engine), layout, device=DEVICE) as sorter,
    ):
        check(run(sorter, given, cut=500, move=engine.xp.asarray)[0], given, layout)


def test_memory_may_be_prepared(engine: Engine, tmp_path: Path) -> None:
    layout, limit = KeyLayout(reduce="count"), 3_000_000
    given = make_table(make_keys("random", 1, 20_000), layout)
    budgets = make_budgets(limit)
    with (
        SpillFolder(tmp_path / "spill") as spill,
        KeySorter(budgets.at(spill, engine=engine), layout, device=1_000_000) as sorter,
    ):
        sorter.reserve(20_000)
        before = budgets.host.used
        found, _ = run(sorter, given, cut=3_000)
        assert before <= budgets.host.peak <= limit
        assert sorter.spilled == 0
    check(found, given, layout)
    assert budgets.host.used == 0


@pytest.mark.parametrize("layout", [KeyLayout(1, True), KeyLayout(2)], ids=str)
def test_keys_of_another_layout_are_refused(engine: Engine, tmp_path: Path, layout: KeyLayout) -> None:
    with (
        SpillFolder(tmp_path / "spill") as spill,
        KeySorter(make_budgets(TIGHT).at(spill, engine=engine), layout, device=DEVICE) as sorter,
        pytest.raises(TypeError, match="takes uint64 keys"),
    ):
        sorter.add(np.zeros((layout.words, 3), np.int64) if layout.words == 2 else np.zeros(3, np.uint64))
    with pytest.raises(ValueError, match="no such layout"):
        KeyLayout(1, False, "sum")


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_one_key_and_none(engine: Engine, tmp_path: Path, layout: KeyLayout) -> None:
    for count in (0, 1, 2):
        given = make_table(make_keys("equal", layout.words, count), layout)
        with (
            SpillFolder(tmp_path / "spill") as spill,
            KeySorter(make_budgets(TIGHT).at(spill, engine=engine), layout, device=DEVICE) as sorter,
        ):
            check(run(sorter, given, cut=1)[0], given, layout)
        assert not (tmp_path / "spill").exists()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(LAYOUTS),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20) | st.integers(0, 2**64 - 1)), max_size=300),
    st.integers(1, 90),
    st.sampled_from([6_000, 16_000, 40_000, 1 << 22]),
    st.sampled_from(MERGES),
)
def test_any_keys_in_any_budget(
    engine: Engine,
    tmp_path_factory: pytest.TempPathFactory,
    layout: KeyLayout,
    keys: list[tuple[int, int]],
    cut: int,
    host: int,
    merge: Merge,
) -> None:
    both = np.array(keys, np.uint64).reshape(-1, 2).T.copy()
    given = make_table(both if layout.words == 2 else both[1], layout)
    # Runs of a few keys hold each of them as a checkpoint.
    budgets = make_budgets(host + 200 * len(keys))
    with SpillFolder(tmp_path_factory.mktemp("sort") / "spill") as spill:
        with KeySorter(budgets.at(spill, engine=engine), layout, device=80_000, merge=merge) as sorter:
            found, lengths = run(sorter, given, cut=cut)
        assert all(lengths)
        check(found, given, layout)
    assert budgets.host.used == budgets.disk.used == 0


@each_case("capacity", [8, 30, 1000])
@each_case("shape", ["random", "equal", "skewed"])
def test_windows_hold_what_they_should(tmp_path: Path, shape: str, capacity: int) -> None:
    """No window has more keys than it may have, and none has keys that come after those of the next."""
    layout, spacing = KeyLayout(), 1 if capacity < 1000 else 20
    keys = make_keys(shape, 1, 400)
    with SpillFolder(tmp_path / "spill") as spill, Scratch(make_budgets(1 << 20).at(spill)) as scratch:
        runs = SortedRuns(scratch, layout, spacing)
        for part in (keys[:100], keys[100:101], keys[101:] if capacity > 8 else keys[101:200]):
            runs.add([[np.sort(part)]])
        some = runs.runs if capacity > 16 else runs.runs[:2]
        total = sum(run.stop - run.start for run in some)
        for windows in (list(runs.windows(some, capacity, 1 << 16)), list(runs.sampled_windows(some, capacity))):
            assert all(0 < sum(stop - start for start, stop in window) <= capacity for window in windows)
            contents = [np.concatenate([runs.read(part)[0] for part in window]) for window in windows]
            assert sum(map(len, contents)) == total
            assert all(a.max() <= b.min() for a, b in pairwise(contents))


def test_more_runs_than_can_be_merged_at_once(engine: Engine, tmp_path: Path) -> None:
    layout = KeyLayout(1, True, "sum")
    given = make_table(make_keys("random", 1, 20_000), layout)
    with (
        SpillFolder(tmp_path / "spill") as spill,
        KeySorter(make_budgets(100_000).at(spill, engine=engine), layout, device=150_000) as sorter,
    ):
        found, _ = run(sorter, given, cut=5_000)
        assert sorter.spilled > 2 * 16 * 20_000 - 100_000
    check(found, given, layout)


def add_all(sorter: KeySorter, given: Table) -> None:
    sorter.add(given.keys, given.payload)


def test_what_is_closed_early_leaves_nothing(engine: Engine, tmp_path: Path) -> None:
    layout, given = KeyLayout(1), make_table(make_keys("random", 1, 20_000), KeyLayout(1))
    budgets = make_budgets(TIGHT)
    with SpillFolder(tmp_path / "spill") as spill:
        for blocks in (None, 0, 2):
            sorter = KeySorter(budgets.at(spill, engine=engine), layout, device=DEVICE)
            add_all(sorter, given)
            if blocks is not None:
                iterator = sorter.blocks()
                assert len(list(islice(iterator, blocks))) == blocks
                iterator.close()
            sorter.close()
            sorter.close()
            assert budgets.host.used == budgets.disk.used == 0
            assert list(spill.path.iterdir()) == []


@pytest.mark.parametrize("layout", [KeyLayout(1), KeyLayout(2, True, "sum")], ids=str)
def test_a_damaged_run_is_reported(engine: Engine, tmp_path: Path, small_tiles: None, layout: KeyLayout) -> None:
    given = make_table(make_keys("random", layout.words, 20_000), layout)
    with (
        SpillFolder(tmp_path / "spill") as spill,
        KeySorter(make_budgets(TIGHT).at(spill, engine=engine), layout, device=DEVICE) as sorter,
    ):
        add_all(sorter, given)
        sorter._scratch.settle()
        generator = np.random.Generator(np.random.Philox(3))
        for path in spill.path.iterdir():
            whole = np.fromfile(path, np.uint8)
            assert whole.size
            generator.integers(0, 256, whole.size // 2, dtype=np.uint8).tofile(path)
            with path.open("ab") as file:
                file.write(whole[whole.size // 2 :].tobytes())
        with pytest.raises(RunError, match="holds something else than what was written: check the disk") as caught:
            list(sorter.blocks())
        assert "\n" not in str(caught.value)


def test_a_full_disk_is_reported(engine: Engine, tmp_path: Path) -> None:
    given = make_table(make_keys("random", 1, 60_000), KeyLayout(1))
    budgets = make_budgets(TIGHT, disk=10_000)
    with (
        SpillFolder(tmp_path / "spill") as spill,
        pytest.raises(
            BudgetExceeded, match=r"no room for sorting keys .* memory.disk = 9.77 KiB has .* left: raise memory.disk"
        ),
        KeySorter(budgets.at(spill, engine=engine), KeyLayout(1), device=DEVICE) as sorter,
    ):
        add_all(sorter, given)
    assert budgets.host.used == budgets.disk.used == 0


def test_a_disk_that_cannot_be_written_is_reported(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    given = make_table(make_keys("random", 1, 60_000), KeyLayout(1))
    budgets = make_budgets(TIGHT)
    with (
        SpillFolder(tmp_path / "spill") as spill,
        pytest.raises(RunError, match=r"scratch files cannot be written .No space left on device.: free space there"),
        KeySorter(budgets.at(spill, engine=engine), KeyLayout(1), device=DEVICE) as sorter,
    ):
        add_all(sorter, given)
    assert budgets.host.used == budgets.disk.used == 0


@pytest.mark.parametrize("apart", [1, 5_000])
def test_sums_that_do_not_fit_are_refused(engine: Engine, tmp_path: Path, apart: int) -> None:
    layout = KeyLayout(1, True, "sum")
    keys = np.arange(20_000, dtype=np.uint64)
    payload = np.ones(20_000, np.int64)
    keys[apart], payload[[0, apart]] = 0, 2**62
    with SpillFolder(tmp_path / "spill") as spill:
        for more, message in ((-1, None), (0, "a count does not fit 64-bit integers")):
            payload[0] = 2**62 + more
            with KeySorter(make_budgets(TIGHT).at(spill, engine=engine), layout, device=DEVICE) as sorter:
                if message is None:
                    check(run(sorter, Table(keys, payload), cut=5_000)[0], Table(keys, payload), layout)
                    continue
                with pytest.raises(RunError, match=message):
                    run(sorter, Table(keys, payload), cut=5_000)


def test_a_budget_too_small_for_anything_is_refused(engine: Engine, tmp_path: Path) -> None:
    if engine.name == "cpu":
        pytest.skip("the host's memory is the only one")
    budgets = make_budgets(TIGHT)
    with SpillFolder(tmp_path / "spill") as spill, pytest.raises(RunError, match="sorting keys needs at least"):
        KeySorter(budgets.at(spill, engine=engine), KeyLayout(1), device=1000)
    assert budgets.host.used == 0


@pytest.mark.gpu
@pytest.mark.parametrize(
    "layout",
    [KeyLayout(), KeyLayout(2, reduce="distinct"), KeyLayout(reduce="count"), KeyLayout(2, True, "sum")],
    ids=str,
)
def test_the_device_budget_is_kept(cuda: Engine, tmp_path: Path, small_tiles: None, layout: KeyLayout) -> None:
    given = make_table(make_keys("random", layout.words, 120_000), layout)
    budget = 2_000_000  # so much that a radix sort's fixed tables do not matter
    cuda.memory.release()  # the block for small arrays, which a limit as low as this would free
    opened = cuda.memory.peak()
    assert opened is not None
    with SpillFolder(tmp_path / "spill") as spill:
        for merge in MERGES[:3]:
            with KeySorter(
                make_budgets(10_000_000).at(spill, engine=cuda), layout, device=budget, merge=merge
            ) as sorter:
                assert sorter.chunk_capacity < 120_000
                check(run(sorter, given, cut=120_000)[0], given, layout)
    peak = cuda.memory.peak()
    assert peak is not None
    assert peak.allocator - opened.allocator <= budget


@pytest.mark.gpu
@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout.reduce == "none"], ids=str)
def test_the_workspace_of_a_radix_sort_is_in_the_budget(cuda: Engine, layout: KeyLayout) -> None:
    budget, host = 16 << 20, 1 << 30
    cuda.memory.limit(budget)
    chunks = cuda.kernels.chunk_sorter(cuda.device, layout, host, budget)
    try:
        given = make_table(make_keys("random", layout.words, 3 * chunks.capacity), layout)
        columns = [*given.keys.reshape(layout.words, -1)]
        if given.payload is not None:
            columns.append(given.payload.view(np.uint64))
        works = []
        for start in range(0, columns[0].size, chunks.capacity):
            chunks.put(0, [column[start : start + chunks.capacity] for column in columns])
            works.append(chunks.sort(chunks.capacity))
        for work in works:
            words = work.result()[: layout.words]
            np.testing.assert_array_equal(np.lexsort(words[::-1]), np.arange(chunks.capacity))
    finally:
        chunks.close()


@pytest.mark.gpu
def test_locked_memory_of_a_lost_device_goes_quietly(cuda: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest would make an error of an exception that cannot be caught."""
    from longwall.kernels.cuda.runtime.pinned_buffers import locked_column

    def refuse(address: int) -> None:
        hidden(address)
        raise runtime.CUDARuntimeError(999)

    runtime, column = cuda.xp.cuda.runtime, locked_column(cuda.xp, 1000)
    hidden = runtime.hostUnregister
    assert column.base.locked
    monkeypatch.setattr(runtime, "hostUnregister", refuse)
    del column


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["random", "skewed"])
def test_the_benchmark_checks_and_measures_every_method(engine_kind: str, tmp_path: Path, shape: str) -> None:
    options = ["--keys", "50000", "--engine", engine_kind, "--device", "1MiB", "--host", "1MiB", "--shape", shape]
    command = [
        sys.executable,
        "-m",
        "benchmarks.suites.sort",
        *options,
        "--spill",
        str(tmp_path / "spill"),
        "--rivals",
        *MERGES,
    ]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = {line["method"]: line for line in map(json.loads, done.stdout.splitlines()) if "method" in line}
    assert set(MERGES) <= set(found)
    assert all(found[merge]["runs"] > 1 for merge in MERGES)
    assert all(("of_bound" in found[merge]) == (engine_kind == "cuda") for merge in MERGES)
