"""The workers that are started for a run: their processes begin before Dask is imported; one that ends is replaced."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import NamedTuple

from longwall.pipeline.cluster.started.worker_main import END_SECONDS, Meeting, WorkerStart, main

_TERMINAL = (signal.SIGINT, signal.SIGHUP)  # its signals are for the coordinator


class _Started(NamedTuple):
    start: WorkerStart
    process: SpawnProcess


class StartedWorkers:
    """Processes that are workers as soon as there is a scheduler; leaving its context ends them.

    Parameters
    ----------
    starts
        What each begins with.

    Raises
    ------
    RuntimeError
        If this process is itself one that is being started.
    """

    def __init__(self, starts: Sequence[WorkerStart]):
        self._workers: dict[Connection, _Started] = {}  # by what tells of the process' end
        self._watcher: threading.Thread | None = None
        self._woken, self._waker = get_context("spawn").Pipe(duplex=False)
        self._ended: list[SpawnProcess] = []
        try:
            for start in starts:
                self._begin(start)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> StartedWorkers:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the processes."""
        self.close()

    def meet(self, meeting: Meeting, seconds: float) -> tuple[int, int]:
        """Tell the processes of the scheduler, and wait until all are there; then one that ends is replaced.

        Parameters
        ----------
        meeting
            The scheduler.
        seconds
            How long to wait.

        Returns
        -------
        int, int
            How many are there, and how many should be; the others have ended, or take longer.
        """
        until, there, awaited = time.monotonic() + seconds, 0, set(self._workers)
        wanted = len(awaited)
        for place in list(self._workers):
            with suppress(OSError):  # it has ended
                place.send(meeting)
        while awaited and (found := wait(list(awaited), max(until - time.monotonic(), 0.0))):
            for place in awaited.intersection(found):
                awaited.remove(place)
                try:
                    place.recv()
                    there += 1
                except (EOFError, OSError):
                    self._forget(place)
        self._watcher = threading.Thread(target=self._watch, args=(meeting,), name="watch workers", daemon=True)
        self._watcher.start()
        return there, wanted

    def end(self) -> None:
        """Let the processes end, without waiting for them."""
        if self._watcher is not None:
            self._waker.send(None)
            self._watcher.join()
            self._watcher = None
        for place in list(self._workers):
            self._forget(place)

    def close(self) -> None:
        """Let the processes end, and wait until they have."""
        self.end()
        until = time.monotonic() + END_SECONDS
        for process in self._ended:
            process.join(max(until - time.monotonic(), 0.0))
            if process.is_alive():
                process.kill()
                process.join()
        self._waker.close()
        self._woken.close()

    def _begin(self, start: WorkerStart) -> Connection:
        spawned = get_context("spawn")
        here, there = spawned.Pipe()
        process = spawned.Process(target=main, args=(start, there), name=start.name, daemon=True)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _TERMINAL)  # inherited, also by multiprocessing's own
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            there.close()
        self._workers[here] = _Started(start, process)
        return here

    def _forget(self, place: Connection) -> _Started:
        """Let a process end, if it has not."""
        place.close()
        started = self._workers.pop(place)
        self._ended.append(started.process)
        return started

    def _watch(self, meeting: Meeting) -> None:
        """Replace workers that end, until it is woken."""
        beginning: set[Connection] = set()
        while self._woken not in (found := wait([*self._workers, self._woken])):
            for place in self._workers.keys() & set(found):
                try:
                    place.recv()
                    beginning.discard(place)
                    continue
                except (EOFError, OSError):
                    start = self._forget(place).start
                if place not in beginning:  # one that never came would not come again
                    with suppress(OSError):  # the system has no place for it; or it has ended already
                        fresh = self._begin(start)
                        beginning.add(fresh)
                        fresh.send(meeting)
