"""The graph with the numbers of its edges, once in every process that counts something of every edge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longwall.kernels.interface.local_counts import EdgeGraph, edge_numbers
from longwall.pipeline.execution.device_graph import load_graph

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import Environment

_KEY = "numbers of edges"


class _Kept:
    """The numbers with their bytes of the budget, until the process ends the run."""

    def __init__(self, env: Environment):
        load_graph(env)
        size = 8 * (env.graph.num_vertices + 1)
        self._memory = env.resources.work.reserve(size, "the numbers of the edges")
        with env.engine.faults(), env.resources.host.reserve(size, "the numbers of the edges"):
            self.edges = env.engine.bring(edge_numbers(env.graph.indptr, env.graph.split), mapped=False)

    def close(self) -> None:
        """Release the bytes."""
        self._memory.release()


def edge_graph(env: Environment) -> EdgeGraph:
    """Return the run's graph with the numbers of its edges, which are made when a process first opens such a phase.

    Raises
    ------
    BudgetExceeded
        If there is no room for them.
    """
    if _KEY not in env.kept:
        env.kept[_KEY] = _Kept(env)
    kept: _Kept = env.kept[_KEY]
    return EdgeGraph.of(load_graph(env)[0], kept.edges)
