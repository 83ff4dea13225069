"""Streams of decompressed bytes: gzip, bzip2 and Zstandard by Arrow, xz and zip archives by Python."""

import lzma
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from longwall.storage.errors import InputError
from longwall.storage.ingest.text.tar_stream import TarStream, is_aside
from longwall.storage.memory.sizes import round_size
from longwall.storage.system.plain_text import visible

COMPRESSIONS = {".gz": "gzip", ".zst": "Zstandard", ".bz2": "bzip2", ".xz": "xz", ".zip": "zip"}
"""The compression that an extension names."""
DECOMPRESSION_BYTES = {".gz": 2**18, ".zst": 9 * 2**20, ".bz2": 5 * 2**20, ".zip": 2**20}
"""What decompressing takes, except for xz."""
_SHORT = {".tgz": ".gz", ".tbz": ".bz2", ".tbz2": ".bz2", ".txz": ".xz", ".tzst": ".zst"}
"""Short extensions of tar archives, and how these are compressed."""
_XZ_DICTIONARIES = tuple(1 << power for power in range(18, 28))  # bytes; presets take 2^26 at most, others up to 2^32
_MORE_XZ = 2**21  # of a decoder, besides its dictionary
_READ = 2**16
_MOST_AT_ONCE = 2**18  # bytes that a decoder of Python makes, which reads as many
_LARGEST_DIRECTORY = 2**20  # bytes of the list of the members of a zip archive
_DAMAGE = (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, EOFError, struct.error)


def suffixes_of(path: Path) -> list[str]:
    """Return the extensions of a path in lower case, at least one, "" if there is none; .tgz is .tar and .gz."""
    found = [suffix.lower() for suffix in path.suffixes] or [""]
    return [*found[:-1], ".tar", _SHORT[found[-1]]] if found[-1] in _SHORT else found


def is_tar(path: Path) -> bool:
    """Whether a path is that of a tar archive, compressed or not."""
    *_, outer, last = "", *suffixes_of(path)
    return last == ".tar" or (last in COMPRESSIONS and outer == ".tar")


def decompressed(path: Path, file: BinaryIO, member: str = "") -> Any:
    """Return a stream of the decompressed bytes of an opened file; its `readinto` raises `OSError` for damaged data.

    Of an archive it is the file in it: the `member` of a zip archive, or the only one.

    Raises
    ------
    InputError
        The file is an archive without one readable file, or an xz file that takes too much memory.
    """
    stream = _decompressed(path, file, member)
    return TarStream(path, stream) if is_tar(path) else stream


def _decompressed(path: Path, file: BinaryIO, member: str) -> Any:
    suffix = suffixes_of(path)[-1]
    if suffix == ".zip":
        return _PlainErrors(_open_member(path, file, member))
    if suffix == ".xz":
        return _PlainErrors(_XzStream(file, xz_bytes(path, file)))
    if suffix not in COMPRESSIONS:
        return file
    import pyarrow as pa

    # Arrow's decompression holds no lock of the interpreter, and reads files of several members.
    codec = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}[suffix]
    return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), codec)


def member_name(path: Path, file: BinaryIO) -> str:
    """Return the name of the file of an archive that is read, "" if there is none."""
    try:
        if is_tar(path):
            return str(decompressed(path, file).name)
        with _open_member(path, file, "") as member:
            return str(member.name)
    except (InputError, OSError):
        return ""


def zip_names(file: BinaryIO) -> list[str]:
    """Return the names of the files in a zip archive; none if it cannot be read."""
    try:
        return [one.filename for one in zipfile.ZipFile(_BoundedReads(file)).infolist()]
    except _DAMAGE:
        return []


class _PlainErrors:
    """Raises `OSError` for what the decoders of Python raise."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readinto(self, view: memoryview) -> int:
        """Fill a part of `view`; return its size, 0 at the end."""
        try:
            return int(self._stream.readinto(view[:_MOST_AT_ONCE]))
        except (lzma.LZMAError, zlib.error, zipfile.BadZipFile, EOFError) as error:
            raise OSError(str(error)) from error

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()


class _XzStream:
    """Decodes xz data of one or several streams, within a limit of memory."""

    def __init__(self, file: BinaryIO, memory: int) -> None:
        self._file, self._memory = file, memory
        self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memory)
        self._begun = False

    def readinto(self, view: memoryview) -> int:
        """Fill a part of `view`; return its size, 0 at the end."""
        while True:
            text = b""
            if self._decoder.eof:
                text = self._decoder.unused_data.lstrip(b"\0") or self._read().lstrip(b"\0")  # streams may be padded
                if not text:
                    return 0
                self._decoder, self._begun = lzma.LZMADecompressor(lzma.FORMAT_XZ, self._memory), False
            elif self._decoder.needs_input:
                text = self._read()
                if not text:
                    raise EOFError("the data ends early")
            found = self._decoder.decompress(text, len(view))
            if found:
                view[: len(found)] = found
                return len(found)

    def _read(self) -> bytes:
        return self._file.read(_READ)

    def close(self) -> None:
        """Do nothing: the file is closed by its owner."""


def xz_bytes(path: Path, file: BinaryIO) -> int:
    """Return the bytes that decoding takes, by trying: only the decoder knows its headers; the file is rewound."""
    beginning = file.read(_READ)
    file.seek(0)
    for dictionary in _XZ_DICTIONARIES:
        try:
            lzma.LZMADecompressor(lzma.FORMAT_XZ, dictionary + _MORE_XZ).decompress(beginning, 1)
        except lzma.LZMAError as error:
            if "emory" in str(error):
                continue
        return dictionary + _MORE_XZ  # damaged data, too, which is said when it is read
    raise InputError(
        f"{path}: decompressing this file takes more than {round_size(_XZ_DICTIONARIES[-1])}; compress it with xz -9 "
        "or lower"
    )


class _BoundedReads:
    """A file whose reads are bounded, since `zipfile` reads the list of all members at once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def close(self) -> None:
        """Do nothing: the file is closed by its owner."""

    def read(self, size: int = -1) -> bytes:
        """Read at most `size` bytes."""
        if size > _LARGEST_DIRECTORY:
            raise zipfile.BadZipFile("too many members")
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place."""
        if whence == 0 and offset < 0:
            raise zipfile.BadZipFile("a member begins ahead of the file")
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the place."""
        return self._file.tell()

    def seekable(self) -> bool:
        """Say that any place can be read."""
        return True


def _open_member(path: Path, file: BinaryIO, name: str) -> Any:
    """Open a file of a zip archive, or the only one: folders, hidden files and notes beside it are passed over."""
    try:
        archive = zipfile.ZipFile(_BoundedReads(file))
        members = [
            one
            for one in archive.infolist()
            if (one.filename == name if name else not one.is_dir() and not is_aside(one.filename))
        ]
        if len(members) != 1:
            found = f"{len(members):,} files" if members else "no file"
            raise InputError(f"{path}: the archive has {found}; give an archive of one file, or unpack it")
        (member,) = members
        if member.flag_bits & 1:
            raise InputError(f"{path}: the archive has a password; unpack it")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(f"{path}: the archive is compressed by another method than deflate; unpack it")
        return archive.open(member)
    except _DAMAGE as error:
        reason = visible(" ".join(str(error).split()))
        raise InputError(f"{path}: this is not a complete zip archive ({reason:.80}); copy it again") from None
