"""The graph with the numbers of its edges, once in every process that counts something of every edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from longwall.kernels.interface.local_counts import EdgeGraph, edge_numbers
from longwall.pipeline.execution.derived import Derivation, Reserved, derived, reserved
from longwall.pipeline.execution.device_graph import load_graph

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
    return EdgeGraph.of(graph, edges=derived(env, EdgeNumbers()).value)


@dataclass(frozen=True)
class EdgeNumbers(Derivation[Reserved[Any]]):
    """The numbers of the edges, on the engine."""

    optional: ClassVar[bool] = False

    def build(self, env: Environment) -> Reserved[Any]:
        """Number the edges on the host."""
        size = 8 * (env.graph.num_vertices + 1)

        def numbers() -> Any:
            with env.resources.host.reserve(size, _WHAT):
                return env.engine.bring(edge_numbers(env.graph.indptr, env.graph.split), mapped=False)

        return reserved(env.resources.work, size, _WHAT, numbers)
