"""Run the tasks of a phase on threads of this process; the answer does not depend on which thread does which task.

Finished ranges are committed as the work goes on; what is committed already is not done again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import NamedTuple

from longwall.pipeline.execution import second_engine
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.engine_errors import user_errors
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import MakeWorker, MethodFailed, Phase, Task, Worker, prepared_tasks
from longwall.pipeline.execution.second_engine import SecondEngine
from longwall.pipeline.execution.task_pool import TaskPool, Team
from longwall.pipeline.run_store import commit_log
from longwall.pipeline.run_store.commit_log import PhaseRecord
from longwall.pipeline.run_store.row_limit import RowCut, shortened
from longwall.storage.errors import FinalError, InputError, RunError, reason_of
from longwall.storage.system.signals import held_back

RANGES = "ranges of "
"""And a worker's address, or an engine: what it did of a phase, in the metrics."""
_POLL_SECONDS = 0.1
_LOOK_SECONDS = 0.01  # between two looks of engines that share a phase
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
    tasks = prepared_tasks(phase, env)
    record = env.log.record(phase.name, tasks[-1].last if tasks else 0)
    aggregation = phase.aggregation
    record.combine = None if aggregation is None else aggregation.combine
    missing = list(missing_tasks(tasks, record))
    size = sum([task.size for task in tasks])
    env.observer.phase(phase.activity, size, phase.unit)
    if done := size - sum([task.size for task in missing]):
        env.observer.advance(done)
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
    second
        An engine besides the run's own, which joins long phases.
    """

    def __init__(self, second: SecondEngine | None = None) -> None:
        self._second = second
        self.engines: set[str] = set()

    def run(self, phase: Phase, env: Coordinator) -> PhaseRecord:
        """Hand the tasks to the threads; each commits what it found when that is due."""
        record, tasks, missing = begin_phase(phase, env)
        if missing:
            with phase.open(env) as make_worker:
                # A second engine would compute on the same cores as a phase of the host.
                second = None if phase.on_host else self._second
                if second is None and len(missing) == 1 and phase.brief(env):
                    _do_at_once(missing[0], record, env, make_worker)
                    self.engines.add(env.engine.name)
                    return record
                # Beside a second engine the run's takes one range at a time, cut by the time of its last one.
                threads = phase.threads(env) if second is None else env.engine.workers
                work = _Tasks(phase, record, missing, env, _Crew.of(env, tasks, make_worker, threads), second)
                work.run()
            self.engines.update(team.engine for team in work.teams)
        return record


def _do_at_once(task: Task, record: PhaseRecord, env: Coordinator, make_worker: MakeWorker) -> None:
    """Do a brief task in the caller's thread, since a thread of its own and waiting for it would take 0.1 to 0.2 ms."""
    try:
        _do_task(task, record, env, make_worker)
    except (InputError, RunError):
        raise
    except BaseException:  # an exception of a signal handler, say, while a kernel runs
        env.engine.interrupt()
        raise
    if not record.complete:
        raise KeyboardInterrupt  # the run was cancelled without a signal to this thread


def _do_task(task: Task, record: PhaseRecord, env: Coordinator, make_worker: MakeWorker) -> None:
    with held_back(), user_errors(env.engine):
        worker = make_worker()
        try:
            began = time.monotonic()
            worker.run(task.first, task.last)
            seconds = time.monotonic() - began
            if not env.cancel.is_set():  # an interrupted kernel returns half a result
                env.metrics.add_load(f"{env.engine.name} 1", seconds, 1)
                env.observer.advance(task.size)
                may_wait = seconds < commit_log.COMMIT_SECONDS
                record.commit([(task.first, task.last)], worker.take_partial(), may_wait=may_wait)
        finally:
            worker.close()


class _Crew(NamedTuple):
    """An engine in a phase: what its workers need."""

    env: Environment
    make_worker: MakeWorker
    team: Team

    @classmethod
    def of(cls, env: Environment, tasks: Sequence[Task], make_worker: MakeWorker, workers: int) -> _Crew:
        longest = max((task.last - task.first for task in tasks), default=1)
        return cls(env, make_worker, Team(env.engine.name, workers, longest, 0 if env.alone else workers))


class _Lost(Exception):
    """What a worker of the second engine found is of no use; the message says why, if that is a failure."""


class _Tasks:
    """The missing tasks of a phase, and the threads that do them.

    Attributes
    ----------
    teams
        The engines that took part.
    """

    def __init__(
        self,
        phase: Phase,
        record: PhaseRecord,
        missing: Sequence[Task],
        env: Coordinator,
        lead: _Crew,
        second: SecondEngine | None,
    ):
        self._phase, self._record, self._missing, self._env = phase, record, missing, env
        self._lead, self._second = lead, second
        self.teams = [lead.team]
        self._pool = TaskPool(missing, lead.team, shared=second is not None and not second.lost)
        # One engine shares a limit among its workers; what several have written is cut here.
        self._rows = RowCut(None if env.alone and second is None else phase.wanted_rows)
        self._cutting = threading.Lock()
        self._gate, self._stopped = threading.Lock(), False  # commits of the second engine, until it is stopped
        self._threads = _Threads(env, [lead.env.engine.interrupt] + ([] if second is None else [second.interrupt]))

    def run(self) -> None:
        """Let all threads work, and raise what one raised first."""
        began, second = time.monotonic(), self._second
        workers = min(self._lead.team.workers, len(self._missing))
        started = [self._threads.start(self._loop, self._lead, number) for number in range(1, workers + 1)]
        self._threads.wait(started, self._look)
        self._threads.raise_first()
        if not self._record.complete:
            raise KeyboardInterrupt  # one that Python swallowed, in a finalizer
        if second is not None:
            seconds = time.monotonic() - began
            for team in self.teams:
                self._env.metrics.record(RANGES + team.engine, 0, 0, team.size, seconds, 0, team.ranges)

    def _look(self) -> float:
        """Let the second engine take part, if it is time; return the seconds until the next look."""
        if self._second is None or not self._pool.may_join:
            return _POLL_SECONDS if self._second is None else _LOOK_SECONDS
        try:
            self._share(self._second)
        except Exception as error:
            if len(self.teams) > 1:
                raise
            self._pool.close()
            if not isinstance(error, (InputError, RunError, MethodFailed)):  # it may have no room for other phases
                self._leave_out(reason_of(error))
        return _LOOK_SECONDS

    def _share(self, second: SecondEngine) -> None:
        """Open the second engine's side of the phase, and let its workers take ranges while there are any."""
        with second.environment(self._env) as beside, user_errors(beside.engine):
            tasks = prepared_tasks(self._phase, beside)
            with self._phase.open(beside) as make:
                crew = _Crew.of(beside, tasks, make, beside.engine.workers)
                if self._pool.join(crew.team):
                    self.teams.append(crew.team)
                    numbers = range(1, crew.team.workers + 1)
                    self._threads.wait([self._threads.start(self._loop, crew, number) for number in numbers])

    def _leave_out(self, reason: str) -> None:
        assert self._second is not None
        self._second.lost = True
        self._env.observer.note(f"the run goes on with one engine: {reason}")

    def _loop(self, crew: _Crew, number: int) -> None:
        """Work with one worker of an engine; what is lost with one of the second engine is done by the run's."""
        worker: Worker | None = None
        doing: list[Task] = []
        with self._threads.guard(), user_errors(crew.env.engine):
            try:
                worker = self._worker(crew)
                if worker is not None:
                    self._work(crew, worker, doing, number)
            except _Lost as lost:
                if reason := str(lost):
                    self._leave_out(reason)
                self._pool.give_back(doing)
        if worker is not None:
            with self._threads.guard():
                worker.close()

    def _worker(self, crew: _Crew) -> Worker | None:
        """Make a worker; None where the second engine has no room for one more."""
        if crew is self._lead:
            return crew.make_worker()
        with suppress(InputError, RunError, MethodFailed), user_errors(crew.env.engine):
            return crew.make_worker()
        return None

    def _work(self, crew: _Crew, worker: Worker, doing: list[Task], number: int) -> None:
        """Do tasks until none is left; `doing` has those whose results the worker has."""
        name = f"{crew.team.engine} {number}"
        env = self._env
        start = time.monotonic()
        every = commit_log.COMMIT_SECONDS if crew is self._lead else second_engine.COMMIT_SECONDS
        due = start + every
        while self._threads.going:
            task = self._pool.take(crew.team)
            if task is None:
                if self._pool.overdue:
                    self._stop()
                if not self._pool.wait(crew.team, _LOOK_SECONDS):
                    break
                continue
            doing.append(task)
            if not self._rows.reached:
                began = time.monotonic()
                self._do(crew, worker, task)
                seconds = time.monotonic() - began
                self._pool.done(crew.team, task, seconds)
                env.metrics.add_load(name, seconds, 1)
            if env.cancel.is_set():
                return  # an interrupted kernel returns half a result, which would be in the worker's partial result
            env.observer.advance(task.size)
            if (began := time.monotonic()) >= due:
                self._commit(crew, doing, worker, may_wait=crew is not self._lead)
                now = time.monotonic()
                rest = max((now - start) * _CRASH_COSTS, (now - began) / _COMMITS_COST)
                due = now + max(every, rest)
        if doing:
            self._commit(crew, doing, worker, may_wait=time.monotonic() < due)

    def _stop(self) -> None:
        """End what the second engine is at, which the run's engine will do sooner: half a result is not committed."""
        with self._gate:
            self._stopped = True
        self._pool.close()
        if self._second is not None:
            self._second.stop()

    def _do(self, crew: _Crew, worker: Worker, task: Task) -> None:
        if crew is self._lead:
            worker.run(task.first, task.last)
            return
        try:
            with user_errors(crew.env.engine):
                worker.run(task.first, task.last)
        except FinalError:
            raise
        except (InputError, RunError, OSError) as error:
            raise _Lost("" if self._stopped else reason_of(error)) from error

    def _commit(self, crew: _Crew, doing: list[Task], worker: Worker, *, may_wait: bool) -> None:
        with nullcontext() if crew is self._lead else self._gate:
            if self._stopped and crew is not self._lead:
                raise _Lost
            finished = doing.copy()
            doing.clear()
            self._record_partial(finished, worker, may_wait=may_wait)
        self._pool.committed(crew.team, finished)

    def _record_partial(self, finished: Sequence[Task], worker: Worker, *, may_wait: bool) -> None:
        found = worker.take_partial()
        with self._cutting:
            partial = self._rows.cut(found)
            if found.files:
                partial = shortened(partial, self._env.files.store.folder)
        for name in {file["name"] for file in found.files} - {file["name"] for file in partial.files}:
            (self._env.files.store.folder / name).unlink()
        if (share := self._rows.share) is not None:
            self._env.observer.near_limit(share)
        self._record.commit([(task.first, task.last) for task in finished], partial, may_wait=may_wait)


class _Threads:
    """The threads of a phase; what one raises first ends them all.

    Parameters
    ----------
    env
        Is cancelled then.
    interrupts
        Make the running kernels of an engine return.
    """

    def __init__(self, env: Coordinator, interrupts: Sequence[Callable[[], None]]):
        self._env, self._interrupts = env, interrupts
        self._failures: list[BaseException] = []
        self._stop = threading.Event()

    @property
    def going(self) -> bool:
        """Whether no thread raised anything, and the run is not to end."""
        return not self._stop.is_set() and not self._env.cancel.is_set()

    def start(self, work: Callable[..., None], *arguments: object) -> threading.Event:
        """Call a function in a thread; the event is set when it has returned."""
        # Not by `join`: where that is interrupted, Python 3.11 takes threads that still run for ended.
        ended = threading.Event()

        def run() -> None:
            try:
                work(*arguments)
            finally:
                ended.set()

        threading.Thread(target=run, daemon=True).start()
        return ended

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Keep what is raised for the main thread, and end the other threads."""
        try:
            yield
        except BaseException as failure:
            self._failures.append(failure)
            self._stop.set()
            if not isinstance(failure, MethodFailed):  # after which the run goes on
                self._cancel()

    def wait(self, ended: Sequence[threading.Event], look: Callable[[], float] = lambda: _POLL_SECONDS) -> None:
        """Wait for threads, and call a function meanwhile that returns when to call it again."""
        try:
            for event in ended:
                while not event.wait(look()):
                    pass
        except BaseException:
            self._cancel()
            _wait(ended)
            raise

    def raise_first(self) -> None:
        """Raise what a thread raised first."""
        if self._failures:
            try:
                raise self._failures[0]
            finally:  # its traceback leads here: in such a cycle all that the run has would outlive it
                self._failures.clear()

    def _cancel(self) -> None:
        self._env.cancel.set()
        for interrupt in self._interrupts:
            interrupt()


def _wait(ended: Sequence[threading.Event]) -> None:
    """Wait for threads that are stopping, also when the user interrupts again: they write to the run's folder."""
    for event in ended:
        while not event.is_set():
            with suppress(KeyboardInterrupt):
                event.wait()
