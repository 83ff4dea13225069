"""Motifs: both methods and both engines against brute force, igraph and published counts; orbits; interruptions."""

from __future__ import annotations

import json
import threading
from itertools import combinations, pairwise
from typing import Any

import naive
import numpy as np
import pytest
from cases import each_case
from explained import explain
from hypothesis import given, settings
from hypothesis import strategies as st
from motif_counts import brute_force, by_form, form, mine, pairs_of, per_vertex, published, run
from plans import motifs
from run_configs import run_config
from strategies import graphs

import longwall
from longwall.kernels.host.patterns.orbit_tables import orbits
from longwall.kernels.host.patterns.pattern_codes import connected_codes, dictionary, growth, spanning_subgraphs
from longwall.pipeline.config import load_config
from longwall.pipeline.execution.device_graph import load_graph
from longwall.pipeline.execution.task_ranges import root_tasks
from longwall.pipeline.run_store import commit_log
from longwall.stages.motif_counting import CountMotifClasses
from longwall.stages.source import host_arrays
from longwall.storage.errors import FinalError, InputError
from longwall.storage.generators.kinds import generate
from longwall.storage.observer import NullObserver

METHODS = ("enumeration", "counting")


@settings(deadline=None, max_examples=20)
@given(small=graphs(max_vertices=10), k=st.integers(3, 4))
def test_both_methods_count_what_brute_force_counts(lab, small, k):
    graph = lab.graph(small.edges)
    expected = brute_force(small.edges, k)
    for method in METHODS:
        counts = run(lab, graph, k, "cpu", method=method)
        assert {f: n for f, n in by_form(counts, k).items() if n} == expected
        assert len(counts) == len(connected_codes(k))


@settings(deadline=None, max_examples=10)
@given(small=graphs(max_vertices=10), k=st.integers(3, 6))
def test_enumeration_counts_what_brute_force_counts_on_every_engine(lab, engine_kind, small, k):
    counts = run(lab, lab.graph(small.edges), k, engine_kind, method="enumeration")
    assert {f: n for f, n in by_form(counts, k).items() if n} == brute_force(small.edges, k)


@pytest.mark.slow
@pytest.mark.parametrize("k", [7, 8])
def test_large_motifs(lab, engine_kind, k):
    edges = [(u, v) for u, v in combinations(range(10), 2) if (u * 7 + v * 5) % 4 < 2]
    counts = run(lab, lab.graph(edges), k, engine_kind)
    assert {f: n for f, n in by_form(counts, k).items() if n} == brute_force(edges, k)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [3, 4])
def test_counts_are_those_of_igraph(lab, engine_kind, k, method):
    graph = generate("rmat", seed=3, scale=8, edge_factor=6)
    owners = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
    theirs = naive.igraph_motifs([(int(u), int(v)) for u, v in zip(owners, graph.indices, strict=True) if u < v], k)
    for one in run(lab, graph, k, engine_kind, method=method):
        assert one.count == theirs[naive.isomorphism_class(naive.Query(k, pairs_of(one.pattern)))]


@pytest.mark.parametrize("k", [3, 4, 5])
def test_induced_and_non_induced_counts_are_linear_in_each_other(lab, k):
    """The count of every pattern, as anybody would match it, against the motifs and their spanning subgraphs."""
    graph = generate("erdos-renyi", seed=4, vertices=60, edges=300)
    owners = np.repeat(np.arange(60), np.diff(graph.indptr))
    edges = [(int(u), int(v)) for u, v in zip(owners, graph.indices, strict=True) if u < v]
    counts = run(lab, graph, k, "cpu", method="enumeration")
    whole = spanning_subgraphs(k) @ np.array([one.count for one in counts])
    for one, number in list(zip(counts, whole.tolist(), strict=True))[:: 1 if k < 5 else 3]:
        query = naive.Query(k, pairs_of(one.pattern))
        assert number == naive.igraph_count_mappings(edges, query) // len(naive.automorphisms(query))


@pytest.mark.parametrize("k", [3, 4, 5, pytest.param(6, marks=pytest.mark.slow)])
def test_both_methods_list_the_same_patterns_in_the_same_order(lab, k):
    graph = generate("rmat", seed=8, scale=7, edge_factor=4)
    results = [run(lab, graph, k, "cpu", method=method) for method in (*METHODS, "auto")]
    assert results[0] == results[1] == results[2]
    texts = [one.pattern for one in results[0]]
    assert len(set(texts)) == len(texts)
    assert [text.count("-") for text in texts] == sorted(text.count("-") for text in texts)


@pytest.mark.parametrize(("k", "method"), [(3, "counting"), (4, "counting"), (5, "enumeration")])
def test_both_engines_agree(lab, engine_kind, k, method):
    graph = generate("rmat", seed=2, scale=8, edge_factor=4)
    assert run(lab, graph, k, engine_kind, method=method) == run(lab, graph, k, "cpu", method="enumeration")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [4, 5, pytest.param(6, marks=pytest.mark.long)])
def test_published_counts_of_citeseer(lab, data, k, method):
    graph = longwall.open_graph(data / "graphs" / "citeseer.edges.gz")
    counts = run(lab, graph, k, "cpu", method=method)
    assert by_form(counts, k) == published(data, f"citeseer-motifs-{k}m", k)
    whole = spanning_subgraphs(k) @ np.array([one.count for one in counts])
    by_pattern = {form(pairs_of(one.pattern), k): n for one, n in zip(counts, whole.tolist(), strict=True)}
    assert by_pattern == published(data, f"citeseer-motifs-{k}m-edge", k)


NAMES = {"path-4": 4, "star-3": 4, "cycle-4": 4, "tailed-triangle": 4, "diamond": 4, "clique-4": 4, "wedge": 3}
REAL = ("ca-GrQc", "yeast", pytest.param("ca-AstroPh", marks=pytest.mark.long))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", REAL)
def test_published_counts_of_real_graphs(lab, data, name, method):
    from longwall.pipeline.patterns.parse import parse_pattern

    truth = json.loads((data / "truth" / "counts.json").read_text())[name]["induced"]
    graph = longwall.open_graph(data / "graphs" / f"{name}.edges.gz")
    for k in (3, 4):
        found = by_form(run(lab, graph, k, "cpu", method=method), k)
        known = [pattern for pattern, size in NAMES.items() if size == k and pattern in truth]
        assert known
        for pattern in known:
            assert found[form(parse_pattern(pattern).edges, k)] == truth[pattern]


def rows(folder: Any) -> list[dict[str, int]]:
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "vertices.parquet")
    assert all(str(kind) == "int64" for kind in table.schema.types)
    found: list[dict[str, int]] = table.to_pylist()
    return found


def test_the_orbits_table_of_a_run(tmp_path):
    (tmp_path / "graph.txt").write_text("10 20\n20 30\n30 10\n30 40\n")
    config = {"graph": {"path": str(tmp_path / "graph.txt")}, "workload": per_vertex(4), "engine": {"kind": "cpu"}}
    result = longwall.run(config | {"run": {"directory": str(tmp_path), "name": "run"}})
    table = {row["vertex"]: row for row in result.table("vertices").to_pylist()}
    assert table[40] == {"vertex": 40} | {f"orbit_{i}": n for i, n in enumerate([1, 2, *[0] * 7, 1, *[0] * 5])}
    assert table[30]["orbit_11"] == table[10]["orbit_10"] == 1
    assert {one.pattern: one.count for one in result.patterns if one.count} == {"0-1,0-2,0-3,1-2": 1}


@pytest.mark.gpu
@pytest.mark.parametrize("k", [3, 4, 5, 6])
@pytest.mark.parametrize("warps", [1, 4])
def test_blocks_help_each_other_and_cover_every_range(lab, engine_kind, k, warps, monkeypatch):
    """However the arcs are cut, however many blocks of however many warps there are, and however small chunks are."""
    from longwall.kernels import select_engine

    if engine_kind == "cpu":
        pytest.skip("there are no blocks")
    monkeypatch.setattr("longwall.kernels.cuda.local_counts.motifs._WARPS", warps)
    monkeypatch.setattr("longwall.kernels.cuda.local_counts.motifs._MOST_WARPS", warps)
    monkeypatch.setattr("longwall.kernels.cuda.local_counts.motifs._CHUNK", 1)
    monkeypatch.setattr("longwall.kernels.cuda.local_counts.motifs._LAST_CHUNK", 33)
    graph = host_arrays(generate("rmat", seed=5, scale=6, edge_factor=4 if k < 6 else 3))
    book, plenty, found = dictionary(k - 1), 1 << 28, []
    for kind, cuts in (("cpu", 1), ("cuda", 1), ("cuda", 3)):
        engine = select_engine(kind, 1)
        counter = engine.kernels.motif_counter(
            engine.device, engine.load(graph), k, book.entries, len(book.codes), plenty
        )
        ends = np.linspace(0, graph.num_arcs, cuts + 1).astype(int).tolist()
        for first, last in pairwise(ends):
            counter.add(first, last)
        found.append(counter.counts())
        if k < 5:
            vertices = engine.kernels.orbit_counter(engine.device, engine.load(graph), k, orbits(k).table, plenty)
            vertices.add(0, graph.num_arcs)
            found[-1] = np.concatenate([found[-1].reshape(-1), vertices.counts().reshape(-1)])
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


@pytest.mark.gpu
@pytest.mark.parametrize("k", [6, 7, 8])
def test_busy_blocks_donate_sets_to_idle_ones(lab, engine_kind, k, monkeypatch):
    """Even if all sets begin with one arc, and each time that a range is counted."""
    from longwall.kernels import select_engine
    from longwall.kernels.cuda.runtime.constants import MOTIF_SLOT_WORDS

    if engine_kind == "cpu":
        pytest.skip("there are no blocks")
    monkeypatch.setattr("longwall.kernels.cuda.local_counts.motifs._FIRST_CHUNK", 1 << 10)
    star = [(0, leaf) for leaf in range(1, 12)] + [(1, 2), (2, 3), (3, 4), (11, 12), (12, 13), (13, 14)]
    graph, book = host_arrays(lab.graph(star)), dictionary(k - 1)
    owner = int(np.argmax(np.diff(graph.indptr)))
    ranges = [(int(graph.indptr[owner]) + at, int(graph.indptr[owner]) + at + 1) for at in (0, 0, 1)]
    found, slots = [], np.empty(0)
    for kind in ("cpu", "cuda"):
        engine = select_engine(kind, 1)
        counter = engine.kernels.motif_counter(
            engine.device, engine.load(graph), k, book.entries, len(book.codes), 1 << 28
        )
        for first, last in ranges:
            counter.add(first, last)
        found.append(counter.counts())
        if kind == "cuda":
            slots = counter._slots.get().reshape(-1, MOTIF_SLOT_WORDS)
    assert found[0].any()
    np.testing.assert_array_equal(found[1], found[0])
    members = slots[:, 3 : 3 + k - 3]
    assert np.count_nonzero(members.any(axis=1)) > 1, "no set was donated"


@pytest.mark.gpu
def test_large_motifs_are_several_tasks(lab, engine_kind):
    """Steps of large motifs are underestimated around hubs, and a task that is cut short is lost."""
    if engine_kind == "cpu":
        pytest.skip("threads have tasks in any case")
    context = lab.context(generate("rmat", seed=5, scale=8, edge_factor=4), engine=engine_kind)
    load_graph(context)
    numbers = [len(root_tasks(context, CountMotifClasses(k).source, 2e10)) for k in (5, 6, 8)]
    assert numbers[0] == 1
    assert min(numbers[1:]) >= 20


@pytest.mark.gpu
@pytest.mark.parametrize("access", ["adaptive", "zero-copy"])
def test_graphs_in_pages_are_counted(lab, engine_kind, access):
    if engine_kind == "cpu":
        pytest.skip("the graph is never in pages")
    graph = generate("rmat", seed=5, scale=8, edge_factor=4)
    context = lab.context(
        graph, engine=engine_kind, workload={"kind": "motifs", "k": 4}, memory={"access": access, "device": "64MiB"}
    )
    assert motifs("motif-enumeration", 4, graph).counts(context) == [one.count for one in run(lab, graph, 4, "cpu")]


class Interrupting(NullObserver):
    """Stops the run after so many finished tasks."""

    def __init__(self, context: Any, tasks: int):
        self._cancel, self._left, self._lock = context.cancel, tasks, threading.Lock()

    def advance(self, done: int) -> None:
        with self._lock:
            self._left -= 1
            if self._left <= 0:
                self._cancel.set()


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("workload", [{"method": "enumeration"}, {"method": "counting"}, {"output": "vertices"}])
def test_an_interrupted_run_is_resumed_where_it_was(lab, tmp_path, monkeypatch, workload):
    monkeypatch.setattr(commit_log, "COMMIT_SECONDS", 0.0)
    monkeypatch.setattr("longwall.pipeline.execution.thread_executor._COMMITS_COST", float("inf"))
    monkeypatch.setattr("longwall.pipeline.execution.thread_executor._CRASH_COSTS", 0.0)
    monkeypatch.setattr("longwall.pipeline.execution.task_ranges._ARCS_PER_TASK", 1)
    graph = generate("rmat", seed=2, scale=8, edge_factor=4)
    section = {"kind": "motifs", "k": 4, **workload}
    whole = lab.context(graph, workload=section)
    expected = mine(whole)
    attempts, commits = 0, tmp_path / "checkpoint" / "commits"
    while True:
        context = lab.context(graph, folder=tmp_path, workload=section)
        context.observer = Interrupting(context, 60)
        before = set(commits.glob("*"))
        try:
            found = mine(context)
            break
        except KeyboardInterrupt:
            attempts += 1
            assert set(commits.iterdir()) > before
    assert attempts > 1
    assert found == expected
    if "output" in workload:
        assert rows(context.results) == rows(whole.results)


@pytest.mark.parametrize(
    "make", [lambda graph: motifs("motif-enumeration", 7, graph), lambda graph: motifs("motif-counting", 5, graph)]
)
def test_plans_are_printed_and_put_into_the_manifest(make):
    graph = generate("rmat", seed=1, scale=7)
    plan = make(graph)
    assert json.loads(json.dumps(plan.to_dict()))["k"] == plan.k
    text = plan.describe()
    assert f"{len(connected_codes(plan.k)):,} connected patterns" in text
    assert "estimate" in text


def test_the_cheaper_method_is_chosen():
    graph = generate("rmat", seed=1, scale=12, edge_factor=16)
    plans = {k: load_config(config(k)).workload.plan(graph).to_dict()["kind"] for k in (3, 4, 5, 7)}
    assert plans == {3: "motif enumeration", 4: "motif counting", 5: "motif counting", 7: "motif enumeration"}


def test_explain_prints_the_plan():
    for k, words in ((4, "enumeration"), (5, "homomorphism counts")):
        text = explain(config(k, method="enumeration" if k == 4 else "counting"))
        assert words in text
    assert "orbits       0 to 14" in explain(config(4, output="vertices"))


def config(k: int, **workload: Any) -> dict[str, Any]:
    generator = {"kind": "erdos-renyi", "vertices": 20, "edges": 40, "seed": 1}
    return run_config(None, {"generator": generator}, {"kind": "motifs", "k": k, **workload})


@each_case(
    ("section", "words"),
    [
        ({"k": 2}, "workload.k: must be at least 3"),
        ({"k": 9}, "workload.k: must be at most 8, not 9"),
        ({}, "workload.k: missing; motifs needs it"),
        ({"k": 6, "output": "vertices"}, "workload.k: counts per vertex are given for at most 5 vertices, not 6"),
        ({"k": 7, "method": "counting"}, 'workload.method: "counting" is for at most 6 vertices'),
        (
            {"k": 4, "output": "vertices", "method": "counting"},
            "workload.method: counts per vertex for 4 vertices are taken by enumeration",
        ),
        (
            {"k": 5, "output": "vertices", "method": "enumeration"},
            "workload.method: counts per vertex for 5 vertices are taken by counting",
        ),
        (
            {"k": 4, "output": "embeddings"},
            'workload.output: motifs has no output "embeddings"; choose one of count',
        ),
        ({"k": 4, "method": "guessing"}, 'workload.method: motifs has no method "guessing"'),
        ({"k": 4, "induced": True}, "workload.induced: motifs has no use for it"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_message(section, words):
    with pytest.raises(InputError) as refusal:
        load_config({"graph": {"path": "unused"}, "workload": {"kind": "motifs", **section}})
    assert words in str(refusal.value)
    assert str(refusal.value).count("\n") == 0


def test_other_workloads_have_no_method():
    with pytest.raises(InputError, match=r"workload.method: cliques has no use for it \(only motifs\)"):
        load_config({"graph": {"path": "unused"}, "workload": {"kind": "cliques", "k": 4, "method": "counting"}})


def test_counts_that_fit_no_integer_are_refused(lab, engine_kind, monkeypatch):
    star = lab.graph([(0, i) for i in range(1, 2001)])
    monkeypatch.setattr("longwall.stages.motif_counting._EXACT_BELOW", 2.0**20)
    with pytest.raises(FinalError, match="do not fit 64-bit integers"):
        run(lab, star, 3, engine_kind, method="enumeration")


def test_counters_refuse_what_their_integers_cannot_hold(lab, monkeypatch):
    monkeypatch.setattr("longwall.kernels.cpu.local_counts.motifs._EXACT_BELOW", 2.0**20)
    star = lab.graph([(0, i) for i in range(1, 2001)])
    for workload in ({"method": "enumeration"}, {"output": "vertices"}):
        with pytest.raises(FinalError, match="do not fit 64-bit integers"):
            run(lab, star, 3, "cpu", **workload)


def test_a_worker_without_room_says_so(lab):
    graph = generate("rmat", seed=1, scale=8)
    context = lab.context(graph, host=graph.nbytes + 40_000)
    with pytest.raises((InputError, longwall.RunError), match=r"memory\.host"):
        motifs("motif-enumeration", 6, graph).counts(context)


def test_orbit_plans_name_their_orbits():
    graph = generate("rmat", seed=1, scale=7)
    assert "0 to 3," in motifs("orbit-enumeration", 3, graph).describe()
    assert motifs("orbit-enumeration", 4, graph).to_dict()["kind"] == "graphlet orbits"
    assert growth(3).ways.tolist() == [3, 2, 3, 4, 4, 4]
