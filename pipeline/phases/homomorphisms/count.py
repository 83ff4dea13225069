"""Count patterns through homomorphisms: tables that every process makes, rows that are shared out, exact sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from longwall.kernels.exact_numbers import PRIMES, combine, moduli_for
from longwall.kernels.interface.engine import Call
from longwall.kernels.interface.homomorphism_program import (
    FLOATING,
    WORD,
    CodegreePattern,
    Domain,
    TableProgram,
)
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.derived import Derivation, Reserved, derived, forget
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import NotEnoughMemory
from longwall.pipeline.phases.homomorphisms.given_tables import GivenTables, given_rows
from longwall.pipeline.phases.range_count import RangeCount
from longwall.pipeline.planning.homomorphisms.number_bounds import Bound, Sizes, bound_program
from longwall.pipeline.planning.homomorphisms.pattern_core import PassCosts
from longwall.pipeline.planning.homomorphisms.sums import HomomorphismSums, Term, pairs_cost, rows_cost
from longwall.stages.homomorphisms.listed import CountAlmostCliques, CountListed, CountWheels
from longwall.stages.homomorphisms.pairs import CountPairs
from longwall.stages.homomorphisms.rows import CountHomomorphisms, TabledGraph, Totals
from longwall.stages.homomorphisms.tables import TableMemory, make_tables, table_kernels
from longwall.stages.range_counting import (
    CountCliques,
    CountFiveCycles,
    CountPrisms,
    CountRanges,
)
from longwall.storage.graph.graph import Graph

_KERNELS = ("cliques", "five-cycles", "pairs", "prisms")
WRAPS_FROM = 1 << 62
"""Numbers of tables and rows below this bound fit 64-bit integers."""


@dataclass(frozen=True)
class Tables(Derivation[Reserved[TabledGraph]]):
    """The tables of a program, modulo a number; in a core, with the tables that the program is given."""

    last_only: ClassVar[bool] = True

    program: TableProgram
    modulus: int
    given: GivenTables | None

    def build(self, env: Environment) -> Reserved[TabledGraph]:
        """Compute the tables on the engine."""
        with ExitStack() as opened:
            given: Sequence[Any] = ()
            if self.given is not None:
                given = opened.enter_context(given_rows(env, self.given, self.modulus))
            graph, _ = load_graph(env)
            if graph.pages is not None and self.program.reads_arcs:
                raise NotEnoughMemory("tables of arcs are for a graph that the device holds whole")
            memory = opened.enter_context(TableMemory(env.resources.work, on_device=env.resources.on_device))
            tables = make_tables(env.engine, graph, self.program, self.modulus, memory, given)
            return Reserved(TabledGraph.of(graph, tables=tables), memory.kept())


@dataclass(frozen=True)
class RowCount(RangeCount):
    """Run a row program over all rows of a domain, or a kernel of its own, with the tables of a program.

    Attributes
    ----------
    tables
        Makes the tables.
    given
        In a core, the tables that the program is given.
    """

    tables: TableProgram
    given: GivenTables | None = None

    def arrays(self, env: Environment) -> TabledGraph:
        """See `RangePhase`."""
        assert isinstance(self.count, CountHomomorphisms | CountListed)
        return derived(env, Tables(self.tables, self.count.modulus, self.given)).value


@contextmanager
def tables_dropped(env: Environment) -> Iterator[None]:
    """Release the tables of this process when the block ends."""
    try:
        yield
    finally:
        forget(env, Tables)


@dataclass(frozen=True)
class HomomorphismCount:
    """Count several patterns by one table program.

    Attributes
    ----------
    sums
        How.
    """

    sums: HomomorphismSums

    @property
    def text(self) -> str:
        """What is counted."""
        first, *others = self.sums.patterns
        labels = "" if first.labels is None else f", labels {' '.join(map(str, first.labels))}"
        return first.edge_text + labels + (f" and {len(others)} more" if others else "")

    @property
    def kernels(self) -> list[Callable[..., Any] | Call]:
        """The functions of `Kernels` that it calls."""
        phases = [*self.phases(WORD), *self.listed.values()]
        stages = [phase.count for phase in phases] + [kernel_stage(*key) for key in _kinds(self.sums.terms)]
        tables = table_kernels(self.sums.program) if phases else []
        return [*tables, *(function for stage in stages for function in stage.kernels)]

    def phases(self, modulus: int) -> list[RowCount]:
        """Return what runs the program."""
        program, costs = self.sums.program, self.sums.costs
        parts: Counter[Domain] = Counter()
        phases = []
        for domain, rows in program.totals:
            text = self.text + (f", part {parts[domain]}" if parts[domain] else "")
            parts[domain] += 1
            count = CountHomomorphisms(rows, domain, text, modulus)
            phases.append(RowCount(count, rows_cost(rows, domain, costs), program))
        return phases

    def describe(self) -> str:
        """Return the stages as text."""
        phases = [*self.listed.values(), *self.phases(WORD), *self._pairs]
        tables = [self.sums.tables_text] if len(phases) > len(self._pairs) else []
        return "\n".join([*tables, *(phase.describe() for phase in phases)])

    @property
    def _pairs(self) -> list[RangeCount]:
        """What counts by pairs of vertices."""
        return [kernel_phase("pairs", number, self.sums.costs) for number in self.sums.pairs]

    @property
    def listed(self) -> dict[tuple[str, int], RowCount]:
        """What runs the kernels that read lists of common neighbours."""
        sums = self.sums
        return {key: RowCount(kernel_stage(*key), sums.costs.vertices, sums.program) for key in sums.listed}

    def mappings(self, env: Coordinator) -> list[int]:
        """Count the mappings (injective homomorphisms) of every pattern.

        Raises
        ------
        NotEnoughMemory
            If there is no room for the tables.
        """
        if not env.graph.num_edges:  # no rows, whose totals would be missing
            return [0] * len(self.sums.terms)
        with tables_dropped(env):
            by_kernel: dict[tuple[str, int], int] = {key: phase.run(env) for key, phase in self.listed.items()}
            found = self._homomorphisms(env)
        by_kernel |= kernel_counts(self.sums.terms, env, self.sums.costs)

        def number(term: Term) -> int:
            return found[term.number] if term.kind == "total" else by_kernel[term.kind, term.number]

        return [sum(term.coefficient * number(term) for term in terms) for terms in self.sums.terms]

    def _homomorphisms(self, env: Coordinator) -> list[int]:
        """Return the exact totals of the program."""
        return exact_totals(partial(self._run, env), self.largest(env.graph))

    def largest(self, graph: Graph, given: Sequence[Bound] = ()) -> int:
        """Bound the numbers of the program in a graph; see `bound_program`."""
        return bound_program(self.sums.program, sizes_of(graph), given).largest

    def _run(self, env: Coordinator, modulus: int) -> Totals:
        counts: list[int] = []
        magnitudes: list[float] = []
        for phase in self.phases(modulus):
            some: Totals = phase.run(env)
            counts += some[0]
            magnitudes += some[1]
        return counts, magnitudes


def exact_totals(run: Callable[[int], Totals], largest: int) -> list[int]:
    """Return totals of any size.

    Parameters
    ----------
    run
        Returns the totals by modulus.
    largest
        Bound of all numbers of tables and rows; totals are sums of products of these.
    """
    known = None
    if largest >= WRAPS_FROM:  # the floating-point twin of a number that wrapped is meaningless
        _, known = run(FLOATING)
    counts, magnitudes = run(WORD)
    residues = {2**64: counts}
    for prime in moduli_for(max(known or magnitudes, default=0.0), PRIMES):
        residues[prime] = run(prime)[0]
    return combine(residues)


def kernel_counts(
    terms: Iterable[Iterable[Term]], env: Coordinator, costs: PassCosts | None = None
) -> dict[tuple[str, int], int]:
    """Count what terms have of kernels of their own: subgraphs by kind and number."""
    return {key: kernel_phase(*key, costs).run(env) for key in _kinds(terms)}


def _kinds(terms: Iterable[Iterable[Term]]) -> dict[tuple[str, int], None]:
    return {(term.kind, term.number): None for some in terms for term in some if term.kind in _KERNELS}


def kernel_phase(kind: str, number: int, costs: PassCosts | None) -> RangeCount:
    """Return the phase that counts the subgraphs of a term."""
    cost = pairs_cost(CodegreePattern(number), costs) if kind == "pairs" and costs is not None else 0.0
    return RangeCount(kernel_stage(kind, number), cost)


def kernel_stage(kind: str, number: int) -> CountRanges:
    """Return the stage that counts the subgraphs of a term."""
    if kind == "cliques":
        return CountCliques(number)
    if kind == "pairs":
        return CountPairs(CodegreePattern(number))
    stages: dict[str, Callable[[], CountRanges]] = {
        "five-cycles": CountFiveCycles,
        "wheels": CountWheels,
        "almost-cliques": CountAlmostCliques,
        "prisms": CountPrisms,
    }
    return stages[kind]()


def sizes_of(graph: Graph) -> Sizes:
    """Return the sizes of a graph that bound its numbers."""
    return Sizes(graph.num_vertices, 2 * graph.num_edges, graph.stats.max_degree)
