"""Programs of up to 64 vertices, whose bounds are bits of 64-bit words, and counts that end early."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.patterns.pattern import MAX_VERTICES, make_pattern
from longwall.pipeline.patterns.symmetry import automorphism_count, restrictions
from longwall.pipeline.planning.search.search_compiler import compile_program
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.stages.counting import count_planned
from longwall.stages.source import edge_source
from longwall.storage.ingest.build import build_graph

LABEL = {vertex: vertex % 5 for vertex in range(MAX_VERTICES + 6)}


def loaded(lab: Any, kind: str, edges: Any, labels: dict[int, int] | None = None) -> Any:
    context = lab.context(lab.graph(edges, labels), engine=kind)
    return context, load_graph(context)[0]


def count(context: Any, graph: Any, program: Any, most: int | None = None) -> int:
    engine = context.engine
    source = edge_source(graph, program.levels[:2], 0, graph.num_arcs, engine.xp)
    return count_planned(source, engine.kernels.searcher(engine.device, graph, program, 1 << 26), None, most)


def ladder(steps: int) -> list[tuple[int, int]]:
    """Edges of a ladder: vertices 2 i and 2 i + 1 are its steps."""
    rails = [(v, v + 2) for v in range(2 * steps - 2)]
    return rails + [(2 * step, 2 * step + 1) for step in range(steps)]


@pytest.mark.parametrize("size", [34, pytest.param(MAX_VERTICES, marks=pytest.mark.slow)])
@pytest.mark.parametrize("induced", [False, True])
def test_ladders_in_a_ladder(lab: Any, engine_kind: str, size: int, induced: bool) -> None:
    if engine_kind == "cuda":  # which compiles a kernel for each pattern: 64 vertices take minutes
        size = 34 if induced else min(size, 48)
    context, graph = loaded(lab, engine_kind, ladder(size // 2 + 3))
    pattern = make_pattern(ladder(size // 2))
    assert automorphism_count(pattern) == 4
    plan = plan_match(pattern, context.graph.stats, induced=induced)
    assert count(context, graph, plan.program) == 4 * plan.redundancy


def test_bounds_by_the_last_places_of_a_large_pattern(lab: Any, engine_kind: str) -> None:
    size = 36
    path = [(v, v + 1) for v in range(size - 1)]
    leaves = [(size - 2, size), (size - 2, size + 1)]  # three leaves at the end: restrictions between late places
    context, graph = loaded(lab, engine_kind, [*path, *leaves, (size - 2, size + 2)], None)
    pattern = make_pattern([*path, *leaves])
    order = tuple(range(size + 2))
    pairs, redundancy = restrictions(pattern, order)
    assert (redundancy, len(pairs)) == (1, 3)
    for descending in (True, False):
        program = compile_program(pattern, order, pairs, induced=False, suffix=0, descending=descending)
        assert count(context, graph, program) == 4
    unbounded = compile_program(pattern, order, [], induced=False, suffix=0, descending=True)
    assert count(context, graph, unbounded) == 4 * 6


@pytest.mark.parametrize("size", [40, pytest.param(MAX_VERTICES, marks=pytest.mark.long)])
def test_labels_of_a_large_pattern(lab: Any, engine_kind: str, size: int) -> None:
    path = [(v, v + 1) for v in range(size + 5)]
    context, graph = loaded(lab, engine_kind, path, {v: LABEL[v] for v in range(size + 6)})
    pattern = make_pattern(path[: size - 1], [LABEL[v] for v in range(size)])
    plan = plan_match(pattern, context.graph.stats)
    assert count(context, graph, plan.program) == 2


@pytest.mark.parametrize("most", [1, 10, 1000])
def test_a_count_may_end_once_it_has_found_enough(lab: Any, engine_kind: str, most: int) -> None:
    context, graph = loaded(lab, engine_kind, combinations(range(24), 2))
    plan = plan_match(make_pattern([(0, 1), (1, 2), (2, 3)]), context.graph.stats, longest_suffix=1)
    whole = count(context, graph, plan.program)
    assert whole == 24 * 23 * 22 * 21 // 2 * plan.redundancy
    found = count(context, graph, plan.program, most)
    assert most <= found <= whole
    assert found < whole or engine_kind == "cuda"  # a device may do all of so small a graph at once
    assert count(context, graph, plan.program, whole + 1) == whole


def test_plans_of_large_patterns_are_connected_orders() -> None:
    rng = np.random.default_rng(1)
    ends = np.array(list(combinations(range(9), 2)))
    stats = build_graph(ends[:, 0], ends[:, 1]).stats
    for size in (17, 32, 64):
        edges = [(int(rng.integers(v)), v) for v in range(1, size)]
        edges += [tuple(sorted(map(int, rng.choice(size, 2, replace=False)))) for _ in range(size // 2)]
        pattern = make_pattern(edges, [int(label) for label in rng.integers(0, 4, size)])
        order = plan_match(pattern, stats).order
        assert sorted(order) == list(range(size))
        assert all(pattern.neighbours[v].intersection(order[:at]) for at, v in enumerate(order) if at)
