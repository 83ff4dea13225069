"""Whatever happens to a cluster while it mines: the right result, or a sentence and a run that can be resumed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from breakable import EXAMPLES, answer
from kill import status
from rig import Coordinator, Rig, wait_until

import longwall
from longwall.storage.memory.spill_folder import hold

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'longwall[cluster]'")
pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.filterwarnings("default")]

FAULTS_PER_CASE = 4
_MODULE = "longwall.pipeline.cluster.worker_process"
_IS_OPEN = f"__import__('{_MODULE}', fromlist=['_current'])._current is not None"
_IS_OVER = f"(it := __import__('{_MODULE}', fromlist=['_current'])._current) is None or it.over"
SHORT = {"_SECONDS": 0.4, "_FIRST_SECONDS": 0.2, "_LEAST_SECONDS": 0.1, "_COMMIT_SECONDS": 0.1}
MATCH = 'kind = "match"\npattern = '
KINDS = {
    "counting": (12, f'{MATCH}"0-1,0-2,0-3,1-2,1-3,2-4,3-4"'),
    "listing": (11, f'{MATCH}"diamond"\noutput = "embeddings"'),
    "counts per vertex": (13, 'kind = "motifs"\nk = 4\noutput = "vertices"'),
    "maximal cliques": (12, 'kind = "maximal-cliques"\noutput = "embeddings"'),
    "algorithm": (7, 'kind = "custom"\nalgorithm = "plexes.py:Plexes"\nparameters = { k = 2, size = 4 }'),
    "motifs": (14, 'kind = "motifs"\nk = 4\nmethod = "enumeration"'),
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    """What each kind of run gives in one process."""
    found: dict[str, dict[str, Any]] = {}

    def give(kind: str) -> dict[str, Any]:
        if kind not in found:
            found[kind] = answer(longwall.run(config(tmp_path_factory.mktemp("local"), kind)).path)
        return found[kind]

    return give


def config(folder: Path, kind: str) -> Path:
    """Write the config of a run named ``run`` into a folder."""
    scale, workload = KINDS[kind]
    path = folder / "run.toml"
    shutil.copy(EXAMPLES / "plexes.py", folder)
    path.write_text(
        f'[graph]\ngenerator = {{ kind = "rmat", scale = {scale}, edge_factor = 12, seed = 1 }}\n'
        f"[workload]\n{workload}\n"
        f'[engine]\nkind = "cpu"\nthreads = 2\n[memory]\nhost = "1GiB"\nspill = "{folder / "spill"}"\n'
        f'[run]\ndirectory = "{folder / "runs"}"\nname = "run"\n'
    )
    return path


class Case:
    """A run of one kind in a folder of its own, which is started or resumed as often as need be."""

    def __init__(self, folder: Path, kind: str):
        self.folder, self.kind, self.run = folder, kind, folder / "runs" / "run"
        self.config = config(folder, kind)

    def go_on(self, *overrides: str, **constants: Any) -> Coordinator:
        """Start the run, or resume it."""
        begun = status(self.run) is not None
        if not begun:
            shutil.rmtree(self.run, ignore_errors=True)
        words = ["resume", self.run] if begun else ["run", self.config]
        sets = [
            word
            for override in ('scheduler.kind="dask"', "scheduler.retries=100", *overrides)
            for word in ("--set", override)
        ]
        return Coordinator([*words, "--quiet", *sets], **SHORT | constants)

    def on(self, rig: Rig, **constants: Any) -> Coordinator:
        """Start the run on a cluster, or resume it there."""
        return self.go_on(f"scheduler.address={rig.address}", **constants)

    def held(self) -> bool:
        """Whether a process has the run in hand."""
        try:
            os.close(hold(self.run))
        except BlockingIOError:
            return True
        except FileNotFoundError:
            pass
        return False

    def committed(self) -> bool:
        """Whether some of it is finished."""
        return any((self.run / "checkpoint" / "commits").glob("*.json"))

    def check(self, expected: dict[str, Any]) -> None:
        """It is whole and right."""
        assert status(self.run) == "done"
        assert not (self.run / "checkpoint").exists()
        assert answer(self.run) == expected


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Rig(tmp_path / "rig", 3) as made:
        wait_until(lambda: len(made.workers()) == 3)
        yield made


def sentence(code: int, said: str) -> None:
    """A run ended early with one sentence that says how it goes on."""
    assert code in (1, 130), (code, said)
    assert "longwall resume" in said, said
    assert said.strip().count("\n") == 0, said


class Chaos:
    """Random faults of a cluster and of the coordinator that works on it."""

    def __init__(self, case: Case, seed: str):
        self.case, self._draw = case, random.Random(seed)
        self._rigs, self._clusters = 0, ExitStack()
        self._timers: list[threading.Timer] = []
        self.struck: list[str] = []
        self.gone = False  # whether the scheduler is: what is struck after it does not matter

    def __enter__(self) -> Chaos:
        self._new_rig()
        return self

    def __exit__(self, *exc: object) -> None:
        for timer in self._timers:
            timer.join()
        self._clusters.close()

    def _new_rig(self) -> None:
        self._clusters.close()
        self._rigs += 1
        self.rig = self._clusters.enter_context(
            Rig(self.case.folder / f"rig-{self._rigs}", self._draw.choice([1, 2, 3, 4]))
        )
        wait_until(self.rig.workers)
        self.gone = False

    def strike(self, coordinator: Coordinator) -> None:
        """Break something at a random moment, if the run lasts until then."""
        if self._draw.random() < 0.8:
            wait_until(lambda: self.case.committed() or coordinator.process.poll() is not None)
            time.sleep(self._draw.uniform(0, 0.6))
        else:  # while it begins
            time.sleep(self._draw.uniform(0.2, 2.5))
        workers = self.rig.workers()
        if coordinator.process.poll() is not None or not workers:
            return
        act = self._draw.choice(
            ["one worker", "all workers", "hang", "hang", "scheduler", "coordinator", "interrupt", "one worker"]
        )
        with suppress(psutil.NoSuchProcess):
            if act == "one worker":
                self._draw.choice(workers).kill()
            elif act == "all workers":
                for worker in workers:
                    worker.kill()
            elif act == "hang":
                self._hang(self._draw.choice(workers))
            elif act == "scheduler":
                self.rig.kill_scheduler()
                self.gone = True
            elif act == "coordinator":
                coordinator.process.kill()
            elif not self.case.held():
                return  # it begins
            else:
                coordinator.process.send_signal(signal.SIGINT)
            self.struck.append(act)

    def _hang(self, worker: psutil.Process) -> None:
        def go_on() -> None:
            with suppress(psutil.NoSuchProcess):
                worker.resume()

        worker.suspend()
        self._timers.append(threading.Timer(self._draw.uniform(0.5, 5.0), go_on))
        self._timers[-1].start()

    def mend(self) -> None:
        """After a run ended early: another cluster, if that one is gone, or by chance."""
        if self.gone or self._draw.random() < 0.3:
            self._new_rig()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
def test_random_faults_change_no_result(
    tmp_path: Path, kind: str, seed: int, expected: Callable[[str], dict[str, Any]]
) -> None:
    case = Case(tmp_path, kind)
    with Chaos(case, f"{kind} {seed}") as chaos:
        for _ in range(40):
            coordinator = case.on(chaos.rig, _LATE=2.0)
            while len(chaos.struck) < FAULTS_PER_CASE and coordinator.process.poll() is None:
                chaos.strike(coordinator)
            code, said = coordinator.end()
            if code == 0:
                case.check(expected(kind))
                if len(chaos.struck) == FAULTS_PER_CASE:
                    return
                shutil.rmtree(case.run)
            elif code != -signal.SIGKILL:
                if status(case.run) == "running":  # interrupted while it began
                    assert "coordinator" in chaos.struck or "interrupt" in chaos.struck
                elif code == 2:  # the scheduler was gone before the coordinator came
                    assert chaos.gone, said
                    assert "nothing answers" in said
                elif (case.run / "checkpoint").exists():
                    sentence(code, said)
                chaos.mend()
    raise AssertionError(f"40 attempts, and not done: {chaos.struck}")


def test_the_ranges_of_a_worker_that_hangs_are_done_by_others(rig: Rig, tmp_path: Path, expected: Any) -> None:
    case = Case(tmp_path, "counting")
    coordinator = case.on(rig, _LATE=2.0)
    wait_until(case.committed)
    hanging = rig.workers()[0]
    hanging.suspend()
    try:
        code, said = coordinator.end()
        assert code == 0, said
        case.check(expected("counting"))
    finally:
        hanging.resume()
    time.sleep(1.0)  # it goes on with ranges that others have done
    case.check(expected("counting"))
    shutil.rmtree(case.run)
    code, said = case.on(rig).end()
    assert code == 0, said
    case.check(expected("counting"))


@pytest.mark.parametrize("kind", ["listing", "counts per vertex"])
def test_a_worker_whose_disk_is_full_is_asked_no_more(rig: Rig, tmp_path: Path, kind: str, expected: Any) -> None:
    rig.workers()[1].rlimit(psutil.RLIMIT_FSIZE, (500, 500))
    case = Case(tmp_path, kind)
    code, said = case.on(rig).end()
    assert code == 0, said
    case.check(expected(kind))


def test_where_all_disks_are_full_the_run_can_be_resumed(rig: Rig, tmp_path: Path, expected: Any) -> None:
    for worker in rig.workers():
        worker.rlimit(psutil.RLIMIT_FSIZE, (500, 500))
    case = Case(tmp_path, "listing")
    code, said = case.on(rig).end()
    sentence(code, said)
    assert "File too large" in said
    with Rig(tmp_path / "other", 1) as other:
        code, said = case.on(other).end()
    assert code == 0, said
    case.check(expected("listing"))


def test_a_cluster_without_workers_ends_the_run_with_a_sentence(tmp_path: Path, expected: Any) -> None:
    case = Case(tmp_path, "counting")
    with Rig(tmp_path / "rig", 2, nanny=False) as rig:
        coordinator = case.on(rig, _ALONE_SECONDS=1.0)
        wait_until(case.committed)
        for worker in rig.workers():
            worker.kill()
        code, said = coordinator.end()
        sentence(code, said)
        assert "no worker" in said
        rig.add_worker()
        code, said = case.on(rig).end()
    assert code == 0, said
    case.check(expected("counting"))


def test_workers_that_die_too_often_end_the_run_with_a_sentence(tmp_path: Path, expected: Any) -> None:
    case = Case(tmp_path, "counting")
    with Rig(tmp_path / "rig", 2, environment={"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}) as rig:
        coordinator = case.go_on(f"scheduler.address={rig.address}", "scheduler.retries=0")
        wait_until(case.committed)
        for worker in rig.workers():
            worker.kill()
        code, said = coordinator.end()
        sentence(code, said)
        assert "scheduler.retries" in said
        code, said = case.on(rig).end()
    assert code == 0, said
    case.check(expected("counting"))


@pytest.mark.parametrize("kind", ["counting", "listing"])
def test_an_interrupted_run_lets_go_of_the_workers_and_goes_on(
    rig: Rig, tmp_path: Path, kind: str, expected: Any
) -> None:
    case = Case(tmp_path, kind)
    coordinator = case.on(rig)
    wait_until(case.committed)
    coordinator.process.send_signal(signal.SIGINT)
    code, said = coordinator.end()
    assert code == 130, said
    assert "longwall resume" in said
    with distributed.Client(rig.address) as client:
        wait_until(lambda: not any(client.run(eval, _IS_OPEN).values()))
    assert not list((tmp_path / "spill").glob("*"))
    code, said = case.on(rig).end()
    assert code == 0, said
    case.check(expected(kind))


def test_workers_let_go_of_a_run_whose_coordinator_was_killed(rig: Rig, tmp_path: Path, expected: Any) -> None:
    case = Case(tmp_path, "counting")
    with distributed.Client(rig.address) as client:
        client.wait_for_workers(3)
        client.run(exec, f"import {_MODULE} as it; it._IDLE_SECONDS = 0.5")
        coordinator = case.on(rig)
        wait_until(case.committed)
        coordinator.process.kill()
        assert coordinator.end()[0] == -signal.SIGKILL
        wait_until(lambda: all(client.run(eval, _IS_OVER).values()))
    assert not list((tmp_path / "spill").glob("*/*"))
    code, said = case.on(rig).end()
    assert code == 0, said
    case.check(expected("counting"))


def ended_by(to: Callable[[int, int], None], by: signal.Signals, folder: Path) -> Case:
    """A run on a cluster of its own that is ended by a signal; nothing of the cluster is left."""
    case = Case(folder, "counting")
    coordinator = case.go_on("scheduler.workers=2", "scheduler.threads_per_worker=1")
    wait_until(case.committed)
    started = psutil.Process(coordinator.process.pid).children(recursive=True)
    to(coordinator.process.pid, by)
    code, said = coordinator.end()
    assert code == 128 + by, said
    assert said.strip().count("\n") == 0, said
    assert psutil.wait_procs(started, timeout=60)[1] == []
    assert not list((folder / "spill").glob("*"))
    return case


@pytest.mark.parametrize(
    ("to", "by"), [(os.kill, signal.SIGTERM), (os.killpg, signal.SIGTERM), (os.killpg, signal.SIGHUP)]
)
def test_a_signal_ends_the_cluster_that_was_made_for_the_run(
    tmp_path: Path, to: Callable[[int, int], None], by: signal.Signals
) -> None:
    """To the coordinator alone, or to all processes, as batch systems and terminals send it."""
    ended_by(to, by, tmp_path)


def test_ctrl_c_in_a_terminal_ends_the_cluster_that_was_made_for_the_run(tmp_path: Path, expected: Any) -> None:
    case = ended_by(os.killpg, signal.SIGINT, tmp_path)  # all that the terminal has in front
    code, said = case.go_on("scheduler.workers=1", "scheduler.threads_per_worker=2").end()
    assert code == 0, said
    case.check(expected("counting"))
