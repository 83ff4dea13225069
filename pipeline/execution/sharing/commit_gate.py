"""What keeps half a result from being committed: workers commit as long as the gate is open."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Closed(Exception):
    """The gate was closed before: what a worker found may be half a result."""


class CommitGate:
    """Lets any number of workers commit at a time, until it is closed.

    Attributes
    ----------
    closed
        Whether it is.
    """

    def __init__(self) -> None:
        self.closed = False
        self._inside, self._changed = 0, threading.Condition()

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Hold the gate open while the block commits.

        Raises
        ------
        Closed
            If it is closed.
        """
        with self._changed:
            if self.closed:
                raise Closed
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """Close it, once those who are inside have left."""
        with self._changed:
            self.closed = True
            self._changed.wait_for(lambda: not self._inside)
