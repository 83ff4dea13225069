"""Counts of every edge in runs, against brute force, igraph and networkx; small budgets, messages, interruptions."""

from __future__ import annotations

import re
from typing import Any

import igraph
import naive
import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
from cases import each_case
from explained import explain
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from motif_counts import mine
from strategies import graphs

import longwall
from longwall.pipeline.config import load_config
from longwall.pipeline.execution.engine_errors import user_errors
from longwall.pipeline.planning.methods import counts_of_edges
from longwall.pipeline.run_store import commit_log
from longwall.storage.errors import InputError, RunError
from longwall.storage.generators.kinds import generate
from longwall.storage.memory.sizes import parse_size
from longwall.storage.observer import NullObserver

SECTIONS: dict[str, dict[str, Any]] = {
    "triangle": {"kind": "triangles"},
    "clique-4": {"kind": "cliques", "k": 4},
    "cycle-4": {"kind": "match", "pattern": "(a)-(b)-(c)-(d)-(a)"},
}
COLUMN = {"triangle": "triangles", "clique-4": "cliques", "cycle-4": "cycles"}
EDGES = {"triangle": 3, "clique-4": 6, "cycle-4": 4}
shapes = pytest.mark.parametrize("shape", SECTIONS)


def section(shape: str) -> dict[str, Any]:
    return SECTIONS[shape] | {"output": "edges"}


def table_of(context: Any) -> Any:
    return pq.read_table(context.results / "edges.parquet")


def by_edge(table: Any) -> dict[frozenset[int], int]:
    found = {frozenset(row[:2]): row[2] for row in zip(*(column.to_pylist() for column in table.columns), strict=True)}
    assert len(found) == table.num_rows
    return found


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(small=graphs(max_vertices=9), shape=st.sampled_from(list(SECTIONS)))
def test_edges_are_counted_as_brute_force_does(lab, engine_kind, small, shape):
    context = lab.context(lab.graph(small.edges), engine=engine_kind, threads=2, workload=section(shape))
    (found,) = mine(context)
    expected = naive.embeddings_per_edge(small.edges, shape)
    table = table_of(context)
    assert by_edge(table) == expected
    assert table.column_names == ["source", "target", COLUMN[shape]]
    assert table.select([0, 1]) == context.graph.to_arrow().select([0, 1])
    assert found.count * EDGES[shape] == sum(expected.values())


@shapes
def test_sums_are_those_of_other_ways_to_count(lab, engine_kind, shape):
    graph = generate("rmat", seed=4, scale=7, edge_factor=6)
    context = lab.context(graph, engine=engine_kind, workload=section(shape))
    (found,) = mine(context)
    assert found.count == longwall.count(graph, shape, engine="cpu", progress=False)


def test_igraph_and_networkx_agree_on_a_social_network(data):
    path = data / "graphs" / "socfb-Reed98.edges.gz"
    table = longwall.open_graph(path)
    edges = by_edge(table.to_arrow().append_column("none", [np.zeros(table.num_edges, np.int64)]))
    theirs = igraph.Graph.TupleList([tuple(edge) for edge in edges], directed=False)
    near = {v["name"]: set(theirs.vs[theirs.neighbors(v)]["name"]) for v in theirs.vs}
    found = by_edge(longwall.triangles(path, per="edge", progress=False, engine="cpu"))
    assert found == {edge: len(near[min(edge)] & near[max(edge)]) for edge in edges}
    cliques = by_edge(longwall.cliques(path, 4, per="edge", progress=False, engine="cpu"))
    some = nx.Graph([tuple(edge) for edge in edges])
    for edge in list(edges)[::500]:
        common = some.subgraph(near[min(edge)] & near[max(edge)])
        assert cliques[edge] == common.number_of_edges()
    cycles = by_edge(longwall.count(path, "cycle-4", per="edge", progress=False, engine="cpu"))
    for edge in list(edges)[::500]:
        u, v = edge
        assert cycles[edge] == sum(len((near[u] & near[w]) - {v}) for w in near[v] - {u})


@shapes
def test_edges_are_counted_in_pieces_where_memory_is_short(lab, engine_kind, shape, monkeypatch):
    graph = generate("rmat", seed=4, scale=6, edge_factor=4)
    whole = lab.context(graph, engine=engine_kind, workload=section(shape))
    expected = mine(whole)
    monkeypatch.setattr(counts_of_edges, "_HOST_SHARE", whole.resources.host.free // 8 // 40)
    monkeypatch.setattr(counts_of_edges, "_ROWS_AT_ONCE", 7)
    context = lab.context(graph, engine=engine_kind, workload=section(shape))
    assert len(list(counts_of_edges._pieces(context, shape))) > 3
    assert mine(context) == expected
    assert table_of(context) == table_of(whole)
    assert pq.ParquetFile(context.results / "edges.parquet").num_row_groups > 3


@pytest.mark.slow
@shapes
def test_workers_of_a_small_budget_have_room_for_their_counts(lab, shape):
    """Each worker has its share of what those before it have left; a message says how much is enough."""
    graph = generate("rmat", seed=4, scale=10, edge_factor=8)
    rest = lab.context(graph, threads=3, workload=section(shape))
    expected, held = mine(rest), rest.resources.host.used
    done = advised = 0
    for size in range(8_000, 400_000, 24_000):
        context = lab.context(graph, threads=3, host=held + size, workload=section(shape))
        refused = ""
        try:
            with user_errors(context.engine):
                assert mine(context) == expected
            assert context.resources.host.peak <= held + size
            assert table_of(context) == table_of(rest)
            done += 1
        except (InputError, RunError) as error:
            refused = str(error)
        assert "memory.host" in refused or not refused
        for enough in re.findall(r"raise memory\.host to (\w+), or lower engine\.threads", refused):
            assert parse_size(enough) > held + size
            assert mine(lab.context(graph, threads=3, host=parse_size(enough), workload=section(shape))) == expected
            advised += 1
    assert advised
    assert done > 8


def test_loops_and_repeated_edges_do_not_count(tmp_path):
    (tmp_path / "graph.txt").write_text("a b\nb a\nb c\nc c\nc a\na b\nc d\n")
    for name, counts in (("triangle", [0, 1, 1, 1]), ("cycle-4", [0] * 4)):
        table = longwall.count(tmp_path / "graph.txt", name, per="edge", progress=False)
        assert sorted(table.column(2).to_pylist()) == counts
        assert {*table["source"].to_pylist(), *table["target"].to_pylist()} == set("abcd")


class Interrupting(NullObserver):
    """Stops the run after so many finished tasks."""

    def __init__(self, context: Any, tasks: int):
        self._cancel, self._left = context.cancel, tasks

    def advance(self, done: int) -> None:
        self._left -= 1
        if self._left <= 0:
            self._cancel.set()


@shapes
def test_an_interrupted_run_is_resumed_where_it_was(lab, tmp_path, monkeypatch, shape):
    monkeypatch.setattr(commit_log, "COMMIT_SECONDS", 0.0)
    monkeypatch.setattr("longwall.pipeline.execution.thread_executor._COMMITS_COST", float("inf"))
    monkeypatch.setattr("longwall.pipeline.execution.thread_executor._CRASH_COSTS", 0.0)
    monkeypatch.setattr("longwall.pipeline.execution.task_ranges._ARCS_PER_TASK", 1)
    graph = generate("rmat", seed=2, scale=7, edge_factor=4)
    whole = lab.context(graph, workload=section(shape))
    expected, attempts = mine(whole), 0
    while True:
        context = lab.context(graph, folder=tmp_path, workload=section(shape))
        context.observer = Interrupting(context, 30)
        try:
            found = mine(context)
            break
        except KeyboardInterrupt:
            attempts += 1
    assert attempts > 1
    assert found == expected
    assert table_of(context) == table_of(whole)


def test_a_run_without_room_says_so(lab):
    graph = generate("rmat", seed=1, scale=8)
    context = lab.context(graph, host=graph.nbytes + 2_000, workload=section("triangle"))
    with pytest.raises((longwall.InputError, longwall.RunError), match=r"memory\.host"):
        mine(context)


@shapes
def test_explain_says_how_edges_are_counted(shape):
    generator = {"kind": "erdos-renyi", "vertices": 20, "edges": 40, "seed": 1}
    text = explain({"graph": {"generator": generator}, "workload": section(shape), "engine": {"kind": "cpu"}})
    assert f"{COLUMN[shape]} of every edge" in text


@each_case(
    ("workload", "words"),
    [
        ({"kind": "cliques", "k": 5}, "workload.k: counts per edge are given for at most 4 vertices, not 5"),
        (
            {"kind": "match", "pattern": "diamond"},
            "but the pattern is neither a triangle, a 4-clique nor a 4-cycle",
        ),
        ({"kind": "match", "pattern": "triangle", "pattern_labels": [1, 2, 3]}, "but the pattern has labels"),
        (
            {"kind": "match", "pattern": "cycle-4", "induced": True},
            "but the count is induced",
        ),
        (
            {"kind": "match", "pattern": "cycle-4", "count": "mappings"},
            "workload.count: counts per edge are",
        ),
        ({"kind": "match", "pattern": "cycle-4", "join": "edges"}, "but the search extends by edges; use"),
        (
            {"kind": "match", "pattern": "path-4", "join": "edges"},
            "but the search extends by edges, and the pattern is neither a triangle, a 4-clique nor a 4-cycle; use",
        ),
        ({"kind": "motifs", "k": 4}, 'workload.output: motifs has no output "edges"'),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_message(workload, words):
    with pytest.raises(InputError) as refusal:
        load_config({"graph": {"path": "unused"}, "workload": workload | {"output": "edges"}})
    assert words in str(refusal.value)
    assert str(refusal.value).count("\n") == 0


def test_functions_name_what_they_can_count_by():
    with pytest.raises(InputError, match=r'^per: expected None, for the number of all, or "edge"$'):
        longwall.count("unused", "triangle", per="vertex")  # type: ignore[call-overload]
