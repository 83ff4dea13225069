"""Maximal cliques as runs: their tables, limits, budgets, and what the config refuses."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import naive_cliques
import networkx as nx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import each_case
from explained import explain
from hypothesis import given, settings
from hypothesis import strategies as st
from run_configs import run_config, write_edges
from strategies import graphs

import longwall
from longwall.kernels.interface.maximal_cliques import order_bytes
from longwall.pipeline.cli import main
from longwall.pipeline.execution.phase import equal_tasks
from longwall.pipeline.phases.maximal_cliques import listing
from longwall.pipeline.phases.maximal_cliques.order import ordered_graph
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.plan import CountPlan
from longwall.pipeline.planning.planner import PLANNER
from longwall.pipeline.planning.query import Query
from longwall.pipeline.run_store.commit_log import PhaseRecord
from longwall.stages.cliques import maximal as clique_counting

DENSE = [(u + 10, v + 10) for u, v in combinations(range(40), 2) if (u * 7 + v * 5) % 4]


def config(tmp_path: Path, edges: Any = DENSE, **workload: Any) -> dict[str, Any]:
    wanted = {"kind": "maximal-cliques"} | workload
    return run_config(tmp_path, write_edges(tmp_path, edges), wanted, engine={"threads": 2})


def found_by_networkx(edges: Any, min_size: int = 2) -> set[frozenset[int]]:
    return {frozenset(one) for one in nx.find_cliques(nx.Graph(list(edges))) if len(one) >= min_size}


def listed(result: longwall.Result) -> set[frozenset[int]]:
    rows = result.table().to_pylist()
    cliques = {frozenset(row["clique"]) for row in rows}
    assert len(cliques) == len(rows)
    assert all(row["clique"] == sorted(set(row["clique"])) for row in rows)
    assert all(len(row["clique"]) == row["size"] for row in rows)
    return cliques


@settings(deadline=None, max_examples=25)
@given(small=graphs(max_vertices=12), min_size=st.integers(2, 4))
def test_as_many_as_networkx_finds(lab: Any, engine_kind: str, small: Any, min_size: int) -> None:
    """Every method counts maximal cliques by size and per vertex, and lists them."""
    edges = [edge for edge in small.edges if edge[0] != edge[1]]
    sizes = sorted(naive_cliques.sizes(found_by_networkx(edges, min_size)).items())
    for output, want in (("count", "count"), ("vertices", "per_vertex"), ("embeddings", "rows")):
        section = {"kind": "maximal-cliques", "min_size": min_size, "output": output}
        context = lab.context(lab.graph(small.edges), engine=engine_kind, threads=2, workload=section)
        query = Query.of_maximal_cliques(min_size, want)
        plans = [one for _, one in PLANNER.proposals(query, Facts.of(context.graph)) if isinstance(one, CountPlan)]
        assert plans
        for plan in plans:
            found = [(size, count) for size, count in enumerate(plan.counts(context)) if count]
            total = sum(count for _, count in sizes)
            assert found == (sizes if want != "rows" else [(0, total)] if total else [])


@pytest.mark.parametrize("min_size", [2, 8, 100])
def test_the_tables_agree_with_networkx(tmp_path: Path, min_size: int, engine_kind: str) -> None:
    chosen = [f"engine.kind={engine_kind}"]
    wanted = found_by_networkx(DENSE, min_size)
    sizes = [{"size": size, "count": count} for size, count in sorted(naive_cliques.sizes(wanted).items())]
    counted = longwall.run(config(tmp_path, min_size=min_size), overrides=chosen)
    assert counted.count == len(wanted)
    assert counted.engine == engine_kind
    assert counted.table("sizes").to_pylist() == sizes
    per_vertex = longwall.run(config(tmp_path, min_size=min_size, output="vertices"), overrides=chosen)
    assert per_vertex.table("sizes").to_pylist() == sizes
    assert per_vertex.count == len(wanted)
    rows = {row["vertex"]: (row["maximal_cliques"], row["largest"]) for row in per_vertex.table("vertices").to_pylist()}
    assert set(rows) == {vertex for edge in DENSE for vertex in edge}
    assert {vertex: row for vertex, row in rows.items() if row != (0, 0)} == naive_cliques.per_vertex(wanted)
    result = longwall.run(config(tmp_path, min_size=min_size, output="embeddings"), overrides=chosen)
    assert listed(result) == wanted
    assert (result.count, result.truncated) == (len(wanted), False)


@pytest.mark.parametrize("limit", [1, 7, 100000])
def test_a_listing_ends_at_its_limit(tmp_path: Path, limit: int, engine_kind: str) -> None:
    overrides = [f"export.limit={limit}", f"engine.kind={engine_kind}"]
    result = longwall.run(config(tmp_path, output="embeddings"), overrides=overrides)
    wanted = found_by_networkx(DENSE)
    cliques = listed(result)
    assert cliques <= wanted
    assert len(cliques) == result.count == min(limit, len(wanted))
    assert result.truncated == (limit <= len(wanted))


@pytest.mark.parametrize("limit", [1, 7, None, 100000])
@pytest.mark.parametrize("output", ["count", "embeddings"])
def test_it_ends_at_the_limit_of_the_workload(tmp_path: Path, limit: int | None, output: str, engine_kind: str) -> None:
    """With None exactly as many are wanted as there are."""
    wanted = found_by_networkx(DENSE, 3)
    most = limit or len(wanted)
    chosen = config(tmp_path, min_size=3, output=output, limit=most)
    result = longwall.run(chosen, overrides=[f"engine.kind={engine_kind}"])
    assert (result.count, result.truncated) == (min(most, len(wanted)), most <= len(wanted))
    if output == "embeddings":
        assert listed(result) <= wanted
        return
    sizes = naive_cliques.sizes(wanted)
    found = {row["size"]: row["count"] for row in result.table("sizes").to_pylist()}
    assert sum(found.values()) == result.count
    assert all(0 < count <= sizes[size] for size, count in found.items())
    assert all(one.lower_bound == result.truncated for one in result.patterns)


def test_a_limit_ends_a_count_that_would_take_for_ever(tmp_path: Path) -> None:
    """Triples without edges inside, all others joined: 3^30 maximal cliques of 30 vertices (Moon and Moser)."""
    edges = [(u, v) for u, v in combinations(range(90), 2) if u // 3 != v // 3]
    result = longwall.run(config(tmp_path, edges, limit=5000))
    assert (result.count, result.truncated) == (5000, True)
    assert result.table("sizes").to_pylist() == [{"size": 30, "count": 5000}]


def test_a_limited_count_goes_on_where_it_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = len(found_by_networkx(DENSE))
    commit, seen = PhaseRecord.commit, []

    def interrupted(self: Any, *arguments: Any, **options: Any) -> None:
        if seen:
            raise KeyboardInterrupt
        seen.append(sum(arguments[1].value))
        commit(self, *arguments, **options | {"may_wait": False})

    monkeypatch.setattr("longwall.pipeline.run_store.commit_log.COMMIT_SECONDS", 0.0)
    monkeypatch.setattr(listing, "root_tasks", lambda *_: equal_tasks(40, 2))
    monkeypatch.setattr(PhaseRecord, "commit", interrupted)
    with pytest.raises(KeyboardInterrupt) as stopped:
        longwall.run(config(tmp_path, limit=wanted - 1), overrides=["engine.threads=1"])
    monkeypatch.undo()
    assert 0 < sum(seen) < wanted - 1
    result = longwall.resume(stopped.value.run)
    assert (result.count, result.truncated) == (wanted - 1, True)


def test_files_and_groups_are_short_where_memory_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longwall.stages.export.ROWS_PER_FILE", 50)
    result = longwall.run(config(tmp_path, output="embeddings"))
    files = sorted((Path(result.path) / "results").glob("embeddings-*.parquet"))
    assert len(files) > len(found_by_networkx(DENSE)) // 50
    assert max(pq.read_metadata(file).num_rows for file in files) == 50
    assert listed(result) == found_by_networkx(DENSE)


@pytest.mark.parametrize("factor", [1, 1 << 58])
def test_cliques_are_listed_with_ascending_ids_whatever_these_are(tmp_path: Path, factor: int) -> None:
    edges = [(u * factor, v * factor) for u, v in combinations(range(1, 16), 2) if (u * 7 + v * 5) % 4]
    ids = {"graph": {"path": tmp_path / "graph.parquet"}}
    table = {name: pa.array([edge[i] for edge in edges], pa.int64()) for i, name in enumerate(("source", "target"))}
    pq.write_table(pa.table(table), tmp_path / "graph.parquet")
    assert listed(longwall.run(config(tmp_path, output="embeddings") | ids)) == found_by_networkx(edges)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("output", ["count", "vertices", "embeddings"])
def test_budgets_that_are_too_small_are_named(tmp_path: Path, output: str) -> None:
    made = {"kind": "erdos-renyi", "vertices": 20_000, "edges": 60_000, "seed": 1}
    config_ = config(tmp_path, output=output) | {"graph": {"generator": made}}
    with pytest.raises(longwall.InputError, match=r"memory\.host"):
        longwall.run(config_, overrides=["memory.host=2MiB"])
    result = longwall.run(config_, overrides=["memory.host=12MiB", "run.name=enough"])
    assert result.count
    assert result.count > 50_000


def test_the_order_is_reserved(lab: Any) -> None:
    graph = lab.graph(DENSE)
    section = {"kind": "maximal-cliques"}
    context = lab.context(graph, workload=section)
    workload = context.spec.workload
    workload.execute(workload.plan(graph), context)
    size = order_bytes(graph.num_vertices, graph.num_edges)
    assert context.resources.host.used == graph.nbytes + size
    context.close()
    assert context.resources.host.used == graph.nbytes
    context = lab.context(graph, workload=section, host=graph.nbytes + size - 1)
    with pytest.raises(longwall.RunError, match=r"no room for the degeneracy order .* raise memory\.host"):
        workload.execute(workload.plan(graph), context)


def test_counts_that_no_table_can_hold_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lab: Any) -> None:
    """Worker by worker they fit; their sum does not."""
    huge = [[0, 0, 1 << 62], [0, 0, 1 << 62]]
    record = clique_counting.CountMaximalCliques.aggregation
    added = replace(record, combine=lambda _: record.combine(huge))
    monkeypatch.setattr(clique_counting.CountMaximalCliques, "aggregation", added)
    with pytest.raises(longwall.RunError, match=r"about 9\.22e\+18 maximal cliques of 2 vertices do not fit 64-bit"):
        longwall.run(config(tmp_path))
    context = lab.context(lab.graph(DENSE), workload={"kind": "maximal-cliques"})
    graph = ordered_graph(context)
    counter = context.engine.kernels.maximal_clique_counter(context.engine.device, graph, graph.order, 2, 1 << 20)
    counter._found.estimate[0] = 2.0**62
    with pytest.raises(OverflowError, match=r"about 4\.61e\+18 maximal cliques do not fit"):
        counter.add(0, 1)


REFUSED = [
    ({"output": "embeddings"}, ["scheduler.order=levels"], "maximal-cliques have no levels: remove it"),
    ({"output": "embeddings"}, ['export.columns=["v0"]'], "written as lists, without columns to choose from"),
    ({}, ["export.limit=3"], "only embeddings are exported"),
    ({"min_size": 1}, [], "workload.min_size"),
    ({"limit": 0}, [], "workload.limit"),
    ({"output": "vertices", "limit": 3}, [], "workload.limit: counts per vertex are whole; remove it"),
    ({"output": "embeddings", "limit": 3}, ["export.limit=3"], "workload.limit says the same"),
    ({"min_size": 1 << 63}, [], "workload.min_size"),
]


@each_case(("workload", "overrides", "text"), REFUSED)
def test_what_it_cannot_do_is_refused(tmp_path: Path, workload: Any, overrides: list[str], text: str) -> None:
    with pytest.raises(longwall.InputError) as refusal:
        longwall.run(config(tmp_path, **workload), overrides=overrides)
    assert text in str(refusal.value)
    assert not (tmp_path / "runs").exists()


def test_the_plan_is_explained(tmp_path: Path) -> None:
    for output, text in (("count", "by size"), ("vertices", "by vertex and by size"), ("embeddings", "as lists")):
        lines = explain(config(tmp_path, output=output, min_size=4))
        assert "maximal cliques of at least 4 vertices" in lines
        assert text in lines
    assert "until there are 100" in explain(config(tmp_path, limit=100))


def test_the_command_prints_the_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cliques.toml").write_text(
        f'[graph]\npath = "{tmp_path}/graph.txt"\n[workload]\nkind = "maximal-cliques"\n'
        f'[run]\ndirectory = "{tmp_path}/runs"\n'
    )
    config(tmp_path, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)])
    monkeypatch.setattr("sys.argv", ["longwall", "run", str(tmp_path / "cliques.toml"), "--quiet"])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "count    3"
    assert lines[1:3] == [
        "              2  maximal clique of 2 vertices",
        "              1  maximal clique of 3 vertices",
    ]


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("name", ["citeseer", "yeast", "ca-GrQc", "socfb-Reed98", "p2p-Gnutella04", "ca-AstroPh"])
def test_published_counts(data: Path, tmp_path: Path, name: str) -> None:
    import json

    truth = json.loads((data / "truth" / "counts.json").read_text())[name]["maximal_cliques"]
    graph = {"graph": {"path": data / "graphs" / f"{name}.edges.gz"}}
    result = longwall.run(config(tmp_path) | graph)
    sizes = {str(row["size"]): row["count"] for row in result.table("sizes").to_pylist()}
    assert (result.count, max(map(int, sizes))) == (truth["count"], truth["largest"])
    assert sizes == truth.get("by_size", sizes)
    largest = longwall.run(config(tmp_path, output="embeddings", min_size=truth["largest"]) | graph)
    assert listed(largest)
    assert largest.count == sizes[str(truth["largest"])]
