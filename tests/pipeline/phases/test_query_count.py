"""Counts of labelled queries by their candidates: on both engines, with little memory, resumed, and on a real graph."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow.parquet as pq
import pytest
from networkx.algorithms.isomorphism import GraphMatcher, categorical_node_match

import longwall
from longwall.kernels.queries import matcher
from longwall.pipeline.explain import explain
from longwall.pipeline.phases import query_count
from longwall.storage.errors import FinalError

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
    run = {"directory": str(folder / "runs"), "report": False}
    return {"graph": longwall.graph(DATA, labels="label"), "workload": {"kind": "match"} | workload} | (
        {"run": run, "memory": {"spill": str(folder / "spill")}, "engine": {"kind": "cpu"}} | sections
    )


def text(graph: nx.Graph) -> str:
    return str(longwall.pattern(graph).name)


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


def test_without_room_for_candidates_it_is_searched_in_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = {"pattern": text(query(1)), "limit": 40}
    want = longwall.run(config(tmp_path, chosen)).count
    whole = longwall.run(config(tmp_path, chosen | {"limit": None})).count
    monkeypatch.setattr("longwall.kernels.queries.candidate_space._VERTEX_BYTES", 1 << 40)
    assert longwall.run(config(tmp_path, chosen)).count == want
    assert longwall.run(config(tmp_path, chosen | {"limit": None})).count == whole
    monkeypatch.undo()
    monkeypatch.setattr(query_count, "bytes_for", lambda space: 1 << 40)
    assert longwall.run(config(tmp_path, chosen)).count == want


def test_nothing_stays_reserved(lab: Any) -> None:
    from longwall.pipeline.patterns.parse import parse_pattern
    from longwall.pipeline.phases.query_plans import plan_query

    labels = dict(DATA.nodes(data="label"))
    context = lab.context(lab.graph(list(DATA.edges), labels), threads=2)
    used = context.resources.host.used
    for seed in range(3):
        plan = plan_query(parse_pattern(text(query(seed))), context.graph, induced=False)
        assert plan is not None
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

    monkeypatch.setattr("longwall.pipeline.run_store.commit_log.COMMIT_SECONDS", 0.0)
    monkeypatch.setattr(matcher.QueryMatcher, "advance", interrupted)
    engine = {"kind": "cpu", "threads": 1}
    settings = config(tmp_path, chosen, engine=engine)
    with pytest.raises(KeyboardInterrupt) as stopped:
        longwall.run(settings)
    begun = len(calls)
    assert longwall.resume(str(stopped.value), graph=settings["graph"]).count == whole
    assert 0 < len(calls) - begun <= 16


def test_a_count_that_is_too_large_is_refused(tmp_path: Path) -> None:
    star = nx.star_graph(2000)
    nx.set_node_attributes(star, {0: 0} | dict.fromkeys(range(1, 2001), 1), "label")
    pattern = ", ".join(["(c:0)-(a0:1)", *(f"(c)-(a{leaf}:1)" for leaf in range(1, 6))])
    chosen = {"kind": "match", "pattern": f"{pattern}, (c)-(a6:1), (c)-(a7:1)"}
    sections = config(tmp_path, chosen) | {"graph": longwall.graph(star, labels="label")}
    with pytest.raises(FinalError, match=r"do(es)? not fit 64-bit integers"):
        longwall.run(sections)
    limited = sections | {"workload": chosen | {"limit": 1000}}
    assert longwall.run(limited).count == 1000


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
