"""Remove a run on request: only folders that a run wrote, and of these only the files of the run."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from longwall.pipeline.run_store.manifest import MARK, manifest_of, why_no_run
from longwall.pipeline.run_store.run_names import CONFIG, MANIFEST, is_own
from longwall.pipeline.run_store.run_place import LocalPlace
from longwall.storage.errors import InputError

if TYPE_CHECKING:
    from longwall.pipeline.run_store.run_place import RunPlace
    from longwall.pipeline.run_store.store import RunStore


@dataclass(frozen=True)
class RemovableRun:
    """A run that no process is busy with; it is held until `close`."""

    place: RunPlace
    status: str
    """``done``, ``failed``, ``interrupted``, ``killed``, or ``damaged``."""
    bytes: int
    """Of the files of the run."""
    kept: tuple[str, ...]
    """Names in the folder that no run writes: they stay, and the folder with them."""

    @property
    def where(self) -> str:
        """The folder, or the URL."""
        return str(self.place.store.where)

    def remove(self) -> None:
        """Remove the files of the run, and its folder if nothing else lies in it.

        Raises
        ------
        InputError
            If something that no run writes was put among the files of the run meanwhile.
        OSError, RunError
            If a file cannot be removed.
        """
        try:
            self.place.remove()
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:  # it names a file inside of the folder
                raise OSError(error.errno, error.strerror or str(error), self.where) from None

    def close(self) -> None:
        """Let other processes have what is left."""
        self.place.close()


def removable_run(place: RunPlace) -> RemovableRun:
    """Return the run in a place, held.

    Raises
    ------
    InputError
        If it is not a run, a process may be busy with it, or something lies among its files that no run writes.
    """
    where = place.store.where
    if isinstance(where, Path) and where.is_symlink():
        raise InputError(f"{where}: this is a link: give the folder of the run that it leads to")
    try:
        _files_of_run(place)
        place.require_idle()
        there = _files_of_run(place)
        kept = tuple(name for name in there if not is_own(name))
        size = sum(size for name, size in there.items() if is_own(name))
        return RemovableRun(place, _status(place.store, there), size, kept)
    except BaseException:
        place.close()
        raise


def _files_of_run(place: RunPlace) -> dict[str, int]:
    """Return the files in the place of a run, with their bytes; raise `InputError` if it is no run."""
    store = place.store
    try:
        if isinstance(place, LocalPlace) and not store.folder.is_dir():
            raise NotADirectoryError
        there = store.list()
        if MANIFEST not in there and not _has_config(store, there):
            raise FileNotFoundError
        if MANIFEST in there and not _has_config(store, there):
            manifest_of(store)
    except (OSError, ValueError) as error:
        raise why_no_run(store.where, error) from None
    return there


def _has_config(store: RunStore, there: dict[str, int]) -> bool:
    """Return whether there is a config that a run wrote: it stays there as long as anything of the run does."""
    return CONFIG in there and store.read(CONFIG, 0, len(MARK)) == MARK.encode()


def _status(store: RunStore, there: dict[str, int]) -> str:
    try:
        status = str(manifest_of(store)["status"]) if MANIFEST in there else "killed"
    except (OSError, ValueError):
        return "damaged"
    return "killed" if status == "running" else status
