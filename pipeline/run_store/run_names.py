"""The names of the files of a run: nothing else in its folder is ever removed, and no link in it is followed."""

import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from longwall.storage.errors import InputError

NEW, OLD = "+new", "+old"
"""Behind the name of a run that is replaced: the folder of the run that replaces it, and its own for a moment. The name
of a run has no ``+``, so both are ours."""

_TABLE = r"(embeddings|vertices|counts|patterns)(-\d+)*\.(parquet|shorter)"
_OWN = re.compile(
    rf"""
    ( config\.toml | manifest\.json(\.tmp)? | (metrics|heat)\.parquet
    | results(\.partial)?/{_TABLE}
    | checkpoint/
      ( journal\.jsonl | journal/\d{{8}}\.jsonl
      | [\w-]+-\d+\.npy                                     # counts per vertex
      | [\w-]+/(\d+(\.npy)? | \.\d+\.partial)               # a level's chunks, the arrays of a phase
      | parts-[0-9a-f]{{32}}/({_TABLE} | heat-[0-9a-f]{{32}}\.parquet)
      | fetched-[0-9a-f]{{32}}
      )
    ) (\.[0-9a-f]{{32}}\.partial)?
    """,
    re.VERBOSE | re.ASCII,
)
_OURS = re.compile(
    r"(config\.toml|manifest\.json(\.tmp)?|(metrics|heat)\.parquet|results(\.partial)?|checkpoint)(/|\Z)", re.ASCII
)


def is_own(name: object) -> bool:
    """Say whether a run writes a file of that name, which is relative to its folder."""
    return isinstance(name, str) and _OWN.fullmatch(name) is not None


def require_own(where: Path | str, files: Iterable[str], links: Iterable[str] = ()) -> None:
    """See that what lies where a run has its files is of the run; what lies beside them is of no matter.

    Parameters
    ----------
    where
        The run's folder.
    files
        Names of files in it.
    links
        Names of what is neither a file nor a folder.

    Raises
    ------
    InputError
        If something is not.
    """
    for name in links:
        if _OURS.match(name):
            raise InputError(
                f"{where}/{name}: this is a link, a pipe or a device; the folder of a run has none: remove it"
            )
    for name in files:
        if "/" in name and _OURS.match(name) and not is_own(name):
            raise InputError(f"{where}/{name}: this is no file of the run: move it out of the run's folder")


def survey(folder: Path) -> tuple[list[str], list[str]]:
    """Look through the folder of a run, following no link.

    Returns
    -------
    files, folders
        Their names, those that lie in others first; what lies beside the run's own files is left out.

    Raises
    ------
    InputError
        See `require_own`.
    OSError
        If a folder cannot be read.
    """
    files: list[str] = []
    folders: list[str] = []
    links: list[str] = []

    def look(place: Path, prefix: str) -> None:
        with os.scandir(place) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                name = prefix + entry.name
                if not prefix and not _OURS.match(name):
                    continue
                try:
                    mode = entry.stat(follow_symlinks=False).st_mode
                except FileNotFoundError:  # a worker that comes late has removed it
                    continue
                if stat.S_ISDIR(mode):
                    look(place / entry.name, f"{name}/")
                    folders.append(name)
                else:
                    (files if stat.S_ISREG(mode) else links).append(name)

    look(folder, "")
    require_own(folder, files, links)
    return files, folders


def remove_files(folder: Path, below: str = "") -> None:
    """Remove the files of a run in its folder, or in one of its folders, and the folders that are empty then.

    The manifest is removed last: as long as it is there the folder is that of a run.

    Raises
    ------
    InputError
        If something is there that no run writes; nothing is removed then.
    OSError
        If a file cannot be removed.
    """
    files, folders = survey(folder)
    mine = [name for name in files if name.startswith(below) and is_own(name)]
    for name in sorted(mine, key=lambda name: name == "manifest.json"):
        _unlink(folder, name)
    for name in folders:
        if name.startswith(below):
            with suppress(OSError):  # others write there, or have removed it
                (folder / name).rmdir()


def _unlink(folder: Path, name: str) -> None:
    """Remove a file, and follow no link that was put in the place of one of its folders meanwhile."""
    *parents, last = name.split("/")
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    place = os.open(folder, flags)
    try:
        for parent in parents:
            below = os.open(parent, flags, dir_fd=place)
            os.close(place)
            place = below
        os.unlink(last, dir_fd=place)
    except FileNotFoundError:
        return
    finally:
        os.close(place)


def others(folder: Path) -> list[str]:
    """Return the names of what lies in a folder and is not a run's.

    Raises
    ------
    InputError
        See `require_own`.
    OSError
        If the folder cannot be read.
    """
    files, folders = survey(folder)
    mine = {name.partition("/")[0] for name in (*filter(is_own, files), *folders)}
    return sorted(entry.name for entry in folder.iterdir() if entry.name not in mine)


def busy(where: Path | str) -> InputError:
    """What is raised where another process has the run."""
    return InputError(f"{where}: another process is busy with this run; wait for it or stop it")


def exists(where: Path | str, other: str, status: str | None) -> InputError:
    """What is raised where there is something of that name.

    Parameters
    ----------
    where
        The folder of the run.
    other
        A name that is free.
    status
        What the manifest there says; None where there is none.
    """
    resume = f"resume it (longwall resume {where}), "
    replace = "replace it (--overwrite, or run.overwrite = true), or "
    ways = {None: "it is not the folder of a run; ", "done": f"the run is finished; {replace}"}
    return InputError(
        f'{where} exists already: {ways.get(status, resume + replace)}choose another name: "--set run.name={other}"'
    )
