"""The aggregation stage: map every embedding to its pattern, then group and count.

Two steps (GAMMA section III-B): a cheap code per embedding that depends on the order of its vertices, reduced by key
on the engine, part by part of a table; then the canonical form of the distinct codes only.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from longwall.kernels.interface.frontier import NeighbourRange, RowReads
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.patterns.pattern_codes import PatternCode, canonical_pattern, code_edges
from longwall.stages.extension.adjacency_lists import is_edge
from longwall.stages.extension.unguided_edges import edge_ends
from longwall.storage.errors import InputError
from longwall.storage.tables.embedding_table import EmbeddingTable

MAX_VERTICES = 7
ROW_BYTES, ROW_COLUMN_BYTES = 256, 96
"""Bytes of memory that arrays for the codes of a row take, and more for each of its columns."""
CODE_BYTES, CODE_COLUMN_BYTES = 240, 96
"""Bytes of a distinct code in `Codes`, and more for each column: a tuple of integers in a dictionary."""
Array = Any  # a NumPy or a CuPy array
Codes = Counter[tuple[int, ...]]
"""Rows per code; the codes of several parts of a table may be added up."""


def require_few(vertices: int) -> None:
    """Refuse patterns of more vertices than can be brought to a canonical form (InputError)."""
    if vertices > MAX_VERTICES:
        raise InputError(f"aggregation takes embeddings of at most {MAX_VERTICES} vertices, and some have {vertices}")


def vertex_codes(table: EmbeddingTable, graph: GraphArrays, *, labelled: bool) -> Codes:
    """Count the rows of a v-ET by code (see `longwall.kernels.patterns.pattern_codes`), and labels."""
    xp, columns = table.xp, table.columns()
    k = columns.shape[0]
    if graph.pages is not None:
        graph.pages.touch(k, [RowReads(columns[i], NeighbourRange.ALL, k - 1 - i) for i in range(k - 1)])
    code = xp.zeros(len(table), dtype=xp.int64)
    pairs = ((i, j) for j in range(k) for i in range(j))
    for bit, (i, j) in enumerate(pairs):
        code |= is_edge(graph, columns[i], columns[j], xp).astype(xp.int64) << bit
    labels = [graph.labels[column] for column in columns] if labelled else []
    return _counted(xp.stack([code, *labels]), xp)


def vertex_patterns(codes: Codes, num_levels: int) -> list[tuple[PatternCode, int]]:
    """The vertex-induced patterns of a v-ET of so many levels, from its codes.

    Returns
    -------
    list of (pattern, number of rows)
        Canonical patterns, sorted.
    """

    def pattern(key: tuple[int, ...]) -> PatternCode:
        return canonical_pattern(code_edges(key[0], num_levels), key[1:] or None, num_levels)

    return _merged(codes, pattern)


def edge_codes(table: EmbeddingTable, graph: GraphArrays, *, labelled: bool) -> Codes:
    """Count the rows of an e-ET by code: where each end of each edge stands first, then the labels of the ends."""
    xp = table.xp
    ends = xp.stack([end for column in table.columns() for end in edge_ends(column, xp)])
    # Local numbers: the first column in which the vertex of each column stands.
    local = xp.stack([(ends == ends[i]).argmax(axis=0) for i in range(ends.shape[0])])
    require_few(int((local == xp.arange(ends.shape[0])[:, None]).sum(axis=0).max()) if len(table) else 0)
    labels = [xp.stack([graph.labels[end] for end in ends])] if labelled else []
    return _counted(xp.concatenate([local, *labels]), xp)


def edge_patterns(codes: Codes, num_levels: int) -> list[tuple[PatternCode, int]]:
    """The edge-induced patterns of an e-ET of so many levels; result as in :func:`vertex_patterns`."""
    size = 2 * num_levels

    def pattern(key: tuple[int, ...]) -> PatternCode:
        numbers = {x: i for i, x in enumerate(sorted(set(key[:size])))}
        edges = tuple((numbers[key[2 * i]], numbers[key[2 * i + 1]]) for i in range(num_levels))
        names = {numbers[key[i]]: key[size + i] for i in range(size)} if len(key) > size else None
        labels = None if names is None else tuple(names[i] for i in range(len(numbers)))
        return canonical_pattern(edges, labels, len(numbers))

    return _merged(codes, pattern)


def _counted(keys: Array, xp: Any) -> Codes:
    """Group the columns of `keys` and count each group."""
    if not keys.shape[1]:
        return Counter()
    order = xp.lexsort(keys[::-1])
    ordered = keys[:, order]
    new = xp.concatenate([xp.ones(1, dtype=bool), (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)])
    starts = xp.flatnonzero(new)
    counts = xp.diff(xp.concatenate([starts, xp.asarray([keys.shape[1]])]))
    return Counter(dict(zip(map(tuple, ordered[:, starts].T.tolist()), counts.tolist(), strict=True)))


def _merged(codes: Codes, pattern: Callable[[tuple[int, ...]], PatternCode]) -> list[tuple[PatternCode, int]]:
    """Merge the codes of equal patterns."""
    totals: Counter[PatternCode] = Counter()
    for key, count in codes.items():
        totals[pattern(key)] += count
    return sorted(totals.items(), key=lambda item: (item[0][0], item[0][1] or ()))
