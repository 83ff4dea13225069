"""Data that is dropped, merged or guessed in reading is counted, reported once, and recorded."""

import json
import random
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import igraph
import networkx
import numpy as np
import pytest
import scipy.sparse
from budgets import make_budgets
from cases import each_case
from typer.testing import CliRunner

import longwall
from longwall.pipeline.cli import app
from longwall.storage.errors import InputError
from longwall.storage.ingest.build import build_in_memory
from longwall.storage.ingest.data_notes import KINDS, DataNotes, Noted
from longwall.storage.ingest.ingest import load_graph
from longwall.storage.ingest.readers.edge_stream import Declared, EdgeBlock, EdgeStream
from longwall.storage.memory.spill_folder import SpillFolder

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


Arcs = list[tuple[int, int]]


def write_matrix(arcs: Arcs, folder: Path) -> Path:
    header = f"%%MatrixMarket matrix coordinate pattern general\n30 30 {len(arcs)}"
    (folder / "g.mtx").write_text("\n".join([header, *(f"{u} {v}" for u, v in arcs)]))
    return folder / "g.mtx"


def write_shortest_paths(arcs: Arcs, folder: Path) -> Path:
    (folder / "g.gr").write_text("\n".join([f"p sp 30 {len(arcs)}", *(f"a {u} {v} 7" for u, v in arcs)]))
    return folder / "g.gr"


def write_metis(arcs: Arcs, folder: Path) -> Path:
    lines = [" ".join(str(v) for u, v in arcs if u == vertex) for vertex in range(1, 31)]
    (folder / "g.metis").write_text("\n".join([f"30 {len(arcs) // 2}", *lines]))
    return folder / "g.metis"


def write_tu(arcs: Arcs, folder: Path) -> Path:
    (folder / "S_A.txt").write_text("\n".join(f"{u}, {v}" for u, v in arcs))
    (folder / "S_graph_indicator.txt").write_text("1\n" * 30)
    return folder / "S_A.txt"


def write_tu_labels(arcs: Arcs, folder: Path) -> Path:
    (folder / "S_edge_labels.txt").write_text("\n".join(str((u + v) % 3) for u, v in arcs))
    return write_tu(arcs, folder)


def lost_of(arcs: Arcs) -> dict[str, int]:
    """Count arcs without their reverse, and those that are there already, one by one."""
    times = Counter((u, v) for u, v in arcs if u != v)
    numbers = {
        "loops": sum(u == v for u, v in arcs),
        "directions": sum((v, u) not in times for u, v in times),
        "repeated": sum(times.values()) - len(times),
    }
    return {kind: count for kind, count in numbers.items() if count}


@each_case("seed", range(30))
def test_directions_and_repeated_arcs_are_counted_apart(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    arcs = [(rng.randint(1, 30), rng.randint(1, 30)) for _ in range(rng.choice([1, 5, 40, 400]))]
    arcs += rng.choices(arcs, k=rng.randrange(20)) + [arc[::-1] for arc in rng.choices(arcs, k=rng.randrange(20))]
    rng.shuffle(arcs)
    isolated = 30 - len({end for u, v in arcs if u != v for end in (u, v)})
    for write in (write_matrix, write_shortest_paths, write_metis, write_tu, write_tu_labels):
        graph = load_graph(write(arcs, tmp_path))
        found = {note.kind: note.count for note in graph.notes if note.kind not in ("guess", "isolated")}
        assert found == lost_of(arcs), write
        assert graph.num_vertices == 30 - isolated
        assert graph.num_edges == len({frozenset(arc) for arc in arcs if arc[0] != arc[1]})


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("host", [2**23, 2**28])
def test_arcs_are_counted_exactly_in_any_budget(tmp_path: Path, host: int, labelled: bool) -> None:
    rng = np.random.default_rng(1)
    ends = rng.integers(1, 2**31 - 1, (60_000, 2))
    ends = np.concatenate((ends, ends[:20_000], ends[:30_000, ::-1]))
    rng.shuffle(ends)
    labels = (ends.sum(axis=1) % 7).astype(np.int32) if labelled else None
    blocks = (
        EdgeBlock(*ends[at : at + 999].T.copy(), None if labels is None else labels[at : at + 999])
        for at in range(0, len(ends), 999)
    )
    with SpillFolder(tmp_path / "spill") as spill:
        stream = EdgeStream("test", blocks, declared=Declared(vertices=2**31 - 2, matrix=True))
        graph = build_in_memory(stream, make_budgets(host, 2**28).at(spill))
    assert graph.num_edges == 60_000
    found = {note.kind: note.count for note in graph.notes if note.kind != "isolated"}
    assert found == {"directions": 30_000, "repeated": 20_000}


def test_an_edge_has_one_label_in_both_directions(tmp_path: Path) -> None:
    path = write_tu([(1, 2), (2, 1)], tmp_path)
    (tmp_path / "S_edge_labels.txt").write_text("0\n1\n")
    with pytest.raises(InputError, match="edge 1-2 is given twice with different labels"):
        load_graph(path)


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
