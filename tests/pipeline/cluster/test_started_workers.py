"""Workers that are started for a run begin at once, are replaced, and outlive nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import faulty_workers
import numpy as np
import psutil
import pytest
from rig import wait_until

import longwall
from longwall.pipeline.cluster import connect
from longwall.pipeline.cluster.connect import connected
from longwall.pipeline.cluster.shared_graph import GraphSharer, map_graph
from longwall.pipeline.cluster.started import processes
from longwall.pipeline.cluster.started.processes import Met, StartedWorkers
from longwall.pipeline.cluster.started.start import why_missing
from longwall.pipeline.cluster.started.worker_main import Meeting, WorkerStart
from longwall.pipeline.config import SchedulerSection
from longwall.pipeline.run import running
from longwall.storage.errors import RunError
from longwall.storage.memory.reservations import MemoryBudget

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'longwall[cluster]'")
pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.filterwarnings("default")]
ONE = SchedulerSection(kind="dask", workers=1, threads_per_worker=1)
NOWHERE = Meeting("tls://127.0.0.1:1", None, "", {})
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


def test_workers_that_never_come_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "main", faulty_workers.leave)
    with StartedWorkers([WorkerStart(name, 1, None, None) for name in "ab"]) as started:
        assert started.meet(NOWHERE, 60.0, threading.Event()) == (0, 2, [0, 0], [])
        assert not started._workers


def test_a_worker_that_is_killed_before_it_is_there_is_replaced_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "main", faulty_workers.come_at_the_second_try)
    with StartedWorkers([WorkerStart(name, 1, str(tmp_path / name), None) for name in ("a", "no/b")]) as started:
        met = started.meet(NOWHERE, 60.0, threading.Event())
        assert met == (1, 2, [1], [])  # an exception ended the other one
    with StartedWorkers([WorkerStart("a", 1, str(tmp_path / "a"), None)] * 2) as started:
        assert started.meet(NOWHERE, 60.0, threading.Event()) == (2, 2, [], [])


def test_a_worker_says_why_it_cannot_be_one(tmp_path: Path) -> None:
    with StartedWorkers([WorkerStart("a", 1, None, None)]) as started:
        met = started.meet(NOWHERE._replace(folder=str(tmp_path)), 60.0, threading.Event())
        assert not started._workers
        assert met[:3] == (0, 1, [])
        assert len(list(filter(None, met.reasons))) == 1  # of the library, which has no keys in that folder


def test_a_wait_for_workers_is_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "main", faulty_workers.never_come)
    with StartedWorkers([WorkerStart("a", 1, None, None)]) as started:
        cut = threading.Event()
        threading.Timer(0.5, cut.set).start()
        assert started.meet(NOWHERE, 3600.0, cut) == (0, 1, [], [])


HANGING = """
import longwall
from longwall.pipeline.cluster.started import processes

def never_come(start, parent):
    open(start.name, "w").close()
    while True:
        parent.recv()

if __name__ == "__main__":
    processes.main = never_come
    longwall.run({
        "graph": {"generator": {"kind": "rmat", "scale": 6, "edge_factor": 4, "seed": 1}},
        "workload": {"kind": "triangles"}, "engine": {"kind": "cpu"},
        "scheduler": {"kind": "dask", "workers": 1}, "run": {"directory": "runs", "name": "one"},
    })
"""


def test_a_run_is_interrupted_while_its_workers_do_not_come(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(HANGING)
    with subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        wait_until((tmp_path / "worker 0").exists)
        run.send_signal(signal.SIGTERM)
        _, said = run.communicate(timeout=30)  # less than the minute that workers have
    where = tmp_path / "runs" / "one"
    ended = "longwall.storage.errors.Interrupted: the finished part is kept; go on with: longwall resume"
    assert said.splitlines()[-1] == f"{ended} {where}"


@pytest.mark.parametrize(
    ("met", "text"),
    [
        (Met(0, 2, [1, 1], []), 'call longwall.run below `if __name__ == "__main__":`'),
        (Met(1, 2, [-9], []), "SIGKILL ended the process of one twice"),
        (Met(1, 2, [-50], []), "signal 50 ended the process of one twice"),
        (Met(1, 2, [1], []), "the process of one ended with exit code 1"),
        (Met(1, 2, [None], []), "the process of one ended"),
        (Met(1, 2, [], ["the port is taken"]), "could be started: the port is taken"),
        (Met(1, 3, [], []), "the others have not come in 60 s"),
    ],
)
def test_why_workers_are_missing(met: Met, text: str) -> None:
    said = why_missing(met, 60.0)
    assert said.startswith(f"only {met.there} of {met.wanted} workers could be started: ")
    assert text in said


FIRST = """
import signal
from multiprocessing import resource_tracker
from pathlib import Path
from longwall.pipeline.cluster.started import processes
from longwall.pipeline.cluster.started.worker_main import WorkerStart

def mask(start, parent):
    parent.send(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))

if __name__ == "__main__":
    processes.main = mask
    with processes.StartedWorkers([WorkerStart("a", 1, None, None)]) as started:
        (place,) = started._workers
        print(place.recv())
        status = Path(f"/proc/{resource_tracker._resource_tracker._pid}/status").read_text()
        blocked, ignored = (int(status.partition(f"{name}:")[2].split()[0], 16) for name in ("SigBlk", "SigIgn"))
        print(all((blocked | ignored) >> number - 1 & 1 for number in (signal.SIGINT, signal.SIGHUP)))
"""


def test_no_signal_of_a_terminal_reaches_what_is_started(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(FIRST)
    assert subprocess.check_output([sys.executable, "script.py"], cwd=tmp_path, text=True) == "True\nTrue\n"


@pytest.mark.parametrize("early", [True, False])
def test_workers_are_told_of_the_graph_while_the_coordinator_plans(
    early: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as the graph is read, and they are there."""
    calls: list[Any] = []
    monkeypatch.setattr(connect, "describe_on_workers", lambda *described: calls.append(described))
    header: Any = {"id": "1"}
    graph, there = longwall.graph([(0, 1), (1, 2)]), Future[connect.Cluster]()
    coming = connect.ComingCluster(there, GraphSharer(), 2)
    if early:
        there.set_result(connect.Cluster("client", header, on_devices=early))
    coming.share(graph, MemoryBudget("memory.host", 1 << 20))
    assert bool(calls) == early
    if not early:
        there.set_result(connect.Cluster("client", header, on_devices=early))
    ((client, run),) = calls
    assert (client, run["graph"]) == ("client", graph.content_hash)
    assert np.array_equal(map_graph(run["shared"]).indices, graph.indices)
    assert coming.wait(graph.content_hash) == (client, run)
    assert coming.on_devices == early


def test_nobody_is_told_of_a_graph_where_no_workers_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(connect, "describe_on_workers")
    there = Future[connect.Cluster]()
    coming = connect.ComingCluster(there, GraphSharer(), 2)
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
