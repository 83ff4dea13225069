"""Where the files of a run are kept: one protocol for a folder and for a URL.

A file is written in the working folder of this process first. `RunStore.put_files` makes it part of the run; what is
small and must appear whole (commits, the manifest) is given as bytes. Names are relative to the run, and have the forms
of :mod:`longwall.pipeline.run_store.run_names`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, Self

from longwall.storage.errors import FinalError
from longwall.storage.memory.reservations import MemoryBudget

RESULTS = "results.partial/"
"""Where results are until the run is done."""


class RunStore(Protocol):
    """The files of one run.

    Attributes
    ----------
    where
        What users call the place.
    name
        The last part of `where`.
    folder
        The working folder of this process; of a local run it is the run's own.
    alone
        Whether a lock keeps other processes away. Where there is none, another process may take the run over.
    """

    where: Path | str
    alone: bool

    @property
    def name(self) -> str:
        """See above."""
        ...

    @property
    def folder(self) -> Path:
        """See above."""
        ...

    def sibling(self, name: str) -> Self:
        """Return the store of the run with that name in the same place."""
        ...

    def exists(self) -> bool:
        """Say whether there is anything."""
        ...

    def begin(self) -> bool:
        """Make the place where there is nothing; return whether there was nothing."""
        ...

    def hold(self) -> None:
        """Keep other processes away until `close`, where the place has locks; more than once does no harm.

        Raises
        ------
        InputError
            If another process holds it.
        OSError
            If there is no such place.
        """
        ...

    def close(self) -> None:
        """Let other processes have the run; more than once does no harm."""
        ...

    def list(self, below: str = "") -> dict[str, int]:
        """Return the names of the run's files, and their bytes; those of one folder, such as ``"results/"``.

        Raises
        ------
        InputError
            If a link, or a file that no run writes, lies among them.
        """
        ...

    def create(self, name: str, content: bytes) -> bool:
        """Write a file, whole or not at all, unless there is one of that name; return whether it is this one.

        It is durable when this returns. Where `alone`, only the holder of the lock may call it, one thread at a time.
        """
        ...

    def write(self, name: str, content: bytes, spare: int = 0) -> None:
        """Write a file, whole or not at all; one of that name is replaced.

        Parameters
        ----------
        name, content
            Of the file.
        spare
            Bytes by which the next version may grow. Where `alone`, space for it is kept, so that it can be written
            although the disk is full.
        """
        ...

    def put_files(self, names: Collection[str]) -> None:
        """Make files of the working folder, synced by their writers, durable parts of the run."""
        ...

    def read(self, name: str, begin: int = 0, end: int | None = None) -> bytes:
        """Read bytes `begin` to `end` - 1 of a file."""
        ...

    def digest(self, name: str, size: int) -> str:
        """Return the checksum (SHA-256) of a file of so many bytes."""
        ...

    def local(self, name: str) -> Path:
        """Return the path of a file in the working folder, which has a copy of it from now on."""
        ...

    def opened(self, name: str, size: int, disk: MemoryBudget) -> AbstractContextManager[Path]:
        """Have a file in the working folder for a while; a copy is reserved in `disk` with `size` bytes."""
        ...

    def publish(self, recorded: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Move the results to ``results/``.

        Parameters
        ----------
        recorded
            Name in the folder of results -> what a commit says of the file.

        Returns
        -------
        dict
            Name -> rows, bytes and checksum of every result, as they are read again.

        Raises
        ------
        FinalError
            If one was changed since it was recorded, or is gone.
        """
        ...

    def unpublish(self) -> None:
        """Undo `publish`, whole or broken off."""
        ...

    def delete(self, names: Collection[str]) -> None:
        """Remove files, where they are there."""
        ...

    def delete_folder(self, name: str) -> None:
        """Remove a folder of the checkpoint with all that it has, if there is one."""
        ...

    def clear(self, *below: str) -> None:
        """Remove the files of the run, or those of some of its folders, and the folders that are empty then.

        Of the whole run that is its own folder, too, and the one that it is in, if `begin` made it.

        The manifest goes first: without it there is no run.

        Raises
        ------
        InputError
            If something lies there that no run writes; nothing is removed then.
        """
        ...

    def require_replaceable(self, *, whole: bool = True) -> None:
        """Check that a new run may take this one's place, and hold it.

        Parameters
        ----------
        whole
            Whether there must be a manifest, if there are files at all; without one, `clear` may have been broken off.

        Raises
        ------
        InputError
            If there is something else than a run, or a process may be busy with it.
        """
        ...

    def exchange(self) -> AbstractContextManager[None]:
        """Let no other process change names beside the run meanwhile, where the place has locks."""
        ...

    def move_to(self, target: Self) -> None:
        """Put this run in the place of another one, which is clear."""
        ...


def changed(file: str) -> FinalError:
    """Return the error for a finished file that is not what it was."""
    return FinalError(f"{file}: the run had finished this file, and it is gone or changed: start a new run")


def require_unchanged(
    where: Path | str, recorded: Mapping[str, Mapping[str, Any]], found: Mapping[str, Mapping[str, Any]]
) -> None:
    """Check that finished files are what commits say of them.

    Parameters
    ----------
    where
        Their folder.
    recorded
        Name -> what a commit says of the file.
    found
        Name -> what `describe` returns for it.

    Raises
    ------
    FinalError
        If one was changed, or is gone.
    """
    for name, file in recorded.items():
        there = found.get(name)
        if there is None or any(there[key] != file[key] for key in ("rows", "bytes", "sha256")):
            raise changed(f"{where}/{name}")


def describe(file: Path) -> dict[str, Any]:
    """Return rows, bytes and checksum of a result file, after it has reached the disk.

    Raises
    ------
    FinalError
        If it is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with file.open("rb") as stream:
        os.fsync(stream.fileno())
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        try:
            rows = pq.read_metadata(stream).num_rows
        except pa.ArrowException:
            raise changed(str(file)) from None
        return {"rows": rows, "bytes": os.fstat(stream.fileno()).st_size, "sha256": digest}
