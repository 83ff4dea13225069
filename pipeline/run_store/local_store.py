"""A run in a folder: files are renamed into place, and a lock on the folder keeps other processes away.

No link in the folder is followed, and nothing is removed there that no run writes.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from longwall.pipeline.run_store.manifest import NAME, is_run
from longwall.pipeline.run_store.run_names import busy, is_own, no_run, not_of_a_run, survey, unlink
from longwall.pipeline.run_store.store import RESULTS, describe, require_unchanged
from longwall.storage.errors import InputError, naming
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.memory.spill_folder import hold, sync_folder
from longwall.storage.stored_files import open_regular

_REMOVALS = 3  # of a folder, to which a worker that comes late may still write: what it leaves goes with the checkpoint


class LocalStore:
    """See :class:`longwall.pipeline.run_store.store.RunStore`.

    Parameters
    ----------
    folder
        The run's, absolute; it need not exist.
    """

    alone = True

    def __init__(self, folder: Path):
        self.where: Path | str = folder
        self._folder = folder
        self._lock: int | None = None
        self._made_parent = False
        self._synced: set[Path] = set()

    @property
    def name(self) -> str:
        """See `RunStore`."""
        return self._folder.name

    @property
    def folder(self) -> Path:
        """See `RunStore`."""
        return self._folder

    def sibling(self, name: str) -> LocalStore:
        """See `RunStore`."""
        return LocalStore(self._folder.with_name(name))

    def exists(self) -> bool:
        """See `RunStore`."""
        return os.path.lexists(self._folder)

    def begin(self) -> bool:
        """See `RunStore`."""
        parent = self._folder.parent
        try:
            self._made_parent |= not parent.exists()
            parent.mkdir(parents=True, exist_ok=True)
            self._folder.mkdir()
        except FileExistsError:
            if not parent.is_dir():
                raise InputError(f"{parent} is a file, not a folder: choose another run.directory") from None
            return False
        return True

    def hold(self) -> None:
        """See `RunStore`."""
        if self._lock is not None:
            return
        try:
            self._lock = hold(self._folder)
        except BlockingIOError:
            raise busy(self.where) from None

    def close(self) -> None:
        """See `RunStore`."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def list(self, below: str = "") -> dict[str, int]:
        """See `RunStore`."""
        return survey(self._folder, below)[0]

    def create(self, name: str, content: bytes) -> bool:
        """See `RunStore`."""
        path = self._folder / name
        if os.path.lexists(path):
            return False
        aside = path.with_name(f"{path.name}.{uuid4().hex}.partial")
        with naming(path):
            self._make_folder(path.parent)
            try:
                with aside.open("xb") as file:
                    _write(file, content)
                aside.rename(path)
            except BaseException:
                with suppress(OSError):
                    aside.unlink()
                raise
            sync_folder(path.parent)
        return True

    def _make_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            self._make_folder(folder.parent)
            folder.mkdir(exist_ok=True)
            sync_folder(folder.parent)

    def write(self, name: str, content: bytes, spare: int = 0) -> None:
        """See `RunStore`."""
        path = self._folder / name
        temporary = path.with_name(f"{path.name}.tmp")
        with naming(temporary), _opened(temporary) as file:
            file.truncate(len(content))
            _write(file, content)
        temporary.rename(path)
        with suppress(OSError):  # it is written; a crash of the machine may bring the one before it back
            sync_folder(path.parent)
        if spare:
            with naming(temporary), _opened(temporary) as file:
                os.posix_fallocate(file.fileno(), 0, spare + len(content))

    def put_files(self, names: Collection[str]) -> None:
        """See `RunStore`."""
        folders = {(self._folder / name).parent for name in names}
        above = {parent for folder in folders for parent in folder.parents if parent.is_relative_to(self._folder)}
        for folder in folders | above - self._synced:
            sync_folder(folder)
        self._synced |= above

    def read(self, name: str, begin: int = 0, end: int | None = None) -> bytes:
        """See `RunStore`."""
        with os.fdopen(open_regular(self._folder / name, links=False), "rb") as file:
            file.seek(begin)
            return file.read(-1 if end is None else end - begin)

    def digest(self, name: str, size: int) -> str:  # noqa: ARG002 - as that of a URL
        """See `RunStore`."""
        with (self._folder / name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def local(self, name: str) -> Path:
        """See `RunStore`."""
        return self._folder / name

    @contextmanager
    def opened(self, name: str, size: int, disk: MemoryBudget) -> Iterator[Path]:  # noqa: ARG002 - nothing is copied
        """See `RunStore`."""
        yield self._folder / name

    def publish(self, recorded: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """See `RunStore`."""
        self.list()
        results = self._folder / RESULTS
        found = {file.name: describe(file) for file in sorted(results.iterdir())}
        require_unchanged(results, recorded, found)
        sync_folder(results)
        results.rename(self._folder / "results")
        sync_folder(self._folder)  # the results must be there before anything says so
        return found

    def unpublish(self) -> None:
        """See `RunStore`."""
        with suppress(FileNotFoundError):
            (self._folder / "results").rename(self._folder / RESULTS)

    def delete(self, names: Collection[str]) -> None:
        """See `RunStore`."""
        for name in names:
            (self._folder / name).unlink(missing_ok=True)

    def delete_folder(self, name: str) -> None:
        """See `RunStore`."""
        folder = self._folder / name
        for _ in range(_REMOVALS if folder.is_dir() else 0):
            for file in folder.iterdir():
                if is_own(f"{name}/{file.name}"):
                    file.unlink(missing_ok=True)
            try:
                folder.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise

    def clear(self, *below: str) -> None:
        """See `RunStore`."""
        files, folders = survey(self._folder)
        places = below or ("",)
        mine = [name for name in files if name.startswith(places) and is_own(name)]
        for name in sorted(mine, key=lambda name: name != NAME):
            unlink(self._folder, name)
        for name in folders:
            if f"{name}/".startswith(places):
                with suppress(OSError):  # others write there, or have removed it
                    (self._folder / name).rmdir()
        if not below:
            self._folder.rmdir()
            if self._made_parent:
                with suppress(OSError):  # there are other runs
                    self._folder.parent.rmdir()

    def require_replaceable(self, *, whole: bool = True) -> None:
        """See `RunStore`."""
        if self._folder.is_symlink() or not self._folder.is_dir():
            raise InputError(f"{self.where}: this is not the folder of a run: remove it, or choose another run.name")
        self.hold()
        files, folders = survey(self._folder)
        mine = {name.partition("/")[0] for name in (*filter(is_own, files), *folders)}
        others = sorted(entry.name for entry in self._folder.iterdir() if entry.name not in mine)
        if others:
            raise not_of_a_run(self.where, others[0])
        if whole and not is_run(self):
            raise no_run(self.where)

    @contextmanager
    def exchange(self) -> Iterator[None]:
        """See `RunStore`."""
        lock = hold(self._folder.parent, wait=True)
        try:
            yield
        finally:
            os.close(lock)

    def move_to(self, target: LocalStore) -> None:
        """See `RunStore`."""
        self._folder.rename(target._folder)
        sync_folder(target._folder.parent)


def _write(file: BinaryIO, content: bytes) -> None:
    """Write what a file shall hold, to the disk."""
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


def _opened(path: Path) -> BinaryIO:
    """Open a file to be written, which keeps the space that it has."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666), "wb")
