"""Published counts on real graphs, wherever the GPU finds the graph, however little of it the device's budget holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import set_page_size
from plans import plan_count
from real import load, queries
from selection import emulated

import longwall
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.symmetry import automorphism_count
from longwall.pipeline.phases import search_count
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.storage.graph.graph import Graph

PAGE = 4096
LEAST = 1_400_000  # bytes: a ring of tasks and a thousand rows want a place, whatever the graph
ACCESS = ["adaptive", "zero-copy", "managed"]
SHARES = [0.01, 0.25, 1.0]
SMALL = ["citeseer", "yeast"]


def large(*names: str, marks: Any = ()) -> list[Any]:
    there = pytest.mark.real_gpu("a graph of this size takes minutes")
    return [pytest.param(name, marks=[there, *marks]) for name in names]


DENSE = ("ca-AstroPh", "wiki-Vote")  # to search them takes minutes on a GPU that other processes use
SPARSE = ("soc-epinions-NR", "web-spam-NR", "socfb-Reed98")


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    set_page_size(monkeypatch, PAGE)


@pytest.fixture(scope="module")
def truth(data: Path) -> Any:
    return json.loads((data / "truth" / "counts.json").read_text())


def budget_of(graph: Graph, share: float) -> int:
    return max(int(share * graph.nbytes), LEAST)


def context_of(lab: Any, graph: Graph, access: str, share: float) -> Any:
    device = budget_of(graph, share)
    return lab.context(graph, engine="cuda", host=2 << 30, device=device, memory={"access": access})


@pytest.mark.gpu
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("access", ACCESS)
@pytest.mark.parametrize("name", [*SMALL, *large(*DENSE, *SPARSE)])
def test_cliques(lab: Any, data: Path, truth: Any, name: str, access: str, share: float) -> None:
    graph = load(data, name)
    for k in (3, 4, 5):
        context = context_of(lab, graph, access, share)
        found = plan_count(parse_pattern(f"clique-{k}"), graph).count(context)
        assert found == truth[name]["cliques"][str(k)]
        assert context.device_graph.placement.access == access


@pytest.mark.gpu
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("access", ACCESS)
@pytest.mark.parametrize("name", [*SMALL, *large(*SPARSE), *large(*DENSE, marks=[pytest.mark.long])])
def test_a_search(lab: Any, data: Path, truth: Any, name: str, access: str, share: float) -> None:
    graph = load(data, name)
    context = context_of(lab, graph, access, share)
    found = search_count.count_matches(plan_match(parse_pattern("diamond"), graph.stats, induced=True), context)
    assert found == truth[name]["induced"]["diamond"]


@pytest.mark.gpu
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("access", ACCESS)
def test_labelled_queries(lab: Any, data: Path, access: str, share: float) -> None:
    graph = load(data, "hprd", "hprd")
    context = context_of(lab, graph, access, share)
    for _, pattern, expected in queries(data)[: 1 if emulated() else 60 : 12]:
        plan = plan_match(pattern, graph.stats, induced=False)
        assert search_count.count_matches(plan, context) * automorphism_count(pattern) == expected


@pytest.mark.gpu
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("access", ACCESS)
@pytest.mark.parametrize("name", [*SMALL, *large("web-spam-NR"), *large("soc-epinions-NR", marks=[pytest.mark.long])])
def test_edges_that_share_a_vertex(
    data: Path, truth: Any, tmp_path: Path, name: str, access: Any, share: float
) -> None:
    graph = load(data, name)
    device = budget_of(graph, share)
    edges = longwall.edges(graph, engine="cuda", spill=tmp_path / "spill", device=device, access=access)
    pages = edges.arrays.pages
    assert pages is not None
    assert len(edges) == truth[name]["edges"]
    # Every two edges with a common vertex, from either of them.
    assert len(longwall.extend_edges(edges)) == 2 * truth[name]["non_induced"]["wedge"]
