"""``export.sort``: the same rows in order, whatever the budgets, and whenever the run is interrupted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import each_case
from run_configs import run_config, write_edges
from typer.testing import CliRunner

import longwall
from longwall.pipeline.cli import app
from longwall.pipeline.run_store.commit_log import PhaseRecord
from longwall.storage.observer import NullObserver
from longwall.storage.tables import row_sorter

EDGES = sorted(nx.gnm_random_graph(60, 500, seed=3).edges)
NAMES = {vertex: f"{'é' if vertex % 3 else 'z'}{vertex}" for vertex in range(60)}
DIAMOND = {"kind": "match", "pattern": "diamond", "output": "embeddings"}


def config(folder: Path, workload: dict[str, Any] = DIAMOND, *, names: bool = False, **sections: Any) -> dict[str, Any]:
    edges = [(NAMES[u], NAMES[v]) for u, v in EDGES] if names else EDGES
    return run_config(folder, write_edges(folder, edges), workload, **sections)


def rows_of(run: Path | str) -> list[tuple[Any, ...]]:
    """Return the rows of the embeddings, in the order of the files and of the rows in them."""
    files = sorted(Path(str(run)).glob("results/embeddings-*.parquet"))
    table = pa.concat_tables([pq.read_table(file) for file in files])
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def run(given: dict[str, Any], name: str, *, sort: bool, **options: Any) -> longwall.Result:
    sections = {"export": given.get("export", {}) | {"sort": sort}, "run": given["run"] | {"name": name}}
    return longwall.run(given | sections, **options)


@each_case(
    "workload",
    [
        DIAMOND,
        {"kind": "triangles", "output": "embeddings"},
        {"kind": "cliques", "k": 4, "output": "embeddings"},
        {"kind": "match", "pattern": "(a:0)-(b)-(c)", "output": "embeddings"},
    ],
)
@pytest.mark.parametrize("names", [False, True])
def test_the_same_rows_come_in_order(tmp_path: Path, workload: dict[str, Any], names: bool) -> None:
    given = config(tmp_path, workload, names=names)
    if "(a:0)" in str(workload):
        labels = {NAMES[vertex] if names else vertex: vertex % 2 for vertex in range(60)}
        edges = [(NAMES[u], NAMES[v]) for u, v in EDGES] if names else EDGES
        given["graph"] = write_edges(tmp_path, edges, labels)
    plain, ordered = run(given, "plain", sort=False), run(given, "ordered", sort=True)
    assert ordered.count == plain.count == len(rows_of(plain.path))
    assert rows_of(ordered.path) == sorted(rows_of(plain.path))
    assert (
        ordered.table().to_arrow().to_pydict()
        == pa.concat_tables(
            [pq.read_table(file) for file in sorted(Path(ordered.path).glob("results/embeddings-*"))]
        ).to_pydict()
    )


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of so few rows that they are spilled."""
    monkeypatch.setattr(row_sorter, "_LEAST", 1 << 14)
    monkeypatch.setattr(row_sorter, "_MOST", 1 << 14)
    monkeypatch.setattr(row_sorter, "_READER", 0)
    monkeypatch.setattr(row_sorter, "_BLOCK", 1 << 10)
    monkeypatch.setattr(row_sorter, "_MOST_BLOCK", 1 << 10)


@pytest.mark.usefixtures("small_chunks")
@each_case(
    "export",
    [{}, {"columns": ["v2", "v0"]}, {"limit": 1000}],
)
def test_rows_that_memory_does_not_hold_are_spilled(tmp_path: Path, export: dict[str, Any]) -> None:
    given = config(tmp_path, export=export)
    ordered = run(given, "ordered", sort=True)
    spilled = [
        row for row in pq.read_table(Path(ordered.path) / "metrics.parquet").to_pylist() if row["stage"] == "sort"
    ]
    assert spilled[0]["bytes"] > 0
    assert spilled[0]["rows_out"] == ordered.count
    found = rows_of(ordered.path)
    assert found == sorted(found)
    if "limit" in export:
        assert len(found) == 1000
        assert set(found) <= set(rows_of(run(config(tmp_path), "all", sort=False).path))
    else:
        assert found == sorted(rows_of(run(given, "plain", sort=False).path))
    assert not (tmp_path / "spill").exists()


def test_quasi_cliques_are_in_order_within_each_pattern(tmp_path: Path) -> None:
    given = config(tmp_path, {"kind": "quasi-cliques", "k": 4, "output": "embeddings"})
    plain, ordered = run(given, "plain", sort=False), run(given, "ordered", sort=True)

    def by_pattern(result: longwall.Result) -> dict[str, list[tuple[Any, ...]]]:
        found: dict[str, list[tuple[Any, ...]]] = {}
        for file in sorted(Path(result.path).glob("results/embeddings-*.parquet")):
            table = pq.read_table(file)
            pattern = json.loads(table.schema.metadata[b"longwall"])["pattern"]
            found.setdefault(pattern, []).extend(zip(*(one.to_pylist() for one in table.columns), strict=True))
        return found

    wanted = by_pattern(plain)
    assert len(wanted) > 1
    assert by_pattern(ordered) == {pattern: sorted(rows) for pattern, rows in wanted.items()}


def test_a_listing_without_rows_has_its_columns(tmp_path: Path) -> None:
    given = config(tmp_path, {"kind": "match", "pattern": "clique-9", "output": "embeddings"})
    ordered = run(given, "ordered", sort=True)
    assert ordered.count == 0
    assert ordered.table().column_names == [f"v{vertex}" for vertex in range(9)]


class Ending(NullObserver):
    """Ends the run after some events of sorting."""

    def __init__(self, events: int):
        self._left, self._sorting = events, False

    def phase(self, name: str, total: int | None, unit: str) -> None:
        self._sorting = name == "sorting"
        self._count()

    def advance(self, n: int) -> None:
        self._count()

    def _count(self) -> None:
        if self._sorting:
            self._left -= 1
            if self._left < 0:
                raise KeyboardInterrupt


@pytest.mark.usefixtures("small_chunks")
@each_case("events", [0, 1, 2, 20, 60])
def test_a_run_that_is_interrupted_while_it_sorts_goes_on(tmp_path: Path, events: int) -> None:
    given = config(tmp_path)
    wanted = sorted(rows_of(run(given, "plain", sort=False).path))
    with pytest.raises(KeyboardInterrupt):
        run(given, "ordered", sort=True, observer=Ending(events))
    folder = tmp_path / "runs/ordered"
    assert not (folder / "results").exists()
    assert json.loads((folder / "manifest.json").read_text())["status"] == "interrupted"
    assert not (tmp_path / "spill").exists()
    assert longwall.resume(folder).count == len(wanted)
    assert rows_of(folder) == wanted


@each_case("after", [False, True])
def test_a_run_that_is_killed_about_the_commit_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    given = config(tmp_path)
    wanted = sorted(rows_of(run(given, "plain", sort=False).path))
    commit = PhaseRecord.commit

    def killed(self: PhaseRecord, ranges: Any, partial: Any, **options: Any) -> None:
        if partial.replaces:
            if after:  # what is replaced is still there
                monkeypatch.setattr(type(self.log.store), "delete", lambda *_: None)
                commit(self, ranges, partial, **options)
            raise KeyboardInterrupt
        commit(self, ranges, partial, **options)

    with monkeypatch.context() as patch:
        patch.setattr(PhaseRecord, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            run(given, "ordered", sort=True)
        monkeypatch.undo()
    folder = tmp_path / "runs/ordered"
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"status": "running"}))
    assert longwall.resume(folder).count == len(wanted)
    assert rows_of(folder) == wanted


def test_a_disk_that_is_too_small_is_said_and_can_be_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_chunks: None
) -> None:
    given = config(tmp_path, memory={"spill": str(tmp_path / "spill"), "disk": "20KiB"})
    with pytest.raises(longwall.RunError, match=r"no room for sorting the results .*raise memory\.disk"):
        run(given, "ordered", sort=True)
    folder = tmp_path / "runs/ordered"
    longwall.resume(folder, overrides=["memory.disk=1GiB"])
    assert rows_of(folder) == sorted(rows_of(run(config(tmp_path), "plain", sort=False).path))


def test_a_run_at_a_url(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    given = config(tmp_path, run={"directory": f"file://{tmp_path}/far"})
    ordered = run(given, "ordered", sort=True)
    found = rows_of(tmp_path / "far/ordered")
    assert len(found) == ordered.count
    assert found == sorted(found)


@pytest.mark.slow
@pytest.mark.cluster
def test_rows_of_a_cluster(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'longwall[cluster]'")
    sections = {"scheduler": {"kind": "dask", "workers": 2, "threads_per_worker": 1}}
    given = config(tmp_path, **sections)
    code = f"import longwall; print(longwall.run({given | {'export': {'sort': True}}!r}).path)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert rows_of(done.stdout.strip()) == sorted(rows_of(run(config(tmp_path), "plain", sort=False).path))


def test_levels_are_sorted_too(tmp_path: Path) -> None:
    given = config(tmp_path, scheduler={"order": "levels"})
    found = rows_of(run(given, "ordered", sort=True).path)
    assert found == sorted(rows_of(run(config(tmp_path), "plain", sort=False).path))


@each_case(
    ("settings", "said"),
    [
        (["workload.output=count"], "only embeddings are exported"),
        (["workload.kind=maximal-cliques", "workload.pattern="], "without columns to choose from or to sort by"),
        (
            ["workload.kind=frequent", "workload.pattern=", "workload.min_support=3", "workload.max_edges=2"],
            "embeddings of frequent patterns are not sorted: remove it",
        ),
    ],
)
def test_what_cannot_be_sorted_is_refused(tmp_path: Path, settings: list[str], said: str) -> None:
    (tmp_path / "mine.toml").write_text(
        '[graph]\nexample = "karate"\n[workload]\nkind = "match"\npattern = "diamond"\noutput = "embeddings"\n'
        "[export]\nsort = true\n"
    )
    words = [word for one in settings for word in ("--set", one)]
    ended = CliRunner().invoke(app, ["run", str(tmp_path / "mine.toml"), *words, "--json"])
    error = json.loads(ended.stdout)["error"]
    assert (ended.exit_code, error["key"]) == (2, "export.sort")
    assert said in error["message"]
