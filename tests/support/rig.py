"""A Dask cluster of processes on loopback that tests break, and coordinators that are processes, too."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

PATIENCE = 60.0  # seconds until something counts as hanging
_COORDINATOR = """
import sys
from longwall.pipeline.cluster import cluster_workers, dispatcher
for name, value in {constants}.items():
    homes = [module for module in (cluster_workers, dispatcher) if hasattr(module, name)]
    assert homes, name
    setattr(homes[0], name, value)
from longwall.pipeline.cli import main
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    main()
finally:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
"""


def local_cluster(workers: int) -> Any:
    """Make a ``distributed.LocalCluster`` with so many workers, of one thread each; a context manager."""
    from distributed import LocalCluster

    loopback = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    return LocalCluster(n_workers=workers, threads_per_worker=1, memory_limit=None, **loopback)


@contextmanager
def killing(cluster: Any, draw: random.Random, times: int) -> Iterator[None]:
    """Kill one of the workers of a ``distributed.LocalCluster`` every now and then, so many times at most.

    Forever, and no worker might ever have begun on a machine that is busy.
    """
    over = threading.Event()

    def kill() -> None:
        for _ in range(times):
            if over.wait(draw.uniform(0.3, 2.0)):
                return
            pids = [nanny.pid for nanny in cluster.workers.values() if nanny.pid]
            if pids:
                with suppress(ProcessLookupError):
                    os.kill(draw.choice(pids), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        over.set()
        killer.join()


class Rig:
    """A scheduler and workers; a context manager.

    Parameters
    ----------
    folder
        For their files.
    workers
        How many, of one thread each.
    nanny
        Whether workers that die are started again.
    environment
        Of the workers, besides this process's.
    """

    def __init__(self, folder: Path, workers: int, *, nanny: bool = True, environment: dict[str, str] | None = None):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._nanny, self._environment = nanny, os.environ | (environment or {})
        self._file = folder / "scheduler.json"
        self._scheduler = self._start("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(self._file))
        wait_until(lambda: self._file.exists() and self._file.read_text().endswith("}"))
        self.address: str = json.loads(self._file.read_text())["address"]
        self._workers: list[subprocess.Popen[bytes]] = []
        for _ in range(workers):
            self.add_worker()

    def _start(self, what: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *words, "--host", "127.0.0.1"]
        noise = (self.folder / "noise.txt").open("ab")
        with noise:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=noise, stderr=noise, env=self._environment, cwd=self.folder
            )

    def add_worker(self) -> None:
        """Start one more."""
        self._workers.append(
            self._start(
                "worker",
                self.address,
                *("--nthreads", "1", "--no-dashboard", "--memory-limit", "0"),
                *("--local-directory", str(self.folder)),
                "--nanny" if self._nanny else "--no-nanny",
            )
        )

    def workers(self) -> list[psutil.Process]:
        """The processes that work, at this moment."""
        if not self._nanny:
            return [psutil.Process(one.pid) for one in self._workers if one.poll() is None]
        found = []
        for nanny in self._workers:
            with suppress(psutil.NoSuchProcess):
                found += [
                    child for child in psutil.Process(nanny.pid).children() if "spawn_main" in " ".join(child.cmdline())
                ]
        return found

    def kill_scheduler(self) -> None:
        """As kill -9 does."""
        self._scheduler.kill()
        self._scheduler.wait()

    def __enter__(self) -> Rig:
        return self

    def __exit__(self, *exc: object) -> None:
        mine = [one for one in (*self._workers, self._scheduler) if one.poll() is None]
        doomed = []
        for one in mine:
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(one.pid)
                doomed += [process, *process.children(recursive=True)]
        for process in doomed:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        for one in (*self._workers, self._scheduler):
            one.wait()


class Coordinator:
    """``longwall`` in a process of its own.

    Parameters
    ----------
    words
        The command line without its first word.
    constants
        Of the modules of :mod:`longwall.pipeline.cluster` that only a coordinator needs, to be set there.
    """

    def __init__(self, words: Sequence[str | Path], **constants: Any):
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-X",
                "faulthandler",
                "-W",
                "ignore",
                "-c",
                _COORDINATOR.format(constants=constants),
                *map(str, words),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # what it starts is found by the group
            preexec_fn=_ignore_interrupts,  # until it has begun: Python itself would say where it was
        )

    def end(self) -> tuple[int, str]:
        """Wait until it has ended. Return its exit code and what it said of errors."""
        try:
            _, said = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            said = self.process.communicate()[1]
            raise AssertionError(f"it hangs: {said}") from None
        assert "Traceback" not in said, said
        return self.process.returncode, said


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def wait_until(happened: Any) -> None:
    """Wait until a function says so."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, f"{happened} never came true"
        time.sleep(0.02)
