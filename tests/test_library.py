"""The five calls, against networkx and brute force."""

from collections import Counter
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from networkx.generators.atlas import graph_atlas_g

import longwall
from longwall.storage.build import build_graph


@pytest.fixture(scope="module")
def network() -> nx.Graph:
    graph = nx.gnp_random_graph(25, 0.25, seed=5)
    graph.remove_nodes_from(list(nx.isolates(graph)))
    return nx.relabel_nodes(graph, {v: 10 * v + 3 for v in graph})


@pytest.fixture(scope="module")
def graph(network):
    ends = np.array(network.edges, dtype=np.int64)
    ids = np.array(sorted(network), dtype=np.int64)
    return build_graph(ends[:, 0], ends[:, 1], vertex_labels=(ids, ids % 3))


def rows(embeddings):
    return [tuple(row.values()) for row in embeddings.to_arrow().to_pylist()]


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


def test_filter_refuses_what_is_no_mask(graph):
    with pytest.raises(longwall.InputError, match="bool array of shape"):
        longwall.filter(longwall.vertices(graph), lambda columns, graph, xp: columns[0])


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


def test_every_class_has_one_canonical_form(graph):
    """Renumbering a pattern never changes its canonical form, and different patterns never share one."""
    from longwall.stages.aggregation import _canonical

    rng = np.random.default_rng(0)
    forms = {}
    for atlas in graph_atlas_g():
        k = atlas.number_of_nodes()
        if 2 <= k <= 6 and nx.is_connected(atlas):
            numbers = rng.permutation(k)
            form, _ = _canonical([(int(numbers[u]), int(numbers[v])) for u, v in atlas.edges], None, k)
            assert form == _canonical(list(atlas.edges), None, k)[0]
            assert forms.setdefault(form, atlas) is atlas


def test_export_writes_whole_files_once(graph, tmp_path):
    import pyarrow.parquet as pq

    target = longwall.export(longwall.edges(graph), tmp_path / "edges.parquet")
    assert pq.read_table(target).equals(longwall.edges(graph).to_arrow())
    with pytest.raises(longwall.InputError, match="exists"):
        longwall.export(longwall.edges(graph), target)
    assert [p.name for p in tmp_path.iterdir()] == ["edges.parquet"]


def test_kinds_do_not_mix(graph):
    with pytest.raises(longwall.InputError, match=r"longwall.vertices"):
        longwall.extend_vertices(longwall.edges(graph))
    with pytest.raises(longwall.InputError, match=r"longwall.edges"):
        longwall.extend_edges(longwall.vertices(graph))
    with pytest.raises(longwall.InputError, match="columns 0 to 0"):
        longwall.extend_vertices(longwall.vertices(graph), [1])
