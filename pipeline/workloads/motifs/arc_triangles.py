"""The triangles of every arc, once in every process that counts orbits of 5 vertices."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from longwall.kernels.interface.local_counts import TriangleGraph
from longwall.pipeline.execution.device_graph import keep_beside_graph, load_graph

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import Environment


def triangle_graph(env: Environment) -> TriangleGraph:
    """Return the run's graph with the triangles of its arcs, which are counted when a process first opens the phase.

    Raises
    ------
    BudgetExceeded
        If there is no room for them.
    """
    graph, _ = load_graph(env)
    size = 4 * graph.num_arcs + graph.num_vertices
    count = partial(env.engine.kernels.arc_triangles, env.engine.device, graph)
    triangles, most = keep_beside_graph(env, "the triangles of every edge", size, count)
    return TriangleGraph.of(graph, triangles, most)
