"""Scratch arrays: what is damaged on the disk is noticed, and the work space is accounted for."""

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest
from budgets import make_budgets
from cases import each_case

from longwall.storage.errors import InputError, RunError
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.sorting.scratch_arrays import Scratch, ScratchArray


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


@each_case("at", [0, 262_143, 262_144, 999_999])
@each_case("end", ["drop", "gather", "leave", "fail"])
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


def test_an_array_that_was_dropped_is_let_go(tmp_path: Path) -> None:
    with SpillFolder(tmp_path) as spill, Scratch(make_budgets(10_000_000).at(spill)) as scratch:
        array, _ = spilled(scratch)
        kept = weakref.ref(array)
        array.drop()
        del array
        gc.collect()
        assert kept() is None


def test_a_file_that_cannot_be_made_takes_nothing_of_the_disk(tmp_path: Path) -> None:
    budgets = make_budgets(1 << 16)
    (tmp_path / "file").touch()
    spill = SpillFolder(tmp_path / "file")
    with pytest.raises(RunError, match="nothing can be spilled there"), Scratch(budgets.at(spill), "x", 1 << 12) as one:
        one.array(np.uint64).append(np.arange(1 << 14, dtype=np.uint64))
    assert budgets.host.used == budgets.disk.used == 0


def test_what_is_lent_of_the_work_space_does_not_shrink(tmp_path: Path) -> None:
    budgets = make_budgets(100_000)
    with SpillFolder(tmp_path) as spill, Scratch(budgets.at(spill)) as scratch:
        whole = scratch.work
        part = scratch.lend(whole // 2)
        assert (part.size, scratch.work, budgets.host.used) == (whole // 2, whole - whole // 2, whole)
        scratch.make_room(budgets.host.free + 10_000)
        assert (part.size, scratch.work) == (whole // 2, whole - whole // 2 - 10_000)
        scratch.take_back(part)
        scratch.take_back(part)
        assert scratch.work == budgets.host.used == whole - 10_000
        assert scratch.lend(10 * whole).size == whole - 10_000
