"""Aggregation by pattern, against brute force: many labels, keys that spill, labels without room in keys."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from itertools import combinations, pairwise, permutations
from typing import Any

import numpy as np
import pytest
from cases import each_case

import longwall
from longwall.kernels.interface.sorting import KeyLayout
from longwall.pipeline.embeddings import session
from longwall.stages.aggregation import pattern_keys
from longwall.stages.aggregation.by_pattern import BY_PATTERN, keys_at_once
from longwall.stages.aggregation.pattern_keys import ROW_BYTES, ROW_COLUMN_BYTES, PatternKeys
from longwall.storage.ingest.build import build_graph

Pattern = tuple[tuple[tuple[int, int], ...], tuple[int, ...]]


def smallest(edges: Any, labels: dict[int, int]) -> Pattern:
    """The smallest form of a pattern among all numberings of its vertices."""
    found = []
    for order in permutations(labels):
        place = {vertex: number for number, vertex in enumerate(order)}
        pairs = sorted((min(place[u], place[v]), max(place[u], place[v])) for u, v in edges)
        found.append((tuple(pairs), tuple(labels[vertex] for vertex in order)))
    return min(found)


def by_brute_force(table: Any, labels: Any) -> Counter[Pattern]:
    """The rows of a table by the smallest form of their patterns."""
    graph, found = table.graph, Counter[Pattern]()
    arcs = {(v, w) for v in range(graph.num_vertices) for w in graph.indices[graph.indptr[v] : graph.indptr[v + 1]]}
    for chunk in table.table.stream():
        for row in chunk.columns().T.tolist():
            if table.kind == "vertex":
                edges = [pair for pair in combinations(row, 2) if pair in arcs]
                vertices = row
            else:
                edges = [(code >> 32, code & 0xFFFFFFFF) for code in row]
                vertices = sorted({end for edge in edges for end in edge})
            found[smallest(edges, {v: int(labels[v]) for v in vertices})] += 1
    return found


def by_calls(table: Any, *, labelled: bool) -> Counter[Pattern]:
    """The same by `longwall.aggregate`; it must list every pattern once, in order."""
    found = longwall.aggregate(table, labelled=labelled).to_pylist()
    listed = [(tuple(tuple(map(int, e.split("-"))) for e in row["pattern"].split(",")), row["labels"]) for row in found]
    assert listed == sorted(listed, key=lambda item: (item[0], item[1] or ()))
    counts = Counter[Pattern]()
    for (edges, _), row in zip(listed, found, strict=True):
        names = row["labels"] or [0] * (1 + max(v for edge in edges for v in edge))
        form = smallest(edges, dict(enumerate(names)))
        assert form not in counts
        counts[form] = row["count"]
    return counts


@pytest.fixture(scope="module")
def many_labels() -> Any:
    """A graph with another label for every vertex."""
    rng = np.random.default_rng(8)
    pairs = np.array([(u, v) for u in range(40) for v in range(u) if rng.random() < 0.09 or v == u - 1])
    ids = np.arange(40)
    return build_graph(pairs[:, 0], pairs[:, 1], vertex_labels=(ids, ids * 50_000_017))


def grown(kind: str, graph: Any, engine: str = "cpu", **options: Any) -> Any:
    if kind == "vertex":
        table = longwall.extend_vertices(longwall.vertices(graph, engine, **options))
        return longwall.extend_vertices(table)
    return longwall.extend_edges(longwall.extend_edges(longwall.edges(graph, engine, **options)))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", ["vertex", "edge"])
def test_patterns_are_those_of_brute_force(kind: str, many_labels: Any, engine_kind: str) -> None:
    table = grown(kind, many_labels, engine_kind)
    assert by_calls(table, labelled=True) == by_brute_force(table, many_labels.labels)
    assert by_calls(table, labelled=False) == by_brute_force(table, np.zeros(40, np.int32))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "capacity"), [("vertex", 100_000), ("edge", 200_000)])
def test_keys_that_memory_has_no_room_for_are_spilled(
    kind: str, capacity: int, many_labels: Any, engine_kind: str, tmp_path: Any, monkeypatch: Any
) -> None:
    """Most keys are distinct, and a third of the memory, which sorting has, does not hold them."""
    spilled = []

    class Watched(session.KeySorter):
        def close(self) -> None:
            spilled.append(self.spilled)
            super().close()

    monkeypatch.setattr(session, "KeySorter", Watched)
    # The answer takes some hundred bytes a pattern, which is not what is looked at here.
    monkeypatch.setattr(longwall.stages.aggregation.by_pattern, "PATTERN_BYTES", 1)
    monkeypatch.setattr(longwall.stages.aggregation.by_pattern, "PATTERN_VERTEX_BYTES", 0)
    table = grown(kind, many_labels, engine_kind, memory=many_labels.nbytes + capacity, spill=tmp_path / "spill")
    used = table.session.host.used
    found = by_calls(table, labelled=True)
    assert max(spilled) > 0
    assert table.session.host.peak <= many_labels.nbytes + capacity
    assert table.session.host.used <= used
    assert found == by_brute_force(table, many_labels.labels)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(("kind", "bits"), [("vertex", 20), ("edge", 29)])
def test_labels_that_keys_have_no_room_for(
    kind: str, bits: int, many_labels: Any, engine_kind: str, monkeypatch: Any
) -> None:
    """A bit less than what the keys need; so pieces of a few rows have their own numbers for labels."""
    table = grown(kind, many_labels, engine_kind)
    expected = longwall.aggregate(table)
    keys = PatternKeys.of_table(table.kind, table.table.num_levels, many_labels.stats.label_counts)
    assert keys.bits == bits + 1
    monkeypatch.setattr(pattern_keys, "_MOST_BITS", bits)
    monkeypatch.setattr(session.Session, "counted_keys", None)
    assert longwall.aggregate(table).equals(expected)


@pytest.mark.parametrize(("labels", "fit"), [(2**15 - 1, True), (2**15, False)])
def test_keys_of_seven_vertices_have_fifteen_bits_for_a_label(labels: int, fit: bool) -> None:
    keys = PatternKeys.of_table("vertex", 7, range(labels))
    assert keys.fit == fit
    assert PatternKeys.of_table("vertex", 6, range(labels)).fit
    assert keys.most_labels == 2**15 - 1


@each_case("labels", [None, 3, 200, 2**15 - 1])
@each_case("vertices", [3, 4, 7])
def test_keys_keep_edges_and_labels(vertices: int, labels: int | None) -> None:
    """On a graph of one row: label numbers lie across the border of the words, too."""
    rng = np.random.default_rng(vertices)
    names = None if labels is None else np.sort(rng.choice(2**31, labels, replace=False)).astype(np.int32)
    keys = PatternKeys.of_table("vertex", vertices, None if names is None else names.tolist())
    pairs = np.array([(v - 1, v) for v in range(1, vertices)] + [(0, vertices - 1)])
    chosen = rng.integers(0, labels or 1, vertices)
    ids = np.arange(vertices)
    graph = build_graph(pairs[:, 0], pairs[:, 1], vertex_labels=(ids, ids if names is None else names[chosen]))
    table = longwall.vertices(graph)
    for _ in range(vertices - 1):
        table = longwall.extend_vertices(table)
    (chunk,) = table.table.stream()
    found = keys.of_rows(chunk, table.arrays)
    assert keys.layout == KeyLayout(words=found.ndim, reduce="count")
    for number, row in enumerate(chunk.columns().T.tolist()):
        near = {(u, v) for v in range(vertices) for u in range(v) if row[v] in _neighbours(graph, row[u])}
        edges, size = keys.pattern(int(keys.codes(found)[number]))
        assert (set(edges), size) == (near, vertices)
        if names is not None:
            assert (names[keys.numbers(found)[:, number]] == graph.labels[row]).all()


def _neighbours(graph: Any, vertex: int) -> list[int]:
    neighbours: list[int] = graph.indices[graph.indptr[vertex] : graph.indptr[vertex + 1]].tolist()
    return neighbours


def test_a_record_adds_up_the_same_however_keys_are_cut(many_labels: Any) -> None:
    table = grown("edge", many_labels)
    keys = PatternKeys.of_table("edge", 3, many_labels.stats.label_counts)
    (chunk,) = table.table.stream()
    found = keys.of_rows(chunk, table.arrays)
    counts = np.arange(1, len(chunk) + 1)
    whole = BY_PATTERN.finalize(BY_PATTERN.chunk(keys, found, counts))
    cuts = [0, 1, 500, len(chunk)]
    parts = [BY_PATTERN.chunk(keys, found[a:b], counts[a:b]) for a, b in pairwise(cuts)]
    assert BY_PATTERN.finalize(BY_PATTERN.combine(parts[::-1])) == whole
    assert sum(count for _, count in whole) == counts.sum()


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("kind", ["vertex", "edge"])
def test_temporaries_stay_within_what_is_reserved_for_a_row(kind: str, labelled: bool, many_labels: Any) -> None:
    table = grown(kind, many_labels)
    levels = table.table.num_levels
    keys = PatternKeys.of_table(kind, levels, many_labels.stats.label_counts if labelled else None)
    (chunk,) = table.table.stream()
    keys.of_rows(chunk, table.arrays)  # what is cached at first
    tracemalloc.start()
    found = keys.of_rows(chunk, table.arrays)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= len(chunk) * (ROW_BYTES + ROW_COLUMN_BYTES * levels)
    distinct, counts = np.unique(found, return_counts=True)
    most, _ = keys_at_once(keys, 1 << 30)
    some, counts = distinct[:most], counts[:most]
    BY_PATTERN.chunk(keys, some, counts)
    tracemalloc.start()
    BY_PATTERN.chunk(keys, some, counts)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    _, least = keys_at_once(keys, 1)
    assert peak <= max(len(some), 1000) * least
