"""The names of the files of a run: nothing else in its folder is ever removed, and no link in it is followed."""

import re
from collections.abc import Iterable
from pathlib import Path

from longwall.storage.errors import InputError

MANIFEST, CONFIG = "manifest.json", "config.toml"
HISTORY, REPORT = "history.json", "report.html"
"""What happened in the run when, and the page that a person reads."""
RESULTS, PUBLISHED, CHECKPOINT = "results.partial/", "results/", "checkpoint/"
"""The folders of a run: its results until it is done, its results from then on, and what only the run itself reads."""
NEW = "+new"
"""Behind the name of a run that is replaced: the place of the run that replaces it. The name of a run has no ``+``."""

_TABLE = r"(embeddings|vertices|edges|counts|sizes|patterns|rows)(-\d+)*\.(parquet|shorter)"
_OWN = re.compile(
    rf"""
    ( config\.toml | (manifest\.json | history\.json | report\.html)(\.tmp)? | (metrics|heat)\.parquet
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
_RESERVED = re.compile(
    r"""
    ( (config\.toml | (manifest\.json | history\.json | report\.html)(\.tmp)? | (metrics|heat)\.parquet)
      (\.[0-9a-f]{32}\.partial)?
    | results(\.partial)? | checkpoint
    ) (/|\Z)
    """,
    re.VERBOSE | re.ASCII,
)


def is_own(name: object) -> bool:
    """Return whether a run writes a file of that name, which is relative to its folder."""
    return isinstance(name, str) and _OWN.fullmatch(name) is not None


def is_reserved(name: str) -> bool:
    """Return whether only a run may have something of that name: one of its files or folders, or what lies in these."""
    return _RESERVED.match(name) is not None


def require_own(where: Path | str, files: Iterable[str], others: Iterable[str] = ()) -> None:
    """Check that all files in the places of a run's files are the run's; what lies beside them does not matter.

    Parameters
    ----------
    where
        The run's folder.
    files
        Names of files in it.
    others
        Names of what is neither a file nor a folder.

    Raises
    ------
    InputError
        If something is not.
    """
    for name in filter(is_reserved, others):
        raise InputError(f"{where}/{name}: this is a link, a pipe or a device; the folder of a run has none: remove it")
    for name in files:
        if "/" in name and is_reserved(name) and not is_own(name):
            raise InputError(f"{where}/{name}: this is no file of the run: move it out of the run's folder")


def busy(where: Path | str) -> InputError:
    """Return the error for a run that another process has."""
    return InputError(f"{where}: another process is busy with this run; wait for it or stop it")
