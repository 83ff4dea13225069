"""Connections to Dask clusters: the one that a config names, or one of this machine, made for a run."""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from longwall.pipeline.cluster.coordinator import DaskScheduler
from longwall.pipeline.cluster.replica import Job, parts
from longwall.pipeline.config import SchedulerSection
from longwall.pipeline.context import RunContext
from longwall.storage.errors import InputError, RunError

_HOST = "127.0.0.1"
_CONNECT_SECONDS, _WORKER_SECONDS = 30, 60
_RETRIES = 3
_MISSING = "a cluster needs Dask: pip install 'longwall[cluster]'"


@contextmanager
def scheduler_of(context: RunContext, run: Path, plan: Any) -> Iterator[DaskScheduler]:
    """Connect to the cluster of a run.

    Parameters
    ----------
    context
        The run.
    run
        Its folder, which the workers see under the same path.
    plan
        What is executed.

    Raises
    ------
    InputError, RunError
        See `connected`.
    """
    spec = context.spec.located()
    memory = spec.memory.model_copy(update={"spill": spec.memory.spill.absolute()})
    spec = spec.model_copy(update={"memory": memory})
    with connected(spec.scheduler, context.engine.workers, str(memory.spill)) as client:
        hosts = Counter(worker["host"] for worker in client.scheduler_info(n_workers=-1)["workers"].values())
        job = Job(
            id=uuid.uuid4().hex,
            run=str(run.absolute()),
            config=spec.to_dict(),
            graph=context.graph.content_hash,
            plan=plan.to_dict(),
            share=max(hosts.values()) + 1,  # processes of a machine: the coordinator may be there, too
        )
        if client.dashboard_link:
            context.observer.note(f"the cluster's dashboard: {client.dashboard_link}")
        parts(run, job["id"]).mkdir()
        scheduler = DaskScheduler(client, job, retries_of(spec.scheduler))
        try:
            yield scheduler
        finally:
            scheduler.close()


def retries_of(section: SchedulerSection) -> int:
    """How often a range may be lost."""
    return _RETRIES if section.retries is None else section.retries


@contextmanager
def connected(section: SchedulerSection, cores: int, spill: str) -> Iterator[Any]:
    """Connect to the cluster of a config.

    Parameters
    ----------
    section
        Of the config.
    cores
        Of this machine, for a cluster that is made here.
    spill
        The folder for the workers' files, likewise.

    Yields
    ------
    distributed.Client
        There is at least one worker.

    Raises
    ------
    InputError
        If Dask is missing, nobody answers at the address, or a certificate is none.
    RunError
        If no worker comes.
    """
    try:
        import dask
        from distributed import Client, LocalCluster
        from distributed.security import Security
    except ImportError:
        raise InputError(f'scheduler.kind = "dask": {_MISSING}') from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is told in sentences
    settings = {
        "distributed.scheduler.allowed-failures": retries_of(section),
        # Budgets are kept by the workers themselves.
        "distributed.worker.memory.target": False,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
        "distributed.worker.memory.terminate": False,
    }
    with ExitStack() as open_here:
        open_here.enter_context(dask.config.set(settings))
        try:
            if section.address is not None:
                security = None
                if section.security is not None:
                    files = section.security
                    security = Security(
                        tls_ca_file=str(files.ca),
                        tls_client_cert=str(files.cert),
                        tls_client_key=str(files.key),
                        require_encryption=True,
                    )
                client = Client(section.address, security=security, timeout=_CONNECT_SECONDS, set_as_default=False)
            else:
                workers = section.workers or min(cores, 4)
                cluster = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=section.threads_per_worker or max(cores // workers, 1),
                    processes=True,
                    host=_HOST,
                    dashboard_address=f"{_HOST}:0",
                    memory_limit=None,
                    local_directory=spill,
                    silence_logs=logging.CRITICAL,
                )
                open_here.enter_context(cluster)
                client = Client(cluster, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise InputError(f'scheduler.address = "{section.address}": nobody answers as it should: {error}') from None
        open_here.enter_context(client)
        try:
            client.wait_for_workers(1, timeout=_WORKER_SECONDS)
        except TimeoutError:
            raise RunError(f"no worker has come to the cluster in {_WORKER_SECONDS} s: start some") from None
        yield client
