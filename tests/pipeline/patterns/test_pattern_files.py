"""Patterns from files."""

import os

import networkx as nx
import pytest
from cases import each_case

from longwall.pipeline.patterns.parse import parse_pattern
from longwall.storage.errors import InputError

SQUARE = "t 4 4\nv 5 1 2\nv 6 0 2\nv 7 1 2\nv 9 2 2\ne 5 6\ne 6 7\ne 7 9\ne 5 9\n"


def test_graph_file(tmp_path):
    file = tmp_path / "square.graph"
    file.write_text(SQUARE)
    pattern = parse_pattern(str(file))
    assert pattern.edges == ((0, 1), (0, 3), (1, 2), (2, 3))
    assert pattern.labels == (1, 0, 1, 2)
    assert parse_pattern(str(file), [0, 0, 0, 0]).labels == (0, 0, 0, 0)


@pytest.mark.parametrize("header", ["t 3 4", "t 0 4", "t # 12", "t  #\t0 "])
def test_graph_files_with_a_number(tmp_path, header):
    file = tmp_path / "square.graph"
    file.write_text(SQUARE.replace("t 4 4", header))
    assert parse_pattern(str(file)).edges == ((0, 1), (0, 3), (1, 2), (2, 3))


@pytest.mark.parametrize("suffix", ["graph", "graphml"])
def test_pipes_and_devices_are_no_pattern_files(tmp_path, suffix):
    os.mkfifo(tmp_path / f"pipe.{suffix}")
    (tmp_path / f"device.{suffix}").symlink_to("/dev/zero")
    for kind in ("pipe", "device"):
        with pytest.raises(InputError, match="not a regular file"):
            parse_pattern(str(tmp_path / f"{kind}.{suffix}"))


@pytest.mark.parametrize("labelled", [False, True])
def test_graphml(tmp_path, labelled):
    graph = nx.house_graph()
    if labelled:
        nx.set_node_attributes(graph, {v: v % 2 for v in graph}, "label")
    nx.write_graphml(graph, tmp_path / "house.graphml")
    pattern = parse_pattern(str(tmp_path / "house.graphml"))
    assert nx.is_isomorphic(nx.Graph(pattern.edges), nx.house_graph())
    assert pattern.labels == ((0, 1, 0, 1, 0) if labelled else None)


@each_case(
    ("name", "text", "message"),
    [
        ("none.graph", None, "none.graph"),
        ("bad.graph", "t 2 1\nv 0 0 1\n", "announced"),
        ("loop.graph", "t 2 2\nv 0 0 1\nv 1 0 1\ne 0 1\ne 1 1\n", "loop"),
        ("none.graphml", None, "there is no such file"),
        ("bad.graphml", "<graph>", "not a GraphML file"),
        ("large.graphml", "<graph/>" + " " * 2**20, "at most 1 MiB"),
        ("large.graph", SQUARE + "#" * 2**20, "at most 1 MiB"),
    ],
)
def test_bad_files(tmp_path, name, text, message):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        parse_pattern(str(tmp_path / name))
