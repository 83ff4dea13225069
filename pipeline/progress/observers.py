"""Progress as events: what a run tells its observer, and the observers that need no terminal.

The observer for a terminal is in `longwall.pipeline.progress.progress_bar`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TextIO

from longwall.storage.memory.sizes import round_size

SECONDS_BETWEEN_LINES = 5.0


class Observer(Protocol):
    """Receives the events of a run; every method may be called from any thread."""

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """Begin a phase of `total` units of work (None: unknown); the phase before it is over."""

    def advance(self, n: int) -> None:
        """`n` more units of the present phase are done."""

    def near_limit(self, share: float) -> None:
        """Say which share (0 to 1) of a limit is reached, where the present phase ends before all its work is done."""

    def note(self, text: str) -> None:
        """Tell the user one sentence."""

    def close(self) -> None:
        """No further events come."""


class NullObserver:
    """Says nothing: for ``--quiet`` and for use as a library."""

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """Ignore the event."""

    def advance(self, n: int) -> None:
        """Ignore the event."""

    def near_limit(self, share: float) -> None:
        """Ignore the event."""

    def note(self, text: str) -> None:
        """Ignore the event."""

    def close(self) -> None:
        """Ignore the event."""


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

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """Write that the phase begins."""
        with self._lock:
            self._name, self._total, self._unit, self._done, self._share = name, total, unit, 0, 0.0
            self._began = self._last = time.monotonic()
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
            seconds = now - self._began
            self._write(progress_text(self._name, self._done, self._total, self._unit, seconds, self._share))

    def note(self, text: str) -> None:
        """Write the sentence."""
        with self._lock:
            self._write(text)

    def close(self) -> None:
        """Nothing is held open."""

    def _write(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class LastingObserver:
    """Tells an observer what there is to tell, until that fails: what cannot be shown must not end the work.

    Parameters
    ----------
    observer
        One that writes to standard error.
    """

    def __init__(self, observer: Observer) -> None:
        self.observer = observer

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """Pass the event on."""
        self._tell(lambda observer: observer.phase(name, total, unit))

    def advance(self, n: int) -> None:
        """Pass the event on."""
        self._tell(lambda observer: observer.advance(n))

    def near_limit(self, share: float) -> None:
        """Pass the event on."""
        self._tell(lambda observer: observer.near_limit(share))

    def note(self, text: str) -> None:
        """Pass the event on."""
        self._tell(lambda observer: observer.note(text))

    def close(self) -> None:
        """Pass the event on."""
        self._tell(lambda observer: observer.close())

    def _tell(self, event: Callable[[Observer], None]) -> None:
        try:
            event(self.observer)
        except (OSError, ValueError):  # whoever read it went away, its disk is full, or it was closed
            self.observer = NullObserver()
            silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Let a stream that cannot be written lead to nowhere: Python would try once more when it ends, and complain."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def amount(n: float, unit: str) -> str:
    """Return ``12,345 tasks``, or ``1.2 GiB`` where the unit is bytes."""
    return round_size(n) if unit == "bytes" else f"{n:,.0f} {unit}"


def duration(seconds: float) -> str:
    """Return ``0:42``, ``12:05`` or ``3:00:00``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def rate_text(done: int, total: int | None, unit: str, seconds: float, share: float = 0.0) -> str:
    """Return the rate, and the remaining time where that is known; empty before any work is done.

    Parameters
    ----------
    done, total, unit
        The work.
    seconds
        Time since it began.
    share
        The share of a limit that is reached: the work ends where it is 1.
    """
    if seconds <= 0:
        return ""
    parts = [f"{amount(done / seconds, unit)}/s"] if done else []
    rests = [max(total - done, 0) * seconds / done] if done and total else []
    if share > 0:
        rests.append(max(1 - share, 0) * seconds / share)
    if rests:
        parts.append(f"{duration(min(rests))} left")
    return ", ".join(parts)


def progress_text(name: str, done: int, total: int | None, unit: str, seconds: float, share: float = 0.0) -> str:
    """Return one plain line of progress, such as ``mining: 40% of 1,000 tasks, 20 tasks/s, 0:30 left``."""
    state = f"{min(done / total, 1):.0%} of {amount(total, unit)}" if total else amount(done, unit)
    return ", ".join(part for part in (f"{name}: {state}", rate_text(done, total, unit, seconds, share)) if part)


def choose_observer(quiet: bool) -> Observer:
    """Return the observer for the command line: none, a live bar on a terminal, or plain lines."""
    if quiet:
        return NullObserver()
    if sys.stderr.isatty():
        from longwall.pipeline.progress.progress_bar import TerminalObserver  # rich costs start-up time

        return LastingObserver(TerminalObserver())
    return LastingObserver(PlainObserver())
