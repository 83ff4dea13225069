"""All workloads against formulas, on graphs whose counts and intermediate numbers pass 2^31, 2^32, ... and 2^128."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from dataclasses import fields, is_dataclass, replace
from functools import partial
from itertools import combinations, pairwise
from math import comb, prod
from pathlib import Path
from typing import Any

import closed_cases
import closed_families as families
import closed_forms as forms
import naive
import naive_orbits
import networkx as nx
import pytest
from closed_cases import Question, text_of
from random_cases import Case, methods
from selection import on_device

from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.planning.methods.search import SearchPlan
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.storage.graph.graph import Graph

SLICES, CASES = 30, 80  # slow ones
QUICK = on_device(60, 5)
EDGES, FEW_EDGES = 12_000, 2_000
METHOD_CASES = 20  # of a slice, that are counted by every method
_CUDA_SHARE = 8  # a GPU compiles kernels for most patterns, so it answers one slow question of this number
_MOST_ROWS = 20_000  # that a search may make
_SHARED = Path("/dev/shm")
_GIB = 1 << 30


def check(lab: Any, question: Question, engine: str, threads: int = 2) -> None:
    """Ask a question in a run of its own."""
    folder = Path(tempfile.mkdtemp(prefix="longwall-test-", dir=_SHARED if _SHARED.is_dir() else None))
    try:
        graph = closed_cases.build(question)
        env = lab.context(
            graph, engine=engine, threads=threads, folder=folder, host=question.memory, workload=question.section
        )
        wrong = closed_cases.wrong(question, env)
        env.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert not wrong, f"{question}: {wrong}"


@pytest.mark.parametrize("seed", range(QUICK))
def test_the_first_questions(lab: Any, engine_kind: str, seed: int) -> None:
    check(lab, closed_cases.draw(seed, FEW_EDGES), engine_kind, 1 + seed % 2)


def cases_of(cases: int, engine: str) -> int:
    """Return the number of cases of a slice on an engine."""
    return cases if engine == "cpu" else on_device(max(cases // _CUDA_SHARE, 1), max(cases // 20, 1))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(SLICES))
def test_all_workloads_agree_with_formulas(lab: Any, engine_kind: str, number: int) -> None:
    kinds: Counter[str] = Counter()
    cases = cases_of(CASES, engine_kind)
    for seed in range(1000 + number * CASES, 1000 + number * CASES + cases):
        question = closed_cases.draw(seed, on_device(EDGES, FEW_EDGES))
        check(lab, question, engine_kind, 1 + seed % 2)
        kinds[question.kind] += 1
    assert len(kinds) > (6 if cases == CASES else 0), kinds


@pytest.mark.slow
@pytest.mark.parametrize("number", range(SLICES))
def test_all_methods_agree_with_formulas(lab: Any, engine_kind: str, number: int) -> None:
    for seed in range(number * METHOD_CASES, number * METHOD_CASES + cases_of(METHOD_CASES, engine_kind)):
        check_methods(lab, 100_000 + seed, engine_kind)


@pytest.mark.parametrize("seed", range(on_device(12, 2)))
def test_the_first_methods(lab: Any, engine_kind: str, seed: int) -> None:
    check_methods(lab, 200_000 + seed, engine_kind)


def check_methods(lab: Any, seed: int, engine: str) -> None:
    """Count a pattern by all methods that do not enumerate too much."""
    question = closed_cases.draw_count(seed, FEW_EDGES)
    query = question.query
    assert query is not None
    graph: Graph = closed_cases.build(question)
    want, each, found = forms.maps(question.graph, query), len(forms.automorphisms(query)), {}
    searched = ("candidates", "inclusion", "motifs, enum")
    small = rows_of_search(question.graph, query, graph) <= _MOST_ROWS
    for name, count in methods(Case(seed, question.graph.name, (), {}, query), graph).items():
        if not small and (name.startswith(searched) or enumerates(getattr(count, "__self__", None))):
            continue
        if name == "listing" and want // each > _MOST_ROWS:  # each embedding is written
            continue
        folder = Path(tempfile.mkdtemp(prefix="longwall-test-", dir=_SHARED if _SHARED.is_dir() else None))
        try:
            env = lab.context(graph, engine=engine, folder=folder, host=question.memory)
            found[name] = count(env) * each
            env.close()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    assert found == dict.fromkeys(found, want), question


def enumerates(plan: Any) -> bool:
    """Whether a plan, or one that it is made of, counts by a search."""
    if isinstance(plan, SearchPlan):
        return True
    if isinstance(plan, tuple):
        return any(map(enumerates, plan))
    return is_dataclass(plan) and any(enumerates(getattr(plan, field.name)) for field in fields(plan))


def rows_of_search(graph: forms.BlowUp, query: naive.Query, stored: Graph) -> int:
    """Rows of all levels but the last of a search for a pattern, which counts one vertex, without symmetry."""
    order = plan_match(
        Pattern(query.size, query.edges, query.labels), stored.stats, induced=query.induced, longest_suffix=1
    ).order
    rows = 0
    for size in range(2, query.size):
        place = {v: i for i, v in enumerate(order[:size])}
        edges = tuple((place[u], place[v]) for u, v in query.edges if u in place and v in place)
        labels = None if query.labels is None else tuple(query.labels[v] for v in place)
        rows += forms.maps(graph, naive.Query(size, edges, labels, query.induced))
    return rows


def _star(leaves: int, labels: tuple[int, ...] | None = None) -> naive.Query:
    return naive.Query(leaves + 1, tuple((0, v) for v in range(1, leaves + 1)), labels)


def _asked(graph: forms.BlowUp, query: naive.Query, **section: Any) -> Question:
    section = {"kind": "match", "pattern": text_of(query), "induced": query.induced, **section}
    answer = forms.embeddings(graph, query)
    return Question("count", graph, section, answer, query, labelled=query.labels is not None)


def _motifs(graph: forms.BlowUp, k: int) -> Question:
    queries = [naive.Query(k, one.edges, None, True) for one in closed_cases.patterns(k)]
    answer = {query: forms.embeddings(graph, query) for query in queries}
    return Question("motifs", graph, {"kind": "motifs", "k": k}, answer)


def _induced(leaves: int, labels: tuple[int, ...] | None = None) -> naive.Query:
    return replace(_star(leaves, labels), induced=True)


def _of_nine_leaves(graph: forms.BlowUp, answer: int) -> Question:
    query = _star(9, (0, *[1] * 9))  # whose vertices coincide in too many ways for the formula
    return Question("count", graph, {"kind": "match", "pattern": text_of(query)}, answer, query, labelled=True)


LARGE = {
    "stars of 7 leaves, to 2^103": partial(_asked, families.star(65_537), _star(7)),
    "labelled stars of 5 leaves": partial(_asked, families.layers(1, 65_537), _star(5, (0, 1, 1, 1, 1, 1))),
    "partly labelled stars of 6 leaves": partial(_asked, families.layers(1, 65_537), _star(6, (0, 1, 1, 1, 1, 1, -1))),
    "labelled stars of 9 leaves": partial(_of_nine_leaves, families.layers(1, 200_000), comb(200_000, 9)),
    "induced stars of 5 leaves in a wheel": partial(_asked, families.wheel(20_000), _induced(5)),
    "induced stars of 7 leaves": partial(_asked, families.star(468), _induced(7)),
    "induced stars of 7 leaves, some joined": partial(_asked, families.tailed_clique(6, 66_000), _induced(7)),
    "labelled induced stars of 3 leaves": partial(_asked, families.layers(1, 66_000), _induced(3, (0, 1, 1, 1))),
    "labelled induced stars of 5 leaves in a wheel": partial(
        _asked, families.wheel(20_000), _induced(5, (-1, 1, 1, 1, 1, -1))
    ),
    "partly labelled induced stars, some leaves joined": partial(
        _asked, families.tailed_clique(6, 66_000), _induced(4, (-1, 1, 1, 1, -1))
    ),
    "motifs of 5 vertices of a star": partial(_motifs, families.star(66_000), 5),
    "motifs of 4 vertices of K(2, 65,537)": partial(_motifs, families.bipartite(2, 65_537), 4),
    "motifs of 5 vertices of K(2, 65,537)": partial(_motifs, families.bipartite(2, 65_537), 5),
    "stars of a double star": partial(_asked, families.double_star(40_000, 50_000), _star(6)),
    "cycles of K(300, 301)": partial(_asked, families.bipartite(300, 301), closed_cases.SHAPES["cycle-4"]),
    "paths through layers of 200": partial(
        _asked, families.layers(*[200] * 9), naive.Query(9, tuple(pairwise(range(9))), tuple(range(9)))
    ),
    "half of a clique, to 2^146": partial(
        Question, "cliques", families.clique(150), {"kind": "cliques", "k": 75}, comb(150, 75)
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_numbers_of_more_than_a_word(lab: Any, engine_kind: str, name: str) -> None:
    check(lab, LARGE[name](), engine_kind)


@pytest.mark.parametrize("limit", [5, 1000, 10**7])
def test_a_limit_is_reached_where_there_are_many_more(lab: Any, engine_kind: str, limit: int) -> None:
    """Of labelled stars, the last vertices of which could be counted as one number that is too large."""
    graph, query = families.layers(1, 60_000), _star(5, (0, 1, 1, 1, 1, 1))
    whole = _asked(graph, query, limit=limit)
    assert whole.answer > 2**62
    check(lab, replace(whole, answer=limit), engine_kind)


def test_counts_of_classes_are_those_of_brute_force() -> None:
    for graph in (
        families.double_star(1, 2),
        families.wheel(5),
        families.fan(5),
        families.windmill(2, 4),
        families.multipartite(3, 2),
        families.threshold(2, 1, 1, 2),
        families.tailed_clique(3, 1).times(2),
        families.two_hubs(2, 1, 1),
    ):
        edges = [(int(u), int(v)) for u, v in graph.edges()]
        labels = dict(enumerate(map(int, graph.labels())))
        assert len({frozenset(edge) for edge in edges}) == len(edges) == graph.num_edges
        for number, one in enumerate([*naive.connected_patterns(3), *naive.connected_patterns(4)[::2]]):
            for induced in (False, True):
                some = tuple((number + v) % 3 - 1 for v in range(one.size))
                for query in (replace(one, induced=induced), replace(one, induced=induced, labels=some)):
                    assert forms.maps(graph, query) == naive.count_mappings(edges, query, labels), (
                        graph.name,
                        query,
                    )
        assert forms.cliques(graph, 4) == [len(naive.cliques(edges, k)) for k in range(1, 5)]
        assert forms.maximal_cliques(graph) == Counter(map(len, nx.find_cliques(nx.Graph(edges))))


def test_counts_at_vertices_and_edges_are_those_of_brute_force() -> None:
    for graph in (families.wheel(7), families.split(2, 3), families.windmill(2), families.uneven(1, 2, 2)):
        edges = [(int(u), int(v)) for u, v in graph.edges()]
        orbits, cliques = naive_orbits.orbits(edges, 4), naive.cliques(edges, 3)
        rows, sizes = forms.orbits(graph, 4), forms.clique_vertices(graph, 3)
        for start, row, size in zip(graph.starts, rows, sizes, strict=False):
            assert [orbits[start][orbit] for orbit in range(15)] == row
            assert size[2] == sum(1 for one in cliques if start in one)
        for query in closed_cases.SHAPES.values():
            found, there = forms.at_edges(graph, query), naive.embeddings(edges, query)
            for u, v in edges:
                ends = tuple(sorted(sum(1 for start in graph.starts[1:] if start <= end) for end in (u, v)))
                assert found[ends] == sum(1 for one in there if frozenset((u, v)) in one)


def test_counts_of_classes_are_published_formulas() -> None:
    n = 10**6
    for k in range(3, 7):
        clique = naive.Query(k, tuple(combinations(range(k), 2)))
        assert forms.embeddings(families.clique(n), clique) == comb(n, k)
        assert forms.embeddings(families.star(n), _star(k)) == comb(n, k)
        assert forms.embeddings(families.multipartite(n, 2), clique) == comb(n, k) * 2**k
    square = closed_cases.SHAPES["cycle-4"]
    assert forms.embeddings(families.bipartite(n, n + 1), square) == comb(n, 2) * comb(n + 1, 2)
    assert forms.embeddings(families.wheel(n), closed_cases.SHAPES["triangle"]) == n
    assert forms.embeddings(families.windmill(n), closed_cases.SHAPES["triangle"]) == n
    path = naive.Query(6, tuple(pairwise(range(6))), tuple(range(6)))
    assert forms.maps(families.layers(3, 5, 7, 11, 13, 17), path) == prod((3, 5, 7, 11, 13, 17))


def test_questions_are_of_all_kinds() -> None:
    drawn = [closed_cases.draw(seed, FEW_EDGES) for seed in range(100)]
    kinds = Counter(question.kind for question in drawn)
    assert len(kinds) > 8, kinds
    assert len({question.graph.name for question in drawn}) > 50
    assert closed_cases.draw(7, FEW_EDGES) == closed_cases.draw(7, FEW_EDGES)
