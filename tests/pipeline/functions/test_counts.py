"""The functions that count, against networkx and igraph, in all spellings of graphs and patterns."""

import os
import shutil
import warnings
from pathlib import Path

import igraph
import networkx as nx
import numpy as np
import pytest
from cases import each_case
from networkx.algorithms.isomorphism import GraphMatcher

import longwall
from longwall.pipeline.patterns.pattern_of import pattern as pattern_of
from longwall.storage.errors import InputError, RunError


def embeddings(data: nx.Graph, pattern: str, *, induced: bool = False) -> int:
    small = nx.Graph(pattern_of(pattern).edges)
    search = "subgraph_isomorphisms_iter" if induced else "subgraph_monomorphisms_iter"
    found = sum(1 for _ in getattr(GraphMatcher(data, small), search)())
    return found // sum(1 for _ in GraphMatcher(small, small).isomorphisms_iter())


@each_case("induced", [False, True])
@each_case("pattern", ["wedge", "diamond", "cycle-4", "tailed-triangle", "(a)-(b)-(c)-(d)-(e), (a)-(c)"])
def test_count_is_that_of_networkx(karate, graph, pattern, induced):
    assert longwall.count(graph, pattern, induced=induced) == embeddings(karate, pattern, induced=induced)


def test_labels_are_in_the_pattern_or_beside_it(karate):
    labelled = nx.Graph(karate.edges)
    nx.set_node_attributes(labelled, {node: node % 3 for node in labelled}, "label")
    graph = longwall.graph(labelled, labels="label")
    wanted = sum((labelled.nodes[u]["label"], labelled.nodes[v]["label"]) in ((0, 1), (1, 0)) for u, v in karate.edges)
    query = nx.Graph([("x", "y")])
    nx.set_node_attributes(query, {"x": 0, "y": 1}, "label")
    assert longwall.count(graph, "(a:0)-(b:1)") == longwall.count(graph, query) == wanted
    assert (
        longwall.count(graph, "edge", labels=[0, 1])
        == longwall.count(graph, [(0, 1)], labels=np.array([0, 1]))
        == wanted
    )
    with pytest.raises(InputError, match="the label 'Person', but labels of this graph are integers"):
        longwall.count(graph, "(a:Person)-(b)")
    with pytest.raises(InputError, match="label of an edge"):
        longwall.count(graph, "(a)-[:1]-(b)")


def test_graphs_have_many_spellings(karate, graph, folder):
    pairs = np.array(karate.edges)
    graph.save(folder / "karate.zarr")
    (folder / "karate.txt").write_text("\n".join(f"{u} {v}" for u, v in karate.edges) + "\n")
    sources = [karate, igraph.Graph(list(karate.edges)), nx.to_scipy_sparse_array(karate), pairs, list(karate.edges)]
    sources += [folder / "karate.zarr", "karate.txt", graph]
    assert {longwall.count(source, "triangle") for source in sources} == {45}
    (folder / "karate.txt").unlink()
    shutil.rmtree(folder / "karate.zarr")


def test_triangles_of_vertices_are_those_of_networkx(karate, graph):
    wanted = nx.triangles(karate)
    assert longwall.triangles(graph) == sum(wanted.values()) // 3
    table = longwall.triangles(graph, per="vertex")
    assert dict(zip(table["vertex"].to_pylist(), table["triangles"].to_pylist(), strict=True)) == wanted
    assert table["vertex"].to_pylist() == sorted(wanted)


@pytest.mark.parametrize("k", [3, 4, 5])
def test_cliques_are_those_of_networkx(karate, graph, k):
    wanted = sum(len(clique) == k for clique in nx.enumerate_all_cliques(karate))
    assert longwall.cliques(graph, k) == wanted


@pytest.mark.parametrize("k", [3, 4])
def test_motifs_are_those_of_igraph(karate, graph, k):
    table = longwall.motifs(graph, k).to_pylist()
    counts = igraph.Graph(list(karate.edges)).motifs_randesu(size=k)
    assert sorted(row["count"] for row in table) == sorted(int(one) for one in counts if not np.isnan(one))
    assert {row["name"] for row in table} >= {"triangle", "wedge"} if k == 3 else {"diamond", "clique-4", "star-3"}
    assert all(row["edges"] == len(pattern_of(row["pattern"]).edges) for row in table)
    for row in table:
        if row["name"]:
            named = nx.Graph(pattern_of(row["name"]).edges)
            assert nx.is_isomorphic(named, nx.Graph(pattern_of(row["pattern"]).edges))


def test_orbits_are_features_of_vertices(karate, graph):
    table = longwall.orbits(graph, 4)
    assert table.column_names == ["vertex", *(f"orbit_{i}" for i in range(15))]
    assert table["vertex"].to_pylist() == sorted(karate)
    assert table["orbit_0"].to_pylist() == [karate.degree(node) for node in sorted(karate)]
    assert table["orbit_3"].to_pylist() == [nx.triangles(karate)[node] for node in sorted(karate)]


def test_frequent_patterns_are_counted(graph):
    table = longwall.frequent(graph, support=20, max_edges=2)
    assert {row["pattern"]: row["count"] for row in table.to_pylist()}["0-1"] == 78
    few = longwall.frequent(graph, support=0.5, max_edges=2, measure="mni", exact=False)
    assert few.num_rows >= 1


def test_explain_says_how_it_would_be_answered(graph):
    text = str(longwall.explain(graph, "house"))
    assert "house" in text.splitlines()[4]
    assert "prediction" in repr(longwall.explain(graph, "house", rows=True, limit=10))
    assert "motifs" in str(longwall.explain(graph, {"kind": "motifs", "k": 4}))


def test_options_are_those_of_a_run(graph, engine_kind):
    options = {"engine": engine_kind, "threads": 1, "memory": "1GiB", "disk": 2**30, "spill": "elsewhere"}
    assert longwall.count(graph, "diamond", **options, progress=False) == 151


def test_more_threads_than_cores_are_said_once(graph, tmp_path_factory):
    cores = len(os.sched_getaffinity(0))
    with pytest.warns(UserWarning, match=f"^threads = {cores + 1}, but ") as caught:
        assert longwall.count(graph, "triangle", threads=cores + 1) == 45
    assert [Path(one.filename).name for one in caught] == ["test_counts.py"]
    watching = Watching()
    longwall.count(graph, "triangle", threads=cores + 1, progress=watching)
    assert len(watching.notes) == 1
    with warnings.catch_warnings(record=True) as none:
        longwall.count(graph, "triangle", threads=cores)
    assert not none
    for threads, said in ((cores + 1, True), (cores, False)):
        watching = Watching()
        run = {"directory": str(tmp_path_factory.mktemp("runs")), "name": f"of-{threads}"}
        engine, workload = {"kind": "cpu", "threads": threads}, {"kind": "triangles"}
        config = {"graph": graph, "workload": workload, "engine": engine, "run": run}
        longwall.run(config, observer=watching)
        assert any(note.startswith(f"engine.threads = {threads}, but ") for note in watching.notes) == said


class Watching:
    """An observer that remembers."""

    def __init__(self):
        self.phases, self.closed, self.notes = [], 0, []

    def phase(self, name, total, unit):
        self.phases.append(name)

    def advance(self, n): ...
    def near_limit(self, share): ...

    def note(self, text):
        self.notes.append(text)

    def close(self):
        self.closed += 1


def test_progress_goes_to_an_observer(graph, capsys):
    watching = Watching()
    longwall.count(graph, "house", progress=watching)
    assert (watching.phases, watching.closed) == (["counting"], 1)
    assert capsys.readouterr() == ("", "")
    longwall.count(graph, "house", progress=True)
    assert "counting" in capsys.readouterr().err


WRONG = [
    (lambda graph: longwall.cliques(graph, 2), "^k: must be at least 3, not 2$"),
    (lambda graph: longwall.motifs(graph, 9), "^k: must be at most 8, not 9$"),
    (lambda graph: longwall.orbits(graph, 6), "^k: counts per vertex are given for at most 5 vertices"),
    (lambda graph: longwall.frequent(graph, support=0), "^support: expected a number from 1 up"),
    (
        lambda graph: longwall.frequent(graph, support=2, measure="x"),
        '^measure: there is no "x"|^measure: frequent has no',
    ),
    (lambda graph: longwall.count(graph, "diamnd"), "^unknown pattern 'diamnd': did you mean 'diamond'"),
    (lambda graph: longwall.count(graph, "wedge", labels=[1.5, 2, 3]), "^labels: expected whole numbers"),
    (
        lambda graph: longwall.count(graph, "wedge", labels=[1, 2, 3]),
        "^pattern has labels, but the graph has no labels",
    ),
    (lambda graph: longwall.count(graph, "wedge", engine="gpu"), '^engine: there is no "gpu"'),
    (lambda graph: longwall.count(graph, "wedge", threads=-1), "^threads: must be at least 0"),
    (lambda graph: longwall.count(graph, "wedge", memory="4XB"), '^memory: "4XB" is not a size'),
    (lambda graph: longwall.count(graph, "wedge", memory=999), "memory = 999 B has 999 B left: raise memory$"),
    (lambda graph: longwall.count(graph, "wedge", progress=3), "^progress: expected True, False, or an object"),
    (
        lambda graph: longwall.count(graph, "wedge", spill="/proc/x"),
        "^/proc/x: nothing can be spilled there.*another spill",
    ),
    (lambda graph: longwall.count(3, "wedge"), "^graph: expected a graph of networkx"),
    (lambda graph: longwall.count("none.txt", "wedge"), "^none.txt: there is no such file"),
    (lambda graph: longwall.triangles(graph, per="face"), "^per: expected None"),
    (lambda graph: longwall.match(graph, "wedge", limit=0), "^limit: must be at least 1"),
    (lambda graph: longwall.match(graph, "wedge", limit=1.5), "^limit: expected a whole number"),
    (lambda graph: longwall.maximal_cliques(graph, min_size=1), "^min_size: must be at least 2"),
    (lambda graph: longwall.explain(graph, {"kind": "motifs"}), "^k: missing; motifs needs it$"),
]


@each_case(("ask", "said"), WRONG)
def test_what_is_wrong_is_said_in_one_line_in_words_of_the_call(graph, ask, said):
    with pytest.raises(InputError, match=said) as error:
        ask(graph)
    assert "\n" not in str(error.value)


def test_a_working_folder_that_is_gone_is_named(graph, tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(longwall.InputError, match="folder of this process was removed: change to another"):
        longwall.count(graph, "triangle")


def test_an_option_that_is_none_is_refused(graph):
    with pytest.raises(TypeError, match="there is no argument enigne, did you mean engine"):
        longwall.count(graph, "wedge", enigne="cpu")


def test_a_run_that_fails_leaves_nothing_and_advises_no_resuming(graph, monkeypatch):
    from longwall.pipeline.run_store.run_directory import RunDirectory

    def finish(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunDirectory, "finish", finish)
    with pytest.raises(RunError, match=r"No space left on device$"):
        longwall.count(graph, "wedge")
