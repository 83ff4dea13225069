"""Cliques as runs: any size, every size, per vertex; their tables, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import naive_cliques
import networkx as nx
import pyarrow as pa
import pytest
from explained import explain
from run_configs import run_config, write_edges
from typer.testing import CliRunner

import longwall
from longwall.pipeline.cli import app
from longwall.pipeline.phases import clique_tables
from longwall.stages.cliques import leaves as clique_leaves

GRAPH = nx.gnp_random_graph(60, 0.45, seed=2)


@cache
def all_cliques() -> set[frozenset[int]]:
    return {frozenset(one) for one in nx.enumerate_all_cliques(GRAPH) if len(one) > 2}


@cache
def sizes() -> dict[int, int]:
    return naive_cliques.sizes(all_cliques())


def config(tmp_path: Path, edges: Any = GRAPH.edges, **workload: Any) -> dict[str, Any]:
    graph = write_edges(tmp_path, ((u + 10, v + 10) for u, v in edges))
    return run_config(tmp_path, graph, {"kind": "cliques"} | workload, engine={"threads": 2})


def test_every_size_in_one_run(tmp_path: Path, engine_kind: str) -> None:
    result = longwall.run(config(tmp_path, k="all"), overrides=[f"engine.kind={engine_kind}"])
    assert [(one.pattern, one.count) for one in result.patterns] == [
        (f"clique-{size}", count) for size, count in sorted(sizes().items())
    ]
    assert result.engine == engine_kind
    assert result.count == len(all_cliques())
    table = result.table("sizes")
    assert table.schema.field("count").type == pa.int64()
    assert dict(zip(table["size"].to_pylist(), table["count"].to_pylist(), strict=True)) == sizes()


@pytest.mark.parametrize("k", [3, 4, 6, 8, 16, 17, 10**9])
def test_one_size(tmp_path: Path, engine_kind: str, k: int) -> None:
    chosen = [f"engine.kind={engine_kind}"]
    assert longwall.run(config(tmp_path, k=k), overrides=chosen).count == sizes().get(k, 0)
    result = longwall.run(config(tmp_path, k=k, output="vertices"), overrides=chosen)
    assert result.count == sizes().get(k, 0)
    found = {row["vertex"] - 10: row["cliques"] for row in result.table("vertices").to_pylist()}
    assert set(found) == set(GRAPH)
    assert {vertex: count for vertex, count in found.items() if count} == dict(
        Counter(vertex for clique in all_cliques() if len(clique) == k for vertex in clique)
    )


def test_every_size_of_every_vertex(tmp_path: Path, engine_kind: str) -> None:
    config_of = config(tmp_path, k="all", output="vertices")
    result = longwall.run(config_of, overrides=[f"engine.kind={engine_kind}"])
    rows = result.table("vertices").to_pylist()
    found = {(row["vertex"] - 10, row["size"]): row["cliques"] for row in rows}
    assert len(found) == len(rows)
    assert found == dict(Counter((vertex, len(clique)) for clique in all_cliques() for vertex in clique))


@pytest.mark.parametrize("k", [4, 6, "all"])
def test_a_table_of_vertices_is_written_in_a_small_budget(
    tmp_path: Path, k: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = config(tmp_path, k=k, output="vertices") | {"memory": {"host": "1MiB"}}
    whole = longwall.run(config(tmp_path, k=k, output="vertices")).table("vertices")
    assert longwall.run(small).table("vertices").equals(whole)
    monkeypatch.setattr(clique_tables, "_AT_ONCE", 7)
    assert longwall.run(small).table("vertices").equals(whole)


def test_a_search_without_room_for_pivots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no room for pivots, cliques are counted one by one."""

    def too_large(*_: Any) -> Any:
        raise clique_leaves.WorkspaceTooLarge(1)

    monkeypatch.setattr(clique_leaves, "_OneSize", too_large)
    assert longwall.cliques(GRAPH, 7, engine="cpu") == sizes()[7]
    with pytest.raises(longwall.InputError, match="a worker needs 1 B of workspace"):
        longwall.cliques(nx.complete_graph(18), 17, engine="cpu")


@pytest.mark.parametrize(("k", "kind"), [(5, pa.int64()), (25, pa.decimal128(38)), (60, pa.string())])
def test_numbers_past_64_bits(k: int, kind: pa.DataType) -> None:
    complete = nx.complete_graph(150)
    table = longwall.cliques(complete, k, per="vertex", engine="cpu")
    assert table.schema.field("cliques").type == kind
    assert {int(number) for number in table["cliques"].to_pylist()} == {comb(149, k - 1)}
    assert longwall.cliques(complete, k, engine="cpu") == comb(150, k)


def test_two_hundred_vertices_that_are_all_adjacent(tmp_path: Path) -> None:
    result = longwall.run(config(tmp_path, combinations(range(200), 2), k="all"))
    assert [one.count for one in result.patterns] == [comb(200, size) for size in range(3, 201)]
    assert result.count == sum(comb(200, size) for size in range(3, 201))
    for name in ("sizes", "counts"):
        assert [int(count) for count in result.table(name)["count"].to_pylist()] == [
            comb(200, size) for size in range(3, 201)
        ]


@pytest.mark.parametrize("output", ["count", "vertices"])
def test_graphs_without_cliques(tmp_path: Path, output: str) -> None:
    result = longwall.run(config(tmp_path, [(0, 1), (1, 2)], k="all", output=output))
    assert result.patterns == ()
    assert result.count == 0
    assert result.table("sizes").num_rows == 0


def test_the_terminal_has_a_line_for_every_size(tmp_path: Path) -> None:
    write_edges(tmp_path, GRAPH.edges)
    text = f'[graph]\npath = "graph.txt"\n[workload]\nkind = "cliques"\nk = "all"\n[run]\ndirectory = "{tmp_path}/runs"'
    (tmp_path / "run.toml").write_text(text)
    run = ["run", str(tmp_path / "run.toml"), "--quiet"]
    lines = CliRunner().invoke(app, run).stdout.splitlines()
    assert lines[0].split() == ["count", f"{len(all_cliques()):,}"]
    assert [line.split() for line in lines[1 : len(sizes()) + 1]] == [
        [f"{count:,}", f"clique-{size}"] for size, count in sorted(sizes().items())
    ]
    again = CliRunner().invoke(app, [*run, "--json", "--set", "run.name=again"])
    assert json.loads(again.stdout)["patterns"] == [
        {"pattern": f"clique-{size}", "count": count, "method": "clique-leaves"}
        for size, count in sorted(sizes().items())
    ]


def test_the_plan_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "clique bitmaps" in explain(config(tmp_path, k=5))
    assert "clique pivots" in explain(config(tmp_path, k=6))
    monkeypatch.setattr(clique_leaves, "PIVOT_WIDTH", 10)
    assert "pairs that are not adjacent" in explain(config(tmp_path, k=6))
    assert "clique pivots" in explain(config(tmp_path, k=8))
    assert "cliques of every size" in explain(config(tmp_path, k="all"))
    assert "one size after the other" in explain(config(tmp_path, k="all", output="vertices"))
    assert "every vertex has too few neighbours" in explain(config(tmp_path, k=500))


def test_functions() -> None:
    karate = nx.karate_club_graph()
    assert longwall.cliques(karate, "all").to_pydict() == {"size": [3, 4, 5], "count": [45, 11, 2]}
    rows = longwall.cliques(karate, "all", per="vertex").to_pylist()
    assert rows == sorted(rows, key=lambda row: (row["vertex"], row["size"]))
    assert sum(row["cliques"] for row in rows) == 3 * 45 + 4 * 11 + 5 * 2
    with pytest.raises(longwall.InputError, match="per: expected None, for the number of all"):
        longwall.cliques(karate, 4, per="arc")  # type: ignore[call-overload]
    with pytest.raises(longwall.InputError, match='k: counts per edge are given for at most 4 vertices, not "all"'):
        longwall.cliques(karate, "all", per="edge")
    with pytest.raises(longwall.InputError, match='k: expected a whole number from 3 up, or "all"'):
        longwall.cliques(karate, 4.5)  # type: ignore[call-overload]
