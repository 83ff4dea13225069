"""How cliques of any size are counted, in all or per vertex."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longwall.kernels.interface.engine import Call
from longwall.kernels.interface.kcliques import limbs_needed
from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.phases.count_per_vertex import CountPerVertex
from longwall.pipeline.phases.range_count import RangeCount, RangePhase
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.pipeline.workloads.cliques.results import VertexTable, write_sizes
from longwall.stages.cliques.leaves import CountCliqueSizes, CountCliquesOfVertices, CountLargeCliques

if TYPE_CHECKING:
    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.storage.graph.graph import Graph

_WEIGHED = 6  # the cliques whose number stands for the work


@dataclass(frozen=True)
class CliquePlan:
    """Counts of cliques by the leaves of pivot trees.

    Attributes
    ----------
    k
        Number of vertices, None: every size.
    limbs
        Words of 64 bits that the cliques of a vertex may need; 0 where they are not counted per vertex, or where the
        sizes say it.
    possible
        Whether a clique of `k` vertices can be there: some vertex has enough neighbours.
    cost
        Estimated number of elementary steps.
    """

    k: int | None
    per_vertex: bool
    limbs: int
    possible: bool
    cost: float

    @property
    def phases(self) -> tuple[RangePhase, ...]:
        """What is known of the phases beforehand."""
        if self.k is None:
            return (RangeCount(CountCliqueSizes(), self.cost),)
        if not self.possible:
            return ()
        if self.per_vertex:
            return (self._of_vertices(self.k, self.limbs),)
        return (RangeCount(CountLargeCliques(self.k), self.cost),)

    @property
    def kernels(self) -> list[Callable[..., Any] | Call]:
        """The functions of `Kernels` that it calls."""
        return [function for phase in self.phases for function in phase.count.kernels]

    @property
    def streamed(self) -> RangePhase:
        """See `longwall.pipeline.planning.plan.CountPlan`; the first one, where others follow."""
        return self.phases[0] if self.phases else RangeCount(CountCliqueSizes(), self.cost)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return {
            "kind": "cliques",
            "k": "all" if self.k is None else self.k,
            "per_vertex": self.per_vertex,
            "estimated_cost": self.cost,
        }

    def describe(self) -> str:
        """The plan as text: the stages that run."""
        what = "cliques of every size" if self.k is None else f"cliques of {self.k} vertices"
        lines = [f"pattern      {what}", *(phase.describe() for phase in self.phases)]
        if not self.phases:
            lines.append("count        0: every vertex has too few neighbours")
        if self.k is None and self.per_vertex:
            lines.append("then         the cliques of every vertex, one size after the other")
        return "\n".join(lines)

    def execute(self, env: Coordinator) -> list[PatternCount]:
        """Count, and write the tables."""
        if self.k is not None:
            return [PatternCount(f"clique-{self.k}", None, self._count(self.k, env))]
        sizes: list[int] = RangeCount(CountCliqueSizes(), self.cost).run(env)
        counts = list(enumerate(sizes))[3:]
        write_sizes(counts, env)
        if self.per_vertex:
            with VertexTable(env, most=max((count for _, count in counts), default=0), sizes=True) as table:
                for size, count in counts:
                    self._write(size, limbs_needed([1], [count], 2), table, env)
        return [PatternCount(f"clique-{size}", None, count) for size, count in counts]

    def _count(self, k: int, env: Coordinator) -> int:
        if not self.per_vertex:
            found: int = RangeCount(CountLargeCliques(k), self.cost).run(env) if self.possible else 0
            return found
        with VertexTable(env, most=None, sizes=False) as table:
            return self._write(k, self.limbs, table, env) if self.possible else table.write_nothing()

    def _write(self, k: int, limbs: int, table: VertexTable, env: Coordinator) -> int:
        """Count the k-cliques of every vertex, and write them; returns their number."""
        with self._of_vertices(k, limbs).run(env) as counts:
            return table.write(k, counts)

    def _of_vertices(self, k: int, limbs: int) -> CountPerVertex:
        return CountPerVertex(CountCliquesOfVertices(k, limbs), self.cost)


def plan_cliques(k: int | None, graph: Graph, *, per_vertex: bool) -> CliquePlan:
    """Plan how to count cliques.

    Parameters
    ----------
    k
        Number of vertices, None: every size.
    graph
        The graph.
    per_vertex
        Whether the cliques of each vertex are wanted.
    """
    stats, limbs = graph.stats, 0
    possible = k is None or k - 1 <= stats.max_out_degree
    if per_vertex and k is not None and possible:
        limbs = limbs_needed(*graph.out_degrees(), k)
    weighed = parse_pattern(f"clique-{min(k or _WEIGHED, _WEIGHED)}")
    return CliquePlan(k, per_vertex, limbs, possible, float(sum(plan_match(weighed, stats).rows)))
