"""Decode chunks that Blosc encoded, if they are of the kind that Longwall writes."""

import struct
from typing import Any

import numpy.typing as npt

from longwall.storage.stored_files import Damage

_HEADER = struct.Struct("<BBBBIII")  # versions, flags, item size; bytes decoded, of a block, encoded
OVERHEAD = _HEADER.size
"""A chunk is at most so many bytes longer than what is in it."""
_VERSIONS = 2, 1  # of Blosc's format, and of LZ4's in it
_LZ4 = 1  # among the flags


def decode_chunk(encoded: memoryview | bytes, out: npt.NDArray[Any], what: str) -> None:
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
    *versions, flags, itemsize, decoded, _, size = _HEADER.unpack(encoded[: _HEADER.size])
    found = (*versions, flags >> 5, itemsize, decoded, size)
    if found != (*_VERSIONS, _LZ4, out.dtype.itemsize, out.nbytes, len(encoded)):
        raise Damage(f"{what} is none that Longwall writes")
    try:
        blosc.decompress(encoded, out)
    except (RuntimeError, ValueError) as error:
        raise Damage(f"{what} cannot be decoded") from error
