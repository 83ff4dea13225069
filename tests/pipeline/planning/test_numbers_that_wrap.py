"""The bounds below which homomorphism counts cannot wrap around."""

from functools import cache

import naive
import networkx as nx
import pytest
from budgets import table_memory

from longwall.kernels.interface.homomorphism_program import FLOATING
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.homomorphisms.count import sizes_of
from longwall.pipeline.planning.homomorphisms.number_bounds import Bound, Sizes, bound_program
from longwall.pipeline.planning.homomorphisms.pattern_core import PassCosts
from longwall.pipeline.planning.homomorphisms.sums import plan_homomorphisms
from longwall.pipeline.planning.leaves.leaf_sums import plan_leaf_sums
from longwall.stages.homomorphisms.tables import make_tables

STARS = {leaves: Pattern(leaves + 1, tuple((0, leaf + 1) for leaf in range(leaves))) for leaves in (3, 4, 5, 7)}
COSTS = [PassCosts(1.0, 5.0, 0.5), PassCosts(5.0, 1.0, 0.5), PassCosts(5.0, 1.0, 5.0, lists=False)]


@cache
def patterns() -> list[Pattern]:
    """All connected ones of 3 to 5 vertices."""
    return [Pattern(size, one.edges) for size in (3, 4, 5) for one in naive.connected_patterns(size)]


@pytest.mark.parametrize("costs", COSTS)
def test_they_bound_every_table(lab, costs):
    """Dense and sparse graphs, with and without a hub."""
    for network in (
        nx.complete_graph(9),
        nx.star_graph(12),
        nx.wheel_graph(11),
        nx.barabasi_albert_graph(20, 3, seed=2),
    ):
        run = lab.context(lab.graph(network.edges))
        graph, _ = load_graph(run)
        sums = plan_homomorphisms(tuple(patterns()), costs) or plan_homomorphisms(tuple(patterns()[:8]), costs)
        assert sums is not None
        bounds = bound_program(sums.program, sizes_of(run.graph))
        tables = make_tables(run.engine, graph, sums.program, FLOATING, table_memory())
        for table, bound in zip(tables.vertices, bounds.vertices, strict=True):
            assert table.max() <= bound.most
            assert table.sum() <= bound.total
        assert tables.arcs.max(initial=0) <= bounds.largest


@pytest.mark.parametrize("leaves", STARS)
def test_they_bound_the_tables_of_stars_by_the_power_of_the_degree(leaves):
    sums = plan_leaf_sums((STARS[leaves],), PassCosts(1.0, 1.0, 1.0))
    assert sums is not None
    bounds = bound_program(sums.whole, Sizes(1001, 2000, 1000))
    assert bounds.largest >= 1000**leaves


def test_graphs_of_usual_sizes_need_no_other_pass():
    """Five vertices in a graph of 100 million edges whose largest degree is 33,000: no number passes 62 bits."""
    sums = plan_homomorphisms(tuple(patterns()), PassCosts(1e9, 5e9, 1e7))
    assert sums is not None
    assert bound_program(sums.program, Sizes(4_000_000, 200_000_000, 33_000)).largest < 2**62
    assert bound_program(sums.program, Sizes(4_000_000, 200_000_000, 1 << 20)).largest >= 2**62


def test_given_tables_count(lab):
    """The tables that a core's program is given bound its numbers."""
    pattern = Pattern(5, ((0, 1), (0, 2), (0, 3), (1, 2), (1, 4)))
    sums = plan_leaf_sums((pattern,), PassCosts(1.0, 1.0, 1.0))
    assert sums is not None
    assert sums.given
    sizes = Sizes(100, 400, 10)
    program = sums.core.program
    few = bound_program(program, sizes, [Bound(10, 400)] * len(sums.given)).largest
    many = bound_program(program, sizes, [Bound(10**30, 10**30)] * len(sums.given)).largest
    assert few < 10**9 < 10**30 <= many
