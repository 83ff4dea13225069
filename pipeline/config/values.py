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
    """A section as plain values: paths are texts, tuples are lists."""
    return {key: _plain_value(value) for key, value in section.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, dict):
        return plain(value)
    value = python_value(value)
    return [_plain_value(item) for item in value] if isinstance(value, list | tuple) else value


def python_value(value: Any) -> Any:
    """A value as TOML's types: a path is a text, scalars and arrays of NumPy are numbers and lists."""
    if isinstance(value, Path):
        return str(value)
    numpy = sys.modules.get("numpy")  # without it there are none of its values
    if numpy is not None and isinstance(value, numpy.generic | numpy.ndarray):
        return value.tolist()
    return value


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
    """A value as a message quotes it, cut where it is long."""
    if isinstance(value, int) and value.bit_length() > 1000:  # Python writes no number of more than 4,300 digits
        return f"a number of {value.bit_length():,} bits"
    text = toml(value) if isinstance(value, bool | int | float | str | list | dict) else repr(value)
    return cut(text, 60)


def cut(text: str, most: int) -> str:
    """Text of at most so many characters: what is left out of a longer one is its middle."""
    return text if len(text) <= most else f"{text[: most - 23]}...{text[-20:]}"


def dotted(location: Iterable[str | int]) -> str:
    """Return ``workload.pattern_labels[2]`` for ("workload", "pattern_labels", 2)."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{cut(part, 60)}"
    return text.removeprefix(".")


def listed(names: Iterable[str]) -> str:
    """Names one behind the other."""
    return ", ".join(names)


def suggestion(name: object, valid: Iterable[str]) -> str:
    """Return the end of a sentence: the nearest valid name, and all of them."""
    valid = list(valid)
    near = difflib.get_close_matches(str(name), valid, n=1)
    return (f'; did you mean "{near[0]}"? Choose' if near else "; choose") + f" one of {listed(valid)}"
