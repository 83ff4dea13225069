"""Paths and triangles with a tail by degrees and triangles: equal to what a search finds, and exact however large."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from plans import motifs, plan_count

from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.phases import degree_sums
from longwall.pipeline.phases.degree_sums import add_tails, count_by_triangles, triangle_phase
from longwall.pipeline.planning.methods import from_triangles
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.build import build_graph

GRAPHS = {
    "rmat": cache(lambda: generate("rmat", seed=7, scale=8, edge_factor=6)),
    "star": cache(lambda: build_graph(np.zeros(50, np.int64), np.arange(1, 51))),
    "one edge": cache(lambda: build_graph(np.array([0]), np.array([1]))),
}


def naively(graph: Graph, name: str) -> int:
    """By neighbours in networkx, edge by edge and triangle by triangle."""
    whole: Any = nx.Graph()
    ends = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
    whole.add_edges_from(zip(ends.tolist(), graph.indices.tolist(), strict=True))
    if name == "path-4":
        sides = ((set(whole[u]) - {v}, set(whole[v]) - {u}) for u, v in whole.edges)
        return sum(len(one) * len(other) - len(one & other) for one, other in sides)
    return sum(
        sum(w in whole[u] for u, w in combinations(whole[v], 2)) * (whole.degree[v] - 2) for v in whole if whole[v]
    )


@pytest.mark.parametrize("name", ["path-4", "tailed-triangle"])
@pytest.mark.parametrize("kind", list(GRAPHS))
def test_counts_are_those_of_the_definition(
    lab: SimpleNamespace, kind: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(degree_sums, "_VERTICES_AT_ONCE", 37)
    monkeypatch.setattr(degree_sums, "_ARCS_AT_ONCE", 100)
    assert count_by_triangles(parse_pattern(name), lab.context(GRAPHS[kind]())) == naively(GRAPHS[kind](), name)


def test_sums_are_exact_past_64_bits() -> None:
    graph = GRAPHS["star"]()
    vertices = np.arange(graph.num_vertices)
    assert add_tails(graph, vertices, np.full(len(vertices), (1 << 62) - 5)) == ((1 << 62) - 5) * 48


def test_other_patterns_are_not_counted_so(lab: SimpleNamespace) -> None:
    for name in ("clique-4", "cycle-4", "diamond", "star-3", "path-5"):
        assert count_by_triangles(parse_pattern(name), lab.context(GRAPHS["rmat"]())) is None


@pytest.mark.parametrize("name", ["path-4", "tailed-triangle"])
@pytest.mark.parametrize("many", [0, 1 << 40])
def test_the_cpu_counts_large_graphs_so(
    lab: SimpleNamespace, name: str, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from longwall.pipeline.prediction.predict import sample_plan

    monkeypatch.setattr(from_triangles, "_MANY_EDGES", many)
    graph = GRAPHS["rmat"]()
    plan, context = plan_count(parse_pattern(name), graph), lab.context(graph)
    assert plan.count(context) == naively(graph, name)
    method = {"path-4": "clique bitmaps", "tailed-triangle": "triangles per vertex"}[name]
    assert (method in [row.stage for row in context.metrics.rows()]) == (many == 0)
    first, *_ = sample_plan(plan, context.spec, graph, context.resources)
    assert (first.name == triangle_phase(plan.pattern, 0.0).name) == (many == 0)
    induced = plan_count(parse_pattern(name), graph, induced=True)
    assert induced.count(lab.context(graph)) < plan.count(lab.context(graph))


def test_where_the_budget_has_no_room_for_counts_of_vertices_rows_are_summed(
    lab: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from longwall.stages.range_counting import CountTrianglesOfVertices

    monkeypatch.setattr(from_triangles, "_MANY_EDGES", 0)
    monkeypatch.setattr(CountTrianglesOfVertices, "host_bytes", lambda self, workers: 1 << 50)
    graph = GRAPHS["rmat"]()
    plan, context = plan_count(parse_pattern("tailed-triangle"), graph), lab.context(graph)
    assert plan.count(context) == naively(graph, "tailed-triangle")
    assert "triangles per vertex" not in [row.stage for row in context.metrics.rows()]


@pytest.mark.gpu
def test_motifs_of_a_graph_that_the_device_holds_in_part(lab: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = motifs("motif-counting", 4, GRAPHS["rmat"]())
    expected = plan.counts(lab.context(GRAPHS["rmat"]()))
    counted = []
    plain = count_by_triangles
    monkeypatch.setattr(
        "longwall.pipeline.planning.methods.from_triangles.count_by_triangles",
        lambda *given: counted.append(plain(*given)) or counted[-1],
    )
    context = lab.context(GRAPHS["rmat"](), engine="cuda", device=1 << 20, memory={"access": "adaptive"})
    assert plan.counts(context) == expected
    assert [number is not None for number in counted].count(True) == 2
