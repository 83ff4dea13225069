"""Frequent patterns: budgets, what is written, going on after a kill. What is found is in test_frequent_random."""

from __future__ import annotations

import itertools
import json
import math
import threading
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from selection import on_device

import longwall
from longwall.kernels import cpu
from longwall.kernels.cpu.frequent.pattern_growth import CpuGrower
from longwall.kernels.host.patterns.dfs_codes import automorphisms, restrictions
from longwall.pipeline.inputs import open_graph
from longwall.pipeline.workloads.frequent import pattern_grower
from longwall.stages.extension import grow_patterns, row_buffer
from longwall.storage.graph import typed_graph
from longwall.storage.memory.reservations import MemoryBudget

ROW = [(name, "ascending") for name in ("pattern", "v0", "v1", "v2", "v3", "v4")]


def labelled_graph(
    folder: Path, *, vertices: int = 60, edges: int = 180, labels: int = 3, seed: int = 1
) -> dict[str, str]:
    """Write a random graph to files. Return the config's section."""
    graph = nx.gnm_random_graph(vertices, edges, seed=seed)
    rng = np.random.default_rng(seed)
    (folder / "edges.txt").write_text("".join(f"{u} {v}\n" for u, v in graph.edges))
    (folder / "labels.txt").write_text("".join(f"{v} {rng.integers(labels)}\n" for v in graph))
    return {"path": str(folder / "edges.txt"), "labels": str(folder / "labels.txt")}


def mine(
    folder: Path, graph: dict[str, str], engine: str, name: str = "x", threads: int = 2, **sections: Any
) -> longwall.Result:
    workload = {"kind": "frequent", "min_support": 5, "max_edges": 3} | sections.pop("workload", {})
    config = {"graph": graph, "workload": workload, "engine": {"kind": engine, "threads": threads}} | sections
    return longwall.run(config | {"run": {"directory": str(folder / "runs"), "name": name}})


@pytest.mark.slow
@pytest.mark.parametrize("support", ["mni", "instances"])
def test_budgets_and_threads_change_nothing(engine_kind: str, tmp_path: Path, support: str) -> None:
    graph = labelled_graph(tmp_path, vertices=200, edges=2000, labels=2)
    wanted = {"support": support, "min_support": 50}
    whole = mine(tmp_path, graph, engine_kind, "whole", workload=wanted)
    memory = {"host": "400KiB", "disk": "100MiB", "device": "1MiB", "spill": str(tmp_path / "spill")}
    small = mine(tmp_path, graph, engine_kind, "small", workload=wanted, memory=memory)
    assert whole.patterns == small.patterns
    assert len(whole.patterns) > 20
    used = json.loads((small.path / "manifest.json").read_text())["memory"]
    assert used["host"]["peak"] <= 400 * 2**10
    assert used["disk"]["peak"] > 0
    assert not (tmp_path / "spill").exists()


def test_fewer_workers_note_vertices_where_memory_is_short(tmp_path: Path) -> None:
    graph = labelled_graph(tmp_path, vertices=20_000, edges=20_000)
    wanted = {"min_support": 1000, "max_edges": 2}
    whole = mine(tmp_path, graph, "cpu", "whole", threads=1, workload=wanted)
    memory = {"host": "4MiB", "disk": "100MiB", "spill": str(tmp_path / "spill")}
    small = mine(tmp_path, graph, "cpu", "small", threads=8, workload=wanted, memory=memory)
    assert small.patterns == whole.patterns
    assert len(whole.patterns) > 5
    assert json.loads((small.path / "manifest.json").read_text())["memory"]["host"]["peak"] <= 4 * 2**20


@pytest.mark.slow
def test_patterns_grow_in_batches(engine_kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a few patterns each, of chunks that were put together from many pieces."""
    graph = labelled_graph(tmp_path, vertices=40, edges=90)
    wanted = {"min_support": 3, "max_edges": 4, "output": "embeddings"}
    whole = mine(tmp_path, graph, engine_kind, "whole", workload=wanted)
    monkeypatch.setattr(pattern_grower, "_MOST_KNOWN", 60)
    monkeypatch.setattr(grow_patterns, "_MOST_ROWS", on_device(5, 5, 20))
    monkeypatch.setattr(row_buffer, "_MOST", 100)
    parts = mine(tmp_path, graph, engine_kind, "parts", workload=wanted)
    assert len(whole.patterns) > 100
    assert parts.patterns == whole.patterns
    assert parts.table().sort_by(ROW) == whole.table().sort_by(ROW)


def test_the_pattern_table_says_what_is_frequent(engine_kind: str, tmp_path: Path) -> None:
    result = mine(tmp_path, labelled_graph(tmp_path), engine_kind)
    rows = result.table("patterns").to_pylist()
    assert len(rows) == len(result.patterns)
    for row, one in zip(rows, result.patterns, strict=True):
        assert (row["pattern"], tuple(row["labels"]), row["support"], row["count"]) == (
            one.pattern,
            one.labels,
            one.support,
            one.count,
        )
        code = row["dfs_code"]
        assert [edge["i"] for edge in code[:1]] == [0]
        assert row["edges"] == len(code)
        assert row["vertices"] == 1 + max(edge["j"] for edge in code)
        assert sorted((min(e["i"], e["j"]), max(e["i"], e["j"])) for e in code) == [
            tuple(map(int, edge.split("-"))) for edge in row["pattern"].split(",")
        ]
        for edge in code:
            assert (edge["label_i"], edge["label_j"]) == (row["labels"][edge["i"]], row["labels"][edge["j"]])
            assert edge["label_edge"] == -1


@pytest.mark.parametrize("support", ["mni", "instances"])
def test_embeddings_are_the_subgraphs_each_once(engine_kind: str, tmp_path: Path, support: str) -> None:
    section = labelled_graph(tmp_path, vertices=25, edges=50, labels=2)
    result = mine(
        tmp_path, section, engine_kind, workload={"output": "embeddings", "support": support, "min_support": 8}
    )
    host = nx.read_edgelist(section["path"], nodetype=int)
    labels = dict(tuple(map(int, line.split())) for line in Path(section["labels"]).read_text().splitlines())
    rows = result.table("embeddings").to_pylist()
    found: dict[int, set[frozenset[frozenset[int]]]] = {}
    for row in rows:
        pattern = result.patterns[row["pattern"]]
        vertices = [row[f"v{i}"] for i in range(4)]
        size = len(pattern.labels or ())
        assert vertices[size:] == [None] * (4 - size)
        assert [labels[v] for v in vertices[:size]] == list(pattern.labels or ())
        edges = [tuple(map(int, edge.split("-"))) for edge in pattern.pattern.split(",")]
        assert all(host.has_edge(vertices[a], vertices[b]) for a, b in edges)
        found.setdefault(row["pattern"], set()).add(frozenset(frozenset((vertices[a], vertices[b])) for a, b in edges))
    assert len(rows) == sum(len(subgraphs) for subgraphs in found.values())
    assert [len(found[i]) for i in range(len(result.patterns))] == [one.count for one in result.patterns]
    assert len(result.patterns) > 5


@pytest.mark.parametrize("kind", ["frequent", "transactions"])
def test_without_frequent_patterns_the_embeddings_have_their_columns(tmp_path: Path, kind: str) -> None:
    section = labelled_graph(tmp_path, vertices=6, edges=6, labels=6)
    if kind == "transactions":
        (tmp_path / "graphs.txt").write_text("t # 0\nv 0 1\nv 1 2\ne 0 1 1\nt # 1\nv 0 3\nv 1 4\ne 0 1 1\n")
        section = {"path": str(tmp_path / "graphs.txt")}
    wanted = {"kind": kind, "min_support": 2 if kind == "transactions" else 6, "max_edges": 2, "output": "embeddings"}
    result = mine(tmp_path, section, "cpu", workload=wanted)
    assert (result.patterns, result.table("patterns").num_rows) == ((), 0)
    table = result.table("embeddings")
    assert (table.column_names, table.num_rows) == (["pattern", "v0", "v1", "v2"], 0)


def test_what_is_frequent_can_be_asked_for_alone(engine_kind: str, tmp_path: Path) -> None:
    section = labelled_graph(tmp_path, vertices=120, edges=600)
    exact = mine(tmp_path, section, engine_kind, "exact", workload={"min_support": 15})
    quick = mine(tmp_path, section, engine_kind, "quick", workload={"min_support": 15, "exact": False})
    assert len(exact.patterns) > 20
    assert [(one.pattern, one.labels) for one in quick.patterns] == [
        (one.pattern, one.labels) for one in exact.patterns
    ]
    assert {(one.support, one.count) for one in quick.patterns} == {(15, None)}
    assert "count" not in quick.to_json()["patterns"][0]


def test_an_exact_support_needs_no_asking_where_it_is_cheap(tmp_path: Path) -> None:
    with pytest.raises(longwall.InputError, match=r"workload.exact: .*always exact; remove it"):
        mine(tmp_path, labelled_graph(tmp_path), "cpu", workload={"support": "instances", "exact": False})


def test_a_run_without_frequent_patterns_is_a_run(engine_kind: str, tmp_path: Path) -> None:
    result = mine(tmp_path, labelled_graph(tmp_path), engine_kind, workload={"min_support": 60})
    assert result.patterns == ()
    assert result.table("patterns").num_rows == 0


def test_restrictions_pick_one_of_all_mappings() -> None:
    codes = {
        "square": [(0, 1), (1, 2), (2, 3), (3, 0)],
        "triangle": [(0, 1), (1, 2), (2, 0)],
        "star": [(0, 1), (1, 2), (1, 3), (1, 4)],
        "path": [(0, 1), (1, 2), (2, 3)],
    }
    for name, edges in codes.items():
        code = np.array([(i, j, 0, 0, 0) for i, j in edges], np.int32)
        count = np.zeros(1, np.int64)
        automorphisms(code[np.newaxis], 0, 1, count, np.zeros(1, np.uint8))
        pattern = nx.Graph(edges)
        mappings = list(nx.algorithms.isomorphism.GraphMatcher(pattern, pattern).isomorphisms_iter())
        assert count[0] == len(mappings), name
        pairs = restrictions(code)
        for ids in itertools.permutations(range(len(pattern))):
            kept = [m for m in mappings if all(ids[m[a]] < ids[m[b]] for a, b in pairs)]
            assert len(kept) == 1, name


def test_leaves_that_are_alike_are_tried_once() -> None:
    """A star has as many automorphisms as its leaves have orders, too many to go through."""
    for leaves in (2, 3, 10, 20):
        code = np.array([[(0, 1, 0, 0, 0), *((1, leaf, 0, 0, 0) for leaf in range(2, leaves + 1))]], np.int32)
        count = np.zeros(1, np.int64)
        automorphisms(code, 0, 1, count, np.zeros(1, np.uint8))
        assert count[0] == math.factorial(leaves)
    # Two stars of labelled leaves, joined by an edge; two leaves have edges of another label.
    edges = [(0, 1, 0, 0, 1), (1, 2, 1, 0, 0), (1, 3, 1, 0, 0), (1, 4, 1, 0, 1), (4, 5, 1, 0, 0), (4, 6, 1, 0, 0)]
    edges += [(4, 7, 1, 1, 0), (4, 8, 1, 1, 0)]
    automorphisms(np.array([edges], np.int32), 0, 1, count, np.zeros(1, np.uint8))
    assert count[0] == math.factorial(3) * 2 * 2


def test_kernels_run_beside_the_main_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The main thread is the one that receives an interrupt."""
    threads = set()

    class Noted(CpuGrower):
        def __getattribute__(self, name: str) -> Any:
            if name in ("count", "mark_images", "child_counts", "children"):
                threads.add(threading.current_thread())
            return super().__getattribute__(name)

    monkeypatch.setattr(cpu, "grower", Noted)
    mine(tmp_path, labelled_graph(tmp_path), "cpu", threads=1)
    assert threads
    assert threading.main_thread() not in threads


def test_rows_that_were_written_are_not_written_again_where_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = labelled_graph(tmp_path)
    wanted = {"output": "embeddings", "max_edges": 2}
    whole = mine(tmp_path, section, "cpu", "whole", workload=wanted)
    monkeypatch.setattr(grow_patterns, "_CHILD_BYTES", 1 << 22)  # so that rows grow in several parts
    calls = itertools.count()
    real = CpuGrower.children

    def short(self: CpuGrower, *arguments: Any) -> Any:
        if arguments[0].shape[1] > 1 and next(calls) % 3 == 1:
            raise MemoryError
        return real(self, *arguments)

    monkeypatch.setattr(CpuGrower, "children", short)
    parts = mine(tmp_path, section, "cpu", "parts", workload=wanted, memory={"host": "400MiB"})
    assert next(calls) > 10
    assert parts.table().sort_by(ROW[:4]) == whole.table().sort_by(ROW[:4])


def test_an_embedding_that_grows_into_too_many_is_refused_with_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = labelled_graph(tmp_path)
    monkeypatch.setattr(grow_patterns, "_CHILD_BYTES", 3 << 20)
    with pytest.raises(longwall.RunError, match=r"no room for what one embedding grows into .*raise memory.host"):
        mine(tmp_path, section, "cpu", memory={"host": "20MiB"})


@pytest.mark.slow
@pytest.mark.parametrize("host", ["2200KiB", "2600KiB"])
def test_chunks_make_room_for_what_grows_them(tmp_path: Path, host: str) -> None:
    section = labelled_graph(tmp_path, vertices=4000, edges=12000, labels=6)
    wanted = {"min_support": 150}
    whole = mine(tmp_path, section, "cpu", "whole", workload=wanted)
    small = mine(tmp_path, section, "cpu", "small", workload=wanted, memory={"host": host})
    assert small.patterns == whole.patterns
    assert len(whole.patterns) > 500


def test_images_that_do_not_fit_are_reported_with_the_key_to_raise(engine_kind: str, tmp_path: Path) -> None:
    vertices = 100_000 if engine_kind == "cuda" else 30_000
    (tmp_path / "edges.txt").write_text("".join(f"{v} {v + 1}\n" for v in range(vertices)))
    memory = {"host": "1GiB", "device": "2MiB"} if engine_kind == "cuda" else {"host": "3MiB"}
    text = r"no room for the images of patterns \(.*: raise memory.host"
    if engine_kind == "cuda":
        text = "the images of one pattern need .* for each worker: raise memory.device"
    with pytest.raises(longwall.RunError, match=text):
        mine(tmp_path, {"path": str(tmp_path / "edges.txt")}, engine_kind, memory=memory, workload={"exact": False})


def test_as_many_edge_labels_as_edges(engine_kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = nx.gnm_random_graph(50, 120, seed=2)
    lines = ["t # 1", *(f"v {v} {v % 3}" for v in graph)]
    lines += [f"e {u} {v} {2**31 - 1 - 7 * number}" for number, (u, v) in enumerate(graph.edges)]
    (tmp_path / "graph.lg").write_text("\n".join(lines))
    monkeypatch.setattr(typed_graph, "_ARCS_AT_ONCE", 10)
    found = mine(
        tmp_path, {"path": str(tmp_path / "graph.lg")}, engine_kind, workload={"min_support": 1, "max_edges": 2}
    )
    wedges = sum(degree * (degree - 1) // 2 for _, degree in graph.degree)
    assert [one.count for one in found.patterns] == [1] * (120 + wedges)
    assert sorted(one.edge_labels[0] for one in found.patterns[:120] if one.edge_labels) == sorted(
        2**31 - 1 - 7 * number for number in range(120)
    )


@pytest.mark.parametrize("exact", [True, False])
def test_a_vertex_with_more_edge_types_than_a_word_has_bits(engine_kind: str, tmp_path: Path, exact: bool) -> None:
    """Two hubs, joined by an edge, with the same 150 labels of edges to leaves: some labels twice, and three times."""
    leaves = [label for label in range(150) for _ in range(1 + (label % 50 == 0) + (label == 50))]
    edges = [(0, 1, 999)]
    edges += [(hub, 2 + hub * len(leaves) + i, label) for hub in (0, 1) for i, label in enumerate(leaves)]
    lines = ["t # 1", *(f"v {v} {int(v > 1)}" for v in range(2 + 2 * len(leaves)))]
    (tmp_path / "graph.lg").write_text("\n".join([*lines, *(f"e {u} {v} {label}" for u, v, label in edges), ""]))
    wanted = {"min_support": 2, "max_edges": 2, "exact": exact}
    found = mine(tmp_path, {"path": str(tmp_path / "graph.lg")}, engine_kind, workload=wanted)
    of_label = Counter(leaves)
    supports = {(999,): 2} | dict.fromkeys([(label,) for label in of_label], 2)
    supports |= dict.fromkeys([(label, 999) for label in of_label], 2)
    supports |= dict.fromkeys(combinations(range(150), 2), 2)
    supports |= {(label, label): 2 for label, times in of_label.items() if times > 1}
    assert {tuple(sorted(one.edge_labels or ())): one.support for one in found.patterns} == supports
    if exact:
        counts = {tuple(sorted(one.edge_labels or ())): one.count for one in found.patterns}
        assert counts[50, 50] == 6
        assert counts[0, 50] == 12
        assert counts[50, 999] == 6
        assert sum(counts.values()) == 1 + 2 * len(leaves) + 2 * math.comb(len(leaves) + 1, 2)


def test_more_edge_types_than_can_be_numbered_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    path.write_text("1 2\n")
    host = MemoryBudget("memory.host", 1 << 30)
    labels = typed_graph.Labels(open_graph(path), host)
    labels.values, labels.edge_values = range(2**31), range(2)  # type: ignore[assignment]
    with pytest.raises(longwall.InputError, match=r"2,147,483,648 vertex labels and 2 edge labels .*merge rare labels"):
        labels.types(host)
    labels.close()
    assert host.used == 0


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("level", [1, 2])
def test_a_run_is_resumed_between_levels_with_other_budgets(
    engine_kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: int
) -> None:
    section = labelled_graph(tmp_path)
    wanted = {"output": "embeddings"}
    whole = mine(tmp_path, section, engine_kind, "whole", workload=wanted)
    real = pattern_grower.PatternGrower.grown

    def interrupted(self: Any, *arguments: Any) -> Any:
        if arguments[-1].patterns.num_edges == level:
            raise KeyboardInterrupt
        return real(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(pattern_grower.PatternGrower, "grown", interrupted)
        with pytest.raises(KeyboardInterrupt):
            mine(tmp_path, section, engine_kind, workload=wanted, memory={"spill": str(tmp_path / "spill")})
    assert not (tmp_path / "spill").exists()
    monkeypatch.setattr(pattern_grower, "_MOST_KNOWN", 200)
    resumed = longwall.resume(tmp_path / "runs" / "x", overrides=["memory.host=2MiB", "engine.threads=1"])
    assert resumed.patterns == whole.patterns
    assert resumed.table().sort_by(ROW[:5]) == whole.table().sort_by(ROW[:5])
