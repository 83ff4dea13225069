"""The configs that come with Longwall: listed, printed, written, and each of them a config."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from cases import each_case
from source_tree import ROOT
from typer.testing import CliRunner

from longwall.pipeline.cli import app
from longwall.pipeline.config import load_config
from longwall.pipeline.terminal.completion import shipped_configs

CONFIGS = {path.stem: path.read_text() for path in sorted((ROOT / "configs").glob("*.toml"))}


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["configs", *words])
    return done.exit_code, done.output


def test_all_are_listed_with_a_line_on_each() -> None:
    code, text = run()
    assert code == 0
    lines = [line.split("  ", 1) for line in text.splitlines()]
    assert [name.strip() for name, _ in lines] == list(CONFIGS)
    assert [line.strip() for _, line in lines] == [one.partition("\n")[0].lstrip("# ") for one in CONFIGS.values()]


@each_case("name", CONFIGS)
def test_each_is_printed_as_it_is(name: str) -> None:
    assert run(name) == (0, CONFIGS[name].rstrip("\n") + "\n")
    assert run(f"{name}.toml") == run(name)
    load_config(tomllib.loads(run(name)[1]))


def test_one_is_written_to_a_new_file_only(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    assert run("match", "--output", str(path)) == (0, "")
    assert path.read_text() == CONFIGS["match"]
    code, text = run("demo", "--output", str(path))
    assert code == 2
    assert "exists" in text
    assert path.read_text() == CONFIGS["match"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mach"], "there is no config 'mach'; did you mean \"match\"?"),
        (["--output", "x.toml"], "say which config to write"),
        (["demo", "--output", "none/x.toml"], "cannot be written"),
    ],
)
def test_mistakes_are_named(words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, text = run(*words)
    assert code == 2
    assert said in text
    assert not list(tmp_path.iterdir())


def test_shells_complete_them() -> None:
    assert shipped_configs("ma") == ["match", "maximal-cliques"]
