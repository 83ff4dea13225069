"""The five calls, against networkx and brute force."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
from call_tables import rows

import longwall


def test_vertices_and_edges(network, graph):
    assert sorted(rows(longwall.vertices(graph))) == sorted((v,) for v in network)
    assert {frozenset(row) for row in rows(longwall.edges(graph))} == {frozenset(e) for e in network.edges}
    assert len(longwall.edges(graph)) == network.number_of_edges()


def test_extend_vertices_unites_neighbourhoods(network, graph):
    found = rows(longwall.extend_vertices(longwall.extend_vertices(longwall.vertices(graph))))
    expected = {(a, b, c) for a in network for b in network[a] for c in (set(network[a]) | set(network[b])) - {a, b}}
    assert len(found) == len(expected)
    assert set(found) == expected


def test_extend_vertices_intersects(network, graph):
    wedges = longwall.extend_vertices(longwall.vertices(graph), [0])
    found = rows(longwall.extend_vertices(wedges, [0, 1]))
    expected = {(a, b, c) for a in network for b in network[a] for c in set(network[a]) & set(network[b])}
    assert len(found) == len(expected)
    assert set(found) == expected


def test_extend_edges(network, graph):
    found = rows(longwall.extend_edges(longwall.edges(graph)))
    pairs = [(frozenset(row[:2]), frozenset(row[2:])) for row in found]
    edges = [frozenset(e) for e in network.edges]
    expected = {(e, f) for e in edges for f in edges if e != f and e & f}
    assert len(pairs) == len(expected)
    assert set(pairs) == expected


def test_filter_keeps_rows_and_compacts(network, graph):
    wedges = longwall.extend_vertices(longwall.vertices(graph), [0])
    kept = longwall.filter(wedges, lambda columns, graph, xp: columns[1] < columns[0])
    assert len(kept) == network.number_of_edges()
    assert len(longwall.filter(kept, lambda columns, graph, xp: columns[0] < 0)) == 0


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("labelled", [False, True])
def test_aggregate_vertex_patterns(network, graph, labelled):
    """Each induced connected subgraph of 4 vertices, counted by isomorphism class."""
    table = longwall.vertices(graph)
    for _ in range(3):
        table = longwall.extend_vertices(table)
    found = longwall.aggregate(table, labelled=labelled).to_pylist()
    names = {v: v % 3 for v in network} if labelled else dict.fromkeys(network, 0)
    total: Counter[str] = Counter()
    growths: Counter[str] = Counter()
    for chosen in combinations(network, 4):
        part = network.subgraph(chosen)
        if nx.is_connected(part):
            nx.set_node_attributes(part, names, "label")
            code = (
                nx.weisfeiler_lehman_graph_hash(part, node_attr="label")
                if labelled
                else str(sorted(d for _, d in part.degree))
            )
            total[code] += 1
            growths[code] += _connected_orders(part)
    assert sum(row["count"] for row in found) == sum(growths.values())
    assert sorted(row["count"] for row in found) == sorted(growths.values())
    assert all((row["labels"] is not None) == labelled for row in found)


def _connected_orders(part: nx.Graph) -> int:
    def grow(done: frozenset) -> int:
        if len(done) == len(part):
            return 1
        border = {w for v in done for w in part[v]} - done
        return sum(grow(done | {w}) for w in border)

    return sum(grow(frozenset([v])) for v in part)


def test_aggregate_edge_patterns(network, graph):
    """Connected sets of three edges, in every order in which they grow."""
    table = longwall.extend_edges(longwall.extend_edges(longwall.edges(graph)))
    found = {row["pattern"]: row["count"] for row in longwall.aggregate(table, labelled=False).to_pylist()}
    triangles = sum(nx.triangles(network).values()) // 3
    degrees = dict(network.degree)
    stars = sum(d * (d - 1) * (d - 2) // 6 for d in degrees.values())
    paths = sum((degrees[u] - 1) * (degrees[v] - 1) for u, v in network.edges) - 3 * triangles
    # Orders: all six of a triangle and a star; of a path the four whose first two edges touch.
    assert found == {"0-1,0-2,1-2": 6 * triangles, "0-1,0-2,0-3": 6 * stars, "0-1,0-2,1-3": 4 * paths}


def test_aggregate_labelled_edges_keeps_classes_apart(network, graph):
    found = longwall.aggregate(longwall.edges(graph)).to_pylist()
    expected = Counter(tuple(sorted((u % 3, v % 3))) for u, v in network.edges)
    assert {tuple(row["labels"]): row["count"] for row in found} == expected


def test_aggregate_by_key(network, graph):
    table = longwall.extend_vertices(longwall.vertices(graph), [0])
    found = longwall.aggregate(table, lambda columns, graph, xp: graph.labels[columns[0]]).to_pylist()
    expected = Counter(v % 3 for v in network for _ in network[v])
    assert {row["key"]: row["count"] for row in found} == expected


def test_a_key_may_ask_for_a_column_late(graph, tmp_path):
    """Only the columns that the first part asked for are read, until another one is asked for."""
    table = longwall.extend_vertices(longwall.vertices(graph, memory="200KiB", spill=tmp_path / "spill"))
    table = longwall.extend_vertices(table)
    calls = []

    def key(columns, graph, xp):
        calls.append(1)
        return columns[2] if len(calls) == 1 else columns[0]

    found = longwall.aggregate(table, key).to_pydict()
    assert len(calls) > 2
    assert sum(found["count"]) == len(table)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64, np.int8, np.float64, bool])
def test_keys_keep_their_values(graph, tmp_path, dtype):
    table = longwall.extend_vertices(longwall.vertices(graph, memory="100KiB", spill=tmp_path / "spill"))
    found = longwall.aggregate(table, lambda columns, graph, xp: columns[0].astype(dtype)).to_pylist()
    flat = longwall.aggregate(table, lambda columns, graph, xp: columns[0]).to_pylist()
    expected = Counter()
    for row in flat:
        expected[dtype(row["key"])] += row["count"]
    assert {row["key"]: row["count"] for row in found} == expected


def test_arithmetic_on_columns_does_not_wrap(graph):
    wedges = longwall.extend_vertices(longwall.vertices(graph))
    ids = graph.num_vertices
    found = longwall.aggregate(wedges, lambda c, graph, xp: c[0] * 2**33 + c[1] - ids).to_pylist()
    inner = [np.flatnonzero(graph.original_ids == v)[0] for v in sum(rows(wedges), ())]
    expected = Counter(int(a) * 2**33 + int(b) - ids for a, b in zip(inner[::2], inner[1::2], strict=True))
    assert {row["key"]: row["count"] for row in found} == expected
    assert len(longwall.filter(wedges, lambda c, graph, xp: c[0] - ids < 0)) == len(wedges)


def test_users_functions_cannot_change_a_table(graph):
    wedges = longwall.extend_vertices(longwall.vertices(graph))

    def change(part):
        def key(columns, graph, xp):
            array = columns[part] if isinstance(part, int) else getattr(graph, part)
            array[:] = 0

        return key

    for part in (0, 1, "indptr", "indices", "labels"):
        for call in (longwall.filter, longwall.aggregate):
            with pytest.raises(ValueError, match="read-only"):
                call(wedges, change(part))
    assert graph.indices.flags.writeable


def test_export_writes_whole_files_once(graph, tmp_path):
    target = longwall.export(longwall.edges(graph), tmp_path / "edges.parquet")
    assert pq.read_table(target).equals(longwall.edges(graph).to_arrow())
    with pytest.raises(longwall.InputError, match="exists"):
        longwall.export(longwall.edges(graph), target)
    assert [p.name for p in tmp_path.iterdir()] == ["edges.parquet"]


def test_an_export_keeps_off_other_files(graph, tmp_path):
    other = tmp_path / ".edges.parquet.partial"
    other.write_text("another export at work")
    longwall.export(longwall.edges(graph), tmp_path / "edges.parquet")
    assert other.read_text() == "another export at work"


def test_an_empty_table_is_exported_with_its_columns(graph, tmp_path):
    none = longwall.filter(longwall.edges(graph), lambda columns, graph, xp: columns[0] < 0)
    assert pq.read_table(longwall.export(none, tmp_path / "none.parquet")).column_names == ["e0_u", "e0_v"]
    assert longwall.aggregate(none, lambda columns, graph, xp: columns[0]).num_rows == 0
    assert longwall.aggregate(none).num_rows == 0
