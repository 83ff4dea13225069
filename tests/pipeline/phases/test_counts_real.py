"""Published counts on real graphs: cliques, small patterns, motifs, and 200 labelled 16-vertex queries."""

import gzip
import json
import re
import tarfile
from collections import Counter
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import naive
import pytest
from plans import plan_count
from real import load, queries

from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import Pattern, make_pattern
from longwall.pipeline.patterns.symmetry import automorphism_count, isomorphic
from longwall.pipeline.phases import search_count
from longwall.pipeline.phases.range_count import RangeCount
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.stages.cliques.leaves import CountCliqueSizes
from longwall.storage.graph.graph import Graph

SMALL = ("citeseer", "cora", "yeast", "hprd", "ca-GrQc", "ca-HepTh", "p2p-Gnutella04", "socfb-Reed98")
LARGE = (
    "ca-CondMat",
    "ca-AstroPh",
    "wiki-Vote",
    "soc-epinions-NR",
    "socfb-Amherst41",
    "socfb-JohnsHopkins55",
    "twitch-FR",
    "web-indochina-2004-NR",
    "web-spam-NR",
)
ALL = (*SMALL[:4], *(pytest.param(name, marks=pytest.mark.slow) for name in (*SMALL[4:], *LARGE)))


@pytest.fixture(scope="session")
def graph(data):
    """Load a graph, once; with its labels on request."""
    return lambda name, labels=None: load(data, name, labels)


@pytest.fixture(scope="session")
def truth(data) -> dict:
    return json.loads((data / "truth" / "counts.json").read_text())


@pytest.fixture(scope="session")
def count(lab, engine_kind):
    def by_plan(graph: Graph, pattern: Pattern, induced: bool = False, how: str = "chosen") -> int:
        context = lab.context(graph, engine=engine_kind, threads=2, host=2 << 30)
        if how == "search":
            return search_count.count_matches(plan_match(pattern, graph.stats, induced=induced), context)
        return plan_count(pattern, graph, induced=induced).count(context)

    return by_plan


@pytest.mark.parametrize("name", ALL)
def test_the_graphs_are_read_whole(graph, truth, name):
    stats = graph(name).stats
    want = truth[name]
    assert (stats.num_vertices, stats.num_edges, stats.max_degree) == (
        want["vertices"],
        want["edges"],
        want["max_degree"],
    )


@pytest.mark.parametrize("name", ALL)
def test_cliques(graph, truth, count, name):
    limit = 8 if name in SMALL else 5
    want = {int(k): n for k, n in truth[name]["cliques"].items() if int(k) <= limit}
    assert len(want) >= 3
    assert {k: count(graph(name), parse_pattern(f"clique-{k}")) for k in want} == want


@pytest.mark.quick_cases(6)
@pytest.mark.real_gpu("real graphs take minutes")
@pytest.mark.parametrize("name", [*SMALL, *LARGE])
def test_cliques_of_every_size(lab, engine_kind, graph, truth, name):
    context = lab.context(graph(name), engine=engine_kind, threads=2, host=2 << 30)
    sizes = RangeCount(CountCliqueSizes(), 1e8).run(context)
    want = {int(k): n for k, n in truth[name]["cliques"].items() if n}
    assert {k: n for k, n in enumerate(sizes) if 3 <= k <= 8} == want
    assert len(sizes) - 1 == truth[name]["maximal_cliques"]["largest"]
    largest = truth[name]["maximal_cliques"].get("by_size", {}).get(str(len(sizes) - 1))
    assert largest in (None, sizes[-1])


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "largest"), [(name, 6 if name.startswith("socfb") or name == "ca-AstroPh" else 8) for name in LARGE]
)
def test_larger_cliques_of_larger_graphs(graph, truth, count, name, largest):
    want = {int(k): n for k, n in truth[name]["cliques"].items() if 5 < int(k) <= largest}
    assert want
    assert {k: count(graph(name), parse_pattern(f"clique-{k}")) for k in want} == want


@pytest.mark.quick_cases(4)
@pytest.mark.real_gpu("real graphs take minutes")
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("matching", ["non_induced", "induced"])
def test_small_patterns(graph, truth, count, name, matching):
    want = truth[name][matching]
    assert len(want) >= 8
    found = {pattern: count(graph(name), parse_pattern(pattern), induced=matching == "induced") for pattern in want}
    assert found == want


@pytest.mark.quick_cases(1)
@pytest.mark.real_gpu("real graphs take minutes")
@pytest.mark.parametrize("name", ["citeseer", "socfb-Reed98", "ca-GrQc"])
@pytest.mark.parametrize("matching", ["non_induced", "induced"])
def test_small_patterns_by_search(graph, truth, count, name, matching):
    want = truth[name][matching]
    found = {pattern: count(graph(name), parse_pattern(pattern), matching == "induced", "search") for pattern in want}
    assert found == want


@pytest.mark.long
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("matching", ["non_induced", "induced"])
def test_small_patterns_of_larger_graphs_by_search(graph, truth, count, name, matching):
    want = {pattern: n for pattern, n in truth[name][matching].items() if matching == "non_induced" or n < 10**8}
    found = {pattern: count(graph(name), parse_pattern(pattern), matching == "induced", "search") for pattern in want}
    assert found == want


def _motifs(path: Path) -> list[tuple[naive.Query, int]]:
    """Read lines such as ``[2-3][1-2][1-4](3~4) 111153``; vertices are numbered from 1."""
    rows = []
    for line in path.read_text().splitlines():
        if not line.strip():
            continue
        text, number = line.split()
        edges = [(int(u) - 1, int(v) - 1) for u, v in re.findall(r"\[(\d+)-(\d+)\]", text)]
        apart = [(int(u) - 1, int(v) - 1) for u, v in re.findall(r"\((\d+)~(\d+)\)", text)]
        size = 1 + max(v for edge in edges for v in edge)
        if apart:
            assert len(edges) + len(apart) == size * (size - 1) // 2
        rows.append((naive.Query(size, tuple(sorted((min(e), max(e)) for e in edges))), int(number)))
    return rows


def _check_motifs(data, graph, count, file, number, how="chosen"):
    rows = _motifs(data / "truth" / file)
    assert len(rows) == number
    induced = not file.endswith("-edge.txt")
    citeseer = graph("citeseer")
    for query, want in rows:
        assert count(citeseer, make_pattern(query.edges), induced, how) == want, query


@pytest.mark.quick_cases(1)
@pytest.mark.real_gpu("real graphs take minutes")
@pytest.mark.parametrize(
    ("file", "number"),
    [
        ("citeseer-motifs-4m.txt", 6),
        ("citeseer-motifs-4m-edge.txt", 6),
        ("citeseer-motifs-5m.txt", 21),
        ("citeseer-motifs-5m-edge.txt", 21),
    ],
)
@pytest.mark.parametrize("how", ["chosen", "search"])
def test_published_motifs_of_citeseer(data, graph, count, file, number, how):
    _check_motifs(data, graph, count, file, number, how)


@pytest.mark.long
@pytest.mark.parametrize("file", ["citeseer-motifs-6m.txt", "citeseer-motifs-6m-edge.txt"])
@pytest.mark.parametrize("how", ["chosen", "search"])
def test_published_motifs_of_citeseer_with_six_vertices(data, graph, count, file, how):
    _check_motifs(data, graph, count, file, 112, how)


def _labelled_truth(data: Path, k: int) -> Counter[int]:
    for line in (data / "truth" / "citeseer-motifs-labelled.txt").read_text().splitlines():
        name, size, number, *counts = line.split()
        if name == "citeseer" and int(size) == k:
            assert len(counts) == int(number)
            return Counter(map(int, counts))
    raise AssertionError(f"no row for {k}")


def _labelled_patterns(k: int, labels: list[int]) -> list[Pattern]:
    """Every connected pattern of k vertices with every labelling, up to isomorphism."""
    found = []
    for query in naive.connected_patterns(k):
        group = naive.automorphisms(query)
        for chosen in product(labels, repeat=k):
            if chosen == min(tuple(chosen[v] for v in image) for image in group):
                found.append(make_pattern(query.edges, chosen))
    return found


def _check_labelled_motifs(data, graph, count, k):
    citeseer = graph("citeseer", "citeseer")
    labels = sorted(citeseer.stats.label_counts)
    counts = [count(citeseer, pattern, induced=True) for pattern in _labelled_patterns(k, labels)]
    assert Counter(n for n in counts if n) == _labelled_truth(data, k)


@pytest.mark.slow
@pytest.mark.real_gpu("real graphs take minutes")
@pytest.mark.parametrize("k", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_published_labelled_motifs_of_citeseer(data, graph, count, k):
    _check_labelled_motifs(data, graph, count, k)


@pytest.mark.long
def test_published_labelled_motifs_of_citeseer_with_four_vertices(data, graph, count):
    _check_labelled_motifs(data, graph, count, 4)


@pytest.mark.slow
@pytest.mark.real_gpu("real graphs take minutes")
def test_published_motifs_of_citeseer_with_a_single_label(data, graph, count):
    """The rows that count every vertex as labelled alike, in whatever order, with one label for all."""
    rows = [
        line.split()
        for line in (data / "truth" / "citeseer-motifs-labelled.txt").read_text().splitlines()
        if line.startswith("citeseer-single-label ")
    ]
    assert len(rows) == 4
    citeseer = graph("citeseer")
    single = replace(citeseer, labels=citeseer.split.astype("int32") * 0)
    for _, k, number, *counts in rows:
        found = [count(single, make_pattern(q.edges, [0] * q.size), True) for q in naive.connected_patterns(int(k))]
        assert len(found) == int(number)
        assert Counter(found) == Counter(map(int, counts))


def _check_queries(graph, count, queries):
    hprd = graph("hprd", "hprd")
    wrong = []
    for name, pattern, want in queries:
        if (found := count(hprd, pattern) * automorphism_count(pattern)) != want:
            wrong.append((name, found, want))
    assert not wrong


@pytest.mark.real_gpu("real graphs take minutes")
def test_published_queries_on_hprd(data, graph, count):
    _check_queries(graph, count, queries(data)[::32])


@pytest.mark.long
def test_all_published_queries_on_hprd(data, graph, count):
    _check_queries(graph, count, queries(data))


def test_a_query_file_of_the_field_is_read_as_it_is(data, graph, count, tmp_path):
    with tarfile.open(data / "matching" / "hprd-queries.tar.gz") as archive:
        member = next(m for m in archive.getmembers() if Path(m.name).stem == "query_dense_16_1")
        archive.extract(member, tmp_path, filter="data")
    pattern = parse_pattern(str(tmp_path / member.name))
    name, same, _ = next(item for item in queries(data) if item[0] == "query_dense_16_1")
    assert name
    assert (pattern.edges, pattern.labels) == (same.edges, same.labels)


def test_triangles_of_a_real_graph_against_the_naive_loop(data, graph, count):
    with gzip.open(data / "graphs" / "cora.edges.gz", "rt") as file:
        edges = [tuple(map(int, line.split())) for line in file]
    assert count(graph("cora"), parse_pattern("triangle")) * 3 == sum(naive.triangles_per_vertex(edges).values())


def test_the_truth_names_the_patterns_that_we_name(data):
    """`diamond`, `house` and so on: the published pattern lists and our names mean the same shapes."""
    for file, names in (
        ("citeseer-motifs-4m.txt", ["path-4", "star-3", "tailed-triangle", "cycle-4", "diamond", "clique-4"]),
    ):
        for (query, _), name in zip(_motifs(data / "truth" / file), names, strict=True):
            assert isomorphic(make_pattern(query.edges), parse_pattern(name)), name
    assert parse_pattern("clique-5").edges == tuple(combinations(range(5), 2))
