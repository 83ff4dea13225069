"""The commands that look at runs."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from typer.testing import CliRunner

from longwall.pipeline.cli import app
from longwall.pipeline.terminal.tables import harmless, table_text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the configs of two runs, which have run."""
    folder = tmp_path_factory.mktemp("terminal")
    (folder / "graph.txt").write_text("0 1\n1 2\n2 0\n2 3\n")
    for name in ("one", "two"):
        (folder / f"{name}.toml").write_text(
            f'[graph]\npath = "{folder}/graph.txt"\n[workload]\nkind = "triangles"\n'
            f'[run]\nname = "{name}"\ndirectory = "{folder}/runs"\n'
        )
    bad = str(folder / "missing.toml")
    ended = CliRunner().invoke(app, ["run", bad, str(folder / "one.toml"), str(folder / "two.toml"), "-q"])
    assert ended.exit_code == 2, "the exit code of the worst, though the others ran"
    return folder


def test_runs_lists_what_is_there(folder: Path) -> None:
    ended = CliRunner().invoke(app, ["runs", str(folder / "runs"), "--json"])
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [(one["name"], one["status"], one["answer"]) for one in found] == [("one", "done", 1), ("two", "done", 1)]


def test_killed_and_damaged_runs_are_listed_as_such(tmp_path: Path) -> None:
    for name, text in (("dead", '{"status": "running", "config_sha256": ""}'), ("bad", "{")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text(text)
    ended = CliRunner().invoke(app, ["runs", str(tmp_path), "--json"])
    found = {one["name"]: one["status"] for one in map(json.loads, ended.stdout.splitlines())}
    assert found == {"dead": "killed", "bad": "damaged"}


def test_show_prints_a_table_and_csv(folder: Path) -> None:
    run = str(folder / "runs" / "one")
    assert "0-1,0-2,1-2" in CliRunner().invoke(app, ["show", run]).stdout
    text = CliRunner().invoke(app, ["show", run, "counts", "--csv"]).stdout
    assert pa.csv.read_csv(pa.BufferReader(text.encode()))["count"].to_pylist() == [1]
    assert CliRunner().invoke(app, ["show", run, "--tables"]).stdout == "counts\n"


def test_show_refuses_what_is_no_run(folder: Path) -> None:
    ended = CliRunner().invoke(app, ["show", str(folder)])
    assert ended.exit_code == 2
    assert "not the folder of a run" in ended.stderr


def test_names_that_clash_are_refused_before_anything_runs(folder: Path) -> None:
    config = str(folder / "one.toml")
    ended = CliRunner().invoke(app, ["run", config, config, "--set", "run.name=new"])
    assert ended.exit_code == 2
    assert not (folder / "runs" / "new").exists()


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in harmless("\x1b[31mred")
    assert "\x1b" not in table_text(["name"], [["\x1b]0;title\x07"]])
