"""Tests that need a GPU to themselves have it to themselves."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import pytest
from device_turns import Turns

A_WHILE = 0.1  # seconds, in which a test that need not wait has begun


class Taker(Thread):
    """Another process, as good as: its locks are its own."""

    def __init__(self, path: Path, alone: bool):
        super().__init__(daemon=True)
        self._turns, self._alone = Turns(path), alone
        self.has_it = self._may_end = False
        self.start()

    def run(self) -> None:
        with self._turns.taken(alone=self._alone):
            self.has_it = True
            while not self._may_end:
                time.sleep(0.001)
            self.has_it = False

    def end(self) -> None:
        self._may_end = True
        self.join()
        self._turns.close()


def settled(takers: list[Taker], expected: list[bool]) -> bool:
    """Whether they soon have the lock, or not, as expected, and stay so."""
    until = time.monotonic() + 20
    while [taker.has_it for taker in takers] != expected and time.monotonic() < until:
        time.sleep(0.001)
    time.sleep(A_WHILE)
    return [taker.has_it for taker in takers] == expected


@pytest.fixture
def take(tmp_path: Path) -> Iterator[Callable[[bool], Taker]]:
    """Begin to take the lock, alone or not."""
    with ExitStack() as stack:

        def begun(alone: bool) -> Taker:
            taker = Taker(tmp_path / "turns", alone)
            stack.callback(taker.end)
            time.sleep(A_WHILE)
            return taker

        yield begun


def test_one_test_waits_for_those_before_it_and_later_ones_for_it(take: Callable[[bool], Taker]) -> None:
    first, second, alone, later = (take(whether) for whether in (False, False, True, False))
    order = [first, second, alone, later]
    assert settled(order, [True, True, False, False])
    first.end()
    assert settled(order, [False, True, False, False])
    second.end()
    assert settled(order, [False, False, True, False])
    alone.end()
    assert settled(order, [False, False, False, True])


def test_files_are_removed(tmp_path: Path) -> None:
    turns = Turns(tmp_path / "turns")
    assert len(list(tmp_path.iterdir())) == 2
    turns.close()
    assert not list(tmp_path.iterdir())
