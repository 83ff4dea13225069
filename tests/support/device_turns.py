"""Tests that need a GPU to themselves wait for the others, and the others for them, where several processes test."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from selection import emulated, no_device


class Turns:
    """A lock between processes that many share, or one has to itself; that one waits only for those before it."""

    def __init__(self, path: Path):
        self._path = path
        with ExitStack() as stack:
            self._gate, self._lock = (stack.enter_context(self._named(name).open("w")) for name in ("gate", "lock"))
            self._files = stack.pop_all()

    def _named(self, name: str) -> Path:
        return self._path.with_name(f"{self._path.name}-{name}")

    @contextmanager
    def taken(self, *, alone: bool) -> Iterator[None]:
        """Hold the lock, together with others or alone."""
        fcntl.flock(self._gate, fcntl.LOCK_EX)  # others do not pass the gate while one waits for them to end
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the files and remove them; processes that have opened them go on."""
        self._files.close()
        for name in ("gate", "lock"):
            self._named(name).unlink(missing_ok=True)


_turns = pytest.StashKey[Turns]()


def pytest_configure(config: pytest.Config) -> None:
    if of_worker := getattr(config, "workerinput", None):  # of pytest-xdist
        config.stash[_turns] = Turns(Path(tempfile.gettempdir()) / f"longwall-tests-{of_worker['testrunuid']}")


def pytest_unconfigure(config: pytest.Config) -> None:
    if turns := config.stash.get(_turns, None):
        turns.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Run a test with its fixtures; those of the emulator have devices of their own."""
    turns = item.config.stash.get(_turns, None)
    if turns is None or emulated() or no_device():
        return (yield)
    with turns.taken(alone=item.get_closest_marker("whole_device") is not None):
        return (yield)
