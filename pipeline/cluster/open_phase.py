"""The phase that a worker process has open: one at a time, from the first request in it to the first in a later one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from longwall.pipeline.cluster.time_slices import do_ranges
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import MakeWorker, MergingPhase, Phase, Task, Worker, prepared_tasks
from longwall.pipeline.run_store.commit_log import PartialResult, Range
from longwall.storage.errors import RunError
from longwall.storage.streaming.stored_graph import StoredGraph

_WAIT_SECONDS = 0.2


class OpenPhase:
    """A phase that is open in this process.

    Parameters
    ----------
    number
        Its place among the phases that the coordinator dispatches.
    phase
        The phase.
    tasks
        As this process cuts them: its memory is reserved for them.
    make_worker
        Makes its workers.
    threads
        The most requests that run at a time; the process may have more threads.

    Attributes
    ----------
    number, phase, tasks
        See above.
    slots
        A semaphore of `threads`, one for each request that runs.
    """

    def __init__(self, number: int, phase: Phase, tasks: Sequence[Task], make_worker: MakeWorker, threads: int):
        self.number, self.phase, self.tasks = number, phase, tasks
        self._make_worker, self.slots = make_worker, threading.Semaphore(threads)
        self._waiting: list[Worker] = []  # for the next request

    def do(self, env: Environment, ranges: Sequence[Range], seconds: float) -> tuple[list[Range], PartialResult]:
        """Do ranges, or as much of them as `seconds` allow, with a worker that does no others; return what is done.

        A worker that fails, or is cancelled, is closed: what it has is of no use.
        """
        worker = self._worker()
        try:
            on_device, streams = env.resources.on_device, isinstance(env.graph, StoredGraph)
            done = do_ranges(worker, self.tasks, ranges, seconds, env.cancel, on_device=on_device, whole_tasks=streams)
            found = worker.take_partial()
        except BaseException:
            worker.close()
            raise
        if self.phase.keeps_workers:
            self._waiting.append(worker)
        else:
            worker.close()
        return done, found

    def close(self) -> None:
        """Close the workers that wait."""
        with ExitStack() as closing:
            while self._waiting:
                closing.callback(self._waiting.pop().close)

    def _worker(self) -> Worker:
        """Return a worker that waits; where there is none, a new one."""
        with suppress(IndexError):  # another request may take the last one
            return self._waiting.pop()
        return self._make_worker()

    def merge(self, env: Environment, files: Sequence[dict[str, Any]]) -> tuple[list[Range], PartialResult]:
        """Merge files of commits; no range is done by it."""
        assert isinstance(self.phase, MergingPhase)
        return [], self.phase.merge(env, files)


class CurrentPhase:
    """Opens the phase that requests are in, and closes it for a later one.

    Parameters
    ----------
    env
        What the process works with.
    """

    def __init__(self, env: Environment):
        self._env = env
        self._changed = threading.Condition()
        self._open: OpenPhase | None = None
        self._reserved = ExitStack()  # what `_open` has
        self._latest = -1  # the last phase that was asked for
        self._requests = 0  # under way in `_open`

    @contextmanager
    def entered(self, number: int, load: Callable[[], Phase]) -> Iterator[OpenPhase]:
        """Have a phase open during a request in it.

        Parameters
        ----------
        number
            The phase's.
        load
            Returns the phase; called if it is not open.

        Raises
        ------
        RunError
            If a later phase was asked for already, or the run was cancelled.
        NotEnoughMemory
            If there is no room for the phase, and the plan has another way.
        """
        opened = self._enter(number, load)
        try:
            yield opened
        finally:
            with self._changed:
                self._requests -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """Release what the phase has; no request is under way in it."""
        with self._changed:
            self._open = None
            self._reserved.close()

    def _enter(self, number: int, load: Callable[[], Phase]) -> OpenPhase:
        with self._changed:
            self._latest = max(self._latest, number)
            while self._requests and self._open is not None and self._open.number < number == self._latest:
                if self._env.cancel.is_set():
                    break
                self._changed.wait(_WAIT_SECONDS)
            if self._env.cancel.is_set():
                raise RunError("the run was cancelled")
            if number < self._latest:
                raise RunError("the phase is over")
            if self._open is None or self._open.number != number:
                self.close()
                self._open = self._opened(number, load())
            self._requests += 1
            return self._open

    def _opened(self, number: int, phase: Phase) -> OpenPhase:
        tasks = prepared_tasks(phase, self._env)
        make_worker = self._reserved.enter_context(phase.open(self._env))
        threads = 1 if isinstance(self._env.graph, StoredGraph) else phase.threads(self._env)
        opened = OpenPhase(number, phase, tasks, make_worker, threads)
        self._reserved.callback(opened.close)
        return opened
