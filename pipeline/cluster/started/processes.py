"""The workers that are started for a run: their processes begin before Dask is imported; one that ends is replaced."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import NamedTuple

from longwall.pipeline.cluster.started.worker_main import END_SECONDS, Meeting, WorkerStart, main
from longwall.storage.errors import reason_of

_CUT_SECONDS = 0.1  # until a wait that is cut short ends
_TERMINAL = (signal.SIGINT, signal.SIGHUP)  # its signals are for the coordinator


class _Started(NamedTuple):
    start: WorkerStart
    process: SpawnProcess


class Met(NamedTuple):
    """What became of processes that should be workers."""

    there: int
    wanted: int
    codes: list[int | None]
    """Exit codes of those that ended before they were there, and did not say why; None: not known."""
    reasons: list[str]
    """What others said that cannot be workers."""


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

    def meet(self, meeting: Meeting, seconds: float, cut: threading.Event) -> Met:
        """Tell the processes of the scheduler, and wait until all are there; then one that ends is replaced.

        One that a signal ends before is replaced once.

        Parameters
        ----------
        meeting
            The scheduler.
        seconds
            How long to wait.
        cut
            Set when the run does not want the workers any more: the wait is over soon.

        Returns
        -------
        Met
            Who is there.
        """
        until, there, awaited = time.monotonic() + seconds, 0, set(self._workers)
        wanted, codes, reasons, replaced = len(awaited), list[int | None](), list[str](), set[str]()
        for place in awaited:
            with suppress(OSError):  # it has ended
                place.send(meeting)
        while awaited and not cut.is_set() and (left := until - time.monotonic()) > 0:
            for place in awaited.intersection(wait(list(awaited), min(left, _CUT_SECONDS))):
                awaited.remove(place)
                try:
                    if (reason := place.recv()) is None:
                        there += 1
                    else:
                        reasons.append(reason)
                        self._forget(place)
                except (EOFError, OSError):
                    start, process = self._forget(place)
                    process.join(END_SECONDS)
                    if (process.exitcode or 0) < 0 and start.name not in replaced:
                        replaced.add(start.name)
                        try:
                            awaited.add(self._replace(start, meeting))
                        except OSError as error:
                            reasons.append(reason_of(error))
                    else:
                        codes.append(process.exitcode)
        self._watcher = threading.Thread(target=self._watch, args=(meeting,), name="watch workers", daemon=True)
        self._watcher.start()
        return Met(there, wanted, codes, reasons)

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
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _TERMINAL)
        try:
            resource_tracker.ensure_running()  # inherits what is blocked, and lets the signals through here again
            signal.pthread_sigmask(signal.SIG_BLOCK, _TERMINAL)  # inherited by the process
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            there.close()
        self._workers[here] = _Started(start, process)
        return here

    def _replace(self, start: WorkerStart, meeting: Meeting) -> Connection:
        """Start a process in the place of one that has ended; OSError: the system has no place for it."""
        fresh = self._begin(start)
        with suppress(OSError):  # it has ended already, which is seen where it is waited for
            fresh.send(meeting)
        return fresh

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
                    if place.recv() is None:
                        beginning.discard(place)
                    continue
                except (EOFError, OSError):
                    start = self._forget(place).start
                if place not in beginning:  # one that never came would not come again
                    with suppress(OSError):
                        beginning.add(self._replace(start, meeting))
