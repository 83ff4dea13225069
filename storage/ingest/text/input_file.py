"""Open an input file, plain or compressed, and turn what can go wrong into messages."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import BinaryIO

from longwall.storage.errors import InputError
from longwall.storage.ingest.text.compression import (
    COMPRESSIONS,
    DECOMPRESSION_BYTES,
    decompressed,
    is_tar,
    member_name,
    suffixes_of,
    xz_bytes,
    zip_names,
)
from longwall.storage.memory.sizes import round_size
from longwall.storage.stored_files import SpecialFile, open_regular

_LEAST_FOR_XZ = 2**24  # bytes: the preset that xz takes by itself needs less
Progress = Callable[[int, int | None], None]
"""Called with (bytes of the file consumed, bytes of the file)."""


def format_suffix(path: Path) -> str:
    """Return the extension that names the format: lower case, below .gz or the like; "" where there is none.

    The format of an archive is that of the file in it.
    """
    suffixes = suffixes_of(path)
    compression = suffixes.pop() if suffixes[-1] in COMPRESSIONS else ""
    if (compression == ".zip" or is_tar(path)) and (name := _name_inside(path)):
        return PurePath(name).suffix.lower()
    return suffixes[-1] if suffixes else ""


def _name_inside(path: Path) -> str:
    try:
        with open_input(path, buffering=0) as file:
            return member_name(path, file)
    except InputError:
        return ""


def within_zip(path: Path) -> tuple[Path, str]:
    """Return the zip archive that a path leads into, and the name there; for other paths, the path and ""."""
    for parent in path.parents:
        if parent.suffix.lower() == ".zip" and os.path.isfile(parent):  # noqa: PTH113 - it raises no error
            return parent, path.relative_to(parent).as_posix()
    return path, ""


def paths_within(path: Path) -> list[Path]:
    """Return paths that lead to the files in a zip archive; none if it cannot be read."""
    try:
        with open_input(path, buffering=0) as file:
            names = zip_names(file)
    except InputError:
        return []
    return [path / name for name in names if ".." not in name.split("/") and within_zip(path / name) == (path, name)]


@contextmanager
def input_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals to read `path` into `InputError`."""
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file; check the path") from error
    except IsADirectoryError as error:
        raise InputError(f"{path}: this is a folder, neither a graph file nor a graph store; give a file") from error
    except PermissionError as error:
        raise InputError(f"{path}: no permission to read this file; change its mode or its owner") from error
    except SpecialFile as error:
        raise InputError(
            f"{path}: this is not a regular file but a pipe or a device; write its contents to a file"
        ) from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); check the file") from error


def open_input(path: Path, buffering: int = -1) -> BinaryIO:
    """Open a file which can be read more than once; `buffering` is that of `open`.

    Raises
    ------
    InputError
        There is no such file, it may not be read, or it is a pipe or a device.
    """
    with input_errors(path):
        try:
            return os.fdopen(open_regular(path), "rb", buffering)
        except ValueError as error:  # a NUL in the path
            raise InputError(f"{path}: cannot be read ({error}); check the path") from error


def decompression_bytes(path: Path, memory: int) -> int:
    """Return the bytes that decompressing a file takes: its window and buffers; `memory` is what reading it has.

    Zstandard's window is 8 MiB at most, except for files compressed with --ultra or --long (up to 128 MiB).

    Raises
    ------
    InputError
        An xz file takes more than memory has room for.
    """
    suffix = suffixes_of(within_zip(path)[0])[-1]
    if suffix != ".xz":
        return DECOMPRESSION_BYTES.get(suffix, 0)
    with open_input(path, buffering=0) as file:
        taken = xz_bytes(path, file)
    if taken > max(memory // 2, _LEAST_FOR_XZ):
        raise InputError(
            f"{path}: decompressing this file takes {round_size(taken)}, and reading it has {round_size(memory)}; "
            "raise memory.host, or compress it with xz -6"
        )
    return taken


class Source:
    """A stream of decompressed bytes which knows how far it is in the file.

    Attributes
    ----------
    path
        The file.
    size
        Its size in bytes, compressed if it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        archive, member = within_zip(path)
        self._compression = suffixes_of(archive)[-1]
        self._file = open_input(archive, buffering=0)
        self.size = os.fstat(self._file.fileno()).st_size
        if self.size == 0:
            self._file.close()
            raise InputError(f"{path}: the file is empty; check that it was written completely")
        try:
            with self._errors():
                self._stream = decompressed(archive, self._file, member)
        except BaseException:
            self._file.close()
            raise

    @property
    def position(self) -> int:
        """Bytes of the file that are consumed."""
        return self._file.tell()

    def fill(self, view: memoryview) -> int:
        """Read until `view` is full or the file ends; return the bytes read.

        Raises
        ------
        InputError
            The file cannot be read, or its compressed data is damaged or ends early.
        """
        filled = 0
        with self._errors():
            while filled < len(view) and (read := self._stream.readinto(view[filled:])):
                filled += read
        return filled

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if self._compression in COMPRESSIONS and error.errno is None:
                raise InputError(
                    f"{self.path}: the {COMPRESSIONS[self._compression]} data is truncated or damaged; "
                    "copy or download the file again"
                ) from error
            with input_errors(self.path):
                raise

    def close(self) -> None:
        """Close the file; more than once does no harm."""
        self._stream.close()
        self._file.close()
