"""Reports of real runs: one of each workload, of failed, resumed and remote ones; what they say is what the run did."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import set_page_size
from pages import Page, check_page
from selection import emulated

import longwall
from longwall.pipeline.report import publish
from longwall.pipeline.report import record as record_module
from longwall.pipeline.report.facts import Facts, facts_of
from longwall.pipeline.report.record import read_record
from longwall.pipeline.run_store.run_place import place_at
from longwall.pipeline.workloads.match import Match
from longwall.storage.errors import RunError
from longwall.storage.observer import NullObserver
from longwall.storage.pages.heat_record import HeatRecord

WORKLOADS: dict[str, dict[str, Any]] = {
    "search": {"kind": "match", "pattern": "tailed-triangle", "pattern_labels": [0, 1, 0, 1]},
    "induced": {"kind": "match", "pattern": "diamond", "induced": True},
    "joins": {"kind": "match", "pattern": "diamond", "output": "embeddings", "join": "edges"},
    "houses": {"kind": "match", "pattern": "house"},
    "triangles": {"kind": "triangles", "output": "vertices"},
    "cliques": {"kind": "cliques", "k": 4, "output": "embeddings"},
    "quasi-cliques": {"kind": "quasi-cliques", "k": 4},
    "maximal-cliques": {"kind": "maximal-cliques"},
    "motifs": {"kind": "motifs", "k": 4},
    "orbits": {"kind": "motifs", "k": 3, "output": "vertices"},
    "frequent": {"kind": "frequent", "min_support": 5, "max_edges": 2},
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with labels."""
    path = tmp_path_factory.mktemp("graph") / "graph.zarr"
    made = nx.gnm_random_graph(60, 300, seed=1)
    nx.set_node_attributes(made, {vertex: vertex % 2 for vertex in made}, "label")
    longwall.graph(made, labels="label").save(path)
    return path


def start(graph: Path, folder: Path | str, workload: dict[str, Any], **more: Any) -> longwall.Result:
    run = {"directory": str(folder), "name": "one"} | more.pop("run", {})
    return longwall.run(
        {"graph": {"path": str(graph)}, "workload": workload, "engine": {"kind": "cpu"}, "run": run} | more
    )


def page_of(run: Path) -> Page:
    return check_page((run / "report.html").read_text())


def facts(run: Path | str) -> Facts:
    return facts_of(read_record(place_at(run).store))


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_report_of_each_workload(graph: Path, tmp_path: Path, name: str) -> None:
    result = start(graph, tmp_path, WORKLOADS[name])
    assert isinstance(result.path, Path)
    page, found = page_of(result.path), facts(result.path)
    text = page.text()
    assert (found.status, found.workload) == ("done", WORKLOADS[name]["kind"])
    assert "60 vertices and 300 edges" in text
    assert found.total == result.count
    if result.count is not None:
        assert f"{result.count:,}" in text
    for one in result.patterns[:20]:
        assert one.pattern in text
        assert one.count is None or f"{one.count:,}" in text
    for title in ("What was asked", "The answer", "The graph", "Degrees", "The plan", "Time", "Memory and budgets"):
        assert title in text
    assert found.plan_text.split()[0] in text
    assert [part.name for part in found.parts] == ["graph", "plan", "mine", "write"]
    assert {tier.key for tier in found.tiers} == {"host", "disk"}
    host = next(tier for tier in found.tiers if tier.key == "host")
    assert len(host.process) == len(host.used) > 0
    assert host.process_peak is not None
    assert host.process_peak >= max(host.process) > 2**20
    assert found.machine.keys() == {"CPU", "cores", "memory", "system"}
    assert text.count("longwall resume") == 0


def test_the_degrees_are_those_of_the_graph(graph: Path, tmp_path: Path) -> None:
    result = start(graph, tmp_path, {"kind": "triangles"})
    degrees = [degree for _, degree in nx.gnm_random_graph(60, 300, seed=1).degree()]
    expected = [[low, sum(low <= one < 2 * low for one in degrees)] for low in (1, 2, 4, 8, 16)]
    assert facts(result.path).graph["degrees"] == expected


def test_the_levels_are_those_of_the_metrics(graph: Path, tmp_path: Path) -> None:
    result = start(graph, tmp_path, WORKLOADS["induced"] | {"output": "embeddings"})
    assert isinstance(result.path, Path)
    found = facts(result.path)
    rows = pq.read_table(result.path / "metrics.parquet").to_pylist()
    stages = [row for row in rows if row["level"]]
    assert sorted((one.stage, one.level, one.rows_out) for one in found.levels) == sorted(
        (row["stage"], row["level"], row["rows_out"]) for row in stages
    )
    assert max(found.levels, key=lambda one: one.level).rows_out == result.count
    assert found.methods == {"listing": 1}
    estimated = json.loads((result.path / "manifest.json").read_text())["plan"]["estimated_rows"]
    assert found.levels[0].predicted == pytest.approx(estimated[1])
    assert found.loads
    assert sum(load.tasks for load in found.loads) > 0


def test_the_report_is_made_of_the_folder_alone(graph: Path, tmp_path: Path) -> None:
    result = start(graph, tmp_path, WORKLOADS["search"])
    assert isinstance(result.path, Path)
    before = (result.path / "report.html").read_text()
    (result.path / "report.html").unlink()
    publish.write_report(place_at(result.path).store)
    assert (result.path / "report.html").read_text() == before


def test_no_report_where_none_is_wanted(graph: Path, tmp_path: Path) -> None:
    result = start(graph, tmp_path, WORKLOADS["search"], run={"report": False})
    assert isinstance(result.path, Path)
    names = {path.name for path in result.path.iterdir()}
    assert names == {"config.toml", "manifest.json", "metrics.parquet", "results"}
    publish.write_report(place_at(result.path).store)  # it can be had later, without what only a history has
    text = page_of(result.path).text()
    assert f"{result.count:,}" in text
    assert "Load of the workers" not in text


def test_a_failed_run_says_how_to_go_on_and_a_resumed_one_that_it_was(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Match, plan: Any, env: Any) -> Any:
        raise RunError("the <disk> is full")

    with monkeypatch.context() as patch:
        patch.setattr(Match, "execute", fail)
        with pytest.raises(RunError, match="full"):
            start(graph, tmp_path / "a folder", WORKLOADS["search"])
    run = tmp_path / "a folder" / "one"
    text = page_of(run).text()
    assert "Failed: the <disk> is full" in text
    assert f"longwall resume '{run}'" in text
    assert "None yet" in text
    result = longwall.resume(run)
    text = page_of(run).text()
    assert f"{result.count:,}" in text
    assert "resumed 1 time" in text
    assert "its last attempt" in text
    assert "longwall resume" not in text


def test_an_interrupted_run(graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: Match, plan: Any, env: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Match, "execute", interrupt)
    with pytest.raises(KeyboardInterrupt):
        start(graph, tmp_path, WORKLOADS["search"])
    text = page_of(tmp_path / "one").text()
    assert "Interrupted: interrupted by SIGINT" in text
    assert "longwall resume" in text


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        MemoryError(),
        TypeError("a mistake"),
        RunError("at the URL"),
        KeyboardInterrupt(),
    ],
)
def test_a_run_is_done_although_its_report_cannot_be_written(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(store: Any) -> None:
        (Path(store.where) / "report.html.tmp").write_text("half")
        raise error

    notes: list[str] = []

    class Notes(NullObserver):
        def note(self, text: str) -> None:
            notes.append(text)

    monkeypatch.setattr(publish, "write_report", fail)
    result = longwall.run(
        {
            "graph": {"path": str(graph)},
            "workload": {"kind": "triangles"},
            "engine": {"kind": "cpu"},
            "run": {"directory": str(tmp_path), "name": "one"},
        },
        observer=Notes(),
    )
    assert result.count == result.table("counts")["count"].to_pylist()[0]
    assert isinstance(result.path, Path)
    assert json.loads((result.path / "manifest.json").read_text())["status"] == "done"
    assert not list(result.path.glob("report*"))
    (note,) = [note for note in notes if "report" in note]
    assert note.startswith("the report of the run is not written (")
    assert note.endswith(f"longwall report {result.path}")


def test_a_run_at_a_url_has_its_report_there(graph: Path, tmp_path: Path) -> None:
    local = start(graph, tmp_path / "local", WORKLOADS["search"])
    start(graph, f"file://{tmp_path}/urls", WORKLOADS["search"])
    start(graph, f"file://{tmp_path}/urls", WORKLOADS["search"], run={"overwrite": True})
    assert f"{local.count:,}" in page_of(tmp_path / "urls" / "one").text()
    assert facts(f"file://{tmp_path}/urls/one").total == local.count


def test_names_that_are_html_are_text(tmp_path: Path) -> None:
    folder = tmp_path / "<script>alert(1)<" / "a\"b&'c<img src=x onerror=alert(1)>"
    folder.mkdir(parents=True)
    (folder / "{{ 7 * 7 }}.txt").write_text("1 2\n2 3\n3 1\n3 4\n")
    result = start(folder / "{{ 7 * 7 }}.txt", folder, {"kind": "match", "pattern": "triangle"})
    assert isinstance(result.path, Path)
    page = page_of(result.path)
    assert str(folder) in page.text()
    assert "{{ 7 * 7 }}" in page.text()


def test_budgets_that_are_short_are_warned_of(graph: Path, tmp_path: Path) -> None:
    made = {"kind": "rmat", "scale": 12, "edge_factor": 16, "seed": 1}
    result = longwall.run(
        {
            "graph": {"generator": made},
            "workload": {"kind": "match", "pattern": "diamond", "output": "embeddings"},
            "memory": {"host": "24MiB", "spill": str(tmp_path / "spill")},
            "export": {"limit": 10000},
            "scheduler": {"order": "levels"},
            "engine": {"kind": "cpu"},
            "run": {"directory": str(tmp_path), "name": "one"},
        }
    )
    assert isinstance(result.path, Path)
    text = page_of(result.path).text()
    assert facts(result.path).written[0] > 2**20
    assert re.search(r"Spilled: .* were written to memory.spill", text)
    assert "Main memory was nearly full" in text
    assert "export.limit ended the run" in text
    assert "at least 10,000" in text


def test_the_answer_of_an_algorithm_of_ones_own(graph: Path, tmp_path: Path) -> None:
    example = Path(__file__).parents[3] / "examples" / "maximum_clique.py"
    result = start(graph, tmp_path, {"kind": "custom", "algorithm": f"{example}:MaximumClique"})
    value = result.patterns[0].value
    found = facts(result.path)
    assert found.total is None
    assert found.answer[0]["value"] == value
    assert isinstance(result.path, Path)
    assert str(value) in page_of(result.path).text()


@pytest.mark.parametrize("batch", [1 << 16, 7])
def test_the_heat_of_pages_is_summed_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr(record_module, "_BATCH", batch)
    heat = HeatRecord(100)
    rng = np.random.default_rng(1)
    reads = {level: rng.integers(0, 1000, 100).astype(np.uint64) for level in (2, 3)}
    on_device = np.arange(100) < 50
    for level, spatial in reads.items():
        heat.record(level, spatial, on_device)
        heat.record(level, spatial, np.zeros(100, np.bool_))
    heat.write(tmp_path / "heat.parquet")
    found = record_module._heat((tmp_path / "heat.parquet").read_bytes())
    assert found is not None
    assert found.pages == 100
    for level, spatial in reads.items():
        cells = [0] * record_module.HEAT_CELLS
        for page, size in enumerate(spatial.tolist()):
            cells[page * len(cells) // 100] += 2 * size
        assert found.levels[level] == cells
        assert found.on_device[level] == pytest.approx(0.5 * spatial[:50].sum() / spatial.sum())
    assert record_module._heat(b"no table") is None


def heat_file(**columns: Any) -> bytes:
    """A record of heat as no run writes it."""
    file = io.BytesIO()
    numbers = {name: np.zeros(2, np.int64) for name in ("level", "page", "bytes", "extensions", "hot_extensions")}
    pq.write_table(pa.table(numbers | columns), file)
    return file.getvalue()


def test_forged_records_of_heat_are_left_out() -> None:
    """Neither their pages, nor their levels, nor their numbers make a report long."""
    assert record_module._heat(heat_file()) is not None
    many = np.arange(100_000)
    zeros = np.zeros(100_000, np.int64)
    rest = {"page": zeros, "bytes": zeros, "extensions": zeros, "hot_extensions": zeros}
    for forged in (
        {"level": many, **rest},
        {"page": np.array([2**62, 2**62 - 1])},
        {"page": np.array([-1, 5])},
        {"page": np.array([1.5, 2.5])},
        {"page": pa.array([None, 1], pa.int64())},
        {"level": pa.array(["x", "y"])},
        {"level": pa.array(["x" * 3_000_000, "y"])},
        {"bytes": pa.array([[1], [2]])},
    ):
        found = record_module._heat(heat_file(**forged))
        assert found is None, forged
    content = heat_file()
    for at in range(4, len(content), 7):
        record_module._heat(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])


@pytest.mark.gpu
def test_the_report_of_a_run_out_of_the_gpus_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_page_size(monkeypatch, 1024 if emulated() else 2 << 20)
    scale, factor, budget = (11, 6, 16 << 20) if emulated() else (22, 2, 108_000_000)
    result = longwall.run(
        {
            "graph": {"generator": {"kind": "rmat", "scale": scale, "edge_factor": factor, "seed": 3}},
            "workload": {"kind": "match", "pattern": "tailed-triangle", "output": "embeddings"},
            "export": {"limit": 1000},
            "engine": {"kind": "cuda"},
            "memory": {"device": budget, "host": "2GiB", "spill": str(tmp_path / "spill"), "access": "adaptive"},
            "run": {"directory": str(tmp_path), "name": "one"},
        }
    )
    assert isinstance(result.path, Path)
    text = page_of(result.path).text()
    for part in ("Heat of the pages", "GPU memory: at most", "Page-locking", "Raise memory.device"):
        assert part in text


@pytest.mark.slow
@pytest.mark.cluster
def test_the_report_of_a_run_on_a_cluster(graph: Path, tmp_path: Path) -> None:
    scheduler = {"kind": "dask", "workers": 2, "threads_per_worker": 1}
    result = start(
        graph, tmp_path, WORKLOADS["induced"], scheduler=scheduler, memory={"spill": str(tmp_path / "spill")}
    )
    assert isinstance(result.path, Path)
    text = page_of(result.path).text()
    assert f"{result.count:,}" in text
    assert "workers have budgets of their own" in text
    found = facts(result.path)
    assert {load.worker for load in found.loads} <= {"worker 0", "worker 1"}
    assert sum(load.tasks for load in found.loads) > 0
