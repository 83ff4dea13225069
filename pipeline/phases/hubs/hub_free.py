"""A phase in the graph without its hubs, which every process makes once and keeps for all such phases of the run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial

from longwall.kernels.interface.engine import ShortOfMemory
from longwall.pipeline.execution.device_graph import load_graph, release_graph
from longwall.pipeline.execution.environment import Coordinator, Environment
from longwall.pipeline.execution.phase import DoesNotFit, MakeWorker, Task
from longwall.pipeline.phases.on_graph import ExecutorOnGraph, OnGraph
from longwall.storage.errors import InputError
from longwall.storage.graph.derived.hubs import (
    HubFree,
    degrees_without,
    hub_bytes,
    hub_masks,
    without_hubs,
    without_hubs_bytes,
)
from longwall.storage.memory.reservations import BudgetExceeded, Reservation


@dataclass(frozen=True)
class WithoutHubs(OnGraph):
    """A phase in the run's graph without its hubs.

    Attributes
    ----------
    hubs
        Their number.
    """

    hubs: int

    @staticmethod
    def suffix_of(hubs: int) -> str:
        """Return what distinguishes phases without hubs from those on the graph."""
        return f", without {hubs} hubs"

    @property
    def suffix(self) -> str:
        """See `OnGraph`."""
        return self.suffix_of(self.hubs)

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the roots of what is left."""
        return self.phase.tasks(_left(env, self.hubs))

    def open(self, env: Environment) -> AbstractContextManager[MakeWorker]:
        """Open the phase on what is left."""
        return self.phase.open(_left(env, self.hubs))


class HubFreeGraph:
    """What is left of a process's graph, with its bytes, until the process ends the run.

    Attributes
    ----------
    found
        What is left.
    env
        What works there; None where no edge is left.
    """

    def __init__(self, whole: Environment, hubs: int):
        self._memory: Reservation | None = None
        self.env: Environment | None = None
        try:
            self.found = self._make(whole, hubs)
        except BaseException:
            self.close()
            raise

    def _make(self, whole: Environment, hubs: int) -> HubFree:
        host, graph, loaded = whole.resources.host, whole.graph, whole.device_graph
        if loaded is not None and loaded.placement.access != "resident":
            release_graph(whole)  # the page cache has what is left of the device
        self._memory = host.reserve(hub_bytes(graph), "the graph without its hubs")
        masks = hub_masks(graph, hubs)
        degrees = degrees_without(graph, hubs, masks)
        self._memory.resize(
            masks.nbytes + degrees.nbytes + without_hubs_bytes(graph, degrees), "the graph without its hubs"
        )
        found = without_hubs(graph, hubs, masks, degrees)
        self._memory.resize(found.nbytes, "the graph without its hubs")
        if found.part is None:
            return found
        self.env = replace(whole, graph=found.part.graph, device_graph=None, kept={}, lent={})
        if isinstance(self.env, Coordinator):
            assert isinstance(whole, Coordinator)
            self.env.executor = ExecutorOnGraph(whole, partial(WithoutHubs, hubs=hubs))
            self.env.suffix = WithoutHubs.suffix_of(hubs) + whole.suffix
        load_graph(self.env)
        return found

    def close(self) -> None:
        """Release the bytes."""
        if self.env is not None:
            self.env.close()
            release_graph(self.env)
        if self._memory is not None:
            self._memory.release()


def hub_free_graph(env: Environment, hubs: int) -> HubFreeGraph:
    """Return what is left of the graph without its hubs, in this process.

    Raises
    ------
    DoesNotFit
        If a budget has no room for it.
    """
    key = "without hubs", hubs
    if key not in env.kept:
        try:
            with env.engine.faults():
                env.kept[key] = HubFreeGraph(env, hubs)
        except (BudgetExceeded, InputError, ShortOfMemory) as error:
            raise DoesNotFit from error
    kept: HubFreeGraph = env.kept[key]
    return kept


def _left(env: Environment, hubs: int) -> Environment:
    """Return what works on what is left, where an edge is."""
    found = hub_free_graph(env, hubs).env
    if found is None:
        raise DoesNotFit
    return found
