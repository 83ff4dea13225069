"""What the last ranges of an engine say of the next ones, and whether a second engine slows it down."""

from __future__ import annotations

import random

import pytest

from longwall.pipeline.execution.sharing.pace import Pace
from longwall.pipeline.execution.sharing.trials import Trials


def paced(*ranges: tuple[float, float]) -> Pace:
    pace = Pace()
    for work, seconds in ranges:
        pace.learn(work, seconds)
    return pace


def test_one_range_is_all_work() -> None:
    pace = paced((3.0, 0.5))
    assert pace.single
    assert (pace.fixed, pace.speed, pace.last) == (0.0, 6.0, 3.0)


@pytest.mark.parametrize("fixed", [0.0, 0.001, 0.05])
@pytest.mark.parametrize("speed", [1.0, 1000.0])
def test_ranges_of_unlike_work_tell_the_fixed_time_from_the_speed(fixed: float, speed: float) -> None:
    pace = paced(*((work, fixed + work / speed) for work in (0.01 * speed, 0.1 * speed, speed)))
    assert pace.fixed == pytest.approx(fixed)
    assert pace.speed == pytest.approx(speed)
    assert pace.seconds(2 * speed) == pytest.approx(fixed + 2)
    assert not pace.mostly_fixed


def test_what_no_range_shows_is_not_believed() -> None:
    pace = paced((1.0, 0.05), (4.0, 0.05))
    assert pace.fixed == pytest.approx(0.75 * 0.05)
    assert pace.mostly_fixed
    assert paced((1.0, 0.001), (1.0, 0.5), (4.0, 0.5)).fixed < 0.001  # a range was done in less


def test_work_that_gets_heavier_is_no_fixed_time() -> None:
    draw = random.Random(1)
    for _ in range(100):
        pace = paced(*((work, work ** draw.uniform(1.0, 2.0) / 100) for work in (1.0, 4.0, 20.0, 100.0)))
        assert pace.fixed <= 1 / 100
        assert pace.speed > 0


def judged(before: float, alone: float, after: float, second: float) -> bool:
    trials = Trials()
    assert not trials.learn(before, second, 0.1)
    assert trials.pausing
    if trials.learn(alone, second, 0.2):
        return True
    assert not trials.pausing
    return trials.learn(after, second, 0.3)


def test_a_second_engine_leaves_that_costs_more_than_it_adds() -> None:
    assert judged(1.0, 8.0, 1.0, 2.0)
    assert judged(1.0, 1.5, 1.0, 0.4)
    assert not judged(1.0, 1.0, 1.0, 0.5)
    assert not judged(1.0, 1.3, 1.0, 0.5)


def test_roots_that_get_lighter_are_no_loss() -> None:
    assert not judged(1.0, 1.4, 2.0, 0.5)
    assert not judged(2.0, 1.4, 1.0, 0.5)


def test_there_is_another_trial_where_the_second_engine_adds_less_than_it_cost_before() -> None:
    trials = Trials()
    for speed, elapsed in ((1.0, 0.1), (1.2, 0.2), (1.0, 0.3)):
        assert not trials.learn(speed, 1.0, elapsed)
    assert trials.slowed == pytest.approx(1.2)
    assert not trials.learn(10.0, 1.0, 0.4)
    assert not trials.pausing  # so soon
    assert not trials.learn(10.0, 1.0, 0.7)
    assert trials.pausing
    assert not trials.learn(10.5, 1.0, 0.8)
    assert not trials.pausing
