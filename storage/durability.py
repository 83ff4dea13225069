"""Bring files and names to the disk, so that they outlive a power cut.

Files below a spill folder are removed when the run ends, or by the next run after a crash. So writes below a spill
folder do not wait for the disk; nor do the tables of a call from Python, which are there.
"""

import os
from pathlib import Path

_temporary: set[Path] = set()


def add_temporary(folder: Path) -> None:
    """Do not sync files below a folder of this process, until `discard_temporary`."""
    _temporary.add(folder)


def discard_temporary(folder: Path) -> None:
    """End `add_temporary`."""
    _temporary.discard(folder)


def sync_file(descriptor: int, path: Path) -> None:
    """Sync the content of an open file to the disk, unless its path is below a temporary folder."""
    if _temporary.isdisjoint(path.parents):
        os.fsync(descriptor)


def sync_folder(path: Path) -> None:
    """Sync the names in a folder (or the content of a file) to the disk, unless it is below a temporary folder."""
    if _temporary.isdisjoint((path, *path.parents)):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
