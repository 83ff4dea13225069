"""Samples of a phase whose every root takes a known time, by a clock that its workers turn."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import MakeWorker, Phase, Task, Worker, equal_tasks
from longwall.pipeline.prediction import phase_sample
from longwall.pipeline.prediction.phase_sample import sample_phase
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph

CALL = 0.001


@cache
def rmat() -> Graph:
    return generate("rmat", seed=7, scale=6, edge_factor=4)


class Time:
    """A clock; `open` seconds pass when a phase is opened."""

    now = 0.0
    opened = 0.0


@dataclass(frozen=True)
class Counted(Phase):
    """Roots that take what a function says."""

    roots: int
    cost: Callable[[int], float]
    closed: list[int]

    @property
    def name(self) -> str:
        return "counted"

    def tasks(self, env: Environment) -> Sequence[Task]:
        return equal_tasks(self.roots, 64)

    @contextmanager
    def open(self, env: Environment) -> Iterator[MakeWorker]:
        yield lambda: CountedWorker(self)


class CountedWorker(Worker):
    """Turns the clock."""

    def __init__(self, phase: Counted) -> None:
        self._phase, self._found = phase, 0

    def run(self, first: int, last: int) -> None:
        assert 0 <= first < last <= self._phase.roots
        self._found += last - first
        Time.now += CALL + sum(map(self._phase.cost, range(first, last)))

    def take_partial(self) -> PartialResult:
        return PartialResult(self._found, ({"name": "x", "bytes": 10 * self._found},))

    def close(self) -> None:
        self._phase.closed.append(1)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    ticking = SimpleNamespace(thread_time=lambda: Time.now, perf_counter=lambda: Time.now, process_time=lambda: 0.0)
    monkeypatch.setattr(phase_sample, "time", ticking)


def sample(lab: Any, cost: Callable[[int], float], seconds: float, roots: int = 20_000, seed: int = 0) -> Any:
    phase = Counted(roots, cost, [])
    found = sample_phase(phase, lab.context(rmat()), seconds, seed)
    assert phase.closed == [1]
    return found


def test_a_phase_that_is_short_is_done_as_a_whole(lab: Any) -> None:
    found = sample(lab, lambda root: 1e-5 * (root % 7), 100.0)
    assert found.share == 1.0
    assert found.seconds == pytest.approx(sum(1e-5 * (root % 7) for root in range(20_000)), abs=110 * CALL)
    assert len(found.strata) > 96


@pytest.mark.parametrize("seed", range(4))
def test_a_long_phase_is_predicted_from_a_part_of_it(lab: Any, seed: int) -> None:
    draw = random.Random(seed)
    # Hubs first, as roots are: a power law, with noise.
    costs = [draw.uniform(0.5, 1.5) * (1 + 100 / (1 + root)) * 0.01 for root in range(20_000)]
    began = Time.now
    found = sample(lab, costs.__getitem__, 40.0, seed=seed)
    assert Time.now - began < 60
    assert 0.02 < found.share < 0.5
    assert found.seconds == pytest.approx(sum(costs), rel=0.15)
    assert found.longest < 20


@pytest.mark.parametrize("seconds", [1e-4, 0.1])
def test_ranges_are_done_twice_only_if_that_is_soon_over(lab: Any, seconds: float) -> None:
    """The first time, ranges may load kernels."""
    done: list[int] = []

    def cost(root: int) -> float:
        done.append(root)
        return seconds

    sample(lab, cost, 1e-3, roots=200)
    times = Counter(done)
    del times[199]  # whose calls are timed first
    assert set(times.values()) == {2 if seconds < 0.1 else 1}
    assert len(times) >= 90


def test_roots_that_take_long_are_not_all_waited_for(lab: Any) -> None:
    began = Time.now
    found = sample(lab, lambda root: 5.0 if root < 199 else 0.0, 1.0, roots=200)
    assert 20 <= Time.now - began < 60
    assert 0 < found.share < 0.1
    assert found.seconds == pytest.approx(199 * 5.0, rel=0.1)


def test_what_a_call_takes_is_not_multiplied(lab: Any) -> None:
    found = sample(lab, lambda root: 1e-7 if root else 1e-6, 0.3, roots=1_000_000)
    assert found.seconds == pytest.approx(0.1 + 105 * CALL, rel=0.3)


def test_bytes_of_files_are_those_of_all_roots(lab: Any) -> None:
    found = sample(lab, lambda _: 0.01, 10.0)
    assert found.share < 0.2
    assert found.file_bytes == pytest.approx(10 * 20_000, rel=0.05)


def test_a_phase_without_roots_takes_nothing(lab: Any) -> None:
    phase = Counted(0, lambda _: 1.0, [])
    found = sample_phase(phase, lab.context(rmat()), 1.0)
    assert (found.seconds, found.longest, found.share) == (0, 0, 1)


def test_an_interrupt_ends_the_sample_and_closes_its_workers(lab: Any) -> None:
    def cost(root: int) -> float:
        if root == 5000:
            raise KeyboardInterrupt
        return 1e-6

    phase, context = Counted(20_000, cost, []), lab.context(rmat())
    with pytest.raises(KeyboardInterrupt):
        sample_phase(phase, context, 1000.0)
    assert context.cancel.is_set()
    assert phase.closed == [1]
