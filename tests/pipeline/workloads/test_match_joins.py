"""Joins by vertices and by edges find the same embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import naive
import pyarrow.parquet as pq
import pytest
from breakable import EDGES, LABELS
from explained import explain
from run_configs import run_config, write_edges

import longwall


def config(folder: Path, **sections: Any) -> dict[str, Any]:
    return run_config(folder, write_edges(folder, EDGES, LABELS), **sections)


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("order", ["depth", "levels"])
@pytest.mark.parametrize("labels", [None, [0, 1, 1, 2]])
@pytest.mark.parametrize("induced", [False, True])
def test_edge_joins_list_the_same_embeddings(
    tmp_path: Path, engine_kind: str, induced: bool, labels: list[int] | None, order: str
) -> None:
    edges = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3))
    workload = {"kind": "match", "pattern": "0-1,0-2,0-3,1-2,1-3", "induced": induced, "output": "embeddings"}
    more: dict[str, Any] = {"engine": {"kind": engine_kind}, "scheduler": {"order": order}}
    chosen = workload | {"join": "edges"} | ({} if labels is None else {"pattern_labels": labels})
    found = longwall.run(config(tmp_path, workload=chosen, **more))
    rows = [tuple(row.values()) for row in found.table().to_pylist()]
    query = naive.Query(4, edges, None if labels is None else tuple(labels), induced)
    listed = {naive.edge_set(row, query) for row in rows}
    assert listed == naive.embeddings(EDGES, query, LABELS if labels else None)
    assert len(listed) == len(rows) == found.count


@pytest.mark.slow
def test_little_memory_changes_nothing(tmp_path: Path) -> None:
    workload = {"kind": "match", "pattern": "house", "join": "edges"}
    small = {"memory": {"host": "1MiB"}, "engine": {"kind": "cpu", "threads": 2}}
    found = longwall.run(config(tmp_path, workload=workload, **small))
    assert found.count == longwall.run(config(tmp_path, workload=workload | {"join": "vertices"})).count
    stages = pq.read_table(Path(found.path) / "metrics.parquet").to_pylist()
    assert {row["level"] for row in stages if row["stage"] == "extend"} >= {2, 3}


def test_explain_shows_what_is_verified(tmp_path: Path) -> None:
    workload = {"kind": "match", "pattern": "diamond", "join": "edges"}
    text = explain(config(tmp_path, workload=workload, engine={"kind": "cpu"}))
    assert "filter       rows whose vertex of level 2 is adjacent to those of levels 1" in text
    assert "prediction" not in text
