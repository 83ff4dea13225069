"""Every fault of a config is named, with its place and the nearest name."""

from __future__ import annotations

import pytest
from cases import each_case
from config_faults import GRAPH, TRIANGLES, faults, workload, write

from longwall.pipeline.config import load_config


def test_every_fault_is_named_with_file_key_and_nearest_name(tmp_path):
    path = write(
        tmp_path,
        """
        [graph]
        path = "g.txt"
        lables = "l.txt"
        [worklod]
        [workload]
        kind = "cliqes"
        k = "4"
        induced = "yes"
        [memory]
        host = "8XB"
        device = true
        access = "residentt"
        [engine]
        kind = "cud"
        threads = -1
        [run]
        name = "a/b"
        """,
    )
    expected = [
        ("graph.lables", 'did you mean "labels"?'),
        ("worklod", 'did you mean "workload"?'),
        ("workload.kind", 'did you mean "cliques"?'),
        ("workload.k", 'expected a whole number from 3 up, or "all", not "4"'),
        ("workload.induced", "cliques has no use for it (only match); remove it"),
        ("memory.host", '"8XB" is not a size'),
        ("memory.device", "expected a size"),
        ("memory.access", 'did you mean "resident"?'),
        ("engine.kind", 'did you mean "cuda"?'),
        ("engine.threads", "must be at least 0, not -1"),
        ("run.name", '"a/b" cannot name a folder'),
    ]
    lines = faults(path)
    assert len(lines) == len(expected)
    for key, text in expected:
        assert any(line.startswith(f"{path}: {key}: ") and text in line for line in lines), (key, lines)


@pytest.mark.parametrize(("meant", "kind"), [("gpu", "cuda"), ("GPU", "cuda"), ("nvidia", "cuda"), ("cores", "cpu")])
def test_an_engine_of_another_name_is_understood(tmp_path, meant, kind):
    path = write(tmp_path, f'[graph]\npath = "g.txt"\n[workload]\nkind = "triangles"\n[engine]\nkind = "{meant}"\n')
    assert f'did you mean "{kind}"?' in faults(path)[0]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("# friends\nann,bob\nbob,cid\n", '; a graph is named in a config: [graph] path = "FILE"'),
        ("0 1\n1 2\n", '; a graph is named in a config: [graph] path = "FILE"'),
        ("[graph]\npath = g.txt\n", '; text is written in quotes: path = "graph.txt"'),
        ('[graph\npath = "g.txt"\n', ")"),
    ],
)
def test_what_is_no_toml_is_guessed(tmp_path, text, hint):
    (line,) = faults(write(tmp_path, text))
    assert "not valid TOML: " in line
    assert line.endswith(hint)


LISTED = workload(kind="cliques", k=4, output="embeddings")


@each_case(
    ("config", "key", "text"),
    [
        ({"workload": {"kind": "triangles"}}, "graph", "missing"),
        ({"graph": GRAPH}, "workload", "missing"),
        ({"graph": 3, "workload": {"kind": "triangles"}}, "graph", "expected a section"),
        ({"graph": {}, "workload": {"kind": "triangles"}}, "graph", "exactly one of path"),
        (
            {
                "graph": {**GRAPH, "generator": {"kind": "rmat", "scale": 4}},
                "workload": {"kind": "triangles"},
            },
            "graph",
            "exactly one of path",
        ),
        (
            {"graph": {**GRAPH, "example": "karate"}, "workload": {"kind": "triangles"}},
            "graph",
            "exactly one of path",
        ),
        ({"graph": {"example": "karat"}, "workload": {"kind": "triangles"}}, "graph.example", "karate"),
        (
            {"graph": {"example": "karate", "labels": "labels.txt"}, "workload": {"kind": "triangles"}},
            "graph",
            "an example has no labels",
        ),
        (workload(), "workload.kind", "choose one of cliques, custom, frequent, transactions, match, maximal-cliques"),
        (
            workload(kind="paths"),
            "workload.kind",
            "hoose one of cliques, custom, frequent, transactions, match, maximal-cliques",
        ),
        (workload(kind="frequent"), "workload.min_support", "missing; frequent needs it"),
        (workload(kind="frequent", min_support=0), "workload.min_support", "a number from 1 up, or a share"),
        (workload(kind="frequent", min_support=1.5), "workload.min_support", "not 1.5"),
        (workload(kind="frequent", min_support=True), "workload.min_support", "not true"),
        (workload(kind="transactions", min_support=2, support="mni"), "workload.support", "only frequent"),
        (workload(kind="transactions", min_support=2, exact=False), "workload.exact", "always exact"),
        (workload(kind="frequent", min_support=2, max_edges=65), "workload.max_edges", "at most 64, not 65"),
        (workload(kind="frequent", min_support=2, support="instances"), "workload.max_edges", "missing; with support"),
        (workload(kind="frequent", min_support=2, output="embeddings"), "workload.max_edges", "missing; output"),
        (
            workload(kind="frequent", min_support=0.5, support="instances", max_edges=2),
            "workload.min_support",
            "no upper bound",
        ),
        (workload(kind="frequent", min_support=2, suport="mni"), "workload.suport", 'did you mean "support"?'),
        (workload(kind="cliques", k=4, exact=False), "workload.exact", "cliques has no use for it"),
        (
            workload(kind="frequent", min_support=2, max_edges=2, output="embeddings") | {"export": {"limit": 3}},
            "export.limit",
            "all embeddings of frequent patterns are written",
        ),
        (workload(kind="cliques"), "workload.k", "missing; cliques needs it"),
        (workload(kind="cliques", k=2), "workload.k", "at least 3"),
        (workload(kind="cliques", k="al"), "workload.k", 'expected a whole number from 3 up, or "all", not "al"'),
        (
            workload(kind="cliques", k=17, output="embeddings"),
            "workload.k",
            "listed for one size of at most 16 vertices",
        ),
        (workload(kind="cliques", k="all", output="embeddings"), "workload.k", 'use output = "count" or "vertices"'),
        (workload(kind="match"), "workload.pattern", "missing; match needs it"),
        (workload(kind="match", pattern=""), "workload.pattern", "empty"),
        (workload(kind="match", pattern="dimond"), "workload.pattern", "did you mean 'diamond'?"),
        (workload(kind="match", pattern="0-1,2-3"), "workload.pattern", "not connected"),
        (workload(kind="match", pattern="wedge", pattern_labels=[1, 2]), "workload.pattern", "2 labels"),
        (workload(kind="match", pattern="edge", pattern_labels=[0, 2**31]), "workload.pattern", "0 to 2147483647"),
        (
            workload(kind="match", pattern="wedge", pattern_labels=[0, 1, -1]),
            "workload.pattern_labels",
            "integers from 0 up, or texts",
        ),
        (workload(kind="triangles", pattern="wedge"), "workload.pattern", "only match"),
        (workload(kind="triangles", induced=True), "workload.induced", "only match"),
        (workload(kind="cliques", k=4, induced=True), "workload.induced", "only match"),
        (workload(kind="triangles", k=3), "workload.k", "only cliques"),
        (
            workload(kind="quasi-cliques", k=4, output="vertices"),
            "workload.output",
            "choose one of count, embeddings",
        ),
        (workload(kind="triangles", count="mappings"), "workload.count", 'kind = "match"'),
        (
            workload(kind="match", pattern="wedge", count="mappings", output="embeddings"),
            "workload.count",
            'output = "count"',
        ),
        ({**TRIANGLES, "scheduler": {"kind": "grid"}}, "scheduler.kind", "choose one of local, dask"),
        ({**TRIANGLES, "scheduler": {"workers": 2}}, "scheduler.workers", 'set scheduler.kind = "dask"'),
        ({**TRIANGLES, "scheduler": {"kind": "dask", "address": "10.0.0.1:8786"}}, "scheduler.address", "tcp://10"),
        ({**TRIANGLES, "memory": {"spill": "file:///tmp"}}, "memory.spill", "only a graph and run.directory may"),
        ({**TRIANGLES, "graph": {"path": 5}}, "graph.path", "a path or a URL in quotes"),
        ({**TRIANGLES, "run": {"name": "../x"}}, "run.name", "cannot name a folder"),
        ({**TRIANGLES, "export": {"limit": 5}}, "export.limit", "only embeddings are exported"),
        (
            {**workload(kind="cliques", k=4, output="embeddings"), "export": {"limit": 0}},
            "export.limit",
            "at least 1",
        ),
        ({**TRIANGLES, "run": {"name": ".."}}, "run.name", "cannot name a folder"),
        ({**TRIANGLES, "run": {"name": ""}}, "run.name", "cannot name a folder"),
        ({**TRIANGLES, "run": {"name": "a\nb"}}, "run.name", "use letters, digits, '.', '-' and '_'"),
        ({**TRIANGLES, "run": {"name": "one\n"}}, "run.name", "cannot name a folder"),
        ({**TRIANGLES, "run": {"name": "two words"}}, "run.name", "cannot name a folder"),
        (LISTED | {"export": {"columns": []}}, "export.columns", "names no column"),
        (LISTED | {"export": {"columns": ["v0", "v1", "v0"]}}, "export.columns", '"v0" is there twice'),
        (LISTED | {"export": {"columns": ["v0", "v4"]}}, "export.columns", 'no column "v4", only v0, v1, v2, v3'),
        (
            workload(kind="match", pattern="(b)-(a)-(c)", output="embeddings") | {"export": {"columns": ["v1"]}},
            "export.columns",
            'no column "v1", only b, a, c; columns have the names of the pattern\'s vertices, so use "a"',
        ),
        (LISTED | {"export": {"columns": ["v0", 1]}}, "export.columns[1]", "expected a text"),
        (
            workload(kind="match", pattern="house", output="embeddings") | {"export": {"columns": ["v5"]}},
            "export.columns",
            "only v0, v1, v2, v3, v4",
        ),
        (
            workload(kind="triangles", output="embeddings") | {"export": {"columns": ["x"]}},
            "export.columns",
            "only v0, v1, v2",
        ),
        ({"graph": GRAPH, "workload": {"kind": ["triangles"]}}, "workload.kind", "there is no"),
    ],
)
def test_what_cannot_be_meant(config, key, text):
    lines = faults(config)
    assert len(lines) == 1
    assert lines[0].startswith(f"config: {key}: ")
    assert text in lines[0]


def test_only_the_given_keys_of_an_unknown_kind_are_checked():
    """As those of the kind that is nearest by name."""
    assert faults(workload(kind="motif", method="counting")) == [
        'config: workload.kind: there is no "motif"; did you mean "motifs"? Choose one of '
        "cliques, custom, frequent, transactions, match, maximal-cliques, motifs, quasi-cliques, triangles"
    ]
    assert faults(workload(kind="motif", k=9))[1] == "config: workload.k: must be at most 8, not 9"


@pytest.mark.parametrize(
    ("generator", "key", "text"),
    [
        ({"scale": 4}, "kind", "missing"),
        ({"kind": "rmatt", "scale": 4}, "kind", 'did you mean "rmat"?'),
        ({"kind": "rmat"}, "scale", "missing; rmat needs it"),
        ({"kind": "rmat", "scale": 4, "edge_facter": 8}, "edge_facter", 'did you mean "edge_factor"?'),
        ({"kind": "rmat", "scale": "4"}, "scale", "expected a whole number"),
        ({"kind": "rmat", "scale": 4, "a": "x"}, "a", "expected a number"),
    ],
)
def test_generator_faults(generator, key, text):
    lines = faults({"graph": {"generator": generator}, "workload": {"kind": "triangles"}})
    assert len(lines) == 1
    assert lines[0].startswith(f"config: graph.generator.{key}: ")
    assert text in lines[0]


@pytest.mark.parametrize(("output", "embeddings"), [("count", True), ("embeddings", False)])
def test_the_two_ways_must_agree(output, embeddings):
    config = workload(kind="match", pattern="wedge", output=output) | {"export": {"embeddings": embeddings}}
    said = faults(config)
    assert len(said) == 1
    assert f'export.embeddings: contradicts workload.output = "{output}"' in said[0]


def test_counts_have_no_levels():
    levels = {"scheduler": {"order": "levels"}}
    assert faults(TRIANGLES | levels) == [
        'config: scheduler.order: counts have no levels: remove it, or set workload.output = "embeddings"'
    ]
    assert load_config(TRIANGLES | levels, ["workload.output=embeddings"]).scheduler.order == "levels"


@each_case(("meant", "kind"), [("orbits", "motifs"), ("graphlets", "motifs"), ("count", "match"), ("query", "match")])
def test_a_kind_of_work_of_another_name_is_understood(tmp_path, meant, kind):
    path = write(tmp_path, f'[graph]\npath = "g.txt"\n[workload]\nkind = "{meant}"\n')
    assert f'there is no "{meant}"; did you mean "{kind}"?' in faults(path)[0]


def test_one_value_in_place_of_a_list_is_shown_as_a_list(tmp_path):
    path = write(tmp_path, '[graph]\npath = "g.txt"\n[workload]\nkind = "triangles"\n[export]\ncolumns = "v0"\n')
    assert 'export.columns: expected a list such as ["v0"], not "v0"' in faults(path)[0]


def test_keys_that_are_wrong_themselves_hide_no_fault_of_others(tmp_path):
    path = write(
        tmp_path,
        """
        [graph]
        labels = "l.txt"
        strict = "yes"
        [graph.generator]
        kind = "erdos-renyi"
        vertices = "many"
        [workload]
        kind = "frequent"
        support = "instances"
        min_support = 0.5
        max_edges = "two"
        exact = false
        [memory]
        host = "8XB"
        [scheduler]
        kind = "local"
        workers = 3
        retries = "often"
        order = "levels"
        [engine]
        without = ["magic"]
        threads = -3
        devices = [0]
        kind = "cpu"
        [export]
        columns = ["v9"]
        [run]
        name = 5
        """,
    )
    lines = faults(path)
    keys = [line.removeprefix(f"{path}: ").split(":")[0] for line in lines]
    assert sorted(keys) == [
        "engine.devices",
        "engine.threads",
        "graph.generator.edges",
        "graph.generator.vertices",
        "graph.labels",
        "graph.strict",
        "memory.host",
        "run.name",
        "scheduler.retries",
        "scheduler.workers",
        "workload.exact",
        "workload.max_edges",
        "workload.min_support",
    ]


def test_sections_that_are_sound_are_compared_where_another_is_wrong(tmp_path):
    path = write(
        tmp_path,
        """
        [workload]
        kind = "cliques"
        k = 3
        [scheduler]
        order = "levels"
        [engine]
        without = ["magic"]
        [export]
        columns = ["v9"]
        [run]
        name = 5
        """,
    )
    keys = [line.removeprefix(f"{path}: ").split(":")[0] for line in faults(path)]
    assert sorted(keys) == ["engine.without", "export.columns", "graph", "run.name", "scheduler.order"]
