"""Patterns that were silently read as another pattern, or refused though they are clear."""

import json
import warnings
from pathlib import Path
from typing import Any

import igraph
import networkx
import pytest
from cases import each_case

import longwall
from longwall.storage.errors import InputError

HOST = [(1, 2), (2, 3), (1, 3)]


@each_case(
    ("source", "numbers"),
    [
        (networkx.DiGraph([(0, 1), (1, 2), (0, 2)]), {"directions": 3}),
        (networkx.DiGraph([(0, 1), (1, 0), (1, 2)]), {"directions": 3, "repeated": 1}),
        (networkx.MultiGraph([(0, 1), (0, 1), (1, 2)]), {"repeated": 1}),
        (igraph.Graph([(0, 1), (1, 2)], directed=True), {"directions": 2}),
        (igraph.Graph([(0, 1), (1, 0)]), {"repeated": 1}),
        ([(0, 1), (1, 0), (1, 2)], {"repeated": 1}),
        (networkx.Graph([(0, 1), (1, 2)]), {}),
        (igraph.Graph([(0, 1), (1, 2)]), {}),
    ],
)
def test_what_a_pattern_loses_is_said_once(source: Any, numbers: dict[str, int]) -> None:
    for use in (lambda: longwall.count(HOST, source), lambda: longwall.pattern(source)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            use()
        found = [one.message for one in caught]
        assert [one.numbers for one in found] == ([numbers] if numbers else [])  # type: ignore[union-attr]
        assert all(str(one).startswith("the pattern: ") for one in found)
        assert all(one.filename == __file__ for one in caught)


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        (networkx.DiGraph, {"directions": 3, "repeated": 1}),
        (networkx.MultiGraph, {"repeated": 1}),
        (networkx.Graph, {}),
    ],
)
def test_data_that_a_pattern_in_a_file_loses_is_noted_once(kind: Any, numbers: dict[str, int], tmp_path: Path) -> None:
    path = tmp_path / "p.graphml"
    networkx.write_graphml_xml(kind([(0, 1), (1, 0), (1, 2)]), path)
    uses = (
        lambda: longwall.count(HOST, path),
        lambda: longwall.count(HOST, [str(path), "triangle"]),
        lambda: longwall.pattern(str(path)),
        lambda: longwall.match(HOST, path).to_arrow(),
        lambda: longwall.explain(HOST, path),
    )
    for use in uses:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            use()
        found = [one.message for one in caught]
        assert [one.numbers for one in found] == ([numbers] if numbers else [])  # type: ignore[union-attr]
        assert all(str(one.message).startswith(f"{path}: ") and one.filename == __file__ for one in caught)
    (tmp_path / "g.txt").write_text("1 2\n2 3\n1 3\n")
    longwall.run(
        {
            "graph": {"path": tmp_path / "g.txt"},
            "workload": {"kind": "match", "pattern": str(path)},
            "run": {"directory": tmp_path / "runs", "name": "one"},
        }
    )
    history = json.loads((tmp_path / "runs/one/history.json").read_text())
    said = [note["text"] for note in history.get("notes", []) if note["text"].startswith(f"{path}: ")]
    assert len(said) == bool(numbers)


@pytest.mark.parametrize(
    ("text", "at"), [("(a)->(b)->(c)", 5), ("(a)<-[:x]-(b)", 4), ("(a)-[:x]->(b)", 10), ("(a)→(b)", 4)]
)
def test_arrows_are_refused_by_what_they_mean(text: str, at: int) -> None:
    with pytest.raises(InputError, match=rf"at character {at}: patterns have no directions: write - for each edge"):
        longwall.pattern(text)


def test_arrows_of_edge_lists_and_bools_are_refused() -> None:
    for text in ("0->1", "0<-1,1-2"):
        with pytest.raises(InputError, match="patterns have no directions: write - for each edge"):
            longwall.pattern(text)
    with pytest.raises(InputError, match="expected pairs of numbers"):
        longwall.pattern([(True, False)])


LABELS = ['5" pipe', '"', '""x', "a'b", "back\\slash", "(x)-(y)", "new\nline", "a, b", ":1", "é→", "007", " "]


@pytest.mark.slow
@each_case("label", LABELS)
def test_a_label_may_have_any_character(label: str, tmp_path: Any) -> None:
    graph = longwall.graph([(1, 2), (2, 3)], labels={1: label, 2: "x", 3: "y"})
    source = networkx.Graph([(0, 1)])
    networkx.set_node_attributes(source, {0: label, 1: "x"}, "label")
    other = igraph.Graph([(0, 1)])
    other.vs["label"] = [label, "x"]
    text = '(a:"{}")-(b:x)'.format(label.replace('"', '""'))
    assert longwall.count(graph, "0-1", labels=[label, "x"]) == 1
    assert [longwall.count(graph, one) for one in (source, other, text, longwall.pattern(text))] == [1] * 4
    workload = {"kind": "match", "pattern": "0-1", "pattern_labels": [label, "x"]}
    result = longwall.run({"graph": graph, "workload": workload, "run": {"directory": str(tmp_path), "report": True}})
    assert result.count == 1
    assert set(result.patterns[0].labels or ()) == {label, "x"}


@pytest.mark.parametrize("label", ['5" pipe', '"', "a\\b"])
def test_a_label_of_an_edge_may_have_any_character(label: str) -> None:
    source = networkx.Graph()
    source.add_edge(0, 1, label=label)
    source.add_edge(1, 2, label="x")
    graph = longwall.graph(source, edge_labels="label")
    assert longwall.count(graph, source) == 1
    assert longwall.pattern(longwall.pattern(source)) == longwall.pattern(source)


def test_texts_in_quotes_still_end() -> None:
    with pytest.raises(InputError, match="the text in quotes does not end"):
        longwall.pattern('(a:"5" pipe")-(b)')
    source = networkx.Graph([(0, 1)])
    source.nodes[0]["label"] = ""
    with pytest.raises(InputError, match="empty text"):
        longwall.pattern(source)
