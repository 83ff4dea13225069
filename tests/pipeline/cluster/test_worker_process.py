"""A worker process opens a run once, and one phase at a time; late requests do no harm, and idle runs are released."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rig import wait_until

import longwall
from longwall.kernels.interface.engine import EngineLost
from longwall.pipeline.cluster import worker_process
from longwall.pipeline.cluster.open_phase import CurrentPhase
from longwall.pipeline.cluster.worker_process import PickledPhase, RunDescription, RunHeader, WorkerProcess
from longwall.pipeline.config import load_config
from longwall.pipeline.execution.derived import Derivation, derived
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import MakeWorker, NotEnoughMemory, Phase, Task, Worker, equal_tasks
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.storage.errors import InputError, RunError

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'longwall[cluster]'")

EVENTS: list[str] = []
"""What phases did in this process."""


@pytest.fixture(autouse=True)
def nothing_happened() -> None:
    EVENTS.clear()
    Counting.most = Counting.made = 0


@dataclass(frozen=True)
class Kept(Derivation[Any]):
    """Something that a process keeps from phase to phase."""

    def build(self, env: Environment) -> Any:
        return SimpleNamespace(close=lambda: EVENTS.append("close what was kept"))


@dataclass(frozen=True)
class Noting(Phase):
    """Counts roots, and notes what happens."""

    letter: str
    fits: bool = True
    seconds: float = 0.0
    interrupts: bool = False
    keeps: bool = False
    sticky = True

    @property
    def name(self) -> str:
        return self.letter

    @property
    def activity(self) -> str:
        return "counting"

    @property
    def keeps_workers(self) -> bool:
        return self.keeps

    def tasks(self, env: Environment) -> list[Task]:
        return equal_tasks(100, 10)

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        if not self.fits:
            raise NotEnoughMemory
        EVENTS.append(f"open {self.letter}")
        derived(env, Kept())
        try:
            yield lambda: Counting(self)
        finally:
            EVENTS.append(f"close {self.letter}")


class Counting(Worker):
    """Adds the lengths of its ranges up."""

    under_way, most, made = 0, 0, 0
    lock = threading.Lock()

    def __init__(self, phase: Noting):
        self._phase, self._sum = phase, 0
        with Counting.lock:
            Counting.under_way, Counting.made = Counting.under_way + 1, Counting.made + 1
            Counting.most = max(Counting.most, Counting.under_way)

    def run(self, first: int, last: int) -> None:
        if self._phase.interrupts:
            raise KeyboardInterrupt
        time.sleep(self._phase.seconds)
        self._sum += last - first

    def take_partial(self) -> PartialResult:
        found, self._sum = self._sum, 0
        return PartialResult(found)

    def close(self) -> None:
        if self._phase.keeps:
            EVENTS.append(f"close a worker of {self._phase.letter}")
        with Counting.lock:
            Counting.under_way -= 1


@pytest.fixture
def current() -> Iterator[CurrentPhase]:
    env: Any = SimpleNamespace(
        cancel=threading.Event(), derived={}, graph=None, engine=SimpleNamespace(faults=nullcontext, workers=1)
    )
    made = CurrentPhase(env)
    yield made
    made.close()


def test_a_phase_stays_open_until_a_later_one_is_asked_for(current: CurrentPhase) -> None:
    for _ in range(3):
        with current.entered(0, lambda: Noting("a")) as opened:
            assert opened.phase == Noting("a")
            assert opened.tasks[-1].last == 100
    with current.entered(4, lambda: Noting("b")) as opened:
        assert opened.number == 4
    current.close()
    assert EVENTS == ["open a", "close a", "open b", "close b"]
    current.close()
    assert len(EVENTS) == 4


def test_a_phase_is_closed_when_no_request_is_under_way_in_it(current: CurrentPhase) -> None:
    with ThreadPoolExecutor(1) as pool:
        with current.entered(0, lambda: Noting("a")):
            later = pool.submit(enter, current, 1, "b")
            time.sleep(0.3)
            assert not later.done()
            assert EVENTS == ["open a"]
        assert later.result() == "b"
    assert EVENTS == ["open a", "close a", "open b"]


def test_a_request_of_an_earlier_phase_is_refused_at_once(current: CurrentPhase) -> None:
    with current.entered(1, lambda: Noting("b")):
        with pytest.raises(RunError, match="the phase is over"):
            enter(current, 0, "a")
        assert enter(current, 1, "b") == "b"
    assert EVENTS == ["open b"]


def test_a_request_that_waits_is_refused_once_a_later_phase_is_asked_for(current: CurrentPhase) -> None:
    with ThreadPoolExecutor(2) as pool:
        with current.entered(0, lambda: Noting("a")):
            late = pool.submit(enter, current, 1, "b")
            wait_until(lambda: current._latest == 1)
            later = pool.submit(enter, current, 2, "c")
            with pytest.raises(RunError, match="the phase is over"):
                late.result(60)
            with pytest.raises(RunError, match="the phase is over"):
                enter(current, 0, "a")
        assert later.result(60) == "c"
    assert EVENTS == ["open a", "close a", "open c"]


def test_a_phase_that_does_not_fit_leaves_nothing_open(current: CurrentPhase) -> None:
    with current.entered(0, lambda: Noting("a")):
        pass
    for _ in range(2):
        with pytest.raises(NotEnoughMemory), current.entered(1, lambda: Noting("b", fits=False)):
            pass
    assert enter(current, 2, "c") == "c"
    assert EVENTS == ["open a", "close a", "open c"]


def test_a_request_that_waits_ends_when_the_run_is_cancelled(current: CurrentPhase) -> None:
    with ThreadPoolExecutor(1) as pool, current.entered(0, lambda: Noting("a")):
        waiting = pool.submit(enter, current, 1, "b")
        current._env.cancel.set()
        with pytest.raises(RunError, match="the run was cancelled"):
            waiting.result(60)
    assert EVENTS == ["open a"]


def enter(current: CurrentPhase, number: int, letter: str) -> str:
    with current.entered(number, lambda: Noting(letter)) as opened:
        return opened.phase.name


@pytest.fixture
def header(tmp_path: Path) -> RunHeader:
    (tmp_path / "graph.txt").write_text("0 1\n1 2\n0 2\n2 3\n")
    (tmp_path / "run" / "checkpoint" / "parts-1").mkdir(parents=True)
    spec = load_config(
        {
            "graph": {"path": str(tmp_path / "graph.txt")},
            "workload": {"kind": "triangles"},
            "engine": {"kind": "cpu"},
            "memory": {"host": "256MiB", "spill": str(tmp_path / "spill")},
            "run": {"name": "run"},
        }
    )
    return RunHeader(
        id="1",
        run=str(tmp_path / "run"),
        config=spec.to_dict(),
        share=1,
        per_device=1,
        version=longwall.__version__,
        shares=False,
    )


@pytest.fixture
def graph(header: RunHeader) -> str:
    """The graph's hash."""
    return longwall.open_graph(header["config"]["graph"]["path"]).content_hash


@pytest.fixture
def process(header: RunHeader) -> Iterator[WorkerProcess]:
    made = WorkerProcess(header, 2)
    yield made
    made.close()


def pickled(number: int, phase: Phase) -> PickledPhase:
    from distributed.protocol.pickle import dumps

    return PickledPhase(number=number, pickled=dumps(phase))


def test_ranges_are_done_in_one_opened_phase(process: WorkerProcess, graph: str) -> None:
    done = [process.do(graph, pickled(0, Noting("a")), [(0, 30), (50, 60)], 60.0, []) for _ in range(2)]
    assert [found["done"] for found in done] == 2 * [[(0, 30), (50, 60)]]
    assert [found["value"] for found in done] == [40, 40]
    process.do(graph, pickled(1, Noting("b")), [(0, 100)], 60.0, [])
    with pytest.raises(RunError, match="the phase is over"):
        process.do(graph, pickled(0, Noting("a")), [(0, 100)], 60.0, [])
    process.close()
    assert EVENTS == ["open a", "close a", "open b", "close b", "close what was kept"]
    assert process.over
    with pytest.raises(RunError, match="the run is over on this worker"):
        process.do(graph, pickled(1, Noting("b")), [(0, 100)], 60.0, [])


def test_as_many_requests_are_done_at_once_as_the_engine_has_threads(process: WorkerProcess, graph: str) -> None:
    phase = pickled(0, Noting("a", seconds=0.02))
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: process.do(graph, phase, [(0, 100)], 60.0, []), range(6)))
    assert [one["value"] for one in found] == 6 * [100]
    assert Counting.most == 2


def test_workers_wait_for_the_next_request_of_their_phase(process: WorkerProcess, graph: str) -> None:
    phase = pickled(0, Noting("a", seconds=0.02, keeps=True))
    for _ in range(2):
        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(lambda _: process.do(graph, phase, [(0, 100)], 60.0, []), range(6)))
        assert [one["value"] for one in found] == 6 * [100], "what others found is not among it"
    assert (Counting.made, Counting.under_way, Counting.most) == (2, 2, 2)
    process.do(graph, pickled(1, Noting("b")), [(0, 100)], 60.0, [])
    assert ["open a", *2 * ["close a worker of a"], "close a", "open b"] == EVENTS
    assert Counting.under_way == 0


def test_workers_that_wait_are_closed_in_the_end(process: WorkerProcess, graph: str) -> None:
    process.do(graph, pickled(0, Noting("a", keeps=True)), [(0, 100)], 60.0, [])
    assert Counting.under_way == 1
    process.close()
    assert EVENTS == ["open a", "close a worker of a", "close a", "close what was kept"]


def test_a_worker_that_failed_is_not_asked_again(process: WorkerProcess, graph: str) -> None:
    phase = pickled(0, Noting("a", keeps=True))
    process.do(graph, phase, [(0, 100)], 60.0, [])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Counting, "run", failing)
        with pytest.raises(RunError, match="the device was lost"):
            process.do(graph, phase, [(0, 100)], 60.0, [])
    assert Counting.under_way == 0
    assert process.do(graph, phase, [(0, 100)], 60.0, [])["value"] == 100, "nothing is left of what failed"
    assert (Counting.made, Counting.under_way) == (2, 1)


def failing(worker: Counting, first: int, last: int) -> None:
    """Fail in the midst of a range."""
    worker._sum += 1
    raise EngineLost("it fell off the bus")


def test_another_graph_is_refused(process: WorkerProcess) -> None:
    with pytest.raises(RunError, match="not the coordinator's"):
        process.do("another", pickled(0, Noting("a")), [(0, 100)], 60.0, [])
    assert not EVENTS


def test_a_worker_that_is_interrupted_says_that_the_run_was_cancelled(process: WorkerProcess, graph: str) -> None:
    with pytest.raises(RunError, match="the run was cancelled"):
        process.do(graph, pickled(0, Noting("a", interrupts=True)), [(0, 100)], 60.0, [])
    assert Counting.under_way == 0


def test_processes_of_a_machine_share_a_graph_and_pay_for_it_alike(header: RunHeader, graph: str) -> None:
    several = header | {"share": 3}
    first = WorkerProcess(several, 1)
    phase = pickled(0, Noting("a"))
    assert first.do(graph, phase, [(0, 100)], 60.0, [])["value"] == 100
    Path(header["config"]["graph"]["path"]).unlink()
    second = WorkerProcess(several, 1)
    assert second.do(graph, phase, [(0, 100)], 60.0, [])["value"] == 100, "nothing is read again"
    for process in (first, second):
        assert process._run is not None
        env = process._run.env
        assert env.resources.host.limit == (256 << 20) // 3
        assert 0 <= 3 * env.resources.host.used - env.graph.nbytes < 1 << 12, "each has a third, and of what names it"
        process.close()


def test_another_version_unpickles_nothing(header: RunHeader) -> None:
    process = WorkerProcess(header | {"version": "9.9"}, 2)
    with pytest.raises(RunError, match=r"the coordinator has 9\.9"):
        process.do("any", PickledPhase(number=0, pickled=b"of another version"), [(0, 100)], 60.0, [])


def test_why_a_run_could_not_be_opened_does_not_grow_with_the_requests(header: RunHeader) -> None:
    Path(header["config"]["graph"]["path"]).unlink()
    process, lengths = WorkerProcess(header, 2), set()
    for _ in range(3):
        with pytest.raises(InputError, match=r"graph\.txt") as caught:
            process.do("any", pickled(0, Noting("a")), [(0, 100)], 60.0, [])
        lengths.add(len(caught.traceback))
    assert len(lengths) == 1
    assert not process.over


@pytest.fixture
def dask(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let requests come as in a worker of Dask."""
    worker = SimpleNamespace(state=SimpleNamespace(nthreads=2), name="worker 0", address="tcp://a:1")
    monkeypatch.setattr(distributed, "get_worker", lambda: worker)
    monkeypatch.setattr(worker_process, "_closed", set())
    yield
    for name in ("1", "2"):
        worker_process._close(name)


def test_a_run_that_is_idle_is_released_and_opened_again(
    dask: None, header: RunHeader, graph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDescription(**header, graph=graph, shared=None, stored=False)
    assert worker_process.serve(run, pickled(0, Noting("a")), [(0, 100)], 60.0, [])["address"] == "tcp://a:1"
    first = worker_process._current
    assert first is not None
    monkeypatch.setattr(worker_process, "_IDLE_SECONDS", 0.0)
    wait_until(lambda: first.over)
    assert EVENTS == ["open a", "close a", "close what was kept"]
    monkeypatch.setattr(worker_process, "_IDLE_SECONDS", 600.0)
    found: Any = worker_process.serve(run, pickled(0, Noting("a")), [(0, 100)], 60.0, [])
    assert found["value"] == 100
    assert worker_process._current is not first


def test_a_run_is_released_when_it_is_closed_or_another_one_begins(
    dask: None, header: RunHeader, graph: str, tmp_path: Path
) -> None:
    (tmp_path / "run" / "checkpoint" / "parts-2").mkdir()
    first, second = (
        RunDescription(**header | {"id": name}, graph=graph, shared=None, stored=False) for name in ("1", "2")
    )
    worker_process.serve(first, pickled(0, Noting("a")), [(0, 100)], 60.0, [])
    worker_process.serve(second, pickled(0, Noting("b")), [(0, 100)], 60.0, [])
    assert EVENTS == ["open a", "close a", "close what was kept", "open b"]
    worker_process._close("1")
    assert len(EVENTS) == 4
    worker_process._close("2")
    assert EVENTS[4:] == ["close b", "close what was kept"]
    late: Any = worker_process.serve(second, pickled(0, Noting("b")), [(0, 100)], 60.0, [])
    assert "the run is over" in late["reason"]
    assert len(EVENTS) == 6


def test_a_refusal_says_whether_the_phase_has_no_room(dask: None, header: RunHeader, graph: str) -> None:
    run = RunDescription(**header, graph=graph, shared=None, stored=False)
    refusal: Any = worker_process.serve(run, pickled(1, Noting("a", fits=False)), [(0, 100)], 60.0, [])
    assert (refusal["fits"], refusal["address"]) == (False, "tcp://a:1")
    late: Any = worker_process.serve(run, pickled(0, Noting("b")), [(0, 100)], 60.0, [])
    assert (late["fits"], late["reason"]) == (True, "the phase is over")
