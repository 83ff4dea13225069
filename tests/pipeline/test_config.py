"""The config: every fault is named with its place and the nearest name; what is valid comes out whole."""

import importlib.resources
import os
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwall.pipeline.config import load_config
from longwall.storage.errors import InputError
from longwall.storage.memory.sizes import format_size, parse_size, round_size

GRAPH = {"path": "graph.txt"}
TRIANGLES = {"graph": GRAPH, "workload": {"kind": "triangles"}}

SECURITY = {"ca": "ca.pem", "cert": "me.pem", "key": "me.key"}


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def faults(config, overrides=()) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_config(config, overrides)
    return str(caught.value).splitlines()


def workload(**keys) -> dict:
    return {"graph": GRAPH, "workload": keys}


@given(st.integers(1, 2**62))
def test_sizes_round_trip(size):
    assert parse_size(format_size(size)) == size
    assert parse_size(size) == size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8GiB", 8 * 2**30),
        ("512 MiB", 2**29),
        ("1.5GB", 1_500_000_000),
        ("7", 7),
        ("2kib", 2048),
        ("1TB", 10**12),
    ],
)
def test_sizes_as_people_write_them(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "8XB", "-1GiB", "0", "1e3", "nan", "8 G i B", "9999999TiB"])
def test_what_is_not_a_size(text):
    with pytest.raises(ValueError, match="size"):
        parse_size(text)


def test_sizes_for_the_eye():
    assert [round_size(n) for n in (12, 2048, 1.5 * 2**30, 1010 * 2**20)] == [
        "12 B",
        "2 KiB",
        "1.5 GiB",
        "1,010 MiB",
    ]


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
        "config: workload.k: expected a whole number, not 4.5"
    ]


@pytest.mark.parametrize("config", [None, 3, ["run.toml"], b"run.toml"])
def test_what_is_no_config(config):
    expected = "config: expected the path of a TOML file, or a mapping of sections, not "
    assert faults(config) == [expected + ("None" if config is None else type(config).__name__)]


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


def test_input_paths_start_at_the_config_if_they_are_there(tmp_path):
    (tmp_path / "here.txt").write_text("1 2\n")
    text = '[graph]\npath = "here.txt"\nlabels = "elsewhere.txt"\n[workload]\nkind = "triangles"\n'
    spec = load_config(write(tmp_path, text))
    assert spec.graph.path == tmp_path / "here.txt"
    assert spec.graph.labels == Path("elsewhere.txt")


def test_a_pattern_file_is_found_beside_the_config(tmp_path):
    (tmp_path / "query.graph").write_text("t 2 1\nv 0 0 1\nv 1 0 1\ne 0 1\n")
    text = '[graph]\npath = "g.txt"\n[workload]\nkind = "match"\npattern = "query.graph"\n'
    assert load_config(write(tmp_path, text)).workload.pattern == str(tmp_path / "query.graph")


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
        ("workload.k", 'expected a whole number, not "4"'),
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


LISTED = workload(kind="cliques", k=4, output="embeddings")


@pytest.mark.parametrize(
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
        (workload(), "workload.kind", "choose one of cliques, frequent, transactions, match, motifs"),
        (workload(kind="paths"), "workload.kind", "hoose one of cliques, frequent, transactions, match, motifs"),
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
        (workload(kind="cliques", k=17), "workload.k", "at most 16"),
        (workload(kind="match"), "workload.pattern", "missing; match needs it"),
        (workload(kind="match", pattern=""), "workload.pattern", "empty"),
        (workload(kind="match", pattern="dimond"), "workload.pattern", "did you mean 'diamond'?"),
        (workload(kind="match", pattern="0-1,2-3"), "workload.pattern", "not connected"),
        (workload(kind="match", pattern="wedge", pattern_labels=[1, 2]), "workload.pattern", "2 labels"),
        (workload(kind="match", pattern="edge", pattern_labels=[0, 2**31]), "workload.pattern", "0 to 2147483647"),
        (
            workload(kind="match", pattern="wedge", pattern_labels=[0, 1, -1]),
            "workload.pattern_labels[2]",
            "at least",
        ),
        (workload(kind="triangles", pattern="wedge"), "workload.pattern", "only match"),
        (workload(kind="triangles", induced=True), "workload.induced", "only match"),
        (workload(kind="cliques", k=4, induced=True), "workload.induced", "only match"),
        (workload(kind="triangles", k=3), "workload.k", "only cliques"),
        (
            workload(kind="cliques", k=4, output="vertices"),
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
        "cliques, frequent, transactions, match, motifs, quasi-cliques, triangles"
    ]
    assert faults(workload(kind="motif", k=9))[1] == "config: workload.k: must be at most 8, not 9"


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


def test_overrides_are_toml_or_text():
    spec = load_config(
        {
            "graph": {"generator": {"kind": "rmat", "scale": 4}},
            "workload": {"kind": "match", "pattern": "wedge"},
        },
        [
            "graph.generator.scale=5",
            "workload.pattern=0-1,1-2,2-0",
            "workload.pattern_labels=[1, 1, 2]",
            "workload.induced=true",
            'run.name="quoted"',
            "memory.host=8GiB",
            "workload.output=embeddings",
            "export.limit=5",
        ],
    )
    assert spec.graph.generator == {"kind": "rmat", "scale": 5, "seed": 1}
    assert spec.workload.pattern == "0-1,1-2,2-0"
    assert spec.workload.pattern_labels == (1, 1, 2)
    assert spec.workload.induced
    assert spec.run.name == "quoted"
    assert spec.memory.host == 8 * 2**30
    assert spec.export.limit == 5


def test_a_path_replaces_the_generator_and_back():
    config = {"graph": {"generator": {"kind": "rmat", "scale": 4}}, "workload": {"kind": "triangles"}}
    assert load_config(config, ["graph.path=g.txt"]).graph.generator is None
    assert load_config(TRIANGLES, ['graph.generator={kind="rmat", scale=4}']).graph.path is None


def test_nothing_takes_a_key_away():
    config = TRIANGLES | {"engine": {"devices": "all"}, "memory": {"host": "1GiB"}}
    spec = load_config(config, ["engine.devices=", "memory.host= ", "memory.disk="])
    assert (spec.engine.devices, spec.memory.host, spec.memory.disk) == (None, None, None)


@pytest.mark.parametrize(
    ("scheduler", "overrides", "left"),
    [
        ({"workers": 2, "threads_per_worker": 1, "retries": 1}, ["kind=local"], {"kind": "local"}),
        (
            {"workers": 2, "threads_per_worker": 1, "retries": 1},
            ["address=tcp://a:1"],
            {"kind": "dask", "address": "tcp://a:1", "retries": 1},
        ),
        ({"address": "tls://a:1", "security": SECURITY}, ["workers=3"], {"kind": "dask", "workers": 3}),
        (
            {"address": "tls://a:1", "security": SECURITY},
            ["address=tcp://b:1"],
            {"kind": "dask", "address": "tcp://b:1"},
        ),
        (
            {"address": "tls://a:1", "security": SECURITY},
            ["address=tls://b:1"],
            {"kind": "dask", "address": "tls://b:1", "security": SECURITY},
        ),
    ],
)
def test_another_cluster_replaces_the_one_before(scheduler, overrides, left):
    config = TRIANGLES | {"scheduler": {"kind": "dask"} | scheduler}
    spec = load_config(config, [f"scheduler.{override}" for override in overrides])
    assert spec.to_dict()["scheduler"] == {"order": "depth"} | left


def test_overrides_that_contradict_each_other_are_told():
    config = TRIANGLES | {"scheduler": {"kind": "dask"}}
    said = faults(config, ["scheduler.workers=2", "scheduler.address=tcp://a:1"])
    assert said[0].startswith("--set: scheduler.workers: the cluster at scheduler.address has its own workers")


@pytest.mark.parametrize("override", ["workload.k", "k=3", ".k=3", "=3", "workload.=3"])
def test_malformed_overrides(override):
    assert "section.key=value" in faults(TRIANGLES, [override])[0]


def test_faults_of_overrides_say_so():
    assert faults(TRIANGLES, ["memory.hots=8GiB"])[0].startswith(
        '--set: memory.hots: there is no such key; did you mean "host"?'
    )
    assert faults(TRIANGLES, ["memory.host=8XB"])[0].startswith("--set: memory.host: ")
    assert "is a value, not a table" in faults(TRIANGLES, ["workload.kind.x=1"])[0]


def test_unreadable_configs(tmp_path):
    assert "no such config file" in faults(tmp_path / "none.toml")[0]
    assert "this is a folder" in faults(tmp_path)[0]
    path = write(tmp_path, "[graph\n")
    assert "not valid TOML" in faults(path)[0]
    assert "line 1" in faults(path)[0]
    path.write_bytes(b"\xff\xfe\x00")
    assert "not a text file" in faults(path)[0]
    assert "has a NUL character" in faults("a\0b.toml")[0]
    assert "is too long for a path" in faults("x" * 5000)[0]


def test_only_a_small_regular_file_is_a_config(tmp_path):
    """Neither a pipe without a writer nor an endless device is waited for."""
    os.mkfifo(tmp_path / "pipe.toml")
    for path in (tmp_path / "pipe.toml", Path("/dev/zero"), Path("/dev/null")):
        assert faults(path) == [f"{path}: this is a pipe or a device, not a file; give the TOML file itself"]
    large = write(tmp_path, "# " + "x" * 2**20)
    assert faults(large) == [f"{large}: this file has more than 1,048,576 bytes; give the TOML file of a run"]
    with large.open("r+b") as file:
        file.truncate(2**40)
    assert "more than 1,048,576 bytes" in faults(large)[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[engine]\nthreads = " + "9" * 5000, "a whole number has thousands of digits"),
        ("[engine]\nthreads = " + "9" * 400, "engine.threads: a whole number has at most 64 bits"),
        ("[engine]\nthreads = 0x" + "f" * 6000, "engine.threads: a whole number has at most 64 bits"),
        ("[graph]\npath = " + "[" * 3000, "tables or lists in one another, too many"),
        ("[graph]\npath = " + "{a = " * 3000, "tables or lists in one another, too many"),
        ("[graph]\npath = " + "[" * 50 + "]" * 50, "graph.path[0]"),
        ("graph." + "a." * 100 + "b = 1", "more than 8 tables or lists in one another"),
        ("a." * 200_000 + "b = 1", "more than 256 dots (at line 1)"),
        ('[graph]\npath = "a\\u0000b"', "has a NUL character"),
        ('"a\\u0000b" = 1', "has a NUL character"),
        ('[graph]\npath = "' + "x" * 5000 + '"', "graph.path: 'xxx"),
        ('[run]\ndirectory = "' + "x" * 300 + '"', "run.directory: 'xxx"),
        ('[memory]\nspill = "' + "x/" * 3000 + '"', "memory.spill: 'x/x/"),
        ('[run]\nname = "' + "x" * 300 + '"', "too long to name a folder; use at most 200"),
        ('[memory]\nhost = "' + "9" * 5000 + '"', "is not a size"),
        ('[workload]\nkind = "match"\npattern = "' + "x" * 5000 + '.graph"', "is too long for a path"),
        ("x" * 5000 + " = 1", "there is no such section"),
    ],
)
def test_values_that_no_config_can_have_are_named_briefly(tmp_path, text, said):
    lines = faults(write(tmp_path, text + "\n"))
    assert any(said in line for line in lines), lines
    assert max(map(len, lines)) < 500


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("graph.path=\udcff.txt", '--set: graph.path: "\udcff.txt" is not UTF-8'),
        ("graph.\udcff=1", "is not UTF-8"),
        ("graph.path=a\0b", "has a NUL character"),
        ("run.name=" + "9" * 5000, "too long to name a folder"),
        ("engine.threads=" + "9" * 400, "at most 64 bits"),
        ("engine.threads=" + "[" * 5000, "expected a whole number"),
        ("graph." + "a." * 5000 + "b=1", "more than 8 tables or lists"),
        ("workload.kind=" + "x" * 100_000, "there is no"),
        ("x" * 100_000, "write it as section.key=value"),
    ],
)
def test_overrides_that_no_config_can_have_are_named_briefly(override, said):
    lines = faults(TRIANGLES, [override])
    assert any(said in line for line in lines), lines
    assert max(map(len, lines)) < 500


@pytest.mark.parametrize("overrides", ["workload.k=4", 3, [b"workload.k=4"], {"workload.k": 4}, None])
def test_overrides_are_a_list_of_texts(overrides):
    assert faults(TRIANGLES, overrides)[0].startswith("overrides")


def test_a_mapping_may_be_anything():
    """Of a program: values that no TOML file has."""
    endless: dict = {}
    endless["a"] = endless
    deep: list = []
    for _ in range(3000):
        deep = [deep]
    for value, said in (
        (endless, "more than 8 tables"),
        (deep, "more than 8 tables"),
        (10**5000, "at most 64 bits"),
        ({1: 2}, "a key must be a text, not int"),
        (object(), "expected"),
        (float("nan"), "expected"),
        (np.array([object()]), "expected"),
        (Path("a\0b"), "has a NUL character"),
        ("\ud800", "is not UTF-8"),
    ):
        for section, key in (("graph", "path"), ("engine", "threads"), ("export", "columns")):
            lines = faults(TRIANGLES | {section: {key: value}})
            assert any(said in line or "expected" in line for line in lines), (lines, value)
            assert max(map(len, lines)) < 500
    assert faults({1: {}})[0] == "config: a key must be a text, not int"
    assert len(faults(TRIANGLES | {f"x{number}": 1 for number in range(1000)})) == 21


def test_the_name_of_a_config_may_be_longer_than_that_of_a_run(tmp_path):
    path = tmp_path / ("é" * 120 + ".toml")
    path.write_text('[graph]\npath = "g.txt"\n[workload]\nkind = "triangles"\n')
    assert load_config(path).run.name == "é" * 100


def test_a_path_that_is_not_utf_8_cannot_be_written_down(tmp_path, monkeypatch):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd \xff"))
    folder.mkdir()
    monkeypatch.chdir(folder)
    spec = load_config(TRIANGLES).with_absolute_paths()
    with pytest.raises(InputError, match=r"^'path = .*odd .udcff/graph.txt.*: this path is not UTF-8; rename"):
        spec.to_toml()


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
