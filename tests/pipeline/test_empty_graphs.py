"""Graphs without edges: every count is 0, and every table has its columns and no row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from cases import each_case
from explained import explain

import longwall
from longwall.storage.errors import InputError
from longwall.storage.ingest.ingest import ingest

PATTERNS = ["0-1", "wedge", "triangle", "diamond", "cycle-4", "cycle-5", "star-3", "clique-4", "clique-8", "path-6"]
LABELLED = [
    "(a:0)-(b)",
    "(a:0)-(b:1)-(c)-(a)",
    "(a:1)-(b:1)-(c:1)-(a)",
    "(a:0)-" + "-".join(f"({v})" for v in range(9)),
]
SOURCES = {
    "networkx": nx.empty_graph(5),
    "no nodes": nx.DiGraph(),
    "list": [],
    "array": np.zeros((0, 2), np.int64),
    "matrix": sp.csr_matrix((4, 4)),
    "table": pa.table({"source": pa.array([], pa.int64()), "target": pa.array([], pa.int64())}),
    "table of texts": pa.table({"source": pa.array([], pa.string()), "target": pa.array([], pa.string())}),
    "frame": pd.DataFrame({"source": [], "target": []}),
    "frame of objects": pd.DataFrame(columns=["source", "target", "weight"]),
    "frame of texts": pd.DataFrame({"source": [], "target": []}, dtype=str),
    "frame without its rows": pd.DataFrame({"a": [1.5], "b": [None]}).iloc[:0],
    "polars": pl.DataFrame({"source": [], "target": []}),
    "loops": [(3, 3), (7, 7)],
    "far loops": [(-5, -5), (2**40, 2**40)],
    "loops of names": [("ann", "ann"), ("bob", "bob")],
}
WORKLOADS: dict[str, dict[str, Any]] = {
    "count": {"kind": "match", "pattern": "house"},
    "rows": {"kind": "match", "pattern": "diamond", "output": "embeddings"},
    "edge joins": {"kind": "match", "pattern": "diamond", "join": "edges"},
    "triangles of vertices": {"kind": "triangles", "output": "vertices"},
    "triangles of edges": {"kind": "triangles", "output": "edges"},
    "cliques": {"kind": "cliques", "k": "all", "output": "vertices"},
    "quasi-cliques": {"kind": "quasi-cliques", "k": 4, "output": "embeddings"},
    "maximal cliques": {"kind": "maximal-cliques"},
    "maximal cliques of vertices": {"kind": "maximal-cliques", "output": "vertices"},
    "list of maximal cliques": {"kind": "maximal-cliques", "output": "embeddings"},
    "enumerated motifs": {"kind": "motifs", "k": 4, "method": "enumeration"},
    "motifs": {"kind": "motifs", "k": 5},
    "orbits": {"kind": "motifs", "k": 5, "output": "vertices"},
    "frequent": {"kind": "frequent", "min_support": 2, "max_edges": 2, "output": "embeddings"},
}


@pytest.fixture(scope="module")
def empty() -> longwall.Graph:
    return longwall.graph(nx.empty_graph(5), labels={v: v % 2 for v in range(5)})


@pytest.mark.filterwarnings("ignore::longwall.DataNote")
@each_case("name", SOURCES)
def test_objects_without_edges_are_graphs(name: str) -> None:
    graph = longwall.graph(SOURCES[name])
    assert (graph.num_vertices, graph.num_edges, graph.to_arrow().num_rows) == (0, 0, 0)
    assert longwall.triangles(graph, engine="cpu") == 0


FILES = {
    "a.lg": "t # 1\nv 0 1\nv 1 2\nv 2 2\n",
    "a.graph": "t 3 0\nv 0 1 0\nv 1 2 0\nv 2 2 0\n",
    "a.mtx": "%%MatrixMarket matrix coordinate pattern general\n3 3 0\n",
    "a.graphml": '<graphml><graph><node id="1"/><node id="2"/><node id="3"/></graph></graphml>',
    "a.gexf": '<gexf><graph><nodes><node id="1"/><node id="2"/><node id="3"/></nodes></graph></gexf>',
    "a.gml": 'graph [ node [ id 1 label "a" ] node [ id 2 label "b" ] node [ id 3 label "c" ] ]',
    "a.gspan": "t # 0\nv 0 1\nt # 1\nv 0 2\nv 1 1\n",
    "a.col": "c none\np edge 3 0\n",
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_have_vertices_alone_are_graphs(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FILES[name])
    with pytest.warns(longwall.DataNote, match="3 vertices without an edge are dropped"):
        graph = longwall.open_graph(tmp_path / name)
    assert (graph.num_vertices, graph.num_edges) == (0, 0)
    ingest(tmp_path / name, tmp_path / "store")
    assert longwall.open_graph(tmp_path / "store").content_hash == graph.content_hash
    assert longwall.count(graph, "triangle", engine="cpu") == 0
    assert longwall.motifs(graph, 3, engine="cpu")["count"].to_pylist() == [0, 0]


@pytest.mark.filterwarnings("ignore::longwall.DataNote")
def test_a_table_of_vertices_makes_a_list_without_rows_a_graph(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n")
    (tmp_path / "vertices.csv").write_text("id,label\n1,x\n2,y\n")
    graph = longwall.open_graph(tmp_path / "edges.csv", tmp_path / "vertices.csv")
    assert graph.num_edges == 0
    assert {note.kind: note.count for note in graph.notes if note.kind != "choice"} == {"unused-labels": 2}
    with pytest.raises(InputError, match="there are no edges"):
        longwall.open_graph(tmp_path / "edges.csv")


def test_columns_that_are_asked_for_must_be_in_a_table_without_rows() -> None:
    with pytest.raises(InputError, match="there is no column x"):
        longwall.graph(pd.DataFrame(columns=["a", "b"]), columns=("x", "b"))
    with pytest.raises(InputError, match="two columns of integers or texts are needed"):
        longwall.graph(pd.DataFrame())


def test_patterns_count_nothing(empty: longwall.Graph, engine_kind: str) -> None:
    assert longwall.count(empty, PATTERNS, engine=engine_kind) == [0] * len(PATTERNS)
    assert longwall.count(empty, PATTERNS, induced=True, engine=engine_kind) == [0] * len(PATTERNS)
    assert longwall.count(empty, PATTERNS, limit=3, engine=engine_kind) == [0] * len(PATTERNS)
    for count in ("embeddings", "subgraphs", "mappings"):
        assert longwall.count(empty, LABELLED, count=count, engine=engine_kind) == [0] * len(LABELLED)


def test_tables_have_columns_and_no_row(empty: longwall.Graph, engine_kind: str) -> None:
    options: dict[str, Any] = {"engine": engine_kind}
    found = {
        ("a", "b"): longwall.match(empty, LABELLED[0], **options).to_arrow(),
        ("v0", "v1", "v2"): longwall.match(empty, "triangle", limit=2, **options).head(),
        ("clique", "size"): longwall.maximal_cliques(empty, **options).head(2),
        ("vertex", "triangles"): longwall.triangles(empty, per="vertex", **options),
        ("source", "target", "cliques"): longwall.cliques(empty, 4, per="edge", **options),
        ("size", "count"): longwall.cliques(empty, "all", **options),
        ("vertex", *(f"orbit_{number}" for number in range(15))): longwall.orbits(empty, 4, **options),
    }
    assert {columns: tuple(table.column_names) for columns, table in found.items()} == {key: key for key in found}
    assert all(table.num_rows == 0 for table in found.values())
    assert longwall.motifs(empty, 4, **options)["count"].to_pylist() == [0] * 6
    assert longwall.frequent(empty, support=0.5, max_edges=2, **options).num_rows == 0


@pytest.mark.parametrize("name", WORKLOADS)
def test_runs_are_explained_done_and_reported(empty: longwall.Graph, name: str, tmp_path: Path) -> None:
    run = {"directory": tmp_path / "runs", "name": "one"}
    sections = {"graph": empty, "engine": {"kind": "cpu"}, "memory": {"spill": tmp_path / "spill"}, "run": run}
    config = sections | {"workload": WORKLOADS[name]}
    assert "0 vertices, 0 edges" in explain(config)
    result = longwall.run(config)
    assert result.count in (0, None)
    assert not any(one.count for one in result.patterns)
    assert (result.path / "report.html").exists()
    for table in (result.path / "results").iterdir():
        assert table.name == "counts.parquet" or pq.read_table(table).num_rows == 0


@pytest.mark.parametrize("labelled", [False, True])
def test_stores_without_edges(labelled: bool, tmp_path: Path) -> None:
    nodes = nx.Graph()
    nodes.add_nodes_from([(0, {"label": "x"}), (1, {"label": "y"})])
    graph = longwall.graph(nodes, labels="label" if labelled else None)
    graph.save(tmp_path / "store")
    again = longwall.open_graph(tmp_path / "store")
    assert (again.num_vertices, again.content_hash) == (0, graph.content_hash)
    assert longwall.count(tmp_path / "store", "(a:x)-(b)" if labelled else "diamond", engine="cpu") == 0


def test_a_file_of_loops_is_a_graph_with_a_note(tmp_path: Path) -> None:
    (tmp_path / "loops.txt").write_text("0 0\n5 5\n")
    (tmp_path / "empty.txt").write_text("# nothing\n")
    config = {"graph": {"path": tmp_path / "loops.txt"}, "workload": {"kind": "triangles"}, "engine": {"kind": "cpu"}}
    config |= {"run": {"directory": tmp_path / "runs"}, "memory": {"spill": tmp_path / "spill"}}
    result = longwall.run(config)
    assert result.count == 0
    (note,) = json.loads((result.path / "manifest.json").read_text())["graph"]["notes"]
    assert (note["kind"], note["count"]) == ("loops", 2)
    with pytest.raises(InputError, match="there are no edges"):
        longwall.run(config | {"graph": {"path": tmp_path / "empty.txt"}})
