"""Patterns that are counted by pairs of vertices: what the planner makes of them, against igraph."""

import random
from itertools import combinations

import naive
import pytest
from plans import plan_count, tried_first
from selection import on_device

from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.homomorphism_program import CodegreePattern
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.homomorphisms.count import HomomorphismCount
from longwall.pipeline.planning.homomorphisms.pairs import codegree_edges
from longwall.pipeline.planning.homomorphisms.pattern_core import pass_costs
from longwall.pipeline.planning.homomorphisms.sums import plan_homomorphisms
from longwall.pipeline.planning.methods.homomorphisms import HomomorphismsPlan
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.storage.generators.kinds import generate


def graph_edges(seed: int, vertices: int = 9, chance: float = 0.75) -> list[tuple[int, int]]:
    draw = random.Random(seed)
    return [pair for pair in combinations(range(vertices), 2) if draw.random() < chance]


def mappings(lab, engine, edges, pattern: Pattern) -> int:
    graph = lab.graph(edges)
    sums = plan_homomorphisms((pattern,), pass_costs(graph.stats))
    assert sums is not None
    (found,) = HomomorphismCount(sums).mappings(lab.context(graph, engine=engine, threads=2))
    return found


@pytest.mark.parametrize("codegree", CodegreePattern)
def test_mappings_are_those_of_igraph(lab, engine_kind, codegree):
    edges = graph_edges(int(codegree))
    pattern = Pattern(6, codegree_edges(codegree))
    wanted = naive.igraph_count_mappings(edges, naive.Query(6, pattern.edges))
    assert mappings(lab, engine_kind, edges, pattern) == wanted > 100


@pytest.mark.parametrize(
    "text",
    [
        "0-2,0-3,0-4,0-5,1-2,1-3,1-4,1-5,2-3,3-4,4-5,2-5,5-6",  # an octahedron with a leaf, which may be on it
        "0-2,0-3,0-4,0-5,1-2,1-5,2-3,3-4,4-5,1-6",  # the same of a path beside a vertex
        "0-2,0-3,0-4,0-5,1-2,1-3,1-4,1-5,2-3,2-4,0-6,1-6",  # seven vertices, of which two may be one
    ],
)
def test_larger_patterns_whose_quotients_are_such(lab, engine_kind, text):
    edges, pattern = graph_edges(3, 8, 0.8), parse_pattern(text)
    wanted = naive.igraph_count_mappings(edges, naive.Query(7, pattern.edges))
    sums = plan_homomorphisms((pattern,), pass_costs(lab.graph(edges).stats))
    if sums is not None:
        assert mappings(lab, engine_kind, edges, pattern) == wanted > 100


@pytest.mark.parametrize("codegree", list(CodegreePattern)[:: on_device(1, 4)])
def test_induced_counts_are_those_of_igraph(lab, engine_kind, codegree):
    edges = graph_edges(20 + int(codegree), 9, 0.6)
    pattern = Pattern(6, codegree_edges(codegree))
    graph = lab.graph(edges)
    query = naive.Query(6, pattern.edges, induced=True)
    plan = plan_count(pattern, graph, induced=True)
    found = plan.count(lab.context(graph, engine=engine_kind, threads=2))
    assert found * len(naive.automorphisms(query)) == naive.igraph_count_mappings(edges, query)


def test_a_long_search_is_not_chosen():
    graph = generate("rmat", seed=1, scale=11)
    for codegree in CodegreePattern:
        plan = plan_count(Pattern(6, codegree_edges(codegree)), graph).best
        assert isinstance(plan, HomomorphismsPlan)
        assert plan.counted.sums.pairs == (codegree,)
        assert "vertex pairs" in plan.describe()
        assert plan.cost < plan_match(plan.pattern, graph.stats).cost


def test_without_room_the_pattern_is_searched_for(lab, engine_kind, monkeypatch):
    edges, pattern = graph_edges(5), Pattern(6, codegree_edges(CodegreePattern.PATH))
    graph = lab.graph(edges)
    sums = plan_homomorphisms((pattern,), pass_costs(graph.stats))
    assert sums is not None
    plan = tried_first(HomomorphismsPlan(pattern, 1.0, HomomorphismCount(sums), (1,)), plan_count(pattern, graph))
    run = lab.context(graph, engine=engine_kind)
    wanted = plan.count(lab.context(graph, engine=engine_kind))
    module = f"longwall.kernels.{engine_kind}.homomorphisms.pairs"

    def refuse(*_):
        raise WorkspaceTooLarge(1)

    monkeypatch.setattr(f"{module}.{'fitting' if engine_kind == 'cpu' else 'units_that_fit'}", refuse)
    assert plan.count(run) == wanted > 0
