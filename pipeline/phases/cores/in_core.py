"""A core of the graph: every process derives it once, and keeps it for all phases on it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.derived import derived
from longwall.pipeline.execution.device_graph import load_graph, release_graph
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.phases.derived_graph import DerivedGraph, GraphDerivation
from longwall.storage.graph.derived.core import Core, core_bytes, core_degrees, core_graph, peel_bytes

_WHAT = "the core of the graph"


@dataclass(frozen=True)
class KCore(GraphDerivation[Core | None]):
    """The largest part of the graph in which each vertex has `least` neighbours."""

    least: int

    @property
    def suffix(self) -> str:
        """See `GraphDerivation`."""
        return f", in the {self.least}-core"

    def build(self, env: Environment) -> DerivedGraph[Core | None]:
        """Peel the graph, and bring its core to the engine."""
        host, loaded = env.resources.host, env.device_graph
        if loaded is not None and loaded.placement.access != "resident":
            release_graph(env)  # the page cache takes the rest of the device's memory
        with ExitStack() as opened:
            memory = opened.enter_context(host.reserve(peel_bytes(env.graph), _WHAT))
            degrees = core_degrees(env.graph, self.least, env.cancel.is_set)
            if env.cancel.is_set():
                raise KeyboardInterrupt
            if not degrees.any():
                return DerivedGraph(env, self, None, None, None)
            memory.resize(degrees.nbytes + core_bytes(env.graph, degrees), _WHAT)
            core = core_graph(env.graph, degrees, self.least)
            del degrees
            memory.resize(core.nbytes, _WHAT)
            made = DerivedGraph(env, self, core, core.graph, memory)
            opened.callback(made.close)
            assert made.env is not None
            load_graph(made.env)
            opened.pop_all()
        return made


def core_environment(env: Coordinator, least: int) -> Coordinator | None:
    """Return the environment of a core; None if the core is empty.

    Raises
    ------
    NotEnoughMemory
        If a budget has no room for it.
    """
    there = derived(env, KCore(least)).env
    assert there is None or isinstance(there, Coordinator)
    return there


def core_of(env: Environment) -> tuple[Environment, Core]:
    """Return the environment of the graph whose core another environment works in, and the core."""
    core = env.own.found
    assert isinstance(core, Core)
    return env.own.whole, core
