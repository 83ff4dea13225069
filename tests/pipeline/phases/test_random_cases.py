"""Every method of counting against igraph or brute force, in 2,000 random cases: all must find the same number."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import naive
import pytest
from random_cases import LABELS, Case, draw_case, limited, methods, methods_in_store, residing
from selection import on_device

from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.planner import PLANNER
from longwall.storage.errors import InputError, RunError
from longwall.storage.graph.graph import Graph
from longwall.storage.streaming.stored_graph import StoredGraph

SLICES = 20
CASES = 100  # of a slice
ON_GPU = on_device(2, 1, 1)  # of these: every search is compiled
_SHARED = Path("/dev/shm")


def answer(case: Case) -> int:
    """The number of mappings, by igraph; where some vertex may have any label, by brute force."""
    labels = case.query.labels or ()
    count = naive.count_mappings_by_masks if -1 in labels else naive.igraph_count_mappings
    return count(case.edges, case.query, case.labels)


def check(lab: Any, case: Case, engine: str) -> Counter[str]:
    """Count a case by all methods; return their names."""
    want, each = answer(case), len(naive.automorphisms(case.query))
    graph: Graph = lab.graph(case.edges, case.graph_labels)
    found = {name: in_run(lab, graph, count, engine) * each for name, count in methods(case, graph).items()}
    assert found == dict.fromkeys(found, want), case
    if case.residency != "resident":
        found |= {f"{name}, {case.residency}": number * each for name, number in elsewhere(lab, case, graph, engine)}
        assert found == dict.fromkeys(found, want), case
    limit, plan = limited(case, graph)
    up_to = in_run(lab, graph, lambda env: plan.count_up_to(limit, env), engine)
    assert min(up_to, limit) == min(want // each, limit), case
    with_little_memory = PLANNER.plan(plan.query, Facts.of(graph)).count
    for number in in_little_memory(lab, graph, with_little_memory, engine):
        assert number * each == want, case
        found["with little memory"] = want
    return Counter(found)


def elsewhere(lab: Any, case: Case, graph: Graph, engine: str) -> Iterator[tuple[str, int]]:
    """Count by all methods in a graph that is in files, or stays in its store; there in small parts, too."""
    shared = _SHARED if _SHARED.is_dir() else None
    with (
        TemporaryDirectory(prefix="longwall-test-", dir=shared) as folder,
        residing(graph, case.residency, Path(folder)) as there,
    ):
        if not isinstance(there, StoredGraph):
            yield from ((name, in_run(lab, there, count, engine)) for name, count in methods(case, there).items())
            return
        counts = methods_in_store(case, there)
        yield from ((name, in_run(lab, there, count, engine)) for name, count in counts.items())
        for number in in_little_memory(lab, there, counts["chosen"], engine) if "chosen" in counts else ():
            yield "chosen, with little memory", number


def in_little_memory(lab: Any, graph: Graph, count: Callable[[Any], int], engine: str) -> Iterator[int]:
    """Count in the smallest of some budgets that has room for it; the others must say that they have not."""
    for power in range(12, 21):  # of the bytes beside the graph
        try:
            yield in_run(lab, graph, count, engine, host=1 << power)
            return
        except (InputError, RunError) as error:
            refusal = str(error)
        assert "memory." in refusal


def in_run(lab: Any, graph: Graph, count: Callable[[Any], int], engine: str, host: int = 1 << 30) -> int:
    """Count in a run of its own: the log of a run answers for phases of a name that is in it."""
    folder = Path(tempfile.mkdtemp(prefix="longwall-test-", dir=_SHARED if _SHARED.is_dir() else None))
    try:
        run = lab.context(graph, engine=engine, folder=folder, host=host + graph.nbytes)
        found = count(run)
        run.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", range(SLICES))
def test_all_methods_find_what_igraph_finds(lab: Any, engine_kind: str, number: int) -> None:
    used: Counter[str] = Counter()
    cases = CASES if engine_kind == "cpu" else ON_GPU
    for seed in range(number * CASES, number * CASES + cases):
        used += check(lab, draw_case(seed), engine_kind)
    assert engine_kind == "cuda" or len(used) > 12, used


def test_the_first_cases(lab: Any, engine_kind: str, seeds: Callable[[int], range]) -> None:
    for seed in seeds(on_device(20, 4, 5)):
        check(lab, draw_case(10_000 + seed), engine_kind)


def test_layouts_that_follow_each_other(lab: Any, engine_kind: str) -> None:
    """In the graph without hubs, one was made of the one before."""
    edges = [(1, 12), (1, 4), (13, 2), (6, 12), (4, 6), (5, 12), (6, 10), (12, 13), (5, 3), (6, 11), (1, 7)]
    edges += [(4, 13), (9, 14), (2, 8), (3, 12), (3, 14), (4, 10), (10, 14), (0, 13), (11, 12), (6, 14), (10, 12)]
    edges += [(14, 3), (1, 10), (6, 9), (1, 6), (5, 9), (2, 13), (3, 5)]
    clique = tuple(combinations(range(5), 2))
    check(lab, Case(1601, "random", tuple(edges), {}, naive.Query(5, clique, None, True)), engine_kind)


@pytest.mark.slow
def test_cases_are_of_all_kinds() -> None:
    """What is drawn has graphs of all kinds, patterns of all sizes, labels, and something to be counted."""
    cases = [draw_case(seed) for seed in range(2000)]
    drawn = Counter(
        (case.kind, case.query.size, case.query.labels is not None, case.query.induced, case.residency)
        for case in cases
    )
    for place, least in ((0, 7), (1, 7), (2, 2), (3, 2), (4, 3)):
        counts = Counter(key[place] for key in drawn.elements())
        assert len(counts) == least
        assert min(counts.values()) >= 80
    drawn_labels = [set(case.query.labels) for case in cases if case.query.labels is not None]
    assert {max(some) for some in drawn_labels} == set(range(LABELS))
    assert sum(-1 in some for some in drawn_labels) > 200
    answers = [answer(case) for case in cases[:100]]
    assert sum(1 for found in answers if found) > 50
    assert draw_case(7) == draw_case(7)
    assert len({case.query for case in cases}) > 600


def test_the_oracles_agree() -> None:
    for seed in range(60):
        case = draw_case(seed)
        if -1 not in (case.query.labels or ()):
            masks = naive.count_mappings_by_masks(case.edges, case.query, case.labels)
            assert masks == naive.igraph_count_mappings(case.edges, case.query, case.labels)
