"""A run records the seconds of each attempt, says how far it got, and lists both."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import longwall
from longwall.pipeline.cli import app

CONFIG: dict[str, Any] = {
    "graph": {"generator": {"kind": "rmat", "scale": 8, "edge_factor": 8, "seed": 1}},
    "workload": {"kind": "match", "pattern": "diamond", "output": "embeddings"},
    "scheduler": {"order": "levels"},
    "engine": {"kind": "cpu", "threads": 1},
    "memory": {"disk": "32KiB"},
    "run": {"name": "diamonds"},
}
DIAMONDS = 82_944


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that failed for want of disk, after some commits."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(longwall.RunError):
        longwall.run(CONFIG)
    return tmp_path / "runs/diamonds"


def manifest_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "manifest.json").read_text())
    return found


def between(first: str, last: str) -> float:
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def listed(folder: Path) -> dict[str, Any]:
    (line,) = CliRunner().invoke(app, ["runs", str(folder), "--json"]).stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_the_seconds_of_all_attempts_are_recorded_and_shown(run: Path) -> None:
    first = manifest_of(run)
    assert first["attempt_seconds"] == [pytest.approx(between(first["started"], first["finished"]))]
    ended = CliRunner().invoke(app, ["resume", str(run), "--set", "memory.disk=1GiB", "--json"])
    found, last = json.loads(ended.stdout.splitlines()[-1]), manifest_of(run)
    assert found["count"] == DIAMONDS
    attempts = [*first["attempt_seconds"], pytest.approx(between(last["resumed"][0], last["finished"]))]
    assert last["attempt_seconds"] == attempts
    total = sum(last["attempt_seconds"])
    assert found["total_seconds"] == pytest.approx(total)
    assert f"; {total:.2f} in all attempts" in ended.stderr
    assert longwall.resume(run).total_seconds == pytest.approx(total)
    assert listed(run.parent)["total_seconds"] == pytest.approx(total)
    assert "time of 2 attempts" in (run / "report.html").read_text()


def test_a_killed_attempt_counts_until_its_last_commit(run: Path) -> None:
    manifest = manifest_of(run)
    commits = sorted((run / "checkpoint/commits").glob("0*.json"))
    last = json.loads(commits[-1].read_text())["time"]
    for key in ("finished", "attempt_seconds", "reason"):
        del manifest[key]
    (run / "manifest.json").write_text(json.dumps(manifest | {"status": "running"}))
    assert listed(run.parent)["status"] == "killed"
    assert "total_seconds" not in listed(run.parent)
    assert longwall.resume(run, overrides=["memory.disk=1GiB"]).count == DIAMONDS
    killed, _ = manifest_of(run)["attempt_seconds"]
    assert killed == pytest.approx(between(manifest["started"], last))


def test_a_run_of_one_attempt_says_nothing_of_attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = longwall.run(CONFIG | {"memory": {"disk": "1GiB"}})
    assert result.total_seconds is None
    assert "total_seconds" not in result.to_json()
    assert "attempts" not in (tmp_path / "runs/diamonds/report.html").read_text()
    assert listed(tmp_path / "runs")["total_seconds"] == pytest.approx(result.seconds, abs=1)


def test_runs_are_listed_with_path_bytes_versions_and_times(run: Path) -> None:
    longwall.resume(run, overrides=["memory.disk=1GiB"])
    found, manifest = listed(run.parent), manifest_of(run)
    assert found["path"] == str(run)
    assert found["bytes"] == bytes_in(run)
    assert found["versions"] == manifest["versions"]
    assert found["versions"]["longwall"]
    assert [found[key] for key in ("started", "finished", "resumed")] == [
        manifest[key] for key in ("started", "finished", "resumed")
    ]


def test_the_report_of_a_run_that_ended_early_says_how_far_it_got(run: Path) -> None:
    (commit,) = (run / "checkpoint/commits").iterdir()
    (entry,) = json.loads(commit.read_text())["commits"]
    assert sum(last - first for first, last in entry["ranges"]) == entry["total"], "the first of two levels is finished"
    assert "It got as far as: 1 phase finished." in (run / "report.html").read_text()
    longwall.resume(run, overrides=["memory.disk=1GiB"])
    assert "It got" not in (run / "report.html").read_text()


def test_a_run_without_commits_says_that_nothing_is_kept(run: Path) -> None:
    for path in (run / "checkpoint/commits").iterdir():
        path.unlink()
    assert CliRunner().invoke(app, ["report", str(run)]).exit_code == 0
    assert "No part of its work was finished, so it begins anew." in (run / "report.html").read_text()


def test_resume_of_a_finished_run_says_so_and_exits_0(run: Path) -> None:
    longwall.resume(run, overrides=["memory.disk=1GiB"])
    ended = CliRunner().invoke(app, ["resume", str(run)])
    assert ended.exit_code == 0
    assert f"this run is finished, its results are in {run}/results" in ended.stderr
    assert "count    82,944" in ended.stdout
