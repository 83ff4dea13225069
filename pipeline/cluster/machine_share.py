"""How the processes of a machine share its memory, and what each of them can do with its share of a large graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from longwall.storage.memory.reservations import MemoryBudget

if TYPE_CHECKING:
    from longwall.pipeline.config import RunSpec, SchedulerSection
    from longwall.storage.memory.resources import Resources

COORDINATOR = 1
"""Among the processes of a machine: it may be there, too."""
ALONE = 1 + COORDINATOR
"""Processes of a machine with one worker, which has nobody to share its graph with."""
_MOST_BY_DEFAULT = 4  # workers of this machine


class Streaming(NamedTuple):
    """Whether a graph that does not fit may stay in its store, and how much memory those have that stream it."""

    wanted: Callable[[], bool] = lambda: True
    """Asked only if the graph does not fit."""
    processes: int = 1
    """That share ``memory.host`` evenly, and stream parts within their share."""
    most: int | None = None
    """Bytes of a graph that each of them has room for; None: as many as the budget of this process has."""


def worker_count(section: SchedulerSection, cores: int, devices: Sequence[str]) -> int:
    """Return the number of workers of this machine."""
    return section.workers or len(devices) or min(cores, _MOST_BY_DEFAULT)


def streaming_of_workers(processes: int, limit: int, *, at_address: bool) -> Streaming:
    """Return how the workers of a cluster may stream a graph.

    Parameters
    ----------
    processes
        Of a machine.
    limit
        Bytes of ``memory.host``.
    at_address
        Whether the cluster is at an address: one worker of a machine reads the graph for itself, several for all of
        them. Those that are started here have it from the coordinator.
    """
    return Streaming(processes=processes, most=limit // processes if at_address and processes <= ALONE else None)


def expected_streaming(spec: RunSpec, resources: Resources, devices: Sequence[str]) -> Streaming:
    """Return the same before there is a cluster; one at an address is taken to have one worker on each machine."""
    scheduler = spec.scheduler
    if scheduler.kind != "dask" and not devices:
        return Streaming()
    at_address = scheduler.address is not None
    workers = 1 if at_address else worker_count(scheduler, resources.engine.workers, devices)
    return streaming_of_workers(workers + COORDINATOR, resources.host.limit, at_address=at_address)


def share_of(resources: Resources, processes: int) -> Resources:
    """Return the resources of one of the processes that share the host's memory evenly, each of which has the graph."""
    own = resources.host
    if processes == 1:
        return resources
    return resources.with_host(MemoryBudget(own.option, own.limit // processes - own.used, own.advice))
