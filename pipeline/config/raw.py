"""Read a config before any key is checked: a file of a bounded size, TOML, and values that TOML can hold."""

import math
import os
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longwall.pipeline.quoting import cut, dotted, quote
from longwall.storage.errors import InputError
from longwall.storage.stored_files import SpecialFile, open_regular

MOST_BYTES = 2**20
"""Of a config file: the commented ones have a few thousand."""
_LOOKED_AT = 10_000  # characters of what is no TOML
_MOST_LEVELS = 8  # of tables and lists; a config has four
_MOST_DOTS = 256  # of a line; to read a key takes the cube of its parts
_INTEGERS = range(-(2**63), 2**64)  # what TOML readers must hold, and every seed


def read_toml(path: Path, what: str = "config file", advice: str = " (longwall configs makes one)") -> dict[str, Any]:
    """Read a config file, or another one of TOML, which `what` and `advice` name.

    Raises
    ------
    InputError
        If it is no regular file, cannot be read, is too large, or is not TOML.
    """
    name = cut(str(path), 300)
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise InputError(f"{name}: there is no such {what}; check the path{advice}") from None
    except IsADirectoryError:
        raise InputError(f"{name}: this is a folder; give the TOML file itself") from None
    except SpecialFile:
        raise InputError(f"{name}: this is a pipe or a device, not a file; give the TOML file itself") from None
    except OSError as error:
        raise InputError(f"{name}: the config cannot be read: {error.strerror}") from None
    if len(content) > MOST_BYTES:
        raise InputError(f"{name}: this file has more than {MOST_BYTES:,} bytes; give the TOML file of a run")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{name}: this is not a text file; a config is a TOML file in UTF-8") from None
    try:
        data = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name}: not valid TOML: {error}{_hint(text, error)}") from None
    return to_plain(data, name)


def _hint(text: str, error: tomllib.TOMLDecodeError) -> str:
    """Return what may have been meant."""
    if not any("=" in line for line in text[:_LOOKED_AT].splitlines() if not line.lstrip().startswith("#")):
        return '; a graph is named in a config: [graph] path = "FILE"'
    return '; text is written in quotes: path = "graph.txt"' if str(error).startswith("Invalid value") else ""


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML.

    Raises
    ------
    TOMLDecodeError
        Whatever is wrong with it.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > _MOST_DOTS and not line.lstrip().startswith("#"):
            raise tomllib.TOMLDecodeError(f"more than {_MOST_DOTS} dots (at line {number})")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise tomllib.TOMLDecodeError(cut(str(error), 200)) from None
    except RecursionError:
        raise tomllib.TOMLDecodeError("tables or lists in one another, too many") from None
    except ValueError:  # Python's own limit
        raise tomllib.TOMLDecodeError("a whole number has thousands of digits") from None


def to_plain(source: Mapping[Any, Any], origin: str, above: tuple[str | int, ...] = ()) -> dict[str, Any]:
    """Copy a mapping into values that TOML can hold: mappings are dicts, paths are texts, None means not given.

    Parameters
    ----------
    source
        Sections, or what is below one. Values of NumPy become Python's; of other types they stay as they are.
    origin
        Where it comes from, for messages.
    above
        The keys of `source` itself.

    Raises
    ------
    InputError
        If it is nested too deeply, a key is no text, a text is not UTF-8 or has a NUL, an integer has more than 64
        bits, or another number is not finite.
    """
    found = {}
    for key, value in source.items():
        if not isinstance(key, str):
            where = f"{dotted(above)}: " if above else ""
            raise InputError(f"{origin}: {where}a key must be a text, not {type(key).__name__}")
        if fault := _text_fault(key):
            raise InputError(f"{origin}: {dotted((*above, key))}: the key {fault}")
        if value is not None:
            found[key] = _plain_value(value, origin, (*above, key))
    return found


def _plain_value(value: Any, origin: str, keys: tuple[str | int, ...]) -> Any:
    if len(keys) > _MOST_LEVELS:
        raise _fault(origin, keys, f"more than {_MOST_LEVELS} tables or lists in one another; no key needs that many")
    value = _python_value(value)
    if isinstance(value, Mapping):
        return to_plain(value, origin, keys)
    if isinstance(value, list | tuple):
        return [_plain_value(item, origin, (*keys, at)) for at, item in enumerate(value)]
    if isinstance(value, str):
        if fault := _text_fault(value):
            raise _fault(origin, keys, f"{quote(value)} {fault}")
    elif isinstance(value, int) and value not in _INTEGERS:
        raise _fault(origin, keys, "a whole number has at most 64 bits")
    elif isinstance(value, float) and not math.isfinite(value):
        raise _fault(origin, keys, f"expected a finite number, not {value}")
    return value


def _fault(origin: str, keys: tuple[str | int, ...], text: str) -> InputError:
    return InputError(f"{origin}: {dotted(keys)}: {text}")


def _python_value(value: Any) -> Any:
    """Return a path as text, scalars and arrays of NumPy as numbers and lists, and anything else as it is."""
    if isinstance(value, Path):
        return str(value)
    numpy = sys.modules.get("numpy")  # without it there are none of its values
    if numpy is not None and isinstance(value, numpy.generic | numpy.ndarray):
        return value.tolist()
    return value


def _text_fault(text: str) -> str:
    """Say why a text cannot stand in TOML; nothing where it can."""
    if "\0" in text:
        return "has a NUL character; remove it"
    return "is not UTF-8; write it in UTF-8, or rename the file" if re.search("[\ud800-\udfff]", text) else ""
