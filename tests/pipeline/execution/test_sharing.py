"""Sharing a phase costs at most a few percent, for any speeds of the engines: schedules on a simulated clock."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from cases import each_case
from numpy.typing import NDArray

from longwall.pipeline.execution.phase import Task
from longwall.pipeline.execution.second_engine import COMMIT_SECONDS
from longwall.pipeline.execution.task_pool import JOIN_LEFT, LEAST_RANGE, TaskPool, Team

SCAN = 1 << 17
LOOK = 0.01  # seconds between two looks whether an engine may join
BEGINNING = 2e-5  # seconds that a range of the second engine takes besides its work


@dataclass(frozen=True)
class Engines:
    """Two engines at work on the same roots.

    Attributes
    ----------
    lead, second
        Seconds that the first roots take, up to each root: of the leading engine, and of a worker of the other one.
    launch
        Seconds that a range of the leading engine takes besides.
    opening
        Seconds that the second engine needs before its first range.
    workers
        Of the second engine.
    pieces
        Tasks of the phase.
    """

    lead: NDArray[np.float64]
    second: NDArray[np.float64]
    launch: float
    opening: float
    workers: int
    pieces: int = 1

    @property
    def lead_alone(self) -> float:
        return self.pieces * self.launch + float(self.lead[-1])

    @property
    def second_alone(self) -> float:
        return float(self.second[-1]) / self.workers

    @property
    def hardest(self) -> float:
        """Seconds of the second engine for the root that takes it longest: no range is shorter."""
        return float(np.diff(self.second).max())


@dataclass
class Outcome:
    seconds: float = 0.0
    second_share: float = 0.0
    launches: int = 0
    stops: int = 0


class Simulation:
    """The events of a phase, in the order of a clock of its own."""

    def __init__(self, engines: Engines):
        self._engines, self._now = engines, 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        step = SCAN // engines.pieces
        tasks = [Task(first, first + step, step) for first in range(0, SCAN, step)]
        self._lead, self._second = Team("cuda", 1, SCAN), Team("cpu", engines.workers, SCAN)
        self._pool = TaskPool(tasks, self._lead, shared=True, clock=lambda: self._now)
        self._done = np.zeros(SCAN, np.int8)
        self._outcome = Outcome()
        self._stopped = False
        self._doing: list[list[Task]] = [[] for _ in range(engines.workers)]  # what workers have not committed
        self._due = [0.0] * engines.workers
        self._at_work: set[int] = set()

    def run(self) -> Outcome:
        """Let time pass until all roots are done."""
        self._after(0.0, self._lead_takes)
        self._after(LOOK, self._look)
        while self._events:
            self._now, _, event = heapq.heappop(self._events)
            event()
        assert (self._done == 1).all()
        self._outcome.second_share = self._second.size / SCAN
        self._outcome.launches = self._lead.ranges
        return self._outcome

    def _after(self, seconds: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self._now + seconds, len(self._events) + random.getrandbits(40), event))

    def _mark(self, task: Task) -> None:
        self._done[task.first : task.last] += 1
        self._outcome.seconds = self._now

    def _lead_takes(self) -> None:
        task = self._pool.take(self._lead)
        if task is None:
            if not self._at_work or self._stopped:
                for number in range(self._engines.workers):
                    self._commit(number)
            elif self._pool.overdue:
                self._stopped = True
                self._outcome.stops += len(self._at_work)
                for number in self._at_work:
                    self._pool.give_back(self._doing[number])
                    self._doing[number] = []
            if self._pool.wait(self._lead, 0.0):
                self._after(LOOK, self._lead_takes)
            return
        seconds = self._engines.launch + cost(self._engines.lead, task)

        def end() -> None:
            self._pool.done(self._lead, task, seconds)
            self._pool.committed(self._lead, [task])
            self._mark(task)
            self._lead_takes()

        self._after(seconds, end)

    def _look(self) -> None:
        if self._pool.may_join:
            self._after(self._engines.opening, self._join)
        elif self._pool.wait(self._lead, 0.0):
            self._after(LOOK, self._look)

    def _join(self) -> None:
        if self._pool.join(self._second):
            for number in range(self._engines.workers):
                self._due[number] = self._now + COMMIT_SECONDS
                self._second_takes(number)

    def _second_takes(self, number: int) -> None:
        task = self._pool.take(self._second)
        if task is None:
            if self._pool.wait(self._second, 0.0):
                self._after(LOOK, lambda: self._second_takes(number))
            else:
                self._commit(number)
            return
        self._at_work.add(number)
        self._doing[number].append(task)
        seconds = BEGINNING + cost(self._engines.second, task)

        def end() -> None:
            if self._stopped:
                return
            self._at_work.discard(number)
            self._pool.done(self._second, task, seconds)
            if self._now >= self._due[number]:
                self._commit(number)
                self._due[number] = self._now + COMMIT_SECONDS
            self._second_takes(number)

        self._after(seconds, end)

    def _commit(self, number: int) -> None:
        for task in self._doing[number]:
            self._mark(task)
        self._pool.committed(self._second, self._doing[number])
        self._doing[number] = []


def cost(seconds: NDArray[np.float64], task: Task) -> float:
    return float(seconds[task.last] - seconds[task.first])


SHAPES = ("even", "hubs first", "hubs later", "rough")


def engines(
    draw: random.Random, lead: float, second: float, shape: str, *, opening: float = 0.02, workers: int = 15
) -> Engines:
    """Engines that take so many seconds alone, with work that differs from root to root."""
    place = np.arange(1, SCAN + 1) / SCAN
    work = {
        "even": np.ones(SCAN),
        "hubs first": place ** -draw.uniform(0.3, 1.0),
        "hubs later": np.exp(-0.5 * ((place - draw.uniform(0.2, 0.9)) / 0.1) ** 2) + 0.01,
        "rough": np.random.default_rng(draw.getrandbits(32)).pareto(2.5, SCAN) + 0.1,
    }[shape]
    sums = np.concatenate([[0.0], np.cumsum(work)]) / work.sum()
    return Engines(lead * sums, second * workers * sums, draw.uniform(1e-5, 5e-4), opening, workers)


def drawn(draw: random.Random, lead: float, ratio: float, shapes: tuple[str, ...]) -> Engines:
    """The second engine alone takes `ratio` times as long as the leading one."""
    opening, workers = draw.choice([0.005, 0.02, 0.2]), draw.choice([1, 3, 15])
    made = engines(draw, lead, lead * ratio, draw.choice(shapes), opening=opening, workers=workers)
    return replace(made, pieces=draw.choice([1, 4, 64]))


@each_case("seed", range(60))
def test_a_slower_engine_costs_a_tenth_at_most(seed: int) -> None:
    draw = random.Random(seed)
    both = drawn(draw, 10 ** draw.uniform(-3, 1), 10 ** draw.uniform(0, 2), SHAPES)
    outcome = Simulation(both).run()
    assert outcome.seconds <= 1.1 * both.lead_alone + 4 * both.launch + both.hardest


@each_case("seed", range(60))
def test_a_faster_engine_loses_until_it_has_joined(seed: int) -> None:
    draw = random.Random(seed)
    both = drawn(draw, 10 ** draw.uniform(-2, 0.5), 10 ** draw.uniform(-1, 0), ("even", "rough"))
    outcome = Simulation(replace(both, pieces=1)).run()
    joining = both.opening + JOIN_LEFT + LOOK
    # The other engine may have begun a range just before, which takes as long as the phase has run.
    assert outcome.seconds <= 1.05 * both.second_alone + 2 * joining + 0.02


@each_case("shape", SHAPES)
def test_engines_share_by_their_speeds(shape: str) -> None:
    both = engines(random.Random(1), 2.0, 4.0, shape)
    outcome = Simulation(both).run()
    # 1.5 without any loss; where the first roots are light ones, the phase looks short, and the lead takes all of it
    assert both.lead_alone / outcome.seconds > (0.99 if shape == "hubs later" else 1.35)


@each_case("seconds", [1e-4, 1e-2, 5e-2])
@each_case("shape", ["even", "rough"])
def test_a_short_phase_is_not_shared(seconds: float, shape: str) -> None:
    outcome = Simulation(engines(random.Random(1), seconds, seconds, shape)).run()
    assert outcome.second_share == 0
    assert outcome.launches <= 4


@each_case("seed", range(20))
def test_a_root_that_takes_the_second_engine_long_is_done_by_the_leading_one(seed: int) -> None:
    draw = random.Random(seed)
    both = engines(draw, 3.0, 9.0, "even")
    slow = both.second.copy()
    for root in draw.sample(range(SCAN * 15 // 16, SCAN), 3):
        slow[root + 1 :] += 20.0  # more than the whole phase
    outcome = Simulation(replace(both, second=slow)).run()
    assert outcome.stops
    assert outcome.seconds <= 1.03 * both.lead_alone + 4 * both.launch + 2 * LEAST_RANGE
