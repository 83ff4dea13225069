"""Write a Zarr array front to back, chunk by chunk, whatever the size of its shards.

Zarr itself encodes a shard as a whole, in memory. Here a shard grows in its file: encoded chunks one behind the
other, then the index that Zarr's `sharding_indexed` codec wants at the end.
"""

from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

CHUNK_BYTES = 256 * 2**10
CHUNKS_PER_SHARD = 256


class ShardedArray:
    """One array of a Zarr group, being written; a context manager.

    Parameters
    ----------
    group : zarr.Group
        Where it is made.
    folder
        The group's folder.
    name
        The array's name.
    dtype, length
        What it holds.
    """

    def __init__(self, group: Any, folder: Path, name: str, dtype: np.dtype[Any], length: int) -> None:
        from numcodecs.blosc import Blosc
        from zarr.codecs import BloscCodec

        # A short array is one short chunk: reading it takes no more memory than it has.
        self._chunk = np.empty(max(1, min(length, CHUNK_BYTES // dtype.itemsize)), dtype.newbyteorder("<"))
        chunks = -(-length // len(self._chunk))
        self._per_shard = min(CHUNKS_PER_SHARD, chunks)
        group.create_array(
            name,
            shape=(length,),
            dtype=dtype,
            chunks=(len(self._chunk),),
            shards=(len(self._chunk) * self._per_shard,),
            compressors=BloscCodec(cname="lz4", clevel=5, shuffle="bitshuffle"),
        )
        self._blosc = Blosc("lz4", clevel=5, shuffle=Blosc.BITSHUFFLE)
        self._folder = folder / name / "c"
        self._folder.mkdir()
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
        index = np.full((self._per_shard, 2), 2**64 - 1, "<u8")  # all ones: there is no such chunk
        index[: len(self._index)] = self._index
        self._file.write(index.tobytes() + checksum(index.tobytes()).to_bytes(4, "little"))
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
