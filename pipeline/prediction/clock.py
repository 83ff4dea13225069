"""Time what this process does as if it had the machine to itself."""

import time


class Clock:
    """Times a piece of work by the elapsed time and by that of the process' processors, from when it is made.

    Attributes
    ----------
    elapsed, used
        Seconds of both, once it is stopped.
    """

    def __init__(self) -> None:
        self._began = time.perf_counter(), time.process_time()
        self.elapsed = self.used = 0.0

    def stop(self) -> "Clock":
        """Note the seconds so far."""
        self.elapsed, self.used = time.perf_counter() - self._began[0], time.process_time() - self._began[1]
        return self

    def quiet(self, threads: int, busy: float = 1.0) -> float:
        """Return the seconds as they would be if others took nothing of the machine's processors.

        Parameters
        ----------
        threads
            That may share the work: it takes no less than their even part of the processors' time.
        busy
            How many times as long as on a quiet machine everything takes now.
        """
        return max(min(self.elapsed / busy, self.used), self.used / threads)
