"""The engine of the last function of a process, kept for the next one that asks of the same graph.

A device has the graph then, which crosses the link once for all functions. A process keeps one engine, for one graph: a
function with another graph or other options releases it, and so does all else that opens an engine. So memory is never
that of two. It goes with its graph, which it does not keep alive.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longwall.pipeline.config import RunSpec
    from longwall.pipeline.execution.environment import DeviceGraph, Environment
    from longwall.storage.graph.graph import Graph
    from longwall.storage.memory.resources import Resources


class KeptEngine:
    """An engine with its budgets, and the graph on its device.

    Parameters
    ----------
    graph, options
        What it is for: a graph, and the sections of a config that resources follow from.
    resources
        The budgets have nothing but what the device's graph takes.
    device_graph
        The graph, if the engine has a device.
    """

    def __init__(self, graph: Graph, options: object, resources: Resources, device_graph: DeviceGraph | None):
        self.resources, self.device_graph = resources, device_graph
        self._graph, self._options = weakref.ref(graph, self._graph_is_gone), options

    def suits(self, graph: Graph | None, options: object) -> bool:
        """Return whether it is for a graph and options."""
        return graph is not None and self._graph() is graph and self._options == options

    def _graph_is_gone(self, _: object) -> None:
        global _kept
        with _lock:
            if _kept is self:
                _kept = None


_lock = threading.RLock()  # a graph may be collected while its thread is in here
_kept: KeptEngine | None = None
_of_parents: list[Any] = []  # engines of the processes that this one was forked from, whose devices it must not touch


def take_engine(spec: RunSpec) -> KeptEngine | None:
    """Take the engine that is kept for the graph and the options of a config; an engine for others is released.

    Budgets that the config leaves open are measured anew.
    """
    global _kept
    with _lock:
        kept, _kept = _kept, None
    if kept is None or not kept.suits(spec.graph.given, _options(spec)):
        return None
    return kept if kept.resources.measure_again(spec.memory.host, spec.memory.disk) else None


def keep_engine(spec: RunSpec, env: Environment) -> None:
    """Keep the engine of a run that has ended well, in place of another one, if all but the graph is released.

    It is not kept if the device has only a part of the graph; or if the host stands in for a device that may be free
    the next time; or if it was interrupted as the run ended, since its kernels would return at once.
    """
    global _kept
    if env.cancel.is_set():
        return
    resources, loaded = env.resources, env.device_graph if env.resources.on_device else None
    if spec.graph.given is None or resources.device_note():
        return
    if loaded is not None and not loaded.charged[1]:
        loaded = None  # a graph by label took its place on the device, and has been released
    if loaded is not None and (loaded.placement.access != "resident" or loaded.graph.oriented):
        return
    on_host, on_device = (0, 0) if loaded is None else loaded.charged
    if resources.on_device and resources.work.used != on_device:
        return
    if resources.host.used != spec.graph.given.nbytes + on_host:
        return
    resources.host.charge(-spec.graph.given.nbytes, "")  # the next run reserves it
    with _lock:
        _kept = KeptEngine(spec.graph.given, _options(spec), resources, loaded)


def release_cached() -> None:
    """Let the kept engine return cached memory to its device if it is more than small calls need."""
    with _lock:
        kept = _kept
    if kept is not None and kept.resources.on_device:
        kept.resources.engine.memory.trim()


@atexit.register
def release_engine() -> None:
    """Release the engine that is kept, before another one is opened."""
    global _kept
    with _lock:
        _kept = None


def _options(spec: RunSpec) -> tuple[object, ...]:
    return spec.engine, spec.memory, spec.memory.spill.absolute()  # a program may change its working folder


def _forked() -> None:
    global _kept, _lock
    _lock = threading.RLock()
    if _kept is not None and _kept.resources.on_device:
        _of_parents.append(_kept)
    _kept = None


os.register_at_fork(after_in_child=_forked)
