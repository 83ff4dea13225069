"""Motifs by counting: every connected pattern is counted by the plan that suits it, and the rest is linear algebra.

A non-induced embedding of a pattern is a spanning subgraph of exactly one induced subgraph, so the non-induced count of
a pattern is the sum of the induced counts of all patterns, each times the number of its spanning subgraphs that are
this one. The denser patterns' counts are known first, so each induced count follows by subtraction.
"""

from dataclasses import dataclass
from typing import Any

from longwall.kernels.patterns.pattern_codes import code_edges, connected_codes, spanning_subgraphs
from longwall.pipeline.execution.environment import Coordinator
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.count_plans import CountPlan, plan_count
from longwall.storage.errors import RunError
from longwall.storage.graph.graph import Graph


@dataclass(frozen=True)
class CountingPlan:
    """Motifs of `k` vertices, pattern by pattern.

    Attributes
    ----------
    k
        Number of vertices.
    cost
        Estimated number of elementary steps.
    plans
        One per connected pattern, non-induced, in the order of the pattern codes.
    """

    k: int
    cost: float
    plans: tuple[CountPlan, ...]

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        plans = [plan.to_dict() for plan in self.plans]
        return {"kind": "motif counting", "k": self.k, "estimated_cost": self.cost, "patterns": plans}

    def describe(self) -> str:
        """The plan as text."""
        lines = [
            f"motifs       {len(self.plans):,} connected patterns of {self.k} vertices, induced",
            "count        pattern by pattern, non-induced; induced counts by subtracting those of denser patterns:",
        ]
        width = max(len(plan.pattern.edge_text) for plan in self.plans)
        for plan in self.plans:
            lines.append(
                f"             {plan.pattern.edge_text:<{width}}  {plan.to_dict()['kind']}, {plan.cost:.3g} steps"
            )
        return "\n".join([*lines, f"estimate     {self.cost:.3g} elementary steps"])

    def count(self, env: Coordinator) -> list[int]:
        """Count the induced subgraphs of every connected pattern, in the order of the pattern codes."""
        within = spanning_subgraphs(self.k).tolist()
        counts = [0] * len(self.plans)
        for p in reversed(range(len(self.plans))):
            denser = sum(within[p][q] * counts[q] for q in range(p + 1, len(counts)))
            counts[p] = self.plans[p].count(env) - denser
            if counts[p] < 0:
                raise RunError(f"internal fault: {counts[p]} induced subgraphs {self.plans[p].pattern.edge_text}")
        return counts


def plan_counting(k: int, graph: Graph) -> CountingPlan:
    """Plan how to count every connected pattern of `k` vertices, 3 to 6."""
    plans = tuple(plan_count(Pattern(k, code_edges(code, k)), graph) for code in connected_codes(k).tolist())
    return CountingPlan(k, sum(plan.cost for plan in plans), plans)
