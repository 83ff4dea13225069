"""Values of a config: as plain data, as TOML, and in sentences about them."""

import difflib
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def section_of(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A section of what was read; empty where it is missing, or no section."""
    section = data.get(name)
    return section if isinstance(section, dict) else {}


def plain(section: Mapping[str, Any]) -> dict[str, Any]:
    """A section as plain values: paths are texts, tuples and arrays are lists."""
    return {key: _plain_value(value) for key, value in section.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, dict):
        return plain(value)
    numpy = sys.modules.get("numpy")  # who has none of its values need not wait for its import
    if numpy is not None and isinstance(value, numpy.generic | numpy.ndarray):
        return value.tolist()
    return [_plain_value(item) for item in value] if isinstance(value, list | tuple) else value


def deep_plain(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a caller's mapping: mappings are dicts, paths are texts, None means not given.

    Values of NumPy become Python's.
    """
    return {
        key: deep_plain(value) if isinstance(value, Mapping) else _plain_value(value)
        for key, value in source.items()
        if value is not None
    }


def toml(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        escaped = re.sub(r"[\x00-\x1f\x7f]", lambda match: f"\\u{ord(match[0]):04x}", escaped)
        return f'"{escaped}"'
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml_key(key)} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return str(value)


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml(key)


def shown(value: object) -> str:
    """A value as a sentence quotes it, cut where it is long."""
    text = toml(value) if isinstance(value, bool | int | float | str | list | dict) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def listed(names: Iterable[str]) -> str:
    """Names one behind the other."""
    return ", ".join(names)


def suggestion(name: object, valid: Iterable[str]) -> str:
    """Return the end of a sentence: the nearest valid name, and all of them."""
    valid = list(valid)
    near = difflib.get_close_matches(str(name), valid, n=1)
    return (f'; did you mean "{near[0]}"? Choose' if near else "; choose") + f" one of {listed(valid)}"
