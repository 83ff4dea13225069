"""The aggregation stage: map every embedding to its pattern, then group and count.

Two steps (DESIGN of GAMMA section III-B): a cheap code per embedding that depends on the order of its vertices, reduced
by key on the engine; then the canonical form of the distinct codes only.
"""

from collections.abc import Callable
from itertools import permutations
from typing import Any

from longwall.kernels.engine import GraphArrays
from longwall.stages.free_extension import edge_ends, is_edge
from longwall.storage.errors import InputError
from longwall.storage.table import EmbeddingTable

MAX_VERTICES = 7  # canonical forms try up to 5,040 permutations per distinct code
Array = Any  # a NumPy or a CuPy array
PatternCode = tuple[tuple[tuple[int, int], ...], tuple[int, ...] | None]
"""Edges and labels of a canonical pattern."""


def vertex_patterns(table: EmbeddingTable, graph: GraphArrays, *, labelled: bool) -> list[tuple[PatternCode, int]]:
    """Count the vertex-induced patterns of a v-ET.

    Returns
    -------
    list of (pattern, number of rows)
        Canonical patterns, sorted.
    """
    xp, columns = table.xp, table.columns()
    k = columns.shape[0]
    if k > MAX_VERTICES:
        raise InputError(f"aggregation takes embeddings of at most {MAX_VERTICES} vertices, these have {k}")
    code = xp.zeros(len(table), dtype=xp.int64)
    for bit, (i, j) in enumerate(_pairs(k)):
        code |= is_edge(graph, columns[i], columns[j], xp).astype(xp.int64) << bit
    labels = [graph.labels[column] for column in columns] if labelled else []
    return _reduce(
        xp.stack([code, *labels]),
        xp,
        lambda key: _from_code(int(key[0]), [int(x) for x in key[1:]] or None, k),
    )


def edge_patterns(table: EmbeddingTable, graph: GraphArrays, *, labelled: bool) -> list[tuple[PatternCode, int]]:
    """Count the edge-induced patterns of an e-ET; parameters and result as in :func:`vertex_patterns`."""
    xp, columns = table.xp, table.columns()
    ends = xp.stack([end for column in columns for end in edge_ends(graph, column, xp)])
    # Local numbers: the first column in which the vertex of each column stands.
    local = xp.stack([(ends == ends[i]).argmax(axis=0) for i in range(ends.shape[0])])
    labels = [graph.labels[end] for end in ends] if labelled else []

    def pattern(key: Any) -> PatternCode:
        size = ends.shape[0]
        numbers = {int(x): i for i, x in enumerate(sorted({int(x) for x in key[:size]}))}
        edges = [(numbers[int(key[2 * i])], numbers[int(key[2 * i + 1])]) for i in range(size // 2)]
        if len(numbers) > MAX_VERTICES:
            raise InputError(
                f"aggregation takes embeddings of at most {MAX_VERTICES} vertices, these have {len(numbers)}"
            )
        names = {numbers[int(key[i])]: int(key[size + i]) for i in range(size)} if labelled else None
        return _canonical(edges, None if names is None else [names[i] for i in range(len(numbers))], len(numbers))

    return _reduce(xp.concatenate([local, xp.stack(labels)]) if labelled else local, xp, pattern)


def count_by(keys: Array, xp: Any) -> list[tuple[Any, int]]:
    """Group equal keys (an array with one entry per row) and count each, sorted by key."""
    values, counts = xp.unique(keys, return_counts=True)
    return list(zip(values.tolist(), counts.tolist(), strict=True))


def _reduce(keys: Array, xp: Any, pattern: Callable[[Any], PatternCode]) -> list[tuple[PatternCode, int]]:
    """Group the columns of `keys`; then merge the groups whose canonical patterns are equal."""
    totals: dict[PatternCode, int] = {}
    if keys.shape[1]:
        order = xp.lexsort(keys[::-1])
        ordered = keys[:, order]
        new = xp.concatenate([xp.ones(1, dtype=bool), (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)])
        starts = xp.flatnonzero(new)
        counts = xp.diff(xp.concatenate([starts, xp.asarray([keys.shape[1]])]))
        for key, count in zip(ordered[:, starts].T.tolist(), counts.tolist(), strict=True):
            code = pattern(key)
            totals[code] = totals.get(code, 0) + count
    return sorted(totals.items(), key=lambda item: (item[0][0], item[0][1] or ()))


def _pairs(k: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(k) for j in range(i + 1, k)]


def _from_code(code: int, labels: list[int] | None, k: int) -> PatternCode:
    return _canonical([pair for bit, pair in enumerate(_pairs(k)) if code >> bit & 1], labels, k)


def _canonical(edges: list[tuple[int, int]], labels: list[int] | None, k: int) -> PatternCode:
    """The smallest (labels, edges) over the permutations that sort the vertices by label and degree."""
    degree = [sum(v in edge for edge in edges) for v in range(k)]
    rank = [(labels[v] if labels else 0, -degree[v]) for v in range(k)]
    groups = [[v for v in range(k) if rank[v] == r] for r in sorted(set(rank))]

    def orders(left: list[list[int]]) -> Any:
        if not left:
            yield ()
            return
        for head in permutations(left[0]):
            for tail in orders(left[1:]):
                yield head + tail

    best: tuple[tuple[int, int], ...] | None = None
    for order in orders(groups):
        number = {v: i for i, v in enumerate(order)}
        candidate = tuple(sorted({(min(number[u], number[v]), max(number[u], number[v])) for u, v in edges}))
        if best is None or candidate < best:
            best = candidate
    assert best is not None
    return best, tuple(sorted(labels)) if labels else None
