"""The files of a run: one protocol for a folder and for a URL.

A file is written in the working folder of this process first, and becomes part of the run with `RunStore.put_files`.
Small files that must appear whole (commits, the manifest) are written as bytes. Names are relative to the run, and have
the forms of :mod:`longwall.pipeline.run_store.run_names`; the name of a folder ends with a slash.

Where runs are created, locked, replaced and removed is in :mod:`longwall.pipeline.run_store.run_place`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from longwall.storage.errors import FinalError, InputError, RunError
from longwall.storage.hashed_file import file_sha256
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.system.concurrency import core_count, map_ordered

_BLOCK_BYTES = 16 << 20  # that are read at a time from a URL


class RunStore(Protocol):
    """The files of one run; nothing that no run writes is ever removed or replaced, and no link is followed.

    Attributes
    ----------
    where
        What users call the place.
    alone
        Whether a lock keeps other processes away. Where there is none, another process may take the run over.
    recorded
        Whether the run has a config, a manifest and metrics, which others read, and can be resumed.
    """

    where: Path | str
    alone: bool
    recorded: bool

    @property
    def folder(self) -> Path:
        """The working folder of this process; of a local run it is the run's own."""
        ...

    def list(self, below: str = "") -> dict[str, int]:
        """Return the names of all files with their bytes, or of those in one folder, such as ``"results/"``.

        What lies beside the run's own files and folders is listed, too.

        Raises
        ------
        InputError
            If a link, or a file that no run writes, lies among the run's files.
        """
        ...

    def read(self, name: str, begin: int = 0, end: int | None = None) -> bytes:
        """Read bytes `begin` to `end` - 1 of a file."""
        ...

    def create(self, name: str, content: bytes) -> bool:
        """Write a file, whole or not at all, unless one of that name exists; return whether the file is this one.

        It is durable when this returns. Where `alone`, only the holder of the lock may call it, one thread at a time.
        """
        ...

    def write(self, name: str, content: bytes, spare: int = 0, *, lasting: bool = True) -> None:
        """Write a file, whole or not at all; one of that name is replaced.

        Parameters
        ----------
        name, content
            Of the file.
        spare
            Bytes by which the next version may grow. Where `alone`, space for it is kept, so that it can be written
            although the disk is full.
        lasting
            Whether the file must survive a crash of the machine; one that can be made anew need not.
        """
        ...

    def put_files(self, names: Collection[str]) -> None:
        """Make files of the working folder, synced by their writers, durable parts of the run.

        At a URL files of results are removed from the working folder; files of the checkpoint stay, to be read there.
        Files that are not in the working folder were sent by the workers that wrote them.
        """
        ...

    def local(self, name: str, copy: Path | None = None) -> Path:
        """Return a local path of a file; one that is only at a URL is copied to `copy`, or to the working folder."""
        ...

    def delete(self, names: Collection[str]) -> None:
        """Remove files, where they exist, and folders with the run's files in them."""
        ...

    def publish(self, names: Collection[str]) -> None:
        """Move all result files of the run from ``results.partial/`` to ``results/``.

        Parameters
        ----------
        names
            Of the files, without their folder. In a folder there are no others; at a URL others stay where they are.
        """
        ...

    def unpublish(self) -> None:
        """Undo `publish`, whether it was completed or interrupted."""
        ...


@contextmanager
def fetched(store: RunStore, name: str, size: int, disk: MemoryBudget) -> Iterator[Path]:
    """Yield a local path of a file; a copy of one that is only at a URL is removed afterwards.

    Parameters
    ----------
    store, name
        The file.
    size
        Its bytes, which are reserved in `disk` while there is a copy.
    disk
        The budget of the disk.

    Raises
    ------
    BudgetExceeded
        If the budget has no room for the copy.
    RunError
        If it cannot be copied; errors raised while the copy is in use name the URL.
    """
    if (path := store.folder / name).exists():
        yield path
        return
    copy, source = store.folder / "checkpoint" / f"fetched-{uuid4().hex}", f"{store.where}/{name}"
    with disk.reserve(size, f"a copy of {source}"):
        try:
            yield store.local(name, copy)
        except (InputError, RunError) as error:
            raise type(error)(str(error).replace(str(copy), source)) from error
        finally:
            copy.unlink(missing_ok=True)


def changed(file: str) -> FinalError:
    """Return the error for a finished file that is not what it was."""
    return FinalError(f"{file}: the run had finished this file, and it is gone or changed: start a new run")


def require_unchanged(store: RunStore, files: Iterable[Mapping[str, Any]], there: Mapping[str, int]) -> None:
    """Check that finished files are what commits say of them.

    Parameters
    ----------
    store
        The run's.
    files
        The files as commits describe them. One with `bytes` must exist and have that size; one with `sha256` must
        have that checksum if it exists.
    there
        The files that exist, as `RunStore.list` returns them.

    Raises
    ------
    FinalError
        If one was changed, or is gone.
    """
    hashed: list[Mapping[str, Any]] = []
    for file in files:
        if "bytes" in file and there.get(file["name"]) != file["bytes"]:
            raise changed(f"{store.where}/{file['name']}")
        if "sha256" in file and file["name"] in there:
            hashed.append(file)
    sums = map_ordered(lambda file: _sha256(store, file["name"], there[file["name"]]), hashed, core_count())
    for file, found in zip(hashed, sums, strict=True):
        if found != file["sha256"]:
            raise changed(f"{store.where}/{file['name']}")


def _sha256(store: RunStore, name: str, size: int) -> str:
    """Return the checksum of a file of a given number of bytes, as it is in the run."""
    if store.alone:
        with store.local(name).open("rb") as file:
            return file_sha256(file)
    found = hashlib.sha256()
    for begin in range(0, size, _BLOCK_BYTES):
        found.update(store.read(name, begin, min(begin + _BLOCK_BYTES, size)))
    return found.hexdigest()
