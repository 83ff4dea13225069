"""Read the files of a folder that others may have made: regular files only, no links, and nothing that waits."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


class Damage(Exception):
    """Something is missing, was changed, or is not what Longwall writes; the message says what, and in which file."""


@contextmanager
def plain_file(path: Path, name: str, *, links: bool = False) -> Iterator[int]:
    """Open a regular file for reading, and yield its descriptor.

    Parameters
    ----------
    path
        Where it is.
    name
        What messages call it.
    links
        Whether it may be a symbolic link to one.

    Raises
    ------
    Damage
        If there is none, or if it is a link, a folder, a pipe or a device.
    OSError
        If it may not be read.
    """
    try:
        # To open a pipe would wait for its writer, without O_NONBLOCK.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | (0 if links else _NO_LINKS))
    except PermissionError:
        raise
    except OSError as error:
        raise Damage(f"{name}: {_fault(path)}") from error
    try:
        if not S_ISREG(os.fstat(descriptor).st_mode):
            raise Damage(f"{name}: {_fault(path)}")
        yield descriptor
    finally:
        os.close(descriptor)


def _fault(path: Path) -> str:
    """Say why there is no regular file."""
    if path.is_symlink():
        return "this is a symbolic link, copy the store without links (cp -rL)"
    return "this is no regular file" if os.path.lexists(path) else "there is no such file"


def check_folder(path: Path, name: str) -> None:
    """Refuse what is no folder, or a link to one.

    Raises
    ------
    Damage
        If it is not.
    """
    try:
        mode = path.lstat().st_mode
    except PermissionError:
        raise
    except OSError as error:
        raise Damage(f"{name}: there is no such folder") from error
    if not S_ISDIR(mode):
        raise Damage(f"{name}: {_fault(path)}" if path.is_symlink() else f"{name}: this is no folder")


def read_range(descriptor: int, start: int, size: int, name: str) -> bytes:
    """Read `size` bytes of a file from byte `start` on.

    Raises
    ------
    Damage
        If the file ends before.
    """
    parts = []
    while size:
        part = os.pread(descriptor, size, start)
        if not part:
            raise Damage(f"{name}: the file ends early")
        parts.append(part)
        start, size = start + len(part), size - len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def parse_object(text: bytes, name: str) -> dict[str, Any]:
    """Parse a JSON object.

    Raises
    ------
    Damage
        If it is none.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:  # also integers of thousands of digits, bytes that are no UTF-8
        raise Damage(f"{name}: this is no JSON") from error
    if not isinstance(found, dict):
        raise Damage(f"{name}: this is no JSON object")
    return found
