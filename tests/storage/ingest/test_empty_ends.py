"""Rows without one of their ends are dropped and counted, if the user says so; the oracle is Python's reader of CSV."""

from __future__ import annotations

import csv
import json
import random
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import each_case
from typer.testing import CliRunner

import longwall
from longwall.pipeline.cli import app
from longwall.storage.errors import InputError
from longwall.storage.ingest.text import text_file
from longwall.storage.ingest.text.missing_rows import MISSING

Pair = frozenset[str]


def call(*words: str, code: int = 0) -> Any:
    """Return the result of a command."""
    result = CliRunner().invoke(app, words)
    assert result.exit_code == code, result.output
    return result


def opened(path: Path, **options: Any) -> tuple[set[Pair], int]:
    """Return the edges of a graph without its empty rows, and the number of rows that the warning names."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = longwall.open_graph(path, empty="drop", **options)
    numbers = [one.message.numbers for one in caught if isinstance(one.message, longwall.DataNote)]
    dropped = [number.pop("rows") for number in numbers if "rows" in number]
    assert dropped == [note.count for note in graph.notes if note.kind == "rows"]
    pairs = {frozenset(map(str, ends)) for ends in graph.to_networkx().edges()}
    return pairs, sum(dropped)


def expected(content: str, separator: str, header: bool, words: tuple[str, ...]) -> tuple[set[Pair], int]:
    """Return the same by Python's reader, for rows whose ends are in the first and the last column."""
    rows = [
        [cell.strip() for cell in row]
        for row in csv.reader(content.splitlines(), delimiter=separator, skipinitialspace=True)
    ][header:]
    whole = [(row[0], row[-1]) for row in rows if not {row[0], row[-1]} & {"", *words}]
    return {frozenset(pair) for pair in whole if pair[0] != pair[1]}, len(rows) - len(whole)


@each_case("ends", ["123456", "mnopqr"], ids=["ids", "names"])
@each_case("separator", [",", ";", "\t", "|"])
@each_case("width", [2, 3])
@each_case("header", [False, True])
@each_case("seed", range(3))
def test_the_other_rows_make_the_graph(
    tmp_path: Path, ends: str, separator: str, width: int, header: bool, seed: int
) -> None:
    draw = random.Random(seed)
    blank = " " if separator != "\t" else ""
    words = [word for word in MISSING if header or word[0] != "#"]  # without names of columns, "#" begins a comment
    gaps = ["", blank, '""', *draw.sample(words, 4)]
    cells = [*ends * 2, *(f'"{end}"' for end in ends), *gaps]
    rows = [[ends[0], *["note"] * (width - 2), ends[1]]]
    notes = ["a", "", f'"a{separator}b"', "NA"]
    for _ in range(60):
        rows.append([draw.choice(cells), *(draw.choice(notes) for _ in range(width - 2)), draw.choice(cells)])
    names = [["source", *["note"] * (width - 2), "target"]] if header else []
    content = "\n".join(separator.join(row) for row in names + rows) + draw.choice(["", "\n"])
    path = tmp_path / ("g.tsv" if separator == "\t" else "g.csv")
    path.write_text(content)
    options = {} if width == 2 else {"columns": (1, 3)}
    want = expected(content, separator, header, MISSING)
    assert want[1] > 0
    assert opened(path, **options) == want


def test_words_for_a_missing_value_are_names_if_the_user_says_so(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text("a,b\nNA,b\n,c\nc,None\n")
    assert opened(path, ids="names") == ({frozenset("ab"), frozenset(("NA", "b")), frozenset(("c", "None"))}, 1)
    assert opened(path) == ({frozenset("ab")}, 3)


def test_words_that_only_begin_like_a_missing_value_are_names(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text('a,b\nNAN1,nano\n"NA",a\nNone of,""\n')
    assert opened(path) == ({frozenset("ab"), frozenset(("NAN1", "nano")), frozenset(("NA", "a"))}, 1)


@pytest.mark.parametrize("text", ["1 2\nNA 3\n2\tNaN\n3 1\n", "1 , 2\nNA , 3\n2 ,\n3,1\n", "1,2\r\n,3\r\n2,\r\n3,1"])
def test_rows_of_any_separator(tmp_path: Path, text: str) -> None:
    (tmp_path / "g.txt").write_text(text)
    assert opened(tmp_path / "g.txt") == ({frozenset("12"), frozenset("13")}, 2)


@pytest.mark.parametrize("text", ["1,\n1,2\n3,1\n", "1;\n1;2\n3;1", "1 |\n1|2\n3|1\n", "NA,2\n1,2\n3,1\n"])
def test_the_first_row_of_a_file_without_names_may_lack_an_end(tmp_path: Path, text: str) -> None:
    (tmp_path / "g.csv").write_text(text)
    assert opened(tmp_path / "g.csv") == ({frozenset("12"), frozenset("13")}, 1)


@pytest.mark.parametrize(
    "text", ["-5,\n18446744073709551615,1\n", "18446744073709551615,1\n,-5\n", "007,\n18446744073709551615,1\n"]
)
def test_ids_of_rows_that_are_dropped_are_not_looked_at(tmp_path: Path, text: str) -> None:
    (tmp_path / "g.csv").write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = longwall.open_graph(tmp_path / "g.csv", empty="drop")
    assert set(graph.to_networkx().edges()) == {(1, 2**64 - 1)}
    assert {note.kind: note.count for note in graph.notes} == {"rows": 1}


@pytest.mark.parametrize(
    "text", ["a,1,2\n,,2\nb,3,4\n", "7,1,2\n,,2\n8,3,4\n", ",,2\na,1,2\nb,3,4\n", 'a,1,2\n"",2,\nb,3,4\n']
)
def test_a_row_that_lacks_an_end_needs_no_label(tmp_path: Path, text: str) -> None:
    (tmp_path / "g.csv").write_text(text)
    assert opened(tmp_path / "g.csv", columns=(2, 3), edge_label=1) == ({frozenset("12"), frozenset("34")}, 1)
    (tmp_path / "g.csv").write_text("a,1,2\n,2,3\n")
    with pytest.raises(InputError, match="line 2: the label is missing"):
        longwall.open_graph(tmp_path / "g.csv", empty="drop", columns=(2, 3), edge_label=1)


def test_labels_behind_a_row_that_is_dropped_may_be_the_first_texts(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("1,2,5\n,3,6\n2,3,x\n")
    assert opened(tmp_path / "g.csv", edge_label=3) == ({frozenset("12"), frozenset("23")}, 1)


@pytest.mark.parametrize("kind", [int, str])
@pytest.mark.parametrize(
    "rows",
    [
        "NA,{}\n{},NA\n",
        "NA,{}\nNA,{}\n",
        "source,target\n,\n",
        "source,target\nNA,NA\n,\n",
        "{},{}\n,\n",
        "{} {}\nNA NA\n",
    ],
)
def test_rows_that_lack_ends_do_not_say_whether_vertices_have_names(tmp_path: Path, rows: str, kind: type) -> None:
    a, b, c = (kind(number) if kind is int else "abc"[number] for number in range(3))
    separator = " " if " " in rows else ","
    text = rows.format(a, b) + f"{a}{separator}{b}\n{b}{separator}{c}\n"
    (tmp_path / "g.csv").write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = longwall.open_graph(tmp_path / "g.csv", empty="drop")
    assert {frozenset(ends) for ends in graph.to_networkx().edges()} == {frozenset((a, b)), frozenset((b, c))}


def test_all_blocks_of_a_file_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_file, "LARGEST_BLOCK", 1 << 12)
    monkeypatch.setattr(text_file, "LEAST_BLOCK", 1 << 12)
    draw = random.Random(1)
    rows = [[draw.choice([*"abcdefgh", ""]), draw.choice([*"abcdefgh", ""])] for _ in range(20_000)]
    content = "source,target\n" + "".join(f"{u},{v}\n" for u, v in rows)
    (tmp_path / "g.csv").write_text(content)
    assert opened(tmp_path / "g.csv") == expected(content, ",", True, ())


def test_rows_with_other_faults_are_still_refused(tmp_path: Path) -> None:
    for text, says in (
        ("1,2\n,3\n4,x\n", "line 3: 'x' is not an integer"),
        ("1,2\n,3,4\n4,1\n", "line 2: the number of fields changes from 2 to 3"),
        ("1,2,a\n2,,b\n2,3,\n", "line 3: the label is missing"),
    ):
        (tmp_path / "g.csv").write_text(text)
        label = 3 if "the label" in says else None
        with pytest.raises(InputError, match=says):
            longwall.open_graph(tmp_path / "g.csv", empty="drop", edge_label=label)


@pytest.mark.parametrize("kind", ["int64", "uint64", "string", "large_string", "string_view", "dictionary"])
def test_rows_of_parquet(tmp_path: Path, kind: str) -> None:
    draw = random.Random(kind)
    words = kind not in ("int64", "uint64")
    cells = [*map(str, range(9)), None, *([""] if words else [])]
    rows = [(draw.choice(cells), draw.choice(cells)) for _ in range(3000)]
    of = pa.dictionary(pa.int32(), pa.string()) if kind == "dictionary" else getattr(pa, kind)()
    columns = [
        pa.array([None if one is None else one if words else int(one) for one in ends], of)
        for ends in zip(*rows, strict=True)
    ]
    pq.write_table(pa.table(columns, ["source", "target"]), tmp_path / "g.parquet", row_group_size=1000)
    whole = [pair for pair in rows if pair[0] and pair[1]]
    want = {frozenset(pair) for pair in whole if pair[0] != pair[1]}, len(rows) - len(whole)
    assert opened(tmp_path / "g.parquet") == want


def test_a_later_row_of_parquet_is_named_as_the_file_has_it(tmp_path: Path) -> None:
    table = pa.table({"source": [1, None, 2], "target": [2, 3, 3], "kind": ["a", "b", None]})
    pq.write_table(table, tmp_path / "g.parquet")
    with pytest.raises(InputError, match="row 3: column kind is empty"):
        longwall.open_graph(tmp_path / "g.parquet", empty="drop", edge_label="kind", columns=("source", "target"))


@pytest.mark.parametrize("ends", [["", None], [None, 1], [None, 2**60]])
def test_a_file_of_which_no_row_is_left_has_no_edges(tmp_path: Path, ends: list[Any]) -> None:
    pq.write_table(pa.table({"source": ends, "target": ends[::-1]}), tmp_path / "g.parquet")
    first, second = ("" if one is None else str(one) for one in ends)
    (tmp_path / "g.csv").write_text(f"source,target\n{first},{second}\n{second or 'a'},\n")
    for name in ("g.parquet", "g.csv"):
        with pytest.raises(InputError, match="there are no edges"):
            longwall.open_graph(tmp_path / name, empty="drop")


def test_a_run_and_a_store_say_how_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("g.csv").write_text("payer,payee\na,b\nb,c\n,c\nc,a\na,\n")
    Path("g.toml").write_text('[graph]\npath = "g.csv"\nempty = "drop"\n[workload]\nkind = "triangles"\n')
    assert "2 rows that lack an end are dropped" in call("run", "g.toml").stderr
    manifest = json.loads(Path("runs/g/manifest.json").read_text())
    assert {"kind": "rows", "count": 2, "text": "2 rows that lack an end are dropped"} in manifest["graph"]["notes"]
    assert "2 rows that lack an end are dropped" in call("ingest", "g.csv", "g.zarr", "--empty", "drop").stderr
    assert longwall.triangles(longwall.open_graph("g.zarr")) == 1
    assert "2 rows that lack an end are dropped" in call("info", "g.csv", "--empty", "drop").stderr
    refused = call("ingest", "g.csv", "h.zarr", "--empty", "skip", code=2)
    assert "--empty: expected refuse or drop, not 'skip'" in refused.stderr
    refused = call("run", "g.toml", "--overwrite", "--set", "graph.empty=refuse", code=2)
    assert 'graph.empty = "drop"' in refused.stderr


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n"),
        ("g.net", "*Vertices 2\n*Edges\n1 2\n"),
        ("g.sif", "a pp b\n"),
    ],
)
def test_other_formats_have_no_empty_rows(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match="leave out empty"):
        longwall.open_graph(tmp_path / name, empty="drop")
