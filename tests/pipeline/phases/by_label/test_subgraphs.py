"""Counts of distinct subgraphs of patterns with and without labels, against brute force."""

from __future__ import annotations

import json
import random
from itertools import combinations
from typing import Any

import naive
import networkx as nx
import pytest
from selection import on_device

import longwall
from longwall.pipeline.patterns import placements
from longwall.storage.errors import InputError

Edge = tuple[int, int]
CASES, ON_GPU = 100, on_device(6, 1)
REPORTED = [("(a:0)-(b)", 50, 80), ("(a:0)-(b)-(c)-(a)", 32, 82), ("(a:0)-(b:0)-(c)-(a)", 27, 73)]


@pytest.fixture(scope="module")
def karate() -> longwall.Graph:
    club = nx.karate_club_graph()
    return longwall.graph(club, labels={v: int(v >= 17) for v in club})


def draw_pattern(draw: random.Random, size: int) -> list[Edge]:
    """A tree or a cycle, which have many automorphisms, with further edges or none."""
    pairs = list(combinations(range(size), 2))
    shape = draw.randrange(4)
    edges = {(draw.randrange(v), v) for v in range(1, size)} if shape else {(v - 1, v) for v in range(1, size)}
    if shape == 1:
        edges = {(0, v) for v in range(1, size)}
    return sorted(edges | {pair for pair in pairs if draw.random() < draw.choice((0, 0, 0.3, 1))})


def text_of(edges: list[Edge], labels: list[int], kinds: list[int | None]) -> str:
    vertices = [f"(v{v})" if label < 0 else f"(v{v}:{label})" for v, label in enumerate(labels)]
    edge_texts = ["-" if kind is None else f"-[:{kind}]-" for kind in kinds]
    return ", ".join(vertices[u] + kind + vertices[v] for (u, v), kind in zip(edges, edge_texts, strict=True))


def check(seed: int, sizes: tuple[int, ...], **options: Any) -> bool:
    """Count a random case in all three ways; return whether they differ."""
    draw = random.Random(seed)
    size = draw.choice(sizes)
    edges = draw_pattern(draw, size)
    labels = [draw.choice((-1, -1, 0, 1)) for _ in range(size)]
    wanted = [draw.choice((None, None, 0, 1)) if seed % 2 else None for _ in edges]
    data = nx.gnp_random_graph(draw.randint(size, 10 if size < 6 else 8), draw.choice((0.3, 0.5, 0.9)), seed=seed)
    data.add_edges_from([(0, 1), (1, 2)])
    of_vertices = {v: draw.randrange(2) for v in data}
    of_edges = {frozenset(edge): draw.randrange(2) for edge in data.edges}
    nx.set_edge_attributes(data, {edge: of_edges[frozenset(edge)] for edge in data.edges}, "kind")
    induced = draw.random() < 0.4
    query = naive.Query(size, tuple(edges), tuple(labels), induced)
    right = naive.count_subgraphs(data.edges, query, of_vertices, of_edges, wanted)
    kinds = {"edge_labels": "kind"} if seed % 2 else {}
    graph = longwall.graph(data, labels=of_vertices, **kinds)
    text = text_of(edges, labels, wanted)
    found = longwall.count(graph, text, induced=induced, count="subgraphs", **options)
    assert found == right, (seed, text, induced)
    embeddings = longwall.count(graph, text, induced=induced, **options)
    note = 'count = "subgraphs"' in str(longwall.explain(graph, text, induced=induced, **options))
    assert note or embeddings == found, (seed, text, induced)
    limit = max(found // 2, 1)
    limited = longwall.count(graph, text, induced=induced, count="subgraphs", limit=limit, **options)
    assert limited == min(limit, found), (seed, text, induced, limit)
    return embeddings != found


@pytest.mark.slow
def test_random_patterns_by_brute_force(engine_kind: str, tmp_path: Any) -> None:
    cases = CASES if engine_kind == "cpu" else ON_GPU
    differ = sum(check(seed, (2, 3, 4, 5, 6), engine=engine_kind, spill=tmp_path) for seed in range(cases))
    assert engine_kind == "cuda" or differ > cases // 8


def test_the_first_patterns_by_brute_force(tmp_path: Any) -> None:
    assert sum(check(seed, (2, 3, 4), engine="cpu", spill=tmp_path) for seed in range(6))


@pytest.mark.parametrize(("text", "subgraphs", "embeddings"), REPORTED)
def test_a_subgraph_counts_once(karate: longwall.Graph, text: str, subgraphs: int, embeddings: int) -> None:
    assert longwall.count(karate, text, count="subgraphs", engine="cpu") == subgraphs
    assert longwall.count(karate, text, engine="cpu") == embeddings


@pytest.mark.slow
def test_long_queries(tmp_path: Any) -> None:
    """Queries of nine vertices and more are counted by their candidates."""
    data = nx.gnp_random_graph(11, 0.3, seed=4)
    labels = {v: v % 2 for v in data}
    edges = [(v, v + 1) for v in range(8)]
    query = naive.Query(9, tuple(edges), (0, *[-1] * 8))
    graph = longwall.graph(data, labels=labels)
    text = text_of(edges, list(query.labels or ()), [None] * 8)
    right = naive.count_subgraphs(data.edges, query, labels)
    assert 0 < right < longwall.count(graph, text, engine="cpu", spill=tmp_path)
    assert longwall.count(graph, text, count="subgraphs", engine="cpu", spill=tmp_path) == right


def test_several_patterns(karate: longwall.Graph) -> None:
    texts = [*(text for text, _, _ in REPORTED), "triangle"]
    found = longwall.count(karate, texts, count="subgraphs", engine="cpu")
    assert found == [*(subgraphs for _, subgraphs, _ in REPORTED), 45]
    shown = str(longwall.explain(karate, {"kind": "match", "pattern": texts}, engine="cpu"))
    assert f"embeddings   of {', '.join(repr(text) for text, _, _ in REPORTED)} can be more" in shown


@pytest.mark.parametrize("join", ["vertices", "edges"])
def test_the_run_keeps_the_terms(karate: longwall.Graph, join: str, tmp_path: Any) -> None:
    workload = {"kind": "match", "pattern": REPORTED[1][0], "count": "subgraphs", "join": join}
    run = {"directory": tmp_path / "runs", "name": "one"}
    sections = {"engine": {"kind": "cpu"}, "memory": {"spill": tmp_path / "spill"}, "run": run}
    result = longwall.run({"graph": karate, "workload": workload} | sections)
    assert (result.count, result.table("counts")["labels"].to_pylist()) == (32, [[0, None, None]])
    plan = json.loads((result.path / "manifest.json").read_text())["plan"]
    terms = {tuple(one["plan"]["labels"]): one["coefficient"] for one in plan["terms"]}
    assert sorted((sorted(labels), sign) for labels, sign in terms.items()) == [
        ([-1, -1, 0], 1),
        ([-1, 0, 0], -1),
        ([0, 0, 0], 1),
    ]


@pytest.mark.parametrize("text", ["(a:0)-(b:1)-(c)", "(a:0)-(b)-(c:1)", "(a:0)-(b:0)-(c:0)-(a)", "triangle"])
def test_the_plan_is_that_of_embeddings_where_both_are_the_same(karate: longwall.Graph, text: str) -> None:
    counted, subgraphs = (str(longwall.explain(karate, text, count=one)) for one in ("embeddings", "subgraphs"))
    assert ('count = "subgraphs"' in counted) == (text == "(a:0)-(b:1)-(c)") == ("distinct subgraphs" in subgraphs)
    if text != "(a:0)-(b:1)-(c)":
        assert longwall.count(karate, text, count="subgraphs") == longwall.count(karate, text)


@pytest.mark.slow
def test_too_many_terms_are_refused(karate: longwall.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    star = "(a:0)-(b), (b)-(c), (b)-(d), (b)-(e)"
    wanted = longwall.count(karate, star, count="subgraphs", engine="cpu")
    for limit, few in (("_MOST_TERMS", 3), ("_MOST_UNIONS", 5), ("_MOST_IMAGES", 20)):
        placements.subgraph_terms.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(placements, limit, few)
            with pytest.raises(
                InputError, match=r"^pattern: the labels of .* fit one subgraph in too many ways .*: label"
            ):
                longwall.count(karate, star, count="subgraphs", engine="cpu")
    assert longwall.count(karate, star, count="subgraphs", engine="cpu") == wanted


@pytest.mark.parametrize("count", ["subgraphs", "mappings"])
def test_rows_are_embeddings(karate: longwall.Graph, count: str) -> None:
    with pytest.raises(InputError, match=f'embeddings are written once each; use output = "count" to count {count}'):
        longwall.explain(karate, "(a:0)-(b)", rows=True, count=count)


def test_counts_without_labels_are_of_subgraphs(karate: longwall.Graph) -> None:
    shown = str(longwall.explain(karate, {"kind": "triangles", "count": "subgraphs"}, engine="cpu"))
    assert "clique bitmaps" in shown
    table = longwall.count(karate, "triangle", count="subgraphs", per="edge", engine="cpu")
    assert sum(table["triangles"].to_pylist()) == 3 * 45
