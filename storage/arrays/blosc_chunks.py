"""Encode chunks with Blosc, and decode those that are of the kind that Longwall writes."""

import ctypes
import struct
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.kernels.jit.compile import compiled
from longwall.storage.arrays.raw_memory import (
    BYTE_SHUFFLE,
    LEVEL,
    address_of,
    call_decoder,
    call_encoder,
    load_byte,
    load_word,
    store_byte,
)
from longwall.storage.arrays.xxh64 import hash_segments
from longwall.storage.stored_files import Damage

_HEADER = struct.Struct("<BBBBIII")  # versions, flags, item size; bytes decoded, of a block, encoded
OVERHEAD = _HEADER.size
"""The most bytes by which a chunk is longer than its content."""
_VERSIONS = 2, 1  # of Blosc's format, and of LZ4's in it
_LZ4 = 1  # among the flags
_CODEC_NAME = "lz4"
_CODEC = ctypes.create_string_buffer(_CODEC_NAME.encode())


def decode_chunk(encoded: memoryview | bytes | npt.NDArray[np.uint8], out: npt.NDArray[Any], what: str) -> None:
    """Decode a chunk; Blosc sees it only if its header says that it fits.

    Parameters
    ----------
    encoded
        The whole chunk.
    out
        As long as what was encoded, and of its type.
    what
        What messages call the chunk.

    Raises
    ------
    Damage
        If the chunk is none that Longwall writes, or of another size.
    """
    from numcodecs import blosc  # the package first: threads that begin with its modules get some half made

    if len(encoded) < _HEADER.size:
        raise Damage(f"{what} is too short")
    *versions, flags, itemsize, decoded, _, size = _HEADER.unpack(bytes(encoded[: _HEADER.size]))
    found = (*versions, flags >> 5, itemsize, decoded, size)
    if found != (*_VERSIONS, _LZ4, out.dtype.itemsize, out.nbytes, len(encoded)):
        raise Damage(f"{what} is none that Longwall writes")
    try:
        blosc.decompress(encoded, out)
    except (RuntimeError, ValueError) as error:
        raise Damage(f"{what} cannot be decoded") from error


def decode_chunks(
    encoded: npt.NDArray[np.uint8],
    begins: npt.NDArray[np.int64],
    out: npt.NDArray[Any],
    chunk: int,
    segment_bytes: int,
    digests: npt.NDArray[np.uint64],
) -> int:
    """Decode chunks of one size that lie one behind the other, and hash what is in them: in one call for all of them.

    Many threads that make a call for each chunk and each step wait for their turns to run Python most of the time.
    What is decoded is hashed while it is in the core's cache.

    Parameters
    ----------
    encoded
        The chunks, and maybe more.
    begins
        int64[chunks + 1]: where each begins in `encoded`, and where the last one ends.
    out
        As long as the chunks, or shorter: the last chunk of an array is padded.
    chunk
        Items of a chunk.
    segment_bytes
        That are hashed together; a chunk has whole segments, or is one.
    digests
        uint64[segments of `out`, or more] takes the hashes; nothing is hashed if it is empty.

    Returns
    -------
    int
        The first chunk that `decode_chunk` would refuse; -1 if there is none.
    """
    padded = np.empty(chunk if len(out) % chunk else 0, out.dtype)
    decoder = _address("blosc_decompress_ctx")
    if decoder:
        places = address_of(encoded), begins, address_of(out), out.nbytes, address_of(padded)
        return int(_decode(decoder, *places, out.itemsize, chunk * out.itemsize, segment_bytes, digests))
    for at, start in enumerate(range(0, len(out), chunk)):
        items = out[start : start + chunk]
        target = items if len(items) == chunk else padded
        try:
            decode_chunk(encoded[begins[at] : begins[at + 1]], target, "it")
        except Damage:
            return at
        if target is padded:
            items[:] = padded[: len(items)]
    if len(digests):
        hash_segments(address_of(out), out.nbytes, segment_bytes, digests)
    return -1


def encode_chunks(
    items: npt.NDArray[Any],
    chunk: int,
    length: int,
    segment_bytes: int,
    digests: npt.NDArray[np.uint64],
    out: npt.NDArray[np.uint8],
) -> npt.NDArray[np.int64]:
    """Encode chunks, one behind the other, and hash what is in them: in one call for all of them.

    Parameters
    ----------
    items
        Whole chunks, contiguous and little endian.
    chunk
        Items of a chunk.
    length
        How many items are hashed: those behind are padding.
    segment_bytes, digests
        As of `decode_chunks`.
    out
        Takes the chunks, each at most `OVERHEAD` bytes longer than its items.

    Returns
    -------
    int64[chunks]
        The bytes of each.
    """
    sizes = np.zeros(len(items) // chunk, np.int64)
    encoder, size = _address("blosc_compress_ctx"), chunk * items.itemsize
    if encoder:
        places = address_of(items), size, items.itemsize, address_of(out), len(out), sizes
        hashing = length * items.itemsize, segment_bytes, digests
        if _encode(encoder, ctypes.addressof(_CODEC), *places, *hashing):
            return sizes
    from numcodecs.blosc import Blosc

    codec, end = Blosc(_CODEC_NAME, LEVEL, BYTE_SHUFFLE), 0
    for at in range(len(sizes)):
        encoded = np.frombuffer(codec.encode(items[at * chunk : (at + 1) * chunk]), np.uint8)
        out[end : end + len(encoded)] = encoded
        sizes[at], end = len(encoded), end + len(encoded)
    if len(digests):
        hash_segments(address_of(items), length * items.itemsize, segment_bytes, digests)
    return sizes


@cache
def _address(function: str) -> int:
    """Return the address of a function of Blosc in the library that `numcodecs` brings; 0 where it does not show it.

    The library needs nothing of Python, and the package, whose import takes a tenth of a second, is not imported.
    """
    package = find_spec("numcodecs")
    found = PathFinder.find_spec("numcodecs.blosc", package.submodule_search_locations or []) if package else None
    try:
        library = ctypes.CDLL(found.origin if found and found.origin else "")
        return ctypes.cast(getattr(library, function), ctypes.c_void_p).value or 0
    except (OSError, AttributeError):
        return 0


@compiled("i8, i8, i8[::1], i8, i8, i8, i8, i8, i8, u8[::1]")
def _decode(
    decoder: int,
    encoded: int,
    begins: npt.NDArray[np.int64],
    out: int,
    nbytes: int,
    padded: int,
    itemsize: int,
    chunk_bytes: int,
    segment_bytes: int,
    digests: npt.NDArray[np.uint64],
) -> int:
    """Do the work of `decode_chunks` on memory; `padded` has room for a chunk where the last one is longer than `out`.

    The first 8 bytes of a chunk say the versions, the codec, the size of items and what is in the chunk, the last 4 of
    the first 16 its own size.
    """
    fits = np.uint64(_VERSIONS[0] | _VERSIONS[1] << 8 | _LZ4 << 21 | itemsize << 24 | chunk_bytes << 32)
    mask = np.uint64(0xFFFFFFFFFFE0FFFF)  # but for how bytes are shuffled, and other flags that decoders obey
    for at in range(begins.size - 1):
        source, size, place = encoded + begins[at], begins[at + 1] - begins[at], at * chunk_bytes
        if size < OVERHEAD or load_word(source) & mask != fits:
            return at
        if np.int64(load_word(source + 8) >> np.uint64(32)) != size:
            return at
        length = min(chunk_bytes, nbytes - place)
        target = out + place if length == chunk_bytes else padded
        if call_decoder(decoder, source, target, chunk_bytes) != chunk_bytes:
            return at
        if length < chunk_bytes:
            for byte in range(length):
                store_byte(out + place + byte, load_byte(padded + byte))
        if digests.size:
            hash_segments(out + place, length, segment_bytes, digests[place // segment_bytes :])
    return -1


@compiled("i8, i8, i8, i8, i8, i8, i8, i8[::1], i8, i8, u8[::1]")
def _encode(
    encoder: int,
    codec: int,
    items: int,
    chunk_bytes: int,
    itemsize: int,
    out: int,
    capacity: int,
    sizes: npt.NDArray[np.int64],
    nbytes: int,
    segment_bytes: int,
    digests: npt.NDArray[np.uint64],
) -> bool:
    """Do the work of `encode_chunks` on memory; says whether it was done, which it is but where Blosc has no memory."""
    end = 0
    for at in range(sizes.size):
        place = at * chunk_bytes
        if digests.size and place < nbytes:
            part = digests[place // segment_bytes :]
            hash_segments(items + place, min(chunk_bytes, nbytes - place), segment_bytes, part)
        size = call_encoder(encoder, codec, itemsize, items + place, chunk_bytes, out + end, capacity - end)
        if size <= 0:
            return False
        sizes[at] = size
        end += size
    return True
