"""Frequent patterns on a Dask cluster are those of one process, whatever happens to the workers."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from breakable import answer
from rig import Rig
from run_configs import run_config

import longwall
from longwall.pipeline.cluster import dispatcher
from longwall.pipeline.run_store.commit_log import CommitLog
from longwall.pipeline.workloads.frequent import partitioned_embeddings, pattern_grower
from longwall.storage.errors import RunError

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'longwall[cluster]'")
# Slow, too: what Dask leaves behind must not disturb other tests of the same process.
pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.filterwarnings("default")]
KINDS: dict[str, dict[str, Any]] = {
    "mni": {"support": "mni", "min_support": 6, "max_edges": 3, "output": "embeddings"},
    "instances": {"support": "instances", "min_support": 60, "max_edges": 3, "output": "embeddings"},
    "until it is known": {"support": "mni", "min_support": 6, "max_edges": 4, "exact": False},
    "edge labels": {"support": "mni", "min_support": 4, "max_edges": 3, "max_vertices": 3},
    "database": {"kind": "transactions", "min_support": 4, "max_edges": 4, "output": "embeddings"},
}


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A labelled graph, one with labels of edges as well, and a database."""
    folder, rng = tmp_path_factory.mktemp("graphs"), np.random.default_rng(1)
    graph = nx.gnm_random_graph(60, 180, seed=1)
    (folder / "edges.txt").write_text("".join(f"{u} {v}\n" for u, v in graph.edges))
    (folder / "labels.txt").write_text("".join(f"{v} {rng.integers(3)}\n" for v in graph))
    lines = ["t # 1", *(f"v {v} {rng.integers(2)}" for v in graph)]
    lines += [f"e {u} {v} {rng.integers(2)}" for u, v in graph.edges]
    (folder / "graph.lg").write_text("\n".join([*lines, ""]))
    lines = []
    for number in range(12):
        lines += [f"t # {number}", *(f"v {v} {rng.integers(3)}" for v in range(10))]
        lines += [f"e {u} {v} {rng.integers(2)}" for u, v in nx.gnm_random_graph(10, 13, seed=number).edges]
    (folder / "database.gspan").write_text("\n".join([*lines, "t # -1", ""]))
    return folder


def config(graphs: Path, folder: Path, kind: str, name: str, **scheduler: Any) -> dict[str, Any]:
    paths = {"edge labels": {"path": "graph.lg"}, "database": {"path": "database.gspan"}}
    graph = paths.get(kind, {"path": "edges.txt", "labels": "labels.txt"})
    return run_config(
        folder,
        {key: str(graphs / value) for key, value in graph.items()},
        {"kind": "frequent"} | KINDS[kind],
        engine={"threads": 2},
        memory={"host": "1GiB"},
        run={"name": name},
        **({"scheduler": {"kind": "dask"} | scheduler} if scheduler else {}),
    )


def local(graphs: Path, folder: Path, kind: str) -> dict[str, Any]:
    found = answer(longwall.run(config(graphs, folder, kind, "local")).path)
    assert len(found["patterns"]) > 20
    return found


@pytest.mark.parametrize("cluster", [1, 2, 4], indirect=True)
@pytest.mark.parametrize("kind", KINDS)
def test_a_cluster_finds_what_one_process_finds(cluster: Any, graphs: Path, tmp_path: Path, kind: str) -> None:
    run = config(graphs, tmp_path, kind, "cluster", address=cluster.scheduler_address)
    result = longwall.run(run)
    assert answer(result.path) == local(graphs, tmp_path, kind)
    assert not (result.path / "checkpoint").exists()


@pytest.mark.parametrize("workload", [{"kind": "transactions", "min_support": 100}])
def test_a_real_database(data: Path, tmp_path: Path, workload: dict[str, Any]) -> None:
    run = {
        "graph": {"path": str(data / "transactions" / "Compound_422.gz")},
        "workload": workload,
        "memory": {"spill": str(tmp_path / "spill")},
    }
    local = longwall.run(run | {"run": {"directory": str(tmp_path), "name": "local"}})
    there = {"scheduler": {"kind": "dask", "workers": 2, "threads_per_worker": 1}}
    found = longwall.run(run | there | {"run": {"directory": str(tmp_path), "name": "cluster"}})
    assert len(found.patterns) > 200
    assert found.patterns == local.patterns


@pytest.mark.parametrize("support", ["mni", "instances"])
def test_a_real_graph(data: Path, tmp_path: Path, support: str) -> None:
    names = {"path": "citeseer.edges.gz", "labels": "citeseer.labels.gz"}
    run = {
        "graph": {key: str(data / "graphs" / name) for key, name in names.items()},
        "workload": {"kind": "frequent", "support": support, "min_support": 100, "max_edges": 3},
        "memory": {"spill": str(tmp_path / "spill")},
    }
    local = longwall.run(run | {"run": {"directory": str(tmp_path), "name": "local"}})
    there = {"scheduler": {"kind": "dask", "workers": 2, "threads_per_worker": 1}}
    found = longwall.run(run | there | {"run": {"directory": str(tmp_path), "name": "cluster"}})
    assert len(found.patterns) > 20
    assert found.patterns == local.patterns


def test_batches_and_cuts_change_nothing(graphs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the coordinator cuts is in the commit log: the workers' own constants are others."""
    monkeypatch.setattr(pattern_grower, "_MOST_KNOWN", 200)
    monkeypatch.setattr(partitioned_embeddings, "_SETS_BYTES", 2000)
    run = config(graphs, tmp_path, "mni", "cluster", workers=2, threads_per_worker=1)
    found = answer(longwall.run(run).path)
    monkeypatch.undo()
    assert found == local(graphs, tmp_path, "mni")


def test_ranges_that_are_done_twice_or_in_parts_count_once(
    graphs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_LATE", "_SECONDS", "_FIRST_SECONDS", "_LEAST_SECONDS"):
        monkeypatch.setattr(dispatcher, name, 0.0)
    run = config(graphs, tmp_path, "mni", "cluster", workers=2, threads_per_worker=2)
    found = answer(longwall.run(run).path)
    assert found == local(graphs, tmp_path, "mni")


@contextmanager
def at_commits(monkeypatch: pytest.MonkeyPatch, phase: str, strike: Callable[[], None]) -> Iterator[list[str]]:
    """Strike once something of a phase is committed; gives the names of the phases where that happened."""
    append, struck = CommitLog.append, []

    def watched(self: Any, of: Any, *arguments: Any, **_: Any) -> None:
        append(self, of, *arguments)  # not put off: it is committed before the strike
        if not struck and phase in of.name:
            struck.append(of.name)
            strike()

    with monkeypatch.context() as patched:
        patched.setattr(dispatcher, "_COMMIT_SECONDS", 0.0)
        patched.setattr(CommitLog, "append", watched)
        yield struck


def replace_worker(rig: Rig, number: int) -> None:
    """Kill a worker; another one comes."""
    there = rig.workers()
    there[number % len(there)].kill()
    rig.add_worker()


@pytest.mark.long
@pytest.mark.parametrize(
    "phase",
    ["patterns of 1 edges", "rows of 2 edges", "sets 0 of 2 edges", "counted sets 0 of 3 edges", "embeddings of 2"],
)
def test_a_worker_that_is_killed_changes_nothing(
    graphs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    """Between levels, and in every phase of one."""
    with Rig(tmp_path / "rig", 2, nanny=False) as rig:
        run = config(graphs, tmp_path, "mni", "cluster", address=rig.address, retries=100)
        with at_commits(monkeypatch, phase, lambda: replace_worker(rig, 0)) as struck:
            found = answer(longwall.run(run).path)
    assert struck
    assert found == local(graphs, tmp_path, "mni")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["mni", "database", "until it is known"])
def test_workers_that_are_killed_again_and_again_change_nothing(graphs: Path, tmp_path: Path, kind: str) -> None:
    draw, over = random.Random(kind), threading.Event()
    with Rig(tmp_path / "rig", 2, nanny=False) as rig:

        def go_on_killing() -> None:
            for _ in range(6):  # so that a slow machine comes to an end as well
                if over.wait(draw.uniform(1.0, 4.0)):
                    return
                replace_worker(rig, draw.randrange(2))

        killer = threading.Thread(target=go_on_killing)
        killer.start()
        try:
            run = config(graphs, tmp_path, kind, "cluster", address=rig.address, retries=1000)
            found = answer(longwall.run(run).path)
        finally:
            over.set()
            killer.join()
    assert found == local(graphs, tmp_path, kind)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["mni", "database"])
@pytest.mark.parametrize(
    "phase", ["patterns of 2 edges", "rows of 2 edges", "chosen of 2", "sets 0 of 2 edges", "embeddings of 2"]
)
def test_a_run_goes_on_with_other_workers(
    graphs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, phase: str
) -> None:
    with Rig(tmp_path / "rig", 2, nanny=False) as rig:
        run = config(graphs, tmp_path, kind, "cluster", address=rig.address)
        with at_commits(monkeypatch, phase, rig.kill_scheduler) as struck, pytest.raises(RunError, match="resume"):
            longwall.run(run)
    assert struck
    with Rig(tmp_path / "other", 3, nanny=False) as rig:
        result = longwall.resume(tmp_path / "runs" / "cluster", overrides=[f"scheduler.address={rig.address}"])
    assert answer(result.path) == local(graphs, tmp_path, kind)
