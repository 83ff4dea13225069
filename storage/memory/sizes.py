"""Sizes in bytes as people write them: ``8GiB``, ``512MiB``, ``1.5GB``."""

from __future__ import annotations

import re
from decimal import Decimal

_BINARY = {"TiB": 2**40, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10}
_DECIMAL = {"TB": 10**12, "GB": 10**9, "MB": 10**6, "KB": 10**3}
_UNITS = {name.lower(): size for name, size in {**_BINARY, **_DECIMAL, "B": 1, "": 1}.items()}
_SIZE = re.compile(r"\s*(\d{1,30}(?:\.\d{1,30})?)\s*([A-Za-z]{0,3})\s*")
_LARGEST = 2**62


def parse_size(text: str | int) -> int:
    """Return the number of bytes that `text` stands for.

    Parameters
    ----------
    text
        A number with a unit (``B``, ``KB``/``MB``/``GB``/``TB`` are powers of 1000,
        ``KiB``/``MiB``/``GiB``/``TiB`` powers of 1024; case does not matter), or a number of bytes.

    Returns
    -------
    int
        Bytes, at least 1; a fraction of a byte is dropped.

    Raises
    ------
    ValueError
        If `text` is not a size; the message is for the user.
    """
    if isinstance(text, int):
        size = text
    else:
        match = _SIZE.fullmatch(text)
        if match is None or match[2].lower() not in _UNITS:
            raise ValueError(f'"{text[:40]}" is not a size; write a number and a unit, such as "8GiB" or "512MiB"')
        size = int(Decimal(match[1]) * _UNITS[match[2].lower()])
    if not 1 <= size <= _LARGEST:
        given = f", not {text}" if -_LARGEST <= size <= 10**30 else ""
        raise ValueError(f"a size is at least 1 byte and at most {format_size(_LARGEST)}{given}")
    return size


def format_size(size: int) -> str:
    """Return `size` bytes in the largest binary unit that is exact, so that `parse_size` returns it."""
    for unit, factor in _BINARY.items():
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return f"{size}B"


def size_from(size: int) -> str:
    """Return a size of at least a number of bytes, a little more, as people write it in a config: ``31MiB``."""
    unit = next((factor for factor in _BINARY.values() if size > 16 * factor), 1)
    return format_size(-(-size // unit) * unit)


def round_size(size: float) -> str:
    """Return `size` bytes for a reader's eye: three digits and a binary unit, such as ``1.42 GiB``."""
    for unit, factor in _BINARY.items():
        if size >= factor:
            return f"{size / factor:.3g} {unit}" if size < 1000 * factor else f"{size / factor:,.0f} {unit}"
    return f"{size:.0f} B"
