"""With ``--json`` a failure is one JSON object on the last line of standard output, beside the message for people."""

import json
from pathlib import Path
from typing import Any

import pytest
from cases import each_case
from typer.testing import CliRunner

from longwall.pipeline import run as run_module
from longwall.pipeline.cli import app


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config, in the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graph.txt").write_text("1 2\n2 3\n3 1\n3 4\n")
    path = tmp_path / "mine.toml"
    path.write_text('[graph]\npath = "graph.txt"\n[workload]\nkind = "triangles"\n[engine]\nkind = "cpu"\n')
    return path


def failure(*words: str) -> tuple[int, dict[str, Any], str]:
    """Return the exit code, the error of the last line, and what people read."""
    ended = CliRunner().invoke(app, [*words, "--json"])
    found = json.loads(ended.stdout.splitlines()[-1])
    assert list(found) == ["error"]
    assert found["error"]["exit_code"] == ended.exit_code
    return ended.exit_code, found["error"], ended.stderr


@each_case(
    ("words", "said"),
    [
        (["run", "missing.toml"], "missing.toml"),
        (["resume", "runs/none"], "there is no run"),
        (["info", "none.zarr"], "none.zarr"),
        (["runs", "none"], "there is no such folder"),
        (["run", "mine.toml", "--jsn"], "No such option"),
        (["resume"], "Missing argument"),
    ],
)
def test_bad_input_is_an_error_of_its_type(words: list[str], said: str) -> None:
    code, error, people = failure(*words)
    assert code == 2
    assert error["type"] == "InputError"
    assert said in error["message"]
    assert said in people
    assert not {"key", "keys"} & error.keys()


@each_case("key", ["workload.kind", "workload.patern", "engine.threads"])
def test_the_key_that_is_wrong_is_named(key: str) -> None:
    code, error, _ = failure("run", "mine.toml", "--set", f"{key}=[]")
    assert (code, error["key"], error["keys"]) == (2, key, [key])
    assert key in error["message"]


def test_all_keys_that_are_wrong_are_named() -> None:
    wrong = {"graph.foo": "1", "workload.k": "3", "memory.host": "x", "engine.threads": "-1"}
    settings = [word for key, value in wrong.items() for word in ("--set", f"{key}={value}")]
    code, error, _ = failure("run", "mine.toml", *settings)
    assert (code, sorted(error["keys"])) == (2, sorted(wrong))
    assert error["key"] == error["keys"][0]


def test_a_run_that_fails_names_the_run_to_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(run_module, "read_graph", fail)
    code, error, people = failure("run", "mine.toml", "-q")
    assert (code, error["type"], error["run"]) == (1, "RunError", str(Path("runs/mine").absolute()))
    assert people == f"error: {error['message']}\n"


def test_an_interrupt_names_the_run_to_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "read_graph", interrupt)
    code, error, _ = failure("run", "mine.toml")
    assert (code, error["type"], error["run"]) == (130, "KeyboardInterrupt", str(Path("runs/mine").absolute()))
    assert error["message"].startswith("interrupted: the finished part is kept")


def test_each_of_several_configs_has_a_line() -> None:
    ended = CliRunner().invoke(app, ["run", "missing.toml", "mine.toml", "-q", "--json"])
    first, second = map(json.loads, ended.stdout.splitlines())
    assert ended.exit_code == first["error"]["exit_code"] == 2
    assert second["count"] == 1


def test_a_failure_of_one_of_several_configs_names_the_config(config: Path) -> None:
    """The message may speak of the graph's file alone."""
    (config.parent / "gone.toml").write_text(config.read_text().replace("graph.txt", "gone.csv"))
    ended = CliRunner().invoke(app, ["run", "gone.toml", "mine.toml", "-q", "--json"])
    error = json.loads(ended.stdout.splitlines()[0])["error"]
    assert "gone.toml" not in error["message"]
    assert error["config"] == "gone.toml"
    assert "config" not in failure("resume", "runs/none")[1]


def test_without_json_standard_output_stays_empty() -> None:
    ended = CliRunner().invoke(app, ["run", "missing.toml"])
    assert (ended.exit_code, ended.stdout) == (2, "")
