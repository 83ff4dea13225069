"""Runs on a Dask cluster give what the same runs give in one process, whatever happens to the workers."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from breakable import EDGES, KINDS, LABELS, answer
from rig import killing, local_cluster
from run_configs import config_of, write_edges

import longwall
from longwall.pipeline.cluster import dispatcher
from longwall.storage.errors import InputError, RunError

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'longwall[cluster]'")
# Slow, too: what Dask leaves behind must not disturb other tests of the same process.
pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.filterwarnings("default")]
SPREAD = [kind for kind in KINDS if kind != "listing with a limit"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_edges(tmp_path, EDGES, LABELS)
    return tmp_path


def config(folder: Path, kind: str, name: str, **scheduler: Any) -> dict[str, Any]:
    return config_of(folder, kind, name, str(folder / "runs"), **scheduler)


def local(folder: Path, kind: str) -> dict[str, Any]:
    return answer(longwall.run(config(folder, kind, "local")).path)


@pytest.mark.parametrize("kind", SPREAD)
def test_a_cluster_gives_what_one_process_gives(cluster: Any, folder: Path, kind: str) -> None:
    result = longwall.run(config(folder, kind, "cluster", address=cluster.scheduler_address))
    assert answer(result.path) == local(folder, kind)
    assert result.engine == "cpu"
    manifest = json.loads((result.path / "manifest.json").read_text())
    assert manifest["status"] == "done"


@pytest.mark.parametrize("workers", [1, 4])
def test_a_cluster_is_made_for_a_run(folder: Path, workers: int) -> None:
    kind = "count by search"
    result = longwall.run(config(folder, kind, "cluster", workers=workers, threads_per_worker=1))
    assert answer(result.path) == local(folder, kind)


def test_what_is_left_of_a_long_task_is_dispatched_again(
    cluster: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_SECONDS", "_FIRST_SECONDS", "_LEAST_SECONDS"):
        monkeypatch.setattr(dispatcher, name, 0.0)
    monkeypatch.setattr(dispatcher, "_CUTS", 1)
    result = longwall.run(config(folder, "listing", "cluster", address=cluster.scheduler_address))
    assert answer(result.path) == local(folder, "listing")


def test_a_task_that_takes_long_is_done_twice_and_counted_once(
    cluster: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "_LATE", 0.0)
    result = longwall.run(config(folder, "listing", "cluster", address=cluster.scheduler_address))
    assert answer(result.path) == local(folder, "listing")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_workers_that_are_killed_change_nothing(folder: Path, seed: int) -> None:
    draw = random.Random(seed)
    kind = draw.choice(["count by search", "listing", "listing by levels", "triangles per vertex"])
    with local_cluster(2) as made, killing(made, draw, 4):
        for number in range(2):
            run = config(folder, kind, f"cluster-{number}", address=made.scheduler_address, retries=100)
            result = longwall.run(run)
            assert answer(result.path) == local_once(folder, kind)


def local_once(folder: Path, kind: str) -> dict[str, Any]:
    path = folder / "runs" / "local"
    return answer(path) if path.exists() else local(folder, kind)


def test_a_run_goes_on_without_the_cluster_that_it_began_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "_COMMIT_SECONDS", 0.0)
    made = local_cluster(2)
    committed = threading.Event()
    append = longwall.pipeline.run_store.commit_log.CommitLog.append

    def watched(*arguments: Any) -> None:
        append(*arguments)
        if not committed.is_set():
            committed.set()
            made.close()

    monkeypatch.setattr(longwall.pipeline.run_store.commit_log.CommitLog, "append", watched)
    with pytest.raises(RunError, match="longwall resume"):
        longwall.run(config(folder, "listing", "cluster", address=made.scheduler_address))
    monkeypatch.undo()
    path = folder / "runs" / "cluster"
    with local_cluster(1) as other:
        result = longwall.resume(path, overrides=[f"scheduler.address={other.scheduler_address}"])
    assert answer(result.path) == local(folder, "listing")


def test_a_kernel_without_room_on_a_worker_gives_way_to_a_search(tmp_path: Path) -> None:
    path = tmp_path / "band.txt"  # many vertices, each next to the three before it
    path.write_text("".join(f"{i} {i + d}\n" for i in range(40_000) for d in (1, 2, 3)))

    def run(name: str, host: str, **scheduler: Any) -> tuple[int, set[str]]:
        result = longwall.run(
            {
                "graph": {"path": path},
                "workload": {"kind": "match", "pattern": "cycle-4"},
                "engine": {"kind": "cpu", "threads": 1},
                "memory": {"host": host, "spill": tmp_path / "spill"},
                "run": {"directory": tmp_path / "runs", "name": name},
                "scheduler": scheduler,
            }
        )
        return result.count, set(pq.read_table(result.path / "metrics.parquet")["stage"].to_pylist())

    count, stages = run("plenty", "64MiB")
    assert "wedge aggregation" in stages
    found, stages = run("little", "3MiB", kind="dask", workers=1, threads_per_worker=16)
    assert "wedge aggregation" not in stages
    assert found == count > 10_000


@pytest.mark.parametrize(
    ("scheduler", "said"),
    [
        ({"address": "tcp://127.0.0.1:1"}, "nothing answers"),
        ({"address": "tcp://127.0.0.1:1", "workers": 2}, "has its own workers"),
        ({"security": {"ca": "a", "cert": "b", "key": "c"}}, "tls://"),
    ],
)
def test_clusters_that_cannot_be_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, scheduler: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr("longwall.pipeline.cluster.connect._CONNECT_SECONDS", 1)
    with pytest.raises(InputError, match=said):
        longwall.run(config(folder, "cliques", "refused", **scheduler))
    assert not (folder / "runs" / "refused").exists()
