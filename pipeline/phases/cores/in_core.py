"""A phase in a core of the graph, which every process makes once and keeps for all such phases of the run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from longwall.kernels.interface.engine import ShortOfMemory
from longwall.pipeline.execution.device_graph import load_graph, release_graph
from longwall.pipeline.execution.environment import Coordinator, Environment
from longwall.pipeline.execution.phase import DoesNotFit, MakeWorker, Task
from longwall.pipeline.phases.on_graph import ExecutorOnGraph, OnGraph
from longwall.storage.errors import InputError
from longwall.storage.graph.derived.core import Core, core_bytes, core_degrees, core_graph, peel_bytes
from longwall.storage.memory.reservations import BudgetExceeded, Reservation


@dataclass(frozen=True)
class InCore(OnGraph):
    """A phase in a core of the run's graph.

    Attributes
    ----------
    least
        Neighbours that every vertex of the core has there.
    """

    least: int

    @staticmethod
    def suffix_of(least: int) -> str:
        """Return what distinguishes phases in a core from those on the graph, and in other cores."""
        return f", in the {least}-core"

    @property
    def suffix(self) -> str:
        """See `OnGraph`."""
        return self.suffix_of(self.least)

    def tasks(self, env: Environment) -> Sequence[Task]:
        """Return tasks over the roots of the core."""
        return self.phase.tasks(core_environment(env, self.least))

    def open(self, env: Environment) -> AbstractContextManager[MakeWorker]:
        """Open the phase in the core."""
        return self.phase.open(core_environment(env, self.least))


@dataclass(kw_only=True)
class CoreEnvironment(Environment):
    """What a phase works with in a core.

    Attributes
    ----------
    whole
        The environment of the whole graph.
    core
        The core.
    """

    whole: Environment
    core: Core


@dataclass(kw_only=True)
class CoreCoordinator(Coordinator, CoreEnvironment):
    """What a plan works with in a core: its phases are those of the run."""


class _Kept:
    """An environment with a core, and the bytes of both, until the process ends the run."""

    def __init__(self, env: Environment, least: int):
        self._memory: Reservation | None = None
        self.env: CoreEnvironment | None = None
        try:
            self._make(env, least)
        except BaseException:
            self.close()
            raise

    def _make(self, env: Environment, least: int) -> None:
        host, loaded = env.resources.host, env.device_graph
        if loaded is not None and loaded.placement.access != "resident":
            release_graph(env)  # the page cache has what is left of the device
        self._memory = host.reserve(peel_bytes(env.graph), "the core of the graph")
        degrees = core_degrees(env.graph, least, env.cancel.is_set)
        if env.cancel.is_set():
            raise KeyboardInterrupt
        if not degrees.any():
            self._memory.resize(0, "")
            return
        self._memory.resize(degrees.nbytes + core_bytes(env.graph, degrees), "the core of the graph")
        core = core_graph(env.graph, degrees, least)
        del degrees
        self._memory.resize(core.nbytes, "the core of the graph")
        fields: dict[str, Any] = {
            "spec": env.spec,
            "graph": core.graph,
            "resources": env.resources,
            "files": env.files,
            "results": env.results,
            "observer": env.observer,
            "cancel": env.cancel,
            "alone": env.alone,
            "whole": env,
            "core": core,
        }
        if isinstance(env, Coordinator):
            own: dict[str, Any] = {
                "log": env.log,
                "metrics": env.metrics,
                "executor": ExecutorOnGraph(env, partial(InCore, least=least)),
            }
            self.env = CoreCoordinator(**fields, **own, answer=env.answer, suffix=InCore.suffix_of(least) + env.suffix)
        else:
            self.env = CoreEnvironment(**fields)
        load_graph(self.env)

    def close(self) -> None:
        """Release the bytes."""
        if self.env is not None:
            self.env.close()
            release_graph(self.env)
        if self._memory is not None:
            self._memory.release()


def core_environment(env: Environment, least: int) -> CoreEnvironment:
    """Return this process's environment with a core of the graph, which is not empty.

    Raises
    ------
    DoesNotFit
        If a budget has no room for it.
    """
    found = _kept(env, least).env
    if found is None:
        raise DoesNotFit
    return found


def core_coordinator(env: Coordinator, least: int) -> CoreCoordinator | None:
    """Return the coordinator's environment with a core of the graph; None where the core is empty.

    Raises
    ------
    DoesNotFit
        If a budget has no room for it.
    """
    found = _kept(env, least).env
    assert found is None or isinstance(found, CoreCoordinator)
    return found


def _kept(env: Environment, least: int) -> _Kept:
    key = "core", least
    if key not in env.kept:
        try:
            with env.engine.faults():
                env.kept[key] = _Kept(env, least)
        except (BudgetExceeded, InputError, ShortOfMemory) as error:
            raise DoesNotFit from error
    kept: _Kept = env.kept[key]
    return kept
