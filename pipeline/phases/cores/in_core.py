"""A phase in a core of the graph, which every process makes once and keeps for all such phases of the run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial

from longwall.kernels.interface.engine import ShortOfMemory
from longwall.pipeline.execution.device_graph import load_graph, release_graph
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import DoesNotFit, MakeWorker, Task
from longwall.pipeline.phases.on_graph import OnGraph, OwnGraph, Place
from longwall.storage.errors import InputError
from longwall.storage.graph.derived.core import Core, core_bytes, core_degrees, core_graph, peel_bytes
from longwall.storage.memory.reservations import BudgetExceeded

_WHAT = "the core of the graph"


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
        return self.phase.tasks(self._there(env))

    def open(self, env: Environment) -> AbstractContextManager[MakeWorker]:
        """Open the phase in the core."""
        return self.phase.open(self._there(env))

    def _there(self, env: Environment) -> Environment:
        there = core_environment(env, self.least)
        if there is None:
            raise DoesNotFit
        return there


class _Empty:
    """A core without a vertex."""

    def close(self) -> None:
        """Nothing is kept."""


def _make(env: Place, least: int) -> OwnGraph[Core, Place] | _Empty:
    """Peel the graph, and bring its core to the engine."""
    host, loaded = env.resources.host, env.device_graph
    if loaded is not None and loaded.placement.access != "resident":
        release_graph(env)  # the page cache has what is left of the device
    with ExitStack() as opened:
        memory = opened.enter_context(host.reserve(peel_bytes(env.graph), _WHAT))
        degrees = core_degrees(env.graph, least, env.cancel.is_set)
        if env.cancel.is_set():
            raise KeyboardInterrupt
        if not degrees.any():
            return _Empty()
        memory.resize(degrees.nbytes + core_bytes(env.graph, degrees), _WHAT)
        core = core_graph(env.graph, degrees, least)
        del degrees
        memory.resize(core.nbytes, _WHAT)
        own = OwnGraph(env, core, core.graph, memory, partial(InCore, least=least), InCore.suffix_of(least))
        opened.callback(own.close)
        load_graph(own.env)
        opened.pop_all()
    return own


def _own_core(env: Place, least: int) -> OwnGraph[Core, Place] | _Empty:
    """Return the core that this process keeps; made where it is not there.

    Raises
    ------
    DoesNotFit
        If a budget has no room for it.
    """
    key = "core", least
    if key not in env.kept:
        try:
            with env.engine.faults():
                env.kept[key] = _make(env, least)
        except (BudgetExceeded, InputError, ShortOfMemory) as error:
            raise DoesNotFit from error
    kept: OwnGraph[Core, Place] | _Empty = env.kept[key]
    return kept


def core_environment(env: Place, least: int) -> Place | None:
    """Return what works in a core of the graph; None where the core is empty.

    Raises
    ------
    DoesNotFit
        If a budget has no room for it.
    """
    kept = _own_core(env, least)
    return None if isinstance(kept, _Empty) else kept.env


def core_of(env: Environment) -> OwnGraph[Core, Environment]:
    """Return the core that an environment works in."""
    own: OwnGraph[Core, Environment] = env.own
    assert isinstance(own.what, Core)
    return own
