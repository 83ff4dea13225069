"""The batch script for SLURM under a scheduler of the test, which sends the signals of SLURM and starts it again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from breakable import EXAMPLES

import longwall

pytestmark = pytest.mark.slow

# A few seconds of work: an attempt is stopped as it begins to count, and the last one may end.
CONFIG = """
[graph]
generator = { kind = "erdos-renyi", vertices = 3000, edges = 150_000, seed = 1 }
[workload]
kind = "match"
pattern = "cycle-4"
output = "embeddings"
[export]
columns = ["v0"]
[engine]
kind = "cpu"
threads = 1
"""
JOB = 41


@dataclass
class Scheduler:
    """Starts a job, as often as it asks for that or its node is lost."""

    folder: Path
    attempts: int = 0

    @property
    def run(self) -> Path:
        """The folder of the job's run."""
        return self.folder / "runs" / f"mine-{JOB}"

    @property
    def requeued(self) -> list[str]:
        """What `scontrol` was called with."""
        log = self.folder / "requeued"
        return log.read_text().splitlines() if log.exists() else []

    def start(self, config: str = "mine.toml") -> subprocess.Popen[str]:
        """Start the job: a group of processes, whose output is appended to a log."""
        path = f"{self.folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
        slurm = {"SLURM_JOB_ID": str(JOB), "SLURM_JOB_NAME": "mine", "SLURM_RESTART_COUNT": str(self.attempts)}
        self.attempts += 1
        with (self.folder / "log").open("a") as log:
            return subprocess.Popen(
                ["bash", EXAMPLES / "slurm.sh", config],
                cwd=self.folder,
                env=os.environ | slurm | {"PATH": path},
                stdout=log,
                stderr=log,
                start_new_session=True,
                text=True,
            )

    def at_work(self, job: subprocess.Popen[str]) -> None:
        """Wait until the run of a job counts, in this attempt."""
        end = time.monotonic() + 120
        while not self._counts():
            if job.poll() is not None or time.monotonic() > end:
                os.killpg(job.pid, signal.SIGKILL)
                pytest.fail((self.folder / "log").read_text())
            time.sleep(0.02)

    def _counts(self) -> bool:
        try:
            manifest = manifest_of(self.run)
        except (FileNotFoundError, json.JSONDecodeError):
            return False
        begun = len(manifest.get("resumed", [])) + 1
        return manifest["status"] == "running" and "plan" in manifest and begun == self.attempts

    def last_answer(self) -> Any:
        """What the run printed last."""
        lines = [line for line in (self.folder / "log").read_text().splitlines() if line.startswith("{")]
        return json.loads(lines[-1])


def manifest_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "manifest.json").read_text())
    return found


@pytest.fixture
def scheduler(tmp_path: Path) -> Scheduler:
    """A scheduler with a config of a run of some seconds."""
    (tmp_path / "mine.toml").write_text(CONFIG)
    (tmp_path / "bin").mkdir()
    scontrol = tmp_path / "bin" / "scontrol"
    scontrol.write_text(f'#!/bin/sh\necho "$@" >> "{tmp_path}/requeued"\n')
    scontrol.chmod(0o755)
    return Scheduler(tmp_path)


def to_the_script(job: subprocess.Popen[str]) -> None:
    """The time limit is near: the signal that ``--signal=B:TERM@120`` asks for."""
    job.send_signal(signal.SIGTERM)


def to_all_processes(job: subprocess.Popen[str]) -> None:
    """A preemption."""
    os.killpg(job.pid, signal.SIGTERM)


def node_is_lost(job: subprocess.Popen[str]) -> None:
    """Nothing can be said any more."""
    os.killpg(job.pid, signal.SIGKILL)


def test_a_job_that_is_stopped_goes_on_each_time_it_is_started(scheduler: Scheduler) -> None:
    stops: list[tuple[Callable[[subprocess.Popen[str]], None], int, str]] = [
        (to_the_script, 143, "interrupted"),
        (to_all_processes, 143, "interrupted"),
        (node_is_lost, -signal.SIGKILL, "running"),
        (to_the_script, 143, "interrupted"),
    ]
    for stop, code, status in stops:
        job = scheduler.start()
        scheduler.at_work(job)
        stop(job)
        assert job.wait(60) == code, (scheduler.folder / "log").read_text()
        assert manifest_of(scheduler.run)["status"] == status
        assert not (scheduler.run / "results").exists()
    assert scheduler.requeued == [f"requeue {JOB}"] * 3, "the loss of a node is the scheduler's affair"
    assert scheduler.start().wait(240) == 0, (scheduler.folder / "log").read_text()
    assert len(scheduler.requeued) == 3
    manifest = manifest_of(scheduler.run)
    assert (manifest["status"], len(manifest["resumed"])) == ("done", 4)
    answer = scheduler.last_answer()
    assert answer["count"] == undisturbed(scheduler.folder)
    assert answer["total_seconds"] == pytest.approx(sum(manifest["attempt_seconds"]))
    assert len(manifest["attempt_seconds"]) == 5


def undisturbed(folder: Path) -> int | None:
    """Return the count of a run that nothing stops, and that lists nothing: it is done by another method."""
    overrides = [f"run.directory={folder}/other", "workload.output=count", "export.columns="]
    return longwall.run(folder / "mine.toml", overrides=overrides).count


def test_a_finished_job_that_is_started_again_says_so(scheduler: Scheduler) -> None:
    (scheduler.folder / "mine.toml").write_text(CONFIG.replace("150_000", "3_000"))
    assert scheduler.start().wait(120) == 0
    first = scheduler.last_answer()
    assert scheduler.start().wait(120) == 0
    assert "this run is finished" in (scheduler.folder / "log").read_text()
    assert scheduler.last_answer()["count"] == first["count"]
    assert scheduler.requeued == []


@pytest.mark.parametrize("remains", ["an empty folder", "a config"])
def test_remains_of_a_job_that_was_killed_as_it_began_are_removed(scheduler: Scheduler, remains: str) -> None:
    (scheduler.folder / "mine.toml").write_text(CONFIG.replace("150_000", "3_000"))
    scheduler.run.mkdir(parents=True)
    if remains == "a config":
        (scheduler.run / "config.toml").write_text("# The config of this run, written by Longwall.\n")
    assert scheduler.start().wait(120) == 0, (scheduler.folder / "log").read_text()
    assert manifest_of(scheduler.run)["status"] == "done"


def test_wrong_input_is_not_repeated(scheduler: Scheduler) -> None:
    assert scheduler.start("missing.toml").wait(60) == 2
    assert scheduler.last_answer()["error"]["exit_code"] == 2
    assert scheduler.requeued == []


def test_a_job_is_not_requeued_without_end(scheduler: Scheduler) -> None:
    scheduler.attempts = 100
    job = scheduler.start()
    scheduler.attempts = 1
    scheduler.at_work(job)
    to_the_script(job)
    assert job.wait(60) == 143
    assert scheduler.requeued == []


def test_a_job_without_a_config_says_how_it_is_used(scheduler: Scheduler) -> None:
    ended = subprocess.run(
        ["bash", EXAMPLES / "slurm.sh"], cwd=scheduler.folder, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (2, "usage: sbatch slurm.sh CONFIG\n")
