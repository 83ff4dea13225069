"""The commands that look at runs."""

import errno
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from cases import each_case
from typer.testing import CliRunner

import longwall
from longwall.pipeline.cli import app
from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.result import Result
from longwall.pipeline.terminal.tables import table_text
from longwall.storage.system.plain_text import harmless


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


@pytest.mark.parametrize("section", ["workload", "export"])
def test_an_answer_that_a_limit_ended_is_a_lower_bound(tmp_path: Path, section: str) -> None:
    workload = {"kind": "match", "pattern": "triangle", "output": "embeddings"}
    config = {"graph": {"example": "karate"}, "workload": workload, "run": {"directory": str(tmp_path), "name": "some"}}
    longwall.run({**config, section: {**config.get(section, {}), "limit": 10}})
    longwall.run(config | {"run": {"directory": str(tmp_path), "name": "whole"}})
    lines = CliRunner().invoke(app, ["runs", str(tmp_path)]).stdout.splitlines()
    assert ["at least 10" in line for line in lines] == [False, True, False]
    found = CliRunner().invoke(app, ["runs", str(tmp_path), "--json"]).stdout.splitlines()
    assert [json.loads(line).get("lower_bound") for line in found] == [True, None]


def test_patterns_are_shown_by_their_names(tmp_path: Path) -> None:
    ring, long_ring = "0-1,1-2,2-3,3-0", "0-1,1-2,2-3,3-4,4-5,5-6,6-7,7-0,0-2"
    config = {"graph": {"example": "karate"}, "run": {"directory": str(tmp_path)}}
    workloads = {"ring": {"kind": "match", "pattern": ring}, "other": {"kind": "match", "pattern": long_ring}}
    workloads["all"] = {"kind": "motifs", "k": 3}
    found = {
        name: longwall.run(config | {"workload": workload, "run": {"directory": str(tmp_path), "name": name}})
        for name, workload in workloads.items()
    }
    assert "triangle  45\n" in f"{found['all']!r}\n".replace("   ", "  ")
    assert "triangle" in found["all"]._repr_html_()
    assert found["all"].patterns[1].pattern == "0-1,0-2,1-2", "programs read edges"
    listed = CliRunner().invoke(app, ["runs", str(tmp_path)]).stdout
    assert [line.split()[3] for line in listed.splitlines()[1:3]] == ["cycle-4", "0-1,0-2,0-7,1-2,2-3,3-4,4-5,5-6,6-7"]
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "all")]).stdout
    assert "triangle (0-1,0-2,1-2)" in shown
    assert "wedge (0-1,0-2)" in shown
    plain = CliRunner().invoke(app, ["show", str(tmp_path / "all"), "--csv"]).stdout
    assert "triangle" not in plain.replace("from-triangles", "")
    report = (tmp_path / "all" / "report.html").read_text()
    assert "triangle" in report


def test_labels_stay_beside_the_name_of_a_pattern() -> None:
    ended = Result("r", "frequent", None, (PatternCount("0-1,0-2,1-2", ("a", "a", "b"), None, support=1),), 1.0, "cpu")
    assert "triangle, labels a,a,b  support 1" in repr(ended)


def test_killed_and_damaged_runs_are_listed_as_such(tmp_path: Path) -> None:
    for name, text in (("dead", '{"status": "running", "config_sha256": ""}'), ("bad", "{")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text(text)
    ended = CliRunner().invoke(app, ["runs", str(tmp_path), "--json"])
    found = {one["name"]: one["status"] for one in map(json.loads, ended.stdout.splitlines())}
    assert found == {"dead": "killed", "bad": "damaged"}


def test_a_run_that_was_interrupted_before_its_plan_has_its_pattern(tmp_path: Path, monkeypatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("longwall.pipeline.run.plan_for", interrupted)
    patterns = {"named": "house", "text": "(a)-(b:x)-(c)", "several": ["wedge", "house"], "wrong": "wedge"}
    for name, pattern in patterns.items():
        with pytest.raises(KeyboardInterrupt):
            longwall.run(
                {
                    "graph": {"example": "karate"},
                    "workload": {"kind": "match", "pattern": pattern},
                    "run": {"directory": str(tmp_path), "name": name},
                }
            )
    (tmp_path / "wrong" / "config.toml").write_text("[workload\n")
    lines = CliRunner().invoke(app, ["runs", str(tmp_path), "--json"]).stdout.splitlines()
    found = {one["name"]: (one["status"], one.get("pattern")) for one in map(json.loads, lines)}
    assert found == {
        "named": ("interrupted", "0-1,0-3,0-4,1-2,1-4,2-3"),
        "text": ("interrupted", "0-1,1-2"),
        "several": ("interrupted", None),
        "wrong": ("interrupted", None),
    }
    assert " house " in CliRunner().invoke(app, ["runs", str(tmp_path)]).stdout


def test_show_prints_a_table_and_csv(folder: Path) -> None:
    run = str(folder / "runs" / "one")
    assert "0-1,0-2,1-2" in CliRunner().invoke(app, ["show", run]).stdout
    text = CliRunner().invoke(app, ["show", run, "counts", "--csv"]).stdout
    assert pa.csv.read_csv(pa.BufferReader(text.encode()))["count"].to_pylist() == [1]
    assert CliRunner().invoke(app, ["show", run, "--tables"]).stdout == "counts\n"


def test_show_refuses_what_is_no_run(folder: Path) -> None:
    ended = CliRunner().invoke(app, ["show", str(folder)])
    assert ended.exit_code == 2
    assert "there is no run" in ended.stderr


@each_case("command", ["show", "resume", "report", "rm"])
def test_the_folder_of_a_run_is_suggested_for_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(folder)
    ended = CliRunner().invoke(app, [command, "one", *(["--yes"] if command == "rm" else [])])
    assert ended.exit_code == 2
    assert "one: there is no run here; did you mean runs/one?" in ended.stderr.replace("\n", " ")
    ended = CliRunner().invoke(app, [command, "three", *(["--yes"] if command == "rm" else [])])
    assert "three: there is no run here; check the path (longwall runs lists runs)" in ended.stderr.replace("\n", " ")


def test_info_says_which_fact_is_an_estimate(folder: Path) -> None:
    ended = CliRunner().invoke(app, ["info", str(folder / "graph.txt")])
    facts = dict(line.split("  ", 1) for line in ended.stdout.splitlines())
    assert 0 <= float(facts["closed wedge fraction (estimate)"]) <= 1
    assert "closed_wedge_fraction" in json.loads(
        CliRunner().invoke(app, ["info", str(folder / "graph.txt"), "--json"]).stdout
    )


def test_runs_says_that_there_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(app, ["runs"])
    assert (ended.exit_code, ended.stderr) == (
        2,
        "error: runs: there is no such folder; give the folder of your runs\n",
    )
    (tmp_path / "runs").write_text("")
    assert "runs: this is a file; give the folder of your runs" in CliRunner().invoke(app, ["runs"]).stderr


def test_show_says_that_a_manifest_is_damaged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = folder / "runs" / "one"
    content = (run / "manifest.json").read_text()
    (run / "manifest.json").write_text("{}")
    ended = CliRunner().invoke(app, ["show", str(run)])
    (run / "manifest.json").write_text(content)
    assert ended.exit_code == 2
    assert "manifest.json is damaged, or not that of a run: restore it" in ended.stderr

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("longwall.pipeline.terminal.show.manifest_of", refuse)
    ended = CliRunner().invoke(app, ["show", str(run)])
    assert ended.exit_code == 2
    assert "the files of this run cannot be read (Permission denied); check their modes" in ended.stderr


def test_names_that_clash_are_refused_before_anything_runs(folder: Path) -> None:
    config = str(folder / "one.toml")
    ended = CliRunner().invoke(app, ["run", config, config, "--set", "run.name=new"])
    assert ended.exit_code == 2
    assert not (folder / "runs" / "new").exists()


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in harmless("\x1b[31mred")
    assert "\x1b" not in table_text(["name"], [["\x1b]0;title\x07"]])


def test_show_limits_rows(folder: Path) -> None:
    run = str(folder / "runs" / "one")
    ended = CliRunner().invoke(app, ["show", run, "--limit", "20000"])
    assert ended.exit_code == 2
    assert "add --csv to have all" in ended.stderr


def test_lists_are_json_in_csv(tmp_path: Path) -> None:
    (tmp_path / "graph.txt").write_text("a b\nb c\nc a\nc d\n")
    (tmp_path / "run.toml").write_text(
        f'[graph]\npath = "{tmp_path}/graph.txt"\n[workload]\nkind = "maximal-cliques"\noutput = "embeddings"\n'
        f'[run]\nname = "one"\ndirectory = "{tmp_path}/runs"\n'
    )
    assert CliRunner().invoke(app, ["run", str(tmp_path / "run.toml"), "-q"]).exit_code == 0
    run = str(tmp_path / "runs" / "one")
    text = CliRunner().invoke(app, ["show", run, "embeddings", "--csv"]).stdout
    table = pa.csv.read_csv(pa.BufferReader(text.encode()))
    cliques = {frozenset(json.loads(one)) for one in table["clique"].to_pylist()}
    assert cliques == {frozenset("abc"), frozenset("cd")}
    assert "['a', 'b', 'c']" in CliRunner().invoke(app, ["show", run, "embeddings"]).stdout


def test_labels_of_the_input_do_not_drive_the_terminal(tmp_path: Path) -> None:
    from longwall.pipeline.cli_output import _pattern_lines
    from longwall.pipeline.execution.environment import PatternCount

    (line,) = _pattern_lines([PatternCount("0-1", ("\x1b[31mred", "b"), 1)])
    assert "\x1b" not in line


@pytest.mark.slow
def test_doctor_says_what_works(tmp_path: Path) -> None:
    ended = CliRunner().invoke(app, ["doctor", "--json", "--disk", str(tmp_path)])
    assert ended.exit_code == 0
    facts = json.loads(ended.stdout)
    assert facts["CPU engine"].startswith("works")
    assert "CPU: yes" in facts["runs work on"]
    assert "GB/s" in facts["disk"]
    assert list(tmp_path.iterdir()) == []
    assert "runs work on" in CliRunner().invoke(app, ["doctor", "--disk", str(tmp_path / "none")]).stdout


@pytest.mark.slow
def test_doctor_knows_a_driver_that_cupy_is_missing_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from longwall.pipeline.terminal import doctor

    version = tmp_path / "version"
    version.write_text(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC 12\n"
    )
    monkeypatch.setattr(doctor, "_DRIVER", version)
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    facts = doctor.examine(tmp_path)
    assert facts["NVIDIA driver"] == "550.54.15"
    assert facts["GPU"] == "not looked for: CuPy is missing; to use a GPU, pip install 'longwall[cuda]'"
    assert facts["dask"].startswith("missing, needed for a cluster")
    assert facts["disk"].startswith(f"{tmp_path}: ")


def test_patterns_are_drawn() -> None:
    ended = CliRunner().invoke(app, ["patterns", "(a)-(b)-(c), (a)-(d)", "--draw"])
    assert ended.stdout.splitlines()[1:] == ["a", "b  o", "c  . o", "d  o . .", ""]
    assert CliRunner().invoke(app, ["patterns", "--draw"]).stdout.count("o") > 20
    assert CliRunner().invoke(app, ["patterns", "nothing"]).exit_code == 2
