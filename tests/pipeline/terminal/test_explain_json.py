"""``longwall explain --json``: the same as the lines, as data."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from cases import each_case
from typer.testing import CliRunner

import longwall
from longwall.pipeline.cli import app

EDGES = [(u, v) for u in range(30) for v in range(u) if (u * 7 + v * 3) % 5 < 2]
WORKLOADS = {
    "triangles": 'kind = "triangles"',
    "diamonds": 'kind = "match"\npattern = "diamond"',
    "listing": 'kind = "match"\npattern = "diamond"\noutput = "embeddings"',
    "labels": 'kind = "match"\npattern = "(a:0)-(b)-(c)"',
    "several": 'kind = "match"\npattern = ["diamond", "house"]',
    "cliques": 'kind = "cliques"\nk = "all"',
    "motifs": 'kind = "motifs"\nk = 4',
    "orbits": 'kind = "motifs"\nk = 4\noutput = "vertices"',
    "maximal": 'kind = "maximal-cliques"',
    "quasi": 'kind = "quasi-cliques"\nk = 4',
    "frequent": 'kind = "frequent"\nmin_support = 3\nmax_edges = 2',
}


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder with a graph, and a config for each kind of workload."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graph.txt").write_text("".join(f"{u} {v}\n" for u, v in EDGES))
    (tmp_path / "labels.txt").write_text("".join(f"{vertex} {vertex % 2}\n" for vertex in range(30)))
    for name, workload in WORKLOADS.items():
        (tmp_path / f"{name}.toml").write_text(
            f'[graph]\npath = "graph.txt"\nlabels = "labels.txt"\n[workload]\n{workload}\n[engine]\nkind = "cpu"\n'
        )


def explained(*words: str) -> dict[str, Any]:
    ended = CliRunner().invoke(app, ["explain", *words, "--json", "-q"])
    assert ended.exit_code == 0, ended.output
    found: dict[str, Any] = json.loads(ended.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    return found


def lines_of(*words: str) -> str:
    return CliRunner().invoke(app, ["explain", *words, "-q"]).stdout


@each_case("name", WORKLOADS)
def test_every_workload_has_its_plan_as_json(name: str) -> None:
    found = explained(f"{name}.toml", "--all")
    assert found["workload"]["kind"] in WORKLOADS[name]
    assert (found["graph"]["vertices"], found["graph"]["edges"]) == (30, len(EDGES))
    assert found["engine"]["name"] == "cpu"
    assert found["memory"]["host"] > 0
    assert found["plan_text"] in lines_of(f"{name}.toml")
    assert "kind" in found["plan"]
    assert "methods" in found


def test_the_plan_is_that_of_the_manifest() -> None:
    found = explained("diamonds.toml")
    longwall.run("diamonds.toml")
    manifest = json.loads(Path("runs/diamonds/manifest.json").read_text())
    assert found["plan"] == manifest["plan"]
    assert found["plan_text"] == manifest["plan_text"]


def test_all_methods_are_there_with_steps_seconds_and_reasons() -> None:
    (table,) = explained("diamonds.toml", "--all")["methods"]
    by_name = {one["method"]: one for one in table["methods"]}
    text = lines_of("diamonds.toml", "--all")
    listed = set(re.findall(r"^ {13}([a-z-]+)  ", text, re.MULTILINE)) - {"method"}
    assert by_name.keys() == listed
    (taken,) = (one for one in by_name.values() if one.get("state") == "taken")
    assert re.search(rf"^ +{taken['method']} .*taken$", text, re.MULTILINE)
    assert math.isfinite(taken["seconds"])
    assert taken["steps"] > 0
    assert by_name["degrees"]["reason"] in text


def test_rows_and_bytes_of_a_listing_are_predicted() -> None:
    found = explained("listing.toml")["prediction"]
    result = longwall.run("listing.toml")
    assert found["exact"], "the search is small"
    assert found["levels"][-1]["rows"] == result.count
    assert found["export"] > 0


def test_the_cost_adds_up() -> None:
    cost = explained("diamonds.toml", "--workers", "2")["cost"]
    assert cost["machines"] == 2
    assert cost["seconds"] == pytest.approx(sum(part["seconds"] for part in cost["parts"]))
    assert cost["longest"] == max(cost["parts"], key=lambda part: part["seconds"])["name"]
    assert 0 < cost["sampled_share"] <= 1


def test_a_reason_stands_where_nothing_is_predicted() -> None:
    found = explained("frequent.toml")
    assert "seconds" not in found["cost"]
    assert f"cost         not predicted: {found['cost']['reason']}" in lines_of("frequent.toml")
    assert [one["edges"] for one in found["prediction"]["levels"]] == [1, 2]


def test_several_embeddings_of_a_subgraph_are_said() -> None:
    Path("two.toml").write_text(Path("labels.toml").read_text().replace("(a:0)-(b)-(c)", "(a:0)-(b)"))
    assert explained("two.toml")["several_embeddings_per_subgraph"] is True
    assert "several_embeddings_per_subgraph" not in explained("diamonds.toml")


def test_the_order_of_rows_is_said() -> None:
    assert explained("listing.toml", "--set", "export.sort=true")["sort"] == ["v0", "v1", "v2", "v3"]
    words = ("--set", "export.sort=true", "--set", 'export.columns=["v2","v0"]')
    assert explained("listing.toml", *words)["sort"] == ["v2", "v0"]
    assert "sort         all rows by v2, v0, once they are written" in lines_of("listing.toml", *words)
    assert "sort" not in explained("listing.toml")


def test_bad_input_is_json_too() -> None:
    ended = CliRunner().invoke(app, ["explain", "diamonds.toml", "--set", "workload.k=3", "--json"])
    assert (ended.exit_code, json.loads(ended.stdout)["error"]["key"]) == (2, "workload.k")


def test_plans_of_python_have_the_facts() -> None:
    plan = longwall.explain(EDGES, "diamond", engine="cpu")
    assert plan.facts["plan"] == explained("diamonds.toml")["plan"]
