"""Read the arrays of a graph store.

Only arrays that are stored in just the way in which `array_writer` stores them are read: what metadata say chooses no
code, and every size is checked before anything is decoded.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import local
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.storage.arrays import array_hash, layout
from longwall.storage.arrays.array_hash import ArrayHash
from longwall.storage.arrays.blosc_chunks import OVERHEAD, decode_chunk, decode_chunks
from longwall.storage.arrays.layout import Layout
from longwall.storage.stored_files import Damage, check_folder, parse_object, plain_file, read_into, read_range

NO_CHUNK = 2**64 - 1
CRC_BYTES = 4
_MOST_METADATA = 2**16  # bytes
_MOST_FILES = 256  # that are kept open
_NO_BYTES, NO_DIGESTS = np.empty(0, np.uint8), np.empty(0, np.uint64)


class StoredArray:
    """One array that `ArrayWriter` wrote; threads may share it. As a context manager it keeps the files open it reads.

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
        self._kept: dict[int, int] | None = None

    def read(self, start: int, out: npt.NDArray[Any], hashed: ArrayHash | None = None) -> None:
        """Decode items into an array, and hash them.

        Parameters
        ----------
        start
            The first item, where a chunk begins, and a segment of the hash.
        out
            Ends with both, or with the array. So much memory at most is taken for what is encoded, and a chunk more
            for the last one, which is padded.
        hashed
            Takes their hash, if there is one.

        Raises
        ------
        Damage
            If the file or a chunk is not what was written.
        """
        size, per_shard = self.layout.chunk, self.layout.per_shard
        meanwhile = hashed if hashed and (size % hashed.segment == 0 or self.layout.chunks == 1) else None
        done = 0
        while done < len(out):
            shard, first = divmod((start + done) // size, per_shard)
            last = min(first + -(-(len(out) - done) // size), per_shard)
            part = out[done : done + (last - first) * size]
            digests = meanwhile.digests(start + done) if meanwhile else NO_DIGESTS
            self._read_shard(shard, first, last, part, digests)
            done += len(part)
        if hashed and not meanwhile:
            hashed.put(start, out)

    def block_bytes(self, chunks: int = 1) -> int:
        """Return the bytes of a block: a power of two of chunks of full length, or all of the array."""
        return min(max(chunks * layout.CHUNK_BYTES, array_hash.SEGMENT_BYTES), self.layout.nbytes)

    def blocks(self, chunks: int = 1) -> list[tuple[int, int]]:
        """Return ranges of items that `read` reads, each the first one and the one behind the last; see above."""
        length, size = self.layout.length, max(1, self.block_bytes(chunks) // self.layout.dtype.itemsize)
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

    def _read_shard(
        self, shard: int, first: int, last: int, out: npt.NDArray[Any], digests: npt.NDArray[np.uint64]
    ) -> None:
        """Decode and hash some chunks of one shard."""
        name, begins = self._shard_name(shard), self._begins[shard][first : last + 1]
        start = int(begins[0])
        most = (last - first) * (self.layout.chunk_bytes + OVERHEAD)
        encoded = self._buffer(most)[: int(begins[-1]) - start]
        with self._file(shard) as file:
            read_into(file, start, encoded.data, name)
        begins = begins - start
        fault = decode_chunks(encoded, begins, out, self.layout.chunk, array_hash.SEGMENT_BYTES, digests)
        if fault >= 0:
            what = f"{name}: chunk {first + fault}"
            decode_chunk(encoded[begins[fault] : begins[fault + 1]], np.empty(self.layout.chunk, out.dtype), what)
            raise Damage(f"{what} cannot be decoded")

    @contextmanager
    def _file(self, shard: int) -> Iterator[int]:
        """Open a shard, or yield the descriptor that is kept."""
        name, kept = self._shard_name(shard), self._kept
        if kept is not None and shard in kept:
            yield kept[shard]
            return
        with plain_file(self._folder / name, name) as file:
            if kept is not None and len(kept) < _MOST_FILES:
                own = os.dup(file)
                if kept.setdefault(shard, own) != own:  # another thread was faster
                    os.close(own)
            yield file

    def __enter__(self) -> "StoredArray":
        self._kept = {}
        return self

    def __exit__(self, *exc: object) -> None:
        kept, self._kept = self._kept, None
        for file in (kept or {}).values():
            os.close(file)

    def _buffer(self, size: int) -> npt.NDArray[np.uint8]:
        """Return memory of this thread, the same for every call of a size: fresh memory comes page by page."""
        buffer: npt.NDArray[np.uint8] = getattr(self._buffers, "bytes", _NO_BYTES)
        if len(buffer) < size:
            buffer = self._buffers.bytes = np.empty(size, np.uint8)
        return buffer[:size]
