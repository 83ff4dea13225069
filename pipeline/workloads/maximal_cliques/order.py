"""The degeneracy order, once in every process that searches for maximal cliques."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from longwall.kernels.interface.cliques.degeneracy import OrderedGraph, order_bytes
from longwall.pipeline.execution.device_graph import keep_beside_graph, load_graph

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import Environment


def ordered_graph(env: Environment) -> OrderedGraph:
    """Return the run's graph with its order, which is made when a process first opens a phase.

    Raises
    ------
    BudgetExceeded
        If there is no room for it.
    """
    graph, _ = load_graph(env)
    size = order_bytes(graph.num_vertices, graph.num_arcs // 2)
    make = partial(env.engine.kernels.degeneracy_order, env.engine.device, graph)
    return OrderedGraph.of(graph, keep_beside_graph(env, "the degeneracy order", size, make))
