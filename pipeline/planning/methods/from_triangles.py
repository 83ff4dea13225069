"""Paths of four vertices and triangles with a tail, counted from triangles and degrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.phase import NotEnoughMemory
from longwall.pipeline.phases.degree_sums import count_by_triangles, triangle_phase
from longwall.pipeline.phases.range_count import RangePhase
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.method import Method
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import Query
from longwall.storage.memory.reservations import BudgetExceeded

_MANY_EDGES = 1 << 18  # with fewer all ways are quick, and kernels that other counts compile, too, count


@dataclass(frozen=True)
class FromTrianglesPlan(CountPlan):
    """A count that follows from triangles and degrees, where a search or sums over rows read and compute much more.

    Attributes
    ----------
    limited
        Whether a search would end at a limit.
    """

    limited: bool = False
    tried: ClassVar[bool] = True

    @property
    def streamed(self) -> RangePhase | None:
        """The phase that counts the triangles."""
        return triangle_phase(self.pattern, 0.0)

    def unsuited(self, facts: Facts) -> str:
        """Return why not: a device that holds the graph sums up rows faster.

        The host adds up the degrees at all edges, which takes longer than a device takes for the whole count.
        """
        if self.limited and facts.residency != "stored":
            return "a search ends at the limit"
        large = not facts.on_device and facts.graph is not None and facts.graph.num_edges >= _MANY_EDGES
        return "" if large or facts.residency != "resident" else "memory has the graph, and other ways are quick"

    def to_dict(self) -> dict[str, Any]:
        """Nothing: the best plan stands in the manifest."""
        return {}

    def describe(self) -> str:
        """The plan as text."""
        return (
            "triangles    from triangles and degrees, if memory holds the graph in part, or the CPU counts and edges\n"
            "             are many"
        )

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        try:
            found = count_by_triangles(self.pattern, env)
        except BudgetExceeded as error:
            if Facts.there(env).residency == "stored":
                raise
            raise NotEnoughMemory(str(error)) from None
        assert found is not None, "the method proposes it for patterns that it counts"
        return found


class FromTriangles(Method):
    """Paths of four vertices and triangles with a tail: triangles need the arcs to smaller neighbours alone."""

    name: ClassVar[str] = "from-triangles"
    plain: ClassVar[bool] = True
    non_induced: ClassVar[bool] = True

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the count from triangles."""
        if triangle_phase(query.pattern, 0.0) is None:
            return Refusal("the pattern is neither a path of four vertices nor a triangle with a tail")
        cost = float(facts.stats.num_edges)
        return FromTrianglesPlan(query.pattern, cost, limited=query.limit is not None, method=self.name)
