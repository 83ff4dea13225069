"""Stores, runs and tables that released versions wrote are still readable, with the counts of then: docs/promise.md."""

from __future__ import annotations

import shutil
from pathlib import Path

import networkx as nx
import pyarrow.parquet as pq
import pytest
from make_golden import graphs
from typer.testing import CliRunner

import longwall
from longwall.pipeline.cli import app

GOLDEN = Path(__file__).parents[1] / "golden"
VERSIONS = sorted(path.name for path in GOLDEN.iterdir())


@pytest.fixture(params=VERSIONS)
def golden(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of a version, copied: a command may write beside them."""
    shutil.copytree(GOLDEN / request.param, tmp_path / "golden")
    monkeypatch.chdir(tmp_path / "golden")
    return tmp_path / "golden"


def test_there_are_files_of_the_first_version_with_the_promise() -> None:
    assert "0.2" in VERSIONS


def test_graph_stores(golden: Path) -> None:
    for name, now in graphs().items():
        then = longwall.open_graph(golden / f"{name}.zarr")
        assert (then.num_vertices, then.num_edges, then.content_hash) == (34, 78, now.content_hash)
        assert then.all_ids().to_pylist() == now.all_ids().to_pylist()
    named = longwall.open_graph(golden / "named.zarr")
    assert longwall.count(named, "(a:Officer)-[:near]-(b)-(c)-(a)") == 58
    assert longwall.triangles(named) == sum(nx.triangles(nx.karate_club_graph()).values()) // 3


def test_finished_runs(golden: Path) -> None:
    runs = golden / "finished"
    assert longwall.resume(runs / "diamonds").count == 151
    assert longwall.resume(runs / "diamonds").table("embeddings").num_rows == 151
    assert longwall.resume(runs / "maximal-cliques").count == sum(1 for _ in nx.find_cliques(nx.karate_club_graph()))
    frequent = longwall.resume(runs / "frequent").table("patterns")
    assert frequent.column_names == longwall.frequent(longwall.example("karate"), support=20, max_edges=2).column_names
    orbits = longwall.resume(runs / "orbits").table("vertices").to_pandas().set_index("vertex")
    assert dict(orbits["orbit_0"]) == {vertex + 1: degree for vertex, degree in nx.karate_club_graph().degree}


def test_commands_on_finished_runs(golden: Path) -> None:
    for words in (
        ["runs", "finished"],
        ["show", "finished/diamonds", "embeddings"],
        ["report", "finished/orbits"],
        ["report", "finished/diamonds", "finished/frequent", "--output", "both.html"],
        ["resume", "finished/frequent"],
        ["info", "named.zarr"],
    ):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, f"{words}\n{result.output}"
    assert "done" in CliRunner().invoke(app, ["runs", "finished"]).output
    assert (golden / "finished" / "orbits" / "report.html").is_file()


def test_tables_of_embeddings(golden: Path) -> None:
    pairs = pq.read_table(golden / "pairs.parquet")
    assert pairs.num_rows == 2 * 78
    assert {frozenset(pair) for pair in zip(*pairs.to_pydict().values(), strict=True)} == {
        frozenset((u + 1, v + 1)) for u, v in nx.karate_club_graph().edges
    }
