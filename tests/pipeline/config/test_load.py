"""A config that is valid is loaded whole: defaults, paths, names, and values of other types."""

from __future__ import annotations

import importlib.resources
import tomllib
from pathlib import Path, PosixPath

import numpy as np
import pytest
from config_faults import GRAPH, faults, workload, write

from longwall.pipeline.config import load_config
from longwall.storage.ingest.sources import files_of


def test_defaults_are_filled_in(tmp_path):
    spec = load_config(write(tmp_path, '[graph]\npath = "g.txt"\n[workload]\nkind = "triangles"\n'))
    assert spec.run.name == "mine"
    assert spec.run.directory == Path("runs")
    assert spec.memory.host is None
    assert (spec.engine.kind, spec.engine.threads, spec.scheduler.kind) == ("auto", 0, "local")


def test_a_mapping_is_named_after_its_workload_and_stays_as_it_is():
    config = {"graph": {"path": Path("g.txt"), "labels": None}, "workload": {"kind": "cliques", "k": 4}}
    assert load_config(config, ["workload.k=5"]).run.name == "cliques"
    assert config["workload"] == {"kind": "cliques", "k": 4}


def test_a_config_whose_name_is_no_name_of_a_run_gives_one(tmp_path):
    path = tmp_path / "my graph (2).v1.toml"
    path.write_text('[graph]\npath = "g.txt"\n[workload]\nkind = "triangles"\n')
    assert load_config(path).run.name == "my-graph-2-.v1"


def test_the_name_of_a_config_may_be_longer_than_that_of_a_run(tmp_path):
    path = tmp_path / ("é" * 120 + ".toml")
    path.write_text('[graph]\npath = "g.txt"\n[workload]\nkind = "triangles"\n')
    assert load_config(path).run.name == "é" * 100


def test_values_of_numpy_are_pythons():
    config = {
        "graph": {"generator": {"kind": np.str_("rmat"), "scale": np.int32(4), "a": np.float64(0.5)}},
        "workload": {
            "kind": np.str_("match"),
            "pattern": "wedge",
            "pattern_labels": np.array([0, 1, 0]),
            "induced": np.bool_(True),
        },
        "memory": {"host": np.int64(2**30)},
        "engine": {"threads": np.uint8(2)},
        "export": {"embeddings": True, "limit": np.int64(5), "columns": [np.str_("v0")]},
    }
    spec = load_config(config)
    assert spec.workload.pattern_labels == (0, 1, 0)
    assert spec.graph.generator == {"kind": "rmat", "scale": 4, "a": 0.5, "seed": 1}
    assert load_config(workload(kind="cliques", k=np.int64(4))).workload.k == 4
    assert load_config(workload(kind="match", pattern="edge", pattern_labels=(np.int64(1), 2)))
    assert load_config(tomllib.loads(spec.to_toml())) == spec
    assert faults(workload(kind="cliques", k=np.float64(4.5))) == [
        'config: workload.k: expected a whole number from 3 up, or "all", not 4.5'
    ]


def test_the_resolved_config_is_the_same_config(tmp_path):
    config = {
        "graph": {"generator": {"kind": "rmat", "scale": 4, "a": 0.5, "num_labels": 3}},
        "workload": {
            "kind": "match",
            "pattern": "diamond",
            "pattern_labels": [0, 1, 0, 2],
            "output": "embeddings",
        },
        "memory": {"host": "1.5GB", "device": 12345, "spill": 'odd "name"\\'},
        "export": {"limit": 10, "columns": ["v0"]},
    }
    spec = load_config(config)
    again = load_config(write(tmp_path, spec.to_toml()))
    assert again == spec
    assert load_config(spec.to_dict()) == spec


def test_the_commented_configs_are_valid():
    files = [file for file in importlib.resources.files("longwall.configs").iterdir() if file.name.endswith(".toml")]
    assert {file.name for file in files} >= {
        "demo.toml",
        "triangles.toml",
        "cliques.toml",
        "match.toml",
        "motifs.toml",
        "quasi-cliques.toml",
        "frequent.toml",
        "transactions.toml",
    }
    for file in files:
        assert load_config(Path(str(file))).run.name == Path(file.name).stem


def test_input_paths_start_at_the_config_if_they_are_there(tmp_path):
    (tmp_path / "here.txt").write_text("1 2\n")
    text = '[graph]\npath = "here.txt"\nlabels = "elsewhere.txt"\n[workload]\nkind = "triangles"\n'
    spec = load_config(write(tmp_path, text))
    assert spec.graph.path == tmp_path / "here.txt"
    assert spec.graph.labels == Path("elsewhere.txt")


def test_all_inputs_of_a_graph_are_found_beside_the_config(tmp_path, monkeypatch):
    beside, here = tmp_path / "it's [1]", tmp_path / "here"
    for folder in (beside, here):
        folder.mkdir()
        for name in ("a.txt", "b.txt", "vertices.csv"):
            (folder / name).touch()
    (here / "c.txt").touch()
    monkeypatch.chdir(here)

    def graph(text):
        return load_config(write(beside, f'[graph]\n{text}\n[workload]\nkind = "triangles"\n')).graph

    assert graph('path = ["a.txt", "c.txt"]').path == (beside / "a.txt", Path("c.txt"))
    assert graph('path = "a.txt"\nvertices = "vertices.csv"').vertices == beside / "vertices.csv"
    assert files_of([graph('path = "*.txt"').path]) == [beside / "a.txt", beside / "b.txt"]
    assert files_of([graph('path = "c*.txt"').path]) == [Path("c.txt")]
    assert graph('path = "none*.txt"').path == Path("none*.txt")


def test_pattern_files_of_a_list_are_found_beside_the_config(tmp_path):
    (tmp_path / "query.graph").write_text("t 2 1\nv 0 0 1\nv 1 0 1\ne 0 1\n")
    text = '[graph]\npath = "g.txt"\n[workload]\nkind = "match"\npattern = ["query.graph", "clique-3"]\n'
    assert load_config(write(tmp_path, text)).workload.pattern == (str(tmp_path / "query.graph"), "clique-3")


def test_a_pattern_file_is_found_beside_the_config(tmp_path):
    (tmp_path / "query.graph").write_text("t 2 1\nv 0 0 1\nv 1 0 1\ne 0 1\n")
    text = '[graph]\npath = "g.txt"\n[workload]\nkind = "match"\npattern = "query.graph"\n'
    assert load_config(write(tmp_path, text)).workload.pattern == str(tmp_path / "query.graph")


def test_a_located_config_means_the_same_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "query.graph").write_text("t 2 1\nv 0 0 1\nv 1 0 1\ne 0 1\n")
    spec = load_config(workload(kind="match", pattern="query.graph")).with_absolute_paths()
    assert spec.graph.path == tmp_path / "graph.txt"
    assert spec.workload.pattern == str(tmp_path / "query.graph")


@pytest.mark.parametrize("pattern", ["diamond", "0-1,1-2", "0-1," * 2000 + "1-2"])
def test_a_pattern_that_is_no_file_stays_as_it_is(tmp_path, monkeypatch, pattern):
    """Whatever lies in the working directory under that name, and however long it is."""
    monkeypatch.chdir(tmp_path)
    if len(pattern) < 20:
        (tmp_path / pattern).write_text("a file")
    assert load_config(workload(kind="match", pattern=pattern)).with_absolute_paths().workload.pattern == pattern


def test_transactions_are_frequent_patterns_by_transactions():
    spec = load_config(workload(kind="transactions", min_support=0.2))
    same = load_config(workload(kind="frequent", min_support=0.2, support="transactions"))
    assert type(spec.workload) is type(same.workload)
    assert spec.workload.counted_by == same.workload.counted_by == "transactions"
    assert spec.file_format == same.file_format == "transactions"
    assert load_config(spec.to_dict()).workload.kind == "transactions"
    assert load_config(workload(kind="frequent", min_support=0.2)).workload.counted_by == "mni"
    labelled = workload(kind="transactions", min_support=2) | {"graph": GRAPH | {"transactions": "t.txt"}}
    assert load_config(labelled).file_format is None


def test_what_says_nothing_may_be_in_any_workload():
    spec = load_config(workload(kind="cliques", k=4, induced=False, count="embeddings"))
    assert spec == load_config(workload(kind="cliques", k=4))


def test_embeddings_are_asked_for_in_two_ways():
    wedges = {"kind": "match", "pattern": "wedge"}
    for config in (
        workload(**wedges) | {"export": {"embeddings": True}},
        workload(**wedges, output="embeddings"),
        workload(**wedges, output="embeddings") | {"export": {"embeddings": True}},
    ):
        spec = load_config(config)
        assert spec.workload.output == "embeddings"
        assert load_config(spec.to_dict()) == spec
    assert load_config(workload(**wedges) | {"export": {"embeddings": False}}).workload.output == "count"


def test_writing_a_config_keeps_the_exception_of_a_signal_handler():
    class Interrupted(PosixPath):
        def __str__(self):
            raise TimeoutError

        __fspath__ = __str__

    spec = load_config({"graph": {"example": "karate"}, "workload": {"kind": "triangles"}})
    memory = spec.memory.model_copy(update={"spill": Interrupted("spill")})
    with pytest.raises(TimeoutError):
        spec.model_copy(update={"memory": memory}).to_toml()
