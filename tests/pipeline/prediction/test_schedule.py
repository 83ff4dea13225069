"""The simulated dispatcher, against bounds that hold for every schedule."""

from __future__ import annotations

import random

import pytest

from longwall.pipeline.cluster import dispatcher
from longwall.pipeline.prediction import schedule
from longwall.pipeline.prediction.schedule import simulate


def test_its_constants_are_those_of_the_dispatcher() -> None:
    assert (schedule.CUTS, schedule.DEVICE_CUTS) == (dispatcher._CUTS, dispatcher._DEVICE_CUTS)
    assert schedule.MOST_SECONDS == dispatcher._SECONDS
    assert schedule.LEAST_SECONDS == dispatcher._LEAST_SECONDS


@pytest.mark.parametrize("slots", [1, 2, 7, 64])
def test_no_schedule_is_shorter_than_its_work_or_longer_than_one_of_lists(slots: int) -> None:
    draw = random.Random(slots)
    strata = [draw.expovariate(1.0) for _ in range(96)]
    found = simulate(strata, slots, 0.0, 0.0)
    even = sum(strata) / slots
    assert even <= found.seconds + 1e-9
    # Graham's bound, with the longest piece that is left when others have ended.
    assert found.seconds <= even + max(schedule.LEAST_SECONDS, max(strata))
    assert found.requests >= schedule.CUTS * slots


def test_a_root_that_cannot_be_divided_bounds_the_phase() -> None:
    assert simulate([1.0] * 96, 1000, 40.0, 0.0).seconds == 40.0
    assert simulate([], 4, 0.0, 0.0).seconds == 0.0


def test_the_coordinator_holds_up_many_workers_with_little_work() -> None:
    found = simulate([0.01] * 96, 512, 0.0, 0.01)
    assert found.requests == schedule.CUTS * 512
    assert found.dispatching == pytest.approx(0.01 * found.requests)
    assert found.seconds >= found.dispatching - 0.02
    few = simulate([100.0] * 96, 4, 0.0, 0.01)
    assert few.seconds == pytest.approx(2400, rel=0.01)


def test_work_of_weeks_is_not_simulated_range_by_range() -> None:
    found = simulate([1e6] * 96, 128, 0.0, 0.001)
    assert found.seconds == pytest.approx(96e6 / 128)
    assert found.requests == schedule.CUTS * 128 + int(96e6 / schedule.MOST_SECONDS)
