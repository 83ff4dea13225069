"""Counts of whole plans against the naive oracle, igraph and networkx, and against closed forms.

A count must not depend on threads, on the memory budget, or on how the work is cut.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import factorial

import naive
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from plans import ON_WHOLE, plan_count
from run_configs import write_edges
from selection import on_device
from strategies import SmallGraph, graphs, queries

import longwall
from longwall.pipeline.execution import search_context
from longwall.pipeline.execution.phase import equal_tasks
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import make_pattern
from longwall.pipeline.phases import search_count
from longwall.pipeline.planning.search.search_planner import plan_edge_joins, plan_match
from longwall.storage.errors import InputError, RunError

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

# Wheels, cliques, stars, two hubs: shapes on which set operations take their rare turns.
TWO_HUBS = SmallGraph((*product((0, 1), range(2, 22)), (0, 1)), {})
WHEEL = SmallGraph(
    tuple((0, i) for i in range(1, 13)) + tuple((i, i % 12 + 1) for i in range(1, 13)),
    {v: v % 3 for v in range(13)},
)
K8 = SmallGraph(tuple(combinations(range(8), 2)), {v: v % 2 for v in range(8)})
K44 = SmallGraph(tuple(product(range(4), range(4, 8))), {v: v % 2 for v in range(8)})


@pytest.fixture(scope="session")
def count(lab, engine_kind):
    """Count the mappings of a query by the plan that a run would take, or always (never) by a search; or by joins."""

    def by_plan(small: SmallGraph, query: naive.Query, *, how: str = "chosen", **context) -> int:
        graph = lab.graph(small.edges, small.labels if query.labels is not None else None)
        pattern = make_pattern(query.edges, query.labels)
        run = lab.context(graph, engine=engine_kind, **context)
        if how in ("search", "edges"):
            plan_search = plan_edge_joins if how == "edges" else plan_match
            plan = plan_search(pattern, graph.stats, induced=query.induced)
            return search_count.count_matches(plan, run) * plan.automorphisms
        plan = plan_count(pattern, graph, induced=query.induced)
        if how == "shortcut":
            with suppress(InputError):  # the search alone counts it
                plan = plan_count(pattern, graph, induced=query.induced, without=(*ON_WHOLE, "search"))
        return plan.count(run) * plan.automorphisms

    return by_plan


ways = st.sampled_from(["chosen", "search", "edges", "shortcut", "shortcut"])


@settings(relaxed, max_examples=on_device(250, 25))
@given(small=graphs(), query=queries(), how=ways)
@example(small=TWO_HUBS, query=naive.Query(4, ((0, 1), (1, 2), (2, 3), (0, 3))), how="shortcut")
@example(small=WHEEL, query=naive.Query(4, ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3)), (0, 1, 2, 0)), how="chosen")
@example(small=K8, query=naive.Query(5, ((0, 1), (1, 2), (2, 3), (3, 4)), None, True), how="shortcut")
@example(small=K44, query=naive.Query(5, ((0, 1), (1, 2), (2, 3), (3, 4))), how="shortcut")
def test_counts_equal_the_naive_oracle(count, small, query, how):
    assert count(small, query, how=how) == naive.count_mappings(small.edges, query, small.labels)


@settings(relaxed, max_examples=on_device(200, 20))
@given(small=graphs(max_vertices=14), query=queries(min_size=3, max_size=6), how=ways)
def test_counts_equal_igraph(count, small, query, how):
    assert count(small, query, how=how) == naive.igraph_count_mappings(small.edges, query, small.labels)


@settings(relaxed, max_examples=on_device(50, 5))
@given(small=graphs(max_vertices=9), query=queries(min_size=3, max_size=5), how=ways)
def test_counts_equal_networkx(count, small, query, how):
    assert count(small, query, how=how) == naive.networkx_count_mappings(small.edges, query, small.labels)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("size", [4, 3, 5])
@pytest.mark.parametrize("induced", [False, True])
def test_every_pattern_of_a_size(count, size, induced):
    """One graph that holds all of them: no pattern is left to chance."""
    edges = {(u, v) for u, v in combinations(range(13), 2) if (u * 7 + v * 5 + u * v) % 5 < 2}
    small = SmallGraph(tuple(edges | {(0, v) for v in range(1, 13)}), {})
    for found in naive.connected_patterns(size):
        query = naive.Query(size, found.edges, None, induced)
        want = naive.igraph_count_mappings(small.edges, query)
        for how in ("chosen", "search", "edges", "shortcut"):
            assert count(small, query, how=how) == want, (query, how)


@settings(relaxed, max_examples=on_device(60, 6))
@given(small=graphs(max_vertices=12), size=st.sampled_from([3, 4]))
def test_induced_counts_equal_igraphs_motif_census(count, small, size):
    census = naive.igraph_motifs(small.edges, size)
    for found in naive.connected_patterns(size):
        query = naive.Query(size, found.edges, None, True)
        assert count(small, query) == census[naive.isomorphism_class(query)] * len(naive.automorphisms(query))


@settings(relaxed, max_examples=on_device(60, 6))
@given(small=graphs(max_vertices=11), k=st.integers(3, 6))
def test_cliques(count, small, k):
    query = naive.Query(k, tuple(combinations(range(k), 2)))
    want = len(naive.cliques(small.edges, k))
    assert want == naive.igraph_count_cliques(small.edges, k)
    each = len(naive.automorphisms(query))
    assert count(small, query) == want * each
    assert count(small, query, how="search") == want * each


@settings(relaxed, max_examples=on_device(80, 8))
@given(
    small=graphs(max_vertices=12),
    query=queries(),
    threads=st.sampled_from([1, 2, 3, 5]),
    tasks=st.sampled_from([1, 2, 7, 1000]),
    host=st.sampled_from([1 << 16, 1 << 18, 1 << 30]),
)
def test_threads_tasks_and_memory_change_nothing(count, small, query, threads, tasks, host):
    want = naive.igraph_count_mappings(small.edges, query, small.labels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_context, "equal_tasks", lambda total, _: equal_tasks(total, tasks))
        for how in ("search", "shortcut"):
            assert count(small, query, threads=threads, host=host, how=how) == want


@settings(relaxed, max_examples=on_device(60, 6))
@given(small=graphs(max_vertices=12), query=queries(), renaming=st.permutations(range(60)))
def test_renumbering_the_graph_changes_nothing(count, small, query, renaming):
    renamed = SmallGraph(
        tuple((renaming[v], renaming[u]) for u, v in reversed(small.edges)),
        {renaming[v]: label for v, label in small.labels.items()},
    )
    assert count(small, query) == count(renamed, query)


def test_repeated_edges_loops_and_huge_ids_change_nothing(count):
    triangle = naive.Query(3, ((0, 1), (1, 2), (0, 2)))
    far = 2**62
    edges = ((far, 5), (5, far), (5, 5), (5, far + 1), (far + 1, far), (far, far + 1), (7, 7))
    assert count(SmallGraph(edges, {}), triangle) == 6


@pytest.mark.parametrize("n", [4, 7, 65, 130])
def test_cliques_in_a_complete_graph(count, n):
    complete = SmallGraph(tuple(combinations(range(n), 2)), {})
    for k in (3, 4, 5):
        query = naive.Query(k, tuple(combinations(range(k), 2)))
        each = len(naive.automorphisms(query))
        assert count(complete, query, threads=2) == naive.binomial(n, k) * each


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("leaves", [2, 3, 63, 1000])
def test_stars_in_a_star(count, leaves):
    star = SmallGraph(tuple((0, i) for i in range(1, leaves + 1)), {})
    for k in (2, 3, 4, 5):
        query = naive.Query(k + 1, tuple((0, i) for i in range(1, k + 1)))
        want = naive.binomial(leaves, k) * factorial(k)
        for how in ("chosen", "search", "shortcut"):
            assert count(star, query, how=how) == want
        if leaves <= 63:
            assert count(star, replace(query, induced=True)) == want


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (5, 8), (30, 41)])
def test_a_grid(count, rows, columns):
    grid = [((r, c), (r, c + 1)) for r in range(rows) for c in range(columns - 1)]
    grid += [((r, c), (r + 1, c)) for r in range(rows - 1) for c in range(columns)]
    small = SmallGraph(tuple((a * columns + b, c * columns + d) for (a, b), (c, d) in grid), {})
    square = naive.Query(4, ((0, 1), (1, 2), (2, 3), (0, 3)))
    assert count(small, square) == 8 * (rows - 1) * (columns - 1)
    assert count(small, naive.Query(3, ((0, 1), (1, 2), (0, 2)))) == 0
    wedge = naive.Query(3, ((0, 1), (0, 2)))
    inner, border = (rows - 2) * (columns - 2), 2 * (rows - 2) + 2 * (columns - 2)
    assert count(small, wedge) == 2 * (6 * inner + 3 * border + 4)


@pytest.mark.parametrize("k", [3, 4, 6])
def test_complete_bipartite_graph_has_the_closed_form_of_cycles(count, k):
    """Non-induced cycles of length 4 and 6 in K(k, k)."""
    small = SmallGraph(tuple((u, k + v) for u in range(k) for v in range(k)), {})
    ring4 = naive.Query(4, tuple((i, (i + 1) % 4) for i in range(4)))
    assert count(small, ring4) == 8 * naive.binomial(k, 2) ** 2
    ring6 = naive.Query(6, tuple((i, (i + 1) % 6) for i in range(6)))
    assert count(small, ring6) == 12 * 6 * naive.binomial(k, 3) ** 2


@dataclass(frozen=True)
class Giant:
    """A graph and a pattern whose count has a closed form, mostly beyond 64 bits."""

    name: str
    pattern: str
    edges: Callable[[], Iterable[tuple[int, int]]]
    exact: int


def _star(n: int) -> Callable[[], Iterable[tuple[int, int]]]:
    return lambda: ((0, i) for i in range(1, n + 1))


def _hubs(m: int) -> Callable[[], Iterable[tuple[int, int]]]:
    return lambda: product((0, 1), range(2, m + 2))


def _complete(m: int) -> Callable[[], Iterable[tuple[int, int]]]:
    return lambda: combinations(range(m), 2)


GIANTS = [
    *(Giant(f"star of {n}", f"star-{k}", _star(n), naive.binomial(n, k))
      for n, k in ((100_000, 3), (100_000, 4), (100_000, 5), (3_000, 8), (1_000, 6), (700, 9))),
    Giant("star of 100000", "cycle-4", _star(100_000), 0),
    Giant("star of 2000", "path-5", _star(2_000), 0),
    Giant("star of 60", "0-1,0-2,0-3,0-4,0-5,5-6", _star(60), 0),
    *(Giant(f"two hubs of {m}", f"star-{k}", _hubs(m), 2 * naive.binomial(m, k))
      for m, k in ((60_000, 4), (60_000, 5), (1_500, 8))),
    Giant("two hubs of 60000", "cycle-4", _hubs(60_000), naive.binomial(60_000, 2)),
    Giant("K200", "star-4", _complete(200), 200 * naive.binomial(199, 4)),
    Giant("K200", "house", _complete(200), 60 * naive.binomial(200, 5)),
    Giant("K30", "clique-12", _complete(30), naive.binomial(30, 12)),
]  # fmt: skip


MINUTES_ON_THE_EMULATOR = ("star of 100000", "star of 2000", "star of 700", "two hubs of 60000", "K30")


@pytest.mark.quick_cases(9)
@pytest.mark.parametrize(
    ("giant", "induced"),
    [
        pytest.param(
            giant,
            induced,
            id=f"{giant.pattern} in {giant.name}, {induced}",
            marks=pytest.mark.real_gpu("this count takes minutes") if giant.name in MINUTES_ON_THE_EMULATOR else (),
        )
        for giant in GIANTS
        # Where there are some, induced ones are enumerated one by one.
        for induced in ([False] if giant.exact else [False, True])
    ],
)
def test_giant_counts_are_exact_or_refused(lab, engine_kind, giant, induced):
    """Never a number that wrapped around, and no refusal of a number that fits with room to spare."""
    pattern = parse_pattern(giant.pattern)
    graph = lab.graph(giant.edges())
    plan = plan_count(pattern, graph, induced=induced)
    run = lab.context(graph, engine=engine_kind, threads=2)
    if giant.exact * plan.automorphisms < 2**61 or "star" in giant.pattern or giant.pattern == "house":
        assert plan.count(run) == giant.exact
        return
    try:
        found = plan.count(run)
    except RunError as refusal:
        found, words = None, str(refusal)
    assert found == giant.exact if found is not None else "64-bit" in words


@settings(relaxed, max_examples=on_device(25, 5))
@given(small=graphs(max_vertices=8), query=queries(), mappings=st.booleans())
def test_the_whole_run_gives_the_same(engine_kind, tmp_path_factory, small, query, mappings):
    folder = tmp_path_factory.mktemp("run")
    write_edges(folder, small.edges)
    (folder / "labels.txt").write_text("".join(f"{v} {label}\n" for v, label in small.labels.items()))
    workload = {"kind": "match", "pattern": query.text, "induced": query.induced}
    workload["count"] = "mappings" if mappings else "embeddings"
    graph = {"path": folder / "graph.txt"}
    if query.labels is not None:
        workload["pattern_labels"] = list(query.labels)
        graph["labels"] = folder / "labels.txt"
    result = longwall.run(
        {
            "graph": graph,
            "workload": workload,
            "engine": {"kind": engine_kind},
            "run": {"directory": folder / "runs"},
        }
    )
    oracle = naive.count_mappings if mappings else naive.count_embeddings
    want = oracle(small.edges, query, small.labels)
    assert result.count == want
    assert result.table("counts").column("count").to_pylist() == [want]


def test_labels_that_no_vertex_has_count_nothing(count):
    query = naive.Query(3, ((0, 1), (1, 2)), (9, 0, 9))
    assert count(WHEEL, query) == 0


@pytest.mark.slow
def test_a_pattern_larger_than_the_graph_counts_nothing(count):
    edge = SmallGraph(((3, 4),), {3: 0, 4: 0})
    for size in range(2, 7):
        for found in naive.connected_patterns(size)[:10]:
            for induced in (False, True):
                query = naive.Query(size, found.edges, None, induced)
                assert count(edge, query) == (2 if size == 2 else 0)


def test_a_labelled_pattern_needs_a_labelled_graph(engine_kind, tmp_path):
    (tmp_path / "graph.txt").write_text("1 2\n2 3\n")
    with pytest.raises(InputError, match="labels"):
        longwall.run(
            {
                "graph": {"path": tmp_path / "graph.txt"},
                "workload": {"kind": "match", "pattern": "edge", "pattern_labels": [0, 1]},
                "engine": {"kind": engine_kind},
                "run": {"directory": tmp_path / "runs"},
            }
        )
