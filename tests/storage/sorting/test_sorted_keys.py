"""Distinct keys in order, in bounded memory, against NumPy: from one run in memory to merges of merges on disk."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from budgets import make_budgets
from hypothesis import given, settings
from hypothesis import strategies as st

from longwall.kernels.interface.sorting import KeyLayout
from longwall.storage.errors import RunError
from longwall.storage.memory.reservations import BudgetExceeded
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.sorting.key_sorter import ScratchSorter
from longwall.storage.sorting.scratch_arrays import Scratch
from longwall.storage.sorting.sorted_keys import KeyBlock, SortedKeys, sort_distinct

Keys = npt.NDArray[np.uint64]


def cut_up(keys: Keys, cut: int) -> Iterator[Keys]:
    return (keys[start : start + cut] for start in range(0, len(keys), cut))


def _copied(payload: npt.NDArray[np.int64] | None) -> npt.NDArray[np.int64]:
    assert payload is not None
    return payload.copy()


def collect(made: SortedKeys, memory: int) -> list[int]:
    return [key for block in made.blocks(memory) for key in block.keys.tolist()]


key_lists = st.lists(st.integers(0, 40) | st.integers(0, 2**64 - 1), max_size=400)


@settings(deadline=None)
@given(key_lists, st.sampled_from([200, 500, 2_000, 20_000, 1 << 22]), st.integers(1, 50))
def test_keys_come_out_sorted_and_once(
    tmp_path_factory: pytest.TempPathFactory, keys: list[int], budget: int, cut: int
) -> None:
    given_keys = np.array(keys, np.uint64)
    budgets = make_budgets(budget + 64 * len(keys))  # runs of a few keys keep each key in memory as a checkpoint
    folder = tmp_path_factory.mktemp("sort")
    with SpillFolder(folder) as spill, Scratch(budgets.at(spill)) as scratch:
        work = scratch.work
        made = sort_distinct(cut_up(given_keys, cut), scratch, min(work // 2, budget))
        assert len(made) == len(set(keys))
        for memory in (100, 3_000):
            assert collect(made, memory) == sorted(set(keys))
        made.drop()
        assert budgets.host.used == scratch.work <= work
    assert budgets.host.used == budgets.disk.used == 0
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_large_input_spills_and_merges_in_several_passes(tmp_path: Path) -> None:
    keys = np.random.Generator(np.random.Philox(1)).integers(0, 2**40, 200_000).astype(np.uint64)
    budgets = make_budgets(400_000)
    with SpillFolder(tmp_path) as spill, Scratch(budgets.at(spill)) as scratch:
        scratch.make_room(350_000)
        made = sort_distinct(cut_up(keys, 70_000), scratch, 20_000)
        assert scratch.spilled > 3 * keys.nbytes - 3 * 400_000
        found = np.concatenate([block.keys for block in made.blocks(50_000)])
    assert (found == np.unique(keys)).all()
    assert budgets.host.peak <= budgets.host.limit


def test_what_fits_stays_in_memory_and_is_not_copied(tmp_path: Path) -> None:
    keys = np.arange(10_000, dtype=np.uint64)[::-1].copy()
    with SpillFolder(tmp_path / "spill") as spill, Scratch(make_budgets(1 << 24).at(spill)) as scratch:
        made = sort_distinct(iter([keys]), scratch, 10_000)
        assert scratch.spilled == 0
        assert not (tmp_path / "spill").exists()
        made.drop()
        with ScratchSorter(scratch, KeyLayout(reduce="distinct"), 40 * 10_000) as sorter:
            sorter.add(keys)
            sorter.finish()
            [held] = sorter._runs._columns
            segment = held.read(0, 10_000)
            columns = sorter.take()
        assert columns is not None
        assert np.shares_memory(columns[0].read(0, 10_000), segment)
        assert columns[0].read(0, 10_000).tolist() == list(range(10_000))


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["random", "equal"])
@pytest.mark.parametrize("reduce", ["distinct", "none"])
def test_windows_may_have_far_less_memory_than_chunks_had(tmp_path: Path, shape: str, reduce: str) -> None:
    """The work space shrinks while a graph's arrays are made: then more lies between two checkpoints than fits."""
    keys = np.random.Generator(np.random.Philox(2)).integers(0, 2**60, 60_000).astype(np.uint64)
    if shape == "equal":
        keys[:] = 7
    layout, order = KeyLayout(payload=reduce == "none", reduce=reduce), np.arange(len(keys))
    budgets = make_budgets(4_000_000)
    with SpillFolder(tmp_path) as spill, Scratch(budgets.at(spill)) as scratch:
        with ScratchSorter(scratch, layout, 400_000) as sorter:
            for part in np.array_split(order, 7):
                sorter.add(keys[part], part if layout.payload else None)
            sorter.finish()
            assert sorter.num_runs > 2
            assert sorter._runs.spacing > 150
            assert scratch.lend(scratch.work - 3_000).size > 2_000_000
            blocks = [KeyBlock(block.keys.copy(), block.payload) for block in sorter.blocks(2_000)]
        found = np.concatenate([block.keys for block in blocks])
        assert max(len(block.keys) for block in blocks) <= 50
    assert (found == (np.unique(keys) if reduce == "distinct" else np.sort(keys))).all()


def test_a_full_disk_and_a_small_disk_budget_are_error_messages(tmp_path: Path) -> None:
    keys = np.arange(10_000, dtype=np.uint64)
    with (
        SpillFolder(tmp_path) as spill,
        Scratch(make_budgets(20_000, disk=100).at(spill)) as scratch,
        pytest.raises(BudgetExceeded, match=r"raise memory\.disk"),
    ):
        sort_distinct(iter([keys]), scratch, 2000)
    (tmp_path / "file").write_text("")
    with (
        SpillFolder(tmp_path / "file") as spill,
        Scratch(make_budgets(20_000).at(spill)) as scratch,
        pytest.raises(RunError, match=r"choose another memory\.spill, or raise memory\.host"),
    ):
        sort_distinct(iter([keys]), scratch, 2000)


def test_a_failed_write_is_an_error_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.pwrite", full)
    budgets = make_budgets(20_000)
    with (
        pytest.raises(RunError, match=r"cannot be written \(No space left on device\): free space"),
        SpillFolder(tmp_path) as spill,
        Scratch(budgets.at(spill)) as scratch,
    ):
        sort_distinct(iter([np.arange(10_000, dtype=np.uint64)]), scratch, 2000)
    assert budgets.host.used == budgets.disk.used == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("when", ["added", "consumed"])
def test_an_unexpected_error_of_a_damaged_run_names_the_file(tmp_path: Path, when: str) -> None:
    """What is made of damaged keys may fail anywhere: the user must learn of the damage."""
    budgets = make_budgets(60_000)
    with SpillFolder(tmp_path) as spill, Scratch(budgets.at(spill)) as scratch:
        with (  # noqa: PT012
            pytest.raises(RunError, match="holds something else than what was written"),
            ScratchSorter(scratch, KeyLayout(), 20_000) as sorter,
        ):
            sorter.add(np.arange(10_000, dtype=np.uint64))
            scratch.settle()
            [path] = spill.path.iterdir()
            whole = bytearray(path.read_bytes())
            whole[5] ^= 4
            path.write_bytes(whole)
            if when == "consumed":
                next(blocks := sorter.blocks(10_000))
                assert blocks
            raise IndexError("made of damaged numbers")
        assert budgets.host.used == scratch.work
        assert list(spill.path.iterdir()) == []


@pytest.mark.parametrize(("budget", "merged"), [(1 << 24, False), (1 << 20, True), (200_000, True)])
def test_what_threads_make_of_blocks_comes_in_order(tmp_path: Path, budget: int, merged: bool) -> None:
    keys = np.random.Generator(np.random.Philox(2)).integers(0, 2**40, 100_000).astype(np.uint64)
    budgets = make_budgets(budget)
    with SpillFolder(tmp_path) as spill, Scratch(budgets.at(spill)) as scratch:
        with ScratchSorter(scratch, KeyLayout(payload=True), scratch.work) as sorter:
            sorter.add(keys, np.arange(len(keys)))
            sorter.finish()
            assert (sorter.num_runs > 1) == merged
            made = list(sorter.each_block(lambda block: (block.keys.copy(), _copied(block.payload)), scratch.work // 2))
        order = np.argsort(keys, kind="stable")
        assert (np.concatenate([block for block, _ in made]) == keys[order]).all()
        assert (np.concatenate([payload for _, payload in made]) == order).all()
        assert budgets.host.used == scratch.work


def test_an_error_of_what_is_made_of_a_block_comes_out(tmp_path: Path) -> None:
    keys = np.random.Generator(np.random.Philox(3)).integers(0, 2**40, 100_000).astype(np.uint64)
    budgets = make_budgets(1 << 20)

    def make(block: object) -> int:
        raise LookupError(type(block).__name__)

    with SpillFolder(tmp_path) as spill, Scratch(budgets.at(spill)) as scratch:
        with ScratchSorter(scratch, KeyLayout(), scratch.work) as sorter:
            sorter.add(keys)
            with pytest.raises(LookupError, match="SortedBlock"):
                list(sorter.each_block(make))
        assert budgets.host.used == scratch.work
