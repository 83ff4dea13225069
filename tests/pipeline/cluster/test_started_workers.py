"""Workers that are started for a run begin at once, are replaced, and outlive nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from rig import wait_until

from longwall.pipeline.cluster.connect import connected
from longwall.pipeline.cluster.started import processes
from longwall.pipeline.cluster.started.processes import StartedWorkers
from longwall.pipeline.cluster.started.worker_main import Meeting, WorkerStart
from longwall.pipeline.config import SchedulerSection

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'longwall[cluster]'")
pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.filterwarnings("default")]
ONE = SchedulerSection(kind="dask", workers=1, threads_per_worker=1)
SCRIPT = """
import sys, time
from longwall.pipeline.cluster.connect import connected
from longwall.pipeline.config import SchedulerSection

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
        assert started.meet(Meeting("tls://127.0.0.1:1", None, "", {}), 60.0) == 0
        assert not started._workers
