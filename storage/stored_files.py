"""Read files that others may have made: regular files only, and nothing that waits; in a store no links either."""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any


class Damage(Exception):
    """Something is missing, was changed, or is not what Longwall writes; the message says what, and in which file."""


class SpecialFile(OSError):
    """A pipe, a socket or a device stands where a regular file is wanted."""


def open_regular(path: Path, *, links: bool = True) -> int:
    """Open a regular file for reading; return its descriptor.

    What stands at the path is looked at once it is open, so that nothing can be put there in between; opening a pipe or
    a device does not wait for its other end.

    Parameters
    ----------
    path
        Where it is.
    links
        Whether it may be a symbolic link to one.

    Raises
    ------
    IsADirectoryError
        If it is a folder.
    SpecialFile
        If it is a pipe, a socket or a device.
    OSError
        If there is none, if it may not be read, or if it is a link and `links` is false.
    ValueError
        If the path has a NUL.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ENXIO:  # sockets cannot be opened
            raise SpecialFile(error.errno, error.strerror, str(path)) from None
        raise
    mode = os.fstat(descriptor).st_mode
    if S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise SpecialFile(errno.EINVAL, os.strerror(errno.EINVAL), str(path))


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
        descriptor = open_regular(path, links=links)
    except PermissionError:
        raise
    except OSError as error:
        raise Damage(f"{name}: {_fault(path)}") from error
    try:
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


def read_into(descriptor: int, start: int, out: memoryview, name: str) -> None:
    """Fill memory with bytes of a file, from byte `start` on.

    Raises
    ------
    Damage
        If the file ends before.
    """
    done = 0
    while done < len(out):
        read = os.preadv(descriptor, [out[done:]], start + done)
        if not read:
            raise Damage(f"{name}: the file ends early")
        done += read


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
