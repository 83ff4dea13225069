"""Diamonds, counted by pairs of triangles at the same edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.kernel_plan import KernelPlan, OneShape
from longwall.stages.four_vertices import CountDiamondsOfArcs
from longwall.stages.range_counting import CountDiamonds, CountRanges

# With at least this number of edges, counts of arcs take less time on a device than whole rows: diamonds of R-MAT 15,
# which has 442,076, take 0.28 and 0.47 ms so, those of R-MAT 14, with 213,184, take 0.24 and 0.23 (H200).
_MANY_EDGES = 1 << 18
_PREFERRED = 0.5  # of the steps of the other way, where the lists of smaller neighbours are read in order


class Diamonds(OneShape):
    """Diamonds by the triangles at each edge, whose rows are looked up."""

    name: ClassVar[str] = "diamonds"
    family: ClassVar[str] = "triangles"
    sure: ClassVar[bool] = False
    shape: ClassVar[str] = "diamond"
    degrees: ClassVar[list[int]] = [2, 2, 3, 3]
    stage: ClassVar[type[CountRanges]] = CountDiamonds


@dataclass(frozen=True)
class DiamondsByArcsPlan(KernelPlan):
    """Diamonds by the triangles of each arc: lists of smaller neighbours are read in order."""

    def steps(self, facts: Facts) -> float:
        """Return fewer steps than by rows where reading in order takes less time."""
        large = facts.graph is not None and facts.graph.num_edges >= _MANY_EDGES
        in_order = facts.residency == "paged" or (facts.on_device and large)
        return self.cost * _PREFERRED if in_order else self.cost


class DiamondsByArcs(Diamonds):
    """Diamonds by the triangles of each arc, which come in order."""

    name: ClassVar[str] = "diamonds-by-arcs"
    sure: ClassVar[bool] = True
    stage: ClassVar[type[CountRanges]] = CountDiamondsOfArcs
    plan: ClassVar[type[KernelPlan]] = DiamondsByArcsPlan
