"""``longwall report``: what it writes, where, and what it refuses."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from cases import each_case
from pages import check_page
from typer.testing import CliRunner

import longwall
from longwall.pipeline.cli import app


def call(*words: object) -> Any:
    return CliRunner().invoke(app, ["report", *map(str, words)])


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of two runs, beside the working folder."""
    (tmp_path / "graph.txt").write_text("1 2\n2 3\n3 1\n3 4\n")
    for k in (3, 4):
        longwall.run(
            {
                "graph": {"path": tmp_path / "graph.txt"},
                "workload": {"kind": "cliques", "k": k},
                "engine": {"kind": "cpu"},
                "run": {"directory": tmp_path / "runs", "name": f"cliques-{k}"},
            }
        )
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "runs"


def test_the_report_is_made_anew(runs: Path) -> None:
    page = runs / "cliques-3" / "report.html"
    before = page.read_text()
    page.write_text("old")
    done = call(runs / "cliques-3")
    assert (done.exit_code, done.stdout.strip()) == (0, str(page))
    assert page.read_text() == before
    assert list(Path().iterdir()) == []


def test_it_may_be_written_elsewhere(runs: Path) -> None:
    assert call(runs / "cliques-3", "--output", "mine.html").exit_code == 0
    assert call(runs / "cliques-4", "--output", "mine.html").exit_code == 0, "a report may be replaced"
    assert "cliques-4" in check_page(Path("mine.html").read_text()).text()


def test_two_runs_are_compared(runs: Path) -> None:
    done = call(runs / "cliques-3", f"file://{runs}/cliques-4")
    assert (done.exit_code, done.stdout.strip()) == (0, "comparison.html")
    text = check_page(Path("comparison.html").read_text()).text()
    assert "workload.k 3 4" in text
    assert call(runs / "cliques-3", runs / "cliques-4").exit_code == 0, "a comparison may be replaced"


def test_other_files_are_not_replaced(runs: Path) -> None:
    Path("comparison.html").write_text("my own")
    done = call(runs / "cliques-3", runs / "cliques-4")
    assert done.exit_code == 2
    assert "is no report of Longwall: remove it" in done.stderr
    assert Path("comparison.html").read_text() == "my own"
    Path("folder").mkdir()
    assert call(runs / "cliques-3", "--output", "folder").exit_code == 2
    assert call(runs / "cliques-3", "--output", "nowhere/x.html").exit_code == 2


@each_case(
    ("content", "message"),
    [
        (None, "there is no run here"),
        (b"", "manifest.json is damaged, or not that of a run: restore it"),
        (b"{", "manifest.json is damaged, or not that of a run: restore it"),
        (b"[]", "manifest.json is damaged, or not that of a run: restore it"),
        (b"\xff", "manifest.json is damaged, or not that of a run: restore it"),
        (b'{"status": "done", "config_sha256": "", "memory": 3}', "manifest.json or history.json is damaged"),
        (b'{"status": "done", "config_sha256": "", "results": {"a": []}}', "manifest.json or history.json is damaged"),
    ],
)
@each_case("output", [(), ("--output", "mine.html")])
def test_a_damaged_manifest(runs: Path, content: bytes | None, message: str, output: tuple[str, ...]) -> None:
    manifest = runs / "cliques-3" / "manifest.json"
    manifest.unlink(missing_ok=True)
    if content is not None:
        manifest.write_bytes(content)
    done = call(runs / "cliques-3", *output)
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not Path("mine.html").exists()


@each_case("content", [b"", b"{", b"[1]", b"\xff", b'"x"'])
@each_case("name", ["history.json", "metrics.parquet", "results/counts.parquet", "config.toml"])
def test_other_files_may_be_damaged(runs: Path, tmp_path: Path, name: str, content: bytes) -> None:
    run = shutil.copytree(runs / "cliques-3", tmp_path / "cliques-3")
    (run / name).write_bytes(content)
    done = call(run)
    assert done.exit_code == 0, done.stderr
    check_page((run / "report.html").read_text())


@pytest.mark.parametrize("words", [("nowhere",), ("nowhere", "nowhere"), ("nowhere", "--output", "x.html")])
def test_there_is_no_such_run(runs: Path, words: tuple[str, ...]) -> None:
    done = call(*words)
    assert done.exit_code == 2
    assert "there is no run here" in done.stderr
    assert list(Path().iterdir()) == []


def test_a_run_that_another_process_has(runs: Path) -> None:
    lock = os.open(runs / "cliques-3", os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        done = call(runs / "cliques-3")
        assert done.exit_code == 2
        assert "another process is busy" in done.stderr
        assert call(runs / "cliques-3", "--output", "x.html").exit_code == 0
    finally:
        os.close(lock)


def test_a_link_in_the_place_of_the_report_is_not_followed(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    page = runs / "cliques-3" / "report.html"
    page.unlink()
    page.symlink_to(tmp_path / "precious")
    assert call(runs / "cliques-3").exit_code == 2
    assert (tmp_path / "precious").read_text() == "precious"
