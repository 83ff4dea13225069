"""Count patterns with leaves: tables over all vertices, and what is counted in the 2-core with weights from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.phases.homomorphisms.count import (
    HomomorphismCount,
    RowCount,
    exact_totals,
    kernel_counts,
    sizes_of,
    tables_dropped,
)
from longwall.pipeline.phases.homomorphisms.given_tables import GivenTables, summed_tables
from longwall.pipeline.planning.homomorphisms.number_bounds import bound_program
from longwall.pipeline.planning.homomorphisms.sums import Term
from longwall.pipeline.planning.leaves.leaf_sums import LeafSums
from longwall.stages.homomorphisms.rows import Totals


@dataclass(frozen=True)
class LeafCount:
    """Count several patterns by sums over all vertices, and over the rows of a core.

    Attributes
    ----------
    sums
        How.
    """

    sums: LeafSums

    def phases(self, modulus: int) -> list[RowCount]:
        """Return what runs in the core."""
        given = GivenTables(self.sums.whole, self.sums.given)
        return [replace(phase, given=given) for phase in HomomorphismCount(self.sums.core).phases(modulus)]

    def mappings(self, env: Coordinator, core: Coordinator | None) -> list[int]:
        """Count the mappings (injective homomorphisms) of every pattern.

        Parameters
        ----------
        env
            The run.
        core
            The 2-core; None where it is empty.

        Raises
        ------
        NotEnoughMemory
            If there is no room for the tables.
        """
        in_core = env if core is None else core
        with tables_dropped(in_core):
            found = exact_totals(partial(self._run, env, core), self._largest(env, core))
        by_kernel = {} if core is None else kernel_counts(self.sums.terms, core)
        sums = len(self.sums.summed)

        def number(term: Term) -> int:
            if term.kind == "whole":
                return found[term.number]
            if core is None:
                return 0
            return found[sums + term.number] if term.kind == "total" else by_kernel[term.kind, term.number]

        return [sum(term.coefficient * number(term) for term in terms) for terms in self.sums.terms]

    def _largest(self, env: Coordinator, core: Coordinator | None) -> int:
        """Bound the numbers of all tables and rows."""
        whole = bound_program(self.sums.whole, sizes_of(env.graph))
        if core is None:
            return whole.largest
        given = [whole.vertices[number] for number in self.sums.given]
        return max(whole.largest, HomomorphismCount(self.sums.core).largest(core.graph, given))

    def _run(self, env: Coordinator, core: Coordinator | None, modulus: int) -> Totals:
        """Return the totals, those over all vertices first."""
        counts, magnitudes = summed_tables(env, self.sums.whole, self.sums.summed, modulus)
        if core is not None:
            for phase in self.phases(modulus):
                some: Totals = phase.run(core)
                counts += some[0]
                magnitudes += some[1]
        return counts, magnitudes
