"""Public functions that are given something else than they take: one message with the argument and its type."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import each_case

import longwall

CONFIG = {"graph": {"path": "graph.txt"}, "workload": {"kind": "triangles", "output": "embeddings"}}
FRAME = pd.DataFrame({"source": [1, 2], "target": [2, 3]})


def is_positive(columns, graph, xp):
    return columns[0] >= 0


class Given:
    """A graph, embeddings and a result to call functions with."""

    def __init__(self):
        self.graph = longwall.open_graph("graph.txt")
        self.vertices, self.edges = longwall.vertices(self.graph), longwall.edges(self.graph)
        self.result = longwall.run(CONFIG)


@pytest.fixture
def given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graph.txt").write_text("1 2\n2 3\n3 1\n3 4\n")
    return Given()


# Argument, as messages name it -> a call with it, and what it may be of what is tried.
CALLS = {
    "path of open_graph": (lambda it, x: longwall.open_graph(x), ()),
    "labels": (lambda it, x: longwall.open_graph("graph.txt", x), (None,)),
    "observer of open_graph": (lambda it, x: longwall.open_graph("graph.txt", None, x), (None,)),
    "transactions": (lambda it, x: longwall.open_graph("graph.txt", transactions=x), (None,)),
    "file_format": (lambda it, x: longwall.open_graph("graph.txt", file_format=x), (None,)),
    "config": (lambda it, x: longwall.run(x), ({},)),
    "overrides": (lambda it, x: longwall.run(CONFIG, overrides=x), ()),
    "observer of run": (lambda it, x: longwall.run(CONFIG, overrides=["run.name=other"], observer=x), (None,)),
    "path of resume": (lambda it, x: longwall.resume(x), ()),
    "overrides of resume": (lambda it, x: longwall.resume("runs/triangles", overrides=x), ()),
    "observer of resume": (lambda it, x: longwall.resume("runs/triangles", observer=x), (None,)),
    "generator kind": (lambda it, x: longwall.generate_graph(x, seed=1), ()),
    "seed": (lambda it, x: longwall.generate_graph("rmat", seed=x, scale=4), (3,)),
    "num_labels": (lambda it, x: longwall.generate_graph("rmat", seed=1, scale=4, num_labels=x), (3,)),
    "scale": (lambda it, x: longwall.generate_graph("rmat", seed=1, scale=x), (3,)),
    "graph": (lambda it, x: longwall.vertices(x), (longwall.Graph,)),
    "graph of edges": (lambda it, x: longwall.edges(x), (longwall.Graph,)),
    "engine": (lambda it, x: longwall.vertices(it.graph, x), ()),
    "memory": (lambda it, x: longwall.vertices(it.graph, memory=x), (None, 3)),
    "spill": (lambda it, x: longwall.vertices(it.graph, spill=x), ()),
    "disk": (lambda it, x: longwall.vertices(it.graph, disk=x), (None, 3)),
    "device": (lambda it, x: longwall.vertices(it.graph, device=x), (None, 3)),
    "access": (lambda it, x: longwall.vertices(it.graph, access=x), ()),
    "embeddings": (lambda it, x: longwall.extend_vertices(x), (longwall.Embeddings,)),
    "adjacent_to": (lambda it, x: longwall.extend_vertices(it.vertices, x), (None,)),
    "embeddings of extend_edges": (lambda it, x: longwall.extend_edges(x), (longwall.Embeddings,)),
    "embeddings of aggregate": (lambda it, x: longwall.aggregate(x), (longwall.Embeddings,)),
    "key": (lambda it, x: longwall.aggregate(it.vertices, x), (None,)),
    "labelled": (lambda it, x: longwall.aggregate(it.vertices, labelled=x), (None, True)),
    "embeddings of filter": (lambda it, x: longwall.filter(x, is_positive), (longwall.Embeddings,)),
    "keep": (lambda it, x: longwall.filter(it.vertices, x), ()),
    "embeddings of export": (lambda it, x: longwall.export(x, "rows.parquet"), (longwall.Embeddings,)),
    "path of export": (lambda it, x: longwall.export(it.vertices, x), ()),
    "name": (lambda it, x: it.result.table(x), ()),
}
ODD = [None, 3, 1.5, True, b"bytes", FRAME, [FRAME], {"a": 1}, object(), np.ones(3), 10**5000, float("nan")]


def may_be(value, allowed) -> bool:
    return any(value is one or (type(value) is type(one) and value == one) or type(value) is one for one in allowed)


@each_case("argument", CALLS)
def test_an_argument_of_another_type_is_named_with_its_type(given, argument):
    call, allowed = CALLS[argument]
    before = {path for path in Path.cwd().rglob("*") if "spill" not in path.name}
    for value in [*ODD, given.graph, given.vertices, given.result]:
        if may_be(value, allowed):
            continue
        with pytest.raises(longwall.InputError) as refusal:
            call(given, value)
        said = str(refusal.value)
        assert argument.split(" of ")[0].split(" kind")[0] in said, (said, value)
        assert len(said) < 300, said
        assert any(word in said for word in ("expected", "must", "choose", "size", "key", "only")), said
    assert {path for path in Path.cwd().rglob("*") if "spill" not in path.name} == before


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda it: longwall.open_graph(FRAME),
            "path: expected the path or the URL of a graph file or a graph store, not pandas.DataFrame; "
            "longwall.graph takes edges that are in memory",
        ),
        (
            lambda it: longwall.extend_vertices(it.graph),
            "embeddings: expected a longwall.Embeddings, as longwall.vertices(graph) or longwall.edges(graph) "
            "returns, not longwall.Graph",
        ),
        (
            lambda it: longwall.vertices("graph.txt"),
            "graph: expected a longwall.Graph, as longwall.open_graph(path) returns, not str",
        ),
        (
            lambda it: longwall.resume(it.result),
            "path: expected the folder of a run, or its URL, not longwall.Result",
        ),
        (
            lambda it: longwall.run(CONFIG, overrides="workload.kind=cliques"),
            'overrides: expected a list of texts such as ["workload.k=5"], not str',
        ),
        (
            lambda it: longwall.filter(it.vertices, "v0 > 3"),
            "keep: expected a function of (columns, graph, xp), not str",
        ),
    ],
)
def test_the_message_says_what_to_pass(given, call, said):
    with pytest.raises(longwall.InputError) as refusal:
        call(given)
    assert str(refusal.value) == said


@each_case("path", ["a\0b", "x" * 5000, "\ud800", "x/" * 3000, ""])
@each_case("argument", ["path of open_graph", "labels", "transactions", "path of resume", "spill", "path of export"])
def test_a_path_that_no_file_can_have_is_refused(given, argument, path):
    with pytest.raises(longwall.InputError, match=rf"^{argument.split()[0]}: .*; give ") as refusal:
        CALLS[argument][0](given, path)
    assert len(str(refusal.value)) < 300


def test_a_column_that_is_not_there_is_named(given):
    with pytest.raises(IndexError, match="there is no column 3, only 0 to 0"):
        longwall.filter(given.vertices, lambda columns, graph, xp: columns[3] > 0)
    with pytest.raises(longwall.InputError, match="columns: expected the number of a column, not str"):
        longwall.filter(given.vertices, lambda columns, graph, xp: columns["v0"] > 0)


@each_case("value", [None, 3, True, "x", FRAME, [1], object()])
def test_what_a_users_function_gives_is_checked(given, value):
    with pytest.raises(longwall.InputError, match="must return"):
        longwall.filter(given.vertices, lambda columns, graph, xp: value)
    with pytest.raises(longwall.InputError, match="must return"):
        longwall.aggregate(given.vertices, lambda columns, graph, xp: value)


def test_a_damaged_file_of_results_is_named(given):
    folder = Path(given.result.path) / "results"
    (file,) = folder.glob("embeddings-*.parquet")
    content = file.read_bytes()
    for damage in (b"", b"PAR1", content[:-20], content[:20] + b"\xff" * (len(content) - 40) + content[-20:]):
        file.write_bytes(damage)
        with pytest.raises(longwall.RunError, match=rf"(?s){file.name}: the file is damaged .*: run again"):
            given.result.table("embeddings")
    file.write_bytes(content)
    shutil.copy(folder / "counts.parquet", folder / "embeddings-99999.parquet")
    manifest = folder.parent / "manifest.json"
    facts = json.loads(manifest.read_text())
    facts["results"]["embeddings-99999.parquet"] = facts["results"]["counts.parquet"]
    manifest.write_text(json.dumps(facts))
    with pytest.raises(longwall.RunError, match="differ in their columns"):
        given.result.table("embeddings")
    shutil.rmtree(folder)
    with pytest.raises(longwall.RunError, match="there is no such file any more"):
        given.result.table("embeddings")
    with pytest.raises(longwall.InputError, match='no table "vertices", only counts, embeddings'):
        given.result.table("vertices")
    manifest.unlink()
    with pytest.raises(longwall.RunError, match=r"not the folder of a run any more: restore its manifest\.json"):
        given.result.table("embeddings")


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_package_that_is_missing_is_named(package, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    graph = longwall.graph([(0, 1), (1, 2)])
    tables = [longwall.match(graph, "edge")] + [longwall.vertices(graph)] * (package == "pandas")
    for table in tables:
        with pytest.raises(longwall.InputError, match=f"to_{package} needs {package}: pip install {package}"):
            getattr(table, f"to_{package}")()
