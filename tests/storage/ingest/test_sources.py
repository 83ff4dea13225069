"""Several files as one graph: lists, folders, patterns of names, Hive's partitions."""

import errno
import os
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from cases import each_case
from pyarrow import csv

import longwall
from longwall.storage.errors import InputError
from longwall.storage.ingest.ingest import ingest, load_graph
from longwall.storage.ingest.tables.table_options import TableOptions

PAIRS = np.random.default_rng(5).integers(0, 200, (3000, 2))
PARTS = np.array_split(PAIRS, 4)


def edges_of(graph: longwall.Graph) -> set[frozenset]:
    table = graph.to_arrow()
    return {frozenset(edge) for edge in zip(*(table[name].to_pylist() for name in ("source", "target")), strict=True)}


def expected(named: bool) -> set[frozenset]:
    pairs = {frozenset(pair) for pair in PAIRS.tolist() if pair[0] != pair[1]}
    return {frozenset(f"v{end}" for end in pair) for pair in pairs} if named else pairs


def table_of(pairs: np.ndarray, named: bool) -> pa.Table:
    columns = [pa.array([f"v{end}" for end in ends] if named else ends) for ends in pairs.T.tolist()]
    return pa.table(columns, names=["source", "target"])


def write_parts(folder: Path, suffix: str, named: bool) -> list[Path]:
    folder.mkdir()
    paths = []
    for at, part in enumerate(PARTS):
        path = folder / f"part-{at}{suffix}"
        if suffix == ".parquet":
            pq.write_table(table_of(part, named), path)
        else:
            lines = (f"v{u} v{v}" if named else f"{u} {v}" for u, v in part.tolist())
            path.write_text("\n".join(lines) + "\n")
        paths.append(path)
    (folder / "_SUCCESS").touch()
    (folder / ".crc").write_text("hidden")
    return paths


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("suffix", [".parquet", ".txt", ""])
def test_lists_folders_and_patterns_are_one_graph(tmp_path: Path, suffix: str, named: bool) -> None:
    paths = write_parts(tmp_path / "data", suffix, named)
    graphs = [load_graph(source) for source in (paths, tmp_path / "data", str(tmp_path / "data" / "part-*"))]
    for graph in graphs:
        assert edges_of(graph) == expected(named)
        assert graph.content_hash == graphs[0].content_hash
    ingest(tmp_path / "data", tmp_path / "g.zarr")
    assert longwall.open_graph(tmp_path / "g.zarr").content_hash == graphs[0].content_hash
    result = longwall.run(
        {
            "graph": {"path": [str(path) for path in paths]},
            "workload": {"kind": "match", "pattern": "edge"},
            "run": {"directory": str(tmp_path / "runs")},
        }
    )
    assert result.count == len(expected(named))


def test_partitions_of_hive(tmp_path: Path) -> None:
    table = table_of(PAIRS, named=True).append_column("year", pa.array(np.arange(len(PAIRS)) % 3 + 2020))
    ds.write_dataset(table, tmp_path / "data", format="parquet", partitioning=["year"], partitioning_flavor="hive")
    assert edges_of(load_graph(tmp_path / "data")) == expected(named=True)
    assert edges_of(load_graph(tmp_path / "data" / "**" / "*.parquet")) == expected(named=True)


def test_labels_of_edges_are_numbered_across_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2,red\n2,3,blue\n")
    (tmp_path / "b.csv").write_text("3,4,blue\n4,5,green\n")
    graph = load_graph([tmp_path / "a.csv", tmp_path / "b.csv"], table=TableOptions(edge_label=3))
    assert graph.edge_label_names == ("red", "blue", "green")
    table = graph.to_arrow()
    ends = zip(*(table[name].to_pylist() for name in ("source", "target", "label")), strict=True)
    found = {frozenset((u, v)): graph.edge_label_names[label] for u, v, label in ends}
    assert found == {
        frozenset((1, 2)): "red",
        frozenset((2, 3)): "blue",
        frozenset((3, 4)): "blue",
        frozenset((4, 5)): "green",
    }


@each_case(("first", "second"), [(False, True), (True, False)])
@each_case("ids", ["auto", "names", "integers"])
@each_case("suffix", [".parquet", ".txt"])
def test_files_with_names_and_with_integers(tmp_path: Path, suffix: str, first: bool, second: bool, ids: str) -> None:
    """Integers are names where there are names, or shall be; names are no integers."""
    paths, wanted = [], set()
    for at, named in enumerate((first, second)):
        paths.append(write_parts(tmp_path / str(at), suffix, named)[at])
        written = "v{}" if named else "{}"
        wanted |= {frozenset(map(written.format, pair)) for pair in PARTS[at].tolist() if pair[0] != pair[1]}
    if ids == "integers" or (ids == "auto" and second):
        says = r"column source holds .*, but the vertices of the graph have integers|is not an integer"
        with pytest.raises(InputError, match=f'({says}).* set graph.ids = "names"'):
            load_graph(paths, table=TableOptions(ids=ids))
    else:
        assert edges_of(load_graph(paths, table=TableOptions(ids=ids))) == wanted


def test_integers_of_parquet_are_names_with_labels_and_without(tmp_path: Path) -> None:
    pq.write_table(table_of(PARTS[0], named=False), tmp_path / "g.parquet")
    labels = pa.table({"vertex": np.arange(200), "label": np.arange(200) % 3})
    pq.write_table(labels, tmp_path / "labels.parquet")
    graph = load_graph(tmp_path / "g.parquet", tmp_path / "labels.parquet", table=TableOptions(ids="names"))
    names = graph.all_ids().to_pylist()
    assert names[0] == str(int(names[0]))
    assert graph.labels is not None
    assert graph.labels.tolist() == [int(name) % 3 for name in names]


@pytest.mark.parametrize(
    ("suffix", "texts"),
    [
        (".csv", (False, True)),
        (".csv", (True, False)),
        (".parquet", (False, True)),
        (".parquet", (True, False)),
        (".graphml", (False, True)),  # in the other order all are texts
    ],
)
def test_labels_of_edges_are_of_one_kind_in_all_files(tmp_path: Path, suffix: str, texts: tuple[bool, ...]) -> None:
    paths = []
    for at, named in enumerate(texts):
        path, pairs, labels = tmp_path / f"g{at}{suffix}", [(1, 2), (2, 3)], ["x", "y"] if named else [1, 2]
        table = pa.table([[u for u, _ in pairs], [v for _, v in pairs], labels], ["source", "target", "kind"])
        if suffix == ".parquet":
            pq.write_table(table, path)
        elif suffix == ".csv":
            csv.write_csv(table, path)
        else:
            edges = [(*pair, {"kind": label}) for pair, label in zip(pairs, labels, strict=True)]
            nx.write_graphml(nx.Graph(edges), path)
        paths.append(path)
    kinds = ("texts here, and integers before", "integers here, and texts before")
    says = f"g1{suffix}: .*{kinds[texts[0]]}|g1{suffix}, .* is not an integer"
    with pytest.raises(InputError, match=says):
        load_graph(paths, table=TableOptions(edge_label="kind"))


@each_case("texts", [False, True])
@each_case("empty", ["source,target,kind\n", "# nothing\nsource,target,kind\n\n"])
@each_case("at", [0, 1, 2])
def test_a_file_without_edges_has_no_kind_of_labels(tmp_path: Path, texts: bool, empty: str, at: int) -> None:
    contents = ["source,target,kind\n1,2,x\n2,3,y\n", "source,target,kind\n3,4,x\n"]
    contents = contents if texts else [one.replace("x", "1").replace("y", "2") for one in contents]
    contents.insert(at, empty)
    paths = [tmp_path / f"{number}.csv" for number in range(3)]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(content)
    graph = load_graph(paths, table=TableOptions(edge_label="kind"))
    assert graph.num_edges == 3
    assert graph.edge_label_names == (("x", "y") if texts else None)


def test_what_cannot_be_read_of_a_folder_is_not_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parts(tmp_path / "data", ".txt", named=False)
    (tmp_path / "data" / "link.txt").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"link.txt: there is no such file"):
        load_graph(tmp_path / "data")
    (tmp_path / "data" / "link.txt").unlink()
    scan = os.scandir

    def refuse(path: Any = ".") -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scan(path)

    (tmp_path / "data" / "closed").mkdir()
    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputError, match=r"closed: no permission to read this folder; change its mode or its owner"):
        load_graph(tmp_path / "data")


def test_what_is_no_source(tmp_path: Path) -> None:
    write_parts(tmp_path / "data", ".txt", named=False)
    (tmp_path / "empty").mkdir()
    (tmp_path / "g.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n")
    ingest(tmp_path / "data", tmp_path / "g.zarr")
    (tmp_path / "names.txt").write_text("a b\nb c\n")
    (tmp_path / "data" / "bad.txt").write_text("1 2\n3 x\n")
    for source, says in (
        (tmp_path / "empty", "empty: this is a folder without files"),
        (tmp_path / "*.csv", r"\*.csv: no file matches this pattern"),
        ([tmp_path / "g.mtx", tmp_path / "names.txt"], "files of several formats"),
        ([tmp_path / "g.mtx", tmp_path / "g.mtx"], "g.mtx: several files; only edge lists"),
        ([tmp_path / "g.zarr", tmp_path / "names.txt"], "g.zarr: this is a graph store"),
        ([tmp_path / "names.txt", tmp_path / "none.txt"], "none.txt: there is no such file"),
        (tmp_path / "data", "bad.txt, line 2: 'x' is not an integer"),
    ):
        with pytest.raises(InputError, match=says) as refused:
            load_graph(source)
        assert "\n" not in str(refused.value)
    (tmp_path / "data" / "bad.txt").unlink()
    (tmp_path / "data" / "zz.txt").write_text("a b\nb c\n")
    with pytest.raises(InputError, match=r"zz.txt, line 2: 'b' is not an integer"):
        load_graph(tmp_path / "data")
