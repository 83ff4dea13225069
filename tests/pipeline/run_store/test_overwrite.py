"""A run that replaces another one: the old or the new one is whole at any moment."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from run_configs import run_config, write_edges
from typer.testing import CliRunner

import longwall
from longwall.pipeline import run as run_module
from longwall.pipeline.cli import app
from longwall.pipeline.config import RunSpec
from longwall.pipeline.run_store import replacement, run_place
from longwall.pipeline.run_store.run_directory import RunDirectory
from longwall.pipeline.run_store.run_place import LocalPlace, ObjectPlace, place_at
from longwall.storage.errors import InputError, RunError


@pytest.fixture(params=["folder", "url"])
def config(tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Counts the triangles of a square with a diagonal: 2; there is a run of that name which says 0."""
    square = [(0, 1), (1, 2), (2, 3), (3, 0)]
    directory = f"file://{tmp_path}/runs" if request.param == "url" else str(tmp_path / "runs")
    if request.param == "url":
        pytest.importorskip("fsspec")
    run = {"directory": directory, "name": "one"}
    found = run_config(
        tmp_path,
        write_edges(tmp_path, square),
        {"kind": "triangles"},
        engine={"threads": 1},
        run=run | {"report": True},
    )
    assert longwall.run(found).count == 0
    write_edges(tmp_path, [*square, (0, 2)])
    found["run"]["overwrite"] = True
    return found


def answer(folder: Path) -> int:
    """Return the answer of the run in a folder, which is whole."""
    import pyarrow.parquet as pq

    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["status"] == "done"
    found: int = pq.read_table(folder / "results" / "counts.parquet")["count"][0].as_py()
    return found


def names(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "runs").iterdir() if any(path.iterdir())}


def where(config: dict[str, Any], name: str = "one") -> str:
    return f"{config['run']['directory']}/{name}"


def test_a_run_replaces_another_one(config: dict[str, Any], tmp_path: Path) -> None:
    result = longwall.run(config)
    assert (str(result.path), result.count) == (where(config), 2)
    assert result.table("counts").num_rows == 1
    assert names(tmp_path) == {"one"}
    assert answer(tmp_path / "runs" / "one") == 2
    shutil.rmtree(tmp_path / "runs" / "one")
    assert longwall.run(config).count == 2  # there need not be one


def test_a_run_that_fails_leaves_the_old_one(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "read_graph", fail)
        with pytest.raises(RunError, match=r"longwall resume \S+/runs/one\+new$"):
            longwall.run(config)
    assert answer(tmp_path / "runs" / "one") == 0
    assert names(tmp_path) == {"one", "one+new"}
    new = tmp_path / "runs" / "one+new"
    listed = CliRunner().invoke(app, ["runs", str(tmp_path / "runs")]).stdout
    assert (
        listed.splitlines()[-1] == f"one+new is to replace one and is not done: longwall resume {new} goes on with it"
    )
    lines = CliRunner().invoke(app, ["runs", str(tmp_path / "runs"), "--json"]).stdout.splitlines()
    found = list(map(json.loads, lines))
    assert {one["name"]: one.get("replaces") for one in found} == {"one": None, "one+new": "one"}
    ended = CliRunner().invoke(app, ["resume", where(config)])
    assert f"not done: longwall resume {where(config, 'one+new')} goes on with that one" in ended.stderr
    assert ended.stdout.startswith("count    0\n"), "the old run is whole"
    result = longwall.resume(where(config, "one+new"))
    assert (str(result.path), result.count) == (where(config), 2)
    assert names(tmp_path) == {"one"}
    assert answer(tmp_path / "runs" / "one") == 2


def test_the_name_of_a_run_finds_its_replacement_if_the_old_run_is_gone(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "read_graph", fail)
        with pytest.raises(RunError):
            longwall.run(config)
    shutil.rmtree(tmp_path / "runs" / "one")
    assert longwall.resume(where(config)).count == 2
    assert names(tmp_path) == {"one"}


@pytest.mark.quick_cases(1)
def test_a_new_attempt_replaces_one_that_failed(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "read_graph", fail)
        for _ in range(2):
            with pytest.raises(RunError):
                longwall.run(config)
    assert longwall.run(config).count == 2
    assert names(tmp_path) == {"one"}


def test_bad_input_leaves_the_old_run(config: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "graph.txt").write_text("0 1\none two\n")
    with pytest.raises(InputError, match="line 2"):
        longwall.run(config)
    assert names(tmp_path) == {"one"}
    assert answer(tmp_path / "runs" / "one") == 0


def test_an_abandoned_run_is_replaced(config: dict[str, Any], tmp_path: Path) -> None:
    facts = tmp_path / "runs" / "one" / "manifest.json"
    facts.write_text(json.dumps(json.loads(facts.read_text()) | {"status": "failed"}))
    assert longwall.run(config).count == 2
    assert answer(tmp_path / "runs" / "one") == 2


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("moment", ["before", "while the old run is removed", "between", "after"])
def test_an_exchange_that_was_interrupted_is_completed(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The next command that uses the name completes it; until then the new run is whole where it was made."""

    class Killed(BaseException):
        pass

    def kill(*arguments: Any) -> None:
        raise Killed

    runs = tmp_path / "runs"
    sync = run_place.sync_folder

    def kill_after_move(path: Path) -> None:
        sync(path)
        if path == runs and not (runs / "one+new").exists() and answer(runs / "one") == 2:
            kill()

    kind = ObjectPlace if str(config["run"]["directory"]).startswith("file:") else LocalPlace
    remove = kind.remove

    def kill_half_way(self: Any) -> None:
        self.store.delete(["manifest.json"])
        kill()

    def kill_after_copy(self: Any) -> None:
        if self.name.endswith("+new"):
            kill()
        remove(self)

    with monkeypatch.context() as patch:
        if moment == "before":
            patch.setattr(replacement, "_exchange", kill)
        elif moment == "while the old run is removed":
            patch.setattr(kind, "remove", kill_half_way)
        elif moment == "between":
            patch.setattr(kind, "move_to", kill)
        elif kind is LocalPlace:
            patch.setattr(run_place, "sync_folder", kill_after_move)
        else:
            patch.setattr(kind, "remove", kill_after_copy)
        with pytest.raises(Killed):
            longwall.run(config)
    whole = [path for path in runs.iterdir() if (path / "manifest.json").is_file()]
    assert 2 in [answer(path) for path in whole]
    assert longwall.resume(where(config, "one" if moment == "after" else "one+new")).count == 2
    config["run"] = {"directory": config["run"]["directory"], "name": "one"}
    with pytest.raises(InputError, match="exists already"):
        longwall.run(config)
    assert names(tmp_path) == {"one"}
    assert answer(runs / "one") == 2


def test_only_a_run_is_replaced(config: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "runs" / "one" / "thesis.txt").write_text("precious")
    with pytest.raises(InputError, match=r"thesis\.txt: no run writes this, and the folder is to be replaced: move it"):
        longwall.run(config)
    assert answer(tmp_path / "runs" / "one") == 0
    assert names(tmp_path) == {"one"}


def test_a_folder_without_a_manifest_is_not_replaced(config: dict[str, Any], tmp_path: Path) -> None:
    project = tmp_path / "runs" / "one"
    (project / "manifest.json").unlink()
    (project / "config.toml").write_text("precious = 1")
    there = sorted(project.rglob("*"))
    with pytest.raises(InputError, match=r"one: this folder is to be replaced, but holds no manifest\.json of a run"):
        longwall.run(config)
    assert sorted(project.rglob("*")) == there
    assert (project / "config.toml").read_text() == "precious = 1"
    config["run"]["overwrite"] = False
    with pytest.raises(InputError, match=r"one exists already: it is not the folder of a run; choose another name"):
        longwall.run(config)


@pytest.mark.parametrize("name", ["checkpoint", "results.partial", "checkpoint\n"])
def test_a_file_in_the_place_of_a_folder_is_not_of_a_run(config: dict[str, Any], tmp_path: Path, name: str) -> None:
    stray = tmp_path / "runs" / "one" / name
    stray.write_text("precious")
    with pytest.raises(InputError, match=rf"{name}: no run writes this"):
        longwall.run(config)
    stray.unlink()
    assert longwall.run(config).count == 2
    assert names(tmp_path) == {"one"}


def test_a_run_that_was_killed_as_it_began_is_replaced(config: dict[str, Any], tmp_path: Path) -> None:
    begun = tmp_path / "runs" / "one+new"
    begun.mkdir()
    (begun / "config.toml").write_text("")
    assert longwall.run(config).count == 2
    assert names(tmp_path) == {"one"}


@pytest.mark.parametrize("overwrite", [True, False])
def test_no_pipe_beside_a_run_is_waited_for(config: dict[str, Any], tmp_path: Path, *, overwrite: bool) -> None:
    if str(config["run"]["directory"]).startswith("file:"):
        pytest.skip("object stores have no pipes")
    (tmp_path / "runs" / "one+new").mkdir()
    os.mkfifo(tmp_path / "runs" / "one+new" / "manifest.json")
    config["run"]["overwrite"] = overwrite
    message = r"manifest\.json: this is a link, a pipe or a device" if overwrite else "exists"
    with pytest.raises(InputError, match=message):
        longwall.run(config)
    assert longwall.resume(where(config)).count == 0


def test_no_link_is_replaced(config: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "runs" / "one").rename(tmp_path / "elsewhere")
    (tmp_path / "runs" / "one").symlink_to(tmp_path / "elsewhere")
    if str(config["run"]["directory"]).startswith("file:"):
        return  # the folder itself may be a link there: files in it are replaced, and the link stays
    with pytest.raises(InputError, match="this is not the folder of a run"):
        longwall.run(config)
    assert answer(tmp_path / "elsewhere") == 0


def test_a_run_that_a_process_is_busy_with_is_refused(config: dict[str, Any], tmp_path: Path) -> None:
    run = tmp_path / "runs" / "one"
    if str(config["run"]["directory"]).startswith("file:"):
        facts = json.loads((run / "manifest.json").read_text())
        (run / "manifest.json").write_text(json.dumps(facts | {"status": "running"}))
        with pytest.raises(InputError, match=r"another process is busy with this run.*resume it, or remove"):
            longwall.run(config)
        return
    held = place_at(run)
    held.hold()
    try:
        with pytest.raises(InputError, match="another process is busy with this run"):
            longwall.run(config)
        with pytest.raises(
            InputError, match=r"busy with this run; .*, or choose another name: .*run\.name=one-2"
        ) as said:
            longwall.run(config, overrides=["run.overwrite=false"])
        assert "resume" not in str(said.value)
    finally:
        held.close()
    assert longwall.run(config).count == 2


def test_an_old_run_is_not_resumed_while_it_is_replaced(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if str(config["run"]["directory"]).startswith("file:"):
        return  # there are no locks
    read = run_module.read_graph

    def reading(*arguments: Any) -> Any:
        for name in ("one", "one+new"):
            with pytest.raises(InputError, match="another process is busy with this run"):
                longwall.resume(where(config, name))
        with pytest.raises(InputError, match="another process is busy with this run"):
            longwall.run(config)
        return read(*arguments)

    monkeypatch.setattr(run_module, "read_graph", reading)
    assert longwall.run(config).count == 2


def test_python_takes_a_fresh_name_where_none_is_given(config: dict[str, Any], tmp_path: Path) -> None:
    config["run"] = {"directory": config["run"]["directory"]}
    paths = [str(longwall.run(config).path).rpartition("/")[2] for _ in range(3)]
    assert paths == ["triangles", "triangles-2", "triangles-3"]
    with pytest.raises(InputError, match=r"exists already.*replace it \(--overwrite.*run\.name=triangles-4"):
        longwall.run(config, overrides=["run.name=triangles"])
    config["run"]["overwrite"] = True
    assert str(longwall.run(config).path).endswith("/triangles")
    assert names(tmp_path) == {"one", *paths}


def test_the_command_line_refuses_or_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("graph.txt").write_text("0 1\n1 2\n0 2\n")
    Path("mine.toml").write_text('[graph]\npath = "graph.txt"\n[workload]\nkind = "triangles"\n')
    codes = [
        CliRunner().invoke(app, ["run", "mine.toml", "--quiet", *more]).exit_code for more in ((), (), ("--overwrite",))
    ]
    assert codes == [0, 2, 0]
    assert {path.name for path in Path("runs").iterdir()} == {"mine"}


@pytest.mark.parametrize("what", ["to_toml", "_begin", "History"])
def test_an_interrupt_at_the_beginning_keeps_no_lock(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    def stop(*arguments: Any, **named: Any) -> Any:
        if what == "_begin":
            begin(*arguments, **named)
        calls.append(what)
        if len(calls) == (2 if what == "to_toml" else 1):  # the first one comes before the run has a place
            raise KeyboardInterrupt
        return to_toml(*arguments)

    calls: list[str] = []
    begin, to_toml = RunDirectory._begin, RunSpec.to_toml
    owner = {"to_toml": RunSpec, "_begin": RunDirectory, "History": run_module}[what]
    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(owner, what, stop)
        longwall.run(config)
    assert calls
    if isinstance(place_at(where(config)), LocalPlace):  # at a URL there is no lock: the new run is said to go on
        assert longwall.run(config).count == 2
