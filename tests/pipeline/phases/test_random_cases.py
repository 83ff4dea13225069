"""Every method of counting against igraph or brute force, in 2,000 random cases: all must find the same number."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import naive
import pytest
from random_cases import Case, draw_case, limited, methods
from selection import on_device

from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.planner import PLANNER
from longwall.storage.errors import InputError, RunError
from longwall.storage.graph.graph import Graph

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
    limit, plan = limited(case, graph)
    up_to = in_run(lab, graph, lambda env: plan.count_up_to(limit, env), engine)
    assert min(up_to, limit) == min(want // each, limit), case
    with_little_memory = PLANNER.plan(plan.query, Facts.of(graph)).count
    for power in range(12, 21):  # of the bytes beside the graph
        try:
            found["with little memory"] = each * in_run(lab, graph, with_little_memory, engine, host=1 << power)
            break
        except (InputError, RunError) as error:
            refusal = str(error)
        assert "memory." in refusal, case
    assert found.get("with little memory", want) == want, case
    return Counter(found)


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
    layouts_follow_each_other = 1601  # in the graph without hubs: one was made of the one before
    for seed in (layouts_follow_each_other, *(10_000 + seed for seed in seeds(on_device(20, 4, 5)))):
        check(lab, draw_case(seed), engine_kind)


@pytest.mark.slow
def test_cases_are_of_all_kinds() -> None:
    """What is drawn has graphs of all kinds, patterns of all sizes, labels, and something to be counted."""
    cases = [draw_case(seed) for seed in range(2000)]
    drawn = Counter((case.kind, case.query.size, case.query.labels is not None, case.query.induced) for case in cases)
    for place, least in ((0, 7), (1, 6), (2, 2), (3, 2)):
        counts = Counter(key[place] for key in drawn.elements())
        assert len(counts) == least
        assert min(counts.values()) >= 100
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
