"""Labels that are texts in .lg, .graph and gSpan files; DIMACS files; repeated edges in GML."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from cases import each_case

import longwall
from longwall.storage.errors import InputError
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.ingest import load_graph
from longwall.storage.ingest.readers.edge_stream import FileRequest

GENES = "t # 0\nv 0 MAP3K1\nv 1 ASXL1\nv 2 JUN\ne 0 1 4\ne 1 2 4\nt # 1\nv 0 ASXL1\nv 1 MAP3K1\ne 0 1 4\n"


def labels_of(graph: Graph) -> list[str | int]:
    assert graph.labels is not None
    labels = dict(zip(graph.all_ids().to_pylist(), graph.labels.tolist(), strict=True))
    return [labels[at] if graph.label_names is None else graph.label_names[labels[at]] for at in sorted(labels)]


def read(tmp_path: Path, name: str, content: str) -> Graph:
    (tmp_path / name).write_text(content)
    return load_graph(tmp_path / name)


def refusal(tmp_path: Path, name: str, content: str) -> str:
    with pytest.raises(InputError) as caught:
        read(tmp_path, name, content)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "labels"),
    [
        ("g.gspan", GENES, ["MAP3K1", "ASXL1", "JUN", "ASXL1", "MAP3K1"]),
        ("g.lg", '# t 1\nv 0 "1"\nv 1 "2 3"\ne 0 1 "5"\n', ["1", "2 3"]),
        ("g.lg", "t # 1\nv 0 6\nv 1 C\ne 0 1 1\n", ["6", "C"]),
        ("g.lg", "t # 1\nv 0 6\nv 1 7\ne 0 1 x\n", [6, 7]),
        ("g.lg", "t # 1\nv 0 C\ne 0 1\nv 1 O\nt # -1\n", ["C", "O"]),
        ("g.graph", "t 3 2\nv 0 C 1\nv 1 O 2\nv 2 C 1\ne 0 1\ne 1 2\n", ["C", "O", "C"]),
    ],
)
def test_texts_are_labels(tmp_path: Path, name: str, content: str, labels: list[str | int]) -> None:
    assert labels_of(read(tmp_path, name, content)) == labels


def test_texts_label_edges(tmp_path: Path) -> None:
    graph = read(tmp_path, "g.lg", "t # 1\nv 0 1\nv 1 1\nv 2 1\ne 0 1 single\ne 1 2 double\n")
    assert graph.edge_label_names == ("single", "double")
    graph = read(tmp_path, "g.gspan", "t # 0\nv 0 1\nv 1 1\ne 0 1 =\n")
    assert graph.edge_label_names == ("=",)


def test_patterns_of_a_database_with_texts(tmp_path: Path) -> None:
    (tmp_path / "genes.gspan").write_text(GENES)
    workload = {"kind": "transactions", "min_support": 2}
    run = {"directory": str(tmp_path / "runs")}
    result = longwall.run({"graph": {"path": str(tmp_path / "genes.gspan")}, "workload": workload, "run": run})
    (pattern,) = pq.read_table(result.path / "results" / "patterns.parquet").to_pylist()
    assert pattern["support"] == 2
    assert "MAP3K1" in str(pattern)
    assert "ASXL1" in str(pattern)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("t # 1\nv 0\nv 1 C\ne 0 1 x\n", "line 2: the label is missing in 'v 0'"),
        ("t # 1\nv 0 C\nv 1 C\nv 2 C\ne 0 1 x\ne 1 2\n", "line 6: this edge has no label, but others have one"),
        ("t # 1\nv a C\nv 1 C\ne 0 1 x\n", "line 2: 'a' is not an integer"),
        ("t # 1\nv 0 C\nv 1 C\ne 0\n", "line 4: too few columns"),
    ],
)
def test_lines_without_their_parts_are_refused(tmp_path: Path, content: str, says: str) -> None:
    assert says in refusal(tmp_path, "g.lg", content)


def test_a_text_far_behind_integers_is_refused(tmp_path: Path) -> None:
    lines = "".join(f"v {at} 1\n" for at in range(200_000))
    (tmp_path / "g.lg").write_text(f"t # 1\n{lines}v 200000 C\ne 0 1 1\n")
    from longwall.storage.ingest.readers.vertex_edge_lines import open_lg

    with (
        pytest.raises(InputError, match="the label C is no integer"),
        open_lg(FileRequest(tmp_path / "g.lg", 2**21, 1)) as stream,
    ):
        list(stream.blocks)


DIMACS = "c an example\nc\np edge 5 4\ne 1 2\nc between\ne 2 3\nn 3 7\ne 1 3\ne 3 4\n"


@pytest.mark.parametrize("name", ["d.col", "d.clq", "d.dimacs.gz"])
def test_dimacs(tmp_path: Path, name: str) -> None:
    import gzip

    data = DIMACS.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    graph = load_graph(tmp_path / name)
    assert (graph.num_vertices, graph.num_edges, longwall.count(graph, "triangle")) == (4, 4, 1)
    assert {note.kind: note.count for note in graph.notes} == {"isolated": 1, "comments": 3}


@each_case(
    ("name", "content", "says"),
    [
        ("d.col", "p col 3 2\ne 1 2\ne 2 9\n", "line 3: the edge 2 9 is outside 1..3"),
        ("d.col", "p col 3 2\ne 1 2\ne 0 2\n", "line 3: the edge 0 2 is outside 1..3"),
        ("d.dimacs", "c\np max 3 2\nn 1 s\na 1 2 3\n", "line 2: 'p max 3 2' is not the header of a DIMACS graph"),
        ("d.gr", "p tw 3 2\n1 2\n2 3\n", "line 1: 'p tw 3 2' is not the header of a DIMACS graph"),
        ("d.gr", "p sp 3 1\ne 1 2\n", "line 2: 'e 1 2' is neither"),
        ("d.txt", "p sp 3 2\na 1 2 3\n", "line 1: this is a DIMACS graph"),
        ("d.dimacs", "p cnf 3 2\n1 -2 0\n", "is not the header of a DIMACS graph"),
        ("d.txt", DIMACS, "line 1: this is a DIMACS graph; name the file .col"),
        ("d.txt", "p col 3 2\ne 1 2\n", "line 1: this is a DIMACS graph"),
    ],
)
def test_what_is_no_dimacs_graph(tmp_path: Path, name: str, content: str, says: str) -> None:
    assert says in refusal(tmp_path, name, content)


def test_arcs_of_shortest_paths_are_edges(tmp_path: Path) -> None:
    content = "c roads\np sp 4 5\nc arcs\na 1 2 17\na 2 1 17\na 2 3 5\na 3 2 1.5\na 1 3 x\n"
    (tmp_path / "d.gr").write_text(content)
    graph = load_graph(tmp_path / "d.gr")
    assert graph.num_edges == 3
    assert {note.kind: note.count for note in graph.notes} == {"directions": 1, "isolated": 1, "comments": 2}


def test_further_columns_of_dimacs_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "d.col").write_text("p edge 3 2\ne 1 2 2.5\ne 2 3 x y\n")
    assert load_graph(tmp_path / "d.col").num_edges == 2


def test_dimacs_says_another_number_of_edges(tmp_path: Path) -> None:
    graph = read(tmp_path, "d.col", "p edge 3 4\ne 1 2\ne 2 1\ne 2 3\n")
    assert [note.text.partition(": ")[2] for note in graph.notes if note.kind == "guess"] == [
        "4 edges are announced, and the file has 3"
    ]


NODES = 'node [ id 1 label "a" ] node [ id 2 label "b" ] node [ id 3 label "c" ]'
TWICE = "edge [ source 1 target 2 w 1 ]\nedge [ source 1 target 2 w 1 ]\nedge [ source 2 target 3 w 2 ]\n"


@pytest.mark.parametrize("head", ["", "directed 1\n", "multigraph 0\n", "directed 0\n  multigraph 1\n"])
def test_repeated_edges_of_gml_are_merged(tmp_path: Path, head: str) -> None:
    graph = read(tmp_path, "g.gml", f"graph [\n{head}{NODES}\n{TWICE}]\n")
    assert sorted(graph.all_ids().to_pylist()) == ["a", "b", "c"]
    assert graph.num_edges == 2
    assert {note.kind: note.count for note in graph.notes if note.kind == "repeated"} == {"repeated": 1}


def test_gml_says_that_labels_are_no_names(tmp_path: Path) -> None:
    nodes = NODES.replace('"b"', '"a"')
    graph = read(tmp_path, "g.gml", f"graph [\n{nodes}\nedge [ source 1 target 2 ]\n]\n")
    assert graph.all_ids().to_pylist() == [1, 2]
    assert any("whose labels are missing or the same" in note.text for note in graph.notes)
