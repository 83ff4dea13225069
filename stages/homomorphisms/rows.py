"""Run row programs over ranges of rows: sums of products of homomorphism counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from numpy.typing import NDArray

from longwall.kernels.interface.engine import Call, Engine, call
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import FLOATING, WORD, Domain, RowProgram, RowTables
from longwall.kernels.interface.homomorphisms import RowCounter
from longwall.kernels.interface.kernels import Kernels
from longwall.stages.base import Aggregation
from longwall.stages.range_counting import Counter, CountRanges, KernelCounter
from longwall.stages.source import Scan

_VERTICES, _ARCS = Scan("vertices"), Scan("arcs")
Totals = tuple[list[int], list[float]]
"""The sum of each product of a row program: modulo 2**64, and in floating point."""


class _Totals(KernelCounter[RowCounter]):
    _before: tuple[NDArray[Any], NDArray[Any]] | None = None

    def take(self) -> Totals:
        counts, magnitudes = [part.copy() for part in self.kernel.totals()]
        before, self._before = self._before, (counts, magnitudes)
        if before is not None:
            counts, magnitudes = counts - before[0], magnitudes - before[1]
        return counts.tolist(), magnitudes.tolist()


def _add_totals(totals: Sequence[Totals], modulus: int) -> Totals:
    counts = [sum(column) % modulus for column in zip(*(counts for counts, _ in totals), strict=True)]
    return counts, [sum(column) for column in zip(*(magnitudes for _, magnitudes in totals), strict=True)]


@lru_cache(maxsize=256)
def _aggregation(modulus: int) -> Aggregation[Totals, Totals]:
    return Aggregation(_Totals.take, partial(_add_totals, modulus=modulus), lambda totals: totals)


@dataclass(frozen=True)
class TabledGraph(GraphArrays):
    """A graph with the tables that row programs read."""

    tables: RowTables = field(kw_only=True)


@dataclass(frozen=True)
class CountHomomorphisms(CountRanges):
    """Run a row program over all rows: sums of products of homomorphism counts.

    Attributes
    ----------
    program
        The row program.
    domain
        Whose rows they are.
    patterns
        What is counted, as text.
    modulus
        See `longwall.kernels.interface.homomorphism_program.RowTables`.
    """

    program: RowProgram
    domain: Domain
    patterns: str
    modulus: int

    method = "rows"
    estimated = True
    optional = True

    @property
    def source(self) -> Scan:
        """See `CountRanges`."""
        return _VERTICES if self.domain == "vertices" else _ARCS

    @property
    def name(self) -> str:
        """See `CountRanges`."""
        kinds = {FLOATING: "magnitudes of homomorphisms", WORD: "homomorphisms"}
        kind = kinds.get(self.modulus, f"homomorphisms modulo {self.modulus}")
        return f"{kind} over {self._rows} for {self.patterns}"

    @property
    def _rows(self) -> str:
        return "common neighbours" if self.domain == "common" else self.domain

    @property
    def aggregation(self) -> Aggregation[Totals, Totals]:
        """The sum of each product, modulo 2**64 or the modulus, and the same in floating point."""
        return _aggregation(self.modulus if self.modulus > WORD else 2**64)

    @property
    def how(self) -> str:
        """See `CountRanges`."""
        program = self.program
        return (
            f"homomorphisms: {len(program.products)} products for every row of {self._rows}; {program.passes} passes "
            f"over the rows of its entries, {program.edge_passes} over those of its triangles, {program.wide_passes} "
            "over all rows"
        )

    @property
    def kernels(self) -> tuple[Callable[..., Any] | Call, ...]:
        """See `CountRanges`."""
        return (call(Kernels.row_counter, program=self.program, domain=self.domain, modulus=self.modulus),)

    def counter(self, engine: Engine, graph: GraphArrays, memory: int) -> Counter:
        """See `CountRanges`."""
        assert isinstance(graph, TabledGraph)
        kernels = engine.kernels
        return _Totals(kernels.row_counter(engine.device, graph, graph.tables, self.program, self.domain, memory))
