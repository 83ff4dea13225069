"""The two columns of a table that hold the edges: by known names, by the config, by the command line."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import each_case
from typer.testing import CliRunner

import longwall
from longwall.pipeline.cli import app
from longwall.pipeline.config import load_config
from longwall.storage.errors import InputError
from longwall.storage.ingest.tables.columns import EDGES, ColumnRequest, choose_columns, header_names
from longwall.storage.observer import NullObserver

TABLE = "source,target,a,b\n9,8,1,2\n9,8,2,3\n9,8,1,3\n"

REQUEST = ColumnRequest(EDGES)


class Notes(NullObserver):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "g.csv"
    path.write_text(TABLE)
    return path


@each_case(
    ("line", "names"),
    [
        ("a,b", ["a", "b"]),
        ("a b c", ["a", "b", "c"]),
        ("a\tb c", ["a", "b", "c"]),
        ('"a, b";"c"', ["a, b", "c"]),
        ("source,target,", ["source", "target"]),
        (",source,target", ["", "source", "target"]),
        (" source , target ", ["source", "target"]),
        ("source,target,2010,-1", ["source", "target", "2010", "-1"]),
        ("é|ü", ["é", "ü"]),
    ],
)
def test_lines_that_name_columns(line: str, names: list[str]) -> None:
    found = header_names(line, False, REQUEST, InputError)
    assert found is not None
    assert found[0] == names


@each_case("line", ["", "1 2", "a 1", "1,b", "1.5 a", "- -", "--- ---", ", ,", "a\0b c", "a \ufffd", "-7,x"])
def test_lines_that_are_rows(line: str) -> None:
    assert header_names(line, False, REQUEST, InputError) is None


def test_in_a_tsv_file_only_tabs_separate_names() -> None:
    assert header_names("from node\tto, node\t", True, REQUEST, InputError) == (
        ["from node", "to, node"],
        9,
    )


def test_a_chosen_column_makes_any_line_a_header() -> None:
    assert header_names("1,2,3", False, ColumnRequest(EDGES, ("1", "3")), InputError) == (["1", "2", "3"], ord(","))


@each_case("pair", EDGES.pairs)
def test_every_known_pair_is_found_among_others_in_any_spelling(pair: tuple[str, str]) -> None:
    first, second = pair
    for names in ([first, "w", second], ["x", second.upper(), f"_{first}"], [f":{first.title()} ", "w", f"{second}."]):
        chosen = choose_columns(names, REQUEST, InputError)
        assert [names[at].strip(" _:.").lower() for at in chosen] == [first, second]


def test_long_lists_of_columns_are_cut_in_messages() -> None:
    with pytest.raises(InputError, match=r"c0, c1, .*c19, and 480 more; say which two to read: graph\.columns"):
        choose_columns([f"c{at}" for at in range(500)], REQUEST, InputError)


def test_the_config_chooses_columns_and_the_manifest_says_which(table: Path, tmp_path: Path) -> None:
    config = {"graph": {"path": str(table), "columns": ["b", "a"]}, "workload": {"kind": "triangles"}}
    observer = Notes()
    result = longwall.run(config, observer=observer)
    assert result.count == 1
    note = f"{table}: reading columns b and a; 2 others are ignored"
    assert observer.texts.count(note) == 1
    assert json.loads((Path(result.path) / "manifest.json").read_text())["graph"]["columns"] == [note]
    spec = load_config(config)
    assert load_config(spec.with_absolute_paths().to_dict()).graph.columns == ("b", "a")
    (tmp_path / "run.toml").write_text(spec.to_toml())
    assert load_config(tmp_path / "run.toml").graph.columns == ("b", "a")


@each_case("columns", ["a", "a,b", ["a"], ["a", "a"], ["a", "b", "c"], ["a", 0], ["a", 1.5], 7])
def test_columns_that_no_config_can_have(columns: object) -> None:
    config = {"graph": {"path": "g.csv", "columns": columns}, "workload": {"kind": "triangles"}}
    with pytest.raises(InputError, match=r"graph\.columns: expected the names of two columns such as"):
        load_config(config)


def test_a_generated_graph_has_no_columns() -> None:
    graph = {"generator": {"kind": "rmat", "scale": 4}, "columns": ["a", "b"]}
    with pytest.raises(InputError, match=r"graph\.columns: a generated graph has no columns"):
        load_config({"graph": graph, "workload": {"kind": "triangles"}})


def test_a_store_has_no_columns(table: Path, tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["ingest", str(table), "store", "--quiet"]).exit_code == 0
    with pytest.raises(InputError, match="leave columns out"):
        longwall.open_graph(tmp_path / "store", columns=("a", "b"))


def test_ingest_chooses_columns(table: Path) -> None:
    made = CliRunner().invoke(app, ["ingest", str(table), "chosen", "--columns", "a,b"])
    assert made.exit_code == 0, made.output
    assert "reading columns a and b; 2 others are ignored" in made.stderr
    assert longwall.open_graph("chosen").num_edges == 3
    plain = CliRunner().invoke(app, ["ingest", str(table), "plain", "--quiet"])
    assert plain.exit_code == 0, plain.output
    assert longwall.open_graph("plain").num_edges == 1
    for wrong in ("a", "a,b,c", "a,a", "a,x", ""):
        refused = CliRunner().invoke(app, ["ingest", str(table), "other", "--columns", wrong])
        assert refused.exit_code == 2
        assert str(table) in refused.stderr
        assert not Path("other").exists()


def test_the_notes_of_labels_come_once(table: Path, tmp_path: Path) -> None:
    """Transactions are read twice."""
    (tmp_path / "t.csv").write_text("note,vertex,transaction\n" + "".join(f"x y,{v},3\n" for v in (1, 2, 3, 8, 9)))
    pq.write_table(pa.table({"label": [4] * 5, "vertex": [1, 2, 3, 8, 9], "x": [0] * 5}), tmp_path / "l.parquet")
    observer = Notes()
    graph = longwall.open_graph(table, tmp_path / "l.parquet", observer, transactions=tmp_path / "t.csv")
    assert graph.num_transactions == 1
    assert observer.texts == [
        f"{table}: reading columns source and target; 2 others are ignored",
        f"{tmp_path}/l.parquet: reading columns vertex and label; 1 other is ignored",
        f"{tmp_path}/t.csv: reading columns vertex and transaction; 1 other is ignored",
        f"{table}: 2 repeated edges are merged; 3 labels of vertices without an edge are ignored",
    ]


@each_case(
    ("file", "options"),
    [
        ("g.csv", {"edge_label": "source"}),
        ("g.csv", {"edge_label": 2}),
        ("g.csv", {"columns": ("source", "a"), "edge_label": "a"}),
        ("g.csv", {"columns": ("source", 1)}),
        ("rows.txt", {"edge_label": 1}),
        ("rows.txt", {"columns": (2, 3), "edge_label": 3}),
        ("g.parquet", {"edge_label": "target"}),
        ("g.parquet", {"columns": (1, "source")}),
    ],
)
def test_a_column_is_no_end_and_label_at_once(table: Path, file: str, options: Any) -> None:
    pq.write_table(pa.table({"source": [9, 9], "target": [8, 7], "a": [1, 2]}), table.with_suffix(".parquet"))
    table.with_name("rows.txt").write_text("9 8 1\n9 7 2\n")
    with pytest.raises(InputError, match=f"^{file}.*: column .* is wanted twice"):
        longwall.open_graph(file, **options)
