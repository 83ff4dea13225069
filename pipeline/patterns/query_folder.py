"""Several patterns at once: texts, pattern files, and folders of pattern files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePath
from typing import NamedTuple

from longwall.pipeline.patterns.parse import is_pattern_file, is_pattern_name, parse_pattern
from longwall.pipeline.patterns.pattern import Pattern
from longwall.storage.errors import InputError
from longwall.storage.ingest.data_notes import counts_line
from longwall.storage.system.arguments import brief
from longwall.storage.system.paths import user_path

MOST_QUERIES = 100_000
_REMEMBERED = 1 << 11  # patterns: a config reads each when it is checked, and again when it is planned


class PatternSource(NamedTuple):
    """One of several patterns.

    Attributes
    ----------
    name
        What it is called in results: the name of its file without the suffix, or its text.
    source
        Its text, or the path of its file.
    """

    name: str
    source: str


def is_folder(text: str) -> bool:
    """Say whether a text names a folder, and no pattern."""
    text = text.strip()
    if not text or is_pattern_name(text) or is_pattern_file(text):
        return False
    try:
        return text.endswith("/") or user_path(text).is_dir()
    except InputError:
        return False


def queries_of(sources: Sequence[str]) -> list[PatternSource]:
    """Return the patterns that texts, files and folders stand for; those of a folder in the order of their names.

    Raises
    ------
    InputError
        If a folder is not there, or has no pattern files.
    """
    found: list[PatternSource] = []
    for source in sources:
        if is_folder(source):
            found += _files_of(source.strip())
        else:
            found.append(PatternSource(_name(source.strip()), source.strip()))
    if not found:
        raise InputError("there is no pattern: give at least one")
    if len(found) > MOST_QUERIES:
        raise InputError(f"there are {len(found):,} patterns: give at most {MOST_QUERIES:,} at a time")
    return found


def _files_of(folder: str) -> list[PatternSource]:
    try:
        names = [file.name for file in user_path(folder).iterdir()]
    except OSError as error:
        reason = "there is no such folder" if isinstance(error, FileNotFoundError) else str(error.strerror)
        raise InputError(f"{brief(folder)}: {reason}; give a folder of .graph or .graphml files") from None
    files = sorted((name for name in names if is_pattern_file(name) and name[0] != "."), key=_by_number)
    if not files:
        raise InputError(f"{brief(folder)}: the folder has no .graph or .graphml files")
    return [PatternSource(_name(name), str(user_path(folder) / name)) for name in files]


def _by_number(name: str) -> list[tuple[int, str]]:
    """Return what names are sorted by, so that query-2 stands before query-10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"([0-9]{1,18})", name)]


def _name(source: str) -> str:
    return PurePath(source).stem if is_pattern_file(source) else source


def read_query(source: str, labels: tuple[int, ...] | None = None) -> Pattern:
    """Read a pattern as `parse_pattern` does; a file that has not changed is read once."""
    return _read(source, labels, _state(source))


def dropped_line(source: str) -> str:
    """Return one line on the data that is dropped from the pattern of a file, or "" if none is."""
    if not is_pattern_file(source):
        return ""
    from longwall.pipeline.patterns.pattern_files import dropped_of

    return counts_line(source.strip(), dropped_of(user_path(source.strip())))


def _state(source: str) -> tuple[int, ...] | None:
    """Return what changes when a pattern's file does."""
    if not is_pattern_file(source):
        return None
    try:
        facts = user_path(source).stat()
    except (OSError, InputError):
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


@lru_cache(maxsize=_REMEMBERED)
def _read(source: str, labels: tuple[int, ...] | None, state: tuple[int, ...] | None) -> Pattern:  # noqa: ARG001
    return parse_pattern(source, labels)
