"""Counts of cliques of one size or of every size, in all or per vertex, by the leaves of pivot trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from longwall.kernels.interface.engine import Call
from longwall.kernels.interface.kcliques import limbs_needed
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.phases.clique_tables import VertexTable, write_sizes
from longwall.pipeline.phases.count_per_vertex import CountPerVertex
from longwall.pipeline.phases.range_count import RangeCount, RangePhase
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.method import Method
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import WEIGHED, About, Query, Want
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.stages.cliques.leaves import CountCliqueSizes, CountCliquesOfVertices, CountLargeCliques


@dataclass(frozen=True)
class CliqueLeavesPlan(CountPlan):
    """Counts of cliques by the leaves of pivot trees.

    Attributes
    ----------
    query
        The query: a size or every size, in all or per vertex.
    limbs
        Words of 64 bits that the number of cliques of a vertex may need; 0 if cliques are not counted per vertex, or if
        the numbers of cliques by size, counted first, say it.
    possible
        Whether a vertex has enough neighbours for a clique of the size.
    """

    query: Query
    limbs: int
    possible: bool

    @property
    def phases(self) -> tuple[RangePhase, ...]:
        """The phases that are known beforehand."""
        if self.query.size is None:
            return (RangeCount(CountCliqueSizes(), self.cost),)
        if not self.possible:
            return ()
        if self._per_vertex:
            return (self._of_vertices(self.query.size, self.limbs),)
        return (RangeCount(CountLargeCliques(self.query.size), self.cost),)

    @property
    def _per_vertex(self) -> bool:
        return self.query.want == "per_vertex"

    @property
    def kernels(self) -> list[Callable[..., Any] | Call]:
        """The functions of `Kernels` that it calls."""
        return [function for phase in self.phases for function in phase.count.kernels]

    @property
    def streamed(self) -> RangePhase:
        """See `CountPlan`; the first one, where others follow."""
        return self.phases[0] if self.phases else RangeCount(CountCliqueSizes(), self.cost)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return {
            "kind": "cliques",
            "k": self.query.size or "all",
            "per_vertex": self._per_vertex,
            "estimated_cost": self.cost,
        }

    def describe(self) -> str:
        """The plan as text: the stages that run."""
        lines = [f"pattern      {self.query.text}", *(phase.describe() for phase in self.phases)]
        if not self.phases:
            lines.append("count        0: every vertex has too few neighbours")
        if self.query.size is None and self._per_vertex:
            lines.append("then         the cliques of every vertex, one size after the other")
        return "\n".join(lines)

    def count(self, env: Coordinator) -> int:
        """Count the cliques of all sizes together."""
        return sum(self.counts(env))

    def counts(self, env: Coordinator) -> list[int]:
        """Count the cliques of the size, or of each size from 3 on, and write the tables."""
        if self.query.size is not None:
            return [self._count(self.query.size, env)]
        sizes: list[int] = RangeCount(CountCliqueSizes(), self.cost).run(env)
        counts = list(enumerate(sizes))[3:]
        write_sizes(counts, env)
        if self._per_vertex:
            with VertexTable(env, most=max((count for _, count in counts), default=0), sizes=True) as table:
                for size, count in counts:
                    self._write(size, limbs_needed([1], [count], 2), table, env)
        return [count for _, count in counts]

    def _count(self, k: int, env: Coordinator) -> int:
        if not self._per_vertex:
            found: int = RangeCount(CountLargeCliques(k), self.cost).run(env) if self.possible else 0
            return found
        with VertexTable(env, most=None, sizes=False) as table:
            return self._write(k, self.limbs, table, env) if self.possible else table.write_nothing()

    def _write(self, k: int, limbs: int, table: VertexTable, env: Coordinator) -> int:
        """Count the k-cliques of every vertex, and write the counts; return the number of k-cliques."""
        with self._of_vertices(k, limbs).run(env) as counts:
            return table.write(k, counts)

    def _of_vertices(self, k: int, limbs: int) -> CountPerVertex:
        return CountPerVertex(CountCliquesOfVertices(k, limbs), self.cost)


class CliqueLeaves(Method):
    """Counts cliques with more vertices than a pattern may have, cliques of every size, and cliques per vertex."""

    name: ClassVar[str] = "clique-leaves"
    family: ClassVar[str] = "cliques"
    about: ClassVar[About] = "cliques"
    wants: ClassVar[tuple[Want, ...]] = ("count", "per_vertex")

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the pivot trees."""
        k, limbs = query.size, 0
        possible = k is None or k - 1 <= facts.stats.max_out_degree
        if query.want == "per_vertex" and k is not None and possible:
            if facts.graph is None:
                return Refusal("the degrees are not known")
            limbs = limbs_needed(*facts.graph.out_degrees(), k)
        weighed = parse_pattern(f"clique-{min(k or WEIGHED, WEIGHED)}")
        cost = float(sum(plan_match(weighed, facts.stats).rows))
        return CliqueLeavesPlan(query.pattern, cost, query, limbs, possible, method=self.name)
