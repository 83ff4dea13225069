"""Overrides (`--set`): how they are read, what they replace, and how their faults are named."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import each_case
from config_faults import TRIANGLES, faults

from longwall.pipeline.config import load_config

SECURITY = {"ca": "ca.pem", "cert": "me.pem", "key": "me.key"}


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


def test_an_example_replaces_other_sources_and_back():
    spec = load_config(TRIANGLES, ["graph.example=karate"])
    assert (spec.graph.example, spec.graph.path) == ("karate", None)
    spec = load_config({"graph": {"example": "karate"}, "workload": {"kind": "triangles"}}, ["graph.path=g.txt"])
    assert (spec.graph.example, spec.graph.path) == (None, Path("g.txt"))


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


def test_certificates_are_refused_without_an_address_for_them():
    (said,) = faults(TRIANGLES | {"scheduler": {"kind": "dask", "security": SECURITY}})
    assert said.startswith('config: scheduler.security: certificates are for an address that begins with "tls://"')


def test_overrides_that_contradict_each_other_are_refused():
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


@pytest.mark.parametrize("overrides", ["workload.k=4", 3, [b"workload.k=4"], {"workload.k": 4}, None])
def test_overrides_are_a_list_of_texts(overrides):
    assert faults(TRIANGLES, overrides)[0].startswith("overrides")


@each_case(
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
