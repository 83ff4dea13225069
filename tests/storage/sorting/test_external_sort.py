"""Sorting in bounded memory against NumPy, from one run in memory to merges of merges on disk."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from budgets import make_budgets
from hypothesis import given, settings
from hypothesis import strategies as st

from longwall.storage.errors import InputError, RunError
from longwall.storage.memory.reservations import BudgetExceeded
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.sorting.external_sort import KeyBlock, SortedKeys, external_sort
from longwall.storage.sorting.scratch_arrays import Scratch, ScratchArray

DISK = 1 << 30


def clash(key: int, one: int, other: int) -> InputError:
    return InputError(f"{key}: {one} and {other}")


def collect(made: SortedKeys, memory: int) -> tuple[list[int], list[int] | None]:
    keys: list[int] = []
    labels: list[int] = []
    for block in made.blocks(memory):
        keys += block.keys.tolist()
        labels += block.labels.tolist() if block.labels is not None else []
    return keys, labels if made.labelled else None


key_lists = st.lists(st.integers(0, 40) | st.integers(0, 2**64 - 1), max_size=400)


@settings(deadline=None)
@given(key_lists, st.sampled_from([200, 500, 2_000, 20_000, 1 << 22]), st.booleans(), st.integers(1, 50))
def test_keys_come_out_sorted_and_once(
    tmp_path_factory: pytest.TempPathFactory, keys: list[int], budget: int, labelled: bool, cut: int
) -> None:
    given_keys = np.array(keys, np.uint64)
    given_labels = (given_keys % np.uint64(7)).astype(np.int32)

    def blocks() -> Iterator[KeyBlock]:
        for start in range(0, len(keys), cut):
            part = slice(start, start + cut)
            yield KeyBlock(given_keys[part], given_labels[part] if labelled else None)

    budgets = make_budgets(budget + 64 * len(keys))  # runs of a few keys keep each key in memory as a fence
    folder = tmp_path_factory.mktemp("sort")
    with SpillFolder(folder) as spill, Scratch(budgets.at(spill)) as scratch:
        memory = min(scratch.work, budget)
        made = external_sort(blocks(), scratch, memory, labelled=labelled, clash=clash)
        expected = np.unique(given_keys).tolist()
        labels = [key % 7 for key in expected] if labelled else None
        assert collect(made, memory) == (expected, labels)
        made.to_one_run(memory)
        assert len(made) == len(expected)
        assert collect(made, memory) == (expected, labels)
        made.drop()
    assert budgets.host.used == budgets.disk.used == 0
    assert list(folder.iterdir()) == []


def test_large_input_spills_and_merges_in_several_passes(tmp_path: Path) -> None:
    keys = np.random.Generator(np.random.Philox(1)).integers(0, 2**40, 200_000).astype(np.uint64)
    budgets = make_budgets(400_000)
    with SpillFolder(tmp_path) as spill, Scratch(budgets.at(spill)) as scratch:
        made = external_sort(iter([KeyBlock(keys, None)]), scratch, 100_000)
        assert made._widest(20_000) < len(made._runs)
        out = np.concatenate([block.keys for block in made.blocks(20_000)])
        assert scratch.spilled > 2 * keys.nbytes - 400_000
    assert (out == np.unique(keys)).all()
    assert budgets.host.peak <= budgets.host.limit


def test_everything_that_fits_stays_in_memory(tmp_path: Path) -> None:
    keys = np.arange(10_000, dtype=np.uint64)[::-1].copy()
    with SpillFolder(tmp_path / "spill") as spill, Scratch(make_budgets(1 << 24).at(spill)) as scratch:
        made = external_sort(iter([KeyBlock(keys, None)]), scratch, 10_000)
        made.to_one_run(10_000)
        assert scratch.spilled == 0
        assert not (tmp_path / "spill").exists()


@pytest.mark.parametrize("cut", [1, 1000])
def test_a_key_with_two_labels_is_refused_wherever_they_stand(tmp_path: Path, cut: int) -> None:
    keys = np.arange(2000, dtype=np.uint64) % np.uint64(1999)
    labels = np.zeros(2000, np.int32)
    labels[-1] = 5
    blocks = (KeyBlock(keys[at : at + cut], labels[at : at + cut]) for at in range(0, 2000, cut))
    with (
        SpillFolder(tmp_path) as spill,
        Scratch(make_budgets(200_000).at(spill)) as scratch,
        pytest.raises(InputError, match=r"^0: 0 and 5$"),
    ):
        external_sort(blocks, scratch, 2000, labelled=True, clash=clash).to_one_run(2000)


def test_a_full_disk_and_a_small_disk_budget_are_error_messages(tmp_path: Path) -> None:
    def blocks() -> Iterator[KeyBlock]:
        yield KeyBlock(np.arange(10_000, dtype=np.uint64), None)

    with (
        SpillFolder(tmp_path) as spill,
        Scratch(make_budgets(20_000, disk=100).at(spill)) as scratch,
        pytest.raises(BudgetExceeded, match=r"raise memory\.disk"),
    ):
        external_sort(blocks(), scratch, 2000)
    (tmp_path / "file").write_text("")
    with (
        SpillFolder(tmp_path / "file") as spill,
        Scratch(make_budgets(20_000).at(spill)) as scratch,
        pytest.raises(RunError, match=r"choose another memory\.spill, or raise memory\.host"),
    ):
        external_sort(blocks(), scratch, 2000)


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
        external_sort(iter([KeyBlock(np.arange(10_000, dtype=np.uint64), None)]), scratch, 2000)
    assert budgets.host.used == budgets.disk.used == 0
    assert list(tmp_path.iterdir()) == []


def spilled(scratch: Scratch) -> tuple[ScratchArray, Path]:
    """An array in a file that holds 1 MB in pieces, and the file."""
    array = scratch.array(np.uint64)
    for start in range(0, 125_000, 5000):
        array.append(np.arange(start, start + 5000, dtype=np.uint64))
    array.spill()
    scratch.settle()
    return array, scratch.path(array._name)


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 4]))


@pytest.mark.parametrize("at", [0, 262_143, 262_144, 999_999])
@pytest.mark.parametrize("end", ["drop", "gather", "leave", "fail"])
def test_a_flipped_bit_in_a_scratch_file_is_noticed(tmp_path: Path, at: int, end: str) -> None:
    budgets = make_budgets(10_000_000)
    with SpillFolder(tmp_path, advice="do something") as spill:
        with pytest.raises(RunError) as caught, Scratch(budgets.at(spill)) as scratch:  # noqa: PT012
            array, path = spilled(scratch)
            flip(path, at)
            if end == "fail":
                raise IndexError("made of damaged numbers")
            if end != "leave":
                getattr(array, end)()
                pytest.fail("not noticed")
        assert str(caught.value) == (
            f"{path}: the scratch file holds something else than what was written: "
            "check the disk, then try again, or do something"
        )
        assert list(path.parent.iterdir()) == []
    assert budgets.host.used == budgets.disk.used == 0


@pytest.mark.parametrize("error", [InputError("line 7"), KeyboardInterrupt(), RunError("the disk is full")])
def test_an_error_that_says_what_is_wrong_does_not_wait_for_a_check(tmp_path: Path, error: BaseException) -> None:
    with (  # noqa: PT012
        SpillFolder(tmp_path) as spill,
        pytest.raises(type(error)) as caught,
        Scratch(make_budgets(10_000_000).at(spill)) as scratch,
    ):
        flip(spilled(scratch)[1], 0)
        raise error
    assert caught.value is error


def test_an_undamaged_scratch_file_passes(tmp_path: Path) -> None:
    with SpillFolder(tmp_path) as spill, Scratch(make_budgets(10_000_000).at(spill)) as scratch:
        array, _ = spilled(scratch)
        array.append(np.arange(7, dtype=np.uint64))
        array.spill()
        array.check()
        array.gather()
        assert array.read(124_999, 125_002).tolist() == [124_999, 0, 1]
        spilled(scratch)[0].drop()
        spilled(scratch)
