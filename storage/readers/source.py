"""Open an input file, plain or compressed, and turn what can go wrong into sentences."""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from longwall.storage.errors import InputError

Progress = Callable[[int, int | None], None]
"""Called with (bytes of the file consumed, bytes of the file)."""

_COMPRESSIONS = {".gz": "gzip", ".zst": "Zstandard"}


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
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); check the file") from error


class Source:
    """A stream of decompressed bytes which knows how far it is in the file."""

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self.path = path
        self._progress = progress
        self._compression = path.suffix.lower()
        with input_errors(path):
            self._file = path.open("rb")
            self._total = path.stat().st_size
        if self._total == 0:
            self._file.close()
            raise InputError(f"{path}: the file is empty; check that it was written completely")
        self._stream = self._decompress()

    def _decompress(self) -> BinaryIO:
        if self._compression == ".gz":
            return cast(BinaryIO, gzip.GzipFile(fileobj=self._file))
        if self._compression == ".zst":
            import pyarrow as pa

            return cast(BinaryIO, pa.CompressedInputStream(pa.PythonFile(self._file, mode="r"), "zstd"))
        return cast(BinaryIO, self._file)

    def read(self, size: int) -> bytes:
        """Read `size` bytes, fewer only at the end of the file.

        Raises
        ------
        InputError
            The file cannot be read, or its compressed data is damaged or ends early.
        """
        parts = io.BytesIO()
        try:
            while parts.tell() < size and (part := self._stream.read(size - parts.tell())):
                parts.write(part)
        except EOFError as error:
            raise self._damaged() from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise self._damaged() from error
        except OSError as error:
            if self._compression == ".zst" and error.errno is None:
                raise self._damaged() from error
            with input_errors(self.path):
                raise
        if self._progress is not None:
            self._progress(self._file.tell(), self._total)
        return parts.getvalue()

    def _damaged(self) -> InputError:
        return InputError(
            f"{self.path}: the {_COMPRESSIONS[self._compression]} data is truncated or damaged; "
            "copy or download the file again"
        )

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        self._file.close()

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
