"""Several patterns in one run, and counts that end at a limit."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow.parquet as pq
import pytest
from explained import explain
from networkx.algorithms.isomorphism import GraphMatcher
from run_configs import run_config, write_edges

import longwall
from longwall.pipeline.cli_output import print_result
from longwall.pipeline.patterns.query_folder import queries_of
from longwall.storage.errors import InputError

KARATE = nx.karate_club_graph()
LABELS = {vertex: vertex % 3 for vertex in KARATE}
ON_A_GPU = [pytest.mark.gpu, pytest.mark.real_gpu("the emulator takes minutes")]
PATTERNS = ["triangle", "cycle-4", "house", "star-4", "path-5", "clique-4"]


def config(folder: Path, workload: dict[str, Any], **sections: Any) -> dict[str, Any]:
    graph = write_edges(folder, KARATE.edges, LABELS)
    return run_config(folder, graph, {"kind": "match"} | workload, run={"report": False}, **sections)


def write_query(path: Path, graph: nx.Graph, labels: dict[int, int]) -> None:
    lines = [f"t {len(graph)} {graph.number_of_edges()}"]
    lines += [f"v {vertex} {labels[vertex]} {graph.degree(vertex)}" for vertex in sorted(graph)]
    path.write_text("\n".join([*lines, *(f"e {u} {v}" for u, v in graph.edges)]) + "\n")


def mappings(query: nx.Graph, labels: dict[int, int]) -> int:
    """Count the mappings by networkx."""
    large, small = KARATE.copy(), query.copy()
    nx.set_node_attributes(large, LABELS, "label")
    nx.set_node_attributes(small, labels, "label")
    same = nx.algorithms.isomorphism.categorical_node_match("label", None)
    return sum(1 for _ in GraphMatcher(large, small, node_match=same).subgraph_monomorphisms_iter())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "queries").mkdir()
    for number, graph in ((1, nx.path_graph(4)), (2, nx.cycle_graph(4)), (10, nx.star_graph(3))):
        write_query(tmp_path / "queries" / f"q{number}.graph", graph, {vertex: vertex % 3 for vertex in graph})
    (tmp_path / "queries" / "readme.txt").write_text("not a query")
    return tmp_path


@cache
def wanted_counts() -> dict[str, int]:
    return {
        "q1": mappings(nx.path_graph(4), {0: 0, 1: 1, 2: 2, 3: 0}),
        "q2": mappings(nx.cycle_graph(4), {0: 0, 1: 1, 2: 2, 3: 0}),
        "q10": mappings(nx.star_graph(3), {0: 0, 1: 1, 2: 2, 3: 0}),
    }


def test_a_folder_gives_a_row_for_each_query(folder: Path) -> None:
    found = longwall.run(config(folder, {"pattern": f"{folder}/queries", "count": "mappings"}))
    assert found.count is None
    assert {one.name: one.count for one in found.patterns} == wanted_counts()
    assert [one.name for one in found.patterns] == ["q1", "q2", "q10"]
    table = pq.read_table(Path(found.path) / "results" / "counts.parquet").to_pylist()
    assert {row["name"]: row["count"] for row in table} == wanted_counts()
    assert all(row["seconds"] > 0 and not row["lower_bound"] for row in table)
    shown = found.to_json()["patterns"]
    assert [(one["name"], one["count"]) for one in shown] == list(wanted_counts().items())
    assert "count" not in json.loads((Path(found.path) / "manifest.json").read_text())


@pytest.mark.parametrize("limit", [1, 2, 7, 10**6])
@pytest.mark.parametrize("threads", [1, 3])
def test_every_query_ends_at_the_limit(folder: Path, limit: int, threads: int) -> None:
    workload = {"pattern": [f"{folder}/queries/", "triangle", "wedge"], "count": "mappings", "limit": limit}
    found = longwall.run(config(folder, workload, engine={"kind": "cpu", "threads": threads}))
    wanted = wanted_counts() | {"triangle": 45 * 6, "wedge": 528 * 2}
    assert {one.name: one.count for one in found.patterns} == {name: min(n, limit) for name, n in wanted.items()}
    assert {one.name: one.lower_bound for one in found.patterns} == {name: n >= limit for name, n in wanted.items()}
    assert found.truncated == any(n >= limit for n in wanted.values())


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("induced", [False, True])
def test_a_count_ends_at_the_limit(tmp_path: Path, engine_kind: str, pattern: str, induced: bool) -> None:
    engine = {"kind": engine_kind, "threads": 2}
    chosen = {"pattern": pattern, "induced": induced}
    whole = longwall.run(config(tmp_path, chosen, engine=engine)).count
    assert whole is not None
    for limit in (1, max(whole // 2, 1), whole, whole + 1):
        found = longwall.run(config(tmp_path, chosen | {"limit": limit}, engine=engine))
        assert (found.count, found.truncated) == (min(whole, limit), whole >= limit)


@pytest.mark.parametrize("kind", ["cpu", pytest.param("cuda", marks=ON_A_GPU)])
def test_a_limit_ends_a_search_that_would_take_for_ever(tmp_path: Path, kind: str) -> None:
    edges = ",".join(f"{vertex}-{vertex + 1}" for vertex in range(19))
    engine = {"kind": kind, "threads": 2}
    found = longwall.run(config(tmp_path, {"pattern": edges, "limit": 1000}, engine=engine))
    assert (found.count, found.truncated) == (1000, True)


def test_both_limits_of_a_listing_are_one(tmp_path: Path) -> None:
    listing = {"pattern": "triangle", "output": "embeddings", "limit": 7}
    found = longwall.run(config(tmp_path, listing))
    assert (found.count, found.truncated, len(found.table())) == (7, True, 7)
    with pytest.raises(InputError, match=r"export\.limit: workload\.limit says the same"):
        longwall.run(config(tmp_path, listing, export={"limit": 7}))


def test_the_terminal_says_that_there_may_be_more(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workload = {"pattern": f"{folder}/queries", "limit": 2}
    print_result(longwall.run(config(folder, workload)), as_json=False, quiet=False)
    text = capsys.readouterr().out
    assert "at least 2  q1" in text
    assert "there may be more" in text
    assert "query        q10" in explain(config(folder, workload))


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ({"pattern": "nowhere/"}, "nowhere/': there is no such folder"),
        ({"pattern": []}, "there is no pattern"),
        ({"pattern": ["triangle", "trangle"]}, "did you mean 'triangle'"),
        ({"pattern": ["triangle"], "output": "embeddings"}, "embeddings of several patterns"),
        ({"pattern": ["triangle"], "pattern_labels": [0, 1, 2]}, "several patterns have labels of their own"),
        ({"pattern": "triangle", "limit": 0}, "workload.limit"),
    ],
)
def test_what_cannot_be_done_is_refused(tmp_path: Path, workload: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        longwall.run(config(tmp_path, workload))
    assert not (tmp_path / "runs").exists()


def test_a_folder_without_queries_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"the folder has no \.graph or \.graphml files"):
        longwall.run(config(tmp_path, {"pattern": f"{tmp_path}/empty"}))


def test_a_name_is_a_pattern_also_where_a_folder_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "triangle").mkdir()
    assert [one.source for one in queries_of(["triangle"])] == ["triangle"]


def test_an_interrupted_run_goes_on_with_the_next_query(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from longwall.pipeline.workloads import match

    answer, asked = match.answer_pattern, []

    def interrupted(plan: Any, env: Any, **options: Any) -> Any:
        asked.append(plan.pattern.edge_text)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return answer(plan, env, **options)

    monkeypatch.setattr(match, "answer_pattern", interrupted)
    with pytest.raises(KeyboardInterrupt) as stopped:
        longwall.run(config(folder, {"pattern": f"{folder}/queries", "count": "mappings"}))
    run = stopped.value.run
    commits = "".join(path.read_text() for path in (Path(run) / "checkpoint" / "commits").iterdir())
    assert asked[0] in commits
    found = longwall.resume(run)
    assert {one.name: one.count for one in found.patterns} == wanted_counts()


def test_functions_take_several_patterns_and_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    graph = longwall.graph(KARATE)
    assert longwall.count(graph, ["triangle", longwall.pattern("wedge"), nx.path_graph(2)]) == [45, 528, 78]
    assert longwall.count(graph, [(0, 1), (1, 2), (0, 2)]) == 45
    assert longwall.count(graph, ["triangle", "wedge"], limit=100) == [45, 100]
    assert longwall.count(graph, "wedge", limit=5) == 5
    with pytest.raises(InputError, match="several patterns have labels of their own"):
        longwall.count(graph, ["triangle", "wedge"], labels=[0, 1, 2])
    with pytest.raises(InputError, match="limit"):
        longwall.count(graph, "wedge", limit=0)
