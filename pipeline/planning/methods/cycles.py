"""Cycles of four and of five vertices, counted by pairs of wedges with the same ends."""

from __future__ import annotations

from typing import ClassVar

from longwall.pipeline.planning.kernel_plan import OneShape
from longwall.stages.four_vertices import CountFourCycles
from longwall.stages.range_counting import CountFiveCycles, CountRanges


class FourCycles(OneShape):
    """4-cycles: two wedges with the same ends are one, so wedges are aggregated by their ends."""

    name: ClassVar[str] = "four-cycles"
    shape: ClassVar[str] = "4-cycle"
    degrees: ClassVar[list[int]] = [2] * 4
    stage: ClassVar[type[CountRanges]] = CountFourCycles


class FiveCycles(OneShape):
    """5-cycles: wedges from the smallest vertex, and the edges between their ends."""

    name: ClassVar[str] = "five-cycles"
    shape: ClassVar[str] = "5-cycle"
    degrees: ClassVar[list[int]] = [2] * 5
    stage: ClassVar[type[CountRanges]] = CountFiveCycles
    steps: ClassVar[float] = 4.0
