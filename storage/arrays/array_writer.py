"""Write the arrays of a graph store, encoded and hashed by threads.

Zarr itself encodes a shard as a whole, in memory. Here a shard grows in its file: encoded chunks one behind the
other, then the index that Zarr's `sharding_indexed` codec wants at the end.
"""

import json
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from math import gcd
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from longwall.storage.arrays import array_hash
from longwall.storage.arrays.array_hash import ArrayHash
from longwall.storage.arrays.array_reader import CRC_BYTES, NO_CHUNK, NO_DIGESTS
from longwall.storage.arrays.blosc_chunks import OVERHEAD, encode_chunks
from longwall.storage.arrays.layout import Layout
from longwall.storage.durability import sync_folder
from longwall.storage.system.concurrency import core_count

Values = npt.NDArray[Any]
Encoded = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]
"""Memory that has chunks, one behind the other, and the bytes of each."""


class WritingThreads:
    """Threads that encode and hash, one that writes, and one that brings finished files to the disk.

    A context manager.

    Attributes
    ----------
    width
        Threads that encode.
    """

    def __init__(self) -> None:
        self.width = core_count()
        self._encoding = ThreadPoolExecutor(self.width, thread_name_prefix="encode")
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="write")
        self._syncing = ThreadPoolExecutor(1, thread_name_prefix="sync")
        self._syncs: list[Future[None]] = []

    def encode(self, function: Callable[..., Encoded], *arguments: Any) -> "Future[Encoded]":
        """Let a thread encode."""
        return self._encoding.submit(function, *arguments)

    def write(self, function: Callable[..., None], *arguments: Any) -> "Future[None]":
        """Let the thread that writes do something, once it has done what came before."""
        return self._writing.submit(function, *arguments)

    def sync(self, path: Path) -> None:
        """Let a thread bring a file to the disk."""
        self._syncs.append(self._syncing.submit(sync_folder, path))

    def settle(self) -> None:
        """Wait until the files are on the disk; raises what went wrong."""
        for sync in self._syncs:
            sync.result()

    def __enter__(self) -> "WritingThreads":
        return self

    def __exit__(self, *exc: object) -> None:
        self._encoding.shutdown(cancel_futures=True)
        self._writing.shutdown(cancel_futures=True)
        self._syncing.shutdown(cancel_futures=True)


class ArrayWriter:
    """One array of a Zarr group, being written; a context manager.

    Items are collected in pieces of some chunks, which threads encode; one thread writes them in their order.

    Parameters
    ----------
    folder
        The group's folder.
    name
        The array's name.
    layout
        What it holds, and how it is cut.
    threads
        Encode, hash and write.
    waiting
        Most pieces that are being encoded or written; each takes twice the bytes of its chunks, and so does one more.
    hashed
        Takes the hash. Threads take it where a chunk has whole segments, this thread where it has not.
    together
        Chunks of a piece, at most.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        layout: Layout,
        threads: WritingThreads,
        waiting: int,
        hashed: ArrayHash,
        together: int = 1,
    ) -> None:
        self._layout, self._threads, self._waiting, self._hashed = layout, threads, waiting, hashed
        self._whole_segments = layout.chunk % hashed.segment == 0 or layout.chunks <= 1
        self._size = layout.chunk * gcd(together, layout.per_shard)  # so that no piece belongs to two shards
        self._folder = folder / name / "c"
        self._folder.mkdir(parents=True)
        (folder / name / "zarr.json").write_text(json.dumps(layout.document(), indent=2))
        self._pieces: deque[Future[None]] = deque()
        self._spare: list[Values] = []
        self._outputs: list[npt.NDArray[np.uint8]] = []
        self._piece, self._filled, self._begun = np.empty(0, layout.dtype), 0, 0
        self._shards = 0
        self._file: BinaryIO | None = None
        self._index: list[tuple[int, int]] = []

    def append(self, values: Values, *, kept: bool = False) -> None:
        """Write the next items; if they are `kept` as they are until the array is finished, they are not copied."""
        start = 0
        while start < len(values):
            part = values[start : start + self._size - self._filled]
            if kept and len(part) == self._size:
                self._submit(part, None)
            else:
                self._collect(part)
            start += len(part)

    def finish(self) -> None:
        """Write what is left; the array must have all its items."""
        if self._filled:
            self._submit(self._piece[: self._filled], self._piece)
        while self._pieces:
            self._pieces.popleft().result()
        if self._file is not None:
            self._end_shard(self._file)

    def _collect(self, part: Values) -> None:
        if not self._filled:
            self._piece = self._spare.pop() if self._spare else np.empty(self._size, self._layout.dtype)
        self._piece[self._filled : self._filled + len(part)] = part
        self._filled += len(part)
        if self._filled == self._size:
            self._submit(self._piece, self._piece)

    def _submit(self, items: Values, piece: Values | None) -> None:
        """Let a piece's items be encoded; they may be the beginning of `piece`, which can be used again later."""
        if not self._whole_segments:
            self._hashed.update(items)
        encoding = self._threads.encode(self._encode, self._begun, items, piece)
        self._pieces.append(self._threads.write(self._write_piece, encoding, piece))
        self._begun, self._filled = self._begun + len(items), 0
        if len(self._pieces) > self._waiting:
            self._pieces.popleft().result()

    def _encode(self, start: int, items: Values, piece: Values | None) -> Encoded:
        chunk, length = self._layout.chunk, len(items)
        if piece is not None and length < len(piece):
            padded = -(-length // chunk) * chunk
            piece[length:padded] = 0  # Zarr's chunks are all of one size, the last one is padded
            items = piece[:padded]
        try:
            out = self._outputs.pop()
        except IndexError:
            out = np.empty(self._size // chunk * (self._layout.chunk_bytes + OVERHEAD), np.uint8)
        digests = self._hashed.digests(start) if self._whole_segments else NO_DIGESTS
        items = np.ascontiguousarray(items, self._layout.dtype)
        return out, encode_chunks(items, chunk, length, array_hash.SEGMENT_BYTES, digests, out)

    def _write_piece(self, encoding: "Future[Encoded]", piece: Values | None) -> None:
        encoded, sizes = encoding.result()
        if piece is not None:
            self._spare.append(piece)
        if self._file is None:
            self._file = (self._folder / str(self._shards)).open("wb", buffering=0)
        place = sum(self._index[-1]) if self._index else 0  # asking the file would let other threads run in between
        for size in sizes.tolist():
            self._index.append((place, size))
            place += size
        _write(self._file, encoded[: int(sizes.sum())].data)
        self._outputs.append(encoded)
        if len(self._index) == self._layout.per_shard:
            self._end_shard(self._file)

    def _end_shard(self, file: BinaryIO) -> None:
        from google_crc32c import value as checksum

        index = np.full((self._layout.per_shard, 2), NO_CHUNK, "<u8")
        index[: len(self._index)] = self._index
        _write(file, index.tobytes() + checksum(index.tobytes()).to_bytes(CRC_BYTES, "little"))
        file.close()
        self._file, self._index = None, []
        self._threads.sync(self._folder / str(self._shards))
        self._shards += 1

    def __enter__(self) -> "ArrayWriter":
        return self

    def __exit__(self, *exc: object) -> None:
        for writing in self._pieces:
            writing.cancel()
        wait(self._pieces)
        if self._file is not None:
            self._file.close()


def _write(file: BinaryIO, data: memoryview | bytes) -> None:
    """Write all bytes: a raw file may take fewer at a time."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
