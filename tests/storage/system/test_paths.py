"""Paths that users give: home folders, names that libraries take for something else, and what no path can be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from cases import each_case
from run_configs import run_config
from typer.testing import CliRunner

import longwall
from longwall.pipeline.cli import app
from longwall.storage.errors import InputError
from longwall.storage.system.paths import path_exists, user_path

EDGES = "0 1\n1 2\n2 0\n"
LONG = "x/" * 2500 + "x"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with a graph, beside the folder that is worked in."""
    (tmp_path / "home").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"))  # of kernels
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")
    for folder in ("home", "here"):
        (tmp_path / folder / "graph.txt").write_text(EDGES)
    return tmp_path / "home"


def config(graph: str = "graph.txt", output: str = "embeddings", **run: Any) -> dict[str, Any]:
    workload = {"kind": "triangles", "output": output}
    return run_config(None, {"path": graph}, workload, engine={"threads": 1}, run={"name": "one"} | run)


def test_home_folders_are_expanded_once(home: Path) -> None:
    assert user_path("~/x") == home / "x"
    assert user_path(Path("~")) == home
    assert user_path("./~/x") == Path.cwd() / "~" / "x"  # a folder of that name
    assert user_path(user_path("./~/x")) == Path.cwd() / "~" / "x"
    assert user_path("a/~b") == Path("a/~b")
    with pytest.raises(InputError, match=r"there is no such home folder; write \./~"):
        user_path("~no-user-of-this-name/x")


@pytest.mark.parametrize("output", ["embeddings", "vertices", "count"])
@pytest.mark.parametrize("directory", ["~/runs", "./~", "a:b", "a:b/~", "c::d", "runs"])
def test_a_run_goes_where_it_is_sent(home: Path, output: str, directory: str) -> None:
    """`a:b` is taken for a URL by some libraries, and `~` is expanded by others, once more."""
    result = longwall.run(config("~/graph.txt", output, directory=directory))
    expected = (home if directory == "~/runs" else Path.cwd()) / directory.removeprefix("~/").removeprefix("./") / "one"
    assert result.path == expected
    assert Path(result.path).is_absolute()
    assert result.to_json()["run"] == str(expected)
    assert result.table("counts").num_rows == 1
    assert (expected / "metrics.parquet").is_file()
    assert {path.name for path in home.iterdir()} <= {"graph.txt", "runs"}


def test_other_paths_may_have_such_names(home: Path) -> None:
    Path("a:b").mkdir()
    store = CliRunner().invoke(app, ["ingest", "~/graph.txt", "a:b/x.zarr", "--spill", "~/spill", "--quiet"])
    assert store.exit_code == 0, store.stderr
    spill = {"memory": {"spill": "~/spill"}}
    assert longwall.run(config("a:b/x.zarr", directory="~/runs") | spill).count == 1
    assert longwall.open_graph("~/graph.txt").num_edges == 3
    resumed = CliRunner().invoke(app, ["resume", "~/runs/one"])
    assert "this run is finished" in resumed.stderr


def test_a_run_does_not_depend_on_the_working_folder(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from longwall.pipeline import run as run_module

    read = run_module.read_graph

    def moving(*arguments: Any) -> Any:
        found = read(*arguments)
        monkeypatch.chdir(tmp_path)
        return found

    monkeypatch.setattr(run_module, "read_graph", moving)
    result = longwall.run(config(directory="runs"))
    assert result.path == tmp_path / "here" / "runs" / "one"
    assert result.table().num_rows == 1


BAD = {"a NUL": ("a\0b", "NUL"), "too long": (LONG, "too long"), "a long name": ("x" * 5000, "too long")}
BAD["not UTF-8"] = (os.fsdecode(b"a\xff"), "not UTF-8")


@each_case("bad", BAD)
@each_case("key", ["graph.path", "graph.labels", "memory.spill", "run.directory", "run.name", "workload.pattern"])
def test_what_no_path_can_be_is_refused_in_a_config(home: Path, key: str, bad: str) -> None:
    text, said = BAD[bad]
    found = config()
    section, _, name = key.partition(".")
    found.setdefault(section, {})[name] = f"{text}.graph" if key == "workload.pattern" else text
    if key == "workload.pattern":
        found["workload"] |= {"kind": "match"}
    if key == "run.name":
        said = r"cannot name a folder|too long to name a folder|NUL|is not UTF-8"
    with pytest.raises(InputError, match=rf"({key}: .*({said}))|udcff. in it, which is not UTF-8") as caught:
        longwall.run(found)
    assert len(str(caught.value)) < 300
    assert {path.name for path in Path.cwd().iterdir()} == {"graph.txt"}


@each_case("bad", BAD)
@each_case(
    "words",
    [
        ("run", "{}"),
        ("explain", "{}"),
        ("resume", "{}"),
        ("info", "{}"),
        ("ingest", "{}", "x.zarr"),
        ("ingest", "graph.txt", "{}"),
        ("ingest", "graph.txt", "x.zarr", "--spill", "{}"),
        ("ingest", "graph.txt", "x.zarr", "--labels", "{}"),
        ("generate", "erdos-renyi", "{}", "--vertices", "9", "--edges", "9"),
    ],
)
def test_what_no_path_can_be_is_refused_on_the_command_line(home: Path, words: tuple[str, ...], bad: str) -> None:
    text, said = BAD[bad]
    done = CliRunner().invoke(app, [word.replace("{}", text) for word in words])
    assert done.exit_code == 2, done.exception
    assert said in done.stderr or "null byte" in done.stderr  # which the parser of the command line says itself
    assert len(done.stderr) < 500
    assert {path.name for path in Path.cwd().iterdir()} == {"graph.txt"}


def test_whether_something_exists_is_asked_of_any_text(home: Path) -> None:
    assert path_exists("graph.txt")
    assert not any(path_exists(text) for text, _ in BAD.values())


def test_a_run_in_memory_is_refused(home: Path) -> None:
    pytest.importorskip("fsspec")
    for url in ("memory://runs", "simplecache::memory://runs"):
        with pytest.raises(InputError, match=r"is gone when this process ends: choose another run\.directory"):
            longwall.run(config(directory=url))
    with pytest.raises(InputError, match="is gone when this process ends"):
        longwall.resume("memory://runs/one")
