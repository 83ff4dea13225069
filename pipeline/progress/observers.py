"""Observers that write lines, on a stream or in a notebook, and the choice of one."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from html import escape
from typing import Any, TextIO

from longwall.pipeline.progress.compile_seconds import compile_seconds
from longwall.pipeline.progress.progress_text import amount, duration, progress_text, seconds_left
from longwall.storage.errors import InputError
from longwall.storage.observer import LookAtBudgets, NullObserver, Observer, show_budgets
from longwall.storage.system.plain_text import harmless, harmless_lines

PROGRESS = ("auto", "lines", "json")
SECONDS_BETWEEN_LINES = 5.0
_BETWEEN = 0.25  # least seconds between two pictures of a notebook's bar: each is a message to the browser
_STILL = frozenset({"dumb", "unknown"})  # values of TERM: terminals that only print


class PlainObserver:
    """Writes plain lines, one when a phase begins and then one every few seconds.

    Parameters
    ----------
    stream
        Where the lines go; standard error unless given.
    interval
        Least seconds between two progress lines.
    stamps
        Whether each line begins with the time.
    """

    def __init__(
        self, stream: TextIO | None = None, interval: float = SECONDS_BETWEEN_LINES, *, stamps: bool = False
    ) -> None:
        self._stream = stream or sys.stderr
        self._interval, self._stamps = interval, stamps
        self._lock = threading.Lock()
        self._name, self._unit = "", ""
        self._total: int | None = None
        self._done, self._share = 0, 0.0
        self._began = self._last = time.monotonic()
        self._compiled = 0.0

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """Write that the phase begins."""
        with self._lock:
            self._end_phase()
            self._name, self._total, self._unit, self._done, self._share = name, total, unit, 0, 0.0
            self._began = self._last = time.monotonic()
            self._compiled = compile_seconds(unit)
            self._begin_phase()

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
            self._progress()

    def note(self, text: str) -> None:
        """Write the message."""
        with self._lock:
            self._note(text)

    def close(self) -> None:
        """End the last phase; nothing is held open."""
        with self._lock:
            self._end_phase()

    def _seconds(self) -> float:
        """Return the seconds of the phase, without those in which kernels were compiled."""
        return time.monotonic() - self._began - (compile_seconds(self._unit) - self._compiled)

    def _begin_phase(self) -> None:
        self._write(self._name + (f" ({amount(self._total, self._unit)})" if self._total else ""))

    def _progress(self) -> None:
        self._write(progress_text(self._name, self._done, self._total, self._unit, self._seconds(), self._share))

    def _note(self, text: str) -> None:
        self._write(text)

    def _end_phase(self) -> None:
        """Nothing is written: the next line says what comes then."""

    def _write(self, text: str) -> None:
        stamp = f"{local_time()} " if self._stamps else ""
        print("\n".join(stamp + line for line in text.split("\n")), file=self._stream, flush=True)


class JsonObserver(PlainObserver):
    """Writes an object of JSON on a line of its own for each event, and one every few seconds of a phase."""

    def __init__(self, stream: TextIO | None = None, interval: float = SECONDS_BETWEEN_LINES) -> None:
        super().__init__(stream, interval)
        self._look: LookAtBudgets = dict

    def watch_budgets(self, look: LookAtBudgets) -> None:
        """Write how much of each budget is in use, too."""
        self._look = look

    def _begin_phase(self) -> None:
        self._say("phase", total=self._total, unit=self._unit)

    def _progress(self) -> None:
        seconds = self._seconds()
        left = seconds_left(self._done, self._total, seconds, self._share)
        used = {name: {"used": used, "limit": limit} for name, (used, limit) in self._look().items()}
        figures = {"total": self._total, "unit": self._unit, "seconds": round(seconds, 3)}
        self._say("progress", done=self._done, **figures, left=None if left is None else round(left, 3), budgets=used)

    def _end_phase(self) -> None:
        if self._name:
            self._say("end", done=self._done, unit=self._unit, seconds=round(self._seconds(), 3))
        self._name = ""

    def _note(self, text: str) -> None:
        self._say("note", text=text)

    def _say(self, event: str, **facts: object) -> None:
        name = {} if event == "note" else {"phase": self._name}
        self._write(json.dumps({"time": local_time(), "event": event} | name | facts))


class NotebookObserver(PlainObserver):
    """Shows a line per phase in the output of a notebook's cell; the last one has a bar that moves, without widgets."""

    def __init__(self) -> None:
        super().__init__(interval=_BETWEEN)
        self._lines: list[str] = []
        self._handle: Any = None

    def close(self) -> None:
        """Leave the lines as they are, without a bar."""
        with self._lock:
            self._end_phase()
            if self._handle is not None:
                self._progress()

    def _begin_phase(self) -> None:
        self._progress()

    def _end_phase(self) -> None:
        if self._name:
            seconds = duration(self._seconds())
            took = f"{amount(self._done, self._unit)} in {seconds}" if self._done else seconds
            self._lines.append(f"{self._name}: {took}")
        self._name = ""

    def _note(self, text: str) -> None:
        self._lines.append(text)
        self._progress()

    def _progress(self) -> None:
        from IPython.display import HTML, display

        page = HTML(self._html())
        if self._handle is None:
            self._handle = display(page, display_id=True)
        else:
            self._handle.update(page)

    def _html(self) -> str:
        lines = [escape(line) for line in self._lines]
        if self._name:
            text = progress_text(self._name, self._done, self._total, self._unit, self._seconds(), self._share)
            share = max(self._done / self._total if self._total else 0.0, self._share)
            value = f' value="{min(share, 1):.4f}"' if share else ""  # without one, it moves to and fro
            lines.append(f'<progress max="1"{value} style="width:16em;max-width:40%"></progress> {escape(text)}')
        return "".join(f"<div>{line}</div>" for line in lines)


def local_time() -> str:
    """Return the time to the second, in ISO 8601 with the offset of this machine."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


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
    with suppress(AttributeError, OSError, ValueError):  # a program's own writer has no descriptor
        number, nowhere = stream.fileno(), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


def _in_notebook() -> bool:
    """Whether this is the process of a notebook; a terminal of IPython is none."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def choose_observer(quiet: bool, progress: str = "auto") -> Observer:
    """Return the observer for the command line and for notebooks: none, a live bar, plain lines, or JSON.

    There is a bar on a terminal that can move its cursor, and in the output of a notebook's cell. Lines that no
    terminal shows begin with the time.

    Raises
    ------
    InputError
        If there is no such form of progress.
    """
    if progress not in PROGRESS:
        raise InputError(f"--progress: expected {', '.join(PROGRESS[:-1])} or {PROGRESS[-1]}, not {progress:.60}")
    if quiet or sys.stderr is None:  # as in a program without a console
        return NullObserver()
    if progress != "auto":
        return LastingObserver(JsonObserver() if progress == "json" else PlainObserver(stamps=True))
    if _in_notebook():
        return LastingObserver(NotebookObserver())
    in_terminal = _in_terminal()
    if in_terminal and os.environ.get("TERM", "").lower() not in _STILL:
        from longwall.pipeline.progress.progress_bar import TerminalObserver  # rich costs start-up time

        return LastingObserver(TerminalObserver())
    return LastingObserver(PlainObserver(stamps=not in_terminal))


def _in_terminal() -> bool:
    """Say whether standard error is a terminal; a program may have closed it, or replaced it by its own writer."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False
