"""What is found of a level: candidates, and the patterns that are frequent, with their figures."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longwall.pipeline.run_store.run_files import RunFiles
from longwall.pipeline.workloads.frequent.dfs_patterns import DfsPatterns
from longwall.storage.graph.typed_graph import EdgeTypes
from longwall.storage.memory.reservations import Reservation

Reserve = Callable[[int, str], Reservation]
UNKNOWN = -1
"""In place of a number of rows that was not counted."""
GROWN_BYTES = 124
"""Bytes of a grown pattern: as numbers, and as it is written or read."""
_COLUMNS = 9  # of an array of patterns: parent, edge, automorphisms, rows, support
_LEVEL_BYTES, _EDGE_BYTES = 48, 20  # of a frequent pattern: its figures, root and size; for each edge of its code


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


class PatternParts:
    """Patterns in parts, as they are found; a context manager that holds what is reserved for them.

    Parameters
    ----------
    reserve
        Reserves bytes of the host, for what a noun names.

    Attributes
    ----------
    parts
        The patterns so far.
    """

    def __init__(self, reserve: Reserve):
        self._reserve, self._held = reserve, reserve(0, "")
        self.parts: list[GrownPatterns] = []

    def __len__(self) -> int:
        return sum(len(part.parents) for part in self.parts)

    def add(self, part: GrownPatterns) -> None:
        """Take the patterns that follow.

        Raises
        ------
        BudgetExceeded
            If there is no room for them.
        """
        self._held.join(self._reserve(GROWN_BYTES * len(part.parents), "the patterns of a level"))
        self.parts.append(part)

    def write(self, files: RunFiles, folder: str) -> dict[str, Any]:
        """Write all of them to an array of the checkpoint, int64[p, 9]; return the file, as a commit names it."""
        pieces = (np.column_stack(part) for part in self.parts)
        return files.write_array(folder, (len(self), _COLUMNS), np.int64, pieces)

    def __enter__(self) -> "PatternParts":
        return self

    def __exit__(self, *exc: object) -> None:
        self.parts = []
        self._held.release()


def read_patterns(files: RunFiles, file: dict[str, Any], begin: int = 0, end: int | None = None) -> GrownPatterns:
    """Read patterns `begin` to `end` - 1 of a file of `PatternParts`; all that are left by default.

    They take `GROWN_BYTES` each, which the caller has reserved.
    """
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

    def selected(self, kept: NDArray[Any] | slice) -> "FrequentPatterns":
        """Some of the patterns: a mask, their places, or a range."""
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


def level_bytes(patterns: int, edges: int) -> int:
    """Bytes of a given number of `FrequentPatterns`, with a given number of edges each."""
    return patterns * (_LEVEL_BYTES + _EDGE_BYTES * edges)
