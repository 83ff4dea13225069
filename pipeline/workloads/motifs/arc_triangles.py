"""The triangles of every arc, once in every process that counts orbits of 5 vertices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longwall.kernels.interface.local_counts import TriangleGraph
from longwall.pipeline.execution.device_graph import load_graph

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import Environment

_KEY = "triangles of arcs"


class _Kept:
    """The numbers with their bytes of the budget, until the process ends the run."""

    def __init__(self, env: Environment):
        graph, _ = load_graph(env)
        size = 4 * graph.num_arcs + graph.num_vertices
        self._memory = env.resources.work.reserve(size, "the triangles of every edge")
        self.triangles, self.most = env.engine.kernels.arc_triangles(env.engine.device, graph)

    def close(self) -> None:
        """Release the bytes."""
        self._memory.release()


def triangle_graph(env: Environment) -> TriangleGraph:
    """Return the run's graph with the triangles of its arcs, which are counted when a process first opens the phase.

    Raises
    ------
    BudgetExceeded
        If there is no room for them.
    """
    if _KEY not in env.kept:
        env.kept[_KEY] = _Kept(env)
    kept: _Kept = env.kept[_KEY]
    return TriangleGraph.of(load_graph(env)[0], kept.triangles, kept.most)
