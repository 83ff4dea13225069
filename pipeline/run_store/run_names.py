"""The names of the files of a run: nothing else in its folder is ever removed, and no link in it is followed."""

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

from longwall.storage.errors import InputError

NEW = "+new"
"""Behind the name of a run that is replaced: the place of the run that replaces it. The name of a run has no ``+``."""

_TABLE = r"(embeddings|vertices|counts|patterns)(-\d+)*\.(parquet|shorter)"
_OWN = re.compile(
    rf"""
    ( config\.toml | manifest\.json(\.tmp)? | (metrics|heat)\.parquet
    | results(\.partial)?/{_TABLE}
    | checkpoint/
      ( commits/(until-)?\d{{8}}\.json
      | journal\.jsonl | journal/\d{{8}}\.jsonl              # of earlier versions, whose runs may be replaced
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
    r"""
    ( (config\.toml | manifest\.json(\.tmp)? | (metrics|heat)\.parquet) (\.[0-9a-f]{32}\.partial)?
    | results(\.partial)? | checkpoint
    ) (/|\Z)
    """,
    re.VERBOSE | re.ASCII,
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


def survey(folder: Path, below: str = "") -> tuple[dict[str, int], list[str]]:
    """Look through the folder of a run, following no link.

    Parameters
    ----------
    folder
        The run's.
    below
        Which of its folders to look through, such as ``"results/"``; all by default.

    Returns
    -------
    files, folders
        The names of the files with their bytes, and the folders, those that lie in others first; what lies beside the
        run's own files is left out.

    Raises
    ------
    InputError
        See `require_own`.
    OSError
        If a folder cannot be read.
    """
    files: dict[str, int] = {}
    folders: list[str] = []
    links: list[str] = []

    def look(place: Path, prefix: str) -> None:
        with os.scandir(place) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                name = prefix + entry.name
                if not prefix and not _OURS.match(name):
                    continue
                try:
                    facts = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # a worker that comes late has removed it
                    continue
                if stat.S_ISDIR(facts.st_mode):
                    look(place / entry.name, f"{name}/")
                    folders.append(name)
                elif stat.S_ISREG(facts.st_mode):
                    files[name] = facts.st_size
                else:
                    links.append(name)

    if (folder / below).exists():
        look(folder / below, below)
    require_own(folder, files, links)
    return files, folders


def busy(where: Path | str) -> InputError:
    """What is raised where another process has the run."""
    return InputError(f"{where}: another process is busy with this run; wait for it or stop it")


def not_of_a_run(where: Path | str, name: str) -> InputError:
    """What is raised where something else than a run would be replaced."""
    return InputError(
        f"{where}/{name}: no run writes this, and the folder is to be replaced: move it away, or choose another "
        "run.name"
    )


def no_run(where: Path | str) -> InputError:
    """What is raised where a folder without a manifest would be replaced."""
    return InputError(
        f"{where}: this folder is to be replaced, but holds no manifest.json of a run: move it away, or choose another "
        "run.name"
    )


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


def unlink(folder: Path, name: str) -> None:
    """Remove a file of a run, and follow no link that was put in the place of one of its folders meanwhile."""
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
