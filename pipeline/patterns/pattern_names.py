"""Names of patterns that are given by their edges."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from longwall.pipeline.patterns.parse import named_patterns_of
from longwall.pipeline.patterns.pattern import make_pattern
from longwall.pipeline.patterns.symmetry import isomorphic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from longwall.pipeline.patterns.pattern import Pattern


def name_of(edges: Iterable[tuple[int, int]]) -> str | None:
    """Return the name of a connected pattern without its labels, whatever the numbers of its vertices; None if none."""
    pattern = make_pattern(edges)
    likely = _by_degrees(pattern.num_vertices).get(_degrees(pattern), [])
    return next((one.name for one in likely if isomorphic(pattern, one)), None)


@lru_cache(maxsize=64)
def _by_degrees(vertices: int) -> Mapping[tuple[int, ...], list[Pattern]]:
    found: dict[tuple[int, ...], list[Pattern]] = {}
    for one in named_patterns_of(vertices):
        found.setdefault(_degrees(one), []).append(one)
    return found


def _degrees(pattern: Pattern) -> tuple[int, ...]:
    return tuple(sorted(map(len, pattern.neighbours)))
