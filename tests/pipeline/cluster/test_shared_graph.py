"""The workers of one machine map the graph that the coordinator read."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longwall
from longwall.pipeline.cluster import shared_graph
from longwall.pipeline.cluster.shared_graph import GraphSharer, SharedGraph, graph_of_machine, map_graph
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
assert "distributed" not in sys.modules, "another thread may be importing it, which is in cycles"
"""
SHARE = """
import os, sys, threading, time
import longwall
from longwall.pipeline.cluster.shared_graph import graph_of_machine
from longwall.storage.memory.reservations import MemoryBudget
name, log, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])

def read(sharer):
    with open(log, "a") as file:
        print(os.getpid(), file=file)
    time.sleep(seconds)
    graph = longwall.open_graph(os.path.join(os.path.dirname(log), "edges.txt"))
    return graph, sharer.share(graph, MemoryBudget("memory.host", 1 << 30))

with graph_of_machine(name, read, threading.Event()) as (graph, _):
    print(graph.content_hash, int(graph.indices.sum()), flush=True)
    sys.stdin.read()
"""
SHARE = """
import os, sys, threading, time
import longwall
from longwall.pipeline.cluster.shared_graph import graph_of_machine
from longwall.storage.memory.reservations import MemoryBudget
name, log, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])

def read(sharer):
    with open(log, "a") as file:
        print(os.getpid(), file=file)
    time.sleep(seconds)
    graph = longwall.open_graph(os.path.join(os.path.dirname(log), "edges.txt"))
    return graph, sharer.share(graph, MemoryBudget("memory.host", 1 << 30))

with graph_of_machine(name, read, threading.Event()) as (graph, _):
    print(graph.content_hash, int(graph.indices.sum()), flush=True)
    sys.stdin.read()
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


@pytest.mark.quick_cases(1)
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
    with pytest.raises(BudgetExceeded, match=r"no room for what the workers share of the graph .* raise memory\.host"):
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


@pytest.mark.slow
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


class Sharers:
    """Processes that ask for one graph of the machine."""

    def __init__(self, folder: Path) -> None:
        (folder / "edges.txt").write_text("".join(f"{u} {v}\n" for u, v in EDGES.tolist()))
        self.graph = longwall.open_graph(folder / "edges.txt")
        self.log, self.name = folder / "log", uuid.uuid4().hex
        self.log.touch()

    def start(self, seconds: float) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", SHARE, self.name, str(self.log), str(seconds)]
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def readers(self) -> list[int]:
        return [int(line) for line in self.log.read_text().split()]

    def finish(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        expected = f"{self.graph.content_hash} {int(self.graph.indices.sum())}"
        assert process.stdout.readline().strip() == expected
        process.communicate("")
        assert process.returncode == 0


def wait_for(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
def test_processes_of_a_machine_read_a_graph_once(tmp_path: Path) -> None:
    sharers = Sharers(tmp_path)
    first = sharers.start(0.5)
    wait_for(sharers.readers)
    others = [sharers.start(0.0) for _ in range(2)]
    for process in (*others, first):
        sharers.finish(process)
    assert sharers.readers() == [first.pid]


@pytest.mark.slow
def test_where_the_reader_is_killed_another_one_reads(tmp_path: Path) -> None:
    sharers = Sharers(tmp_path)
    first = sharers.start(600.0)
    wait_for(sharers.readers)
    second = sharers.start(0.0)
    time.sleep(0.5)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    wait_for(lambda: len(sharers.readers()) == 2)
    third = sharers.start(0.0)
    for process in (third, second):
        sharers.finish(process)
    assert sharers.readers() == [first.pid, second.pid]


def test_what_a_reader_raises_ends_its_turn() -> None:
    name, graph = uuid.uuid4().hex, longwall.graph(EDGES)

    def fail(sharer: GraphSharer) -> Any:
        raise RunError("no such file")

    with pytest.raises(RunError, match="no such file"), graph_of_machine(name, fail, threading.Event()):
        raise AssertionError
    seen: list[int] = []

    def read(sharer: GraphSharer) -> tuple[Graph, SharedGraph]:
        seen.append(1)
        return graph, sharer.share(graph, MemoryBudget("memory.host", 1 << 20))

    with (
        graph_of_machine(name, read, threading.Event()) as (mine, _),
        graph_of_machine(name, read, threading.Event()) as (other, _),
    ):
        assert mine is graph
        assert np.array_equal(other.indices, graph.indices)
        assert not np.shares_memory(other.indices, graph.indices)
        assert seen == [1]
    with graph_of_machine(name, read, threading.Event()):
        assert seen == [1, 1], "the name is free again"


def test_waiting_is_cancelled_and_another_user_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    name, graph, cancel = uuid.uuid4().hex, longwall.graph(EDGES), threading.Event()

    def read(sharer: GraphSharer) -> tuple[Graph, SharedGraph]:
        return graph, sharer.share(graph, MemoryBudget("memory.host", 1 << 20))

    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        silent.bind(f"\0longwall-graph-{os.getuid()}-{name}")
        silent.listen()
        threading.Timer(0.3, cancel.set).start()
        with pytest.raises(RunError, match="cancelled"), graph_of_machine(name, read, cancel):
            raise AssertionError
        monkeypatch.setattr(shared_graph, "_same_user", lambda peer: False)
        with graph_of_machine(name, read, threading.Event()) as (own, _):
            assert own is graph
