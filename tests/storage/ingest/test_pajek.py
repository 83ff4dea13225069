"""Pajek networks: what networkx and igraph write is read as they read it; all else is refused with its line."""

import random
import warnings
from pathlib import Path
from typing import Any

import igraph
import networkx as nx
import pytest
from cases import each_case

import longwall
from longwall.storage.errors import InputError
from longwall.storage.ingest.ingest import ingest, load_graph
from longwall.storage.ingest.readers.edge_stream import FileRequest
from longwall.storage.ingest.readers.pajek import open_pajek
from longwall.storage.ingest.tables.columns import EDGES, ColumnRequest
from longwall.storage.ingest.tables.table_options import TableOptions
from longwall.storage.ingest.text import raw_blocks

NAMES = ["ann", "Bob B.", "é", "x,y", "n0", "-3", "# c", "% d", "a & <b>", "*e", "007"]


def edges_of(graph: longwall.Graph) -> set[frozenset[Any]]:
    table = graph.to_arrow()
    return {frozenset(edge) for edge in zip(*(table[name].to_pylist() for name in ("source", "target")), strict=True)}


def numbers_of(graph: longwall.Graph) -> dict[str, int]:
    return {note.kind: note.count for note in graph.notes if note.kind != "choice"}


def random_network(rng: random.Random, named: bool) -> nx.MultiGraph:
    """Make a graph with loops, repeated edges and nodes without an edge."""
    nodes: list[Any] = rng.sample(NAMES, len(NAMES)) if named else rng.sample(range(-5, 50), 12)
    graph: nx.MultiGraph = rng.choice([nx.MultiGraph, nx.MultiDiGraph])()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((rng.choice(nodes[:9]), rng.choice(nodes[:9])) for _ in range(20))
    return graph


def expected_of(graph: nx.MultiGraph) -> tuple[set[frozenset[Any]], dict[str, int]]:
    kept = [edge for edge in graph.edges() if edge[0] != edge[1]]
    edges = {frozenset(edge) for edge in kept}
    numbers = {
        "directions": len(kept) * graph.is_directed(),
        "loops": graph.number_of_edges() - len(kept),
        "repeated": len(kept) - len(edges),
        "isolated": len(graph) - len({node for edge in kept for node in edge}),
    }
    return edges, {kind: count for kind, count in numbers.items() if count}


@each_case("seed", range(60))
def test_what_networkx_writes(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    named = rng.random() < 0.7
    network = random_network(rng, named)
    monkeypatch.setattr(raw_blocks, "_LEAST", rng.choice([80, 200, 2**16]))
    monkeypatch.setattr(raw_blocks, "_LARGEST", 2**7)
    path = tmp_path / "g.net"
    nx.write_pajek(network, path)
    text = path.read_text()
    names = dict.fromkeys(nx.read_pajek(path), str) if named else {}
    assert set(names) == (set(network) if named else set())
    path.write_text(rng.choice([text, text.replace("\n", "\r\n"), text.rstrip(), f"*Network a b\n{text}\n\n"]))
    graph = load_graph(path)
    assert (edges_of(graph), numbers_of(graph)) == expected_of(network)
    assert graph.has_names == named
    by_number = load_graph(path, table=TableOptions(ids="integers"))
    numbers = {node: at for at, node in enumerate(network, 1)}
    assert edges_of(by_number) == {frozenset(map(numbers.get, edge)) for edge in edges_of(graph)}
    as_names = load_graph(path, table=TableOptions(ids="names"))
    assert edges_of(as_names) == {frozenset(map(str, edge)) for edge in edges_of(graph)}


@each_case("seed", range(20))
def test_what_igraph_writes(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    names = ['the "5"', "a\\b", 'c\\"d', *NAMES]
    rng.shuffle(names)
    graph = igraph.Graph.Erdos_Renyi(len(names), m=20, directed=rng.random() < 0.5)
    if labelled := rng.random() < 0.7:
        graph.vs["name"] = names
    graph.es["weight"] = [rng.random() for _ in graph.es]
    graph.write_pajek(str(tmp_path / "g.net"))
    ends = names if labelled else range(1, len(names) + 1)
    expected = {frozenset((ends[u], ends[v])) for u, v in graph.get_edgelist()}
    assert edges_of(load_graph(tmp_path / "g.net")) == expected


SECTIONS = """% c
*Network "A network"
*VERTICES 6 2
1 "a" 0.1 0.2 ic Red
% between
3 c
2 "b b"   box
 4 "d"
5 "e"
6 "f"
*Arcs :1 "likes"
1 2 1 l "x" p Dots
2 1
*edges
 3 3 1
2   3
*Arcslist
4 1 2 3
*Edgeslist
5 1 4
5
"""


def test_all_sections_are_one_graph(tmp_path: Path) -> None:
    (tmp_path / "g.net").write_text(SECTIONS)
    graph = load_graph(tmp_path / "g.net")
    expected = [("a", "b b"), ("b b", "c"), ("d", "a"), ("d", "b b"), ("d", "c"), ("e", "a"), ("e", "d")]
    assert edges_of(graph) == {frozenset(edge) for edge in expected}
    assert numbers_of(graph) == {"directions": 5, "loops": 1, "repeated": 1, "isolated": 1, "comments": 2}
    ingest(tmp_path / "g.net", tmp_path / "g.zarr")
    assert longwall.open_graph(tmp_path / "g.zarr").content_hash == graph.content_hash


@each_case(
    ("vertices", "says"),
    [
        ('1 "a"\n2 "a"\n3 "b"', "3 vertices have 2 different labels; vertices have their numbers"),
        ('1 "a"\n3 "b"', "1 of 3 vertices have no label; vertices have their numbers"),
        ('1 "a"\n2\n3 ""', "2 of 3 vertices have no label; vertices have their numbers"),
        ("1\n2\n3", ""),
        ("", ""),
    ],
)
def test_labels_that_are_no_names_are_a_guess(tmp_path: Path, vertices: str, says: str) -> None:
    (tmp_path / "g.net").write_text(f"*Vertices 3\n{vertices}\n*Edges\n1 2\n3 2\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = longwall.open_graph(tmp_path / "g.net")
    assert edges_of(graph) == {frozenset((1, 2)), frozenset((2, 3))}
    assert [says in str(one.message) for one in caught] == ([True] if says else [])
    named = load_graph(tmp_path / "g.net", table=TableOptions(ids="names"))
    assert edges_of(named) == {frozenset("12"), frozenset("23")}


HEAD = "*Vertices 3\n"
REFUSED = {
    "no vertices": ("% c\n\n", "there are no vertices; begin the file with '*Vertices N'"),
    "a list of edges": ("1 2\n", "line 1: '1' stands ahead of the vertices"),
    "edges first": ("*Network\n*Edges\n", "line 2: this stands ahead of the vertices"),
    "no number of vertices": ("*Vertices\n", "line 1: the number of vertices is missing; write '*Vertices N'"),
    "a word as number of vertices": ("*Vertices x\n", "line 1: the number of vertices is missing"),
    "a large number of vertices": (f"*Vertices {2**64}\n", "line 1: the number of vertices is missing"),
    "a name in place of a vertex": (f'{HEAD}"a" 1\n', "line 2: '\"a\"' is not the number of a vertex"),
    "vertex 0": (f"{HEAD}0 a\n", "line 2: vertex '0' is outside 1..3; correct it or the line '*Vertices'"),
    "a vertex that is not announced": (f"{HEAD}*Edges\n1 4\n", "line 3: vertex '4' is outside 1..3"),
    "a large vertex": (f"{HEAD}*Edges\n1 {2**64 + 1}\n", f"line 3: vertex '{2**64 + 1}' is outside 1..3"),
    "an end that is missing": (f"{HEAD}*Edges\n1 2\n3\n", "line 4: the second end of an edge is missing"),
    "an end that is a word": (f"{HEAD}*Edges\n1 x\n", "line 3: 'x' is not the number of a vertex"),
    "a list with a word": (f"{HEAD}*Arcslist\n1 2 x\n", "line 3: 'x' is not the number of a vertex"),
    "an open quote": (f'{HEAD}1 "a\n2 b"\n', "line 2: a quote that the line does not close"),
    "a vertex twice": (f"{HEAD}1 a\n2 b\n1 c\n*Edges\n1 2\n", "line 5: vertex 1 is declared a second time above"),
    "a matrix": (f"{HEAD}*Matrix\n0 1 0\n", "line 2: *matrix is not read; write the edges as *Edges"),
    "another object": (f"{HEAD}*Edges\n1 2\n*Partition a\n", "line 4: *partition is not read"),
    "a star alone": (f"{HEAD}*\n", "line 2: * is not read"),
    "two networks": (f"{HEAD}*Edges\n1 2\n{HEAD}", "line 4: a second network begins here"),
    "Latin-1": (f"{HEAD}1 a\n2 b\n3 \xe9\n*Edges\n1 2\n".encode("latin-1"), "the label of vertex 3 is not UTF-8"),
    "binary": (f"{HEAD}1 a\x01\n", "line 2: binary data (byte 0x01)"),
    "a carriage return": (f"{HEAD}*Edges\n1 2\r3 4\n", "line 3: a carriage return without a newline"),
    "no edges": ("*Vertices 0\n*Edges\n", "there are no edges"),
    "a line without end": (f"{HEAD}{' ' * 2_000_000}", "line 2: longer than 1,048,576 bytes"),
}


@each_case("case", REFUSED)
def test_files_that_are_refused(tmp_path: Path, case: str) -> None:
    content, says = REFUSED[case]
    (tmp_path / "g.net").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as refused:
        load_graph(tmp_path / "g.net")
    assert str(refused.value).startswith(str(tmp_path / "g.net"))
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_options_that_pajek_files_have_not(tmp_path: Path) -> None:
    (tmp_path / "g.net").write_text(f"{HEAD}*Edges\n1 2\n")
    for options in (TableOptions(edge_label="a"), TableOptions(columns=(1, 2)), TableOptions(vertex_name="a")):
        with pytest.raises(InputError, match="leave"):
            load_graph(tmp_path / "g.net", table=options)


def test_labels_are_within_the_memory_of_reading(tmp_path: Path) -> None:
    count = 20_000
    lines = "\n".join(f'{at} "vertex number {at}"' for at in range(1, count + 1))
    (tmp_path / "g.net").write_text(f"*Vertices {count}\n{lines}\n*Edges\n1 2\n")
    with pytest.raises(InputError, match=r"the labels of the vertices take more than the 1 MiB"):
        list(open_pajek(FileRequest(tmp_path / "g.net", 2**21, 1, columns=ColumnRequest(EDGES))).blocks)
    numbered = open_pajek(FileRequest(tmp_path / "g.net", 2**21, 1, columns=ColumnRequest(EDGES, ids="integers")))
    assert sum(len(block.src) for block in numbered.blocks) == 1
