"""`resume` of a finished run returns its result, writes a missing report, and detects changed results."""

from __future__ import annotations

import json
from dataclasses import replace
from math import comb
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import longwall
from longwall.pipeline import run as run_module
from longwall.pipeline.cli import app
from longwall.pipeline.result import Result
from longwall.storage.errors import InputError, RunError

RMAT = {"generator": {"kind": "rmat", "scale": 6, "edge_factor": 4, "seed": 1}}


def start(folder: Path, graph: Any = RMAT, **keys: Any) -> Result:
    run = {"directory": folder, "name": "one"} | keys.pop("run", {})
    workload = {"kind": "triangles"} | keys
    return longwall.run({"graph": graph, "workload": workload, "engine": {"kind": "cpu"}, "run": run})


def same(one: Result, other: Result) -> bool:
    """Whether results are the same except for their times and the notes of the graph."""
    varying = {"seconds": 0.0, "total_seconds": None, "timings": {}, "notes": ()}
    return replace(one, **varying) == replace(other, **varying)


def test_a_run_that_was_killed_before_its_report_gets_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "publish_report", lambda *_, **__: None)
        result = start(tmp_path)
    folder = tmp_path / "one"
    (folder / "checkpoint" / "commits").mkdir(parents=True)  # as where it was killed before these were removed
    (folder / "checkpoint" / "commits" / "00000001.json").write_text("{}")
    (folder / "results.partial").mkdir(exist_ok=True)
    assert not (folder / "report.html").exists()
    resumed = CliRunner().invoke(app, ["resume", str(folder), "--json"])
    assert resumed.exit_code == 0, resumed.stderr
    assert json.loads(resumed.stdout)["count"] == result.count
    assert f"this run is finished, its results are in {folder}/results" in resumed.stderr
    assert f"its report was missing, and is {folder}/report.html now" in resumed.stderr
    assert f"{result.count:,}" in (folder / "report.html").read_text()
    assert {file.name for file in folder.iterdir()} == {
        *("config.toml", "manifest.json", "metrics.parquet", "report.html", "results"),
    }
    again = CliRunner().invoke(app, ["resume", str(folder)])
    assert (again.exit_code, "is finished" in again.stderr, "missing" in again.stderr) == (0, True, False)
    assert f"{result.count:,}" in again.stdout
    assert same(longwall.resume(folder), result)


def test_no_report_is_written_where_none_was_asked_for(tmp_path: Path) -> None:
    result = start(tmp_path, run={"report": False})
    assert same(longwall.resume(tmp_path / "one"), result)
    assert not (tmp_path / "one" / "report.html").exists()


def test_the_result_is_the_same_whatever_the_counts_are(tmp_path: Path) -> None:
    star = longwall.graph([(0, leaf) for leaf in range(1, 5001)])
    result = start(tmp_path, star, kind="match", pattern="star-6")
    assert result.count == comb(5000, 6) > 2**63
    assert same(longwall.resume(tmp_path / "one"), result)
    motifs = start(tmp_path, kind="motifs", k=4, run={"name": "motifs"})
    assert same(longwall.resume(tmp_path / "motifs"), motifs)


def test_results_that_are_gone_or_changed_are_found(tmp_path: Path) -> None:
    result = start(tmp_path, output="vertices")
    counts = tmp_path / "one" / "results" / "counts.parquet"
    content = counts.read_bytes()
    for damaged in (None, content[:-1], bytes([content[0] ^ 1, *content[1:]])):
        counts.unlink()
        if damaged is not None:
            counts.write_bytes(damaged)
        with pytest.raises(RunError, match=r"counts\.parquet: .* it is gone or changed"):
            longwall.resume(tmp_path / "one")
        counts.write_bytes(content)
    assert same(longwall.resume(tmp_path / "one"), result)
    (tmp_path / "one" / "results" / "vertices.parquet").unlink()
    assert CliRunner().invoke(app, ["resume", str(tmp_path / "one")]).exit_code == 1


def test_a_run_all_of_whose_results_are_gone_is_done_again(tmp_path: Path) -> None:
    result = start(tmp_path)
    (tmp_path / "one" / "results" / "counts.parquet").unlink()
    assert same(longwall.resume(tmp_path / "one"), result)
    assert (tmp_path / "one" / "results" / "counts.parquet").exists()


def test_a_manifest_that_lacks_something_is_refused(tmp_path: Path) -> None:
    start(tmp_path)
    path = tmp_path / "one" / "manifest.json"
    manifest = json.loads(path.read_text())
    for key in ("results", "timings", "finished", "engine"):
        path.write_text(json.dumps(manifest | {key: None}))
        with pytest.raises(InputError, match=r"manifest\.json is damaged"):
            longwall.resume(tmp_path / "one")
