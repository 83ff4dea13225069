"""What workloads have of docs/seeds.md: the counts of igraph, on both engines, in one process and on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import naive
import pytest
from breakable import EDGES, answer
from run_configs import run_config, write_edges

import longwall

MOD_LABELS = (0, 1, 2, 3, 0)
LABELS = {vertex: vertex % 4 for vertex in range(80)}
PLAIN = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 4), (3, 4))  # P4 of T-DFS


def embeddings(query: naive.Query) -> int:
    """How many igraph finds."""
    return naive.igraph_count_mappings(EDGES, query, LABELS) // len(naive.automorphisms(query))


def all_motifs(k: int) -> int:
    """How many connected sets of k vertices igraph finds."""
    classes = [naive.isomorphism_class(query) for query in naive.connected_patterns(k)]
    counts = naive.igraph_motifs(EDGES, k)
    return sum(counts[number] for number in classes)


def quasi_cliques(k: int) -> int:
    """How many sets of k vertices with at most one absent edge igraph finds."""
    pairs = tuple(combinations(range(k), 2))
    queries = (naive.Query(k, edges, None, induced=True) for edges in (pairs, pairs[1:]))
    return sum(embeddings(query) for query in queries)


@dataclass(frozen=True)
class Row:
    """A row of docs/seeds.md: a workload, and what igraph counts."""

    workload: dict[str, Any]
    expected: Callable[[], int]
    labelled: bool = False


MATCH = {"kind": "match", "pattern": naive.Query(5, PLAIN).text}
ROWS = {
    "D2, T3": Row(MATCH, lambda: embeddings(naive.Query(5, PLAIN))),
    "D3, pattern-aware": Row({"kind": "motifs", "k": 4, "method": "counting"}, lambda: all_motifs(4)),
    "D3, pattern-oblivious": Row({"kind": "motifs", "k": 4, "method": "enumeration"}, lambda: all_motifs(4)),
    "D6": Row({"kind": "quasi-cliques", "k": 5, "missing": 1}, lambda: quasi_cliques(5)),
    "T4": Row(
        MATCH | {"pattern_labels": list(MOD_LABELS)},
        lambda: embeddings(naive.Query(5, PLAIN, MOD_LABELS)),
        labelled=True,
    ),
    "joins": Row(MATCH | {"output": "embeddings", "join": "edges"}, lambda: embeddings(naive.Query(5, PLAIN))),
}


def config(folder: Path, row: Row, engine: str, name: str, **scheduler: Any) -> dict[str, Any]:
    return run_config(
        folder,
        write_edges(folder, EDGES, LABELS if row.labelled else None),
        row.workload,
        engine={"kind": engine},
        memory={"host": "1GiB", "device": "256MiB"},
        scheduler=scheduler,
        run={"name": name},
    )


def total(result: longwall.Result) -> int:
    return sum(one.count or 0 for one in result.patterns)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", ROWS)
def test_a_row_counts_what_igraph_counts(tmp_path: Path, engine_kind: str, name: str) -> None:
    row = ROWS[name]
    assert total(longwall.run(config(tmp_path, row, engine_kind, "local"))) == row.expected() > 10


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", ROWS)
def test_a_cluster_counts_the_same(cluster: Any, tmp_path: Path, engine_kind: str, name: str) -> None:
    local = longwall.run(config(tmp_path, ROWS[name], "cpu", "local"))
    address = cluster.scheduler_address
    spread = longwall.run(config(tmp_path, ROWS[name], engine_kind, "cluster", kind="dask", address=address))
    assert spread.engine == engine_kind
    assert answer(spread.path) == answer(local.path)
    assert total(spread) > 10
