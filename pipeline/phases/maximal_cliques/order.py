"""The degeneracy order, once in every process that searches for maximal cliques."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from longwall.kernels.interface.maximal_cliques import OrderedGraph, order_bytes
from longwall.pipeline.execution.derived import Derivation, Reserved, derived, reserved
from longwall.pipeline.execution.device_graph import load_graph

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import Environment

_FREE_SHARE = 2  # of the host's memory, that the order has at most beside a graph in files: workers need the rest


def ordered_graph(env: Environment) -> OrderedGraph:
    """Return the run's graph with its order, which is made when a process first opens a phase.

    Raises
    ------
    BudgetExceeded
        If there is no room for it.
    """
    graph, _ = load_graph(env)
    return OrderedGraph.of(graph, order=derived(env, DegeneracyOrder()).value)


@dataclass(frozen=True)
class DegeneracyOrder(Derivation[Reserved[Any]]):
    """The degeneracy order of the graph, on the engine."""

    optional: ClassVar[bool] = False

    def build(self, env: Environment) -> Reserved[Any]:
        """Peel the graph; if it lies in files and the order is large, the lists of later neighbours are files, too."""
        graph, _ = load_graph(env)
        edges, later = graph.num_arcs // 2, None
        size, files = order_bytes(graph.num_vertices, edges), env.graph.files
        if files is not None and not env.resources.on_device and size > env.resources.host.free // _FREE_SHARE:
            # As the graph itself: all other arrays have one entry per vertex.
            later, size = files.array(edges, np.dtype(np.uint32)), order_bytes(graph.num_vertices, 0)
        make = partial(env.engine.kernels.degeneracy_order, env.engine.device, graph, later)
        return reserved(env.resources.work, size, "the degeneracy order", make)
