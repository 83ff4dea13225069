"""Checksums (SHA-256) of files: of one that is being written, and of one that is read."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from longwall.storage.durability import sync_file
from longwall.storage.errors import naming


class HashedFile:
    """A file that is written from its beginning to its end, and hashed meanwhile; its errors name it.

    As a context manager it is closed as it is, unless it was finished.
    """

    def __init__(self, path: Path):
        self._path, self._file = path, path.open("wb")
        self._sum = hashlib.sha256()
        self._abandoned = False

    @property
    def closed(self) -> bool:
        """Whether it was closed, as Arrow asks."""
        return self._file.closed

    def write(self, data: Any) -> int:
        """Append bytes, or an array; do nothing once the file is abandoned, since Arrow then empties its buffer."""
        if self._abandoned:
            return memoryview(data).nbytes
        with naming(self._path):
            written = self._file.write(data)
        self._sum.update(data)
        return written

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._file.tell()

    def flush(self) -> None:
        """Pass what was written to the operating system."""
        if not self._abandoned:
            with naming(self._path):
                self._file.flush()

    def finish(self) -> dict[str, Any]:
        """Sync the file to the disk, close it, and return its `bytes` and its checksum, `sha256`."""
        with naming(self._path):
            self._file.flush()
            sync_file(self._file.fileno(), self._path)
            size = self._file.tell()
            self._file.close()
        return {"bytes": size, "sha256": self._sum.hexdigest()}

    def close(self) -> None:
        """Close the file."""
        with naming(self._path):
            self._file.close()

    def abandon(self) -> None:
        """Close the file as it is; nothing happens where it is closed."""
        self._abandoned = True
        with suppress(OSError):
            self._file.close()

    def __enter__(self) -> HashedFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.abandon()


def file_sha256(file: BufferedIOBase) -> str:
    """Return the checksum of a whole file, which was opened for reading."""
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()
