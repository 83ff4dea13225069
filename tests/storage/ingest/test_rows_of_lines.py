"""Fields in quotes may have newlines: rows are those of Python's csv module, whatever the blocks of the file."""

import csv
import io
import random
from pathlib import Path

import pandas as pd
import pytest
from cases import each_case

import longwall
from longwall.storage.errors import InputError
from longwall.storage.ingest.ingest import load_graph
from longwall.storage.ingest.readers.edge_stream import FileRequest
from longwall.storage.ingest.tables.columns import EDGES, ColumnRequest
from longwall.storage.ingest.tables.edge_list import open_edge_list
from longwall.storage.ingest.text import text_file

TEXTS = ["", "a", "two\nlines", 'a "quote"\nand, more', "\n", "\r\n", "1,2\n3,4", "# c\n5", '"', '5" disk', "x\n\n\ny"]


def written(rows: list[list[object]], header: list[str], separator: str, end: str) -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator=end)
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


@each_case("seed", range(150))
def test_rows_are_those_of_csv(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    rows: list[list[object]] = []
    for _ in range(rng.choice([1, 30, 300])):
        rows.append([rng.choice(TEXTS), rng.randrange(9), rng.choice(TEXTS), rng.randrange(9), rng.choice(TEXTS)])
    separator = rng.choice([",", ";", "|", "\t"])
    text = written(rows, ["note", "source", "text", "target", "more"], separator, rng.choice(["\n", "\r\n"]))
    path = tmp_path / ("g.tsv" if separator == "\t" else "g.csv")
    path.write_bytes(text.encode())
    block = rng.choice([120, 300, 2**16])
    monkeypatch.setattr(text_file, "LEAST_BLOCK", block)
    monkeypatch.setattr(text_file, "LARGEST_BLOCK", block)
    with open_edge_list(FileRequest(path, 2**22, 3, columns=ColumnRequest(EDGES, ids="integers"))) as stream:
        found = [pair for one in stream.blocks for pair in zip(one.src.tolist(), one.dst.tolist(), strict=True)]
    assert found == [(row[1], row[3]) for row in rows]


def test_what_pandas_writes_with_names_and_labels(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "text": ["a\nb", "c", 'd\n"e"'],
            "source": ["ann\nlee", "bob", "cy"],
            "target": ["bob", "cy", "ann\nlee"],
            "kind": ["x\ny", "z", "x\ny"],
        }
    )
    table.to_csv(tmp_path / "g.csv", index=False)
    read = longwall.open_graph(tmp_path / "g.csv", edge_label="kind")
    made = longwall.graph(table, edge_labels="kind")
    assert read.content_hash == made.content_hash
    assert read.edge_label_names == ("x\ny", "z")


@each_case(
    ("text", "line"),
    [
        ('source,target,note\n1,2,"a\nb\nc"\n3,x,""\n', 5),
        ('source,target,note\n1,2,"a\nb\nc"\n3,4,"d\n5,6,e\n', 5),
        ('source,target,note\n1,2,"a\n\x01b"\n', 2),
        ('source,target,note\n1,2,"a\rb"\n', 2),
        ('source,target,note\n1,2,"a\nb"\n3\n', 4),
        ('source,target\n"1\n",2\n', 2),
    ],
)
def test_a_wrong_row_has_the_number_of_its_first_line(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "g.csv").write_bytes(text.encode())
    with pytest.raises(InputError, match=rf"g\.csv, line {line}: "):
        load_graph(tmp_path / "g.csv")


def test_a_quote_that_is_never_closed_is_found_in_a_large_file(tmp_path: Path) -> None:
    lines = ["1,2,a"] * 50_000
    lines[30_000] = '1,2,"a'
    (tmp_path / "g.csv").write_text("\n".join(["source,target,note", *lines, ""]))
    with (
        open_edge_list(FileRequest(tmp_path / "g.csv", 2**21, 1)) as stream,
        pytest.raises(InputError, match="a quote that is not"),
    ):
        list(stream.blocks)
