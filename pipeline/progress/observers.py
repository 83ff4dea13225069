"""Observers that write lines, and the choice of an observer for the command line."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from longwall.pipeline.progress.compile_seconds import compile_seconds
from longwall.pipeline.progress.progress_text import amount, progress_text
from longwall.storage.observer import LookAtBudgets, NullObserver, Observer, show_budgets
from longwall.storage.system.plain_text import harmless, harmless_lines

SECONDS_BETWEEN_LINES = 5.0
_STILL = frozenset({"dumb", "unknown"})  # values of TERM: terminals that only print


class PlainObserver:
    """Writes plain lines, one when a phase begins and then one every few seconds.

    Parameters
    ----------
    stream
        Where the lines go; standard error unless given.
    interval
        Least seconds between two progress lines.
    """

    def __init__(self, stream: TextIO | None = None, interval: float = SECONDS_BETWEEN_LINES) -> None:
        self._stream = stream or sys.stderr
        self._interval = interval
        self._lock = threading.Lock()
        self._name, self._unit = "", ""
        self._total: int | None = None
        self._done, self._share = 0, 0.0
        self._began = self._last = time.monotonic()
        self._compiled = 0.0

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """Write that the phase begins."""
        with self._lock:
            self._name, self._total, self._unit, self._done, self._share = name, total, unit, 0, 0.0
            self._began = self._last = time.monotonic()
            self._compiled = compile_seconds()
            self._write(name + (f" ({amount(total, unit)})" if total else ""))

    def advance(self, n: int) -> None:
        """Count the work, and write a line when the last one is old enough."""
        with self._lock:
            self._done += n
            self._write_when_due()

    def near_limit(self, share: float) -> None:
        """Take note of the share, and write a line when the last one is old enough."""
        with self._lock:
            self._share = max(self._share, share)
            self._write_when_due()

    def _write_when_due(self) -> None:
        now = time.monotonic()
        if now - self._last >= self._interval:
            self._last = now
            seconds = now - self._began - (compile_seconds() - self._compiled)
            self._write(progress_text(self._name, self._done, self._total, self._unit, seconds, self._share))

    def note(self, text: str) -> None:
        """Write the message."""
        with self._lock:
            self._write(text)

    def close(self) -> None:
        """Nothing is held open."""

    def _write(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class LastingObserver:
    """Passes progress to an observer until the observer fails: a failing display must not end the work.

    Names and messages are written without control characters.

    Parameters
    ----------
    observer
        One that writes to standard error.
    """

    def __init__(self, observer: Observer) -> None:
        self.observer = observer

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """Pass the event on."""
        self._tell(lambda observer: observer.phase(harmless(name), total, unit))

    def advance(self, n: int) -> None:
        """Pass the event on."""
        self._tell(lambda observer: observer.advance(n))

    def near_limit(self, share: float) -> None:
        """Pass the event on."""
        self._tell(lambda observer: observer.near_limit(share))

    def note(self, text: str) -> None:
        """Pass the event on."""
        self._tell(lambda observer: observer.note(harmless_lines(text)))

    def watch_budgets(self, look: LookAtBudgets) -> None:
        """Pass the budgets on."""
        self._tell(lambda observer: show_budgets(observer, look))

    def close(self) -> None:
        """Pass the event on."""
        self._tell(lambda observer: observer.close())

    def _tell(self, event: Callable[[Observer], None]) -> None:
        try:
            event(self.observer)
        except (OSError, ValueError):  # its reader went away, its disk is full, or it was closed
            self.observer = NullObserver()
            silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Let a stream that cannot be written lead to nowhere: Python would try once more when it ends, and complain."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _in_notebook() -> bool:
    """Whether this is the process of a notebook; a terminal of IPython is none."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def choose_observer(quiet: bool) -> Observer:
    """Return the observer for the command line and for notebooks: none, a live bar, or plain lines.

    There is a bar on a terminal that can move its cursor, and in the output of a notebook's cell.
    """
    if quiet:
        return NullObserver()
    if _in_notebook():
        from longwall.pipeline.progress.notebook_bar import NotebookObserver

        return LastingObserver(NotebookObserver())
    if sys.stderr.isatty() and os.environ.get("TERM", "").lower() not in _STILL:
        from longwall.pipeline.progress.progress_bar import TerminalObserver  # rich costs start-up time

        return LastingObserver(TerminalObserver())
    return LastingObserver(PlainObserver())
