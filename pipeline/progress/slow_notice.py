"""A line for users who wait for a call, and who see no progress."""

import sys
import threading
from contextlib import suppress
from time import perf_counter

from longwall.kernels.jit.compile_clock import COMPILING
from longwall.pipeline.progress.progress_text import progress_text
from longwall.storage.observer import NullObserver

SECONDS = 30.0
"""Seconds of a call, without those of compiling, before the line is written."""
_written = threading.Event()


class SlowNotice(NullObserver):
    """Writes a line to standard error, once per process, if a call reports progress after `SECONDS`.

    Parameters
    ----------
    hint
        What would make the call shorter, as a part of a sentence.
    """

    def __init__(self, hint: str = "") -> None:
        self._hint = f"{hint}; " if hint else ""
        self._lock = threading.Lock()
        self._began: float | None = None
        self._phase: tuple[str, int | None, str] = "", None, ""
        self._of_phase, self._done = 0.0, 0

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """Begin a phase, and the call if it is the first one."""
        if _written.is_set():
            return
        with self._lock:
            self._phase, self._of_phase, self._done = (name, total, unit), self._now(), 0
            if self._began is None:
                self._began = self._of_phase

    def advance(self, n: int) -> None:
        """Write the line, if it is time."""
        if _written.is_set():
            return
        with self._lock:
            self._done += n
            now = self._now()
            if self._began is None or now - self._began < SECONDS or _written.is_set():
                return
            _written.set()
            name, total, unit = self._phase
            text = progress_text(name, self._done, total, unit, now - self._of_phase)
        line = f"longwall: after {now - self._began:.0f} s: {text}; {self._hint}progress=True shows how far a call is"
        with suppress(OSError, ValueError, AttributeError):  # standard error is closed
            print(line, file=sys.stderr, flush=True)

    def _now(self) -> float:
        return perf_counter() - COMPILING.seconds()
