"""Write and read Zarr arrays chunk by chunk, whatever the size of their shards.

Zarr itself encodes a shard as a whole, in memory. Here a shard grows in its file: encoded chunks one behind the
other, then the index that Zarr's `sharding_indexed` codec wants at the end. Only arrays that are stored in just this
way are read: what metadata say chooses no code, and every size is checked before anything is decoded.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from longwall.storage.concurrency import map_ordered
from longwall.storage.graph.blosc_chunks import OVERHEAD, decode_chunk
from longwall.storage.stored_files import Damage, check_folder, parse_object, plain_file, read_range

CHUNK_BYTES = 256 * 2**10  # at most, where an array is read
CHUNKS_PER_SHARD = 256
CHUNKS_A_READ = 8
_BLOSC = {"cname": "lz4", "clevel": 5}
_NO_CHUNK = 2**64 - 1
_MOST_METADATA = 2**16  # bytes
_CRC_BYTES = 4


@dataclass(frozen=True)
class Layout:
    """How an array is cut.

    Attributes
    ----------
    dtype, length
        What it holds.
    chunk
        Items of a chunk; a short array is one short chunk, so that reading it takes no more memory than it has.
    chunks
        Chunks of the array; the last one is padded.
    per_shard
        Chunks of a shard; the last shard has fewer.
    """

    dtype: np.dtype[Any]
    length: int
    chunk: int
    chunks: int
    per_shard: int

    @classmethod
    def of(cls, dtype: np.dtype[Any], length: int) -> "Layout":
        """The layout of an array."""
        chunk = max(1, min(length, CHUNK_BYTES // dtype.itemsize))
        chunks = -(-length // chunk)
        return cls(dtype.newbyteorder("<"), length, chunk, chunks, max(1, min(CHUNKS_PER_SHARD, chunks)))

    @classmethod
    def described(cls, document: dict[str, Any], dtype: np.dtype[Any]) -> "Layout | None":
        """The layout of an array of a type that has these metadata; None if there is none."""
        match document:
            case {
                "shape": [int(length)],
                "chunk_grid": {"configuration": {"chunk_shape": [int(shard)]}},
                "codecs": [{"configuration": {"chunk_shape": [int(chunk)]}}],
            } if 0 <= length < 2**60 and 0 < chunk <= cls.of(dtype, length).chunk:
                layout = cls(dtype.newbyteorder("<"), int(length), chunk, -(-length // chunk), shard // chunk)
                if 0 < layout.per_shard <= CHUNKS_PER_SHARD and document == layout.document():
                    return layout
        return None

    def document(self) -> dict[str, Any]:
        """Return the array's metadata as Zarr v3 wants them."""
        bytes_codec = {"name": "bytes", "configuration": {"endian": "little"}}
        blosc = {"typesize": self.dtype.itemsize, **_BLOSC, "shuffle": "bitshuffle", "blocksize": 0}
        sharding = {
            "chunk_shape": [self.chunk],
            "codecs": [bytes_codec, {"name": "blosc", "configuration": blosc}],
            "index_codecs": [bytes_codec, {"name": "crc32c"}],
            "index_location": "end",
        }
        return {
            "shape": [self.length],
            "data_type": self.dtype.name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [self.chunk * self.per_shard]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0,
            "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
            "attributes": {},
            "zarr_format": 3,
            "node_type": "array",
            "storage_transformers": [],
        }


class ShardedArray:
    """One array of a Zarr group, being written; a context manager.

    Parameters
    ----------
    folder
        The group's folder.
    name
        The array's name.
    dtype, length
        What it holds.
    """

    def __init__(self, folder: Path, name: str, dtype: np.dtype[Any], length: int) -> None:
        from numcodecs.blosc import Blosc

        layout = Layout.of(dtype, length)
        self._chunk = np.empty(layout.chunk, layout.dtype)
        self._per_shard = layout.per_shard
        self._blosc = Blosc(**_BLOSC, shuffle=Blosc.BITSHUFFLE)
        self._folder = folder / name / "c"
        self._folder.mkdir(parents=True)
        (folder / name / "zarr.json").write_text(json.dumps(layout.document(), indent=2))
        self._shards = 0
        self._file: BinaryIO | None = None
        self._index: list[tuple[int, int]] = []
        self._filled = 0

    def append(self, values: npt.NDArray[Any]) -> None:
        """Write the next items."""
        start = 0
        while start < len(values):
            part = values[start : start + len(self._chunk) - self._filled]
            self._chunk[self._filled : self._filled + len(part)] = part
            self._filled += len(part)
            start += len(part)
            if self._filled == len(self._chunk):
                self._end_chunk()

    def finish(self) -> None:
        """Write what is left; the array must have all its items."""
        if self._filled:
            self._chunk[self._filled :] = 0  # Zarr's chunks are all of one size, the last one is padded
            self._end_chunk()
        if self._file is not None:
            self._end_shard()

    def _end_chunk(self) -> None:
        encoded = self._blosc.encode(self._chunk)
        if self._file is None:
            self._file = (self._folder / str(self._shards)).open("wb")
        self._index.append((self._file.tell(), len(encoded)))
        self._file.write(encoded)
        self._filled = 0
        if len(self._index) == self._per_shard:
            self._end_shard()

    def _end_shard(self) -> None:
        from google_crc32c import value as checksum

        assert self._file is not None
        index = np.full((self._per_shard, 2), _NO_CHUNK, "<u8")
        index[: len(self._index)] = self._index
        self._file.write(index.tobytes() + checksum(index.tobytes()).to_bytes(_CRC_BYTES, "little"))
        self._file.close()
        self._file, self._index = None, []
        self._shards += 1

    def __enter__(self) -> "ShardedArray":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()


class StoredArray:
    """One array that `ShardedArray` wrote; threads may share it.

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

    @property
    def nbytes(self) -> int:
        """Bytes of the array in memory."""
        return self.layout.length * self.layout.dtype.itemsize

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a chunk in memory."""
        return self.layout.chunk * self.layout.dtype.itemsize

    def read(self, start: int, out: npt.NDArray[Any]) -> None:
        """Decode items into an array.

        Parameters
        ----------
        start
            The first item, where a chunk begins.
        out
            Ends with a chunk, or with the array.

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

    def blocks(self, chunks: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of items, of so many chunks each."""
        size = self.layout.chunk * chunks
        for start in range(0, self.layout.length, size):
            yield start, min(start + size, self.layout.length)

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
            end = os.fstat(file).st_size - size - _CRC_BYTES
            if end < 0:
                raise Damage(f"{name}: the file ends early")
            text = read_range(file, end, size + _CRC_BYTES, name)
        if checksum(text[:size]).to_bytes(_CRC_BYTES, "little") != text[size:]:
            raise Damage(f"{name}: the index of the chunks was changed")
        index = np.frombuffer(text[:size], "<u8").reshape(-1, 2)
        lengths = index[:chunks, 1]
        begins = np.zeros(chunks + 1, np.int64)
        if int(lengths.max(initial=0)) <= self.chunk_bytes + OVERHEAD:
            np.cumsum(lengths, out=begins[1:])
        whole = begins[-1] == end and bool((index[:chunks, 0] == begins[:-1].astype(np.uint64)).all())
        if not whole or bool((index[chunks:] != _NO_CHUNK).any()):
            raise Damage(f"{name}: the index of the chunks does not fit the file")
        return begins

    def _read_shard(self, shard: int, first: int, last: int, out: npt.NDArray[Any]) -> None:
        """Decode some chunks of one shard."""
        name, begins, size = self._shard_name(shard), self._begins[shard], self.layout.chunk
        with plain_file(self._folder / name, name) as file:
            start = int(begins[first])
            encoded = memoryview(read_range(file, start, int(begins[last]) - start, name))
        for chunk in range(first, last):
            at = (chunk - first) * size
            part = encoded[int(begins[chunk]) - start : int(begins[chunk + 1]) - start]
            items = out[at : at + size]
            padded = items if len(items) == size else np.empty(size, self.layout.dtype)
            decode_chunk(part, padded, f"{name}: chunk {chunk}")
            if padded is not items:
                items[:] = padded[: len(items)]


def read_blocks(stored: StoredArray, workers: int) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """Yield an array in blocks of whole chunks, with the first item's number, read ahead by threads."""

    def read(bounds: tuple[int, int]) -> tuple[int, npt.NDArray[Any]]:
        block = np.empty(bounds[1] - bounds[0], stored.layout.dtype)
        stored.read(bounds[0], block)
        return bounds[0], block

    return map_ordered(read, stored.blocks(CHUNKS_A_READ), workers)
