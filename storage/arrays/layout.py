"""How the arrays of a graph store are cut into chunks and shards, and what their metadata say of it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from longwall.storage.arrays.raw_memory import LEVEL
from longwall.storage.arrays.xxh64 import STRIPE

CHUNK_BYTES = 2**20  # at most, where an array is read; a power of two
CHUNKS_PER_SHARD = 64
_SHORTER = 16  # where memory is short, chunks are shorter by this at most, and a shard has as many more


BLOSC = {"cname": "lz4", "clevel": LEVEL}


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
    def of(cls, dtype: np.dtype[Any], length: int, memory: int | None = None) -> "Layout":
        """The layout of an array; its chunks take at most `memory` bytes, as far as chunks may be that short."""
        shorter = 1
        while memory is not None and shorter < _SHORTER and CHUNK_BYTES // shorter > max(memory, STRIPE):
            shorter *= 2
        chunk = max(1, min(length, CHUNK_BYTES // shorter // dtype.itemsize))
        chunks = -(-length // chunk)
        return cls(dtype.newbyteorder("<"), length, chunk, chunks, max(1, min(shorter * CHUNKS_PER_SHARD, chunks)))

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
                cut = CHUNK_BYTES % layout.chunk_bytes == 0 or chunk == length
                if cut and 0 < layout.per_shard <= _SHORTER * CHUNKS_PER_SHARD and document == layout.document():
                    return layout
        return None

    @property
    def nbytes(self) -> int:
        """Bytes of the array in memory."""
        return self.length * self.dtype.itemsize

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a chunk in memory."""
        return self.chunk * self.dtype.itemsize

    def document(self) -> dict[str, Any]:
        """Return the array's metadata as Zarr v3 wants them."""
        return array_document(self.dtype, self.length, self.chunk, self.per_shard, LEVEL)


def array_document(
    dtype: np.dtype[Any], length: int, chunk: int, per_shard: int, level: int, *more_codecs: dict[str, Any]
) -> dict[str, Any]:
    """Return the metadata of an array whose shards have chunks that Blosc compresses at a level."""
    bytes_codec = {"name": "bytes", "configuration": {"endian": "little"}}
    blosc = {"typesize": dtype.itemsize, **BLOSC, "clevel": level, "shuffle": "shuffle", "blocksize": 0}
    sharding = {
        "chunk_shape": [chunk],
        "codecs": [bytes_codec, {"name": "blosc", "configuration": blosc}, *more_codecs],
        "index_codecs": [bytes_codec, {"name": "crc32c"}],
        "index_location": "end",
    }
    return {
        "shape": [length],
        "data_type": dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk * per_shard]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
        "attributes": {},
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }
