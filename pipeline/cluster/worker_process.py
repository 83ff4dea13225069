"""A run in a worker process of a cluster: it does ranges of the phases that the coordinator sends.

The process opens its resources and the graph once, while the coordinator reads the graph; processes of a machine share
the graph that one of them, or the coordinator, has read. If the coordinator plans for a graph that stays in its
store, a process that the graph does not fit streams it. Phases are data, so a request
carries all else: the phase, and ranges of its roots. Every request is answered with what was found in its own ranges,
so a range that is done twice, or whose result is lost, changes nothing.
"""

from __future__ import annotations

import asyncio
import random
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from longwall.pipeline.cluster.machine_share import ALONE, Streaming
from longwall.pipeline.cluster.open_phase import CurrentPhase
from longwall.pipeline.cluster.shared_graph import GraphSharer, SharedGraph, graph_of_machine, map_graph
from longwall.pipeline.config import RunSpec, load_config
from longwall.pipeline.execution.derived import derived
from longwall.pipeline.execution.device_graph import bring_ahead
from longwall.pipeline.execution.engine_errors import user_errors
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import MethodFailed
from longwall.pipeline.execution.streaming.stream_phase import AdjacencyLists
from longwall.pipeline.run_store.commit_log import Range, checkpoint_bytes
from longwall.pipeline.run_store.local_store import LocalStore
from longwall.pipeline.run_store.object_store import ObjectStore
from longwall.pipeline.run_store.run_files import RunFiles
from longwall.pipeline.run_store.store import RunStore
from longwall.storage.errors import FinalError, InputError, RunError, reason_of
from longwall.storage.graph.graph import Graph
from longwall.storage.memory.allocator import return_freed_memory
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget
from longwall.storage.memory.resources import Resources
from longwall.storage.observer import NullObserver
from longwall.storage.remote.urls import is_url
from longwall.storage.streaming.stored_graph import StaysInStore, StoredGraph
from longwall.storage.system.version import longwall_version

_WAIT_SECONDS = 0.2
_IDLE_SECONDS = 600.0  # without a request, until everything is released: the coordinator may have been killed
_OVER = "the run is over on this worker"


class RunHeader(TypedDict):
    """What a worker process opens a run with, before the coordinator has the graph; plain values."""

    id: str
    run: str
    """Its folder, or its URL."""
    config: dict[str, Any]
    share: int
    """Processes that share the memory of a machine."""
    per_device: int
    version: str
    shares: bool
    """Whether the coordinator shares its graph."""


class RunDescription(RunHeader):
    """What a worker process has to know to do ranges."""

    graph: str
    """The hash of the coordinator's graph, which its own must equal."""
    shared: SharedGraph | None
    """Where that graph is, if the coordinator shares it."""
    stored: bool
    """Whether the graph stays in its store, so that the plan is for parts of it."""


class PickledPhase(TypedDict):
    """A phase as it crosses the network; only a process of the same version unpickles it."""

    number: int
    """Its place among the phases that the coordinator dispatches."""
    pickled: bytes


class RangeResult(TypedDict):
    """What a worker process did of some ranges: those that are done, of the last one perhaps a part; and the result."""

    done: list[Range]
    value: Any
    files: list[dict[str, Any]]
    levels: dict[int, list[float]]
    seconds: float
    busy: float
    """Of these, the seconds that no earlier answer has counted for the same device."""
    worker: str
    address: str
    engine: str


class WorkerRefusal(TypedDict):
    """Why a worker process cannot do its ranges."""

    reason: str
    address: str
    fits: bool
    """False: it has no room for the phase, and the plan has another way; True: others may do the ranges."""


class _OpenRun(NamedTuple):
    env: Environment
    current: CurrentPhase


class WorkerProcess:
    """A run in this process. A thread opens it, and releases it when it is closed, or idle.

    Parameters
    ----------
    header
        The run's.
    threads
        Of the engine, if it works on the host.

    Attributes
    ----------
    header
        See above.
    over
        Whether everything was released.
    """

    def __init__(self, header: RunHeader, threads: int):
        self.header, self.over = header, False
        self._threads = threads
        self._cancel = threading.Event()
        self._changed = threading.Condition()
        self._run: _OpenRun | None = None
        self._failed: Exception | None = None
        self._described: RunDescription | None = None
        self._counted_to = 0.0  # the time up to which answers have counted the device's seconds
        self._requests, self._last = 0, time.monotonic()  # under way, and when one began or ended
        self._thread = threading.Thread(target=self._main, name="worker process", daemon=True)
        self._thread.start()

    def describe(self, description: RunDescription) -> None:
        """Receive the place of the coordinator's graph; a run that depends on it waits for it before it opens."""
        with self._changed:
            self._described = description
            self._changed.notify_all()

    def do(
        self, graph: str, phase: PickledPhase, ranges: list[Range], seconds: float, files: list[dict[str, Any]]
    ) -> RangeResult:
        """Do ranges of a phase, or as much of them as `seconds` allow; or merge files of it.

        Raises
        ------
        MethodFailed
            If there is no room for the phase, and the plan has another way.
        """
        from distributed.protocol.pickle import loads

        with self._request() as run:
            env = run.env
            if env.graph.content_hash != graph:
                raise RunError("the graph on this worker is not the coordinator's: use the same file everywhere")
            load = partial(loads, phase["pickled"])
            try:
                with user_errors(env.engine), run.current.entered(phase["number"], load) as opened, opened.slots:
                    began = time.monotonic()
                    done, found = opened.merge(env, files) if files else opened.do(env, ranges, seconds)
                    sent = _send(env, found.files)
                    took = time.monotonic() - began
                    busy = self._uncounted(began) if env.resources.on_device else took
            except KeyboardInterrupt:  # raised inside a worker, since `cancel` is set
                raise RunError("the run was cancelled") from None
            return RangeResult(
                done=done,
                value=found.value,
                files=sent,
                levels=found.levels,
                seconds=took,
                busy=busy,
                worker="",
                address="",
                engine=env.engine.name,
            )

    def _uncounted(self, began: float) -> float:
        """Return the seconds of a request that ends now, less those that other answers have counted."""
        with self._changed:
            before, self._counted_to = self._counted_to, time.monotonic()
            return self._counted_to - max(began, before)

    def write_heat(self) -> str | None:
        """Write what every level read of every page, where that is known; return the file's name."""
        from longwall.storage.pages.paged_graph import GraphPages

        run = self._run
        if run is None or run.env.device_graph is None:
            return None
        pages = run.env.device_graph.graph.pages
        if not isinstance(pages, GraphPages):
            return None
        name = f"heat-{uuid.uuid4().hex}.parquet"
        path, store = run.env.results / name, run.env.files.store
        pages.write_heat(path)
        if isinstance(store, ObjectStore):
            store.send(path, str(path.relative_to(store.folder)))
        return name

    def close(self) -> None:
        """Stop what is going on, and release all memory and files."""
        self._cancel.set()
        with self._changed:
            run = self._run
            self._changed.notify_all()
        if run is not None:
            run.env.engine.interrupt()
        self._thread.join()

    @contextmanager
    def _request(self) -> Iterator[_OpenRun]:
        """Have the run open during a request."""
        with self._changed:
            while self._run is None:
                if self._failed is not None:
                    raise self._failed.with_traceback(None)  # one object for all requests: each adds to what it has
                if self.over or self._cancel.is_set():
                    raise RunError(_OVER)
                self._changed.wait(_WAIT_SECONDS)
            run = self._run
            self._requests, self._last = self._requests + 1, time.monotonic()
        try:
            yield run
        finally:
            with self._changed:
                self._requests, self._last = self._requests - 1, time.monotonic()
                self._changed.notify_all()

    def _main(self) -> None:
        try:
            with self._opened() as run:
                self._wait_for_end(run)
        except BaseException as error:
            self._failed = error if isinstance(error, Exception) else RunError(_OVER)
        finally:
            with self._changed:
                self._run, self.over = None, self._failed is None
                self._changed.notify_all()

    def _wait_for_end(self, run: _OpenRun) -> None:
        """Let requests have the run, until it is closed or idle, and none is under way."""
        with self._changed:
            self._run, self._last = run, time.monotonic()
            self._changed.notify_all()
            while self._requests or not (self._cancel.is_set() or time.monotonic() - self._last > _IDLE_SECONDS):
                self._changed.wait(_WAIT_SECONDS)
            self._run = None

    @contextmanager
    def _opened(self) -> Iterator[_OpenRun]:
        from longwall.pipeline.inputs import open_resources

        header, observer = self.header, NullObserver()
        _compare_versions(header["version"])
        return_freed_memory()
        spec = load_config(header["config"])
        resources = open_resources(
            spec.with_threads(self._threads), processes=header["share"], per_device=header["per_device"]
        )
        with resources, user_errors(resources.engine), ExitStack() as opened:
            graph = self._graph(spec, resources, opened)
            store: RunStore = LocalStore(Path(header["run"]))
            if is_url(header["run"]):
                store = ObjectStore(header["run"], resources.spill.path / "run")
                parts(store.folder, header["id"]).mkdir(parents=True)
            env = Environment(
                spec=spec,
                graph=graph,
                resources=resources,
                files=RunFiles(store, resources.disk, _random_number, parts(store.folder, header["id"])),
                observer=observer,
                cancel=self._cancel,
                alone=False,
            )
            current = CurrentPhase(env)
            opened.callback(env.end)
            opened.callback(current.close)
            stored = isinstance(graph, StoredGraph)
            if stored:
                derived(env, AdjacencyLists())
            else:
                bring_ahead(env)
            yield _OpenRun(env, current)

    def _graph(self, spec: RunSpec, resources: Resources, opened: ExitStack) -> Graph:
        """Return the graph that the coordinator shares, that the machine's processes share, or that this one reads."""
        from longwall.pipeline.inputs import read_graph

        if self.header["shares"]:
            if (shared := self._description()["shared"]) is not None:
                return map_graph(shared)
        elif self.header["share"] > ALONE and sys.platform == "linux":
            with suppress(StaysInStore):
                return opened.enter_context(self._graph_of_machine(spec, resources))
        return read_graph(spec, NullObserver(), resources, streaming=Streaming(lambda: self._description()["stored"]))

    @contextmanager
    def _graph_of_machine(self, spec: RunSpec, resources: Resources) -> Iterator[Graph]:
        """Have the graph that the machine's processes share: it is read within the memory of all, who pay for it alike.

        Raises
        ------
        StaysInStore
            If every process is to stream it.
        InputError
            If it cannot be read, or does not fit.
        """
        from longwall.pipeline.inputs import read_graph

        share, own = self.header["share"], resources.host
        machine = resources.with_host(MemoryBudget(own.option, share * own.limit, own.advice))

        def read(sharer: GraphSharer) -> tuple[Graph, SharedGraph]:
            graph = read_graph(spec, NullObserver(), machine, sharer.array, Streaming(self._streams_alone))
            return graph, sharer.share(graph, machine.host)

        try:
            with ExitStack() as opened:
                graph, shared = opened.enter_context(graph_of_machine(self.header["id"], read, self._cancel))
                part = -(-shared.resident // share)
                opened.enter_context(own.reserve(part, "this process' part of the graph that the machine shares"))
                yield graph
        except BudgetExceeded as error:
            raise InputError(str(error)) from None

    def _streams_alone(self) -> bool:
        if self._description()["stored"]:
            raise StaysInStore
        return False

    def _description(self) -> RunDescription:
        """Wait for the description of the run, and return it."""
        with self._changed:
            while self._described is None:
                if self._cancel.is_set():
                    raise RunError(_OVER)
                self._changed.wait(_WAIT_SECONDS)
            return self._described


def _send(env: Environment, files: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
    """Send files to the run's URL, if it is at one, and remove them here; the coordinator has their bytes from now on.

    Returns
    -------
    list of dict
        What a commit says of them.
    """
    store = env.files.store
    try:
        if isinstance(store, ObjectStore):
            for file in files:
                folder, _, name = file["name"].partition("/")
                path = env.results / name if folder == "results.partial" else store.folder / file["name"]
                try:
                    store.send(path, file["name"])
                finally:
                    path.unlink(missing_ok=True)
        return list(files)
    finally:
        env.resources.disk.charge(-checkpoint_bytes(files), "")


def _random_number(prefix: str) -> int:  # noqa: ARG001 - see `RunFiles`
    """Return a number for a file that no other process chooses."""
    return random.SystemRandom().getrandbits(60)


def _compare_versions(coordinator: str) -> None:
    """Check the version of this process, which may have joined the cluster when the run had begun."""
    if coordinator != longwall_version():
        raise RunError(
            f"this worker has Longwall {longwall_version()}, the coordinator has {coordinator}: "
            "install the same everywhere"
        )


def parts(run: Path, run_id: str) -> Path:
    """Return the folder where worker processes write results: what the coordinator commits, it moves to the run's."""
    return run / "checkpoint" / f"parts-{run_id}"


_lock = threading.Lock()
_current: WorkerProcess | None = None
_closed: set[str] = set()  # runs; requests that were sent before may still arrive


def serve(
    description: RunDescription,
    phase: PickledPhase,
    ranges: list[Range],
    seconds: float,
    files: list[dict[str, Any]],
) -> RangeResult | WorkerRefusal:
    """Do ranges of a phase of a run, or merge files of it; called by Dask in a thread of a worker process."""
    from distributed import get_worker

    worker = get_worker()
    try:
        process = open_run(description, worker.state.nthreads)
        process.describe(description)
        found = process.do(description["graph"], phase, ranges, seconds, files)
    except FinalError:
        raise
    except MethodFailed as error:
        return WorkerRefusal(
            reason=str(error) or "the phase does not fit its budgets", address=worker.address, fits=False
        )
    except (RunError, MemoryError, OSError) as error:
        return WorkerRefusal(reason=reason_of(error), address=worker.address, fits=True)
    return found | {"worker": str(worker.name), "address": worker.address}


async def prepare(header: RunHeader, dask_worker: Any) -> None:
    """Begin to open a run in this process; Dask calls this with the worker."""
    await asyncio.to_thread(open_run, header, dask_worker.state.nthreads)


async def describe(description: RunDescription, dask_worker: Any) -> None:
    """Say where the graph of a run is; Dask calls this with the worker."""
    process = await asyncio.to_thread(open_run, description, dask_worker.state.nthreads)
    process.describe(description)


def open_run(header: RunHeader, threads: int) -> WorkerProcess:
    """Return the run in this process; opens it where it is not open, and closes another run."""
    global _current
    with _lock:
        if header["id"] in _closed:
            raise RunError("the run is over")
        if _current is None or _current.header["id"] != header["id"] or _current.over:
            if _current is not None:
                _current.close()
            _current = WorkerProcess(header, threads)
        return _current


def write_heat(run_id: str) -> str | None:
    """Write the heat of a run, if this process has it open; return the file's name."""
    with _lock:
        mine = _current is not None and _current.header["id"] == run_id
        return _current.write_heat() if _current is not None and mine else None


async def close(run_id: str) -> None:
    """Close a run, if this process has it open, in a thread of its own."""
    await asyncio.to_thread(_close, run_id)


def _close(run_id: str) -> None:
    global _current
    with _lock:
        _closed.add(run_id)
        if _current is not None and _current.header["id"] == run_id:
            _current.close()
            _current = None


def end() -> None:
    """Close the run that this process has open, if any: the process ends."""
    with _lock:
        if _current is not None:
            _current.close()
