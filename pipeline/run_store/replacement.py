"""The folder of a run that replaces another one of its name.

The new run works in ``<name>+new``, and is resumed there. When it is done the folders change names: the old one becomes
``<name>+old``, the new one ``<name>``, and the old one is removed. A crash at any point leaves the old or the new run
whole; the next process that uses the name completes the change.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from longwall.pipeline.run_store.manifest import read_manifest_of
from longwall.pipeline.run_store.run_names import NEW, OLD, busy, others, remove_files, survey
from longwall.storage.errors import InputError, RunError
from longwall.storage.memory.spill_folder import hold, sync_folder


class Replacement:
    """The folder of a run that is replaced, held so that no other process works with it, and that of the new run.

    Attributes
    ----------
    path
        Where the new run works.
    """

    def __init__(self, target: Path):
        self.path = target.with_name(target.name + NEW)
        self._target, self._lock = target, -1
        if os.path.lexists(target):
            self._lock = _hold(target)

    @classmethod
    def of(cls, target: Path) -> Replacement:
        """Make the folder of a new run that will replace `target`; an earlier one that was not finished is removed.

        Raises
        ------
        InputError
            If `target` is not the folder of a run alone, or another process is busy with it.
        """
        made = cls(target)
        try:
            _require_run(target)
            if os.path.lexists(made.path):
                _remove(made.path)
            made.path.mkdir()
        except BaseException:
            made.close()
            raise
        return made

    @classmethod
    def going_on(cls, path: Path) -> Replacement | None:
        """What a run replaces that goes on in this folder; None where it replaces nothing.

        Raises
        ------
        InputError
            If another process is busy with that.
        """
        return cls(path.with_name(path.name.removesuffix(NEW))) if path.name.endswith(NEW) else None

    def take_place(self) -> Path:
        """Put the new run, which is done, in the place of the old one; gives the place.

        Raises
        ------
        RunError
            If that cannot be done now; `complete` does it later.
        """
        try:
            with _alone(self._target.parent):
                old = _exchange(self._target)
        except InputError as error:
            raise RunError(str(error)) from None
        self.close()
        with suppress(InputError, OSError):  # it is no run any more; who uses the name next tries again
            _remove(old)
        return self._target

    def close(self) -> None:
        """Let other processes have the old run; more than once does no harm."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def complete(path: Path) -> Path:
    """Complete a change of names that was interrupted, if there was one; gives where the run is then.

    Parameters
    ----------
    path
        The folder of a run, or of one that replaces it.

    Raises
    ------
    InputError
        If another process is busy with the old run, or there is something in it that no run writes.
    """
    target = path.with_name(path.name.removesuffix(NEW))
    new, old = (target.with_name(target.name + end) for end in (NEW, OLD))
    if not os.path.lexists(new) and not os.path.lexists(old):
        return path
    with _alone(target.parent):
        if _is_done(new):
            if os.path.lexists(target):
                os.close(_hold(target))
            _exchange(target)
            path = target
        elif os.path.lexists(old) and not os.path.lexists(target):
            old.rename(target)
        if os.path.lexists(old):
            _remove(old)
        return path


def _is_done(new: Path) -> bool:
    """Whether there is a new run that is done, and with which no process is busy."""
    try:
        os.close(_hold(new))
        return bool(read_manifest_of(new)["status"] == "done")
    except (OSError, ValueError, InputError):
        return False


@contextmanager
def _alone(parent: Path) -> Iterator[None]:
    """Let no other process change names in a folder meanwhile."""
    lock = hold(parent, wait=True)
    try:
        yield
    finally:
        os.close(lock)


def _exchange(target: Path) -> Path:
    """Put the new run in the place of the old one; gives where the old one is, if there is one."""
    new, old = (target.with_name(target.name + end) for end in (NEW, OLD))
    if os.path.lexists(target):
        if os.path.lexists(old):
            _remove(old)
        target.rename(old)
    new.rename(target)
    sync_folder(target.parent)
    return old


def _remove(folder: Path) -> None:
    """Remove the folder of a run.

    Raises
    ------
    InputError
        If it is no such folder alone, or another process is busy with it.
    """
    lock = _hold(folder)
    try:
        _require_run(folder)
        remove_files(folder)
        folder.rmdir()
    finally:
        os.close(lock)


def _hold(folder: Path) -> int:
    if folder.is_symlink() or not folder.is_dir():
        raise InputError(f"{folder}: this is not the folder of a run: remove it, or choose another run.name")
    try:
        return hold(folder)
    except BlockingIOError:
        raise busy(folder) from None


def _require_run(folder: Path) -> None:
    """See that a folder is that of a run, and has nothing but what a run writes.

    A folder without a manifest is none, but for what is left of one: no files, or in the places that only we use the
    config of a run that was killed as it began.
    """
    if strange := others(folder):
        raise InputError(
            f"{folder / strange[0]}: no run writes this, and the folder is to be replaced: move it away, or choose "
            "another run.name"
        )
    left = set(survey(folder)[0]) - ({"config.toml"} if folder.name.endswith((NEW, OLD)) else set())
    if not left:
        return
    try:
        read_manifest_of(folder)
    except ValueError:
        raise InputError(
            f"{folder}: this folder is to be replaced, but holds no manifest.json of a run: move it away, or choose "
            "another run.name"
        ) from None
