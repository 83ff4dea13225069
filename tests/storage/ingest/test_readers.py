"""Every format against small hand-written files, and the real graphs against their published sizes."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import each_case

from longwall.pipeline.inputs import open_graph
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.formats import detect_format
from longwall.storage.ingest.ingest import load_graph
from longwall.storage.ingest.tables.table_options import TableOptions
from longwall.storage.observer import NullObserver

DATA = Path(os.environ.get("LONGWALL_DATA", Path(__file__).parents[4] / "shared" / "data"))

SQUARE = {(1, 2), (2, 3), (3, 4), (1, 4)}


def edges_of(graph: Graph) -> set[tuple[int, int]]:
    """Return the undirected edges in original ids."""
    rows = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
    u, v = graph.original_ids[rows], graph.original_ids[graph.indices]
    return {(int(a), int(b)) for a, b in zip(u, v, strict=True) if a < b}


def labels_of(graph: Graph) -> dict[int, int]:
    assert graph.labels is not None
    return dict(zip(graph.original_ids.tolist(), graph.labels.tolist(), strict=True))


@each_case(
    ("name", "content"),
    [
        ("g.txt", "1 2\n2 3\n3 4\n1 4\n"),
        ("no-last-newline.txt", "1 2\n2 3\n3 4\n1 4"),
        ("windows.txt", "1 2\r\n2 3\r\n3 4\r\n1 4\r\n"),
        ("mark.txt", "\ufeff1 2\n2 3\n3 4\n1 4\n"),
        ("blank-lines.edges", "\n1 2\n\n  \n2 3\n3 4\n1 4\n\n"),
        ("comments.el", "# SNAP's, by Erdős\n% Konect's\n1 2\n  # later\n2 3\n3 4\n1 4\n"),
        ("tabs.tsv", "1\t2\n2\t3\n3\t4\n1\t4\n"),
        ("commas.csv", "1,2\n2, 3\n3,4\n1,4\n"),
        ("header.csv", '"from","to"\n1,2\n2,3\n3,4\n1,4\n'),
        ("header.tsv", "# note\nsrc\tdst\n1\t2\n2\t3\n3\t4\n1\t4\n"),
        ("byte-order-mark.csv", "\ufeffsource,target,x\r\n1,2,0\r\n2,3,0\r\n3,4,0\r\n1,4,0\r\n"),
        ("mixed.unknown", "1;2\n2 | 3\n 3 ,\t4 \n1|4;\n"),
        ("extension", "1 2\n2 3\n3 4\n1 4\n"),
        ("more-columns.txt", "1 2 0.5 x\n2 3 é y\n3 4 -1 z\n1 4 1e9 z\n"),
        ("trailing.txt", "1 2 \n2 3\t\n3,4,\n1;4 ; \n"),
        ("rows-of-a-matrix.txt", "1 2;\n2 3;\n3 4;\n1 4;\n"),
        ("konect.edges", "% sym weighted\n1 2\t1\n2 3\t1\n3 4\t1\n1 4\t1\n"),
        ("weights.csv", "1,2,0.5\n2,3,-1\n3,4,1e9\n1,4,x y\n"),
        ("header.txt", "source target\n1 2\n2 3\n3 4\n1 4\n"),
        ("any-two-names.edges", "left,right\n1,2\n2,3\n3,4\n1,4\n"),
        ("names-of-many.csv", "id,Source,TARGET,w\n8,1,2,0\n8,2,3,0\n8,3,4,0\n8,1,4,0\n"),
        ("reversed.csv", "to,weight,from\n2,5,1\n3,5,2\n4,5,3\n4,5,1\n"),
        ("index.csv", ",source,target\n0,1,2\n1,2,3\n2,3,4\n3,1,4\n"),
        ("index.tsv", "\tFromNodeId\tToNodeId\n0\t1\t2\n1\t2\t3\n2\t3\t4\n3\t1\t4\n"),
        ("r.csv", '"","from","to"\n"1",1,2\n"2",2,3\n"3",3,4\n"4",1,4\n'),
        ("names.csv", 'u,v,who\n1,2,"Ada, Bo"\n2,3,"""C"" d"\n3,4,E F\n1,4,é\n'),
        ("names.tsv", 'note\tid_1\tid_2\nJohn Smith, Jr\t1\t2\n"x"\t2\t3\ny\t3\t4\n1|2\t1\t4\n'),
        ("years.csv", "source,target,2010\n1,2,0\n2,3,0\n3,4,0\n1,4,0\n"),
        (
            "gephi.csv",
            "Source,Target,Type,Id,Label,Weight\n" + "".join(f"{u},{v},Undirected,0,a,1.0\n" for u, v in SQUARE),
        ),
        ("loops-and-repeats.txt", "1 2\n2 1\n1 1\n2 3\n2 3\n3 4\n4 1\n9 9\n"),
        ("leading-zeros.txt", "000000000000000000000001 02\n2 3\n3 4\n1 4\n"),
        ("g.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n% c\n4 4 4\n2 1\n3 2\n4 3\n4 1\n"),
        (
            "values.mtx",
            "%%MatrixMarket MATRIX Coordinate Real General\n\n9 9 5\n1 2 .5\n2 1 -3e2\n2 3 0\n3 4 1\n1 4 7\n",
        ),
        ("g.lg", "t # 1\nv 1 5\nv 2 6\nv 3 5\nv 4 6\nv 7 1\ne 1 2 0\ne 2 3 0\ne 3 4 1\ne 1 4 2\nt # -1\n"),
        ("grami.lg", "# t 1\nv 1 5\nv 2 6\nv 3 5\nv 4 6\ne 1 2\ne 2 3\ne 3 4\ne 1 4\n"),
        ("id.graph", "t 7 5\nv 0 9 0\nv 1 5 2\nv 2 6 2\nv 3 5 2\nv 4 6 2\ne 1 2\ne 2 3\ne 3 4\ne 1 4\n"),
        ("number.graph", "t # 7\nv 0 9\nv 1 5\nv 2 6\nv 3 5\nv 4 6\ne 1 2\ne 2 3\ne 3 4\ne 1 4\nt # -1\n"),
        ("g.graph", "t 5 4\nv 0 9 0\nv 1 5 2\nv 2 6 2\nv 3 5 2\nv 4 6 2\ne 1 2\ne 2 3\ne 3 4\ne 1 4\n"),
    ],
)
@each_case("compression", ["", ".gz", ".zst"])
def test_text_formats(tmp_path: Path, name: str, content: str, compression: str) -> None:
    path = tmp_path / (name + compression)
    data = content.encode()
    if compression == ".gz":
        data = gzip.compress(data)
    elif compression == ".zst":
        data = pa.compress(data, codec="zstd", asbytes=True)
    path.write_bytes(data)
    graph = load_graph(path)
    assert edges_of(graph) == SQUARE
    if name.endswith((".lg", ".graph")):
        assert labels_of(graph) == {1: 5, 2: 6, 3: 5, 4: 6}


def test_gzip_of_several_members(tmp_path: Path) -> None:
    path = tmp_path / "g.txt.gz"
    path.write_bytes(gzip.compress(b"1 2\n2 3\n") + gzip.compress(b"3 4\n1 4\n"))
    assert edges_of(load_graph(path)) == SQUARE


def test_edge_labels(tmp_path: Path) -> None:
    path = tmp_path / "g.lg"
    path.write_text("t # 1\nv 0 1\nv 1 1\nv 2 1\ne 0 1 7\ne 2 1 8\n")
    graph = load_graph(path)
    assert graph.edge_labels is not None
    rows = np.repeat(np.arange(3), np.diff(graph.indptr))
    found = {
        (int(graph.original_ids[u]), int(graph.original_ids[v])): int(label)
        for u, v, label in zip(rows, graph.indices, graph.edge_labels, strict=True)
    }
    assert found == {(0, 1): 7, (1, 0): 7, (1, 2): 8, (2, 1): 8}


@each_case(
    "columns",
    [
        {"src": [1, 2, 3, 1], "dst": [2, 3, 4, 4]},
        {"weight": [9, 9, 9, 9], "Target": [1, 2, 3, 1], "Source": [2, 3, 4, 4]},
        {"name": ["a", "b", "c", "d"], "a": [1, 2, 3, 1], "b": [2, 3, 4, 4]},
        {"x": [0, 0, 0, 0], "From_Node_Id": [1, 2, 3, 1], "name": ["a", "b", "c", "d"], "to node id": [2, 3, 4, 4]},
        {"name": ["a", "b", "c", "d"], "source_id": [1, 2, 3, 1], "target_id": [2, 3, 4, 4], "y": [0, 0, 0, 0]},
    ],
)
@each_case("kind", [pa.int64(), pa.uint8(), pa.uint64()])
def test_parquet(tmp_path: Path, columns: dict[str, list[int]], kind: pa.DataType) -> None:
    path = tmp_path / "g.parquet"
    pq.write_table(pa.table({name: pa.array(v, None if name == "name" else kind) for name, v in columns.items()}), path)
    assert edges_of(load_graph(path)) == SQUARE


@pytest.mark.parametrize("name", ["labels.txt", "labels.csv", "labels.txt.gz", "labels.parquet"])
def test_labels(tmp_path: Path, name: str) -> None:
    edges, labels = tmp_path / "g.txt", tmp_path / name
    edges.write_text("1 2\n2 3\n3 9\n")
    if name == "labels.parquet":
        table = {"label": [7, 1, 0, 7, 3], "vertex": [9, 3, 2, 1, 5]}
        pq.write_table(pa.table(table), labels)
    else:
        content = ("id,label\n" if name.endswith(".csv") else "# isolated: 5\n") + "9 7\n3 1\n2 0\n1 7\n5 3\n1 7\n"
        labels.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    graph = load_graph(edges, labels)
    assert labels_of(graph) == {1: 7, 2: 0, 3: 1, 9: 7}
    assert graph.stats.num_labels == 3
    assert graph.stats.label_counts == {0: 1, 1: 1, 7: 2}


@each_case("name", ["labels.txt", "labels.parquet"])
@each_case("isolated", [[], [0], [5], [0, 5, 10, 2**40]])
def test_labels_of_isolated_vertices_are_ignored_wherever_they_are(
    tmp_path: Path, name: str, isolated: list[int]
) -> None:
    (tmp_path / "g.txt").write_text("1 2\n2 3\n3 9\n")
    vertices = [1, 2, 3, 9, *isolated]
    if name == "labels.parquet":
        pq.write_table(pa.table({"vertex": vertices, "label": [v % 7 for v in vertices]}), tmp_path / name)
    else:
        (tmp_path / name).write_text("".join(f"{v} {v % 7}\n" for v in vertices))
    assert labels_of(load_graph(tmp_path / "g.txt", tmp_path / name)) == {1: 1, 2: 2, 3: 3, 9: 2}


def test_columns_are_chosen(tmp_path: Path) -> None:
    text, table = tmp_path / "g.csv", tmp_path / "g.parquet"
    text.write_text("source,target,a,b\n9,8,1,2\n9,8,2,3\n9,8,3,4\n9,8,1,4\n")
    pq.write_table(pa.table({"source": [9] * 4, "b": [2, 3, 4, 4], "target": [8] * 4, "a": [1, 2, 3, 1]}), table)
    for path in (text, table):
        assert edges_of(load_graph(path)) == {(8, 9)}
        assert edges_of(load_graph(path, table=TableOptions(("a", "b")))) == SQUARE
        assert edges_of(load_graph(path, table=TableOptions(("b", "a")))) == SQUARE
    assert open_graph(text, columns=("a", "b")).num_edges == 4


@pytest.mark.parametrize(
    ("name", "content", "note"),
    [
        ("g.txt", "1 2\n2 3\n", None),
        ("g.txt", "1 2 7 8\n2 3 7 8\n", "reading the first two columns; 2 others are ignored"),
        ("g.csv", "a,b\n1,2\n", "reading columns a and b"),
        ("g.csv", "x,v,u\n0,1,2\n", "reading columns u and v; 1 other is ignored"),
        ("g.parquet", "", "reading columns u and v; 1 other is ignored"),
    ],
)
def test_the_run_says_which_columns_it_reads(tmp_path: Path, name: str, content: str, note: str | None) -> None:
    path, notes = tmp_path / name, []
    if name.endswith(".parquet"):
        pq.write_table(pa.table({"x": [0], "v": [1], "u": [2]}), path)
    else:
        path.write_text(content)
    load_graph(path, note=notes.append)
    assert notes == ([f"{path}: {note}"] if note else [])


def test_largest_id(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text(f"0 {2**63 - 1}\n{2**63 - 2} 0\n")
    assert edges_of(load_graph(path)) == {(0, 2**63 - 1), (0, 2**63 - 2)}


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    path = tmp_path / "g.txt.gz"
    path.write_bytes(gzip.compress(b"1 2\n2 3\n" * 1000))
    phases: list[tuple[str, int | None, str]] = []
    advances: list[int] = []

    class Watching(NullObserver):
        def phase(self, name: str, total: int | None, unit: str) -> None:
            phases.append((name, total, unit))

        def advance(self, n: int) -> None:
            advances.append(n)

    load_graph(path, observer=Watching())
    assert phases == [("reading g.txt.gz", path.stat().st_size, "bytes")]
    assert sum(advances) == path.stat().st_size
    assert min(advances) >= 0


def test_formats_are_known_by_extension() -> None:
    names = ["a.mtx", "a.MTX.gz", "a.parquet", "a.lg.zst", "a.graph", "a.txt", "a", "a.csv.gz", "v1.2/a.gz"]
    assert [detect_format(name) for name in names] == [
        *("matrix-market", "matrix-market", "parquet", "lg", "graph"),
        *("edge-list", "edge-list", "edge-list", "edge-list"),
    ]


def test_real_graphs() -> None:
    truth_file = DATA / "truth" / "counts.json"
    if not truth_file.exists():
        pytest.skip(f"no real graphs in {DATA}; set LONGWALL_DATA")
    for name, truth in json.loads(truth_file.read_text()).items():
        labels = DATA / "graphs" / f"{name}.labels.gz"
        graph = load_graph(DATA / "graphs" / f"{name}.edges.gz", labels if labels.exists() else None)
        found = graph.num_vertices, graph.num_edges, graph.stats.max_degree
        assert found == (truth["vertices"], truth["edges"], truth["max_degree"]), name
        counts = truth["non_induced"]
        assert graph.stats.closed_wedge_fraction == pytest.approx(3 * counts["triangle"] / counts["wedge"], abs=0.02), (
            name
        )
