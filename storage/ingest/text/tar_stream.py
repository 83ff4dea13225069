"""The file in a tar archive as a stream of bytes; archives such as KONECT's have notes beside it."""

import tarfile
from pathlib import Path
from typing import Any

from longwall.storage.errors import InputError
from longwall.storage.system.plain_text import visible

_BLOCK = 512
_ASIDE = ("readme", "license", "__macosx")
_ASIDE_IN_TAR = ("meta.", "ent.")  # of KONECT: about the graph, and about its vertices
_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
_EMPTY = (tarfile.DIRTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)


def is_aside(name: str) -> bool:
    """Whether a member of an archive is hidden, or a note beside the file that counts."""
    parts = name.lower().split("/")
    return any(part.startswith((".", "__macosx")) and part != "." for part in parts) or parts[-1].startswith(_ASIDE)


class TarStream:
    """The only file of an archive; folders, links, hidden files and notes beside it are passed over.

    Memory is bounded, as Python's `tarfile` does not bound it: it reads long names, of any size, as a whole.

    Attributes
    ----------
    name
        The name of the file.

    Parameters
    ----------
    path
        The archive, for messages.
    stream
        Its bytes; has `readinto`.

    Raises
    ------
    InputError
        The archive has no file, or, in reading, several ones, or it is damaged.
    OSError
        What `stream` raises.
    """

    def __init__(self, path: Path, stream: Any) -> None:
        self._path, self._stream = path, stream
        self._left = self._padding = 0  # bytes of the file, and behind it
        name = self._next()
        if name is None:
            raise InputError(f"{path}: the archive has no file; unpack it, and give the graph")
        self.name = name

    def readinto(self, view: memoryview) -> int:
        """Fill a part of `view`; return its size, 0 at the end."""
        if self._left == 0:
            self._skip(self._padding)
            self._padding = 0
            if (other := self._next()) is not None:
                raise InputError(
                    f"{self._path}: the archive has several files, {self.name:.80} and {other:.80}; unpack it, and "
                    "give one of them"
                )
            return 0
        count = int(self._stream.readinto(view[: self._left]))
        if count == 0:
            raise self._damaged()
        self._left -= count
        return count

    def close(self) -> None:
        """Close the stream."""
        if hasattr(self._stream, "close"):
            self._stream.close()

    def _next(self) -> str | None:
        """Go to the next file; return its name, None at the end."""
        header = memoryview(bytearray(_BLOCK))
        while True:
            filled = 0
            while filled < _BLOCK and (count := self._stream.readinto(header[filled:])):
                filled += count
            if filled == 0 or not any(header):
                return None
            try:
                member = tarfile.TarInfo.frombuf(bytes(header[:filled]), "utf-8", "replace")
            except tarfile.HeaderError:
                raise self._damaged() from None
            if member.size < 0:
                raise self._damaged()
            padding = -member.size % _BLOCK
            if member.type in _FILES and not self._is_aside(member.name):
                self._left, self._padding = member.size, padding
                return visible(member.name)
            if member.type not in _EMPTY:
                self._skip(member.size + padding)

    def _is_aside(self, name: str) -> bool:
        return is_aside(name) or name.rpartition("/")[2].startswith(_ASIDE_IN_TAR)

    def _skip(self, size: int) -> None:
        buffer = memoryview(bytearray(min(size, 2**16)))
        while size:
            count = self._stream.readinto(buffer[:size])
            if count == 0:
                raise self._damaged()
            size -= count

    def _damaged(self) -> InputError:
        return InputError(f"{self._path}: this is not a complete tar archive; copy it again, or unpack it")
