"""Ranges are done in time slices: neither too long without a look at the clock, nor in slices that waste a device."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from longwall.pipeline.cluster import time_slices
from longwall.pipeline.cluster.time_slices import do_ranges
from longwall.pipeline.execution.phase import equal_tasks
from longwall.storage.errors import RunError


class Clocked:
    """A worker whose slices take the time that `cost` says, on a clock of its own."""

    def __init__(self, cost: Callable[[int], float], patch: pytest.MonkeyPatch):
        self._cost, self._now = cost, 0.0
        self.slices: list[tuple[int, int]] = []
        patch.setattr(time_slices, "time", SimpleNamespace(monotonic=lambda: self._now))

    def run(self, first: int, last: int) -> None:
        self.slices.append((first, last))
        self._now += self._cost(last - first)

    def do(self, asked: list[tuple[int, int]], seconds: float, *, on_device: bool, pieces: int = 10) -> Any:
        tasks = equal_tasks(1000, pieces)
        return do_ranges(self, tasks, asked, seconds, threading.Event(), on_device=on_device)  # type: ignore[arg-type]


def test_a_device_does_whole_tasks_that_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that takes a tenth of a second for one root as for a hundred."""
    worker = Clocked(lambda roots: max(0.1, roots / 1000), monkeypatch)
    assert worker.do([(0, 1000)], 5.0, on_device=True) == [(0, 1000)]
    assert worker.slices == [(begin, begin + 100) for begin in range(0, 1000, 100)]


def test_a_device_does_whole_tasks_after_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first slice is a part of the range; no other begins or ends inside of a task, though more roots are in it."""
    worker = Clocked(lambda roots: 0.05, monkeypatch)
    assert worker.do([(0, 1000)], 100.0, on_device=True) == [(0, 1000)]
    assert worker.slices == [(0, 62), (62, 100), *((begin, begin + 100) for begin in range(100, 1000, 100))]


def test_a_device_looks_at_the_clock_in_tasks_that_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Clocked(lambda roots: max(0.1, roots / 100), monkeypatch)
    ((first, last),) = worker.do([(0, 1000)], 5.0, on_device=True, pieces=1)
    assert first == 0
    assert last < 1000
    assert max(end - begin for begin, end in worker.slices[1:]) <= 100


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("rate", [1.0, 10.0, 1000.0, 1e6])
def test_what_is_done_is_what_was_run(rate: float, on_device: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [(0, 300), (500, 510), (700, 1000)]
    worker = Clocked(lambda roots: roots / rate, monkeypatch)
    done = worker.do(asked, 1.0, on_device=on_device)
    roots = [root for begin, end in worker.slices for root in range(begin, end)]
    assert roots == [root for begin, end in done for root in range(begin, end)]
    assert done[:-1] == asked[: len(done) - 1]
    assert done[-1][0] == asked[len(done) - 1][0]
    assert all(begin // 100 == (end - 1) // 100 for begin, end in worker.slices)


def test_the_engine_of_the_host_takes_a_sixteenth_of_the_time_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Clocked(lambda roots: roots / 1000, monkeypatch)
    worker.do([(0, 1000)], 1.0, on_device=False, pieces=1)
    assert max(end - begin for begin, end in worker.slices) <= 63


def test_what_is_cancelled_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, cancel = Clocked(lambda roots: 1.0, monkeypatch), threading.Event()
    cancel.set()
    with pytest.raises(RunError, match="cancelled"):
        do_ranges(worker, equal_tasks(10, 1), [(0, 10)], 9.0, cancel, on_device=True)  # type: ignore[arg-type]


def test_parts_that_cost_as_much_as_the_whole_are_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every slice reads the same lists, so short slices would read them from a slow disk again and again."""
    worker = Clocked(lambda roots: 10.0, monkeypatch)
    tasks, cancel = equal_tasks(1000, 10), threading.Event()
    for seconds, upto in ((0.01, 100), (5.0, 100), (25.0, 300), (1e3, 1000)):
        worker.slices.clear()
        done = do_ranges(worker, tasks, [(50, 1000)], seconds, cancel, on_device=False, whole_tasks=True)  # type: ignore[arg-type]
        assert done == [(50, upto)]
        assert worker.slices == [(50, 100), *((begin, begin + 100) for begin in range(100, upto, 100))]
