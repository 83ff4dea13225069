"""Read the arrays of a graph store.

Only arrays that are stored in just the way in which `array_writer` stores them are read: what metadata say chooses no
code, and every size is checked before anything is decoded.
"""

import os
from pathlib import Path
from threading import local
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.storage.arrays.blosc_chunks import OVERHEAD, decode_chunk
from longwall.storage.arrays.layout import Layout
from longwall.storage.stored_files import Damage, check_folder, parse_object, plain_file, read_into, read_range

NO_CHUNK = 2**64 - 1
CRC_BYTES = 4
_MOST_METADATA = 2**16  # bytes


class StoredArray:
    """One array that `ArrayWriter` wrote; threads may share it.

    Parameters
    ----------
    folder
        The group's folder.
    name
        The array's name.
    dtype, length
        What it must hold; if `length` is None, its metadata say how long it is.

    Attributes
    ----------
    layout
        How it is cut.

    Raises
    ------
    Damage
        If it is anything else, or if files are missing or too short.
    """

    def __init__(self, folder: Path, name: str, dtype: npt.DTypeLike, length: int | None = None) -> None:
        self._folder, self._name = folder, name
        for part in (name, f"{name}/c"):
            check_folder(folder / part, part)
        self.layout = self._checked_layout(np.dtype(dtype), length)
        # Of each chunk: where it begins in its shard, and where it ends.
        self._begins: list[npt.NDArray[np.int64]] = []
        for shard in range(-(-self.layout.chunks // self.layout.per_shard)):
            self._begins.append(self._read_index(shard))
        self._buffers = local()

    def read(self, start: int, out: npt.NDArray[Any]) -> None:
        """Decode items into an array.

        Parameters
        ----------
        start
            The first item, where a chunk begins.
        out
            Ends with a chunk, or with the array. So much memory at most is taken for what is encoded, and a chunk more
            for the last one, which is padded.

        Raises
        ------
        Damage
            If the file or a chunk is not what was written.
        """
        size, per_shard = self.layout.chunk, self.layout.per_shard
        done = 0
        while done < len(out):
            shard, first = divmod((start + done) // size, per_shard)
            last = min(first + -(-(len(out) - done) // size), per_shard)
            part = out[done : done + (last - first) * size]
            self._read_shard(shard, first, last, part)
            done += len(part)

    def blocks(self, segment: int) -> list[tuple[int, int]]:
        """Return ranges of items that `read` reads: of so many each, a power of two, or of a chunk if that is more."""
        size, length = max(segment, self.layout.chunk), self.layout.length
        return [(start, min(start + size, length)) for start in range(0, length, size)]

    def _checked_layout(self, dtype: np.dtype[Any], length: int | None) -> Layout:
        name = f"{self._name}/zarr.json"
        with plain_file(self._folder / name, name) as file:
            document = parse_object(os.pread(file, _MOST_METADATA, 0), name)
        layout = Layout.described(document, dtype)
        if layout is None or length not in (None, layout.length):
            raise Damage(f"{name}: this is no array that Longwall writes")
        return layout

    def _shard_name(self, shard: int) -> str:
        return f"{self._name}/c/{shard}"

    def _read_index(self, shard: int) -> npt.NDArray[np.int64]:
        """Read where the chunks of a shard begin, and where the last one ends; they lie one behind the other."""
        from google_crc32c import value as checksum

        name, layout = self._shard_name(shard), self.layout
        chunks = min(layout.per_shard, layout.chunks - shard * layout.per_shard)
        size = 16 * layout.per_shard
        with plain_file(self._folder / name, name) as file:
            end = os.fstat(file).st_size - size - CRC_BYTES
            if end < 0:
                raise Damage(f"{name}: the file ends early")
            text = read_range(file, end, size + CRC_BYTES, name)
        if checksum(text[:size]).to_bytes(CRC_BYTES, "little") != text[size:]:
            raise Damage(f"{name}: the index of the chunks was changed")
        index = np.frombuffer(text[:size], "<u8").reshape(-1, 2)
        lengths = index[:chunks, 1]
        begins = np.zeros(chunks + 1, np.int64)
        if int(lengths.max(initial=0)) <= layout.chunk_bytes + OVERHEAD:
            np.cumsum(lengths, out=begins[1:])
        whole = begins[-1] == end and bool((index[:chunks, 0] == begins[:-1].astype(np.uint64)).all())
        if not whole or bool((index[chunks:] != NO_CHUNK).any()):
            raise Damage(f"{name}: the index of the chunks does not fit the file")
        return begins

    def _read_shard(self, shard: int, first: int, last: int, out: npt.NDArray[Any]) -> None:
        """Decode some chunks of one shard."""
        name, begins, size = self._shard_name(shard), self._begins[shard], self.layout.chunk
        start = int(begins[first])
        encoded = self._buffer(int(begins[last]) - start)
        with plain_file(self._folder / name, name) as file:
            read_into(file, start, encoded, name)
        for chunk in range(first, last):
            part = encoded[int(begins[chunk]) - start : int(begins[chunk + 1]) - start]
            items = out[(chunk - first) * size :][:size]
            padded = items if len(items) == size else np.empty(size, self.layout.dtype)
            decode_chunk(part, padded, f"{name}: chunk {chunk}")
            if padded is not items:
                items[:] = padded[: len(items)]

    def _buffer(self, size: int) -> memoryview:
        """Return memory of this thread, the same for every call: fresh memory comes page by page, which takes time."""
        buffer: bytearray = getattr(self._buffers, "bytes", bytearray())
        if len(buffer) < size:
            buffer = self._buffers.bytes = bytearray(size)
        return memoryview(buffer)[:size]
