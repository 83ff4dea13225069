"""One embedding table on disk: a Zarr v3 group in one file, written whole or not at all and checked when read.

Every array is one shard of compressed pieces, each with a CRC-32C, so that writing and reading need a MiB of
scratch whatever the size of the table. The file is a Zarr "zip store"; it is written and read here, without
zarr-python, whose ten milliseconds per group are more than the compression takes. A folder of one file per array
takes longer to make than to fill.

Values are stored in the smallest unsigned type that holds them and offsets as their differences. Where chunks go
and when is not decided here.
"""

import json
import os
import struct
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.storage.arrays.blosc_chunks import OVERHEAD, decode_chunk
from longwall.storage.arrays.layout import array_document
from longwall.storage.durability import sync_folder
from longwall.storage.errors import FULL, RunError
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.stored_files import Damage, parse_object, plain_file, read_range
from longwall.storage.tables.embedding_table import EmbeddingTable

FORMAT = "longwall-chunk"
_PIECE = 2**18  # bytes that are compressed at once: scratch stays small and in the cache
_BLOSC: dict[str, Any] = {"cname": "lz4", "clevel": 1, "shuffle": 1}
_OVERHEAD = 64  # bytes that a piece may cost beyond its own: Blosc's header, two checksums, its index entry
_METADATA = 2048  # bytes of metadata per array, at most
_MOST_METADATA = 2**18
_LOCAL_HEADER = 30  # bytes of a zip file's header of a member, without the name and more
_MOST_ITEMS = 2**44  # sums of a piece's offsets cannot overflow then
_TYPES = ("uint8", "uint16", "uint32", "uint64", "int64")
_UNREADABLE = (  # raised for an archive that was changed; NotImplementedError by zipfile, for members it cannot unpack
    *(Damage, OSError, zipfile.BadZipFile, struct.error, EOFError),
    *(KeyError, ValueError, OverflowError, RuntimeError, NotImplementedError),
)


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """What is known of a stored chunk without reading it.

    Attributes
    ----------
    rows
        Rows of the table.
    nbytes
        Bytes of its arrays in memory.
    stored
        Bytes of its file.
    checksum
        CRC-32C of its metadata, in which those of its contents are: no other chunk has it.
    """

    rows: int
    nbytes: int
    stored: int
    checksum: int


@dataclass(frozen=True)
class _Stored:
    """One array as it is stored.

    Attributes
    ----------
    name
        ``values<level>`` or ``offsets<level>``.
    size
        Entries on disk (an array of offsets has one less than in memory).
    dtype, stored_dtype
        NumPy names of the types in memory and on disk.
    piece
        Entries of a piece.
    checksum
        CRC-32C of the file's index, which holds where each piece is.
    contents
        CRC-32C of the checksums of the pieces.
    """

    name: str
    size: int
    dtype: str
    stored_dtype: str
    piece: int
    checksum: int
    contents: int

    @property
    def pieces(self) -> int:
        return -(-self.size // self.piece)


def write_chunk(table: EmbeddingTable, path: Path, disk: MemoryBudget, *, sync: bool = False) -> ChunkRecord:
    """Write a table; it appears at `path` complete or not at all.

    Parameters
    ----------
    table
        Arrays of NumPy; values are not negative.
    path
        The file to make; its folder exists.
    disk
        Budget of the stored bytes: first the uncompressed size is reserved, then what was really written. The
        bytes stay reserved until `remove_chunk`.
    sync
        Whether the chunk must survive a crash of the machine.

    Returns
    -------
    ChunkRecord
        Rows, sizes and the checksum.

    Raises
    ------
    BudgetExceeded
        If `disk` has no room.
    RunError
        If the disk is full or the folder cannot be written; nothing is left behind.
    """
    arrays = [(f"values{level}", values) for level, values in enumerate(table.values)]
    arrays += [(f"offsets{level}", offsets) for level, offsets in enumerate(table.offsets)]
    bound = sum(array.nbytes + _METADATA + _OVERHEAD * (2 + array.nbytes // _PIECE) for _, array in arrays) + _METADATA
    partial = path.with_name(f".{path.name}.partial")
    reserved, began = disk.reserve(bound, "a spilled chunk"), time.perf_counter()
    try:
        with _write_errors(path):
            with zipfile.ZipFile(partial, "w") as archive:
                stored = [_write_array(archive, name, array) for name, array in arrays]
                checksum = _write_metadata(archive, stored, len(table))
            size = partial.stat().st_size
            if sync:
                sync_folder(partial)
            partial.rename(path)
            if sync:
                sync_folder(path.parent)
    except BaseException:
        partial.unlink(missing_ok=True)
        reserved.release()
        raise
    reserved.resize(size, "a spilled chunk")
    disk.add_writing(size, time.perf_counter() - began)
    return ChunkRecord(len(table), table.nbytes, size, checksum)


def read_chunk(
    path: Path, levels: Sequence[int] | None = None, *, checksum: int | None = None, below: int = 2**64
) -> EmbeddingTable:
    """Read a chunk and check all that is read; nothing is decoded that `write_chunk` does not write.

    Parameters
    ----------
    path
        What `write_chunk` made.
    levels
        Read only the arrays that the columns of these levels need; the others are None in the table. By default
        all are read.
    checksum
        Of the chunk's record: distinguishes the chunk from any other complete one under its name.
    below
        All values must be smaller; a chunk that others may have written can hold any with all checksums right.

    Returns
    -------
    EmbeddingTable
        Arrays of NumPy, of the types that were written.

    Raises
    ------
    RunError
        If anything is missing or was changed, or if it is another chunk.
    """
    try:
        with (
            plain_file(path, path.name) as descriptor,
            zipfile.ZipFile(_Frugal(descriptor, closefd=False)) as archive,
        ):
            stored = _read_metadata(archive, checksum)
            depth = (len(stored) + 1) // 2
            wanted = range(depth) if levels is None else levels
            first = min(wanted)

            def read(name: str, most: int) -> NDArray[Any]:
                return _read_array(descriptor, archive.getinfo(f"{name}/c/0"), stored[name], most)

            return EmbeddingTable(
                tuple(read(f"values{level}", below - 1) if level in wanted else None for level in range(depth)),
                tuple(
                    read(f"offsets{level}", stored[f"values{level + 1}"].size) if level >= first else None
                    for level in range(depth - 1)
                ),
            )
    except PermissionError as error:
        raise RunError(f"{path}: no permission to read the spilled chunk: resume the run, or run again") from error
    except _UNREADABLE as error:
        raise RunError(f"{path}: the spilled chunk is damaged or gone: resume the run, or run again") from error


def remove_chunk(path: Path, record: ChunkRecord, disk: MemoryBudget) -> None:
    """Remove a chunk's file and return its bytes to the budget; a file that is gone does no harm."""
    path.unlink(missing_ok=True)
    disk.charge(-record.stored, "a spilled chunk")


def _write_array(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> _Stored:
    """Write the one shard of an array: pieces, each followed by its checksum, then the index of the pieces."""
    import google_crc32c
    from numcodecs import Blosc

    differences = name.startswith("offsets")
    size = array.size - differences
    kind = np.min_scalar_type(int(array[-1] if differences else array.max(initial=0)))
    piece = max(-(-size // max(-(-size * kind.itemsize // _PIECE), 1)), 1)
    codec = Blosc(**_BLOSC)
    buffer = np.zeros(piece, kind)
    index = np.empty((-(-size // piece), 2), "<u8")
    written = contents = 0
    with archive.open(f"{name}/c/0", "w", force_zip64=True) as file:
        for i, begin in enumerate(range(0, size, piece)):
            end = min(begin + piece, size)
            part = buffer[: end - begin]
            if differences:
                np.subtract(array[begin + 1 : end + 1], array[begin:end], out=part, casting="unsafe")
            else:
                np.copyto(part, array[begin:end], casting="unsafe")
            buffer[end - begin :] = 0
            encoded = codec.encode(buffer)
            file.write(encoded)
            ending = google_crc32c.value(encoded).to_bytes(4, "little")
            file.write(ending)
            contents = google_crc32c.extend(contents, ending)
            index[i] = written, len(encoded) + 4
            written += len(encoded) + 4
        checksum = google_crc32c.value(index.tobytes())
        file.write(index.tobytes() + checksum.to_bytes(4, "little"))
    return _Stored(name, size, array.dtype.name, kind.name, piece, checksum, contents)


class _Frugal(FileIO):
    """A file of which only small parts are read at once, whatever an archive says of the length of its directory."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read up to `size` bytes; by default, what is left."""
        left = os.fstat(self.fileno()).st_size - self.tell()
        size = left if size is None or size < 0 else min(size, left)
        if size > _MOST_METADATA:
            raise Damage("the archive is none that Longwall writes")
        return super().read(size) or b""


def _read_array(descriptor: int, member: zipfile.ZipInfo, stored: _Stored, most: int) -> NDArray[Any]:
    import google_crc32c

    name = member.filename
    start, size = _place(descriptor, member)
    index_size = 16 * stored.pieces
    pieces_size = size - index_size - 4
    text = read_range(descriptor, start + pieces_size, index_size, name) if pieces_size >= 0 else b""
    if google_crc32c.value(text) != stored.checksum:
        raise Damage(f"{name}: the index was changed")
    begins, lengths = np.frombuffer(text, "<u8").reshape(-1, 2).T
    if (
        int(lengths.max(initial=0)) > stored.piece * np.dtype(stored.stored_dtype).itemsize + OVERHEAD + 4
        or int(lengths.min(initial=4)) < 4
        or int(lengths.sum()) != pieces_size
    ):
        raise Damage(f"{name}: the index does not fit the file")
    if (begins != np.cumsum(lengths) - lengths).any():
        raise Damage(f"{name}: the index does not fit the file")

    differences = stored.name.startswith("offsets")
    array = np.zeros(stored.size + differences, stored.dtype)
    values = array[int(differences) :]
    buffer = np.empty(stored.piece, stored.stored_dtype)
    most = min(most, int(np.iinfo(array.dtype).max))
    contents = 0
    for i, length in enumerate(lengths.tolist()):
        piece = read_range(descriptor, start, length, name)
        start += length
        encoded, ending = piece[:-4], piece[-4:]
        if google_crc32c.value(encoded) != int.from_bytes(ending, "little"):
            raise Damage(f"{name}: a piece was changed")
        contents = google_crc32c.extend(contents, ending)
        decode_chunk(encoded, buffer, f"{name}: a piece")
        begin = i * stored.piece
        part = values[begin : begin + stored.piece]
        found = buffer[: part.size]
        if int(found.max()) > most:
            raise Damage(f"{name}: a value is too large")
        if differences:
            np.cumsum(found, dtype=array.dtype, out=part)
            part += array[begin]  # where the piece before ends
            if part[-1] > most:
                raise Damage(f"{name}: an offset is too large")
        else:
            np.copyto(part, found, casting="unsafe")
    if contents != stored.contents:
        raise Damage(f"{name}: a piece was exchanged")
    if differences and array[-1] != most:
        raise Damage(f"{name}: the levels do not fit each other")
    return array


def _place(descriptor: int, member: zipfile.ZipInfo) -> tuple[int, int]:
    """Where a member begins in the file, and its bytes; they are there as they are."""
    if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1 or member.header_offset < 0:
        raise Damage(f"{member.filename}: Longwall writes no such archives")
    header = read_range(descriptor, member.header_offset, _LOCAL_HEADER, member.filename)
    begin = member.header_offset + _LOCAL_HEADER
    begin += int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    if member.file_size < 0 or begin + member.file_size > os.fstat(descriptor).st_size:
        raise Damage(f"{member.filename}: the file ends early")
    return begin, member.file_size


def _write_metadata(archive: zipfile.ZipFile, arrays: Sequence[_Stored], rows: int) -> int:
    """Write the metadata and return their checksum."""
    import google_crc32c

    content = {"format": FORMAT, "rows": rows, "arrays": [asdict(array) for array in arrays]}
    checksum: int = google_crc32c.value(json.dumps(content).encode())
    attributes = {**content, "checksum": checksum}
    for array in arrays:
        archive.writestr(f"{array.name}/zarr.json", json.dumps(_zarr_array(array)))
    group = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    archive.writestr("zarr.json", json.dumps(group))
    return checksum


def _zarr_array(stored: _Stored) -> dict[str, Any]:
    dtype, pieces = np.dtype(stored.stored_dtype), max(stored.pieces, 1)
    return array_document(dtype, stored.size, stored.piece, pieces, _BLOSC["clevel"], {"name": "crc32c"})


def _read_metadata(archive: zipfile.ZipFile, expected: int | None) -> dict[str, _Stored]:
    import google_crc32c

    member = archive.getinfo("zarr.json")
    if member.compress_type != zipfile.ZIP_STORED or not 0 <= member.file_size <= _MOST_METADATA:
        raise Damage("the metadata are none that Longwall writes")
    attributes = parse_object(archive.read(member), "zarr.json").get("attributes")
    if not isinstance(attributes, dict):
        raise Damage("there are no metadata")
    checksum = attributes.pop("checksum", None)
    if google_crc32c.value(json.dumps(attributes).encode()) != checksum:
        raise Damage("the metadata were changed")
    if expected not in (None, checksum):
        raise Damage("this is another chunk")
    match attributes:
        case {"format": found, "rows": int(rows), "arrays": [*arrays]} if found == FORMAT and len(attributes) == 3:
            stored = [_checked(array) for array in arrays]
            depth = (len(stored) + 1) // 2
            names = [*(f"values{level}" for level in range(depth)), *(f"offsets{level}" for level in range(depth - 1))]
            sizes = {array.name: array.size for array in stored}
            fits = all(sizes.get(f"offsets{level}") == sizes.get(f"values{level}") for level in range(depth - 1))
            if stored and [array.name for array in stored] == names and fits and stored[depth - 1].size == rows:
                return {array.name: array for array in stored}
    raise Damage("the metadata are none of a table")


def _checked(array: object) -> _Stored:
    """What metadata say of an array, if it can be true."""
    names = [field.name for field in fields(_Stored)]
    if isinstance(array, dict) and list(array) == names and isinstance(array["name"], str):
        stored = _Stored(**array)
        numbers = (stored.size, stored.piece, stored.checksum, stored.contents)
        if (
            all(type(number) is int and 0 <= number < _MOST_ITEMS for number in numbers)
            and stored.dtype in (("int64",) if stored.name.startswith("offsets") else _TYPES)
            and stored.stored_dtype in _TYPES[:4]
            and 0 < stored.piece <= max(_PIECE // np.dtype(stored.stored_dtype).itemsize, 1)
        ):
            return stored
    raise Damage("the metadata are none of an array")


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    """Turn errors of the system into messages that name the budgets that help."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise RunError(
                f"{path}: the disk is full: free some space there, choose another spill folder, "
                "or lower the disk budget"
            ) from error
        raise RunError(
            f"{path}: nothing can be spilled there ({error.strerror or error}): "
            "choose another spill folder, or raise the memory budget"
        ) from error
