"""The seconds in which this process compiled kernels, so that the seconds and rates of work can leave them out."""

import threading
import time
from collections.abc import Callable


class _Clock:
    """Runs while at least one kernel is compiled: a kernel may need others first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._going, self._began, self._before = 0, 0.0, 0.0
        self.listeners: list[Callable[[], None]] = []  # the clock calls each when it begins to run

    def begin(self) -> None:
        """Begin with a kernel."""
        with self._lock:
            starts = not self._going
            if starts:
                self._began = time.perf_counter()
            self._going += 1
        if starts:
            for listener in list(self.listeners):
                listener()

    def end(self) -> None:
        """End with a kernel."""
        with self._lock:
            self._going -= 1
            if not self._going:
                self._before += time.perf_counter() - self._began

    def seconds(self) -> float:
        """Return the seconds up to now."""
        with self._lock:
            return self._before + (time.perf_counter() - self._began if self._going else 0.0)


COMPILING = _Clock()
