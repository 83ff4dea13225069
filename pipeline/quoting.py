"""How messages quote values, names and keys."""

import difflib
import json
from collections.abc import Iterable
from typing import Any

_MEANT = {
    **{"gpu": "cuda", "nvidia": "cuda", "cores": "cpu"},
    **dict.fromkeys(("orbits", "graphlets", "graphlet-degrees"), "motifs"),
    **dict.fromkeys(("count", "pattern", "query", "search", "subgraph"), "match"),
}
_MOST_BITS = 1000  # Python writes no number of more than 4,300 digits
_LONGEST = 60
_READABLE = 1e15  # longer numbers are written with an exponent


def quote(value: Any) -> str:
    """Return a value as TOML and JSON write it, cut where it is long."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"a number of {value.bit_length():,} bits"
    plain = isinstance(value, bool | int | float | str | list | tuple | dict)
    return cut(json.dumps(value, ensure_ascii=False, default=repr) if plain else repr(value), _LONGEST)


def cut(text: str, most: int) -> str:
    """Return text of at most `most` characters, without the middle of a longer one."""
    return text if len(text) <= most else f"{text[: most - 23]}...{text[-20:]}"


def dotted(location: Iterable[str | int]) -> str:
    """Return ``workload.pattern_labels[2]`` for ("workload", "pattern_labels", 2)."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{cut(part, _LONGEST)}"
    return text.removeprefix(".")


def join_names(names: Iterable[str]) -> str:
    """Return names separated by commas."""
    return ", ".join(names)


def suggestion(name: object, valid: Iterable[str]) -> str:
    """Return the end of a message: the nearest valid name, if one is near, and all of them."""
    valid = list(valid)
    meant = _MEANT.get(str(name).lower())
    near = [meant] if meant in valid else difflib.get_close_matches(str(name), valid, n=1)
    return (f'; did you mean "{near[0]}"? Choose' if near else "; choose") + f" one of {join_names(valid)}"


def round_number(number: float) -> str:
    """Four digits, and zeros; long numbers with an exponent."""
    return f"{float(f'{number:.4g}'):,.0f}" if number < _READABLE else f"{number:.3e}"
