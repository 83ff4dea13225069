"""Workers that are started for a run begin at once, are replaced, and outlive nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from rig import wait_until

import longwall
from longwall.pipeline.cluster import connect
from longwall.pipeline.cluster.connect import connected
from longwall.pipeline.cluster.shared_graph import GraphSharer, map_graph
from longwall.pipeline.cluster.started import processes
from longwall.pipeline.cluster.started.processes import StartedWorkers
from longwall.pipeline.cluster.started.worker_main import Meeting, WorkerStart
from longwall.pipeline.config import SchedulerSection
from longwall.pipeline.run import running
from longwall.storage.errors import RunError
from longwall.storage.memory.reservations import MemoryBudget

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'longwall[cluster]'")
pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.filterwarnings("default")]
ONE = SchedulerSection(kind="dask", workers=1, threads_per_worker=1)
SCRIPT = """
import sys, time
import longwall
from longwall.pipeline.cluster import connect
from longwall.pipeline.cluster.connect import connected
from longwall.pipeline.cluster.shared_graph import GraphSharer, map_graph
from longwall.pipeline.config import SchedulerSection
from longwall.pipeline.run import running

if __name__ == "__main__":
    with connected(SchedulerSection(kind="dask", workers=2, threads_per_worker=1), 2, sys.argv[1]) as client:
        print(*client.run(lambda: __import__("os").getpid()).values(), flush=True)
        time.sleep(600)
"""


def pids(client: Any) -> set[int]:
    return set(client.run(os.getpid, on_error="ignore").values())


def test_a_worker_that_is_killed_is_replaced_and_ends_with_the_cluster(tmp_path: Path) -> None:
    with connected(ONE, 1, str(tmp_path)) as client:
        (first,) = pids(client)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: len(pids(client) - {first}) == 1)
        (second,) = pids(client)
        assert {one["name"] for one in client.scheduler_info(n_workers=-1)["workers"].values()} == {"worker 0"}
    assert not psutil.pid_exists(second)


def test_signals_of_a_terminal_do_not_reach_workers(tmp_path: Path) -> None:
    with connected(ONE, 1, str(tmp_path)) as client:
        before = pids(client)
        for number in (signal.SIGINT, signal.SIGHUP):
            os.kill(*before, number)
        assert pids(client) == before


def test_workers_end_with_a_coordinator_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py", str(tmp_path)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as coordinator:
        assert coordinator.stdout is not None
        workers = [int(word) for word in coordinator.stdout.readline().split()]
        coordinator.kill()
    assert len(workers) == 2
    wait_until(lambda: not any(map(psutil.pid_exists, workers)))


def leave(start: WorkerStart, parent: Any) -> None:
    """End before the process is a worker."""


def test_workers_that_never_come_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "main", leave)
    with StartedWorkers([WorkerStart(name, 1, None, None) for name in "ab"]) as started:
        assert started.meet(Meeting("tls://127.0.0.1:1", None, "", {}), 60.0) == (0, 2)
        assert not started._workers


@pytest.mark.parametrize("early", [True, False])
def test_workers_are_told_of_the_graph_while_the_coordinator_plans(
    early: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as the graph is read, and they are there."""
    told: list[Any] = []
    monkeypatch.setattr(connect, "share_on_workers", lambda *told_of: told.append(told_of))
    header: Any = {"id": "1"}
    graph, there = longwall.graph([(0, 1), (1, 2)]), Future[connect.Cluster]()
    coming = connect.ComingCluster(there, GraphSharer())
    if early:
        there.set_result(connect.Cluster("client", header, on_devices=early))
    coming.share(graph, MemoryBudget("memory.host", 1 << 20))
    assert bool(told) == early
    if not early:
        there.set_result(connect.Cluster("client", header, on_devices=early))
    ((client, run),) = told
    assert (client, run["graph"]) == ("client", graph.content_hash)
    assert np.array_equal(map_graph(run["shared"]).indices, graph.indices)
    assert coming.wait(graph.content_hash) == (client, run)
    assert coming.on_devices == early


def test_nobody_is_told_of_a_graph_where_no_workers_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(connect, "share_on_workers")
    there = Future[connect.Cluster]()
    coming = connect.ComingCluster(there, GraphSharer())
    coming.share(longwall.graph([(0, 1), (1, 2)]), MemoryBudget("memory.host", 1 << 20))
    there.set_exception(RunError("no worker has come"))
    with pytest.raises(RunError, match="no worker has come"):
        coming.wait("hash")


def test_an_answer_does_not_wait_for_the_end_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends, close = list[list[int]](), StartedWorkers.close

    def closing(started: StartedWorkers) -> None:
        close(started)
        ends.append([process.exitcode for process in started._ended])

    monkeypatch.setattr(StartedWorkers, "close", closing)
    (tmp_path / "graph.txt").write_text("0 1\n1 2\n0 2\n2 3\n")
    config = {
        "graph": {"path": tmp_path / "graph.txt"},
        "workload": {"kind": "triangles"},
        "engine": {"kind": "cpu"},
        "memory": {"spill": tmp_path / "spill"},
        "scheduler": {"kind": "dask", "workers": 2, "threads_per_worker": 1},
        "run": {"directory": tmp_path / "runs"},
    }
    with running(config) as result:
        assert result.count == 1
        assert not ends
    assert ends == [[0, 0]]
    assert not (tmp_path / "spill").exists()
