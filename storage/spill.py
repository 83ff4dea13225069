"""The spill folder of one run: made when something is spilled for the first time, gone when the run ends.

Runs may share `memory.spill`: each has a folder of its own inside, with a lock that the operating system drops
when the process dies. Whoever makes a folder removes those that nobody holds any more.
"""

import fcntl
import os
import shutil
import threading
import uuid
from pathlib import Path
from typing import TextIO

from longwall.storage.errors import RunError

_PREFIX = "longwall-"
_LOCK = "lock"


class SpillFolder:
    """Where one run spills; nothing exists on disk before `path` is asked for.

    Parameters
    ----------
    parent
        The folder of `memory.spill`; it is made where it does not exist.
    """

    def __init__(self, parent: Path):
        self._parent = parent
        self._path: Path | None = None
        self._held: TextIO | None = None
        self._made_parent = False
        self._mutex = threading.Lock()

    @property
    def path(self) -> Path:
        """The run's own folder.

        Raises
        ------
        RunError
            If it cannot be made.
        """
        with self._mutex:
            if self._path is None:
                try:
                    self._path = self._make()
                except OSError as error:
                    raise RunError(
                        f"{self._parent}: nothing can be spilled there ({error.strerror or error}): "
                        "choose another memory.spill, or raise memory.host"
                    ) from error
            return self._path

    def _make(self) -> Path:
        self._made_parent = not self._parent.exists()
        self._parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(self._parent)
        # The lock is held before the folder has the name that others look for.
        hidden = self._parent / f".{_PREFIX}{uuid.uuid4().hex[:12]}"
        hidden.mkdir()
        self._held = (hidden / _LOCK).open("w")
        fcntl.flock(self._held, fcntl.LOCK_EX)
        path = self._parent / hidden.name.removeprefix(".")
        hidden.rename(path)
        return path

    def close(self) -> None:
        """Remove the folder and what is in it; more than once does no harm."""
        with self._mutex:
            if self._path is None or self._held is None:
                return
            shutil.rmtree(self._path, ignore_errors=True)
            self._held.close()
            self._path = self._held = None
            if self._made_parent:
                try:
                    self._parent.rmdir()
                except OSError:
                    return  # another run spills there

    def __enter__(self) -> "SpillFolder":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _remove_abandoned(parent: Path) -> None:
    """Remove the folders of runs that were killed."""
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            with (folder / _LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # held by a living run, or going away by itself


def sync_folder(path: Path) -> None:
    """Make the names in a folder reach the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
