"""Which files a path means: one, those of a folder, those that a pattern matches, or those of a list."""

import os
import re
from collections.abc import Iterator, Sequence
from glob import glob
from pathlib import Path, PurePath

from longwall.storage.errors import InputError
from longwall.storage.graph.store_header import is_store
from longwall.storage.ingest.text.input_file import input_errors
from longwall.storage.ingest.text.tu_files import entries_in

Source = str | Path | Sequence[str | Path]
"""A file, a graph store, a folder, a pattern of names, the URL of one of these; or a list of them."""

_PATTERN = re.compile(r"[*?\[]")
_LISTED = 3  # names that a message lists


def source_list(source: Source) -> list[str | Path]:
    """Return the addresses that a source consists of."""
    return [source] if isinstance(source, str | Path) else list(source)


def describe_source(source: Source) -> str:
    """Name a source, for messages and manifests."""
    addresses = [str(address) for address in source_list(source)]
    more = f" and {len(addresses) - _LISTED} more" if len(addresses) > _LISTED else ""
    return ", ".join(addresses[:_LISTED]) + more


def files_of(paths: Sequence[Path]) -> list[Path]:
    """Return the files that paths mean; a graph store, or what is not there, stands for itself.

    A folder or a zip archive with a data set of TU Dortmund is the file of its entries. Below another folder these are
    all files, in the order of their names, but for those that are hidden or begin with ``_``, which Hadoop, Spark and
    Hive put beside their tables.

    Raises
    ------
    InputError
        If there are none, or several that are graph stores.
    """
    files: list[Path] = []
    for path in paths:
        with input_errors(path):
            files += _files(path)
    stores = [file for file in files if is_store(file)]
    if stores and len(files) > 1:
        raise InputError(f"{stores[0]}: this is a graph store, which is a whole graph; give it alone, or give files")
    return files


def _files(path: Path) -> Iterator[Path]:
    folder = path.is_dir() and not is_store(path)
    if (folder or path.suffix.lower() == ".zip") and (entries := entries_in(path)) is not None:
        yield entries
    elif folder:
        below = sorted(_below(path))
        if not below:
            raise InputError(f"{path}: this is a folder without files, and no graph store; give a file, or another one")
        yield from below
    elif _PATTERN.search(str(path)) and not path.exists():
        matching = sorted(map(Path, glob(str(path), recursive=True)))  # noqa: PTH207 - paths may be absolute
        if not matching:
            raise InputError(f"{path}: no file matches this pattern; check the path")
        for match in matching:
            yield from _files(match)
    else:
        yield path


def _below(path: Path) -> Iterator[Path]:
    """Yield the files below a folder; links that lead nowhere are refused where they are opened."""

    def refuse(error: OSError) -> None:
        denied = isinstance(error, PermissionError)
        reason = "no permission to read this folder" if denied else f"cannot be read ({error.strerror or error})"
        raise InputError(f"{error.filename}: {reason}; change its mode or its owner, or give the files themselves")

    for folder, folders, names in os.walk(path, onerror=refuse):
        folders[:] = [name for name in folders if not is_aside(Path(name))]
        for file in (Path(folder, name) for name in names if not is_aside(Path(name))):
            if file.is_file() or not file.exists():
                yield file


def is_aside(path: PurePath) -> bool:
    """Whether a path below a folder is hidden, or begins with ``_``."""
    return any(part.startswith((".", "_")) for part in path.parts)
