"""Run the tasks of a phase on threads of this process; the answer does not depend on which thread does which task.

Finished ranges are committed as the work goes on; what is committed already is not done again.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress

from longwall.kernels.interface.engine import Engine
from longwall.pipeline.execution.engine_errors import user_errors
from longwall.pipeline.execution.environment import Coordinator, Environment
from longwall.pipeline.execution.phase import DoesNotFit, MakeWorker, Phase, Task, Worker
from longwall.pipeline.execution.task_pool import TaskPool, Team
from longwall.pipeline.run_store import commit_log
from longwall.pipeline.run_store.commit_log import PhaseRecord
from longwall.pipeline.run_store.row_limit import RowCut, shortened
from longwall.storage.errors import InputError

RANGES = "ranges of "
"""And a worker's address, or an engine: what it did of a phase, in the metrics."""
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
    """The threads of the engines of this process; see `Executor`.

    Parameters
    ----------
    helpers
        Environments of further engines, which do a part of every phase.
    """

    def __init__(self, helpers: Sequence[Environment] = ()) -> None:
        self._helpers = helpers
        self.engines: set[str] = set()

    def run(self, phase: Phase, env: Coordinator) -> PhaseRecord:
        """Hand the tasks to the threads; each commits what it found when that is due."""
        record, tasks, missing = begin_phase(phase, env)
        if missing:
            with ExitStack() as opened:
                crews = [_Crew(env, phase, tasks, opened.enter_context(phase.open(env)))]
                for helper in self._helpers:
                    # The run's engine does the phase by itself where a budget has no room for another one beside it.
                    with suppress(InputError, DoesNotFit):
                        make_worker = opened.enter_context(phase.open(helper))
                        crews.append(_Crew(helper, phase, phase.tasks(helper), make_worker))
                self.engines.update(crew.env.engine.name for crew in crews)
                _Tasks(phase, env, record, missing, crews).run()
        return record


class _Crew:
    """An engine in a phase: what its workers need."""

    def __init__(self, env: Environment, phase: Phase, tasks: Sequence[Task], make_worker: MakeWorker):
        self.env, self.make_worker = env, make_worker
        workers = 1 if phase.sticky else env.engine.workers
        self.team = Team(env.engine.name, workers, max((task.last - task.first for task in tasks), default=1))


class _Tasks:
    """The missing tasks of a phase, and the threads that do them."""

    def __init__(
        self, phase: Phase, env: Coordinator, record: PhaseRecord, missing: Sequence[Task], crews: Sequence[_Crew]
    ):
        self._env, self._record, self._missing, self._crews = env, record, missing, crews
        self._pool = TaskPool(missing, [crew.team for crew in crews])
        # One engine shares a limit among its workers; what several have written is cut here.
        self._rows = RowCut(None if env.alone else phase.wanted_rows)
        self._cutting = threading.Lock()

    def run(self) -> None:
        """Let all threads work, and raise what one raised first."""
        began = time.monotonic()
        _run_threads(self._env, self._crews, len(self._missing), self._work)
        if not self._record.complete:
            raise KeyboardInterrupt  # one that Python swallowed, in a finalizer
        if len(self._crews) > 1:
            seconds = time.monotonic() - began
            for team in (crew.team for crew in self._crews):
                self._env.metrics.record(RANGES + team.engine, 0, 0, team.size, seconds, 0, team.ranges)

    def _work(self, crew: _Crew, worker: Worker, stop: threading.Event) -> None:
        """Do tasks until none is left."""
        env, finished = self._env, list[tuple[int, int]]()
        start = time.monotonic()
        due = start + commit_log.COMMIT_SECONDS
        while not stop.is_set() and not env.cancel.is_set():
            task = self._pool.take(crew.team)
            if task is None:
                break
            if not self._rows.reached:
                began = time.monotonic()
                worker.run(task.first, task.last)
                self._pool.done(crew.team, task, time.monotonic() - began)
            if env.cancel.is_set():
                return  # an interrupted kernel returns half a result, which would be in the worker's partial result
            finished.append((task.first, task.last))
            env.observer.advance(task.size)
            if (began := time.monotonic()) >= due:
                self._commit(finished, worker)
                finished = []
                now = time.monotonic()
                rest = max((now - start) * _CRASH_COSTS, (now - began) / _COMMITS_COST)
                due = now + max(commit_log.COMMIT_SECONDS, rest)
        if finished:
            self._commit(finished, worker)

    def _commit(self, finished: list[tuple[int, int]], worker: Worker) -> None:
        found, run = worker.take_partial(), self._env.results.parent
        with self._cutting:
            partial = shortened(self._rows.cut(found), run)
        for name in {file["name"] for file in found.files} - {file["name"] for file in partial.files}:
            (run / name).unlink()
        if (share := self._rows.share) is not None:
            self._env.observer.near_limit(share)
        self._record.commit(finished, partial)


def _run_threads(
    env: Coordinator,
    crews: Sequence[_Crew],
    tasks: int,
    work: Callable[[_Crew, Worker, threading.Event], None],
) -> None:
    """Let the threads of all engines work, each with a worker of its own, until all have ended.

    Raise what one raised first. One engine needs no more threads than there are tasks; several cut them.
    """
    failures: list[BaseException] = []
    stop = threading.Event()
    engines = [crew.env.engine for crew in crews]

    def fail(failure: BaseException) -> None:
        failures.append(failure)
        stop.set()
        if not isinstance(failure, DoesNotFit):  # after which the run goes on
            _cancel(env, engines)

    def loop(crew: _Crew) -> None:
        worker: Worker | None = None
        try:
            with user_errors(crew.env.engine):
                worker = crew.make_worker()
                work(crew, worker, stop)
        except BaseException as failure:  # handed to the main thread below
            fail(failure)
        try:
            if worker is not None:
                worker.close()
        except BaseException as failure:
            fail(failure)

    # Not by `join`: where that is interrupted, Python 3.11 takes threads that still run for ended.
    ended: list[threading.Event] = []

    def work_through(crew: _Crew, event: threading.Event) -> None:
        try:
            loop(crew)
        finally:
            event.set()

    for crew in crews:
        for _ in range(crew.env.engine.workers if len(crews) > 1 else min(crew.env.engine.workers, tasks)):
            event = threading.Event()
            ended.append(event)
            threading.Thread(target=work_through, args=(crew, event), daemon=True).start()
    try:
        for event in ended:
            while not event.wait(_POLL_SECONDS):
                pass
    except BaseException:
        _cancel(env, engines)
        _wait(ended)
        raise
    if failures:
        raise failures[0]


def _cancel(env: Coordinator, engines: Sequence[Engine]) -> None:
    env.cancel.set()
    for engine in engines:
        engine.interrupt()


def _wait(ended: Sequence[threading.Event]) -> None:
    """Wait for threads that are stopping, also when the user interrupts again: they write to the run's folder."""
    for event in ended:
        while not event.is_set():
            with suppress(KeyboardInterrupt):
                event.wait()
