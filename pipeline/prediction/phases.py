"""The phases that a plan runs, one after the other, without their results.

What later phases are may depend on what earlier ones find; so a generator yields them, and is sent a sample of each.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import suppress
from functools import singledispatch
from typing import Any

from longwall.kernels.exact_numbers import PRIMES, moduli_for
from longwall.kernels.interface.homomorphism_program import FLOATING, WORD
from longwall.pipeline.execution.derived import derived, forget
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import DoesNotFit, Phase
from longwall.pipeline.phases.by_label.laid_out import ByLabel
from longwall.pipeline.phases.by_label.plans import CountByLabel, layout_of
from longwall.pipeline.phases.by_label.subgraphs import CountSubgraphs
from longwall.pipeline.phases.cores.core_plan import CountInCore
from longwall.pipeline.phases.count_per_edge import CountOfEveryEdge
from longwall.pipeline.phases.count_per_vertex import CountTrianglesPerVertex
from longwall.pipeline.phases.count_plans import (
    CountByHomomorphisms,
    CountByInclusionExclusion,
    CountByKernel,
    CountBySearch,
    CountStars,
)
from longwall.pipeline.phases.degree_sums import triangles_suffice
from longwall.pipeline.phases.derived_graph import OnDerivedGraph
from longwall.pipeline.phases.homomorphisms.count import (
    WRAPS_FROM,
    HomomorphismCount,
    Tables,
    kernel_phases,
)
from longwall.pipeline.phases.hubs.hub_plan import CountAroundHubs
from longwall.pipeline.phases.queries.plans import CountByCandidates
from longwall.pipeline.phases.search_count import SearchCount
from longwall.pipeline.phases.search_list import SearchList
from longwall.pipeline.phases.stars.star_plan import CountStarsByCentre
from longwall.pipeline.planning.search_plan import MatchPlan
from longwall.pipeline.prediction.phase_sample import PhaseSample
from longwall.pipeline.workloads.cliques.plan import CliquePlan
from longwall.pipeline.workloads.custom.workload import CustomPlan
from longwall.pipeline.workloads.match import QueriesPlan
from longwall.pipeline.workloads.maximal_cliques.counting import CliqueSizes, CliquesPerVertex
from longwall.pipeline.workloads.maximal_cliques.listing import CliqueList
from longwall.pipeline.workloads.maximal_cliques.workload import MaximalCliquePlan
from longwall.pipeline.workloads.motifs.by_counting import CountingPlan
from longwall.pipeline.workloads.motifs.by_enumeration import EnumerationPlan
from longwall.pipeline.workloads.motifs.of_three import ThreePlan
from longwall.pipeline.workloads.motifs.orbits import OrbitPlan
from longwall.pipeline.workloads.motifs.orbits_by_counting import OrbitCountingPlan
from longwall.pipeline.workloads.quasi_cliques import QuasiCliquePlan
from longwall.stages.cliques.maximal import CountMaximalCliques, CountMaximalCliquesOfVertices
from longwall.storage.graph.derived.label_layout import LabelLayout

Phases = Generator[Phase, PhaseSample, None]


class Unpredictable(Exception):
    """The phases of a plan are known only while it runs; the message says why."""


@singledispatch
def phases_of(plan: Any, env: Environment) -> Phases:  # noqa: ARG001
    """Yield the phases of a plan; each is answered by a sample of it.

    Raises
    ------
    Unpredictable
        If they are not known.
    """
    raise Unpredictable("what its phases do is known only when those before are done")


def _several(plans: Iterable[Any], env: Environment) -> Phases:
    for plan in plans:
        yield from phases_of(plan, env)


def _each(phases: Iterable[Phase]) -> Phases:
    for phase in phases:  # noqa: UP028 - they cannot be sent samples
        yield phase


@phases_of.register
def _(plan: CountBySearch, env: Environment) -> Phases:
    yield plan.streamed if plan.streamed is not None and triangles_suffice(env) else SearchCount(plan.search)


@phases_of.register(CountByKernel)
@phases_of.register(CountTrianglesPerVertex)
@phases_of.register(CountByCandidates)
@phases_of.register(EnumerationPlan)
@phases_of.register(OrbitCountingPlan)
@phases_of.register(CustomPlan)
def _(plan: Any, env: Environment) -> Phases:  # noqa: ARG001
    yield plan.phase


@phases_of.register
def _(plan: CountStars, env: Environment) -> Phases:  # noqa: ARG001
    yield from ()


@phases_of.register(CliquePlan)
@phases_of.register(OrbitPlan)
def _(plan: Any, env: Environment) -> Phases:  # noqa: ARG001
    yield from _each(plan.phases)


@phases_of.register(CountInCore)
@phases_of.register(CountAroundHubs)
@phases_of.register(CountStarsByCentre)
def _(plan: Any, env: Environment) -> Phases:
    yield from phases_of(plan.whole, env)  # it is this or less, which only the run finds out


@phases_of.register(CountByInclusionExclusion)
@phases_of.register(CountSubgraphs)
def _(plan: Any, env: Environment) -> Phases:
    yield from _several((term for _, term in plan.terms), env)


@phases_of.register
def _(plan: CountOfEveryEdge, env: Environment) -> Phases:
    yield plan.phase(0, env.graph.num_edges)


@phases_of.register
def _(plan: CountByHomomorphisms, env: Environment) -> Phases:
    if plan.streamed is not None and triangles_suffice(env):
        yield plan.streamed
        return
    yield from _homomorphisms(plan.counted, env)


@phases_of.register
def _(plan: CountingPlan, env: Environment) -> Phases:
    if plan.in_core:
        raise Unpredictable("how much of the graph its core is, is known only when it is peeled")
    if plan.together is not None:
        yield from _homomorphisms(plan.together, env)
    yield from _several(plan.alone, env)


@phases_of.register
def _(plan: ThreePlan, env: Environment) -> Phases:
    yield from phases_of(plan.triangles, env)


@phases_of.register
def _(plan: QuasiCliquePlan, env: Environment) -> Phases:
    yield from _several(plan.patterns, env)


@phases_of.register
def _(plan: QueriesPlan, env: Environment) -> Phases:
    yield from _several((query for _, query in plan.queries), env)


@phases_of.register
def _(plan: CountByLabel, env: Environment) -> Phases:
    there: Environment | None = None
    with suppress(DoesNotFit):
        there = derived(env, ByLabel(plan.layout)).env
    if there is None:
        yield from phases_of(plan.otherwise, env)
    elif there.graph.num_edges:
        yield from _on_layout(plan.layout, phases_of(plan.inside, there))


@phases_of.register
def _(plan: MatchPlan, env: Environment) -> Phases:
    listing: Phase = SearchList(plan, None)
    limited = env.spec.limit is not None or env.spec.scheduler.order == "levels"
    layout = None if limited else layout_of(plan, env.graph.stats)
    try:
        if layout is not None and (there := derived(env, ByLabel(layout)).env) is not None and there.graph.num_edges:
            listing = OnDerivedGraph(listing, ByLabel(layout))
    except DoesNotFit:
        pass
    yield listing


def _on_layout(layout: LabelLayout, phases: Phases) -> Phases:
    """Yield phases as they are on the graph of a layout."""
    with suppress(StopIteration):
        phase = next(phases)
        while True:
            sample = yield OnDerivedGraph(phase, ByLabel(layout))
            phase = phases.send(sample)


@phases_of.register
def _(plan: MaximalCliquePlan, env: Environment) -> Phases:  # noqa: ARG001
    least = plan.min_size
    if plan.output == "embeddings":
        yield CliqueList(least, None)
    elif plan.output == "count":
        yield CliqueSizes(CountMaximalCliques(least), 0.0)
    else:
        yield CliquesPerVertex(CountMaximalCliquesOfVertices(least), 0.0)


def _homomorphisms(counted: HomomorphismCount, env: Environment) -> Phases:
    """Yield the passes over the rows, as many as the sizes of the numbers ask for, and the counts beside them."""
    try:
        yield from _each(counted.listed.values())
        largest = 0.0
        wraps = counted.largest(env.graph) >= WRAPS_FROM
        for modulus in (FLOATING, WORD) if wraps else (WORD,):
            for phase in counted.phases(modulus):
                sample = yield phase
                if modulus == FLOATING or not wraps:
                    largest = max(largest, *(max(value[1], default=0.0) / sample.share for value in sample.values))
        for prime in moduli_for(largest, PRIMES):
            yield from _each(counted.phases(prime))
    finally:
        forget(env, Tables)
    yield from _each(kernel_phases(counted.sums.terms, counted.sums.costs).values())
