"""Handshake: every worker of a cluster reports its Longwall version and its GPU before a run starts."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, TypedDict

from longwall.storage.errors import InputError, RunError
from longwall.storage.system.version import longwall_version

_PATIENCE_SECONDS = 30.0  # with a worker: it may have to import a lot


class WorkerDescription(TypedDict):
    """Of one worker."""

    version: str
    """Of Longwall."""
    device: str | None
    """The identity of the GPU that it would use; None without one."""


def describe_worker(kind: str) -> WorkerDescription:
    """Describe this process; called by Dask on every worker.

    Parameters
    ----------
    kind
        The engine that the run wants.
    """
    return WorkerDescription(version=longwall_version(), device=_device() if kind in ("auto", "cuda") else None)


def describe_workers(client: Any, kind: str) -> dict[str, WorkerDescription]:
    """Describe all workers of a cluster; the scheduler, which reads what they are sent, must have the same version.

    Parameters
    ----------
    client
        A ``distributed.Client``.
    kind
        The engine that the run wants.

    Returns
    -------
    dict of str to WorkerDescription
        Of the workers, by their address.

    Raises
    ------
    InputError
        If Longwall is missing somewhere, or another version is there.
    RunError
        If the scheduler is gone.
    """
    _require_same_version("the cluster's scheduler", _of_scheduler(client))
    found = asyncio.run_coroutine_threadsafe(_of_workers(client, kind), client.loop.asyncio_loop).result()
    for address, answer in found.items():
        _require_same_version(f"the worker at {address}", answer)
    return found


async def _of_workers(client: Any, kind: str) -> dict[str, Any]:
    """Ask the workers; those that died or hang give no answer, and the run can do without them."""

    async def ask(address: str) -> Any:
        asking = client.run(describe_worker, kind, workers=[address], on_error="return")
        try:
            return (await asyncio.wait_for(asking, _PATIENCE_SECONDS)).get(address)
        except (TimeoutError, OSError):
            return None

    addresses = list(await client.nthreads())
    answers = await asyncio.gather(*map(ask, addresses))
    pairs = zip(addresses, answers, strict=True)
    return {address: answer for address, answer in pairs if answer is not None and not isinstance(answer, OSError)}


def _of_scheduler(client: Any) -> Any:
    try:
        return client.run_on_scheduler(describe_worker, "cpu")
    except OSError as error:
        raise RunError("the cluster's scheduler is gone") from error
    except Exception as error:
        return error


def _require_same_version(name: str, answer: WorkerDescription | Exception) -> None:
    if isinstance(answer, Exception):
        reason = f"{type(answer).__name__}: {answer}".splitlines()[0]
        raise InputError(f"{name} cannot take part ({reason}): install Longwall {longwall_version()} there")
    if answer["version"] != longwall_version():
        raise InputError(
            f"{name} has Longwall {answer['version']}, this process {longwall_version()}: "
            "install the same version everywhere"
        )


def most_on_a_device(workers: dict[str, WorkerDescription]) -> int:
    """Return how many workers share a GPU at most; 1 where none has a GPU."""
    shared = Counter(worker["device"] for worker in workers.values() if worker["device"] is not None)
    return max(shared.values(), default=1)


def _device() -> str | None:
    from longwall.kernels.cuda.runtime.open_device import open_device
    from longwall.kernels.interface.engine import EngineUnavailable

    try:
        runtime = open_device().cuda.runtime
    except EngineUnavailable:
        return None
    properties = runtime.getDeviceProperties(runtime.getDevice())
    # CuPy takes a byte of 0 for the end of the first; parts of one GPU (MIG) have the others in common.
    return str([properties.get(key) for key in ("uuid", "pciDomainID", "pciBusID", "pciDeviceID")])
