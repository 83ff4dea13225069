"""Open an input file, plain or compressed, and turn what can go wrong into messages."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from longwall.storage.errors import InputError
from longwall.storage.stored_files import SpecialFile, open_regular

Progress = Callable[[int, int | None], None]
"""Called with (bytes of the file consumed, bytes of the file)."""

_COMPRESSIONS = {".gz": "gzip", ".zst": "Zstandard"}
_DECOMPRESSION_BYTES = {".gz": 2**18, ".zst": 9 * 2**20}


def format_suffix(path: Path) -> str:
    """Return the extension that names the format: lower case, below .gz or .zst; "" where there is none."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


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


def decompression_bytes(path: Path) -> int:
    """Return what decompressing a file takes: its window and buffers.

    Zstandard's window is 8 MiB at most, except for files compressed with --ultra or --long (up to 128 MiB).
    """
    return _DECOMPRESSION_BYTES.get(path.suffix.lower(), 0)


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
        self._compression = path.suffix.lower()
        self._file = open_input(path, buffering=0)
        self.size = os.fstat(self._file.fileno()).st_size
        if self.size == 0:
            self._file.close()
            raise InputError(f"{path}: the file is empty; check that it was written completely")
        self._stream = self._decompress()

    def _decompress(self) -> Any:
        if self._compression not in _COMPRESSIONS:
            return self._file
        import pyarrow as pa

        # Arrow's decompression holds no lock of the interpreter, and reads files of several members.
        codec = "gzip" if self._compression == ".gz" else "zstd"
        return pa.CompressedInputStream(pa.PythonFile(self._file, mode="r"), codec)

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
        try:
            while filled < len(view) and (read := self._stream.readinto(view[filled:])):
                filled += read
        except OSError as error:
            if self._compression in _COMPRESSIONS and error.errno is None:
                raise InputError(
                    f"{self.path}: the {_COMPRESSIONS[self._compression]} data is truncated or damaged; "
                    "copy or download the file again"
                ) from error
            with input_errors(self.path):
                raise
        return filled

    def close(self) -> None:
        """Close the file; more than once does no harm."""
        self._stream.close()
        self._file.close()
