"""The triangles of every arc and the twins, once in every process that counts orbits of 5 vertices."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from longwall.kernels.interface.local_counts import TriangleGraph
from longwall.pipeline.execution.device_graph import keep_beside_graph, load_graph
from longwall.pipeline.workloads.motifs.twins import ARC_BYTES, VERTEX_BYTES, arcs_at_once, twins_of

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import Environment

_TWINS = "the vertices with the same neighbours"


def triangle_graph(env: Environment) -> TriangleGraph:
    """Return the run's graph with the triangles of its arcs and its twins, found when a process first opens the phase.

    Raises
    ------
    BudgetExceeded
        If there is no room for them.
    """
    graph, _ = load_graph(env)
    size = 4 * graph.num_arcs + graph.num_vertices
    count = partial(env.engine.kernels.arc_triangles, env.engine.device, graph)

    def numbers() -> Any:
        size = VERTEX_BYTES * env.graph.num_vertices + ARC_BYTES * arcs_at_once(env.graph)
        with env.engine.faults(), env.resources.host.reserve(size, _TWINS):
            return env.engine.bring(twins_of(env.graph).numbers, mapped=False)

    triangles, most = keep_beside_graph(env, "the triangles of every edge", size, count)
    return TriangleGraph.of(graph, triangles, most, keep_beside_graph(env, _TWINS, 4 * env.graph.num_vertices, numbers))
