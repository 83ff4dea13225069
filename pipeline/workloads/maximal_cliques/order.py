"""The degeneracy order, once in every process that searches for maximal cliques."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longwall.kernels.interface.cliques.degeneracy import DegeneracyOrder, OrderedGraph, order_bytes
from longwall.pipeline.execution.device_graph import load_graph

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import Environment

_KEY = "degeneracy order"


class _Kept:
    """The order with its bytes of the budget, until the process ends the run."""

    def __init__(self, env: Environment):
        graph, _ = load_graph(env)
        size = order_bytes(graph.num_vertices, graph.num_arcs // 2)
        self._memory = env.resources.work.reserve(size, "the degeneracy order")
        self.order: DegeneracyOrder = env.engine.kernels.degeneracy_order(env.engine.device, graph)

    def close(self) -> None:
        """Release the bytes."""
        self._memory.release()


def ordered_graph(env: Environment) -> OrderedGraph:
    """Return the run's graph with its order, which is made when a process first opens a phase.

    Raises
    ------
    BudgetExceeded
        If there is no room for it.
    """
    if _KEY not in env.kept:
        env.kept[_KEY] = _Kept(env)
    kept: _Kept = env.kept[_KEY]
    return OrderedGraph.of(load_graph(env)[0], kept.order)
