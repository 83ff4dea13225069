"""Diamonds of a graph that a device holds: rows in bitmaps or, with many vertices, triangles at every edge."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest

import longwall
from longwall.pipeline.planning.methods import diamonds
from longwall.storage.generators.kinds import generate


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("many", "method"), [(1 << 21, "triangle pairs"), (100, "triangles per edge")], ids=["few", "many"]
)
def test_diamonds_are_counted_by_what_the_vertices_suit(
    many: int, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diamonds, "_MANY_EDGES", many)
    graph = generate("rmat", seed=4, scale=8, edge_factor=8)
    whole = nx.Graph()
    ends = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
    whole.add_edges_from(zip(ends.tolist(), graph.indices.tolist(), strict=True))
    common = [len(list(nx.common_neighbors(whole, u, v))) for u, v in whole.edges]
    result = longwall.run(
        {
            "graph": graph,
            "workload": {"kind": "match", "pattern": "diamond"},
            "engine": {"kind": "cuda"},
            "run": {"directory": str(tmp_path), "name": "run"},
        }
    )
    assert result.count == sum(c * (c - 1) // 2 for c in common)
    assert method in pq.read_table(Path(result.path, "metrics.parquet"))["stage"].to_pylist()
