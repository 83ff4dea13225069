"""Runs whose graph is in memory: how they are resumed, and how other processes get the graph."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from longwall.pipeline.config import RunSpec
from longwall.storage.errors import InputError
from longwall.storage.system.arguments import require_type

if TYPE_CHECKING:
    from pathlib import Path

    from longwall.storage.graph.graph import Graph
    from longwall.storage.memory.resources import Resources


def how_to_resume(spec: RunSpec, where: Path | str) -> str:
    """Return the command that goes on with a run; a call of Python where its graph is in memory."""
    if spec.graph.in_memory is None:
        return shlex.join(["longwall", "resume", str(where)])
    return f'longwall.resume("{where}", graph=graph)'


def with_graph_again(spec: RunSpec, graph: Graph | None, where: Path | str) -> RunSpec:
    """Return the config of a run that is resumed, with its graph if that was in memory.

    Parameters
    ----------
    spec
        The config.
    graph
        What the caller has; None: nothing.
    where
        The run, for messages.

    Raises
    ------
    InputError
        If the graph is missing, is another one, or there shall be none.
    """
    known = spec.graph.in_memory
    if known is None:
        if graph is not None:
            raise InputError(f"{where}: the graph of this run is read as its config says: leave out graph=")
        return spec
    if graph is None:
        again = how_to_resume(spec, where)
        raise InputError(f"{where}: the graph of this run was in memory: give it again in Python, {again}")
    from longwall.storage.graph.graph import Graph as Known

    require_type("graph", graph, Known, "the longwall.Graph that the run began with")
    if graph.content_hash != known:
        raise InputError(f"{where}: graph= is not the graph that the run began with, its hash differs: give that one")
    return spec.with_graph(graph)


def shared_graph(spec: RunSpec, resources: Resources) -> RunSpec:
    """Return the config for other processes of this machine: a graph in memory is in the spill folder for them.

    Raises
    ------
    InputError
        If they may be on other machines, or the graph does not fit the budget of the disk.
    """
    from longwall.storage.memory.reservations import BudgetExceeded

    if (graph := spec.graph.given) is None:
        return spec
    if spec.scheduler.address is not None:
        raise InputError(
            "graph: the workers of a cluster cannot read the memory of this process; write the graph where they "
            "see it, graph.save(path), and give graph.path"
        )
    try:
        resources.disk.reserve(graph.nbytes, "a copy of the graph for the workers")
    except BudgetExceeded as error:
        raise InputError(str(error)) from None
    path = resources.spill.path / "graph"
    graph.save(path)
    return spec.reading(path)
