"""Connections to Dask clusters: the one that a config names, or one of this machine, made for a run."""

from __future__ import annotations

import logging
import threading
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from longwall.pipeline.cluster.address_check import check_scheduler, security_of
from longwall.pipeline.cluster.cluster_workers import (
    ClusterWorkers,
    close_on_workers,
    describe_on_workers,
    open_on_workers,
)
from longwall.pipeline.cluster.dask_executor import DaskExecutor
from longwall.pipeline.cluster.devices import require_dask
from longwall.pipeline.cluster.handshake import describe_workers, most_on_a_device
from longwall.pipeline.cluster.machine_share import COORDINATOR, Streaming, streaming_of_workers, worker_count
from longwall.pipeline.cluster.shared_graph import GraphSharer, SharedGraph
from longwall.pipeline.cluster.started.start import start_workers, why_missing
from longwall.pipeline.cluster.started.worker_main import HOST, PROTOCOL, Meeting
from longwall.pipeline.cluster.worker_process import RunDescription, RunHeader, parts
from longwall.pipeline.config import RunSpec, SchedulerSection
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.environment import Metrics
from longwall.pipeline.execution.thread_executor import RANGES
from longwall.storage.errors import RunError
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_data import NewAdjacency
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.observer import NullObserver, Observer
from longwall.storage.streaming.stored_graph import StoredGraph
from longwall.storage.system.version import longwall_version

_CONNECT_SECONDS, _WORKER_SECONDS = 30, 60
_RETRIES = 3
_SETTINGS = {
    # Budgets are kept by the workers themselves.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    # What Dask looks at by itself, many times a second, in every process.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.diagnostics.nvml": False,
}


class Cluster(NamedTuple):
    """A cluster whose workers open a run."""

    client: Any
    """A ``distributed.Client``."""
    header: RunHeader
    """What they open the run with."""
    on_devices: bool = False
    """Whether any works with a device."""


class ComingCluster:
    """A cluster that may still be started.

    Parameters
    ----------
    coming
        Has the cluster, or the error that `cluster_of` raises.
    sharer
        Shares the graph that this process reads for the workers; None: they read it themselves.
    processes
        The number of processes that share the memory of a machine.
    """

    def __init__(self, coming: Future[Cluster], sharer: GraphSharer | None, processes: int):
        self._coming, self._sharer, self._processes = coming, sharer, processes
        self._shared: SharedGraph | None = None
        self._stored = False

    @property
    def adjacency(self) -> NewAdjacency | None:
        """Makes the array of the neighbours, if it is shared."""
        return None if self._sharer is None else self._sharer.array

    def streaming(self, limit: int) -> Streaming:
        """Return how the workers may stream a graph, with `limit` bytes of ``memory.host``."""
        return streaming_of_workers(self._processes, limit, at_address=self._sharer is None)

    def share(self, graph: Graph, host: MemoryBudget) -> None:
        """Share a graph with the workers, or say that it stays in its store, as soon as they are there.

        Nothing happens if the workers read the graph themselves, and it does not stay in its store.

        Raises
        ------
        BudgetExceeded
            If the host's budget has no room for it.
        """
        self._stored = isinstance(graph, StoredGraph)
        if self._sharer is not None and not self._stored:
            self._shared = self._sharer.share(graph, host)
        if self._sharer is not None or self._stored:
            self._coming.add_done_callback(partial(self._tell, graph.content_hash))

    def wait(self, graph: str) -> tuple[Any, RunDescription]:
        """Wait for the cluster.

        Parameters
        ----------
        graph
            The hash of the graph.

        Returns
        -------
        distributed.Client
            Of the cluster.
        RunDescription
            What its workers have to know.

        Raises
        ------
        InputError, RunError
            See `cluster_of`.
        """
        cluster = self._coming.result()
        return cluster.client, RunDescription(**cluster.header, graph=graph, shared=self._shared, stored=self._stored)

    @property
    def on_devices(self) -> bool:
        """Whether any of the workers, which are there, works with a device."""
        return self._coming.result().on_devices

    def _tell(self, graph: str, coming: Future[Cluster]) -> None:
        if coming.exception() is None:
            describe_on_workers(*self.wait(graph))


@contextmanager
def coming_cluster(
    spec: RunSpec,
    run: Path | str,
    cores: int,
    folder: Path,
    observer: Observer,
    devices: Sequence[str],
    later: ExitStack,
) -> Iterator[ComingCluster]:
    """Begin to start the workers of a run on this machine; or connect to its cluster, which is there.

    Parameters
    ----------
    spec, run, cores, folder, observer, devices, later
        See `cluster_of`.

    Raises
    ------
    InputError, RunError
        See `connected`.
    """
    if spec.scheduler.address is not None:
        with cluster_of(spec, run, cores, folder, observer, devices, later) as cluster:
            there: Future[Cluster] = Future()
            there.set_result(cluster)
            yield ComingCluster(there, None, cluster.header["share"])
        return
    sharer = None if spec.graph.given is not None else GraphSharer()
    cut, shares = threading.Event(), sharer is not None
    with ExitStack() as opened, ThreadPoolExecutor(1, thread_name_prefix="start-workers") as pool:
        starting = cluster_of(spec, run, cores, folder, NullObserver(), devices, later, shares=shares, cut=cut)
        future = pool.submit(opened.enter_context, starting)
        try:
            processes = worker_count(spec.scheduler, cores, devices) + COORDINATOR
            yield ComingCluster(future, sharer, processes)
        finally:
            cut.set()
            wait([future])


@contextmanager
def cluster_of(
    spec: RunSpec,
    run: Path | str,
    cores: int,
    folder: Path,
    observer: Observer,
    devices: Sequence[str],
    later: ExitStack,
    *,
    shares: bool = False,
    cut: threading.Event | None = None,
) -> Iterator[Cluster]:
    """Connect to the cluster of a run, whose workers then open the run.

    Parameters
    ----------
    spec
        The run.
    run
        Its folder, which the workers see under the same path, or its URL.
    cores, folder, devices
        For the workers that are started here, see `connected`.
    observer
        Receives the progress.
    later
        Waits for the end of those that are started here.
    shares
        Whether the coordinator shares its graph; else the workers read it.
    cut
        See `connected`.

    Raises
    ------
    InputError, RunError
        See `connected`.
    """
    spec = spec.with_absolute_paths()
    memory = spec.memory.model_copy(update={"spill": spec.memory.spill.absolute()})
    engine = spec.engine
    if engine.devices is not None or devices:
        engine = engine.model_copy(update={"kind": "cuda"})  # a worker without its device is not what was asked for
    spec = spec.model_copy(update={"memory": memory, "engine": engine})
    embedded = spec.scheduler.address is None
    observer.phase("starting workers" if embedded else "connecting to the cluster", None, "workers")
    header = RunHeader(
        id=uuid.uuid4().hex,
        run=run if isinstance(run, str) else str(run.absolute()),
        config=spec.to_dict(),
        share=1,
        per_device=1,
        version=longwall_version(),
        shares=shares,
    )
    if embedded:
        workers = worker_count(spec.scheduler, cores, devices)
        on_device = -(-workers // len(devices)) if devices else 1
        header |= {"share": workers + COORDINATOR, "per_device": on_device}
    own = header if embedded else None
    on_devices = bool(devices)
    with connected(spec.scheduler, cores, str(folder), devices, own, later, cut) as client:
        if not embedded:
            described = describe_workers(client, engine.kind)
            on_devices = any(worker["device"] is not None for worker in described.values())
            hosts = Counter(worker["host"] for worker in client.scheduler_info(n_workers=-1)["workers"].values())
            share = max(hosts.values(), default=1) + COORDINATOR
            header |= {"share": share, "per_device": most_on_a_device(described)}
            if client.dashboard_link:
                observer.note(f"the cluster's dashboard: {client.dashboard_link}")
            open_on_workers(client, header)
        observer.advance(len(client.nthreads()))
        try:
            yield Cluster(client, header, on_devices)
        finally:
            close_on_workers(client, header["id"])


@contextmanager
def executor_of(env: Coordinator, coming: ComingCluster) -> Iterator[DaskExecutor]:
    """Run phases on a cluster; in the end, write what its workers know of the graph's pages, and note what they did.

    Parameters
    ----------
    env
        The run.
    coming
        See `coming_cluster`.
    """
    client, run = coming.wait(env.graph.content_hash)
    store = env.log.store
    parts(store.folder, run["id"]).mkdir()
    executor = DaskExecutor(ClusterWorkers(client, run, retries_of(env.spec.scheduler), on_devices=coming.on_devices))
    yield executor
    executor.workers.write_heat(store)
    if summary := _summary(env.metrics):
        env.observer.note(summary)


def _summary(metrics: Metrics) -> str:
    """Return what the workers did, as a message; an empty one where there was nothing to do."""
    ranges, busy = 0, defaultdict[str, float](float)
    for row in metrics.rows():
        if row.stage.startswith(RANGES):
            ranges += row.tasks
            busy[row.stage] += row.seconds
    if not busy:
        return ""
    workers = "1 worker" if len(busy) == 1 else f"{len(busy)} workers"
    least, most = f"{min(busy.values()):.1f}", f"{max(busy.values()):.1f}"
    seconds = least if least == most else f"{least} to {most}"
    return f"{ranges:,} ranges done by {workers}, busy for {seconds} s{' each' if len(busy) > 1 else ''}"


def retries_of(section: SchedulerSection) -> int:
    """Return how often a range may be lost."""
    return _RETRIES if section.retries is None else section.retries


def reach(section: SchedulerSection) -> Any:
    """Check that the cluster of a config can be reached, or made here.

    Returns
    -------
    distributed.Security
        The certificates for its address; one of the run's own for a cluster that is made here.

    Raises
    ------
    InputError
        If a package is missing, nothing answers at the address as a scheduler should, or a certificate is none.
    """
    require_dask(section)
    import distributed  # noqa: F401 - it sets the levels

    for name in ("distributed", "distributed.client"):  # each has a level of its own
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters becomes an error message
    if section.address is None:
        from distributed.security import Security

        return Security.temporary()  # in memory: connections of other users, who have no copy of it, are refused
    security = security_of(section)
    check_scheduler(section.address, security, _CONNECT_SECONDS)
    return security


@contextmanager
def connected(
    section: SchedulerSection,
    cores: int,
    folder: str,
    devices: Sequence[str] = (),
    header: RunHeader | None = None,
    later: ExitStack | None = None,
    cut: threading.Event | None = None,
) -> Iterator[Any]:
    """Connect to the cluster of a config.

    Parameters
    ----------
    section
        Of the config.
    cores
        Of this machine, for a cluster that is made here.
    folder
        For the workers' files, likewise.
    devices
        For its workers, likewise: each sees one, in turn.
    header
        Of the run that they open, likewise; None: they get it later.
    later
        Waits for the end of workers that are started here; None: the end of the context does.
    cut
        Set when they are not wanted any more, while they start: that fails soon then.

    Yields
    ------
    distributed.Client
        There is at least one worker.

    Raises
    ------
    InputError
        See `reach`; or more workers are asked for here than make sense.
    RunError
        If no worker comes, or none can be started here.
    """
    require_dask(section)
    with ExitStack() as opened:
        started = None
        if section.address is None:  # they import what they need while this process does
            started = (later or opened).enter_context(start_workers(section, cores, devices, header))
        security = reach(section)
        import dask
        from distributed import Client

        settings = _SETTINGS | {"distributed.scheduler.allowed-failures": retries_of(section)}
        if started is not None:
            # Their HTTP servers, which know no certificates and cannot be left out, have no pages then.
            settings |= {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
        opened.enter_context(dask.config.set(settings))
        where = section.address or opened.enter_context(_scheduler(security)).scheduler_address
        client = Client(where, security=security, timeout=_CONNECT_SECONDS, set_as_default=False)
        opened.enter_context(client)
        if started is not None:
            opened.callback(started.end)  # while what they have had to do with is closed
            met = started.meet(Meeting(where, security, folder, settings), _WORKER_SECONDS, cut or threading.Event())
            if met.there < met.wanted:
                raise RunError(why_missing(met, _WORKER_SECONDS))
        try:
            client.wait_for_workers(1, timeout=_WORKER_SECONDS)
        except TimeoutError:
            raise RunError(f"no worker has come to the cluster in {_WORKER_SECONDS} s: start some") from None
        yield client


def _scheduler(security: Any) -> Any:
    """Start the scheduler of a cluster of this machine; nothing of it can be reached from another one, or by others."""
    from distributed import Scheduler, SpecCluster

    options = {
        "host": HOST,
        "protocol": PROTOCOL,
        "security": security,
        "port": 0,
        "dashboard": False,
        "dashboard_address": f"{HOST}:0",
    }
    return SpecCluster(
        scheduler={"cls": Scheduler, "options": options}, security=security, silence_logs=logging.CRITICAL
    )
