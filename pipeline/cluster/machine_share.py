"""The share that each process of a machine has of its memory, and whether a graph larger than the share is streamed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from longwall.storage.memory.reservations import MemoryBudget

if TYPE_CHECKING:
    from longwall.pipeline.config import RunSpec, SchedulerSection
    from longwall.storage.memory.resources import Resources

COORDINATOR = 1
"""Counted among the processes of each machine, since it may run on any of them."""
ALONE = 1 + COORDINATOR
"""Processes of a machine with a single worker, which shares its graph with no other."""
_MOST_BY_DEFAULT = 4  # workers of this machine


class Streaming(NamedTuple):
    """Whether a graph that does not fit may stay in its store, and the memory of the processes that stream it."""

    wanted: Callable[[], bool] = lambda: True
    """Whether the graph may stay in its store; asked only if the graph does not fit."""
    processes: int = 1
    """Processes that share ``memory.host`` evenly, and stream parts within their share."""
    most: int | None = None
    """Most bytes of a graph that fits the memory of each process; None: the budget of this process decides."""


def worker_count(section: SchedulerSection, cores: int, devices: Sequence[str]) -> int:
    """Return the number of workers of this machine."""
    return section.workers or len(devices) or min(cores, _MOST_BY_DEFAULT)


def streaming_of_workers(processes: int, limit: int, *, at_address: bool) -> Streaming:
    """Return how the workers of a cluster may stream a graph.

    Parameters
    ----------
    processes
        The number of processes that share the memory of a machine.
    limit
        Bytes of ``memory.host``.
    at_address
        Whether the cluster is at an address. Then a single worker of a machine reads the graph within its share, and
        one of several reads it for all, within the memory of all. Workers that are started here get the graph from the
        coordinator.
    """
    return Streaming(processes=processes, most=limit // processes if at_address and processes <= ALONE else None)


def expected_streaming(spec: RunSpec, resources: Resources, devices: Sequence[str]) -> Streaming:
    """Return how workers may stream before the cluster exists; at an address, assume one worker on each machine."""
    scheduler = spec.scheduler
    if scheduler.kind != "dask" and not devices:
        return Streaming()
    at_address = scheduler.address is not None
    workers = 1 if at_address else worker_count(scheduler, resources.engine.workers, devices)
    return streaming_of_workers(workers + COORDINATOR, resources.host.limit, at_address=at_address)


def share_of(resources: Resources, processes: int) -> Resources:
    """Return the resources of one process if `processes` share the host's memory evenly, and each has the graph."""
    own = resources.host
    if processes == 1:
        return resources
    return resources.with_host(MemoryBudget(own.option, own.limit // processes - own.used, own.advice))
