"""METIS files: lists of neighbours with weights and comments are the graph; all else is refused with its line."""

import random
import tracemalloc
from pathlib import Path

import networkx as nx
import pytest
from cases import each_case

import longwall
from longwall.storage.errors import InputError
from longwall.storage.ingest.ingest import ingest, load_graph
from longwall.storage.ingest.readers.edge_stream import FileRequest
from longwall.storage.ingest.readers.metis import open_metis
from longwall.storage.ingest.text import raw_blocks


def written(graph: nx.Graph, rng: random.Random, kind: str, weights: int) -> str:
    """Write a graph whose nodes are 1, 2, ..., n; `kind` is the format of the header."""
    sizes, of_vertices, of_edges = (digit == "1" for digit in kind.zfill(3))
    header = [str(len(graph)), str(graph.number_of_edges()), kind, str(weights)]
    lines = ["% c 1 2", " ".join(header[: rng.choice([3, 4]) if weights == 1 else 4] if kind else header[:2])]
    for vertex in range(1, len(graph) + 1):
        fields = [rng.randrange(99)] * sizes + [rng.randrange(9) for _ in range(weights)] * of_vertices
        for other in rng.sample(list(graph[vertex]), len(graph[vertex])):
            fields += [other, *([rng.randrange(1, 10**6)] * of_edges)]
        lines.append(rng.choice([" ", "  ", "\t"]).join(map(str, fields)) + rng.choice(["", " "]))
        if rng.random() < 0.1:
            lines.append(rng.choice(["% between", "  %"]))
    return rng.choice(["\n", "\r\n"]).join([*lines, *rng.choice([[], [""], ["", "  ", "% end"]])])


def edges_of(graph: longwall.Graph) -> set[frozenset[int]]:
    table = graph.to_arrow()
    return {frozenset(edge) for edge in zip(*(table[name].to_pylist() for name in ("source", "target")), strict=True)}


@each_case("seed", range(60))
def test_random_graphs_in_every_format(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    network = nx.gnm_random_graph(rng.choice([2, 7, 40]), rng.choice([1, 10, 60]), seed=seed)
    network = nx.relabel_nodes(network, {node: node + 1 for node in network})
    kind = rng.choice(["", "0", "1", "001", "10", "011", "100", "111"])
    text = written(network, rng, kind, rng.choice([1, 1, 3]))
    monkeypatch.setattr(raw_blocks, "_LEAST", rng.choice([16, 61, 2**16]))
    monkeypatch.setattr(raw_blocks, "_LARGEST", 2**6)
    path = tmp_path / rng.choice(["g.graph", "g.metis"])
    path.write_text(rng.choice(["", "\ufeff"]) + text)
    graph = load_graph(path)
    assert edges_of(graph) == {frozenset(edge) for edge in network.edges()}
    numbers = {note.kind: note.count for note in graph.notes}
    assert numbers.pop("comments") == sum(line.strip().startswith("%") for line in text.splitlines())
    isolated = nx.number_of_isolates(network)
    assert numbers == ({"isolated": isolated} if isolated else {})


def test_neighbours_of_a_hub_fill_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_blocks, "_LARGEST", raw_blocks._LEAST)
    size = 100_000
    lines = [f"{size} {size - 1}", " ".join(map(str, range(2, size + 1))), *["1"] * (size - 1)]
    (tmp_path / "star.metis").write_text("\n".join(lines))
    ingest(tmp_path / "star.metis", tmp_path / "star.zarr")
    graph = longwall.open_graph(tmp_path / "star.zarr")
    assert (graph.num_vertices, graph.num_edges, graph.stats.max_degree) == (size, size - 1, size - 1)
    tracemalloc.start()
    try:
        with open_metis(FileRequest(tmp_path / "star.metis", 2**21, 1)) as stream:
            assert sum(len(block.src) for block in stream.blocks) == 2 * (size - 1)
        assert tracemalloc.get_traced_memory()[1] < 2**21 + 2**17
    finally:
        tracemalloc.stop()


def test_what_is_dropped_is_counted(tmp_path: Path) -> None:
    (tmp_path / "g.graph").write_text("4 3\n2 3 1\n1 1\n\n\n")
    with pytest.warns(longwall.DataNote) as caught:
        graph = longwall.open_graph(tmp_path / "g.graph")
    assert edges_of(graph) == {frozenset((1, 2)), frozenset((1, 3))}
    numbers = {note.kind: note.count for note in graph.notes if note.kind != "guess"}
    assert numbers == {"directions": 1, "loops": 1, "repeated": 1, "isolated": 1}
    said = "3 edges are announced; the file has 5 neighbours, not twice as many"
    assert [said in str(one.message) for one in caught] == [True, False]


REFUSED = {
    "a list of edges": ("1,2\n2,3\n", "line 1: '1,2' is not an integer"),
    "one number": ("3\n", "line 1: this is not the header of a METIS graph"),
    "five numbers": ("3 2 1 1 1\n", "line 1: this is not the header of a METIS graph"),
    "an unknown format": ("3 2 2\n", "line 1: this is not the header"),
    "no weights": ("2 1 10 0\n", "line 1: this is not the header"),
    "comments alone": ("% a\n\n% b\n", "line 4: there is no header; write 'VERTICES EDGES'"),
    "a word": ("3 2\n2 3\n1 x\n1\n", "line 3: 'x' is not an integer"),
    "a number below 0": ("3 2\n2 3\n-1\n1\n", "line 3: '-1' is not an integer"),
    "vertex 0": ("% c\n3 2\n\n0\n", "line 4: vertex 2 has the neighbour '0', which is outside 1..3"),
    "a vertex that is not announced": ("3 2\n2 4\n", "line 2: vertex 1 has the neighbour '4', which is outside 1..3"),
    "a large number": (f"3 2\n{2**64}\n", f"line 2: '{2**64}' is 2^63 or more"),
    "a large size": (f"{10**30} 2\n", f"line 1: '{10**30}' is 2^63 or more"),
    "too many lines": ("2 1\n2\n1\n\n1\n", "line 5: this line is that of vertex 3, and 2 are announced"),
    "too few lines": ("4 1\n2\n1\n", "4 vertices are announced, and the file has lines of 2"),
    "a neighbour without weight": ("2 1 1\n2 5\n1\n", "line 3: a neighbour of vertex 2 has no weight"),
    "a vertex without weights": ("2 1 10 2\n1 1 2\n1\n", "line 3: vertex 2 has fewer weights than the header"),
    "binary": ("2 1\n2\n\x011\n", "line 3: binary data (byte 0x01)"),
    "a carriage return": ("2 1\n2\r1\n", "line 2: a carriage return without a newline"),
    "a word without end": ("2 1\n" + "1" * 2_000_000, "line 2: longer than 1,048,576 bytes"),
    "a comment without end": ("2 1\n%" + "a" * 2_000_000, "line 2: longer than 1,048,576 bytes"),
}


@each_case("case", REFUSED)
def test_files_that_are_refused(tmp_path: Path, case: str) -> None:
    content, says = REFUSED[case]
    (tmp_path / "g.metis").write_bytes(content.encode())
    with pytest.raises(InputError) as refused:
        load_graph(tmp_path / "g.metis")
    assert str(refused.value).startswith(str(tmp_path / "g.metis"))
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_graph_file_is_told_apart_by_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "g.graph"
    path.write_text("t 2 1\nv 0 1 1\nv 1 1 1\ne 0 1\n")
    assert load_graph(path).labels is not None
    path.write_text("2 1\n2\n1\n")
    assert load_graph(path).labels is None
    with pytest.raises(InputError, match=r"not the header of a \.graph file.*or name a METIS file \.metis"):
        load_graph(path, file_format="graph")
