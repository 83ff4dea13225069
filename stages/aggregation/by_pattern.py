"""Group the rows of a table by their patterns (GAMMA, section III-B).

Two steps: a cheap key per row that depends on the order of its vertices (`pattern_keys`), sorted and counted in bounded
memory; then the canonical form of the distinct keys only, piece by piece (`BY_PATTERN`). If a graph has so many
labels that keys could not be sorted, the rows are brought to canonical patterns piece by piece at once.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.host.patterns.pattern_codes import PatternCode, canonical_pattern
from longwall.stages.aggregation.pattern_keys import ROW_BYTES, ROW_COLUMN_BYTES, Array, PatternKeys
from longwall.stages.base import Aggregation, Stage
from longwall.stages.tables import CallContext
from longwall.storage.tables.embedding_table import EmbeddingTable

Patterns = Counter[PatternCode]
"""Rows per canonical pattern."""
Reserve = Callable[[int, str], AbstractContextManager[object]]

PATTERN_BYTES, PATTERN_VERTEX_BYTES = 240, 96
"""Bytes of an entry of `Patterns`, and more for each vertex: tuples of integers in a dictionary."""
KEY_BYTES, KEY_VERTEX_BYTES = 400, 240
"""Bytes that it takes to bring a key to its canonical pattern, with the entry, and more for each vertex."""
_MOST_KEYS = 1 << 13  # that are brought to canonical patterns at once: more gains nothing
_MOST_ROWS = 1 << 17  # whose keys are made at once: arrays of more leave the caches of a core
_RANK_BITS = 3


def _canonical(keys: PatternKeys, found: NDArray[np.uint64], counts: NDArray[np.int64]) -> Patterns:
    """Bring keys (uint64[n] or uint64[2, n]) to canonical patterns, and add up their counts (int64[n]).

    What is canonical depends on the labels by their order alone, so few forms are looked for whatever the labels.
    """
    codes = keys.codes(found)
    totals: Patterns = Counter()
    if keys.labels is None:
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            edges, vertices = keys.pattern(code)
            totals[canonical_pattern(edges, None, vertices)] += count
        return totals
    numbers = keys.numbers(found)
    shapes = codes
    for vertex in range(keys.vertices):
        rank = (numbers < numbers[vertex]).sum(axis=0)
        shapes = shapes | rank << keys.pairs + _RANK_BITS * vertex
    distinct, shape = np.unique(shapes, return_inverse=True)
    forms = [_form(keys, one) for one in distinct.tolist()]
    labels = keys.names[np.sort(numbers, axis=0)].T.tolist()
    for at, names, count in zip(shape.tolist(), labels, counts.tolist(), strict=True):
        edges, vertices = forms[at]
        totals[edges, tuple(names[:vertices])] += count
    return totals


def _form(keys: PatternKeys, shape: int) -> tuple[tuple[tuple[int, int], ...], int]:
    """Return the canonical edges of a code with the ranks of its labels above it, and its number of vertices."""
    edges, vertices = keys.pattern(shape & (1 << keys.pairs) - 1)
    ranks = tuple(shape >> keys.pairs + _RANK_BITS * vertex & (1 << _RANK_BITS) - 1 for vertex in range(vertices))
    return canonical_pattern(edges, ranks, vertices)[0], vertices


def _united(parts: Sequence[Patterns]) -> Patterns:
    """Add patterns up, in the place of the first."""
    first, *others = parts
    for other in others:
        first.update(other)
    return first


def _in_order(patterns: Patterns) -> list[tuple[PatternCode, int]]:
    """Return patterns and their rows, by edges, then by labels."""
    return sorted(patterns.items(), key=lambda item: (item[0][0], item[0][1] or ()))


BY_PATTERN = Aggregation(_canonical, _united, _in_order)
"""Of keys and their counts: rows per canonical pattern."""


class PatternTable:
    """Patterns and their rows so far; a context manager that holds what is reserved for them.

    Parameters
    ----------
    keys
        Which patterns there may be.
    reserve
        Reserves bytes of the host, for what a noun names.
    """

    def __init__(self, keys: PatternKeys, reserve: Reserve):
        self._entry_bytes = PATTERN_BYTES + PATTERN_VERTEX_BYTES * keys.vertices
        self._reserve, self._held = reserve, ExitStack()
        self._found: Patterns = Counter()

    def __enter__(self) -> "PatternTable":
        return self

    def __exit__(self, *exc: object) -> None:
        self._held.close()

    def add(self, keys: PatternKeys, found: NDArray[np.uint64], counts: NDArray[np.int64]) -> None:
        """Add rows by their keys; they take `keys_at_once` more bytes meanwhile.

        Raises
        ------
        BudgetExceeded
            If there is no room for the patterns.
        """
        before = len(self._found)
        self._found = BY_PATTERN.combine([self._found, BY_PATTERN.chunk(keys, found, counts)])
        if new := len(self._found) - before:
            self._held.enter_context(self._reserve(new * self._entry_bytes, "the table of patterns"))

    def result(self) -> list[tuple[PatternCode, int]]:
        """Return the patterns, sorted, and how many rows each has."""
        return BY_PATTERN.finalize(self._found)


def keys_at_once(keys: PatternKeys, memory: int) -> tuple[int, int]:
    """Return how many keys can be brought to canonical patterns in `memory` bytes, and how many of these it takes."""
    each = KEY_BYTES + KEY_VERTEX_BYTES * keys.vertices
    number = max(min(memory // each, _MOST_KEYS), 1)
    return number, number * each


@dataclass(frozen=True)
class MakePatternKeys(Stage):
    """Make the key of the pattern of every row.

    Attributes
    ----------
    keys
        How.
    """

    keys: PatternKeys

    verb = "aggregate"

    def describe(self) -> str:
        """See `Stage`."""
        edges = "edges among the vertices" if self.keys.of == "vertices" else "edges"
        labels = "" if self.keys.labels is None else ", and labels"
        return f"aggregate    by pattern: the {edges} of each row{labels}, as a key of {self.keys.bits} bits"

    def run(self, chunk: EmbeddingTable, context: CallContext) -> Iterator[Array]:
        """Yield the keys of the rows, part by part."""
        row_bytes = max(ROW_BYTES + ROW_COLUMN_BYTES * chunk.num_levels, context.work // _MOST_ROWS)
        return context.by_parts(chunk, row_bytes, lambda part: self.keys.of_rows(part, context.graph))


@dataclass(frozen=True)
class AddPatterns(Stage):
    """Bring every row to its canonical pattern, where there are too many labels for keys that can be sorted.

    In pieces of so few rows that the labels of a piece can be numbered.

    Attributes
    ----------
    keys
        What the patterns are.
    table
        Where they go.
    """

    keys: PatternKeys
    table: PatternTable

    verb = "aggregate"

    def describe(self) -> str:
        """See `Stage`."""
        return "aggregate    by pattern: the canonical pattern of each row"

    def run(self, chunk: EmbeddingTable, context: CallContext) -> Iterable[Array]:
        """Add the rows of a chunk."""
        most, _ = keys_at_once(self.keys, context.work)
        rows = min(most, self.keys.most_labels // self.keys.vertices)
        for begin in range(0, len(chunk), rows):
            piece = chunk.sliced(begin, min(begin + rows, len(chunk)))
            row_bytes = ROW_BYTES + ROW_COLUMN_BYTES * chunk.num_levels
            for keys, found in context.by_parts(piece, row_bytes, lambda part: self._keys(part, context)):
                host = found if isinstance(found, np.ndarray) else found.get()
                self.table.add(keys, host, np.ones(host.shape[-1], np.int64))
        return ()

    def _keys(self, part: EmbeddingTable, context: CallContext) -> tuple[PatternKeys, Array]:
        """Return the keys of some rows, with numbers for their own labels only."""
        labels = self.keys.own_labels(part, context.graph)
        keys = replace(self.keys, labels=labels)
        return keys, keys.of_rows(part, context.graph)
