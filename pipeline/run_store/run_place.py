"""The place of a run, a folder or a URL: created, locked, taken by another run, and removed.

The files in it are in a :class:`longwall.pipeline.run_store.store.RunStore`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from longwall.pipeline.run_store.local_store import LocalStore
from longwall.pipeline.run_store.manifest import status_of
from longwall.pipeline.run_store.object_store import ObjectStore
from longwall.pipeline.run_store.run_names import CHECKPOINT, CONFIG, MANIFEST, PUBLISHED, RESULTS, busy, is_own
from longwall.storage.durability import sync_folder
from longwall.storage.errors import InputError
from longwall.storage.memory.spill_folder import SpillFolder, hold, release
from longwall.storage.remote.urls import is_url
from longwall.storage.system.paths import missing_folders, remove_empty, user_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from longwall.pipeline.run_store.store import RunStore

T = TypeVar("T")

_FLEETING = frozenset({"memory"})
"""File systems whose files are gone when the process ends."""


class RunPlace(ABC):
    """The place of one run, which need not exist; it has no locks unless a subclass says so.

    Parameters
    ----------
    address
        Its absolute path, or its URL.

    Attributes
    ----------
    store
        The files in it.
    """

    store: RunStore

    @abstractmethod
    def __init__(self, address: str): ...

    @property
    def name(self) -> str:
        """The last part of its path or URL."""
        return str(self.store.where).rpartition("/")[2]

    def sibling(self, name: str) -> Self:
        """Return the place of the run with that name beside this one."""
        return type(self)(str(self.store.where).removesuffix(self.name) + name)

    def free_name(self) -> str:
        """Return the first of ``name-2``, ``name-3``, ... that does not exist beside this place."""
        number = 2
        while self.sibling(f"{self.name}-{number}").exists():
            number += 1
        return f"{self.name}-{number}"

    @abstractmethod
    def exists(self) -> bool:
        """Return whether there is anything."""

    @abstractmethod
    def make(self) -> bool:
        """Make the place unless it exists; return whether it did not."""

    @abstractmethod
    def work_in(self, spill: Path) -> None:
        """Make the folder that this process works in, until `close`; at a URL it is in the folder `spill`."""

    @abstractmethod
    def hold(self) -> None:
        """Keep other processes away until `close`, where the place has locks; more than once does no harm.

        Raises
        ------
        InputError
            If another process holds it.
        OSError
            If there is no such place.
        """

    @abstractmethod
    def close(self) -> None:
        """Let other processes have the run; more than once does no harm."""

    @abstractmethod
    def require_idle(self) -> None:
        """Check that no process can be busy with the run, and hold it.

        Raises
        ------
        InputError
            If one may be, or if this is no folder, or a link.
        """

    def with_names_locked(self, act: Callable[[], T]) -> T:
        """Call a function; if the place has locks, no other process changes names beside the run meanwhile."""
        return act()

    @abstractmethod
    def move_to(self, target: Self) -> None:
        """Move the run to the place of another one, which was removed."""

    def remove(self) -> None:
        """Remove the run: the manifest first, since without it there is no run; what is not the run's stays.

        The config goes last: it says that the remains of an interrupted removal are those of a run.

        Raises
        ------
        InputError
            If something that no run writes lies among the run's files; nothing is removed then.
        """
        files = [name for name in self.store.list() if "/" not in name and is_own(name)]
        self.store.delete([MANIFEST])
        self.store.delete([*(name for name in files if name != CONFIG), CHECKPOINT, RESULTS, PUBLISHED])
        self.store.delete([CONFIG])


class LocalPlace(RunPlace):
    """A folder; a lock on it keeps other processes away."""

    store: LocalStore
    _lock: int | None = None

    def __init__(self, address: str):
        self._folder = Path(address)
        self.store = LocalStore(self._folder)
        self._made: list[Path] = []

    def __del__(self) -> None:  # an interrupt may come before the code that closes the place
        self.close()

    def exists(self) -> bool:
        """See `RunPlace`."""
        return os.path.lexists(self._folder)

    def make(self) -> bool:
        """See `RunPlace`."""
        parent = self._folder.parent
        try:
            self._made = missing_folders(parent) or self._made
            parent.mkdir(parents=True, exist_ok=True)
            self._folder.mkdir()
        except FileExistsError:
            if not parent.is_dir():
                raise InputError(f"{parent} is a file, not a folder: choose another run.directory") from None
            return False
        return True

    def work_in(self, spill: Path) -> None:  # noqa: ARG002 - a process works in the run's own folder
        """See `RunPlace`."""
        (self._folder / RESULTS).mkdir(exist_ok=True)

    def hold(self) -> None:
        """See `RunPlace`."""
        if self._lock is None:
            try:
                self._lock = hold(self._folder)
            except BlockingIOError:
                raise busy(self._folder) from None

    def close(self) -> None:
        """See `RunPlace`."""
        if self._lock is not None:
            lock, self._lock = self._lock, None
            release(lock)

    def require_idle(self) -> None:
        """See `RunPlace`."""
        if self._folder.is_symlink() or not self._folder.is_dir():
            raise InputError(f"{self._folder}: this is not the folder of a run: remove it, or choose another run.name")
        self.hold()

    def with_names_locked(self, act: Callable[[], T]) -> T:
        """See `RunPlace`."""
        lock = hold(self._folder.parent, wait=True)
        try:
            return act()
        finally:
            os.close(lock)

    def move_to(self, target: LocalPlace) -> None:
        """See `RunPlace`."""
        self._folder.rename(target._folder)
        sync_folder(target._folder.parent)

    def remove(self) -> None:
        """See `RunPlace`; the folder goes, too, and those that it is in, if `make` made them."""
        super().remove()
        self._folder.rmdir()
        remove_empty(self._made)


class ObjectPlace(RunPlace):
    """A URL, which has no locks: the commit log finds out whether another process took the run over.

    Raises
    ------
    InputError
        If no run can be at such a URL.
    """

    store: ObjectStore

    def __init__(self, address: str):
        self.store = ObjectStore(address)
        self._spill: SpillFolder | None = None
        if not _FLEETING.isdisjoint(self.store.remote.protocols):
            raise InputError(
                f"{address}: what is written there is gone when this process ends: choose another run.directory"
            )

    def exists(self) -> bool:
        """See `RunPlace`."""
        return bool(self.store.remote.sizes())

    def make(self) -> bool:
        """See `RunPlace`."""
        return not self.exists()

    def work_in(self, spill: Path) -> None:
        """See `RunPlace`."""
        advice = "choose another memory.spill, where a run at a URL has its files first"
        self._spill = SpillFolder(spill, advice=advice)
        self.store.work_in(self._spill.path / "run")
        (self.store.folder / RESULTS).mkdir(parents=True)

    def hold(self) -> None:
        """See `RunPlace`."""

    def close(self) -> None:
        """See `RunPlace`."""
        if self._spill is not None:
            self._spill.close()

    def require_idle(self) -> None:
        """See `RunPlace`."""
        if status_of(self.store) == "running":
            where = self.store.where
            raise InputError(f"{busy(where)}; if it was killed, resume it, or remove {where}")

    def move_to(self, target: ObjectPlace) -> None:
        """See `RunPlace`; the manifest is copied last, and until then the run is whole where it was."""
        mine = sorted(name for name in self.store.list() if is_own(name) and name != MANIFEST)
        for names in (mine, [MANIFEST]):
            self.store.remote.copy([(name, name) for name in names], target.store.remote)
        self.remove()

    def remove(self) -> None:
        """See `RunPlace`."""
        super().remove()
        self.store.remote.remove_empty_folders()


def place_at(address: Path | str) -> RunPlace:
    """Return the place of a run at a path or a URL."""
    return ObjectPlace(str(address)) if is_url(address) else LocalPlace(str(user_path(address).absolute()))
