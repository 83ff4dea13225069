"""Spill folders: each run has its own, others' are left alone while they live, and nothing stays behind."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from longwall.storage.durability import sync_folder
from longwall.storage.errors import InputError, RunError
from longwall.storage.memory import spill_folder
from longwall.storage.memory.spill_folder import SpillFolder

ABANDON = """
import os, signal, sys
from pathlib import Path
from longwall.storage.memory.spill_folder import SpillFolder
folder = SpillFolder(Path(sys.argv[1]))
(folder.path / "deep").mkdir()
(folder.path / "deep" / "chunk").write_bytes(bytes(1000))
print(folder.path.name, flush=True)
if sys.argv[2] == "dies":
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdin.read()
"""
# Killed just before the n-th call that changes the disk, while a folder is made, filled and closed.
BREAK = """
import itertools, os, signal, sys
from pathlib import Path
from longwall.storage.memory.spill_folder import SpillFolder
parent, last = Path(sys.argv[1]), int(sys.argv[2])
counter = itertools.count(1)
def heard(event, arguments):
    changes = event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree", "fcntl.flock")
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    if (changes or writes) and next(counter) == last:
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(heard)
with SpillFolder(parent) as folder:
    (folder.path / "deep").mkdir()
    (folder.path / "deep" / "chunk").write_bytes(bytes(1000))
    (folder.path / "zzz").write_bytes(bytes(1000))
"""
# Fails when another process touches its folder.
SHARE = """
import sys
from pathlib import Path
from longwall.storage.memory.spill_folder import SpillFolder
for turn in range(100):
    with SpillFolder(Path(sys.argv[1])) as folder:
        (folder.path / "chunk").write_text(str(turn))
        assert {path.name for path in folder.path.iterdir()} <= {"chunk", "lock"}
        assert (folder.path / "chunk").read_text() == str(turn)
"""


def start(script: str, *words: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, words)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fill(folder: SpillFolder) -> Path:
    (folder.path / "deep").mkdir()
    (folder.path / "deep" / "chunk").write_bytes(b"rows")
    return folder.path


# At one moment after another a signal handler raises an exception, which lives until the folder is closed.
INTERRUPT = """
import fcntl, os, signal, sys
from pathlib import Path
from longwall.storage.memory.spill_folder import SpillFolder
class Late(Exception):
    pass
def raise_late(number, frame):
    raise Late
def is_locked(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
parent, closes = Path(sys.argv[1]), sys.argv[2] == "closes"
signal.signal(signal.SIGALRM, raise_late)
struck = 0
for microseconds in [*range(1, 400), *range(1, 400)]:
    folder = SpillFolder(parent)
    if closes:
        folder.path
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, microseconds * 1e-6)
            folder.close() if closes else folder.path
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except (Late, OSError):  # shutil.rmtree may close a descriptor twice then
        struck += 1
        assert not is_locked(parent), f"after {microseconds} microseconds the parent stays locked"
        folder.close()
    else:
        folder.close()
    assert not any(parent.iterdir())
print(struck)
"""


def test_nothing_is_made_before_something_is_spilled(tmp_path):
    with SpillFolder(tmp_path / "spill"):
        assert names(tmp_path) == []
    assert names(tmp_path) == []


def test_a_folder_is_the_runs_own_and_is_made_once(tmp_path):
    with SpillFolder(tmp_path) as one, SpillFolder(tmp_path) as two:
        assert one.path == one.path
        assert one.path != two.path
        assert one.path.is_dir()
        assert one.path.parent == tmp_path


def test_threads_that_ask_at_once_get_the_same_folder(tmp_path):
    with SpillFolder(tmp_path) as folder:
        start, paths = threading.Barrier(8), []

        def ask() -> None:
            start.wait()
            paths.append(folder.path)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(paths)) == 1
        assert names(tmp_path) == [paths[0].name]


def test_closing_removes_everything_even_the_parent_that_was_made(tmp_path):
    with SpillFolder(tmp_path / "spill") as folder:
        fill(folder)
    assert names(tmp_path) == []
    folder.close()


def test_all_folders_that_were_made_go_and_no_other(tmp_path):
    (tmp_path / "there").mkdir()
    with SpillFolder(tmp_path / "there" / "new" / "x" / "y") as folder:
        fill(folder)
        (tmp_path / "there" / "kept.txt").write_text("")
    assert names(tmp_path / "there") == ["kept.txt"]
    with SpillFolder(tmp_path / "new" / "x" / "y") as folder:
        fill(folder)
        (tmp_path / "new" / "kept.txt").write_text("")
    assert names(tmp_path / "new") == ["kept.txt"]


def test_folders_around_the_parent_may_vanish_as_it_is_made(tmp_path, monkeypatch):
    """Another run removes the folders around it meanwhile; a folder that can never be made is refused."""
    real, refusals = Path.mkdir, [FileNotFoundError(2, "No such file or directory")] * 3

    def late(self, *arguments, **options):
        if refusals:
            raise refusals.pop()
        real(self, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", late)
    with SpillFolder(tmp_path / "new" / "spill") as folder:
        assert folder.path.is_dir()
    assert names(tmp_path) == []
    refusals += [FileNotFoundError(2, "No such file or directory")] * 100
    with pytest.raises(RunError, match="nothing can be spilled there"), SpillFolder(tmp_path / "spill") as folder:
        assert folder.path


def test_a_parent_that_was_there_stays(tmp_path):
    (tmp_path / "spill").mkdir()
    with SpillFolder(tmp_path / "spill") as folder:
        fill(folder)
    assert names(tmp_path) == ["spill"]
    assert names(tmp_path / "spill") == []


def test_a_parent_that_holds_something_else_stays(tmp_path):
    with SpillFolder(tmp_path / "spill") as folder:
        fill(folder)
        (tmp_path / "spill" / "mine.txt").write_text("of the user")
    assert names(tmp_path / "spill") == ["mine.txt"]


def test_an_exception_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), SpillFolder(tmp_path / "spill") as folder:
        fill(folder).rename(1 / 0)
    assert names(tmp_path) == []


def test_a_living_run_keeps_its_folder(tmp_path):
    process = start(ABANDON, tmp_path, "lives")
    other = process.stdout.readline().strip()
    with SpillFolder(tmp_path) as folder:
        fill(folder)
        assert "deep" in names(tmp_path / other)
    assert names(tmp_path) == [other]
    process.communicate()


def test_a_killed_runs_folder_is_removed_by_the_next(tmp_path):
    process = start(ABANDON, tmp_path, "dies")
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 1
    with SpillFolder(tmp_path) as folder:
        mine = folder.path
        assert names(tmp_path) == [mine.name]
    assert names(tmp_path) == []


@pytest.mark.slow
def test_a_run_killed_at_any_moment_leaves_nothing_for_long(tmp_path):
    """Whatever a run was doing to its folder, the next one to spill clears it away."""
    left = {}
    for moment in range(1, 40):
        parent = tmp_path / str(moment)
        process = start(BREAK, parent, moment)
        process.communicate()
        with SpillFolder(parent) as folder:
            fill(folder)
        if parent.exists() and names(parent):
            left[moment] = [str(path.relative_to(parent)) for path in parent.rglob("*")]
        if process.returncode == 0:
            break
    assert process.returncode == 0, "the process was killed at every moment: raise the range"
    assert moment > 8
    assert left == {}


@pytest.mark.parametrize("where", ["makes", "closes"])
def test_an_interrupt_at_any_moment_leaves_no_lock(tmp_path, where):
    script = [sys.executable, "-c", INTERRUPT, str(tmp_path), where]
    done = subprocess.run(script, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10


def test_a_run_that_spills_nothing_clears_what_killed_runs_left(tmp_path):
    start(ABANDON, tmp_path / "spill", "dies").communicate()
    assert len(names(tmp_path / "spill")) == 1
    SpillFolder(tmp_path / "spill").close()
    assert names(tmp_path / "spill") == []


def test_what_is_not_a_spill_folder_is_left_alone(tmp_path):
    (tmp_path / "longwall-notes.txt").write_text("of the user")
    (tmp_path / "longwall-data").mkdir()
    (tmp_path / ".hidden").mkdir()
    with SpillFolder(tmp_path) as folder:
        fill(folder)
    assert names(tmp_path) == [".hidden", "longwall-data", "longwall-notes.txt"]


def test_the_parent_may_vanish_just_before_the_folder_is_made(tmp_path, monkeypatch):
    """The last run that spilled removes the parent that it made, while this one is about to use it."""
    parent = tmp_path / "spill"
    parent.mkdir()
    make, taken = Path.mkdir, []

    def mkdir(self: Path, *arguments, **options) -> None:
        make(self, *arguments, **options)
        if self == parent and not taken:
            taken.append(self)
            shutil.rmtree(parent)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with SpillFolder(parent) as folder:
        fill(folder)
        assert folder.path.is_dir()
    assert taken


def test_a_parent_that_is_back_when_it_is_looked_at_is_used(tmp_path, monkeypatch):
    real, refusals = Path.mkdir, [FileExistsError(17, "File exists")]

    def late(self, *arguments, **options):
        if refusals:
            real(self, *arguments, **options)
            raise refusals.pop()
        real(self, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", late)
    with SpillFolder(tmp_path / "spill") as folder:
        assert folder.path.is_dir()


def test_many_processes_share_a_folder_that_comes_and_goes(tmp_path):
    parent = tmp_path / "spill"
    processes = [start(SHARE, parent) for _ in range(4)]
    for process in processes:
        process.communicate()
    assert [process.returncode for process in processes] == [0] * 4
    assert not parent.exists() or names(parent) == []


def test_a_parent_that_is_a_file_is_refused_with_a_message(tmp_path):
    (tmp_path / "spill").write_text("")
    with pytest.raises(RunError) as refusal, SpillFolder(tmp_path / "spill") as folder:
        assert folder.path
    assert str(refusal.value).startswith(f"{tmp_path / 'spill'}: nothing can be spilled there (")
    assert str(refusal.value).endswith("choose another memory.spill, or raise memory.host")


@pytest.mark.parametrize("place", ["/proc/spill", "/dev/null/spill"])
def test_a_place_that_takes_no_files_is_refused_before_anything_is_spilled(place):
    with pytest.raises(InputError) as refusal, SpillFolder(Path(place)) as folder:
        folder.check()
    assert str(refusal.value).startswith(f"{place}: nothing can be spilled there (")
    assert str(refusal.value).endswith("choose another memory.spill, or raise memory.host")


def test_a_file_system_that_tells_no_size_may_take_files(tmp_path, monkeypatch):
    class Unknown:
        f_blocks = 0

    with SpillFolder(tmp_path / "spill") as folder:
        folder.check()
        assert not (tmp_path / "spill").exists()
        monkeypatch.setattr("os.statvfs", lambda path: Unknown)
        folder.check()
        assert not (tmp_path / "spill").exists()
        assert folder.path.is_dir()


def test_a_parent_that_goes_while_it_is_made_is_made_again(tmp_path, monkeypatch):
    real, refusals = Path.mkdir, [FileExistsError(17, "File exists")]

    def late(self, *arguments, **options):
        if refusals:
            raise refusals.pop()
        real(self, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", late)
    with SpillFolder(tmp_path / "spill") as folder:
        assert folder.path.is_dir()
    assert names(tmp_path) == []


def test_who_chose_the_folder_says_what_to_do(tmp_path):
    (tmp_path / "spill").write_text("")
    with (
        pytest.raises(RunError, match=r"\): choose another --spill$"),
        SpillFolder(tmp_path / "spill", advice="choose another --spill") as folder,
    ):
        assert folder.path


def test_a_parent_that_cannot_be_written_is_refused_with_a_message(tmp_path, monkeypatch):
    def refuse(self, *arguments, **options):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(RunError, match=r"Permission denied.*memory\.spill"), SpillFolder(tmp_path / "spill") as folder:
        assert folder.path


@pytest.mark.parametrize("locked", [None, "longwall-spill"])
def test_a_parent_without_locks_is_refused_with_a_message(tmp_path, monkeypatch, locked):
    """Some file systems of a network have none."""
    hold = spill_folder.hold

    def refuse(folder, *, wait=False):
        if locked is None or folder.name.startswith(locked):
            raise OSError(errno.ENOLCK, "No locks available")
        return hold(folder, wait=wait)

    monkeypatch.setattr(spill_folder, "hold", refuse)
    (tmp_path / "spill").mkdir()
    spill = SpillFolder(tmp_path / "spill")
    with pytest.raises(RunError, match=r"spill: nothing can be spilled there \(No locks available\): choose another"):
        spill.path  # noqa: B018
    spill.close()
    assert not list((tmp_path / "spill").iterdir())


def test_a_folder_goes_where_its_parent_can_no_longer_be_locked(tmp_path, monkeypatch):
    spill = SpillFolder(tmp_path)
    (spill.path / "file").touch()

    def refuse(*_, **__):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(spill_folder, "hold", refuse)
    spill.close()
    assert not list(tmp_path.iterdir())


def test_syncing_a_folder_leaves_no_descriptor_open(tmp_path):
    sync_folder(tmp_path)
    assert not any(path.resolve() == tmp_path for path in Path("/proc/self/fd").iterdir())


def test_a_forked_child_has_no_lock_and_leaves_the_folder(tmp_path):
    """If the child held the locks of its parent, both would wait for them as long as the child lives."""
    folder = SpillFolder(tmp_path / "spill")
    (folder.path / "chunk").write_text("of the parent")
    lock = spill_folder.hold(tmp_path)
    waiting, go_on = os.pipe()
    begins, begun = os.pipe()
    if not (child := os.fork()):
        code = 1
        try:
            os.close(go_on)
            os.write(begun, b"x")
            os.read(waiting, 1)
            spill_folder.release(spill_folder.hold(tmp_path))
            spill_folder.release(lock)
            folder.close()
            own = folder.path
            folder.close()
            code = 0 if not own.exists() else 2
        finally:
            os._exit(code)
    os.close(waiting)
    try:
        os.read(begins, 1)
        spill_folder.release(lock)
        spill_folder.release(spill_folder.hold(tmp_path))
    finally:
        for descriptor in (go_on, begins, begun):
            os.close(descriptor)
        ended = os.waitpid(child, 0)[1]
    assert os.waitstatus_to_exitcode(ended) == 0
    assert (folder.path / "chunk").read_text() == "of the parent"
    folder.close()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_is_released_once(tmp_path):
    lock = spill_folder.hold(tmp_path)
    spill_folder.release(lock)
    other = os.open(tmp_path, os.O_RDONLY)
    try:
        assert other == lock
        spill_folder.release(lock)
        os.fstat(other)
    finally:
        os.close(other)
