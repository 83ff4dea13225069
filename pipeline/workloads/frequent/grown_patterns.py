"""What is found of a level: candidates, and the patterns that are frequent, with their figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longwall.pipeline.run_store.run_files import RunFiles
from longwall.pipeline.workloads.frequent.dfs_patterns import DfsPatterns
from longwall.storage.graph.typed_graph import EdgeTypes

UNKNOWN = -1
"""In place of a number of rows that was not counted."""
_COLUMNS = 9  # of an array of patterns: parent, edge, automorphisms, rows, support


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


def write_patterns(files: RunFiles, folder: str, parts: Sequence[GrownPatterns]) -> dict[str, Any]:
    """Write all patterns of some parts, in their order, to an array of the checkpoint: int64[p, 9].

    Parameters
    ----------
    files
        The run's.
    folder
        Name of the folder in the checkpoint.
    parts
        The patterns.

    Returns
    -------
    dict
        The file, as a commit names it.
    """
    shape = sum(len(part.parents) for part in parts), _COLUMNS
    return files.write_array(folder, shape, np.int64, (np.column_stack(part) for part in parts))


def read_patterns(files: RunFiles, file: dict[str, Any], begin: int = 0, end: int | None = None) -> GrownPatterns:
    """Read patterns `begin` to `end` - 1 of a file of `write_patterns`; all that are left by default."""
    table = files.read_array(file, begin, end)
    figures = (np.ascontiguousarray(table[:, column]) for column in range(6, _COLUMNS))
    return GrownPatterns(np.ascontiguousarray(table[:, 0]), table[:, 1:6].astype(np.int32), *figures)


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

    def table_rows(self, min_support: int, first: int) -> NDArray[np.int64]:
        """Return the row of each pattern in the pattern table, -1 of one that is not frequent, int64[p].

        Parameters
        ----------
        min_support
            Least support of a frequent pattern.
        first
            Row of the level's first frequent pattern.
        """
        frequent = self.supports >= min_support
        return np.where(frequent, first + np.cumsum(frequent) - 1, -1)
