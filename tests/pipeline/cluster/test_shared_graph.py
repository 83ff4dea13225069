"""The workers of one machine map the graph that the coordinator read."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longwall
from longwall.pipeline.cluster import shared_graph
from longwall.pipeline.cluster.shared_graph import GraphSharer, SharedGraph, map_graph
from longwall.storage.errors import RunError
from longwall.storage.graph.graph import Graph
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget

EDGES = np.random.default_rng(3).integers(0, 300, (2000, 2))
READ = """
import sys, json
from longwall.pipeline.cluster.shared_graph import SharedGraph, map_graph
from longwall.storage.graph.store_writer import write_graph
graph = map_graph(SharedGraph(*json.loads(sys.argv[1])))
graph.indices[:] = graph.indices
write_graph(graph, sys.argv[2])
graph.indices[:] = 0
"""


@pytest.fixture(params=["ids", "names", "labels"])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Graph:
    if request.param == "names":
        return longwall.graph([(f"vertex {u}", f"vertex {v}") for u, v in EDGES.tolist()])
    if request.param == "ids":
        return longwall.graph(EDGES)
    (tmp_path / "edges.txt").write_text("".join(f"{u} {v}\n" for u, v in EDGES.tolist()))
    (tmp_path / "labels.txt").write_text("".join(f"{u} {u % 3}\n" for u in range(300)))
    return longwall.open_graph(tmp_path / "edges.txt", tmp_path / "labels.txt")


def arrays(graph: Graph) -> dict[str, Any]:
    fields = {one.name: getattr(graph, one.name) for one in dataclasses.fields(graph)}
    return {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}


def in_shared_memory(graph: Graph, sharer: GraphSharer) -> Graph:
    indices = sharer.array(graph.indices.size, graph.indices.dtype)
    indices[:] = graph.indices
    return dataclasses.replace(graph, indices=indices)


def test_another_process_has_the_same_graph(graph: Graph, tmp_path: Path) -> None:
    sharer, budget = GraphSharer(), MemoryBudget("memory.host", 1 << 20)
    mine = in_shared_memory(graph, sharer)
    shared = sharer.share(mine, budget)
    others = sum(array.nbytes for name, array in arrays(graph).items() if name != "indices")
    assert others <= budget.used <= others + shared.pickled + 64 * (len(shared.arrays) + 1)
    store = tmp_path / "store"
    subprocess.run([sys.executable, "-c", READ, json.dumps(shared), str(store)], check=True)
    theirs = longwall.open_graph(store)
    assert theirs.content_hash == graph.content_hash
    for name, array in arrays(graph).items():
        assert np.array_equal(getattr(theirs, name), array), name
        assert np.array_equal(getattr(mine, name), array), "what others write is theirs"


def test_no_room_for_copies(graph: Graph) -> None:
    with pytest.raises(BudgetExceeded, match=r"what the workers share of the graph needs .* raise memory\.host"):
        GraphSharer().share(graph, MemoryBudget("memory.host", 1 << 10))


def test_the_coordinator_is_gone() -> None:
    with pytest.raises(RunError, match="the graph of the coordinator cannot be mapped"):
        map_graph(SharedGraph("/proc/0/fd/0", 1, []))


def test_memory_is_freed(graph: Graph) -> None:
    sharer = GraphSharer()
    path = sharer.share(graph, MemoryBudget("memory.host", 1 << 20)).path
    assert Path(path).exists()
    del sharer
    assert not Path(path).exists()


def test_workers_do_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'longwall[cluster]'")
    (tmp_path / "graph.txt").write_text("".join(f"{u} {v}\n" for u, v in EDGES.tolist()))
    seen: list[Any] = []
    real = shared_graph.GraphSharer.share

    def share(sharer: GraphSharer, graph: Graph, host: MemoryBudget) -> SharedGraph:
        (tmp_path / "graph.txt").unlink()  # the workers would miss it
        seen.append(graph)
        return real(sharer, graph, host)

    monkeypatch.setattr(shared_graph.GraphSharer, "share", share)
    spec: dict[str, Any] = {
        "graph": {"path": str(tmp_path / "graph.txt")},
        "workload": {"kind": "triangles"},
        "engine": {"kind": "cpu"},
        "memory": {"host": "1GiB", "spill": str(tmp_path / "spill")},
        "scheduler": {"kind": "dask", "workers": 2},
        "run": {"directory": str(tmp_path / "runs"), "name": "run"},
    }
    assert longwall.run(spec).count == longwall.triangles(longwall.graph(EDGES))
    assert len(seen) == 1
