"""The triangles of every arc and the twins, once in every process that counts orbits of 5 vertices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from longwall.kernels.interface.local_counts import TriangleGraph
from longwall.pipeline.execution.derived import Derivation, Reserved, derived, reserved
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.planning.motifs.twins import ARC_BYTES, VERTEX_BYTES, arcs_at_once, twins_of

if TYPE_CHECKING:
    from longwall.pipeline.execution.environment import Environment

_TRIANGLES = "the triangles of every edge"
_TWINS = "the vertices with the same neighbours"


def triangle_graph(env: Environment) -> TriangleGraph:
    """Return the run's graph with the triangles of its arcs and its twins, found when a process first opens the phase.

    Raises
    ------
    BudgetExceeded
        If a budget has no room for them.
    """
    graph, _ = load_graph(env)
    triangles, most = derived(env, ArcTriangles()).value
    return TriangleGraph.of(graph, triangles=triangles, most_triangles=most, twins=derived(env, Twins()).value)


@dataclass(frozen=True)
class ArcTriangles(Derivation[Reserved[Any]]):
    """The number of triangles of every arc, and the largest sum over the arcs of one vertex, on the engine."""

    optional: ClassVar[bool] = False

    def build(self, env: Environment) -> Reserved[Any]:
        """Count them."""
        graph, _ = load_graph(env)
        kernels, device = env.engine.kernels, env.engine.device

        def count() -> tuple[Any, int]:
            triangles = kernels.arc_triangles(device, graph)
            return triangles, kernels.most_triangles(device, graph, triangles)

        return reserved(env.resources.work, 4 * graph.num_arcs + graph.num_vertices, _TRIANGLES, count)


@dataclass(frozen=True)
class Twins(Derivation[Reserved[Any]]):
    """For every vertex the number of its class of vertices with the same neighbours, on the engine."""

    optional: ClassVar[bool] = False

    def build(self, env: Environment) -> Reserved[Any]:
        """Find the classes on the host."""

        def numbers() -> Any:
            size = VERTEX_BYTES * env.graph.num_vertices + ARC_BYTES * arcs_at_once(env.graph)
            with env.resources.host.reserve(size, _TWINS):
                return env.engine.bring(twins_of(env.graph).numbers, mapped=False)

        return reserved(env.resources.work, 4 * env.graph.num_vertices, _TWINS, numbers)
