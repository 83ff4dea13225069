"""Run independent tasks on the threads of an engine; the answer does not depend on how they are dealt out.

Finished ranges are committed to the run's journal as the work goes on; what the journal has already is not done
again.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple, Protocol

from longwall.kernels.interface.engine import Engine, WorkspaceTooLarge
from longwall.kernels.interface.workspaces import Workspace
from longwall.pipeline.execution.adaptive_batch import AdaptiveBatch, shrink_page_cache
from longwall.pipeline.execution.engine_errors import engine_faults
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.run_store import commit_log
from longwall.pipeline.run_store.commit_log import PartialResult, Phase
from longwall.storage.errors import FinalError, InputError
from longwall.storage.memory.sizes import round_size

_POLL_SECONDS = 0.1
_COMMITS_COST = 0.05  # of the time, at most
_SHORT = {
    "host": "out of memory{}: lower memory.host or use a machine with more",
    "device": "the device is out of memory{}: free what other processes take of it, or lower memory.device",
    "limit": "memory.device is too small{}: raise it",
}
_CRASH_COSTS = 0.02  # of the time since the phase began, where that is more than COMMIT_SECONDS


class Task(NamedTuple):
    """A range of roots, and how large it is: the unit of progress."""

    first: int
    last: int
    size: int


class Worker(ABC):
    """What a thread works with, and what it found since it was last asked.

    Parameters
    ----------
    context
        The run.
    scratch
        The engine's scratch; its bytes on the host are booked until the worker is closed.
    """

    def __init__(self, context: Environment, scratch: Workspace):
        self._booking = context.resources.host.reserve(scratch.workspace_bytes, "a worker's scratch")

    @abstractmethod
    def run(self, first: int, last: int) -> None:
        """Do the task of the roots `first` to `last` - 1."""

    @abstractmethod
    def take(self) -> PartialResult:
        """Give what was found since the last call, on disk where it is in files, and forget it."""

    def close(self) -> None:
        """Let go of what was not taken."""
        self._booking.release()


class Dividing(Worker):
    """A worker that does its tasks in parts where memory is short."""

    def __init__(self, context: Environment, scratch: Workspace):
        super().__init__(context, scratch)
        self._context, self._portion = context, AdaptiveBatch(context.engine)

    @abstractmethod
    def do(self, first: int, last: int) -> None:
        """Do a range; where an allocation fails nothing may have changed, and it is called again, for a part of it."""

    def run(self, first: int, last: int) -> None:
        """Do a task, in parts."""
        there = self._context.on_engine
        make_room = partial(shrink_page_cache, None if there is None else there.graph.pages)
        while first < last and not self._context.cancel.is_set():
            first = self._portion.take(last - first, partial(self._done, first), make_room)

    def _done(self, first: int, size: int) -> int:
        self.do(first, first + size)
        return first + size


class Summing(Dividing):
    """A worker whose tasks give integers."""

    def __init__(self, context: Environment, scratch: Workspace):
        super().__init__(context, scratch)
        self._sum = 0

    @abstractmethod
    def count(self, first: int, last: int) -> int:
        """Give the number of a range; see `do`."""

    def do(self, first: int, last: int) -> None:
        """Add a range's number."""
        self._sum += self.count(first, last)

    def take(self) -> PartialResult:
        """Give the sum."""
        found, self._sum = self._sum, 0
        return PartialResult(found)


def ranges(total: int, pieces: int) -> list[Task]:
    """Cut 0 to total - 1 into about `pieces` ranges of equal length."""
    step = max(-(-total // max(pieces, 1)), 1)
    return [Task(first, min(first + step, total), min(step, total - first)) for first in range(0, total, step)]


class Work(NamedTuple):
    """What there is to do in a phase, as `run_tasks` is told."""

    phase: Phase
    tasks: Sequence[Task]
    workers: int
    make_worker: Callable[[int], Worker]
    kept: bool = False
    rows: int | None = None
    combine: Callable[[Sequence[Any]], Any] | None = None
    merge: Callable[[Sequence[dict[str, Any]]], PartialResult] | None = None


class Scheduler(Protocol):
    """Where the tasks of a phase are done.

    Attributes
    ----------
    engines
        Names of the engines that worked so far, where others than this process's do.
    """

    engines: set[str]

    def run(self, context: Environment, work: Work) -> list[Any]:
        """Do what the phase lacks; see `run_tasks`."""
        ...


def run_tasks(
    context: Environment,
    phase: Phase,
    tasks: Sequence[Task],
    workers: int,
    make_worker: Callable[[int], Worker],
    *,
    kept: bool = False,
    rows: int | None = None,
    combine: Callable[[Sequence[Any]], Any] | None = None,
    merge: Callable[[Sequence[dict[str, Any]]], PartialResult] | None = None,
) -> list[Any]:
    """Run every task that the phase lacks, where the run's scheduler says.

    Parameters
    ----------
    context
        The run: its observer sees every finished task, its cancel event stops the rest.
    phase
        Where finished ranges are committed.
    tasks
        Ranges of roots.
    workers
        Number of threads, where the tasks are done in this process.
    make_worker
        Makes the worker with that number, in the worker's thread.
    kept
        Whether a process keeps something of roots that it did, and does them quicker in the next phase that is `kept`.
    rows
        How many rows are wanted at most of a phase whose values are the rows of its result files; the workers of
        this process see to it themselves.
    combine
        Makes one value of several: what many workers gave at about the same time needs only one commit then.
    merge
        Gives what replaces some files of commits, with the same contents in all: workers of other processes merge
        files by and by, in a tree, so that they do not pile up.

    Returns
    -------
    list
        The values of all commits of the phase, those of an earlier attempt included.

    Raises
    ------
    InputError
        If the scratch of a worker does not fit the budget.
    FinalError
        If a count does not fit 64-bit integers.
    KeyboardInterrupt
        If the work was interrupted.
    Exception
        Whatever else a worker raised first; the other workers are stopped.
    """
    scheduler = context.scheduler or LocalScheduler()
    return scheduler.run(context, Work(phase, tasks, workers, make_worker, kept, rows, combine, merge))


class LocalScheduler:
    """The threads of this process."""

    def run(self, context: Environment, work: Work) -> list[Any]:
        """Deal the tasks out; each worker commits what it found when it is due."""
        phase, tasks, workers, make_worker, *_ = work
        left = list(missing_tasks(tasks, phase))
        context.observer.advance(sum(task.size for task in tasks) - sum(task.size for task in left))
        queue: Iterator[Task] = iter(left)
        lock = threading.Lock()

        def do_tasks(worker: Worker) -> None:
            finished: list[tuple[int, int]] = []
            start = time.monotonic()
            due = start + commit_log.COMMIT_SECONDS
            while not context.cancel.is_set():
                with lock:
                    task = next(queue, None)
                if task is None:
                    break
                worker.run(task.first, task.last)
                if context.cancel.is_set():
                    return  # an interrupted kernel gives half a result, which is in what the worker would give
                finished.append((task.first, task.last))
                context.observer.advance(task.size)
                if (began := time.monotonic()) >= due:
                    phase.commit(finished, worker.take())
                    finished = []
                    now = time.monotonic()
                    rest = max((now - start) * _CRASH_COSTS, (now - began) / _COMMITS_COST)
                    due = now + max(commit_log.COMMIT_SECONDS, rest)
            if finished:
                phase.commit(finished, worker.take())

        run_threads(context, min(max(workers, 1), len(left)), make_worker, do_tasks)
        if not phase.complete:
            raise KeyboardInterrupt  # one that Python swallowed, in a finalizer
        return [partial.value for partial in phase.partials]


def run_threads(
    context: Environment, number: int, make_worker: Callable[[int], Worker], work: Callable[[Worker], None]
) -> None:
    """Let so many threads work, each with a worker of its own, until all have ended.

    Raises
    ------
    Exception
        See `run_tasks`.
    """
    failures: list[BaseException] = []

    def fail(failure: BaseException) -> None:
        failures.append(failure)
        context.cancel.set()
        context.engine.interrupt()

    def loop(number: int) -> None:
        worker: Worker | None = None
        try:
            with user_errors(context.engine):
                worker = make_worker(number)
                work(worker)
        except BaseException as failure:  # handed to the main thread below
            fail(failure)
        try:
            if worker is not None:
                worker.close()
        except BaseException as failure:
            fail(failure)

    # Not by `join`: where that is interrupted, Python 3.11 takes threads that still run for ended.
    ended = [threading.Event() for _ in range(number)]

    def work_through(number: int) -> None:
        try:
            loop(number)
        finally:
            ended[number].set()

    for one in range(number):
        threading.Thread(target=work_through, args=(one,), daemon=True).start()
    try:
        for event in ended:
            while not event.wait(_POLL_SECONDS):
                pass
    except BaseException:
        context.cancel.set()
        context.engine.interrupt()
        _wait(ended)
        raise
    if failures:
        raise failures[0]


def _wait(ended: Sequence[threading.Event]) -> None:
    """Wait for threads that are stopping, however impatient the user is: they write to the run's folder."""
    for event in ended:
        while not event.is_set():
            with suppress(KeyboardInterrupt):
                event.wait()


def missing_tasks(tasks: Sequence[Task], phase: Phase) -> Iterator[Task]:
    """The tasks without what the phase has, each cut where it has to be."""
    gaps = list(phase.missing())
    at = 0
    for task in tasks:
        while at < len(gaps) and gaps[at][1] <= task.first:
            at += 1
        following = at
        while following < len(gaps) and gaps[following][0] < task.last:
            first, last = max(gaps[following][0], task.first), min(gaps[following][1], task.last)
            yield Task(first, last, task.size * (last - first) // (task.last - task.first))
            following += 1


@contextmanager
def user_errors(engine: Engine) -> Iterator[None]:
    """Work with an engine in this thread; what engines raise becomes the sentence that a user reads.

    Raises
    ------
    InputError
        If scratch does not fit the budget.
    FinalError
        If a count does not fit 64-bit integers.
    RunError
        If memory is short, or the device is lost.
    """
    try:
        with engine_faults(engine, _SHORT):
            yield
    except WorkspaceTooLarge as error:
        raise InputError(
            f"a worker needs {round_size(error.needed)} of scratch memory, more than its share of the budget: "
            "raise memory.host (or memory.device), or lower engine.threads"
        ) from error
    except OverflowError as error:
        raise FinalError(str(error)) from error
