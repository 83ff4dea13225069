"""Data that is dropped, merged or guessed in reading is counted, reported once, and recorded."""

import json
import warnings
from pathlib import Path
from typing import Any

import igraph
import networkx
import numpy as np
import pytest
import scipy.sparse
from cases import each_case
from typer.testing import CliRunner

import longwall
from longwall.pipeline.cli import app
from longwall.storage.errors import InputError
from longwall.storage.ingest.data_notes import KINDS, DataNotes, Noted

CLEAN = [(1, 2), (2, 3)]
MATRIX = np.array([[0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])


def isolated() -> Any:
    graph = networkx.Graph(CLEAN)
    graph.add_nodes_from((7, 8))
    return graph


def warned(make: Any) -> list[longwall.DataNote]:
    """Return the notes that Python warns of; they must point here."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make()
    assert all(one.category is longwall.DataNote and one.filename == __file__ for one in caught)
    return [one.message for one in caught]  # type: ignore[misc]


OBJECTS: dict[str, tuple[Any, dict[str, int]]] = {
    "clean pairs": (CLEAN, {}),
    "clean networkx": (networkx.Graph(CLEAN), {}),
    "clean igraph": (igraph.Graph([(0, 1), (1, 2)]), {}),
    "symmetric matrix": (scipy.sparse.csr_array(np.array([[0, 1], [1, 0]])), {}),
    "pairs": ([*CLEAN, (3, 3), (2, 1), (1, 2)], {"loops": 1, "repeated": 2}),
    "names": ([("a", "b"), ("b", "a"), ("c", "c")], {"loops": 1, "repeated": 1}),
    "large ids": ([(2**40, 2**41), (2**41, 2**40), (5, 5), (2**40, 2**40)], {"loops": 2, "repeated": 1}),
    "array": (np.array([[1, 2], [2, 1]]), {"repeated": 1}),
    "directed networkx": (
        networkx.DiGraph([(1, 2), (2, 1), (2, 3), (3, 3)]),
        {"directions": 3, "loops": 1, "repeated": 1},
    ),
    "multigraph": (networkx.MultiGraph([(1, 2), (2, 1), (2, 3)]), {"repeated": 1}),
    "directed multigraph": (networkx.MultiDiGraph([(1, 2), (1, 2), (2, 3)]), {"directions": 3, "repeated": 1}),
    "isolated networkx": (isolated(), {"isolated": 2}),
    "directed igraph": (igraph.Graph([(0, 1), (1, 2)], directed=True), {"directions": 2}),
    "multi igraph": (igraph.Graph([(0, 1), (1, 0), (2, 2)]), {"loops": 1, "repeated": 1, "isolated": 1}),
    "matrix": (scipy.sparse.csr_array(MATRIX), {"directions": 1, "loops": 1, "isolated": 1}),
    "explicit zeros": (scipy.sparse.csr_array(([1, 1, 0], ([0, 1, 0], [1, 0, 2])), shape=(3, 3)), {"isolated": 1}),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_what_an_object_loses_is_counted_and_said_once(name: str, tmp_path: Path) -> None:
    source, numbers = OBJECTS[name]
    graphs: list[longwall.Graph] = []
    found = warned(lambda: graphs.append(longwall.graph(source)))
    assert [one.numbers for one in found] == ([numbers] if numbers else [])
    kept = {note.kind: note.count for note in graphs[0].notes}
    assert kept == numbers
    graphs[0].save(tmp_path / "store")
    opened = warned(lambda: graphs.append(longwall.open_graph(tmp_path / "store")))
    assert [one.numbers for one in opened] == ([numbers] if numbers else [])
    assert graphs[1].notes == graphs[0].notes
    assert not warned(lambda: longwall.count(graphs[0], "0-1")), "the graph was said already"


def test_a_call_on_an_object_or_a_file_warns_its_caller(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    path.write_text("1 2\n2 1\n3 3\n")
    for source in ([(1, 2), (2, 1), (3, 3)], path, str(path)):
        (found,) = warned(lambda source=source: longwall.count(source, "0-1"))
        assert found.numbers == {"loops": 1, "repeated": 1}
    assert str(found) == f"{path}: 1 loop is dropped; 1 repeated edge is merged"
    (opened,) = warned(lambda: longwall.open_graph(path))
    assert str(opened) == str(found)


def test_runs_note_it_and_their_manifests_have_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("edges.txt").write_text("1 2\n2 1\n3 3\n1 3\n")
    Path("run.toml").write_text(
        '[graph]\npath = "edges.txt"\ndirected = true\n[workload]\nkind = "triangles"\n[run]\nname = "one"\n'
    )
    ran = CliRunner().invoke(app, ["run", "run.toml"])
    assert ran.exit_code == 0, ran.output
    said = "the directions of 3 edges are dropped; 1 loop is dropped; 1 repeated edge is merged"
    assert ran.stderr.count(said) == 1
    notes = json.loads(Path("runs/one/manifest.json").read_text())["graph"]["notes"]
    assert [(note["kind"], note["count"]) for note in notes] == [("directions", 3), ("loops", 1), ("repeated", 1)]
    assert "; ".join(note["text"] for note in notes) == said
    assert said.split("; ")[0] in Path("runs/one/report.html").read_text()


def test_ingest_says_it_and_the_store_knows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("edges.txt").write_text("1 2\n2 1\n3 3\n1 3\n")
    made = CliRunner().invoke(app, ["ingest", "edges.txt", "store"])
    said = "1 loop is dropped; 1 repeated edge is merged"
    assert made.exit_code == 0
    assert made.stderr.count(said) == 1
    assert said in CliRunner().invoke(app, ["info", "store"]).stdout
    result = longwall.run({"graph": {"path": "store"}, "workload": {"kind": "triangles"}})
    assert [note.kind for note in result.notes] == ["loops", "repeated"]


def test_generated_graphs_have_no_notes() -> None:
    assert longwall.generate_graph("rmat", scale=6, edge_factor=8, seed=1).notes == ()


def test_matrix_market_says_what_its_header_and_entries_lose(tmp_path: Path) -> None:
    path = tmp_path / "m.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n4 4 4\n1 2\n2 1\n1 3\n3 3\n")
    (found,) = warned(lambda: longwall.open_graph(path))
    assert found.numbers == {"directions": 1, "loops": 1, "isolated": 1}


def test_a_strict_config_refuses_directions_that_a_file_has(tmp_path: Path) -> None:
    path = tmp_path / "m.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n")
    for source in ({"path": path, "strict": True}, {"path": path, "strict": False}):
        config: dict[str, Any] = {"graph": source, "workload": {"kind": "triangles"}}
        config |= {"run": {"directory": tmp_path / f"runs {source['strict']}"}, "memory": {"spill": tmp_path / "spill"}}
        if source["strict"]:
            with pytest.raises(
                InputError, match=r"m\.mtx: the directions of 2 edges are dropped; remove graph\.strict"
            ):
                longwall.run(config)
        else:
            assert longwall.run(config).count == 0


def test_lists_of_labels_and_transactions_are_noted_once(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("# c\n01 2\n")
    (tmp_path / "t.txt").write_text("# c\n01 0\n2 0\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = longwall.open_graph(tmp_path / "g.txt", tmp_path / "t.txt", transactions=tmp_path / "t.txt")
    assert caught[0].message.numbers == {"zeros": 3}  # type: ignore[union-attr]
    assert sum(note.count for note in graph.notes if note.kind == "comments") == 3


def test_labels_of_vertices_without_an_edge_are_counted(tmp_path: Path) -> None:
    (found,) = warned(lambda: longwall.graph(CLEAN, {1: 0, 2: 0, 3: 1, 8: 1, 9: 0}))
    assert found.numbers == {"unused-labels": 2}
    path = tmp_path / "g.lg"
    path.write_text("# t 1\nv 0 1\nv 1 1\nv 2 5\ne 0 1 0\n")
    (found,) = warned(lambda: longwall.open_graph(path))
    assert found.numbers["isolated"] == 1


def test_a_note_is_one_sentence_with_its_number() -> None:
    notes = DataNotes()
    for kind in KINDS:
        if kind not in ("choice", "guess"):
            notes.add(kind, 0)
            notes.add(kind, 1, "a")
            notes.add(kind, 1000, "b\nc")
            notes.add(kind, 1000, "b\nc")
    assert len(notes.all()) == 2 * (len(KINDS) - 2)
    for note in notes.all():
        assert f"{note.count:,} " in f"{note.text} "
        assert Noted.of(note.to_dict()) == note


@each_case(
    ("name", "text"),
    [
        ("a.txt", "# a\n1 2\n% b\n2 3\n#\n"),
        ("a.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n% a\n3 3 2\n% b\n2 1\n# c\n3 2\n"),
        ("a.col", "c a\nc b\np edge 3 2\ne 1 2\nc\ne 2 3\n"),
        ("a.gr", "c a\np sp 3 4\nc b\na 1 2 1\na 2 1 1\na 2 3 1\na 3 2 1\nc c\n"),
        ("a.lg", "# a\nt # 1\nv 1 0\nv 2 0\n# b\nv 3 0\ne 1 2\n% c\ne 2 3\n"),
        ("a.graph", "# a\nt 3 2\nv 1 0 1\nv 2 0 2\n# b\nv 3 0 1\ne 1 2\n% c\ne 2 3\n"),
        ("a.gspan", "# a\nt # 1\nv 0 x\nv 1 x\n# b\nv 2 x\ne 0 1 y\n% c\ne 1 2 y\n"),
        ("a.metis", "% a\n3 2\n2\n% b\n1 3\n2\n% c\n"),
        ("a.net", "% a\n*Vertices 3\n% b\n*Edges\n1 2\n% c\n2 3\n"),
    ],
)
def test_comments_of_every_format_are_counted(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    graphs: list[longwall.Graph] = []
    assert not warned(lambda: graphs.append(longwall.open_graph(tmp_path / name)))
    assert graphs[0].num_edges == 2
    assert {note.kind: note.count for note in graphs[0].notes} == {"comments": 3}


@each_case(
    ("name", "text", "said"),
    [
        ("a.csv", "person,friend\nann,bob\n", "the first line ('person', 'friend') names the columns"),
        ("a.txt", "ann bob\nbob cy\n", "the first line ('ann', 'bob') is read as a row"),
        ("out.a", "% bip unweighted\n1 1\n1 2\n", "vertex 7 of the second column is -7"),
        ("a.gml", "graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 ] ]", "the ids of the nodes"),
        ("a.col", "p edge 2 9\ne 1 2\n", "9 edges are announced, and the file has 1"),
        ("b.csv", "source,target,w\n1,1,5\n", "every edge is a loop in the columns that are read"),
    ],
)
def test_python_warns_of_guesses(name: str, text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    graphs: list[longwall.Graph] = []
    guesses = [one for one in warned(lambda: graphs.append(longwall.open_graph(path))) if "guess" in one.numbers]
    assert len(guesses) == 1
    assert said in str(guesses[0])
    assert [note.text for note in graphs[0].notes if note.kind == "guess"] == [str(guesses[0])]


def test_python_does_not_warn_of_columns_that_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("source,target,w\nann,bob,5\n")
    assert not warned(lambda: longwall.open_graph(path))
    path.write_text("person,friend\nann,bob\n")
    assert not warned(lambda: longwall.open_graph(path, header=False))


@each_case(
    "found",
    [
        None,
        [],
        {"kind": "loops", "count": 0, "text": "x"},
        {"kind": "other", "count": 1, "text": "x"},
        {"kind": "loops", "count": 1, "text": "\x1b[31m"},
        {"kind": "loops", "count": 1, "text": "x" * 3000},
        {"kind": "loops", "count": 1, "text": "x", "more": 1},
    ],
)
def test_other_notes_are_refused(found: Any) -> None:
    with pytest.raises(ValueError, match="no note"):
        Noted.of(found)
