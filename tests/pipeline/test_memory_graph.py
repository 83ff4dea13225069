"""Runs whose graph is in memory: the answers of a file, nothing that TOML can say, and resuming with the graph."""

import json
import shutil
from pathlib import Path

import networkx as nx
import pytest
from explained import explain
from run_configs import run_config

import longwall
from longwall.pipeline.run_store.run_directory import RunDirectory
from longwall.storage.errors import InputError

KARATE = nx.karate_club_graph()
TRIANGLES = sum(nx.triangles(KARATE).values()) // 3


@pytest.fixture
def graph(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return longwall.graph(KARATE)


def config(graph, **sections):
    return run_config(None, graph, {"kind": "triangles"}, **sections)


def failed(graph, monkeypatch, advice):
    """The folder of a run that had no room for its results."""

    def finish(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(RunDirectory, "finish", finish)
        with pytest.raises(longwall.RunError, match=advice):
            longwall.run(config(graph))
    return Path("runs/triangles").absolute()


def test_a_run_works_on_a_graph_in_memory(graph):
    result = longwall.run(config(graph))
    assert result.count == TRIANGLES
    assert sorted(path.name for path in Path().iterdir()) == ["runs"]
    facts = json.loads((result.path / "manifest.json").read_text())["graph"]
    assert facts["memory"] is True
    assert (facts["vertices"], facts["edges"], facts["hash"]) == (34, 78, graph.content_hash)


def test_overrides_and_explain_take_a_graph_in_memory_too(graph):
    wanted = ["workload.kind=match", "workload.pattern=diamond"]
    assert longwall.run(config(graph), overrides=wanted).workload == "match"
    assert "34 vertices, 78 edges" in explain(config(graph))
    with pytest.raises(InputError, match=r"graph: expected a section, or a graph as longwall\.graph.* not networkx"):
        longwall.run(config(KARATE))
    with pytest.raises(InputError, match="give exactly one of path"):
        longwall.run(config(graph), overrides=["graph.path=x.txt"])


def test_the_graph_counts_in_the_budget(graph):
    with pytest.raises(InputError, match="no room for the graph"):
        longwall.run(config(graph, memory={"host": 1000}))
    assert not list(Path().iterdir())


def test_a_run_is_resumed_with_its_graph(graph, monkeypatch):
    path = failed(graph, monkeypatch, r'go on with: longwall\.resume\(".*", graph=graph\)')
    with pytest.raises(InputError, match=r"was in memory: give it again in Python, longwall\.resume\("):
        longwall.resume(path)
    with pytest.raises(InputError, match="is not the graph that the run began with"):
        longwall.resume(path, graph=longwall.graph([(0, 1)]))
    with pytest.raises(InputError, match=r"graph: expected the longwall\.Graph"):
        longwall.resume(path, graph=KARATE)
    assert longwall.resume(path, graph=longwall.graph(KARATE)).count == TRIANGLES


def test_a_run_of_a_file_takes_no_graph(graph, monkeypatch):
    graph.save("karate.zarr")
    path = failed({"path": "karate.zarr"}, monkeypatch, "go on with: longwall resume ")
    with pytest.raises(InputError, match="leave out graph="):
        longwall.resume(path, graph=graph)
    assert longwall.resume(path).count == TRIANGLES


def test_a_config_cannot_name_a_graph_in_memory(graph):
    path = longwall.run(config(graph)).path
    copy = shutil.copy(path / "config.toml", "mine.toml")
    with pytest.raises(InputError, match=r"mine\.toml: graph\.in_memory: only Python has graphs in memory"):
        longwall.run(copy)
    with pytest.raises(InputError, match="transactions are for files"):
        longwall.run(config({"in_memory": "x", "labels": "y"}))


def test_a_cluster_elsewhere_cannot_have_it(graph):
    section = {"kind": "dask", "address": "tcp://10.0.0.1:8786"}
    with pytest.raises(InputError, match=r"graph\.save\(path\), and give graph\.path"):
        longwall.run(config(graph, scheduler=section))


@pytest.mark.slow
@pytest.mark.cluster
def test_processes_of_this_machine_read_a_copy(graph):
    result = longwall.run(config(graph, scheduler={"kind": "dask", "workers": 2}))
    assert (result.count, sorted(path.name for path in Path().iterdir())) == (TRIANGLES, ["runs"])
