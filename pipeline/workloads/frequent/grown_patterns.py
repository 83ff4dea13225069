"""What is found of a level: candidates, and the patterns that are frequent, with their figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longwall.pipeline.workloads.frequent.dfs_patterns import DfsPatterns
from longwall.storage.graph.typed_graph import EdgeTypes

UNKNOWN = -1
"""In place of a number of rows that was not counted."""


class GrownPatterns(NamedTuple):
    """Patterns that some of a level's may grow into: what they grow from and by, and their figures.

    Attributes
    ----------
    parents : int64[p]
        The patterns that they grow from, ascending.
    edges : int32[p, 5]
        The edges that they grow by.
    automorphisms, rows, supports : int64[p]
        Automorphisms; mappings, or `UNKNOWN`; support.
    """

    parents: NDArray[np.int64]
    edges: NDArray[np.int32]
    automorphisms: NDArray[np.int64]
    rows: NDArray[np.int64]
    supports: NDArray[np.int64]

    def selected(self, kept: NDArray[Any]) -> "GrownPatterns":
        """Some of them: a mask, or their places."""
        return GrownPatterns(*(array[kept] for array in self))

    def plain(self) -> list[Any]:
        """The same as lists."""
        return [array.tolist() for array in self]


def joined(parts: Sequence[GrownPatterns]) -> GrownPatterns:
    """All patterns of some parts, in their order."""
    edges = [np.empty((0, 5), np.int32), *(part.edges for part in parts)]
    return GrownPatterns(
        _numbers([part.parents for part in parts]),
        np.concatenate(edges),
        _numbers([part.automorphisms for part in parts]),
        _numbers([part.rows for part in parts]),
        _numbers([part.supports for part in parts]),
    )


def _numbers(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *parts])


def from_plain(value: list[list[Any]]) -> GrownPatterns:
    """What was made plain, part by part."""
    return joined(
        [
            GrownPatterns(np.array(parents), np.array(edges, np.int32), *map(np.array, numbers))
            for parents, edges, *numbers in value
        ]
    )


@dataclass(frozen=True, eq=False)
class FrequentPatterns:
    """The frequent patterns of a level.

    Attributes
    ----------
    patterns
        Their codes.
    types
        What the labels in the codes mean.
    parents : int64[p]
        The pattern of the level before that each grew from, ascending.
    automorphisms, rows, supports : int64[p]
        Automorphisms; mappings, or `UNKNOWN`; support.
    """

    patterns: DfsPatterns
    types: EdgeTypes
    parents: NDArray[np.int64]
    automorphisms: NDArray[np.int64]
    rows: NDArray[np.int64]
    supports: NDArray[np.int64]

    @classmethod
    def grown(cls, patterns: DfsPatterns, types: EdgeTypes, found: GrownPatterns) -> "FrequentPatterns":
        """What a level's patterns grow into."""
        codes = patterns.grown(found.parents, found.edges)
        return cls(codes, types, found.parents, found.automorphisms, found.rows, found.supports)

    def selected(self, kept: NDArray[np.bool_]) -> "FrequentPatterns":
        """Some of the patterns."""
        patterns = DfsPatterns(self.patterns.roots[kept], self.patterns.codes[kept])
        numbers = (self.parents, self.automorphisms, self.rows, self.supports)
        return FrequentPatterns(patterns, self.types, *(array[kept] for array in numbers))
