"""Counting without enumerating: choose between a search and the kernels that know a shortcut.

Cliques have bitmap tables; a 4-cycle is two wedges with the same ends, so wedges are aggregated by their ends.
"""

from dataclasses import dataclass
from typing import Any, Literal

from longwall.pipeline.context import RunContext
from longwall.pipeline.executor import count_matches, count_ranges
from longwall.pipeline.patterns import Pattern
from longwall.pipeline.plan import MatchPlan
from longwall.pipeline.planner import plan_match
from longwall.pipeline.symmetry import automorphism_count
from longwall.storage.stats import GraphStats

Method = Literal["clique bitmaps", "wedge aggregation"]


@dataclass(frozen=True)
class KernelPlan:
    """A count that a kernel of its own can take.

    Attributes
    ----------
    pattern
        The pattern.
    method
        Which kernel.
    automorphisms
        Size of the automorphism group: mappings per embedding.
    """

    pattern: Pattern
    method: Method
    automorphisms: int

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data, for the manifest."""
        return {"kind": self.method, "pattern": self.pattern.edge_text, "automorphisms": self.automorphisms}

    def describe(self) -> str:
        """The plan as text."""
        pattern = self.pattern
        how = {
            "clique bitmaps": "a bitmap table over the out-neighbours of each vertex; AND and population count",
            "wedge aggregation": "wedges grouped by their ends; c wedges with the same ends are c (c - 1) / 2 cycles",
        }[self.method]
        return (
            f"pattern      {pattern.name}  ({pattern.edge_text}), {pattern.num_vertices} vertices, "
            f"{len(pattern.edges)} edges, {self.automorphisms} automorphisms\n"
            f"count        {self.method}: {how}"
        )


AnyPlan = MatchPlan | KernelPlan


def plan_count(pattern: Pattern, stats: GraphStats, *, induced: bool = False) -> AnyPlan:
    """Plan how to count a pattern's embeddings."""
    if pattern.labels is None:
        if pattern.is_clique and pattern.num_vertices >= 3:
            return KernelPlan(pattern, "clique bitmaps", automorphism_count(pattern))
        if not induced and pattern.num_vertices == 4 and all(len(n) == 2 for n in pattern.neighbours):
            return KernelPlan(pattern, "wedge aggregation", automorphism_count(pattern))
    return plan_match(pattern, stats, induced=induced)


def count_plan(plan: AnyPlan, context: RunContext) -> int:
    """Count the embeddings of a plan."""
    if isinstance(plan, MatchPlan):
        return count_matches(plan, context)
    engine, k = context.engine, plan.pattern.num_vertices
    if plan.method == "clique bitmaps":
        return count_ranges(
            context, plan.method, "slots", lambda graph, memory: engine.clique_counter(graph, k, memory)
        )
    return count_ranges(context, plan.method, "vertices", engine.four_cycle_counter)
