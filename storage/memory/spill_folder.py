"""The spill folder of one run: made when something is spilled for the first time, gone when the run ends.

Runs may share `memory.spill`: each has a folder of its own inside and holds a lock on it, which the operating system
drops when the process dies. Making or closing a folder removes those that no process holds any more. Folders
come and go under a lock on their parent.

A signal handler may raise an exception after any call. As long as the exception lives, its traceback keeps every
generator that it left, and so the lock that a generator holds; a cleanup would wait for this lock. So functions return
the descriptor of a lock, a `try` follows at once, and its `finally` calls `os.close` itself: a signal could interrupt a
function of Python before it closes anything.
"""

import fcntl
import os
import re
import shutil
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR

from longwall.storage.durability import add_temporary, discard_temporary
from longwall.storage.errors import InputError, RunError
from longwall.storage.system.paths import missing_folders, remove_empty, user_path
from longwall.storage.system.signals import undisturbed

_MOST_LOST = 8  # times in a row
_NAME = re.compile(r"longwall-spill-[0-9a-f]{12}")

_locks: dict[int, os.stat_result] = {}  # descriptors that hold, held or wait for a lock; their folders
_opening = threading.RLock()  # held from the opening of a descriptor to its entry: no fork between


class SpillFolder:
    """Where one run spills; nothing exists on disk before `path` is asked for.

    Parameters
    ----------
    parent
        The folder of `memory.spill`. If it or a folder around it does not exist, it is made, and removed at the end.
    advice
        Advice for the user if nothing can be spilled; it names the options.

    Attributes
    ----------
    advice
        See above.
    parent
        The folder that it is made in, absolute.
    """

    def __init__(self, parent: Path, *, advice: str = "choose another memory.spill, or raise memory.host"):
        self.advice = advice
        self.parent = user_path(parent).absolute()
        self._path: Path | None = None
        self._lock: int | None = None
        self._made: set[Path] = set()
        self._mutex = threading.Lock()
        self._process = os.getpid()

    @property
    def path(self) -> Path:
        """The run's own folder.

        Raises
        ------
        RunError
            If it cannot be made.
        """
        if self._process != os.getpid():  # a forked child leaves its parent's folder alone
            self._path, self._lock, self._made = None, None, set()
            self._mutex, self._process = threading.Lock(), os.getpid()
        with self._mutex:
            if self._path is None or self._lock is None:
                try:
                    self._path = self._make()
                except OSError as error:
                    raise RunError(
                        f"{self.parent}: nothing can be spilled there ({error.strerror or error}): {self.advice}"
                    ) from error
            return self._path

    def check(self) -> None:
        """Refuse a folder where nothing can ever be spilled; nothing stays behind.

        Raises
        ------
        InputError
            If it lies below a file, or in a place such as /proc.
        """
        parents = (self.parent.absolute(), *self.parent.absolute().parents)
        there = next(above for above in parents if os.access(above, os.F_OK))
        # File systems of a network may not report their size either: only trying says whether they take files.
        if not there.is_dir() or os.statvfs(there).f_blocks == 0:
            try:
                self.path  # noqa: B018
            except RunError as error:
                raise InputError(str(error)) from error
            self.close()

    def _make(self) -> Path:
        lost = 0
        while True:
            self._made.update(missing_folders(self.parent))
            try:
                self.parent.mkdir(parents=True, exist_ok=True)
            except FileNotFoundError:  # another run removed a folder around it, which it had made
                lost += 1
                if lost == _MOST_LOST:
                    raise
                continue
            except FileExistsError:
                # Looked at once: another run may have removed the folder meanwhile, and made it again.
                try:
                    folder = S_ISDIR(self.parent.stat().st_mode)
                except FileNotFoundError:
                    folder = not self.parent.is_symlink()
                if not folder:
                    raise
                continue
            parent_lock = _lock(self.parent)
            if parent_lock is not None:
                try:
                    return self._make_in_parent()
                finally:
                    os.close(parent_lock)

    def _make_in_parent(self) -> Path:
        _remove_abandoned(self.parent)
        path = self._path = self.parent / f"longwall-spill-{uuid.uuid4().hex[:12]}"  # `close` removes it from now on
        path.mkdir()
        try:
            self._lock = hold(path)
        except OSError:
            path.rmdir()
            raise
        add_temporary(path)
        return path

    def close(self) -> None:
        """Remove the folder and what is in it, and what killed runs left beside it; twice does no harm."""
        if self._process != os.getpid():  # the folder is the parent's
            return
        with self._mutex:
            try:
                parent_lock = _lock(self.parent)
            except OSError:  # without the lock, other folders in the parent stay
                parent_lock = None
            try:
                if self._path is not None or parent_lock is not None:
                    self._remove(locked=parent_lock is not None)
            finally:
                if parent_lock is not None:
                    os.close(parent_lock)

    @undisturbed()
    def _remove(self, *, locked: bool) -> None:
        """Remove the folder and, if the parent is locked, abandoned folders beside it and empty folders above it."""
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)
            discard_temporary(self._path)
            self._path = None
        if self._lock is not None:
            lock, self._lock = self._lock, None
            release(lock)
        if locked:
            _remove_abandoned(self.parent)
            remove_empty(sorted(self._made, reverse=True))  # the longest path first

    def __enter__(self) -> "SpillFolder":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _lock(folder: Path) -> int | None:
    """Lock a folder and return the descriptor that holds the lock, or None if there is no such folder any more.

    Raises
    ------
    OSError
        It is there and cannot be locked.
    """
    try:
        lock = hold(folder, wait=True)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        if _is_still(folder, lock):
            return lock
    except BaseException:
        os.close(lock)
        raise
    os.close(lock)
    return None


def _is_still(folder: Path, lock: int) -> bool:
    """Whether a folder is the one that is locked; another run may have removed it while this one waited."""
    try:
        return os.path.samestat(os.fstat(lock), folder.stat())
    except FileNotFoundError:
        return False


def hold(folder: Path, *, wait: bool = False) -> int:
    """Lock a folder and return the descriptor that holds the lock until it is closed.

    A forked child does not hold it, or both processes would wait for the lock as long as the child lives.

    Raises
    ------
    OSError
        There is no such folder, its file system has no locks, or, if not `wait`, another process holds it.
    """
    with _opening:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        _locks[descriptor] = os.fstat(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def release(lock: int) -> None:
    """Close the descriptor of a lock in the process that took it; a forked child has closed its copy."""
    if _locks.pop(lock, None) is not None:
        os.close(lock)


def _forked() -> None:
    global _opening
    _opening = threading.RLock()
    while _locks:
        descriptor, folder = _locks.popitem()
        with suppress(OSError):  # it was closed before
            if os.path.samestat(os.fstat(descriptor), folder):
                os.close(descriptor)


os.register_at_fork(
    before=lambda: _opening.acquire(),  # by its name, since a forked child has a new one
    after_in_parent=lambda: _opening.release(),
    after_in_child=_forked,
)


def abandoned_folders(parent: Path) -> list[Path]:
    """Return the spill folders in a folder of `memory.spill` that no process holds: those of killed runs."""
    lock = _lock(parent)
    try:
        return [] if lock is None else list(_abandoned(parent))
    finally:
        if lock is not None:
            os.close(lock)


def remove_abandoned(parent: Path) -> None:
    """Remove the spill folders that no process holds."""
    lock = _lock(parent)
    try:
        if lock is not None:
            _remove_abandoned(parent)
    finally:
        if lock is not None:
            os.close(lock)


def _remove_abandoned(parent: Path) -> None:
    """Remove the spill folders that no process holds, while the lock of the parent is held."""
    for folder in _abandoned(parent):
        shutil.rmtree(folder, ignore_errors=True)


def _abandoned(parent: Path) -> Iterator[Path]:
    """Yield the spill folders that no process holds, each of which is held meanwhile."""
    for folder in sorted(parent.iterdir()):
        if _NAME.fullmatch(folder.name):
            try:
                lock = hold(folder)
            except OSError:
                continue  # a run holds it
            try:
                yield folder
            finally:
                release(lock)
