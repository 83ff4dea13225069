"""The phases that are sampled are those that a run does, for every kind of plan."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from conftest import set_page_size
from plans import plan_count, tried_first
from typer.testing import CliRunner

from longwall.pipeline.cli import app
from longwall.pipeline.execution.phase import NotEnoughMemory, Phase
from longwall.pipeline.execution.thread_executor import ThreadExecutor
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.phases.homomorphisms.count import Tables
from longwall.pipeline.planning.planner import PLANNER
from longwall.pipeline.planning.rewrites.k_core import InCorePlan
from longwall.pipeline.prediction import predict, rates
from longwall.pipeline.prediction.predict import sample_plan
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph

WORKLOADS: dict[str, dict[str, Any]] = {
    "triangles": {"kind": "triangles"},
    "triangles of vertices": {"kind": "triangles", "output": "vertices"},
    "triangles of edges": {"kind": "match", "pattern": "clique-3", "output": "edges"},
    "4-cliques": {"kind": "cliques", "k": 4},
    "8-cliques": {"kind": "cliques", "k": 8},
    "cliques of every size": {"kind": "cliques", "k": "all"},
    "4-cliques of vertices": {"kind": "cliques", "k": 4, "output": "vertices"},
    "stars": {"kind": "match", "pattern": "star-4"},
    "labelled stars": {"kind": "match", "pattern": "star-9", "pattern_labels": [0, 1, 2, 1, 2, 0, 1, 2, 1, 1]},
    "4-cycles": {"kind": "match", "pattern": "cycle-4"},
    "houses": {"kind": "match", "pattern": "house"},
    "some houses": {"kind": "match", "pattern": "house", "limit": 5},
    "induced 4-cycles": {"kind": "match", "pattern": "cycle-4", "induced": True},
    "labelled": {"kind": "match", "pattern": "0-1,0-2,1-2,2-3", "pattern_labels": [0, 1, 2, 0]},
    "labelled list": {"kind": "match", "pattern": "clique-3", "pattern_labels": [0, 1, 2], "output": "embeddings"},
    "one label": {"kind": "match", "pattern": "diamond", "pattern_labels": [1, 1, 1, 1]},
    "list": {"kind": "match", "pattern": "clique-3", "output": "embeddings"},
    "two patterns": {"kind": "match", "pattern": ["clique-3", "diamond"]},
    "motifs of 3": {"kind": "motifs", "k": 3, "method": "counting"},
    "motifs by enumeration": {"kind": "motifs", "k": 4, "method": "enumeration"},
    "motifs by counting": {"kind": "motifs", "k": 4, "method": "counting"},
    "motifs of 5": {"kind": "motifs", "k": 5},
    "orbits": {"kind": "motifs", "k": 4, "output": "vertices"},
    "orbits of 5": {"kind": "motifs", "k": 5, "output": "vertices"},
    "quasi-cliques": {"kind": "quasi-cliques", "k": 4, "missing": 1},
    "quasi-cliques of 5": {"kind": "quasi-cliques", "k": 5, "missing": 1},
    "maximal cliques": {"kind": "maximal-cliques"},
    "list of maximal cliques": {"kind": "maximal-cliques", "output": "embeddings"},
    "maximal cliques of vertices": {"kind": "maximal-cliques", "output": "vertices"},
}


@cache
def rmat() -> Graph:
    return generate("rmat", seed=3, scale=8, edge_factor=6, num_labels=3)


class Noted(ThreadExecutor):
    """Notes the names of phases."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def run(self, phase: Phase, env: Any) -> Any:
        self.names.append(phase.name)
        return super().run(phase, env)


QUICK = ("triangles", "houses", "labelled", "list", "orbits")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in WORKLOADS]
)
def test_the_phases_of_a_run_are_sampled(lab: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict, "SECONDS", 0.05)
    sections = {"workload": WORKLOADS[name]}
    context = lab.context(rmat(), **sections)
    plan = context.spec.workload.plan(rmat())
    before = context.resources.host.used
    samples = sample_plan(plan, context.spec, rmat(), context.resources)
    assert context.resources.host.used == before
    assert not list(context.results.iterdir())
    context.executor = noted = Noted()
    context.spec.workload.execute(plan, context)
    assert sorted(one.name for one in samples) == sorted(noted.names)
    assert all(one.seconds >= 0 and 0 < one.share <= 1 for one in samples)


@pytest.mark.slow
@pytest.mark.parametrize("induced", [False, True])
def test_the_phases_of_every_small_pattern_are_sampled(
    lab: Any, induced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predict, "SECONDS", 0.01)
    for found in nx.graph_atlas_g()[3:]:
        if 3 <= len(found) <= 5 and nx.is_connected(found):
            pattern = ",".join(f"{a}-{b}" for a, b in found.edges)
            context = lab.context(rmat(), workload={"kind": "match", "pattern": pattern, "induced": induced})
            plan = context.spec.workload.plan(rmat())
            samples = sample_plan(plan, context.spec, rmat(), context.resources)
            context.executor = noted = Noted()
            context.spec.workload.execute(plan, context)
            assert sorted(one.name for one in samples) == sorted(noted.names), pattern


def test_a_count_in_a_core_is_predicted_as_the_whole(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict, "SECONDS", 0.05)
    context = lab.context(rmat())
    whole = plan_count(parse_pattern("diamond"), rmat())
    plan = tried_first(InCorePlan(whole.pattern, whole.cost, whole.query, 2, PLANNER, method="k-core"), whole)
    names = [[one.name for one in sample_plan(one, context.spec, rmat(), context.resources)] for one in (plan, whole)]
    assert names[0] == names[1] != []
    context = lab.context(rmat(), workload={"kind": "motifs", "k": 4, "method": "counting"})
    choice = context.spec.workload.plan(rmat())
    motifs = replace(choice, plans=tuple(replace(plan, in_core=True) for plan in choice.plans))
    assert len(sample_plan(motifs, context.spec, rmat(), context.resources)) > 1


def test_what_does_not_fit_is_predicted_by_what_counts_instead(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any, env: Any) -> Any:
        raise NotEnoughMemory

    monkeypatch.setattr(predict, "SECONDS", 0.05)
    monkeypatch.setattr(Tables, "build", refuse)
    context = lab.context(rmat(), workload={"kind": "match", "pattern": "house"})
    (one,) = sample_plan(context.spec.workload.plan(rmat()), context.spec, rmat(), context.resources)
    assert one.name.startswith("search")


@pytest.mark.slow
def test_a_query_whose_search_takes_long_is_predicted_by_its_sums(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict, "SECONDS", 0.05)
    path = ",".join(f"{v}-{v + 1}" for v in range(8))
    context = lab.context(rmat(), workload={"kind": "match", "pattern": path, "pattern_labels": [0, 1, 2] * 3})
    (one,) = sample_plan(context.spec.workload.plan(rmat()), context.spec, rmat(), context.resources)
    assert one.name.startswith("add up")


def test_a_list_by_levels_and_a_limit_are_predicted_as_the_whole_list(
    lab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predict, "SECONDS", 0.05)
    cliques = {"kind": "match", "pattern": "clique-3", "output": "embeddings"}
    for more in ({"scheduler": {"order": "levels"}}, {"export": {"limit": 5}}):
        context = lab.context(rmat(), workload=cliques, **more)
        (one,) = sample_plan(context.spec.workload.plan(rmat()), context.spec, rmat(), context.resources)
        assert one.name == "list 0-1,0-2,1-2"
        assert one.file_bytes > 1000


@pytest.mark.gpu
@pytest.mark.parametrize("device", [None, 4 << 20])
def test_phases_of_a_device_are_sampled(lab: Any, device: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict, "SECONDS", 0.05)
    set_page_size(monkeypatch, 1024)
    access = {} if device is None else {"memory": {"access": "adaptive"}}
    context = lab.context(rmat(), engine="cuda", device=device, workload={"kind": "cliques", "k": 4}, **access)
    plan = context.spec.workload.plan(rmat())
    (one,) = sample_plan(plan, context.spec, rmat(), context.resources)
    assert context.resources.work.used == 0
    assert one.seconds > 0
    assert len(one.strata) <= 12


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path.parent / f"{tmp_path.name}-cache"))
    (tmp_path / "graph.txt").write_text("1 2\n2 3\n3 1\n3 4\n")
    path = tmp_path / "mine.toml"
    path.write_text('[graph]\npath = "graph.txt"\n[workload]\nkind = "triangles"\n[engine]\nkind = "cpu"\n')
    return path


@pytest.fixture(autouse=True)
def known_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the seconds of a tiny run: in a real one, compiling its kernels takes most of the time."""
    monkeypatch.setattr(rates, "_start", lambda engine, folder: {"start_seconds": 1.5})


def explain(*words: str | Path) -> Any:
    return CliRunner().invoke(app, ["explain", *map(str, words), "--quiet"])


def test_explain_predicts_this_machine_and_others(config: Path) -> None:
    explain(config)  # the first one may compile kernels while it reads
    here = explain(config)
    assert here.exit_code == 0, here.output
    assert re.search(r"^cost         about .* s on this machine of \d+ threads; most of it is start", here.stdout, re.M)
    assert "sampled      all phases were done for it" in here.stdout
    assert re.search(r"^bytes        moved: disk 16 B, network 0 B; held at most: each host ", here.stdout, re.M)
    file = config.with_name("rates.toml")
    file.write_text("devices = 8\nthreads = 64\nsteps = 7.3e11\nstart_seconds = 30\n")
    many = explain(config, "--workers", "16", "--rates", file)
    assert "on 16 machines of 8 devices; most of it is start" in many.stdout
    assert re.search(r"^dispatching .* requests$", many.stdout, re.M)
    assert re.search(r"moved: disk 16 B, network 256 B; held at most: each host .*, each device ", many.stdout)
    assert {one.name for one in config.parent.iterdir()} == {"graph.txt", "mine.toml", "rates.toml"}


def test_a_wrong_file_of_rates_ends_with_one_line(config: Path) -> None:
    file = config.with_name("rates.toml")
    file.write_text("cores = 8\n")
    for words in (["--rates", file], ["--rates", "none.toml"], ["--workers", "0"]):
        ended = explain(config, *words)
        assert ended.exit_code == 2
        assert "Traceback" not in ended.output
    assert "rates.toml: cores: there is no such rate" in explain(config, "--rates", file).output


def test_plans_whose_phases_are_not_known_say_so(config: Path) -> None:
    settings = ["--set", "workload.kind=frequent", "--set", "workload.min_support=1", "--set", "workload.max_edges=2"]
    ended = explain(config, *settings)
    assert ended.exit_code == 0, ended.output
    assert "cost         not predicted: what its phases do is known only when those before are done" in ended.stdout


def test_a_custom_algorithm_is_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    examples = Path(__file__).parents[3] / "examples"
    settings = {"graph.path": "graph.txt", "memory.spill": str(tmp_path / "spill"), "run.directory": str(tmp_path)}
    (tmp_path / "graph.txt").write_text("1 2\n2 3\n3 1\n3 4\n")
    settings["graph.path"] = str(tmp_path / "graph.txt")
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    ended = explain(examples / "plexes.toml", *words)
    assert ended.exit_code == 0, ended.output
    assert "computing" in ended.stdout
