"""Homomorphism counts of table programs against the definition; numbers of any size."""

import pickle
import random
from dataclasses import replace
from functools import cache
from itertools import combinations, permutations
from math import comb, factorial

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from naive_homomorphisms import count_homomorphisms
from plans import plan_count, tried_first
from selection import on_device

import longwall
from longwall.kernels.exact_numbers import PRIMES, combine, moduli_for
from longwall.kernels.host.patterns.pattern_codes import canonical_pattern, code_edges, connected_codes
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.homomorphism_program import MAX_SCALARS, WORD, Make
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.patterns.symmetry import automorphism_count
from longwall.pipeline.phases.homomorphisms import count as homomorphism_count
from longwall.pipeline.phases.homomorphisms.count import HomomorphismCount
from longwall.pipeline.planning.homomorphisms.decompositions import Decomposer
from longwall.pipeline.planning.homomorphisms.pattern_core import NoDecomposition, PassCosts, pass_costs
from longwall.pipeline.planning.homomorphisms.sums import HomomorphismSums, Term, denser, plan_homomorphisms
from longwall.pipeline.planning.homomorphisms.table_compiler import compile_sums
from longwall.pipeline.planning.methods.homomorphisms import HomomorphismsPlan
from longwall.stages.homomorphisms import tables

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
COSTS = PassCosts(vertices=1e6, arcs=1e6, wide=1e8)


@cache
def patterns(k: int) -> list[Pattern]:
    return [Pattern(k, code_edges(code, k)) for code in connected_codes(k).tolist()]


def graph_edges(seed: int, vertices: int, chance: float) -> list[tuple[int, int]]:
    draw = random.Random(seed)
    found = [pair for pair in combinations(range(vertices), 2) if draw.random() < chance]
    return found or [(0, 1)]


def canonical_text(name: str) -> str:
    pattern = parse_pattern(name)
    edges, *_ = canonical_pattern(pattern.edges, None, pattern.num_vertices)
    return Pattern(pattern.num_vertices, edges).edge_text


def of_all(patterns: list[Pattern], costs: PassCosts) -> HomomorphismSums:
    able = tuple(one for one in patterns if plan_homomorphisms((one,), costs) is not None)
    sums = plan_homomorphisms(able, costs)
    assert sums is not None
    return sums


def check(lab, engine, sums: HomomorphismSums, edges: list[tuple[int, int]]) -> None:
    """Compare every total, and every pattern's mappings, with the definition."""
    relabelled = {v: i for i, v in enumerate(sorted({v for edge in edges for v in edge}))}
    edges = [(relabelled[u], relabelled[v]) for u, v in edges]
    run = lab.context(lab.graph(edges), engine=engine, threads=2)
    assert HomomorphismCount(sums)._homomorphisms(run) == [
        count_homomorphisms(edges, quotient.edges) for quotient in sums.quotients
    ]


@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.parametrize("k", [3, 4, 5])
def test_every_total_equals_the_definition(lab, engine_kind, k, lists):
    sums = of_all(patterns(k), replace(COSTS, lists=lists))
    if lists:
        assert len(sums.patterns) == len(patterns(k))
    for seed, chance in ((1, 0.3), (2, 0.6), (3, 0.95))[: on_device(3, 2)]:
        check(lab, engine_kind, sums, graph_edges(seed, 9, chance))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.parametrize("wide", [1.0, 1e8])
def test_every_pattern_alone_equals_the_definition(lab, engine_kind, lists, wide):
    """Alone it may be taken apart in another way: into a table over arcs that needs another one, for example."""
    chosen = [*patterns(4), *patterns(5)] if on_device(True, False) else patterns(5)[::5]
    for pattern in chosen:
        sums = plan_homomorphisms((pattern,), PassCosts(1.0, 1.0, wide, lists=lists))
        if sums is not None:
            check(lab, engine_kind, sums, graph_edges(4, 8, 0.6))


@pytest.mark.parametrize(("name", "kinds"), [("0-1,0-2,0-3,0-4,1-2,1-3,1-4,2-3", {"total"}), ("clique-4", {"cliques"})])
def test_cliques_are_a_total_if_their_table_is_made(lab, engine_kind, name, kinds):
    """So they need no phase of their own; mappings are those of brute force."""
    pattern, edges = parse_pattern(name), graph_edges(5, 8, 0.8)
    sums = plan_homomorphisms((pattern,), COSTS)
    assert sums is not None
    assert {term.kind for term in sums.terms[0]} == kinds
    near = {*edges, *((v, u) for u, v in edges)}
    placed = permutations(range(8), pattern.num_vertices)
    expected = sum(all((at[u], at[v]) in near for u, v in pattern.edges) for at in placed)
    run = lab.context(lab.graph(edges), engine=engine_kind, threads=2)
    assert HomomorphismCount(sums).mappings(run) == [expected]


@settings(relaxed, max_examples=on_device(25, 2))
@given(
    seed=st.integers(0, 10**6),
    chance=st.floats(0.1, 0.9),
    arcs=st.sampled_from([1.0, 1e6, 1e12]),
    chosen=st.sets(st.integers(0, 111), min_size=1, max_size=4),
)
def test_patterns_of_six_vertices(lab, engine_kind, seed, chance, arcs, chosen):
    able = [patterns(6)[i] for i in chosen if plan_homomorphisms((patterns(6)[i],), COSTS) is not None]
    if able:
        check(lab, engine_kind, of_all(able, replace(COSTS, arcs=arcs)), graph_edges(seed, 8, chance))


@pytest.mark.parametrize("prime", [None, PRIMES[0]])
@pytest.mark.parametrize("chance", [0.01, 0.04])
def test_passes_over_all_rows_where_few_vertices_are_reached(lab, engine_kind, chance, prime):
    """Closed walks of six steps: the trace of the sixth power of the adjacency matrix."""
    edges = graph_edges(7, 150, chance)
    sums = plan_homomorphisms((parse_pattern("cycle-6"),), COSTS)
    assert sums is not None
    assert any(rows.wide_passes for _, rows in sums.program.totals)
    place = [quotient.edge_text for quotient in sums.quotients].index(canonical_text("cycle-6"))
    adjacency = nx.to_numpy_array(nx.Graph(edges), dtype=object)
    walks = int(np.trace(np.linalg.matrix_power(adjacency, 6)))
    run = lab.context(lab.graph(edges), engine=engine_kind, threads=2)
    counts, _ = HomomorphismCount(sums)._run(run, WORD if prime is None else prime)
    assert counts[place] == (walks if prime is None else walks % prime)


def test_all_patterns_of_six_vertices_share_their_tables(lab, engine_kind):
    sums = of_all(patterns(6), COSTS)
    assert len(sums.patterns) >= 111
    assert all(rows.num_scalars <= MAX_SCALARS for rows in sums.program.every_rows)
    of_vertices = [rows for domain, rows in sums.program.totals if domain == "vertices"]
    assert sum(bool(rows.wide_passes) for rows in of_vertices) == 1
    assert sum(bool(rows.num_dense) for rows in of_vertices) == 2
    check(lab, engine_kind, sums, graph_edges(6, 8, 0.6))


@settings(relaxed, max_examples=on_device(25, 2))
@given(seed=st.integers(0, 10**6), more=st.integers(0, 5))
def test_patterns_of_seven_vertices(lab, engine_kind, seed, more):
    """Random trees with a few edges more: what most users ask for."""
    draw = random.Random(seed)
    edges = {(draw.randrange(v), v) for v in range(1, 7)}
    edges |= {tuple(sorted(draw.sample(range(7), 2))) for _ in range(more)}
    sums = plan_homomorphisms((Pattern(7, tuple(sorted(edges))),), COSTS)
    if sums is not None:
        check(lab, engine_kind, sums, graph_edges(seed, 8, draw.random()))


@pytest.mark.parametrize(
    "text",
    [
        "0-1,0-2,0-3,1-2,1-3,2-4,3-4,4-5,2-6,4-6",  # weights of an end of a pass, and of its arcs
        "0-1,0-2,0-3,1-2,1-3,2-4,3-4,0-5,1-6,2-7",  # of the arc, and of both of its ends
        "0-1,0-2,0-3,1-2,1-3,2-4,3-4,0-5,2-5,1-6,3-6",  # of arcs to the common neighbours, from either end
        "0-1,0-2,0-4,0-5,1-2,1-4,1-5,2-3,2-5,3-4,2-6,5-6,5-7",  # of arcs between them
    ],
)
@pytest.mark.parametrize("prime", [None, PRIMES[0]])
def test_passes_from_common_neighbours_over_the_graph(lab, engine_kind, text, prime):
    pattern, costs = parse_pattern(text), PassCosts(1e6, 1e6, 1e8)
    program, _ = compile_sums([Decomposer(costs).count(pattern)], lists=False)
    ((domain, rows),) = program.totals
    assert domain == "common"
    assert rows.passes
    sums = HomomorphismSums((pattern,), program, (pattern,), ((Term(1, "total", 0),),), costs)
    edges = graph_edges(5, 9, 0.7)
    check(lab, engine_kind, sums, edges)
    if prime is not None:
        run = lab.context(lab.graph(edges), engine=engine_kind, threads=2)
        counts, _ = HomomorphismCount(sums)._run(run, prime)
        assert counts == [count_homomorphisms(edges, pattern.edges) % prime]


@pytest.mark.parametrize(
    "text",
    [
        "0-1,0-2,0-3,0-4,1-2,1-5,1-7,2-6,3-5,4-6",  # a part that shrinks to the edge that separates it
        "0-1,0-3,0-4,1-2,1-4,2-3,2-4,3-4,3-5,3-7,4-6,4-7,5-6,5-7,6-7",  # two wheels that share a spoke
        "0-1,0-3,0-4,1-2,1-3,1-4,2-3,2-4,3-4,3-5,3-7,4-6,4-7,5-6,5-7,6-7",  # a wheel and a clique without an edge
        "0-1,0-2,0-3,0-4,0-5,1-2,1-3,2-3,4-6,5-7,6-7",  # a cycle and a clique that share a vertex
    ],
)
@pytest.mark.parametrize("lists", [True, False])
def test_parts_of_a_pattern_of_eight_vertices_become_tables(lab, engine_kind, text, lists):
    """What an edge or a vertex separates from the rest is counted in a table: for all rows, and inside of them."""
    pattern, tables = parse_pattern(text), 0
    for arcs in (1e3, 1e6, 1e9):
        costs = PassCosts(1e6, arcs, 1e8, lists=lists)
        try:
            program, _ = compile_sums([Decomposer(costs).count(pattern)], lists=False)
        except NoDecomposition:
            continue
        tables += 1
        sums = HomomorphismSums((pattern,), program, (pattern,), ((Term(1, "total", 0),),), costs)
        check(lab, engine_kind, sums, graph_edges(5, 8, 0.75))
    assert tables or not lists


@pytest.mark.parametrize("prime", PRIMES[:2])
def test_residues_are_those_of_the_counts(lab, engine_kind, prime):
    sums = of_all(patterns(4) + patterns(5)[::3], COSTS)
    run = lab.context(lab.graph(graph_edges(5, 20, 0.6)), engine=engine_kind, threads=2)
    count = HomomorphismCount(sums)
    whole, _ = count._run(run, homomorphism_count.WORD)
    residues, _ = count._run(run, prime)
    _, magnitudes = count._run(run, homomorphism_count.FLOATING)
    assert max(whole) > 10**5
    assert residues == [number % prime for number in whole]
    assert magnitudes == pytest.approx(whole, rel=1e-12)


def test_small_primes_change_nothing(lab, engine_kind, monkeypatch):
    """Numbers of a few digits, as if they had many: combined of 2**64 and all primes."""
    sums = of_all(patterns(4), COSTS)
    run = lab.context(lab.graph(graph_edges(6, 12, 0.5)), engine=engine_kind)
    want = HomomorphismCount(sums).mappings(run)
    monkeypatch.setattr(homomorphism_count, "moduli_for", lambda *_: list(PRIMES[:3]))
    monkeypatch.setattr(homomorphism_count, "WRAPS_FROM", 1.0)
    assert HomomorphismCount(sums).mappings(lab.context(run.graph, engine=engine_kind)) == want


@given(numbers=st.lists(st.integers(0, 2**300), min_size=1, max_size=5))
def test_numbers_of_any_size_are_combined(numbers):
    moduli = [2**64, *moduli_for(float(max(numbers)), PRIMES)]
    assert combine({modulus: [number % modulus for number in numbers] for modulus in moduli}) == numbers


def test_a_number_that_no_primes_hold_is_refused():
    with pytest.raises(OverflowError, match="bits"):
        moduli_for(1e300, PRIMES[:2])


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("name", "edges", "want"),
    [
        ("path-8", list(combinations(range(200), 2)), comb(200, 8) * factorial(8) // 2),
        ("cycle-8", list(combinations(range(200), 2)), comb(200, 8) * factorial(7) // 2),
        ("cycle-8", [(u, 300 + v) for u in range(300) for v in range(300)], comb(300, 4) ** 2 * 24 * 24 // 8),
        ("0-1,0-2,0-3,0-4,0-5,5-6,5-7", [(u, 300 + v) for u in range(300) for v in range(300)],
         2 * 300 * 300 * comb(299, 4) * comb(299, 2)),
    ],
)  # fmt: skip
@pytest.mark.real_gpu("these counts take minutes")
def test_closed_forms_beyond_64_bits(lab, engine_kind, name, edges, want):
    graph = lab.graph(edges)
    sums = plan_homomorphisms((parse_pattern(name),), pass_costs(graph.stats))
    assert sums is not None
    run = lab.context(graph, engine=engine_kind, threads=2)
    (mappings,) = HomomorphismCount(sums).mappings(run)
    assert mappings == want * automorphism_count(parse_pattern(name))


def test_results_beyond_64_bits_are_decimals_and_texts(tmp_path):
    leaves = 70_000
    (tmp_path / "graph.txt").write_text("".join(f"0 {v}\n" for v in range(1, leaves + 1)))
    for k, kind in ((3, "int64"), (6, "decimal128(38, 0)"), (11, "string")):
        config = {
            "graph": {"path": tmp_path / "graph.txt"},
            "workload": {"kind": "match", "pattern": f"star-{k}"},
            "engine": {"kind": "cpu"},
            "run": {"directory": tmp_path / "runs"},
        }
        result = longwall.run(config)
        column = result.table("counts").column("count")
        assert result.count == comb(leaves, k) == int(column.to_pylist()[0])
        assert str(column.type) == kind


def test_a_budget_without_room_for_lists_or_tables_changes_nothing(lab, engine_kind, monkeypatch):
    edges = graph_edges(7, 14, 0.6)
    pattern = parse_pattern("0-1,0-2,1-2,1-3,2-3,3-4")
    graph = lab.graph(edges)
    sums = plan_homomorphisms((pattern,), pass_costs(graph.stats))
    assert sums is not None
    assert sums.program.needs_lists
    plan = tried_first(HomomorphismsPlan(pattern, 1.0, HomomorphismCount(sums), (1,)), plan_count(pattern, graph))
    want = plan.count(lab.context(graph, engine=engine_kind))
    network = nx.Graph(edges)
    matcher = nx.isomorphism.GraphMatcher(network, nx.Graph(list(pattern.edges)))
    assert want == sum(1 for _ in matcher.subgraph_monomorphisms_iter()) // automorphism_count(pattern)
    made = homomorphism_count.make_tables
    for refused in (lambda program: program.needs_lists, lambda program: True):

        def make(engine, graph, program, *more, refused=refused):
            if refused(program):
                raise WorkspaceTooLarge(1)
            return made(engine, graph, program, *more)

        monkeypatch.setattr(homomorphism_count, "make_tables", make)
        run = lab.context(graph, engine=engine_kind)
        assert plan.count(run) == want
        assert not run.derived


def test_a_graph_with_too_many_arcs_for_lists_is_counted_without_them(lab, engine_kind, monkeypatch):
    edges = graph_edges(7, 14, 0.6)
    pattern = parse_pattern("0-1,0-2,1-2,1-3,2-3,3-4")
    graph = lab.graph(edges)
    sums = plan_homomorphisms((pattern,), pass_costs(graph.stats))
    assert sums is not None
    assert sums.program.needs_lists
    plan = tried_first(HomomorphismsPlan(pattern, 1.0, HomomorphismCount(sums), (1,)), plan_count(pattern, graph))
    want = plan.count(lab.context(graph, engine=engine_kind))
    monkeypatch.setattr(tables, "_MOST_ARCS", len(graph.indices) - 1)
    run = lab.context(graph, engine=engine_kind)
    monkeypatch.setattr(run.engine.kernels, "common_neighbours", lambda *_: pytest.fail("lists were made"))
    assert plan.count(run) == want


def test_plans_are_data(lab):
    graph = lab.graph(graph_edges(8, 30, 0.3))
    plan = plan_count(parse_pattern("0-1,0-2,1-2,2-3,3-4"), graph, induced=True).best
    assert isinstance(plan, HomomorphismsPlan)
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert "tables" in plan.describe()
    terms = [term for some in plan.counted.sums.terms for term in some]
    assert all(isinstance(term, Term) for term in terms)


def test_where_rows_are_short_passes_are_not_for_nothing(lab):
    """A sparse graph has few rows to search for, and every operation of a program looks at all entries."""
    pattern = parse_pattern("0-1,0-2,0-3,0-4,1-2,1-3,1-5,2-3,2-5")
    sparse = lab.graph(nx.barabasi_albert_graph(3000, 3, seed=1).edges)
    dense = lab.graph(nx.gnm_random_graph(300, 6000, seed=1).edges)
    assert plan_count(pattern, sparse).method == "search"
    assert plan_count(pattern, dense).method == "homomorphisms"
    costs = pass_costs(sparse.stats)
    sums, free = (plan_homomorphisms((pattern,), one) for one in (costs, replace(costs, entries=0.0)))
    assert sums.cost > free.cost
    (mappings,) = HomomorphismCount(sums).mappings(lab.context(sparse))
    assert plan_count(pattern, sparse).count(lab.context(sparse)) == mappings // automorphism_count(pattern)


@pytest.mark.parametrize(
    "edges", [((0, 1), (1, 2), (2, 3), (0, 3)), ((0, 1), (1, 2), (2, 3), (0, 3), (2, 4), (4, 5), (3, 5))]
)
def test_cycles_of_four_are_counted_by_walks_of_three_steps(edges):
    """One cycle, and two that share an edge: two adjacent vertices of each are taken away at once."""
    sums = plan_homomorphisms((Pattern(max(map(max, edges)) + 1, edges),), COSTS)
    assert sums is not None
    assert Make.PATHS in [step.make for step in sums.program.steps]


@pytest.mark.parametrize("size", [6, 9])
def test_denser_patterns_are_the_same_up_to_isomorphism(size):
    """A clique without two edges that do not touch: either of them may be added, or both."""
    edges = tuple(pair for pair in combinations(range(size), 2) if pair not in ((0, 1), (2, 3)))
    found = sorted((len(more.edges) - len(edges), coefficient) for more, coefficient in denser(Pattern(size, edges)))
    assert found == [(0, 1), (1, -2), (2, 1)]
