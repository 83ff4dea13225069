"""Texts of files, labels and code of users never control the terminal: control characters are written out."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from longwall.pipeline.cli import app
from longwall.pipeline.progress.observers import LastingObserver, PlainObserver
from longwall.pipeline.terminal.show import write_csv

ESC, OSC, BIDI = "\x1b[31m", "\x1b]0;x\x07", "\u202e"
BAD = f"a{ESC}{OSC}{BIDI}\x9b\r"
WRITTEN = r"a\x1b[31m\x1b]0;x\x07\u202e\x9b\r"
RAW = [ord(one) for one in "\x1b\x07\x9b\r\u202e"]


def said(*words: object, code: int = 0) -> str:
    """Run a command, check that its output has no control characters, and return both streams."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    text = done.stdout + done.stderr
    assert not {*map(ord, text)}.intersection(RAW), ascii(text)
    return text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A graph whose vertices and labels have such names, in a file that has one, too."""
    monkeypatch.chdir(tmp_path)
    ends = zip(*((0, 1), (1, 2), (0, 2), (2, 3)), strict=True)
    source, target = ([f"{BAD}{one}" for one in side] for side in ends)
    pq.write_table(pa.table({"source": source, "target": target}), f"{BAD}.parquet")
    labels = {"id": [f"{BAD}{one}" for one in range(4)], "label": [f"{BAD}{one % 2}" for one in range(4)]}
    pq.write_table(pa.table(labels), f"{BAD}.labels.parquet")
    return tmp_path


def config(**workload: object) -> str:
    """A config with such a name."""
    graph = {"path": f"{BAD}.parquet", "labels": f"{BAD}.labels.parquet"}
    sections = {"graph": graph, "workload": workload, "engine": {"kind": "cpu"}, "run": {"name": "one"}}
    lines = []
    for section, keys in sections.items():
        lines += [f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
    Path(f"{BAD}.toml").write_text("\n".join(lines))
    return f"{BAD}.toml"


@pytest.mark.usefixtures("folder")
def test_graphs_with_such_names() -> None:
    assert WRITTEN in said("ingest", f"{BAD}.parquet", f"{BAD}.zarr", "--labels", f"{BAD}.labels.parquet")
    assert WRITTEN in said("info", f"{BAD}.zarr")
    assert WRITTEN in said("info", f"{BAD}.parquet", "--vertices", f"{BAD}.labels.parquet")
    said("info", f"{BAD}.zarr", "--json")
    mined = config(kind="match", pattern="triangle", output="embeddings")
    said("explain", mined)
    said("run", mined)
    assert WRITTEN in said("show", "runs/one", "embeddings")
    said("show", "runs/one", "counts")
    said("runs")
    said("resume", "runs/one")
    said("report", "runs/one")
    page = Path("runs/one/report.html").read_text()
    assert not {*map(ord, page)}.intersection(RAW)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "words",
    [
        [BAD],
        ["run", BAD],
        ["run", f"--{BAD}"],
        ["show", BAD, BAD, BAD],
        ["info", BAD],
        ["explain", BAD],
        ["resume", BAD],
        ["runs", BAD],
        ["report", BAD],
        ["ingest", BAD, "x.zarr"],
        ["generate", BAD, "x.zarr"],
        ["patterns", BAD],
        ["configs", BAD],
        ["doctor", "--disk", BAD],
        ["--log-level", BAD, "runs"],
    ],
    ids=lambda words: words[0].replace(BAD, "bad"),
)
def test_arguments_of_such_names_are_refused(words: list[str]) -> None:
    assert WRITTEN[:12] in said(*words, code=0 if words[0] == "doctor" else 2)


@pytest.mark.usefixtures("folder")
def test_errors_of_code_of_users() -> None:
    Path("mine.py").write_text(
        "import longwall\n"
        "class Mine(longwall.Algorithm):\n"
        f"    def count(self, *_):\n        raise ValueError({BAD!r})\n"
        f"    def __init__(self, *_, **__):\n        raise ValueError({BAD!r})\n"
    )
    assert WRITTEN[:12] in said("run", config(kind="custom", algorithm="mine.py:Mine"), code=2)


def test_progress_and_notes() -> None:
    stream = io.StringIO()
    observer = LastingObserver(PlainObserver(stream))
    observer.phase(BAD, None, "edges")
    observer.note(f"{BAD}\nand more")
    assert stream.getvalue() == f"{WRITTEN}\n{WRITTEN}\nand more\n"


def csv_of(*cells: str | None, name: str = "text", kind: str = "string", **options: bool) -> str:
    stream = io.BytesIO()
    batch = pa.record_batch(
        {name: pa.array(cells, pa.type_for_alias(kind)), "number": pa.array(range(-1, len(cells) - 1))}
    )
    write_csv(iter([batch]), stream, **options)
    return stream.getvalue().decode()


def test_csv_is_exact_but_for_a_terminal() -> None:
    assert csv_of(BAD) == f'"text","number"\n"{BAD}",-1\n'
    assert csv_of(BAD, None, shown=True) == f'"text","number"\n"{WRITTEN}",-1\n,0\n'


def test_csv_for_spreadsheets_has_no_formulas() -> None:
    begins = ["=", "+", "-", "@", "\t", "\r"]
    cells = [f"{one}1" for one in begins]
    text = csv_of(*cells, "a=1", "", None, name="=name", for_spreadsheets=True)
    assert text.startswith('"\'=name","number"\n"\'=1",-1\n')  # numbers stay numbers
    assert [f"'{one}" in text for one in cells] == [True] * len(cells)
    assert text.endswith('"a=1",5\n"",6\n,7\n')
    assert csv_of(*cells, "a=1", "", None, name="=name", kind="large_string", for_spreadsheets=True) == text
    assert csv_of(*cells).count("'") == 0


@pytest.mark.usefixtures("folder")
def test_show_for_spreadsheets() -> None:
    edges = ["source,target", '"=1+1",b', 'b,"@c"', '"=1+1","@c"']
    Path("formulas.csv").write_text("\n".join(edges) + "\n")
    graph = ["--set", "graph.path=formulas.csv", "--set", "graph.labels="]
    said("run", config(kind="match", pattern="triangle", output="embeddings"), *graph)
    plain = said("show", "runs/one", "embeddings", "--csv")
    assert '"=1+1"' in plain
    safe = said("show", "runs/one", "embeddings", "--csv", "--spreadsheet")
    assert ('"\'=1+1"' in safe, '"=1+1"' in safe, '"b"' in safe) == (True, False, True)
    assert "--spreadsheet: only --csv has a use for it" in said("show", "runs/one", "--spreadsheet", code=2)
