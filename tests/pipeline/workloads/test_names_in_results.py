"""Every workload's results have the names and the labels of the input."""

import csv
import json
from itertools import combinations, permutations
from pathlib import Path

import networkx as nx
import pytest

import longwall

KINDS = ("person", "city", "firm")


@pytest.fixture
def network(tmp_path: Path) -> nx.Graph:
    graph = nx.relabel_nodes(nx.gnp_random_graph(40, 0.25, seed=3), lambda number: f"n {number}")
    nx.set_node_attributes(graph, {name: KINDS[len(name) % 2 + (name[-1] > "5")] for name in graph}, "kind")
    with (tmp_path / "g.csv").open("w") as file:
        csv.writer(file).writerows([("source", "target"), *graph.edges()])
    with (tmp_path / "v.csv").open("w") as file:
        csv.writer(file).writerows([("id", "label"), *graph.nodes(data="kind")])
    return graph


def run(folder: Path, labels: bool = False, **workload) -> longwall.Result:
    graph = {"path": str(folder / "g.csv")} | ({"vertices": str(folder / "v.csv")} if labels else {})
    config = {"graph": graph, "workload": workload, "engine": {"kind": "cpu"}, "run": {"directory": str(folder)}}
    return longwall.run(config)


def rows(result: longwall.Result, name: str) -> list[dict]:
    return result.table(name).to_pylist()


def test_embeddings(tmp_path, network):
    result = run(tmp_path, kind="triangles", output="embeddings")
    found = {frozenset(row.values()) for row in rows(result, "embeddings")}
    assert found == {frozenset(c) for c in nx.enumerate_all_cliques(network) if len(c) == 3}


@pytest.mark.parametrize("order", ["depth", "levels"])
@pytest.mark.parametrize("join", ["vertices", "edges"])
@pytest.mark.parametrize("sort", [False, True])
def test_columns_have_the_names_of_the_vertices_of_the_pattern(tmp_path, network, order, join, sort):
    kind = dict(network.nodes(data="kind"))
    config = {
        "graph": {"path": str(tmp_path / "g.csv"), "vertices": str(tmp_path / "v.csv")},
        "workload": {
            "kind": "match",
            "pattern": "(who:person)-(town:city)-(:firm)",
            "output": "embeddings",
            "join": join,
        },
        "export": {"sort": sort},
        "scheduler": {"order": order},
        "engine": {"kind": "cpu"},
        "run": {"directory": str(tmp_path)},
    }
    expected = {
        (who, town, firm)
        for town in network
        for who, firm in permutations(network[town], 2)
        if (kind[who], kind[town], kind[firm]) == KINDS
    }
    found = rows(longwall.run(config), "embeddings")
    assert {tuple(row) for row in found} == {("who", "town", "v0")}
    listed = [tuple(row.values()) for row in found]
    assert len(listed) == len(expected) > 0
    assert set(listed) == expected
    if sort:
        assert listed == sorted(listed)
    chosen = rows(longwall.run(config, overrides=['export.columns=["town","who"]']), "embeddings")
    assert {tuple(row) for row in chosen} == {("town", "who")}
    assert sorted(tuple(row.values()) for row in chosen) == sorted((town, who) for who, town, _ in expected)
    asked = longwall.match(longwall.open_graph(tmp_path / "g.csv", tmp_path / "v.csv"), config["workload"]["pattern"])
    assert asked.column_names == ["who", "town", "v0"]
    assert {tuple(row.values()) for row in asked.to_arrow().to_pylist()} == expected


def test_a_listing_that_began_with_numbered_columns_is_not_resumed(tmp_path, network):
    config = {
        "graph": {"path": str(tmp_path / "g.csv")},
        "workload": {"kind": "match", "pattern": "(a)-(b)-(c)-(d)-(a)", "output": "embeddings"},
        "scheduler": {"order": "levels"},
        "memory": {"disk": "8KiB"},
        "engine": {"kind": "cpu"},
        "run": {"directory": str(tmp_path), "name": "begun"},
    }
    with pytest.raises(longwall.RunError, match=r"memory\.disk"):
        longwall.run(config)
    path = tmp_path / "begun" / "manifest.json"
    text = path.read_text()
    manifest = json.loads(text)
    assert manifest["question"].pop("columns") == ["a", "b", "c", "d"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(longwall.InputError, match="its question is not the one that it began with; start a new run"):
        longwall.resume(tmp_path / "begun", overrides=["memory.disk=1GiB"])
    path.write_text(text)
    result = longwall.resume(tmp_path / "begun", overrides=["memory.disk=1GiB"])
    assert result.table().column_names == ["a", "b", "c", "d"]


def test_triangles_of_vertices(tmp_path, network):
    result = run(tmp_path, kind="triangles", output="vertices")
    found = {row["vertex"]: row["triangles"] for row in rows(result, "vertices")}
    assert found == nx.triangles(network)


def test_maximal_cliques(tmp_path, network):
    result = run(tmp_path, kind="maximal-cliques", output="embeddings")
    found = sorted(sorted(row["clique"]) for row in rows(result, "embeddings"))
    assert found == sorted(sorted(clique) for clique in nx.find_cliques(network))


def test_orbits(tmp_path, network):
    result = run(tmp_path, kind="motifs", output="vertices", k=3)
    assert {row["vertex"]: row["orbit_0"] for row in rows(result, "vertices")} == dict(network.degree())


def test_labels_of_a_pattern(tmp_path, network):
    result = run(tmp_path, labels=True, kind="match", pattern="0-1,1-2", pattern_labels=["person", "city", "person"])
    kind = dict(network.nodes(data="kind"))
    expected = sum(
        kind[v] == "city" and kind[a] == kind[b] == "person" for v in network for a, b in combinations(network[v], 2)
    )
    assert result.count == expected > 0
    assert result.patterns[0].labels == ("person", "city", "person")
    assert rows(result, "counts")[0]["labels"] == ["person", "city", "person"]


def test_frequent_patterns(tmp_path, network):
    result = run(tmp_path, labels=True, kind="frequent", min_support=1, max_edges=1, output="embeddings")
    kind = dict(network.nodes(data="kind"))
    found = {tuple(sorted(row["labels"])): row["count"] for row in rows(result, "patterns")}
    expected: dict[tuple[str, ...], int] = {}
    for u, v in network.edges():
        pair = tuple(sorted((kind[u], kind[v])))
        expected[pair] = expected.get(pair, 0) + 1
    assert found == expected
    assert {row["label_i"] for one in rows(result, "patterns") for row in one["dfs_code"]} <= set(KINDS)
    listed = rows(result, "embeddings")
    assert {frozenset((row["v0"], row["v1"])) for row in listed} == {frozenset(edge) for edge in network.edges()}


@pytest.mark.parametrize(
    ("labels", "pattern_labels", "says"),
    [
        (True, ["person", "cty", "person"], "no vertex of the graph has the label 'cty'; did you mean 'city'?"),
        (False, ["person", "city", "person"], "the graph has no labels: add graph.labels or graph.vertices"),
    ],
)
def test_labels_that_are_not_there(tmp_path, network, labels, pattern_labels, says):
    with pytest.raises(longwall.InputError, match=says):
        run(tmp_path, labels=labels, kind="match", pattern="0-1,1-2", pattern_labels=pattern_labels)


def test_calls(tmp_path, network):
    graph = longwall.graph(network)
    pairs = longwall.extend_vertices(longwall.vertices(graph, engine="cpu")).to_arrow().to_pylist()
    assert {frozenset(row.values()) for row in pairs} == {frozenset(edge) for edge in network.edges()}


def test_functions_have_names(tmp_path, network):
    graph = longwall.graph(network, "kind")
    rows = longwall.match(graph, "(a)-(b)-(c)-(a)")
    assert {frozenset(row.values()) for row in rows.to_arrow().to_pylist()} == {
        frozenset(clique) for clique in nx.enumerate_all_cliques(network) if len(clique) == 3
    }
    by_path = longwall.match(str(tmp_path / "g.csv"), "edge").head(3)
    assert all(network.has_edge(*row.values()) for row in by_path.to_pylist())
    kind = dict(network.nodes(data="kind"))
    expected = sum(
        kind[v] == "city" and kind[a] == kind[b] == "person" for v in network for a, b in combinations(network[v], 2)
    )
    for pattern, labels in (
        ("(a:person)-(b:city)-(c:person)", None),
        ("0-1,1-2", ["person", "city", "person"]),
        (nx.Graph([(0, 1), (1, 2)]), ["person", "city", "person"]),
    ):
        assert longwall.count(graph, pattern, labels=labels) == expected
    some = sum(kind[a] == "city" or kind[b] == "city" for a, b in network.edges())
    both = sum(kind[a] == kind[b] == "city" for a, b in network.edges())
    assert longwall.match(graph, "(a:city)-(b)").to_arrow().num_rows == some + both
    assert longwall.count(graph, "(a:city)-(b)") == some + both
    with pytest.raises(longwall.InputError, match="no vertex of the graph has the label 'town'"):
        longwall.count(graph, "(a:town)-(b)")
    with pytest.raises(longwall.InputError, match="the label 'city', but labels of this graph are integers"):
        longwall.count(longwall.graph([(0, 1)], {0: 1, 1: 1}), "(a:city)-(b)")
