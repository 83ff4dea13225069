"""Plans: legal whatever the graph, the cheapest of what was considered, and printable."""

import json
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import plan_count, proposed
from strategies import graphs, queries

from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import make_pattern
from longwall.pipeline.patterns.symmetry import automorphism_count, restrictions
from longwall.pipeline.planning.query import Query
from longwall.pipeline.planning.search.search_planner import plan_match


@settings(deadline=None, max_examples=150)
@given(small=graphs(), query=queries(max_size=6), counting=st.booleans())
def test_plans_are_legal(lab, small, query, counting):
    pattern = make_pattern(query.edges, query.labels)
    graph = lab.graph(small.edges, small.labels)
    plan = plan_match(pattern, graph.stats, induced=query.induced, counting=counting)
    k = pattern.num_vertices
    assert sorted(plan.order) == list(range(k))
    for i, v in enumerate(plan.order[1:], start=1):
        assert pattern.neighbours[v].intersection(plan.order[:i]), "an order that is not connected"
    assert plan.automorphisms == automorphism_count(pattern)
    assert plan.automorphisms % plan.redundancy == 0
    assert plan.program.depth == k - plan.suffix >= 2
    assert plan.cost >= 0
    assert len(plan.rows) == plan.program.depth
    if not counting:
        assert plan.suffix == 0
        assert plan.redundancy == 1
    counted = set(plan.order[k - plan.suffix :]) if plan.suffix else set()
    if plan.suffix > 1:
        assert not query.induced
        assert not any(pattern.neighbours[v] & counted for v in counted)
    pairs, redundancy = restrictions(pattern, plan.order, plan.suffix if plan.suffix > 1 else 0)
    assert (tuple(pairs), redundancy) == (plan.restrictions, plan.redundancy)


@settings(deadline=None, max_examples=60)
@given(small=graphs(), query=queries(max_size=6))
def test_plans_can_be_printed_and_stored(lab, small, query):
    pattern = make_pattern(query.edges, query.labels)
    graph = lab.graph(small.edges, small.labels)
    for plan in (
        plan_count(pattern, graph, induced=query.induced),
        plan_match(pattern, graph.stats, induced=query.induced, counting=False),
    ):
        assert pattern.edge_text in plan.describe()
        assert json.loads(json.dumps(plan.to_dict()))["pattern"] == pattern.edge_text


def test_plans_call_vertices_as_the_pattern_does(lab):
    graph = lab.graph([(0, 1), (0, 2), (1, 2), (2, 3)])
    numbered, named = (
        plan_match(parse_pattern(text), graph.stats, induced=False, counting=False)
        for text in ("0-1,0-2,1-2,2-3", "(buyer)-(shop)-(bank)-(x), (buyer)-(bank)")
    )
    assert "names" not in numbered.to_dict()
    assert named.to_dict() == numbered.to_dict() | {"names": ("buyer", "shop", "bank", "x")}
    renamed = numbered.describe()
    for number, name in enumerate(named.pattern.names):
        renamed = renamed.replace(f"v{number}", name).replace(f"vertex {number}", f"vertex {name}")
    order = f"order        {' '.join(map(str, numbered.order))}"
    renamed = renamed.replace(order, f"order        {' '.join(named.pattern.names[one] for one in numbered.order)}")
    assert named.describe().splitlines()[1:] == renamed.splitlines()[1:]
    counted = plan_match(parse_pattern("(a)-(b), (a)-(c), (a)-(d)"), graph.stats, induced=False, counting=True)
    assert "pattern vertices c, d (fused" in counted.describe()


@settings(deadline=None, max_examples=40)
@given(small=graphs(), query=queries(max_size=6))
def test_the_same_question_gets_the_same_plan(lab, small, query):
    pattern = make_pattern(query.edges, query.labels)
    graph = lab.graph(small.edges, small.labels)
    first = plan_count(pattern, graph, induced=query.induced)
    again = plan_count(pattern, lab.graph(small.edges, small.labels), induced=query.induced)
    assert first.to_dict() == again.to_dict()


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("name", ["clique-16", "star-15", "cycle-16", "path-16", "wheel-16", "quasi-clique-16"])
@pytest.mark.parametrize("induced", [False, True])
@pytest.mark.timeout(20)
def test_the_largest_patterns_are_planned_in_seconds(lab, name, induced):
    graph = lab.graph(combinations(range(12), 2))
    pattern = parse_pattern(name)
    assert plan_match(pattern, graph.stats, induced=induced, counting=False).program.depth == 16
    assert plan_count(pattern, graph, induced=induced).automorphisms == automorphism_count(pattern)


def test_cliques_and_four_cycles_have_kernels_of_their_own(lab):
    graph = lab.graph(combinations(range(12), 2))
    methods = {name: plan_count(parse_pattern(name), graph).to_dict()["kind"] for name in ("clique-5", "cycle-4")}
    assert methods == {"clique-5": "clique bitmaps", "cycle-4": "wedge aggregation"}
    # Those of one label are counted so in the graph of its vertices, cliques of several with a role for each vertex.
    labelled = lab.graph(combinations(range(12), 2), dict.fromkeys(range(12), 0))
    assert plan_count(parse_pattern("clique-5", [0] * 5), labelled).to_dict()["kind"] == "clique bitmaps"
    assert plan_count(parse_pattern("cycle-4", [0] * 4), labelled).to_dict()["kind"] == "wedge aggregation"
    assert plan_count(parse_pattern("cycle-4"), graph, induced=True).to_dict()["kind"] != "wedge aggregation"


def test_plans_print_the_stages_that_run(lab):
    graph = lab.graph(combinations(range(12), 2))
    cliques, cycles = (plan_count(parse_pattern(name), graph) for name in ("clique-5", "cycle-4"))
    triangles = proposed("triangles-of-vertices", Query(parse_pattern("triangle"), want="per_vertex"), graph)
    for plan in (cliques.best, cycles.best, triangles):
        source, count = plan.phase.stages
        assert plan.describe().splitlines()[1:] == [source.describe(), count.describe()]
    assert triangles.to_dict()["kind"] == "triangles per vertex"
    assert triangles.describe() != plan_count(parse_pattern("triangle"), graph).describe()
