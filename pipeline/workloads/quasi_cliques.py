"""Quasi-cliques: connected sets of k vertices with a few absent edges at most.

They are the induced embeddings of the connected patterns of k vertices with enough edges. Each pattern is counted or
listed by a plan of its own; no set is an induced embedding of two of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.patterns.pattern import MAX_FAMILY, Pattern
from longwall.pipeline.patterns.symmetry import isomorphic
from longwall.pipeline.workloads.base import Workload, answer_pattern, plan_pattern

if TYPE_CHECKING:
    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.pipeline.planning.plan import CountPlan
    from longwall.pipeline.planning.planner import Planner
    from longwall.storage.graph.graph import Graph

_MAX_MISSING = 4  # 20 patterns; 5 would be 46


@dataclass(frozen=True)
class QuasiCliquePlan:
    """A plan for each pattern, densest first."""

    patterns: tuple[CountPlan, ...]

    @property
    def question(self) -> Any:
        """The questions, as `CountPlan.question`."""
        return [plan.question for plan in self.patterns]

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return {"kind": "quasi-cliques", "patterns": [plan.to_dict() for plan in self.patterns]}

    def describe(self) -> str:
        """The plan as text."""
        parts = "\n".join(plan.describe() for plan in self.patterns)
        return f"patterns     {len(self.patterns)}, one after another; their counts are added up\n{parts}"


class QuasiCliques(Workload):
    """``kind = "quasi-cliques"``: sets of `k` vertices between which at most `missing` edges are absent."""

    kind: Literal["quasi-cliques"] = Field(description="connected sets of vertices with a few absent edges at most")
    output: Literal["count", "embeddings"] = Field(default="count", description="`count` or `embeddings`")
    k: Annotated[int, Field(ge=3, le=MAX_FAMILY)] = Field(description=f"number of vertices, 3 to {MAX_FAMILY}")
    missing: Annotated[int, Field(ge=0, le=_MAX_MISSING)] = Field(
        default=1, description=f"number of edges that may be absent, 0 to {_MAX_MISSING}"
    )

    @property
    def num_columns(self) -> int:
        """Number of columns of the embeddings."""
        return self.k

    def plan(self, graph: Graph, planner: Planner | None = None) -> QuasiCliquePlan:
        """Plan for every pattern."""
        patterns = quasi_cliques(self.k, self.missing)
        return QuasiCliquePlan(tuple(plan_pattern(one, graph, self.output, planner, induced=True) for one in patterns))

    def execute(self, plan: QuasiCliquePlan, env: Coordinator) -> list[PatternCount]:
        """Count or list the embeddings of each pattern; ``export.limit`` is for all of them together."""
        found: list[PatternCount] = []
        for one in plan.patterns:
            found.append(answer_pattern(one, env, written=sum(before.count or 0 for before in found)))
        return found


def quasi_cliques(vertices: int, missing: int) -> list[Pattern]:
    """Return the connected patterns of a size with at most `missing` absent edges, each once, densest first.

    The absent edges of a pattern are few, so patterns are compared by them.
    """
    absent = gaps = [Pattern(0, ())]
    for _ in range(missing):
        more: list[Pattern] = []
        for gap in gaps:
            for pair in combinations(range(min(vertices, gap.num_vertices + 2)), 2):
                wider = _numbered_densely({*gap.edges, pair})
                if pair not in gap.edges and not any(isomorphic(wider, known) for known in more):
                    more.append(wider)
        gaps, absent = more, absent + more
    pairs = set(combinations(range(vertices), 2))
    patterns = [Pattern(vertices, tuple(sorted(pairs.difference(gap.edges)))) for gap in absent]
    return [pattern for pattern in patterns if pattern.is_connected]


def _numbered_densely(edges: set[tuple[int, int]]) -> Pattern:
    """Return a pattern with these edges and no isolated vertex."""
    used = sorted({vertex for edge in edges for vertex in edge})
    return Pattern(len(used), tuple(sorted((used.index(u), used.index(v)) for u, v in edges)))
