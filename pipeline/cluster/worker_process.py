"""A replica of a run in a worker process: it does ranges of the phase that the coordinator is in.

A run is a fixed sequence of phases, and what lies between two phases follows from the config, the graph and what the
commits have of the phases before; that is how a run goes on after a crash. So a replica executes the workload as the
coordinator does, and reads the graph while the coordinator does. Where the workload would deal out the tasks of a
phase, the replica stops and does the ranges that it is asked for; when one of a later phase is asked for, it reads in
the commits what the phases until there gave, and goes on to that phase.

Every range is done by a worker of its own, so a range that is done twice, or whose answer is lost, changes nothing.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
import uuid
from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from longwall.pipeline.cluster.time_slices import do_ranges
from longwall.pipeline.config import RunSpec, load_config
from longwall.pipeline.execution.environment import Environment, Metrics
from longwall.pipeline.execution.thread_executor import Work, user_errors
from longwall.pipeline.run_store.commit_files import CommitFiles
from longwall.pipeline.run_store.commit_log import Commit, PartialResult, Phase, Range, add_entry, checkpoint_bytes
from longwall.pipeline.run_store.local_store import LocalStore
from longwall.pipeline.run_store.object_store import ObjectStore
from longwall.pipeline.run_store.store import RunStore
from longwall.storage.errors import FinalError, RunError, reason_of
from longwall.storage.observer import NullObserver
from longwall.storage.remote.urls import is_url
from longwall.storage.version import longwall_version

if TYPE_CHECKING:
    from longwall.storage.memory.reservations import MemoryBudget

_WAIT_SECONDS = 0.2
_IDLE_SECONDS = 600.0  # until a replica that nobody asks lets go: its coordinator may have been killed


class RunHeader(TypedDict):
    """What a replica begins with, before the coordinator has the graph; plain values, as they cross the network."""

    id: str
    run: str
    config: dict[str, Any]
    share: int
    per_device: int
    version: str


class RunDescription(RunHeader):
    """What a replica has to know to do ranges: the graph's hash and the plan, which its own must equal."""

    graph: str
    plan: dict[str, Any]


class RangeResult(TypedDict):
    """What a replica did of some ranges: those that are done, of the last one perhaps a part, and what they gave."""

    done: list[Range]
    value: Any
    files: list[dict[str, Any]]
    levels: dict[int, list[float]]
    seconds: float
    worker: str
    address: str
    engine: str


class WorkerRefusal(TypedDict):
    """Why a worker cannot do its ranges; another may."""

    reason: str
    address: str


class Closed(BaseException):
    """The replica is no longer wanted; unwinds the workload."""


class ReplicaJournal:
    """The commits of a run as a replica reads them; see :class:`longwall.pipeline.run_store.commit_log.CommitLog`.

    Parameters
    ----------
    store
        The run's; where it is at a URL, its working folder is one of this replica.
    """

    def __init__(self, store: RunStore):
        self.store, self.folder = store, store.folder / "checkpoint"
        self._started = 0
        self._found: dict[str, Phase] = {}
        self._commits = CommitFiles(store, partial(add_entry, self._found, self))
        self._numbers = random.SystemRandom()

    def phase(self, name: str, total: int) -> Phase:
        """Begin the next phase."""
        key = f"{self._started} {name}"
        self._started += 1
        self.refresh()
        return self._found.setdefault(key, Phase(key, total, self))

    def refresh(self) -> None:
        """Read what there is of all phases by now."""
        self._commits.read()

    def next_number(self, prefix: str) -> int:  # noqa: ARG002 - as that of a checkpoint
        """A number for a file that no other process chooses."""
        return self._numbers.getrandbits(60)

    def reserve(self, phase: Phase, disk: MemoryBudget) -> None:
        """Nothing: files belong to the coordinator."""

    def remove(self, folder: Path) -> bool:  # noqa: ARG002
        """Nothing: files belong to the coordinator."""
        return False

    def append(self, phase: Phase, commits: Sequence[Commit]) -> None:
        """Never called: ranges are committed by the coordinator."""
        raise AssertionError(f"a replica commits nothing: {phase.name}, {commits}")


class ReplicaScheduler:
    """Does the ranges that are asked for, in the threads that ask."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._work: Work | None = None
        self._asked = 0  # requests under way
        self._last = time.monotonic()  # when one began or ended
        self._passed = -1  # the last phase that is over, for all that is known
        self.ended: BaseException | None = None
        self.engines: set[str] = set()

    def run(self, context: Environment, work: Work) -> list[Any]:
        """Wait until the phase is over; meanwhile its ranges are done by those who ask for them."""
        phase = work.phase
        number = _number(phase.name)
        with self._changed:
            self._work = work
            self._changed.notify_all()
            while self._passed < number or self._asked:
                idle = time.monotonic() - self._last > _IDLE_SECONDS
                if (context.cancel.is_set() or idle) and not self._asked:
                    raise Closed
                self._changed.wait(_WAIT_SECONDS)
            self._work = None
        context.checkpoint.refresh()  # type: ignore[attr-defined]
        if not phase.complete:
            raise RunError(f"internal fault: the phase {phase.name!r} is not over")
        return [partial.value for partial in phase.partials]

    def enter(self, name: str, cancel: threading.Event) -> Work:
        """Wait until the workload is in a phase, and begin a request there; gives what there is to do."""
        with self._changed:
            self._passed = max(self._passed, _number(name) - 1)
            self._changed.notify_all()
            while self._work is None or self._work.phase.name != name:
                if self.ended is not None:
                    raise self.ended.with_traceback(None)  # one object for all who ask: each adds to what it has
                if cancel.is_set():
                    raise RunError("the run was cancelled")
                if self._work is not None and _number(self._work.phase.name) > _number(name):
                    raise RunError(f"internal fault: the phase {name!r} is over")
                self._changed.wait(_WAIT_SECONDS)
            self._asked, self._last = self._asked + 1, time.monotonic()
            return self._work

    def leave(self) -> None:
        """End a request."""
        with self._changed:
            self._asked, self._last = self._asked - 1, time.monotonic()
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
    opening
        What the coordinator says of it; `tell` brings the rest.
    threads
        Of the engine, if it works on the host.

    Attributes
    ----------
    over
        Whether it let go of everything because nobody asked.
    """

    def __init__(self, opening: RunHeader, threads: int):
        self.opening, self.over = opening, False
        self._job: RunDescription | None = None
        self._told = threading.Event()
        self._threads = threads
        self._cancel = threading.Event()
        self._scheduler = ReplicaScheduler()
        self._context: Environment | None = None
        self._numbers = count()
        self._slots: threading.Semaphore | None = None
        self._thread = threading.Thread(target=self._main, name="replica", daemon=True)
        self._thread.start()

    def tell(self, job: RunDescription) -> None:
        """Let the replica go on to the ranges; what it is told again changes nothing."""
        self._job = self._job or job
        self._told.set()

    def ask(self, phase: str, ranges: list[Range], seconds: float, files: list[dict[str, Any]]) -> RangeResult:
        """Do ranges of a phase, or as much of them as `seconds` allow; or merge files of it."""
        work = self._scheduler.enter(phase, self._cancel)
        try:
            context, slots = self._context, self._slots
            assert context is not None
            assert slots is not None
            # A cluster's worker may have more threads than the engine wants.
            with slots, user_errors(context.engine):
                began = time.monotonic()
                if files:
                    assert work.merge is not None
                    ranges, found = [], work.merge(files)
                else:
                    ranges, found = self._do(work, ranges, seconds)
                files = [self._sent(file) for file in found.files]
                took = time.monotonic() - began
        finally:
            self._scheduler.leave()
        context.resources.disk.charge(-checkpoint_bytes(found.files), "")  # the coordinator's from now on
        return RangeResult(
            done=ranges,
            value=found.value,
            files=files,
            levels=found.levels,
            seconds=took,
            worker="",
            address="",
            engine=context.engine.name,
        )

    def _do(self, work: Work, ranges: list[Range], seconds: float) -> tuple[list[Range], PartialResult]:
        assert self._context is not None
        on_device = self._context.resources.on_device
        worker = work.make_worker(next(self._numbers))
        try:
            done = do_ranges(worker, work.tasks, ranges, seconds, self._cancel, on_device=on_device)
            return done, worker.take()
        finally:
            worker.close()

    def _sent(self, file: dict[str, Any]) -> dict[str, Any]:
        """Send a file to the run's URL, if it is at one, and remove it here; gives what a commit says of it."""
        assert self._context is not None
        store = self._context.checkpoint.store
        if not isinstance(store, ObjectStore):
            return file
        folder, _, name = file["name"].partition("/")
        path = self._context.results / name if folder == "results.partial" else store.folder / file["name"]
        try:
            store.send(path, file["name"])
            return file
        finally:
            path.unlink(missing_ok=True)

    def write_heat(self) -> str | None:
        """Write what every level read of every page, where that is known; gives the file's name."""
        from longwall.storage.pages.paged_graph import GraphPages

        context = self._context
        if context is None or context.on_engine is None:
            return None
        pages = context.on_engine.graph.pages
        if not isinstance(pages, GraphPages):
            return None
        name = f"heat-{uuid.uuid4().hex}.parquet"
        path, store = context.results / name, context.checkpoint.store
        pages.write_heat(path)
        if isinstance(store, ObjectStore):
            store.send(path, str(path.relative_to(store.folder)))
        return name

    def close(self) -> None:
        """Stop what is going on, and let go of all memory and files."""
        self._cancel.set()
        if (context := self._context) is not None:
            context.engine.interrupt()
        self._thread.join()

    def _main(self) -> None:
        try:
            _compare_versions(self.opening["version"])
            self._execute(load_config(self.opening["config"]))
        except BaseException as error:
            self._context, self.over = None, isinstance(error, Closed)
            self._scheduler.end(error if isinstance(error, Exception) else RunError("the run is over on this worker"))

    def _execute(self, spec: RunSpec) -> None:
        from longwall.pipeline.inputs import open_resources, read_graph

        resources = open_resources(
            spec.with_threads(self._threads), processes=self.opening["share"], per_device=self.opening["per_device"]
        )
        observer = NullObserver()
        with resources, user_errors(resources.engine):
            graph = read_graph(spec, observer, resources)
            job = self._wait()
            if graph.content_hash != job["graph"]:
                raise RunError("the graph on this worker is not the coordinator's: give all the same file")
            plan = spec.workload.plan(graph)
            if plan.to_dict() != job["plan"]:
                raise RunError("this worker plans otherwise than the coordinator: install the same version everywhere")
            store: RunStore = LocalStore(Path(job["run"]))
            if is_url(job["run"]):
                store = ObjectStore(job["run"], resources.spill.path / "run")
                parts(store.folder, job["id"]).mkdir(parents=True)
            self._slots = threading.Semaphore(resources.engine.workers)
            self._context = Environment(
                spec,
                graph,
                resources,
                ReplicaJournal(store),  # type: ignore[arg-type]
                parts(store.folder, job["id"]),
                observer,
                Metrics(),
                self._cancel,
                scheduler=self._scheduler,
                is_coordinator=False,
            )
            spec.workload.execute(plan, self._context)

    def _wait(self) -> RunDescription:
        """Wait until the coordinator has read the graph, too."""
        until = time.monotonic() + _IDLE_SECONDS
        while not self._told.wait(_WAIT_SECONDS):
            if self._cancel.is_set() or time.monotonic() > until:
                raise Closed
        assert self._job is not None
        return self._job


def _compare_versions(coordinator: str) -> None:
    """See that this worker, which may have come when the run had begun, is what the coordinator is."""
    if coordinator != longwall_version():
        raise RunError(
            f"this worker has Longwall {longwall_version()}, the coordinator has {coordinator}: "
            "install the same everywhere"
        )


def parts(run: Path, job_id: str) -> Path:
    """The folder where replicas write results: what the coordinator commits, it moves to the run's."""
    return run / "checkpoint" / f"parts-{job_id}"


def _number(phase: str) -> int:
    """The place of a phase in the run; see `CommitLog.phase`."""
    return int(phase.split(" ", 1)[0])


_lock = threading.Lock()
_replica: Replica | None = None
_over: set[str] = set()  # jobs that were closed: what was asked of them before may still come


def serve(
    job: RunDescription, phase: str, ranges: list[Range], seconds: float, files: list[dict[str, Any]]
) -> RangeResult | WorkerRefusal:
    """Do ranges of a phase of a run, or merge files of it; called by Dask in a worker's thread."""
    from distributed import get_worker

    worker = get_worker()
    replica = _opened(job, worker.state.nthreads)
    replica.tell(job)
    try:
        return replica.ask(phase, ranges, seconds, files) | {"worker": str(worker.name), "address": worker.address}
    except FinalError:
        raise
    except (RunError, MemoryError, OSError) as error:
        return WorkerRefusal(reason=reason_of(error), address=worker.address)


async def prepare(opening: RunHeader, dask_worker: Any) -> None:
    """Begin the replica of a run in this process, which takes its time to read the graph; Dask gives the worker."""
    await asyncio.to_thread(_opened, opening, dask_worker.state.nthreads)


def _opened(opening: RunHeader, threads: int) -> Replica:
    """Give the replica of a run in this process; begins it where there is none, and ends that of another run."""
    global _replica
    with _lock:
        if opening["id"] in _over:
            raise RunError("the run is over")
        if _replica is None or _replica.opening["id"] != opening["id"] or _replica.over:
            if _replica is not None:
                _replica.close()
            _replica = Replica(opening, threads)
        return _replica


def write_heat(job_id: str) -> str | None:
    """Have the replica of a run write its heat, if this process has one; gives the file's name."""
    with _lock:
        mine = _replica is not None and _replica.opening["id"] == job_id
        return _replica.write_heat() if _replica is not None and mine else None


async def close(job_id: str) -> None:
    """End the replica of a run, if this process has one, in a thread of its own."""
    await asyncio.to_thread(_close, job_id)


def _close(job_id: str) -> None:
    global _replica
    with _lock:
        _over.add(job_id)
        if _replica is not None and _replica.opening["id"] == job_id:
            _replica.close()
            _replica = None
