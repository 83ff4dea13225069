"""The thread that asks for a phase of one brief task does the task, and signals do not leave it in the middle."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import MakeWorker, NotEnoughMemory, Phase, Task, Worker
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.phases.range_count import RangeCount
from longwall.pipeline.phases.search_count import SearchCount
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.stages.range_counting import CountCliques, CountDiamonds
from longwall.storage.generators.kinds import generate
from longwall.storage.system.signals import held_back, interrupted_by, interrupting

TEN = [Task(0, 10, 10)]
HALVES = [Task(0, 5, 5), Task(5, 10, 5)]


class Noting(Worker):
    def __init__(self, phase: Noted):
        self._phase, self._sum = phase, 0

    def run(self, first: int, last: int) -> None:
        self._phase.seen.append(threading.current_thread())
        self._phase.work()
        self._sum += last - first

    def take_partial(self) -> PartialResult:
        found, self._sum = self._sum, 0
        return PartialResult(found)

    def close(self) -> None:
        self._phase.seen.append("closed")


@dataclass(frozen=True)
class Noted(Phase):
    """Counts its roots, and notes the thread that counts."""

    ranges: Sequence[Task]
    is_brief: bool = True
    work: Callable[[], None] = lambda: None
    seen: list[Any] = field(default_factory=list)
    name = "noted"

    def brief(self, env: Environment) -> bool:
        return self.is_brief

    def tasks(self, env: Environment) -> Sequence[Task]:
        return self.ranges

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        yield lambda: Noting(self)


@pytest.fixture
def env(lab: Any) -> Any:
    return lab.context(lab.graph([(0, 1)]), threads=2)


@pytest.mark.parametrize(
    ("ranges", "brief", "here"),
    [(TEN, True, True), (TEN, False, False), (HALVES, True, False)],
)
def test_one_brief_task_needs_no_thread(env: Any, ranges: Sequence[Task], *, brief: bool, here: bool) -> None:
    phase = Noted(ranges, brief)
    record = env.run(phase)
    assert record.complete
    assert sum(record.values) == 10
    threads = {one for one in phase.seen if one != "closed"}
    assert (threads == {threading.current_thread()}) == here
    assert phase.seen[-1] == "closed"
    assert env.executor.engines == {"cpu"}
    assert sum(load.tasks for load in env.metrics.loads().values()) == len(ranges)
    assert env.run(phase).values == record.values, "finished work is not done again"


def test_a_failure_is_raised_and_the_worker_closed(env: Any) -> None:
    def fail() -> None:
        raise NotEnoughMemory("no room")

    phase = Noted(TEN, work=fail)
    with pytest.raises(NotEnoughMemory, match="no room"):
        env.run(phase)
    assert phase.seen[-1] == "closed"
    assert not env.cancel.is_set(), "the run goes on by another method"
    assert list(env.log.record("noted", 10).missing()) == [(0, 10)]


def test_a_signal_cancels_the_task_and_is_raised_behind_it(env: Any) -> None:
    after = []

    def interrupted() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        after.append(env.cancel.is_set())

    phase = Noted(TEN, work=interrupted)
    with pytest.raises(KeyboardInterrupt), interrupted_by(env.cancel.set):
        env.run(phase)
    assert after == [True], "the task was left in the middle"
    assert phase.seen[-1] == "closed"
    assert list(env.log.record("noted", 10).missing()) == [(0, 10)], "half a result was committed"


def test_what_cancels_a_task_without_a_signal_ends_the_run(env: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        env.run(Noted(TEN, work=env.cancel.set))


def test_signals_are_raised_again_after_a_context_that_holds_them_back() -> None:
    with interrupted_by(lambda: None):
        with held_back():
            pass
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    seen = list[str]()

    def interrupted() -> None:
        with interrupted_by(lambda: seen.append("called")), held_back():
            os.kill(os.getpid(), signal.SIGINT)
            seen.append("held")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert seen == ["called", "held"]


def test_a_context_inside_of_another_leaves_the_signal_to_the_outer_one() -> None:
    seen = list[str]()

    def interrupted() -> None:
        with held_back():
            with held_back():
                os.kill(os.getpid(), signal.SIGINT)
            seen.append("inner")
            with held_back():
                seen.append("another")
            os.kill(os.getpid(), signal.SIGINT)
            seen.append("outer")

    with interrupting(), pytest.raises(KeyboardInterrupt):
        interrupted()
    assert seen == ["inner", "another", "outer"]


def test_only_work_that_is_estimated_is_brief(env: Any) -> None:
    assert RangeCount(CountDiamonds(), 1e6).brief(env)
    assert not RangeCount(CountDiamonds(), 1e9).brief(env)
    assert RangeCount(CountCliques(4), 1e6).brief(env)
    assert not RangeCount(CountCliques(9), 1e6).brief(env), "no estimate says the number of larger cliques"


def test_searches_are_brief_if_the_degrees_bound_their_steps(lab: Any) -> None:
    graph = generate("rmat", seed=1, scale=8, edge_factor=8)
    env = lab.context(graph)
    load_graph(env)
    short, long = (plan_match(parse_pattern(name), graph.stats) for name in ("diamond", "path-7"))
    assert SearchCount(short).brief(env)
    assert not SearchCount(short, limit=5).brief(env), "workers share the limit"
    assert not SearchCount(long).brief(env)
