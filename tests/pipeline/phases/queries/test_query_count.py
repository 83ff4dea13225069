"""Counts of labelled queries by their candidates: on both engines, with little memory, resumed, and on a real graph."""

from __future__ import annotations

import shutil
import tarfile
from math import comb, perm
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow.parquet as pq
import pytest
from explained import explain
from networkx.algorithms.isomorphism import GraphMatcher, categorical_node_match
from plans import plan_count
from run_configs import run_config

import longwall
from longwall.kernels.host.queries import matcher
from longwall.pipeline.execution.thread_executor import ThreadExecutor
from longwall.pipeline.phases.queries import search, sums
from longwall.pipeline.planning.methods import candidates

DATA = nx.gnm_random_graph(70, 330, seed=2)
nx.set_node_attributes(DATA, {vertex: vertex % 4 for vertex in DATA}, "label")


def query(seed: int, size: int = 9) -> nx.Graph:
    """A part of the graph, without some edges."""
    nodes = list(nx.bfs_tree(DATA, seed % 70, depth_limit=2))[:size]
    part = nx.Graph(DATA.subgraph(nodes))
    for edge in list(part.edges)[::3]:
        part.remove_edge(*edge)
        if not nx.is_connected(part):
            part.add_edge(*edge)
    return nx.convert_node_labels_to_integers(part)


def config(folder: Path, workload: dict[str, Any], **sections: Any) -> dict[str, Any]:
    graph = longwall.graph(DATA, labels="label")
    return run_config(folder, graph, {"kind": "match"} | workload, run={"report": False}, **sections)


def text(graph: nx.Graph) -> str:
    return str(longwall.pattern(graph).name)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("induced", [False, True])
def test_counts_are_those_of_networkx(tmp_path: Path, engine_kind: str, seed: int, induced: bool) -> None:
    small = query(seed)
    found = GraphMatcher(DATA, small, node_match=categorical_node_match("label", None))
    want = sum(1 for _ in (found.subgraph_isomorphisms_iter if induced else found.subgraph_monomorphisms_iter)())
    chosen = {"pattern": text(small), "induced": induced, "count": "mappings"}
    engine = {"kind": engine_kind, "threads": 2}
    assert longwall.run(config(tmp_path, chosen, engine=engine)).count == want
    for limit in {1, max(want, 1), want + 1}:
        some = longwall.run(config(tmp_path, chosen | {"limit": limit}, engine=engine))
        assert (some.count, some.truncated) == (min(want, limit), want >= limit)
    assert "filter       candidates of each query vertex" in explain(config(tmp_path, chosen))


@pytest.fixture
def phases(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the phases that threads of this process run."""
    run, seen = ThreadExecutor.run, list[Any]()

    def noted(self: Any, phase: Any, env: Any) -> Any:
        seen.append(phase)
        return run(self, phase, env)

    monkeypatch.setattr(ThreadExecutor, "run", noted)
    return seen


@pytest.mark.parametrize("induced", [False, True])
def test_a_limit_is_reached_among_the_vertices_of_highest_degree_or_in_the_whole_graph(
    tmp_path: Path, engine_kind: str, monkeypatch: pytest.MonkeyPatch, phases: list[Any], induced: bool
) -> None:
    monkeypatch.setattr(candidates, "densest_parts", lambda _: iter([20, 50]))
    small = query(10)
    chosen = {"pattern": text(small), "induced": induced, "count": "mappings"}
    engine = {"kind": engine_kind, "threads": 2}
    want = longwall.run(config(tmp_path, chosen, engine=engine)).count
    densest = DATA.subgraph(longwall.graph(DATA, labels="label").original_ids[:50].tolist())
    found = GraphMatcher(densest, small, node_match=categorical_node_match("label", None))
    there = sum(1 for _ in (found.subgraph_isomorphisms_iter if induced else found.subgraph_monomorphisms_iter)())
    assert 0 < there < want
    for limit, among in ((1, 50), (there, 50), (there + 1, None), (want, None), (want + 1, None)):
        phases.clear()
        some = longwall.run(config(tmp_path, chosen | {"limit": limit}, engine=engine))
        assert (some.count, some.truncated) == (min(want, limit), want >= limit)
        assert [phase.among for phase in phases] == [20, 50, None][: 2 + (among is None)]
        assert len({phase.name for phase in phases}) == len(phases)


def test_a_part_whose_search_takes_long_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phases: list[Any]
) -> None:
    monkeypatch.setattr(candidates, "densest_parts", lambda _: iter([60]))
    chosen = {"pattern": text(query(2)), "count": "mappings"}
    want = longwall.run(config(tmp_path, chosen)).count
    assert want > 2
    phases.clear()
    monkeypatch.setattr(candidates, "_PATIENCE", 1)
    monkeypatch.setattr(candidates, "_BRIEF", 1)
    assert longwall.run(config(tmp_path, chosen | {"limit": want - 1})).count == want - 1
    assert [(phase.among, phase.alone) for phase in phases] == [(60, True), (None, True), (None, False)]


def test_a_short_search_has_one_worker(tmp_path: Path, engine_kind: str, phases: list[Any]) -> None:
    chosen = {"pattern": text(query(10)), "count": "mappings"}
    engine = {"kind": engine_kind, "threads": 3}
    for limit in (None, 5):
        phases.clear()
        assert longwall.run(config(tmp_path, chosen | {"limit": limit}, engine=engine)).count
        assert [phase.alone for phase in phases] == [True]


def test_without_room_for_candidates_it_is_searched_in_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = {"pattern": text(query(1)), "limit": 40}
    want = longwall.run(config(tmp_path, chosen)).count
    whole = longwall.run(config(tmp_path, chosen | {"limit": None})).count
    monkeypatch.setattr("longwall.kernels.host.queries.candidate_space._VERTEX_BYTES", 1 << 40)
    assert longwall.run(config(tmp_path, chosen)).count == want
    assert longwall.run(config(tmp_path, chosen | {"limit": None})).count == whole
    monkeypatch.undo()
    monkeypatch.setattr(search, "bytes_for", lambda space: 1 << 40)
    assert longwall.run(config(tmp_path, chosen)).count == want


def test_nothing_stays_reserved(lab: Any) -> None:
    from longwall.pipeline.patterns.parse import parse_pattern

    labels = dict(DATA.nodes(data="label"))
    context = lab.context(lab.graph(list(DATA.edges), labels), threads=2)
    used = context.resources.host.used
    for seed in range(3):
        plan = plan_count(parse_pattern(text(query(seed))), context.graph, without=())
        assert plan.method == "candidates"
        plan.count(context)
        assert context.resources.host.used > used  # the candidates of the last query
    context.close()
    assert context.resources.host.used == used


def test_what_was_found_before_an_interrupt_is_not_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {"pattern": "-".join(f"(v{at}:{at % 4})" for at in range(9)), "count": "mappings"}
    whole = longwall.run(config(tmp_path, chosen)).count
    advance, calls = matcher.QueryMatcher.advance, []

    def interrupted(self: Any, most: int | None, steps: int) -> int:
        calls.append(steps)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return advance(self, most, steps)

    monkeypatch.setattr(candidates, "_BRIEF", 0)
    monkeypatch.setattr(candidates, "_PATIENCE", 1 << 40)
    monkeypatch.setattr("longwall.pipeline.run_store.commit_log.COMMIT_SECONDS", 0.0)
    monkeypatch.setattr(matcher.QueryMatcher, "advance", interrupted)
    engine = {"kind": "cpu", "threads": 1}
    settings = config(tmp_path, chosen, engine=engine)
    with pytest.raises(KeyboardInterrupt) as stopped:
        longwall.run(settings)
    begun = len(calls)
    assert longwall.resume(stopped.value.run, graph=settings["graph"]).count == whole
    assert 0 < len(calls) - begun <= 16


def test_a_count_of_more_than_64_bits_is_exact(tmp_path: Path) -> None:
    star = nx.star_graph(2000)
    nx.set_node_attributes(star, {0: 0} | dict.fromkeys(range(1, 2001), 1), "label")
    pattern = ", ".join(["(c:0)-(a0:1)", *(f"(c)-(a{leaf}:1)" for leaf in range(1, 8))])
    chosen = {"kind": "match", "pattern": pattern}
    sections = config(tmp_path, chosen) | {"graph": longwall.graph(star, labels="label")}
    found = longwall.run(sections)
    assert found.count == comb(2000, 8) > 2**64
    table = pq.read_table(Path(found.path) / "results" / "counts.parquet")
    assert int(table["count"][0].as_py()) == found.count
    limited = sections | {"workload": chosen | {"limit": 1000}}
    assert longwall.run(limited).count == 1000


@pytest.mark.parametrize("seed", range(4))
def test_sums_and_the_search_agree(
    tmp_path: Path, engine_kind: str, monkeypatch: pytest.MonkeyPatch, phases: list[Any], seed: int
) -> None:
    def names() -> list[str]:
        return [phase.name.split()[0] for phase in phases]

    chosen = {"pattern": text(query(seed, 10)), "count": "mappings"}
    engine = {"kind": engine_kind, "threads": 2}
    want = longwall.run(config(tmp_path, chosen, engine=engine)).count
    assert want
    phases.clear()
    monkeypatch.setattr(candidates, "_BRIEF", 1)
    monkeypatch.setattr(candidates, "_PATIENCE", 1)
    monkeypatch.setattr(candidates, "_PATIENT_SHARE", 0.0)
    assert longwall.run(config(tmp_path, chosen, engine=engine)).count == want
    assert names() == ["match"] * 3 + ["add"]
    phases.clear()
    monkeypatch.setattr(candidates, "_MOST_COST", 0.0)
    assert longwall.run(config(tmp_path, chosen, engine=engine)).count == want
    assert names() == ["match"] * 4
    phases.clear()
    monkeypatch.setattr(candidates, "_MOST_COST", 1e11)
    monkeypatch.setattr(sums, "bytes_for", lambda _: 1 << 40)
    assert longwall.run(config(tmp_path, chosen, engine=engine)).count == want
    assert names() == ["match"] * 3 + ["add", "match"]


def test_a_cycle_that_a_search_would_not_end_is_counted(tmp_path: Path) -> None:
    """Closed walks of a complete bipartite graph, all of whose vertices may be taken once."""
    side, length = 60, 14
    graph = nx.complete_bipartite_graph(side, side)
    nx.set_node_attributes(graph, {v: v // 10 for v in graph}, "label")
    # Labels 0 to 5 on one side and 6 to 11 on the other one: two vertices of the cycle share each of two labels.
    labels = [at // 2 % 6 + 6 * (at % 2) for at in range(length)]
    pattern = ",".join(f"{at}-{(at + 1) % length}" for at in range(length))
    chosen = {"kind": "match", "pattern": pattern, "pattern_labels": labels, "count": "mappings"}
    sections = config(tmp_path, chosen) | {"graph": longwall.graph(graph, labels="label")}
    want = 1
    for label in set(labels):
        want *= perm(10, labels.count(label))
    assert longwall.run(sections).count == want


def test_queries_use_all_threads_of_the_host(tmp_path: Path, engine_kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    init = search._QueryWorker.__init__

    def noted(self: Any, *arguments: Any) -> None:
        made.append(self)
        init(self, *arguments)

    monkeypatch.setattr(search._QueryWorker, "__init__", noted)
    monkeypatch.setattr(candidates, "_BRIEF", 1)
    chosen = {"pattern": "-".join(f"(v{at}:{at % 4})" for at in range(9)), "limit": 10**6}
    longwall.run(config(tmp_path, chosen, engine={"kind": engine_kind, "threads": 3}))
    assert len(made) == 1 + 3


@pytest.mark.slow
def test_all_published_queries_of_hprd_in_one_run(data: Path, tmp_path: Path) -> None:
    with tarfile.open(data / "matching" / "hprd-queries.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    folder = next(path.parent for path in tmp_path.rglob("*.graph"))
    graph = {"path": str(data / "graphs" / "hprd.edges.gz"), "labels": str(data / "graphs" / "hprd.labels.gz")}
    sections = config(tmp_path, {"pattern": str(folder), "count": "mappings"}) | {"graph": graph}
    found = longwall.run(sections)
    lines = (data / "matching" / "hprd-expected.txt").read_text().split()
    want = {name: int(number) for name, _, number in (line.partition(":") for line in lines)}
    assert {one.name: one.count for one in found.patterns} == want
    table = pq.read_table(Path(found.path) / "results" / "counts.parquet")
    assert table.num_rows == 200
    shutil.rmtree(folder)
