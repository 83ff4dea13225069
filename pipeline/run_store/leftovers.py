"""Find what nothing uses any more: spill folders of killed runs, remains of runs, compiled kernels of other sources."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from longwall.pipeline.config.raw import parse_toml
from longwall.pipeline.run_store.removal import RemovableRun, removable_run
from longwall.pipeline.run_store.run_names import CHECKPOINT, CONFIG, MANIFEST, RESULTS, is_own
from longwall.pipeline.run_store.run_place import place_at
from longwall.storage.errors import InputError, RunError
from longwall.storage.memory.spill_folder import abandoned_folders, remove_abandoned
from longwall.storage.system.paths import user_path

_ENDED_EARLY = frozenset({"failed", "interrupted", "killed"})


@dataclass(frozen=True)
class Leftover:
    """Something that nothing uses."""

    kind: str
    """``spill folder``, ``remains of a run``, ``checkpoint of a finished run``, ``unfinished run``, ``kernels``."""
    path: str
    bytes: int
    remove: Callable[[], bool]
    """Removes it, unless a process has begun to use it; returns whether it is gone."""

    def to_json(self) -> dict[str, Any]:
        """Return what is said of it."""
        return {"kind": self.kind, "path": self.path, "bytes": self.bytes}


def leftovers(folder: Path, spill: Path, *, unfinished: bool) -> Iterator[Leftover]:
    """Yield what nothing uses; nothing is changed.

    Parameters
    ----------
    folder
        The folder of the runs.
    spill
        A folder of `memory.spill`; those that configs of the runs name are looked at, too.
    unfinished
        Whether runs that ended early count as unused.
    """
    runs = sorted(one for one in folder.iterdir() if one.is_dir() and not one.is_symlink()) if folder.is_dir() else []
    parents = {spill.absolute(): None} | dict.fromkeys(filter(None, map(_spill_of, runs)))
    for parent in parents:
        for one in abandoned_folders(parent):
            yield Leftover("spill folder", str(one), _size_of(one), partial(_remove_spill, one))
    for run in runs:
        yield from _of_run(run, unfinished=unfinished)
    yield from _kernels()


def _spill_of(run: Path) -> Path | None:
    """Return `memory.spill` of a run, relative to the working folder as ever; None if its config cannot be read."""
    with suppress(OSError, InputError, ValueError, AttributeError, TypeError, KeyError):
        return user_path(parse_toml((run / CONFIG).read_text())["memory"]["spill"]).absolute()
    return None


def _remove_spill(folder: Path) -> bool:
    remove_abandoned(folder.parent)
    return not folder.exists()


def _of_run(path: Path, *, unfinished: bool) -> Iterator[Leftover]:
    try:
        run = removable_run(place_at(path))
    except (InputError, RunError, OSError):  # it is no run, or a process is busy with it
        return
    with closing(run):
        there = run.place.store.list()
        if MANIFEST not in there:
            yield Leftover("remains of a run", run.where, run.bytes, partial(_remove_run, path, "killed"))
        elif unfinished and run.status in _ENDED_EARLY:
            yield Leftover("unfinished run", run.where, run.bytes, partial(_remove_run, path, run.status))
        elif run.status == "done" and (left := _unused_in(there)):
            size = sum(left.values())
            yield Leftover("checkpoint of a finished run", run.where, size, partial(_remove_unused, path))


def _unused_in(there: dict[str, int]) -> dict[str, int]:
    """Return the files of a finished run that it has no use for, with their bytes."""
    return {name: size for name, size in there.items() if is_own(name) and name.startswith((CHECKPOINT, RESULTS))}


def _held(path: Path, status: str) -> RemovableRun | None:
    """Return a run that is still as it was found, held; None where it is not."""
    with suppress(InputError):
        run = removable_run(place_at(path))
        if run.status == status:
            return run
        run.close()
    return None


def _remove_run(path: Path, status: str) -> bool:
    if run := _held(path, status):
        with closing(run):
            run.remove()
    return run is not None


def _remove_unused(path: Path) -> bool:
    if run := _held(path, "done"):
        with closing(run):
            run.place.store.delete([CHECKPOINT, RESULTS])
    return run is not None


def _remove_state(state: Path) -> bool:
    from longwall.kernels.jit.kernel_cache import remove_state

    remove_state(state)
    return not state.exists()


def _kernels() -> Iterator[Leftover]:
    import longwall.kernels as kernels
    import longwall.storage as storage
    from longwall.kernels.jit.kernel_cache import unused_states

    for state in unused_states(Path(package.__path__[0]) for package in (kernels, storage)):
        yield Leftover("kernels", str(state), _size_of(state), partial(_remove_state, state))


def _size_of(folder: Path) -> int:
    """Return the bytes of the files below a folder; no link is followed."""
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118 - as os.walk gives them
    return size
