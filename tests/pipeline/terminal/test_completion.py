"""What shells complete words with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from longwall.pipeline.terminal import completion


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    for name in ("a.toml", "configs/b.toml", "configs/notes.txt", ".hidden.toml"):
        (tmp_path / name).write_text("")
    for name, status in (("one", "done"), ("two", "failed")):
        (tmp_path / "runs" / name).mkdir(parents=True)
        manifest = {"status": status, "results": {"counts.parquet": 1, "embeddings-000.parquet": 1}}
        (tmp_path / "runs" / name / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "runs" / "none").mkdir()


def test_paths_are_configs_and_runs() -> None:
    assert completion.config_files("") == ["a.toml", "configs/b.toml"]
    assert completion.config_files("configs/") == ["configs/b.toml"]
    assert completion.config_files("x") == completion.config_files("no/such/") == []
    assert completion.run_folders("r") == ["runs/one", "runs/two"]
    assert completion.run_folders(f"{Path.cwd()}/runs/o") == [f"{Path.cwd()}/runs/one"]
    assert completion.unfinished_runs("") == ["runs/two"]


def test_settings_complete_keys_and_values() -> None:
    assert completion.settings("engine.ki") == ["engine.kind="]
    assert completion.settings("engine.kind=c") == ["engine.kind=cpu", "engine.kind=cuda"]
    assert "workload.kind=maximal-cliques" in completion.settings("workload.kind=m")
    assert completion.settings("workload.pattern=ho") == ["workload.pattern=house", "workload.pattern=house-x"]
    assert completion.settings("workload.mis") == ["workload.missing="]
    assert completion.settings("run.report=") == ["run.report=true", "run.report=false"]
    assert completion.settings("nothing.here=") == []


def test_names_of_patterns() -> None:
    assert completion.pattern_names("bow") == ["bowtie"]
    assert "clique-5" in completion.pattern_names("clique-")


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("longwall show runs/one c", ["counts"]),
        ("longwall resume ", ["runs/two"]),
        ("longwall --log-level w", ["warning"]),
        ("longwall run a.toml --set engine.kind=b", ["engine.kind=both"]),
    ],
)
def test_a_shell_is_answered_without_numpy(line: str, offered: list[str]) -> None:
    code = (
        "import sys\nfrom longwall.pipeline.cli import app\n"
        "try: app(prog_name='longwall')\nexcept SystemExit: pass\n"
        "print(sorted({'numpy', 'pyarrow', 'numba', 'networkx'} & set(sys.modules)), file=sys.stderr)"
    )
    variables = {"_LONGWALL_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": line}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | variables, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr.splitlines()[-1] == "[]"
    for word in offered:
        assert word in done.stdout
