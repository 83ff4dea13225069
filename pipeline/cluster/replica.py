"""A replica of a run in a worker process: it does ranges of the phase that the coordinator is in.

A run is a fixed sequence of phases, and what lies between two phases follows from the config, the graph and what the
journal has of the phases before; that is how a run goes on after a crash. So a replica executes the workload as the
coordinator does. Where the workload would deal out the tasks of a phase, the replica stops and does the ranges that it
is asked for; when one of a later phase is asked for, it reads in the journal what the phases until there gave, and
goes on to that phase.

Every range is done by a worker of its own, so a range that is done twice, or whose answer is lost, changes nothing.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, TypedDict

from longwall.pipeline.checkpoint import Partial, Phase, Range, read_journal
from longwall.pipeline.config import RunSpec, load_config
from longwall.pipeline.context import Metrics, RunContext
from longwall.pipeline.progress import NullObserver
from longwall.pipeline.workers import Task, Worker, sentences
from longwall.storage.errors import RunError

_PIECES = 16  # of a range, after each of which a worker looks at the clock
_WAIT_SECONDS = 0.2


class Job(TypedDict):
    """What a replica is made from; plain values, as they cross the network."""

    id: str
    run: str
    config: dict[str, Any]
    graph: str
    plan: dict[str, Any]
    share: int


class Answer(TypedDict):
    """What a replica did of a range: the part that is done, and what it gave."""

    done: tuple[int, int]
    value: Any
    files: list[dict[str, Any]]
    levels: dict[int, list[float]]
    seconds: float
    worker: str
    engine: str


class Closed(BaseException):
    """The replica is no longer wanted; unwinds the workload."""


class ReplicaJournal:
    """The journal of a run as a replica reads it; see :class:`longwall.pipeline.checkpoint.Checkpoint`."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._path = folder / "journal.jsonl"
        self._started = 0
        self._numbers = random.SystemRandom()

    def phase(self, name: str, total: int) -> Phase:
        """Begin the next phase."""
        key = f"{self._started} {name}"
        self._started += 1
        phase = Phase(key, total, self)
        self.refresh(phase)
        return phase

    def refresh(self, phase: Phase) -> None:
        """Read what there is of a phase by now."""
        found: dict[str, Phase] = {}
        read_journal(self._path, found, self)
        if phase.name in found:
            phase.done, phase.partials = found[phase.name].done, found[phase.name].partials

    def next_number(self, prefix: str) -> int:  # noqa: ARG002 - as that of a checkpoint
        """A number for a file that no other process chooses."""
        return self._numbers.getrandbits(60)

    def remove(self, folder: Path) -> bool:  # noqa: ARG002
        """Nothing: files belong to the coordinator."""
        return False

    def append(self, phase: Phase, ranges: list[Range], partial: Partial) -> None:
        """Never called: ranges are committed by the coordinator."""
        raise AssertionError(f"a replica commits nothing: {phase.name}, {ranges}, {partial}")


class ReplicaScheduler:
    """Does the ranges that are asked for, in the threads that ask."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._phase: Phase | None = None
        self._make: Callable[[int], Worker] | None = None
        self._asked = 0  # requests under way
        self._passed = -1  # the last phase that is over, for all that is known
        self.ended: BaseException | None = None
        self.engines: set[str] = set()

    def run(
        self,
        context: RunContext,
        phase: Phase,
        tasks: Sequence[Task],  # noqa: ARG002 - the coordinator's
        workers: int,  # noqa: ARG002
        make_worker: Callable[[int], Worker],
    ) -> list[Any]:
        """Wait until the phase is over; meanwhile its ranges are done by those who ask for them."""
        number = _number(phase.name)
        with self._changed:
            self._phase, self._make = phase, make_worker
            self._changed.notify_all()
            while self._passed < number or self._asked:
                if context.cancel.is_set() and not self._asked:
                    raise Closed
                self._changed.wait(_WAIT_SECONDS)
            self._phase = self._make = None
        context.checkpoint.refresh(phase)  # type: ignore[attr-defined]
        if not phase.complete:
            raise RunError(f"internal fault: the phase {phase.name!r} is not over")
        return [partial.value for partial in phase.partials]

    def enter(self, name: str, cancel: threading.Event) -> Callable[[int], Worker]:
        """Wait until the workload is in a phase, and begin a request there; gives how workers are made."""
        with self._changed:
            self._passed = max(self._passed, _number(name) - 1)
            self._changed.notify_all()
            while self._phase is None or self._phase.name != name or self._make is None:
                if self.ended is not None:
                    raise self.ended
                if cancel.is_set():
                    raise RunError("the run was cancelled")
                if self._phase is not None and _number(self._phase.name) > _number(name):
                    raise RunError(f"internal fault: the phase {name!r} is over")
                self._changed.wait(_WAIT_SECONDS)
            self._asked += 1
            return self._make

    def leave(self) -> None:
        """End a request."""
        with self._changed:
            self._asked -= 1
            self._changed.notify_all()

    def end(self, error: BaseException) -> None:
        """Nothing can be asked any more."""
        with self._changed:
            self.ended = error
            self._changed.notify_all()


class Replica:
    """A run in this process.

    Parameters
    ----------
    job
        What the coordinator says of it.
    threads
        Of the engine, if it works on the host.
    """

    def __init__(self, job: Job, threads: int):
        self.job = job
        self._threads = threads
        self._cancel = threading.Event()
        self._scheduler = ReplicaScheduler()
        self._context: RunContext | None = None
        self._numbers = count()
        self._slots: threading.Semaphore | None = None
        self._thread = threading.Thread(target=self._main, name="replica", daemon=True)
        self._thread.start()

    def ask(self, phase: str, first: int, last: int, seconds: float) -> Answer:
        """Do a range of a phase, or as much of it as `seconds` allow."""
        began = time.monotonic()
        make = self._scheduler.enter(phase, self._cancel)
        try:
            context, slots = self._context, self._slots
            assert context is not None
            assert slots is not None
            # A cluster's worker may have more threads than the engine wants.
            with slots, sentences(context.engine):
                worker = make(next(self._numbers))
                try:
                    step, at = max((last - first) // _PIECES, 1), first
                    while at < last and (at == first or time.monotonic() - began < seconds):
                        upto = min(at + step, last)
                        worker.run(at, upto)
                        if self._cancel.is_set():
                            raise RunError("the run was cancelled")
                        at = upto
                    found = worker.take()
                finally:
                    worker.close()
        finally:
            self._scheduler.leave()
        return Answer(
            done=(first, at),
            value=found.value,
            files=list(found.files),
            levels=found.levels,
            seconds=time.monotonic() - began,
            worker="",
            engine=context.engine.name,
        )

    def close(self) -> None:
        """Stop what is going on, and let go of all memory and files."""
        self._cancel.set()
        if self._context is not None:
            self._context.engine.interrupt()
        self._thread.join()

    def _main(self) -> None:
        try:
            self._execute(load_config(self.job["config"]))
        except BaseException as error:
            self._scheduler.end(error if isinstance(error, Exception) else RunError("the run is over on this worker"))

    def _execute(self, spec: RunSpec) -> None:
        from longwall.pipeline.run import choose_engine, read_graph, resolve_budget
        from longwall.pipeline.workloads import get_workload
        from longwall.storage.account import Accounts
        from longwall.storage.spill import SpillFolder

        run = Path(self.job["run"])
        engine = choose_engine(spec.with_threads(self._threads))
        whole, share = resolve_budget(spec), self.job["share"]
        budget = replace(whole, host=whole.host // share, disk=whole.disk // share)
        accounts, observer = Accounts.of(budget), NullObserver()
        with SpillFolder(spec.memory.spill) as spill, sentences(engine):
            graph = read_graph(spec, observer, accounts, spill, engine)
            if graph.content_hash != self.job["graph"]:
                raise RunError("the graph on this worker is not the coordinator's: give all the same file")
            workload = get_workload(spec.workload.kind)
            plan = workload.plan(spec.workload, graph)
            if plan.to_dict() != self.job["plan"]:
                raise RunError("this worker plans otherwise than the coordinator: install the same version everywhere")
            self._slots = threading.Semaphore(engine.workers)
            self._context = RunContext(
                spec,
                graph,
                engine,
                budget,
                accounts,
                spill,
                ReplicaJournal(run / "checkpoint"),  # type: ignore[arg-type]
                parts(run, self.job["id"]),
                observer,
                Metrics(),
                self._cancel,
                scheduler=self._scheduler,
            )
            workload.execute(plan, self._context)


def parts(run: Path, job_id: str) -> Path:
    """The folder where replicas write results: what the coordinator commits, it moves to the run's."""
    return run / "checkpoint" / f"parts-{job_id}"


def _number(phase: str) -> int:
    """The place of a phase in the run; see `Checkpoint.phase`."""
    return int(phase.split(" ", 1)[0])


_lock = threading.Lock()
_replica: Replica | None = None


def serve(job: Job, phase: str, first: int, last: int, seconds: float) -> Answer:
    """Do a range of a phase of a run; called by Dask in a worker's thread."""
    from distributed import get_worker

    global _replica
    worker = get_worker()
    with _lock:
        if _replica is None or _replica.job["id"] != job["id"]:
            if _replica is not None:
                _replica.close()
            _replica = Replica(job, worker.state.nthreads)
        replica = _replica
    return replica.ask(phase, first, last, seconds) | {"worker": str(worker.name)}


async def close(job_id: str) -> None:
    """End the replica of a run, if this process has one, in a thread of its own."""
    await asyncio.to_thread(_close, job_id)


def _close(job_id: str) -> None:
    global _replica
    with _lock:
        if _replica is not None and _replica.job["id"] == job_id:
            _replica.close()
            _replica = None
