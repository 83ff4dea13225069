"""Names of patterns that are given by their edges."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from longwall.pipeline.patterns.parse import named_patterns_of
from longwall.pipeline.patterns.pattern import make_pattern
from longwall.pipeline.patterns.pattern_drawing import edges_of
from longwall.pipeline.patterns.symmetry import isomorphic
from longwall.storage.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from longwall.pipeline.patterns.pattern import Pattern


def name_of(edges: Iterable[tuple[int, int]]) -> str | None:
    """Return the name of a connected pattern without its labels, whatever the numbers of its vertices; None if none."""
    pattern = make_pattern(edges)
    likely = _by_degrees(pattern.num_vertices).get(_degrees(pattern), [])
    return next((one.name for one in likely if isomorphic(pattern, one)), None)


def known_name(text: Any) -> str | None:
    """Return the name of a pattern such as ``"0-1,0-2,1-2"``; None if it has none, or is no pattern."""
    edges = edges_of(text)
    try:
        return None if edges is None else name_of(edges)
    except InputError:  # a loop, or in two parts
        return None


def with_name(text: Any) -> Any:
    """Return the edges of a pattern behind its name, if it has one."""
    name = known_name(text)
    return text if name is None else f"{name} ({text})"


@lru_cache(maxsize=64)
def _by_degrees(vertices: int) -> Mapping[tuple[int, ...], list[Pattern]]:
    found: dict[tuple[int, ...], list[Pattern]] = {}
    for one in named_patterns_of(vertices):
        found.setdefault(_degrees(one), []).append(one)
    return found


def _degrees(pattern: Pattern) -> tuple[int, ...]:
    return tuple(sorted(map(len, pattern.neighbours)))
