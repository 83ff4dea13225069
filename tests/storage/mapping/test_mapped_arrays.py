"""Arrays in files hold what is written to them, have room on the disk or are refused, and leave nothing behind."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from budgets import make_budgets

from longwall.storage.errors import RunError
from longwall.storage.mapping import mapped_arrays, unmapping
from longwall.storage.mapping.mapped_arrays import MappedArrays, place_in
from longwall.storage.mapping.unmapping import Unmapper, resident_file_bytes
from longwall.storage.memory.reservations import BudgetExceeded
from longwall.storage.memory.resources import Resources
from longwall.storage.memory.spill_folder import SpillFolder

_INT = np.dtype(np.int64)


@pytest.fixture
def resources(tmp_path: Path) -> Iterator[Resources]:
    with SpillFolder(tmp_path / "spill") as spill:
        yield make_budgets(disk=1 << 27).at(spill)


@pytest.mark.parametrize("named", [False, True])
def test_arrays_hold_what_is_written(resources: Resources, monkeypatch: pytest.MonkeyPatch, named: bool) -> None:
    if named:  # a file system without nameless files

        def refuse(path: str, flags: int, *more: int) -> int:
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(errno.EOPNOTSUPP, "not supported")
            return opened(path, flags, *more)

        opened = os.open
        monkeypatch.setattr(mapped_arrays.os, "open", refuse)
    files = MappedArrays(resources)
    arrays = [files.array(size, _INT) for size in (1000, 0, 5)]
    assert [len(array) for array in arrays] == [1000, 0, 5]
    assert not any(array.any() for array in arrays)
    arrays[0][:] = np.arange(1000)
    arrays[2][:] = 7
    assert (arrays[0].sum(), arrays[2].sum()) == (499500, 35)
    assert files.nbytes == resources.disk.used == 8 * 1005
    assert not list(resources.spill.path.iterdir())
    place = place_in(files.files, arrays[0][10:20])
    assert place is not None
    assert (place.offset, place.nbytes) == (80, 80)
    assert np.fromfile(place.path, np.int64, count=10, offset=80).tolist() == list(range(10, 20))
    assert place_in(files.files, np.arange(5)) is None
    assert place_in(files.files, arrays[1]) is None


def test_the_disk_has_room_or_there_is_a_message(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    files = MappedArrays(resources)
    with pytest.raises(BudgetExceeded, match=r"no room for a file with the graph .*: raise memory\.disk"):
        files.array(1 << 27, _INT)

    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(mapped_arrays, "_allocate", full)
    folder = str(resources.spill.path.parent)
    with pytest.raises(RunError, match=r"a file with the graph cannot be made \(No space left on device\)") as refused:
        files.array(1000, _INT)
    assert str(refused.value).startswith(folder)
    assert "\n" not in str(refused.value)
    assert resources.disk.used == files.nbytes == 0


def _opened(resources: Resources) -> list[str]:
    """Return the files that this process has open in the spill folder."""
    links = (str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink())
    return [link for link in links if link.startswith(f"{resources.spill.path}/")]


def test_no_thread_and_no_file_outlives_the_arrays(resources: Resources) -> None:
    files = MappedArrays(resources)
    array = files.array(1000, _INT)
    assert any(thread.name == "unmap" for thread in threading.enumerate())
    assert len(_opened(resources)) == 2  # the mapping has one of its own
    del files
    assert array.sum() == 0
    del array
    gc.collect()
    assert _opened(resources) == []
    for _ in range(100):
        if not any(thread.name == "unmap" for thread in threading.enumerate()):
            break
        time.sleep(0.02)
    else:
        pytest.fail("the thread goes on")


def test_pages_are_unmapped_beyond_the_budget(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written is still there when its pages come back."""
    monkeypatch.setattr(unmapping, "_SECONDS", 3600.0)
    files, size = MappedArrays(resources), 1 << 26
    before = resident_file_bytes()
    array = files.array(size // 8, _INT)
    array[:] = np.arange(size // 8)
    assert resident_file_bytes() - before > size // 2
    allowed = size
    unmapper = Unmapper(lambda: allowed)
    unmapper._before = before
    for file in files.files:
        unmapper.watch(file.unmap)
    assert not unmapper.look()
    allowed = 1 << 25
    assert unmapper.look()
    assert resident_file_bytes() - before < 1 << 24
    assert not unmapper.look()
    assert int(array.sum()) == (size // 8) * (size // 8 - 1) // 2


_CHILD = """
import os, signal, sys
import numpy as np
from pathlib import Path
from longwall.storage.mapping.mapped_arrays import MappedArrays, place_in
from longwall.storage.memory.resources import open_resources

resources = open_resources(host=1 << 24, disk=1 << 30, spill=Path(sys.argv[1]))
array = MappedArrays(resources).array(1 << 20, np.dtype(np.int64))
array[:] = 1
print(sum(len(files) for _, _, files in os.walk(sys.argv[1])), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_no_file(tmp_path: Path) -> None:
    spill = tmp_path / "spill"
    done = subprocess.run([sys.executable, "-c", _CHILD, spill], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (-9, "0"), done.stderr
    assert [path.name for path in spill.rglob("*") if path.is_file()] == []
