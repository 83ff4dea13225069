"""Patterns with labels of edges: against networkx's matcher and brute force, in every order, join and budget."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow.parquet as pq
import pytest
from networkx.algorithms.isomorphism import GraphMatcher
from run_configs import run_config

import longwall
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.patterns.symmetry import automorphism_count, orbit
from longwall.storage.errors import InputError

Mapping = tuple[int, ...]
TRIANGLE = "(a)-[:0]-(b)-[:0]-(c), (a)-[:1]-(c)"


def network(seed: int, vertices: int = 14, share: float = 0.4) -> nx.Graph:
    draw, graph = random.Random(seed), nx.gnp_random_graph(vertices, share, seed=seed)
    graph.remove_nodes_from(list(nx.isolates(graph)))
    for _, _, data in graph.edges(data=True):
        data["kind"] = draw.choice([0, 0, 1, 3])
    for _, data in graph.nodes(data=True):
        data["label"] = draw.choice([0, 1])
    return graph


def as_pattern(text: str) -> nx.Graph:
    made = parse_pattern(text)
    graph = nx.Graph()
    for vertex in range(made.num_vertices):
        graph.add_node(vertex, label=made.label(vertex))
    for (u, v), kind in zip(made.edges, made.edge_labels or [None] * len(made.edges), strict=True):
        graph.add_edge(u, v, kind=kind)
    return graph


def mappings(graph: nx.Graph, query: nx.Graph, induced: bool) -> set[Mapping]:
    """All mappings, by networkx."""
    matcher = GraphMatcher(
        graph,
        query,
        node_match=lambda data, wanted: wanted["label"] in (-1, data["label"]),
        edge_match=lambda data, wanted: wanted["kind"] in (None, data["kind"]),
    )
    found = matcher.subgraph_isomorphisms_iter() if induced else matcher.subgraph_monomorphisms_iter()
    return {tuple(v for _, v in sorted((place, v) for v, place in one.items())) for one in found}


def automorphisms(query: nx.Graph) -> list[Mapping]:
    def keeps(image: Mapping) -> bool:
        edges = all(
            query.has_edge(image[u], image[v]) and query.edges[image[u], image[v]]["kind"] == data["kind"]
            for u, v, data in query.edges(data=True)
        )
        return edges and all(query.nodes[image[v]]["label"] == query.nodes[v]["label"] for v in query)

    return [image for image in permutations(range(len(query))) if keeps(image)]


def classes(found: set[Mapping], query: nx.Graph) -> set[Mapping]:
    """One mapping of each embedding."""
    group = automorphisms(query)
    return {min(tuple(one[v] for v in image) for image in group) for one in found}


def random_patterns(seed: int, count: int) -> Iterator[str]:
    draw = random.Random(seed)
    for _ in range(count):
        size = draw.randrange(2, 6)
        edges = {(draw.randrange(v), v) for v in range(1, size)}
        edges |= {(u, v) for v in range(size) for u in range(v) if draw.random() < 0.4}
        kinds = {edge: draw.choice(["", "[:0]", "[:0]", "[:1]"]) for edge in sorted(edges)}
        kinds[min(edges)] = "[:0]"
        nodes = [f"(v{v}{draw.choice(['', '', ':0', ':1'])})" for v in range(size)]
        dashes = {edge: f"-{kind}-" if kind else "-" for edge, kind in kinds.items()}
        yield ", ".join([*nodes, *(f"(v{u}){dash}(v{v})" for (u, v), dash in dashes.items())])


def config(graph: nx.Graph, folder: Path, **sections: Any) -> dict[str, Any]:
    lines = "".join(f"{u},{v},{kind}\n" for u, v, kind in graph.edges(data="kind"))
    (folder / "g.csv").write_text("source,target,kind\n" + lines)
    (folder / "labels.txt").write_text("".join(f"{v} {label}\n" for v, label in graph.nodes(data="label")))
    given = {"path": folder / "g.csv", "edge_label": "kind", "labels": folder / "labels.txt"}
    return run_config(folder, given, **sections)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_counts_and_rows_are_those_of_networkx(seed: int) -> None:
    graph = network(seed)
    data = longwall.graph(graph, "label", edge_labels="kind")
    for number, text in enumerate(random_patterns(seed, 10)):
        query, induced = as_pattern(text), number % 3 == 0
        expected = mappings(graph, query, induced)
        whole = classes(expected, query)
        assert longwall.count(data, text, induced=induced) == len(whole), text
        rows = [tuple(row.values()) for row in longwall.match(data, text, induced=induced).to_arrow().to_pylist()]
        assert set(rows) <= expected, text
        assert len(rows) == len(whole), text
        assert classes(set(rows), query) == whole, text


@pytest.mark.parametrize("seed", range(4))
def test_automorphisms_keep_labels_of_edges(seed: int) -> None:
    for text in random_patterns(seed + 100, 40):
        group, made = automorphisms(as_pattern(text)), parse_pattern(text)
        assert automorphism_count(made) == len(group), text
        for vertex in range(made.num_vertices):
            assert orbit(made, vertex) == {image[vertex] for image in group}, text
            assert orbit(made, vertex, [0]) == {image[vertex] for image in group if image[0] == 0}, text


def test_labels_take_symmetries_away() -> None:
    square = ((0, 1), (0, 3), (1, 2), (2, 3))
    assert automorphism_count(Pattern(4, square)) == 8
    assert automorphism_count(Pattern(4, square, edge_labels=(7, 7, 7, 7))) == 8
    assert automorphism_count(Pattern(4, square, edge_labels=(7, 5, 5, 7))) == 4
    assert automorphism_count(Pattern(4, square, edge_labels=(7, None, None, None))) == 2


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("join", ["vertices", "edges"])
@pytest.mark.parametrize("order", ["depth", "levels"])
@pytest.mark.parametrize("text", [TRIANGLE, "(a)-[:1]-(b)", "(a:0)-[:0]-(b)-[:0]-(c:0)-(d), (a)-(d)"])
def test_every_order_and_join(tmp_path: Path, engine_kind: str, join: str, order: str, text: str) -> None:
    graph, query = network(7), as_pattern(text)
    whole = classes(mappings(graph, query, False), query)
    workload = {"kind": "match", "pattern": text, "join": join}
    if order == "depth":
        counted = longwall.run(config(graph, tmp_path, workload=workload, engine={"kind": engine_kind}))
        assert counted.count == len(whole)
        mapped = longwall.run(config(graph, tmp_path, workload=workload | {"count": "mappings"}))
        assert mapped.count == len(mappings(graph, query, False))
    more = {"engine": {"kind": engine_kind}, "scheduler": {"order": order}}
    listed = longwall.run(config(graph, tmp_path, workload=workload | {"output": "embeddings"}, **more))
    rows = [tuple(row.values()) for row in listed.table("embeddings").to_pylist()]
    assert len(rows) == len(whole) == listed.count
    assert classes(set(rows), query) == whole


@pytest.mark.parametrize("access", ["resident", "adaptive", "zero-copy"])
@pytest.mark.gpu
def test_every_access_of_a_gpu(tmp_path: Path, access: str) -> None:
    graph, query = network(7), as_pattern(TRIANGLE)
    whole = classes(mappings(graph, query, False), query)
    workload = {"kind": "match", "pattern": TRIANGLE}
    more = {"engine": {"kind": "cuda"}, "memory": {"access": access}}
    assert longwall.run(config(graph, tmp_path, workload=workload, **more)).count == len(whole)
    listed = longwall.run(config(graph, tmp_path, workload=workload | {"output": "embeddings"}, **more))
    rows = [tuple(row.values()) for row in listed.table("embeddings").to_pylist()]
    assert classes(set(rows), query) == whole


@pytest.mark.gpu
def test_labels_that_have_no_room_on_a_gpu_are_read_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    from longwall.pipeline.execution import device_graph

    monkeypatch.setattr(device_graph, "_LABELS_SHARE", 1 << 40)
    graph, query = network(7), as_pattern(TRIANGLE)
    data = longwall.graph(graph, "label", edge_labels="kind")
    whole = classes(mappings(graph, query, False), query)
    assert longwall.count(data, TRIANGLE, engine="cuda") == len(whole)


@pytest.mark.slow
def test_little_memory_changes_nothing(tmp_path: Path) -> None:
    graph = network(5, 300, 0.1)
    text = "(a)-[:0]-(b)-[:1]-(c)-(d), (a)-(c)"
    workload, engine = {"kind": "match", "pattern": text}, {"kind": "cpu", "threads": 2}
    found = longwall.run(config(graph, tmp_path, workload=workload, engine=engine, memory={"host": "1MiB"}))
    data = longwall.graph(graph, edge_labels="kind")
    assert found.count == longwall.count(data, text) > 10_000
    stages = pq.read_table(Path(found.path) / "metrics.parquet").to_pylist()
    assert {row["level"] for row in stages if row["stage"] == "extend"} >= {2}


def test_texts_name_labels_and_results_have_them(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("source,target,kind\nann,bob,pays\nbob,cid,knows\ncid,ann,pays\ncid,dan,pays\n")
    graph = longwall.open_graph(tmp_path / "g.csv", edge_label="kind")
    assert longwall.count(graph, "(a)-[:pays]-(b)") == 3
    assert longwall.count(graph, "(a)-[:pays]-(b)-[:pays]-(c)") == 2
    rows = longwall.match(graph, "(a)-[:pays]-(b)-[:knows]-(c), (a)-[:pays]-(c)").to_arrow().to_pylist()
    assert [(row["a"], {row["b"], row["c"]}) for row in rows] == [("ann", {"bob", "cid"})]
    workload = {"kind": "match", "pattern": "(a)-[:pays]-(b)-(c)"}
    result = longwall.run({"graph": graph, "workload": workload, "run": {"directory": str(tmp_path / "runs")}})
    assert result.table("counts")["edge_labels"].to_pylist() == [["pays", None]]
    query = nx.Graph()
    query.add_edge("x", "y", label="pays")
    assert longwall.count(graph, query) == 3
    assert "label 0 to level 0" in str(longwall.explain(graph, "(a)-[:pays]-(b)"))
    refused = {
        "(a)-[:payz]-(b)": "no edge of the graph has the label 'payz'; did you mean 'pays'?",
        "(a:x)-[:pays]-(b)": "the graph has no labels",
    }
    for text, says in refused.items():
        with pytest.raises(InputError, match=says):
            longwall.count(graph, text)
    numbers = longwall.graph([(0, 1), (1, 2)], edge_labels=[4, 5])
    assert longwall.count(numbers, "(a)-[:4]-(b)") == 1
    assert longwall.count(numbers, "(a)-[:9]-(b)") == 0
    with pytest.raises(InputError, match="the label 'pays', but labels of its edges are integers"):
        longwall.count(numbers, "(a)-[:pays]-(b)")
    with pytest.raises(InputError, match=r"the edges of the graph have none: add graph\.edge_label"):
        longwall.count(longwall.graph([(0, 1)]), "(a)-[:4]-(b)")
