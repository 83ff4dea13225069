"""The files of a run in a folder: they are renamed into place, and names are synced as well as contents."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from longwall.pipeline.run_store.run_names import PUBLISHED, RESULTS, is_own, is_reserved, require_own
from longwall.storage.durability import sync_file, sync_folder
from longwall.storage.errors import naming
from longwall.storage.stored_files import open_regular

_REMOVALS = 3  # of a folder, to which a worker that comes late may still write: what it leaves goes with the checkpoint
_FOLDER = os.O_RDONLY | os.O_DIRECTORY


class LocalStore:
    """See :class:`longwall.pipeline.run_store.store.RunStore`.

    Parameters
    ----------
    folder
        The run's, absolute; it need not exist.
    """

    alone = True
    recorded = True

    def __init__(self, folder: Path):
        self.where: Path | str = folder
        self._folder = folder
        self._synced: set[Path] = set()

    @property
    def folder(self) -> Path:
        """See `RunStore`."""
        return self._folder

    def list(self, below: str = "") -> dict[str, int]:
        """See `RunStore`."""
        files, _, others = _walk(self._folder, below)
        require_own(self.where, files, others)
        return files

    def read(self, name: str, begin: int = 0, end: int | None = None) -> bytes:
        """See `RunStore`."""
        with os.fdopen(open_regular(self._folder / name, links=False), "rb") as file:
            file.seek(begin)
            return file.read(-1 if end is None else end - begin)

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
                    _write(file, aside, content)
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

    def write(self, name: str, content: bytes, spare: int = 0, *, lasting: bool = True) -> None:
        """See `RunStore`."""
        path = self._folder / name
        temporary = path.with_name(f"{path.name}.tmp")
        with naming(temporary), _opened(temporary) as file:
            file.truncate(len(content))
            _write(file, temporary, content, sync=lasting)
        temporary.rename(path)
        with suppress(OSError):  # it is written; a crash of the machine may bring the one before it back
            if lasting:
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

    def local(self, name: str, copy: Path | None = None) -> Path:  # noqa: ARG002 - nothing is copied
        """See `RunStore`."""
        return self._folder / name

    def delete(self, names: Collection[str]) -> None:
        """See `RunStore`."""
        self._unlink(sorted(name for name in names if not name.endswith("/")))
        for folder in (name for name in names if name.endswith("/")):
            for _attempt in range(_REMOVALS):
                files, folders, _ = _walk(self._folder, folder)
                self._unlink(filter(is_own, files))
                for each in folders:
                    with suppress(OSError):  # others write there, or have removed it
                        (self._folder / each).rmdir()
                if not (self._folder / folder).exists():
                    break

    def _unlink(self, names: Iterable[str]) -> None:
        """Remove files; no link is followed that was put in the place of one of their folders meanwhile."""
        for parent, files in groupby(names, lambda name: name.rpartition("/")[0]):
            with suppress(FileNotFoundError):
                place = os.open(self._folder, _FOLDER)
                try:
                    for part in filter(None, parent.split("/")):
                        below = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=place)
                        os.close(place)
                        place = below
                    for name in files:
                        with suppress(FileNotFoundError):
                            os.unlink(name.rpartition("/")[2], dir_fd=place)
                finally:
                    os.close(place)

    def publish(self, names: Collection[str]) -> None:  # noqa: ARG002 - the folder holds no others
        """See `RunStore`."""
        sync_folder(self._folder / RESULTS)
        (self._folder / RESULTS).rename(self._folder / PUBLISHED)
        sync_folder(self._folder)  # the results must be there before the manifest says so

    def unpublish(self) -> None:
        """See `RunStore`."""
        with suppress(FileNotFoundError):
            (self._folder / PUBLISHED).rename(self._folder / RESULTS)


def _walk(root: Path, below: str) -> tuple[dict[str, int], list[str], list[str]]:
    """Look through the folder of a run, or one of its folders, following no link.

    Returns
    -------
    files, folders, others
        The files with their bytes; the folders, those that lie in others first; what is neither. What lies beside the
        run's own files and folders is taken for a file, whatever it is.
    """
    files: dict[str, int] = {}
    folders: list[str] = []
    others: list[str] = []

    def walk(folder: str) -> None:
        with os.scandir(root / folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                name = folder + entry.name
                try:
                    facts = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # a worker that comes late has removed it
                    continue
                if stat.S_ISREG(facts.st_mode) or not is_reserved(name):
                    files[name] = facts.st_size
                elif stat.S_ISDIR(facts.st_mode):
                    walk(f"{name}/")
                else:
                    others.append(name)
        folders.append(folder)

    if (root / below).exists():
        walk(below)
    return files, folders, others


def _write(file: BinaryIO, path: Path, content: bytes, *, sync: bool = True) -> None:
    """Write the content of a file, to the disk unless `sync` is false."""
    file.write(content)
    file.flush()
    if sync:
        sync_file(file.fileno(), path)


def _opened(path: Path) -> BinaryIO:
    """Open a file to be written, which keeps the space that it has."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666), "wb")
