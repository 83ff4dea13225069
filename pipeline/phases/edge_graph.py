"""The graph with the numbers of its edges, once in every process that counts something of every edge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longwall.kernels.interface.local_counts import EdgeGraph, edge_numbers
from longwall.pipeline.execution.device_graph import keep_beside_graph, load_graph

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import Environment

_WHAT = "the numbers of the edges"


def edge_graph(env: Environment) -> EdgeGraph:
    """Return the run's graph with the numbers of its edges, which are made when a process first opens such a phase.

    Raises
    ------
    BudgetExceeded
        If there is no room for them.
    """
    graph, _ = load_graph(env)
    size = 8 * (env.graph.num_vertices + 1)

    def numbers() -> Any:
        with env.engine.faults(), env.resources.host.reserve(size, _WHAT):
            return env.engine.bring(edge_numbers(env.graph.indptr, env.graph.split), mapped=False)

    return EdgeGraph.of(graph, keep_beside_graph(env, _WHAT, size, numbers))
