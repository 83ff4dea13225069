"""A line for users who wait while kernels are compiled, and who see no progress."""

import contextvars
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from longwall.kernels.jit.compile_clock import COMPILING
from longwall.kernels.jit.private_folder import cache_notes

SECONDS = 3.0
"""Seconds of compiling in one call before the line is written."""
_BEGINS = "longwall: compiling kernels, which can take a minute or two; "
_KEPT = "this machine keeps them, so that later calls start at once"
_LONGEST_WAIT, _SHORTEST_WAIT = 1.0, 0.05  # seconds between two looks at the clock
_written = threading.Event()
_lock = threading.Lock()


@contextmanager
def noticed_compiling() -> Iterator[None]:
    """Write a line to standard error, once per process, if a call compiles kernels for longer than `SECONDS`."""
    if _written.is_set():
        yield
        return
    notice = _Notice()
    COMPILING.listeners.append(notice.begin)
    try:
        yield
    finally:
        COMPILING.listeners.remove(notice.begin)
        notice.end()


class _Notice:
    """Watches the clock in a thread, which starts with the first kernel and ends with the call."""

    def __init__(self) -> None:
        self._until = COMPILING.seconds() + SECONDS
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        # By the context a notebook knows the cell that the line belongs to.
        self._context = contextvars.copy_context()

    def begin(self) -> None:
        """Start the thread, if this is the first kernel."""
        with self._lock, suppress(RuntimeError):  # if no thread can start, no line is written
            if self._thread is None:
                thread = threading.Thread(
                    target=self._context.run, args=(self._watch,), daemon=True, name="longwall compile notice"
                )
                thread.start()
                self._thread = thread

    def end(self) -> None:
        """End the thread."""
        self._over.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _watch(self) -> None:
        while (left := self._until - COMPILING.seconds()) > 0:
            if self._over.wait(min(max(left, _SHORTEST_WAIT), _LONGEST_WAIT)):
                return
        _write()


def _write() -> None:
    with _lock:
        if _written.is_set() or sys.stderr is None:
            return
        _written.set()
        with suppress(OSError, ValueError):  # standard error is closed
            print(_BEGINS + (cache_notes() or _KEPT), file=sys.stderr, flush=True)
