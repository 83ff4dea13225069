"""Workers that share no memory with the coordinator have files of their own for a graph that they have no room for."""

from __future__ import annotations

from pathlib import Path

import pytest
from kill import left_in
from rig import local_cluster

import longwall
from longwall.storage.generators.kinds import generate

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'longwall[cluster]'")


@pytest.mark.slow
def test_a_worker_whose_share_does_not_hold_the_graph(tmp_path: Path) -> None:
    """Of the budget, a worker has a half: less than the graph, which the coordinator has in memory."""
    graph = generate("erdos-renyi", vertices=50_000, edges=500_000, seed=1)
    graph.save(tmp_path / "graph")
    config = {
        "graph": {"path": tmp_path / "graph"},
        "workload": {"kind": "match", "pattern": "cycle-4"},
        "engine": {"kind": "cpu", "threads": 1},
        "run": {"directory": tmp_path / "runs"},
    }
    memory = {"host": 2 * graph.nbytes - 2, "spill": tmp_path / "spill"}
    expected = longwall.run(config | {"memory": {"spill": tmp_path / "spill"}}).count
    with local_cluster(1) as cluster:
        scheduler = {"kind": "dask", "address": cluster.scheduler_address}
        result = longwall.run(config | {"memory": memory, "scheduler": scheduler})
    assert result.count == expected
    assert result.engine == "cpu"
    assert left_in(tmp_path / "spill") == []
