"""The pattern of a row as a number: its edges as bits, then the number of the label of each of its vertices.

Vertices have local numbers: of a v-ET the number of the column, of an e-ET the place at which they first appear. The
edge (u, v), u < v, is bit v (v - 1) / 2 + u. Rows of equal keys have the same pattern; rows of different keys may have
the same one, too, in another order of its vertices (see :mod:`longwall.stages.aggregation.by_pattern`).
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.host.patterns.pattern_codes import code_edges
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import NeighbourRange, RowReads
from longwall.kernels.interface.sorting import KeyLayout
from longwall.stages.extension.adjacency_lists import is_edge
from longwall.stages.extension.unguided_edges import edge_ends
from longwall.storage.errors import InputError
from longwall.storage.tables.embedding_table import EmbeddingTable

MAX_VERTICES = 7
ROW_BYTES, ROW_COLUMN_BYTES = 192, 96
"""Bytes of memory that arrays for the key of a row take, and more for each of its columns."""
LABEL_BYTES = 16
"""Bytes of a label of `PatternKeys`, where it is made and where it is used."""
Array = Any  # a NumPy or a CuPy array

_MOST_BITS = 128
_PAIRS = [(u, v) for v in range(MAX_VERTICES) for u in range(v)]
_EDGE_BITS = np.zeros((MAX_VERTICES, MAX_VERTICES), np.uint64)
for _u, _v in _PAIRS:
    _EDGE_BITS[_u, _v] = _EDGE_BITS[_v, _u] = 1 << _v * (_v - 1) // 2 + _u


def require_few(vertices: int) -> None:
    """Refuse patterns of more vertices than can be brought to a canonical form (InputError)."""
    if vertices > MAX_VERTICES:
        raise InputError(f"aggregation takes embeddings of at most {MAX_VERTICES} vertices, and some have {vertices}")


@dataclass(frozen=True, eq=False)
class PatternKeys:
    """How the patterns of a table's rows become keys.

    Attributes
    ----------
    of
        The pattern that the vertices of a v-ET induce, or that of the edges of an e-ET.
    vertices
        Most vertices of a row, from 1 to `MAX_VERTICES`.
    labels : int32[labels] or None
        All labels of vertices, ascending; None where patterns have no labels.
    """

    of: Literal["vertices", "edges"]
    vertices: int
    labels: NDArray[np.int32] | None

    @classmethod
    def of_table(cls, kind: Literal["vertex", "edge"], levels: int, labels: Collection[int] | None) -> "PatternKeys":
        """Choose the keys of a table of a given number of levels, a v-ET or an e-ET.

        Raises
        ------
        InputError
            If it is a v-ET of more than `MAX_VERTICES` levels.
        """
        names = None if labels is None else np.sort(np.fromiter(labels, np.int32, len(labels)))
        if kind == "edge":  # a larger row is refused when it is met
            return cls("edges", min(levels + 1, MAX_VERTICES), names)
        require_few(levels)
        return cls("vertices", levels, names)

    @property
    def pairs(self) -> int:
        """Bits for edges."""
        return self.vertices * (self.vertices - 1) // 2

    @property
    def label_bits(self) -> int:
        """Bits for the number of a label; ``len(labels)`` stands for a vertex that the row does not have."""
        return 0 if self.labels is None else len(self.labels).bit_length()

    @property
    def bits(self) -> int:
        """Bits of a key."""
        return self.pairs + self.vertices * self.label_bits

    @property
    def fit(self) -> bool:
        """Whether there are few enough labels for keys that can be sorted: 2^15 - 1 for 7 vertices."""
        return self.bits <= _MOST_BITS

    @property
    def most_labels(self) -> int:
        """How many labels can be distinguished by keys that can be sorted."""
        return (1 << (_MOST_BITS - self.pairs) // self.vertices) - 1

    @property
    def layout(self) -> KeyLayout:
        """What sorts and counts the keys."""
        return KeyLayout(words=1 if self.bits <= 64 else 2, reduce="count")

    def of_rows(self, table: EmbeddingTable, graph: GraphArrays) -> Array:
        """Return the keys of some rows, uint64[rows], or uint64[2, rows]: high words and low words.

        Raises
        ------
        InputError
            If a row of an e-ET has more than `MAX_VERTICES` vertices.
        """
        return self._of_vertices(table, graph) if self.of == "vertices" else self._of_edges(table, graph)

    def _of_vertices(self, table: EmbeddingTable, graph: GraphArrays) -> Array:
        xp, columns = table.xp, table.columns()
        k = columns.shape[0]
        if graph.pages is not None:
            graph.pages.touch(k, [RowReads(columns[i], NeighbourRange.ALL, k - 1 - i) for i in range(k - 1)])
        words = self._words(len(table), xp)
        for v in range(k):
            for u in range(v):
                edges = is_edge(graph, columns[u], columns[v], xp).astype(xp.uint64)
                edges <<= xp.uint64(_pair(u, v))
                words[0] |= edges
        if self.labels is not None:
            names = xp.asarray(self.labels)
            for v in range(k):
                self._add_label(words, v, xp.searchsorted(names, graph.labels[columns[v]]), xp)
        return _as_key(words, xp)

    def _of_edges(self, table: EmbeddingTable, graph: GraphArrays) -> Array:
        xp = table.xp
        ends = [end for level in range(table.num_levels) for end in edge_ends(table.column(level), xp)]
        numbers, count = _local_numbers(ends, xp)
        require_few(int(count.max()) if len(table) else 0)
        bits = xp.asarray(_EDGE_BITS)
        words = self._words(len(table), xp)
        for first, second in zip(numbers[::2], numbers[1::2], strict=True):
            words[0] |= bits[first, second]
        if self.labels is not None:
            names, place = xp.asarray(self.labels), xp.arange(len(table))
            found = xp.full((self.vertices, len(table)), len(self.labels), xp.int32)
            for number, end in zip(numbers, ends, strict=True):
                found[number, place] = xp.searchsorted(names, graph.labels[end])
            for vertex in range(self.vertices):
                self._add_label(words, vertex, found[vertex], xp)
        return _as_key(words, xp)

    def _words(self, rows: int, xp: Any) -> list[Array]:
        """Return empty keys, the low words first."""
        return [xp.zeros(rows, xp.uint64) for _ in range(self.layout.words)]

    def _add_label(self, words: list[Array], vertex: int, numbers: Array, xp: Any) -> None:
        word, shift = divmod(self.pairs + vertex * self.label_bits, 64)
        numbers = numbers.astype(xp.uint64)
        words[word] |= numbers << xp.uint64(shift)
        if shift + self.label_bits > 64:
            words[word + 1] |= numbers >> xp.uint64(64 - shift)

    def own_labels(self, table: EmbeddingTable, graph: GraphArrays) -> NDArray[np.int32]:
        """Return the labels of the vertices of some rows, ascending."""
        xp = table.xp
        columns = list(table.columns())
        vertices = columns if self.of == "vertices" else [end for column in columns for end in edge_ends(column, xp)]
        found = xp.unique(graph.labels[xp.concatenate(vertices)])
        host: NDArray[np.int32] = found if isinstance(found, np.ndarray) else found.get()
        return host

    def codes(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the edges of keys, as bits: int64[keys]."""
        low = keys if keys.ndim == 1 else keys[1]
        return (low & np.uint64((1 << self.pairs) - 1)).astype(np.int64)

    def numbers(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the numbers of the labels of each vertex of keys: int64[vertices, keys]; there are labels."""
        words = [keys] if keys.ndim == 1 else [keys[1], keys[0]]
        mask = np.uint64((1 << self.label_bits) - 1)
        found = np.empty((self.vertices, len(words[0])), np.int64)
        for vertex in range(self.vertices):
            word, shift = divmod(self.pairs + vertex * self.label_bits, 64)
            numbers = words[word] >> np.uint64(shift)
            if shift + self.label_bits > 64:
                numbers |= words[word + 1] << np.uint64(64 - shift)
            found[vertex] = numbers & mask
        return found

    @cached_property
    def names(self) -> NDArray[np.int32]:
        """The label of each number; 0 for the number of vertices that a row does not have."""
        return np.append(np.empty(0, np.int32) if self.labels is None else self.labels, np.int32(0))

    def pattern(self, code: int) -> tuple[tuple[tuple[int, int], ...], int]:
        """Return the edges of a code, and how many vertices it has."""
        edges = code_edges(code, self.vertices)
        return edges, self.vertices if self.of == "vertices" else 1 + max(v for _, v in edges)


def _pair(u: int, v: int) -> int:
    return v * (v - 1) // 2 + u


def _as_key(words: list[Array], xp: Any) -> Array:
    return words[0] if len(words) == 1 else xp.stack([words[1], words[0]])


def _local_numbers(ends: list[Array], xp: Any) -> tuple[list[Array], Array]:
    """Number the vertices of each row in the order in which they first appear.

    Returns
    -------
    list of int8[rows]
        The number of each end.
    int8[rows]
        How many different vertices a row has.
    """
    numbers: list[Array] = []
    count = xp.zeros(len(ends[0]), xp.int8)
    for end in ends:
        number = count
        for other, before in zip(ends, numbers, strict=False):
            number = xp.where(end == other, before, number)
        count = xp.maximum(count, number + xp.int8(1))
        numbers.append(number)
    return numbers, count
