"""Run the tasks of a phase on threads of this process; the answer does not depend on who does which task.

Finished ranges are committed as the work goes on; what is committed already is not done again.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from longwall.pipeline.execution.engine_errors import user_errors
from longwall.pipeline.execution.environment import Coordinator
from longwall.pipeline.execution.phase import DoesNotFit, MakeWorker, Phase, Task, Worker
from longwall.pipeline.run_store import commit_log
from longwall.pipeline.run_store.commit_log import PhaseRecord

_POLL_SECONDS = 0.1
_COMMITS_COST = 0.05  # of the time, at most
_CRASH_COSTS = 0.02  # of the time since the phase began, where that is more than COMMIT_SECONDS


def begin_phase(phase: Phase, env: Coordinator) -> tuple[PhaseRecord, Sequence[Task], list[Task]]:
    """Begin a phase: for every executor.

    Returns
    -------
    record : PhaseRecord
        What is finished.
    tasks, missing : sequence of Task
        All tasks, and what is missing of them.
    """
    tasks = phase.tasks(env)
    record = env.log.record(phase.name, tasks[-1].last if tasks else 0)
    missing = list(missing_tasks(tasks, record))
    size = sum(task.size for task in tasks)
    env.observer.phase(phase.activity, size, phase.unit)
    env.observer.advance(size - sum(task.size for task in missing))
    return record, tasks, missing


def missing_tasks(tasks: Sequence[Task], record: PhaseRecord) -> Iterator[Task]:
    """Yield the tasks without what is finished, each cut where it has to be."""
    gaps = list(record.missing())
    at = 0
    for task in tasks:
        while at < len(gaps) and gaps[at][1] <= task.first:
            at += 1
        following = at
        while following < len(gaps) and gaps[following][0] < task.last:
            first, last = max(gaps[following][0], task.first), min(gaps[following][1], task.last)
            yield Task(first, last, task.size * (last - first) // (task.last - task.first))
            following += 1


class ThreadExecutor:
    """The threads of the engine of this process; see `Executor`."""

    def __init__(self) -> None:
        self.engines: set[str] = set()

    def run(self, phase: Phase, env: Coordinator) -> PhaseRecord:
        """Hand the tasks to the threads; each commits what it found when that is due."""
        self.engines.add(env.engine.name)
        record, _, missing = begin_phase(phase, env)
        if missing:
            with phase.open(env) as make_worker:
                _run_tasks(env, record, missing, make_worker)
        return record


def _run_tasks(env: Coordinator, record: PhaseRecord, missing: Sequence[Task], make_worker: MakeWorker) -> None:
    queue: Iterator[Task] = iter(missing)
    lock = threading.Lock()

    def do_tasks(worker: Worker, stop: threading.Event) -> None:
        finished: list[tuple[int, int]] = []
        start = time.monotonic()
        due = start + commit_log.COMMIT_SECONDS
        while not stop.is_set() and not env.cancel.is_set():
            with lock:
                task = next(queue, None)
            if task is None:
                break
            worker.run(task.first, task.last)
            if env.cancel.is_set():
                return  # an interrupted kernel returns half a result, which would be in the worker's partial result
            finished.append((task.first, task.last))
            env.observer.advance(task.size)
            if (began := time.monotonic()) >= due:
                record.commit(finished, worker.take_partial())
                finished = []
                now = time.monotonic()
                rest = max((now - start) * _CRASH_COSTS, (now - began) / _COMMITS_COST)
                due = now + max(commit_log.COMMIT_SECONDS, rest)
        if finished:
            record.commit(finished, worker.take_partial())

    _run_threads(env, min(env.engine.workers, len(missing)), make_worker, do_tasks)
    if not record.complete:
        raise KeyboardInterrupt  # one that Python swallowed, in a finalizer


def _run_threads(
    env: Coordinator, number: int, make_worker: MakeWorker, work: Callable[[Worker, threading.Event], None]
) -> None:
    """Let so many threads work, each with a worker of its own, until all have ended; raise what one raised first."""
    failures: list[BaseException] = []
    stop = threading.Event()

    def fail(failure: BaseException) -> None:
        failures.append(failure)
        stop.set()
        if not isinstance(failure, DoesNotFit):  # after which the run goes on
            _cancel(env)

    def loop() -> None:
        worker: Worker | None = None
        try:
            with user_errors(env.engine):
                worker = make_worker()
                work(worker, stop)
        except BaseException as failure:  # handed to the main thread below
            fail(failure)
        try:
            if worker is not None:
                worker.close()
        except BaseException as failure:
            fail(failure)

    # Not by `join`: where that is interrupted, Python 3.11 takes threads that still run for ended.
    ended = [threading.Event() for _ in range(number)]

    def work_through(event: threading.Event) -> None:
        try:
            loop()
        finally:
            event.set()

    for one in ended:
        threading.Thread(target=work_through, args=(one,), daemon=True).start()
    try:
        for event in ended:
            while not event.wait(_POLL_SECONDS):
                pass
    except BaseException:
        _cancel(env)
        _wait(ended)
        raise
    if failures:
        raise failures[0]


def _cancel(env: Coordinator) -> None:
    env.cancel.set()
    env.engine.interrupt()


def _wait(ended: Sequence[threading.Event]) -> None:
    """Wait for threads that are stopping, also when the user interrupts again: they write to the run's folder."""
    for event in ended:
        while not event.is_set():
            with suppress(KeyboardInterrupt):
                event.wait()
