"""Decode chunks that Blosc encoded, if they are of the kind that Longwall writes."""

import ctypes
import struct
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from longwall.storage.arrays.raw_memory import address_of, call_decoder, load_byte, load_word, store_byte
from longwall.storage.arrays.xxh64 import hash_segments
from longwall.storage.lazy_kernel import lazy_kernel
from longwall.storage.stored_files import Damage

_HEADER = struct.Struct("<BBBBIII")  # versions, flags, item size; bytes decoded, of a block, encoded
OVERHEAD = _HEADER.size
"""A chunk is at most so many bytes longer than what is in it."""
_VERSIONS = 2, 1  # of Blosc's format, and of LZ4's in it
_LZ4 = 1  # among the flags


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
    decoder = _decoder()
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


@cache
def _decoder() -> int:
    """Return the address of the decoder in the library that `numcodecs` brings; 0 where it does not show it."""
    from numcodecs import blosc

    try:
        return ctypes.cast(ctypes.CDLL(blosc.__file__).blosc_decompress_ctx, ctypes.c_void_p).value or 0
    except (OSError, AttributeError):
        return 0


@lazy_kernel
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
