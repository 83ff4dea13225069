"""The choice of a method: those that apply, are switched off, or verify, and results that name the one that counted."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow.parquet as pq
import pytest
from explained import explain
from plans import methods_of, plan_count

import longwall
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.kernel_plan import KernelPlan
from longwall.pipeline.planning.plan import Choice, CountPlan, Refusal
from longwall.pipeline.planning.planner import METHODS, NAMES, PLANNER, REWRITES
from longwall.pipeline.planning.query import Query
from longwall.storage.generators.kinds import generate
from longwall.storage.observer import NullObserver

KARATE = nx.karate_club_graph()


class Notes(NullObserver):
    """Keeps the notes of a run."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def config(tmp_path: Path, pattern: str, **sections: Any) -> dict[str, Any]:
    workload = {"kind": "match", "pattern": pattern} | sections.pop("workload", {})
    return {
        "graph": longwall.graph(KARATE),
        "workload": workload,
        "engine": {"kind": "cpu"} | sections.pop("engine", {}),
        "run": {"directory": str(tmp_path), "report": False} | sections.pop("run", {}),
    } | sections


def test_every_method_has_a_name_of_its_own() -> None:
    assert len(set(NAMES)) == len(NAMES) == len(METHODS) + len(REWRITES)


def test_every_method_proposes_a_plan_or_says_why_not() -> None:
    facts = Facts.of(longwall.graph(KARATE))
    for text in ("clique-4", "cycle-4", "cycle-5", "diamond", "star-3", "path-4", "house", "(a:0)-(b:1)-(c:0)"):
        for induced in (False, True):
            said = dict(PLANNER.proposals(Query(parse_pattern(text), induced), facts))
            assert set(said) == set(NAMES)
            for name, one in said.items():
                assert isinstance(one, CountPlan) or (isinstance(one, Refusal) and one.reason), name
                assert isinstance(one, Refusal) or one.method == name


def test_one_method_after_the_other_is_switched_off(lab: Any) -> None:
    """Those that are left count the same, until none is left."""
    graph, pattern = longwall.graph(KARATE), parse_pattern("diamond")
    applying = {name for name, one in PLANNER.proposals(Query(pattern), Facts.of(graph)) if isinstance(one, CountPlan)}
    without, found = list[str](), {}
    while not applying <= set(without):
        plan = plan_count(pattern, graph, without=tuple(without))
        found[plan.method] = plan.count(lab.context(graph))
        without += [plan.method] if plan.method != "homomorphisms" else ["homomorphisms", "homomorphisms-without-lists"]
    with pytest.raises(longwall.InputError, match="no method answers for diamond: "):
        plan_count(pattern, graph, without=tuple(without))
    assert list(found)[:2] == ["diamonds", "diamonds-by-arcs"]
    assert set(found) >= {"homomorphisms", "search"}
    assert set(found.values()) == {found["search"]}


def test_an_unknown_method_is_refused_with_the_list(tmp_path: Path) -> None:
    with pytest.raises(longwall.InputError, match=r'engine.without: there is no method "serch"; there are .*search'):
        longwall.run(config(tmp_path, "diamond", engine={"without": ["serch"]}))


def test_results_name_the_method(tmp_path: Path) -> None:
    result = longwall.run(config(tmp_path, "diamond", engine={"without": ["diamonds", "diamonds-by-arcs"]}))
    assert [one.method for one in result.patterns] == ["homomorphisms"]
    assert result.to_json()["patterns"][0]["method"] == "homomorphisms"
    assert pq.read_table(result.path / "results" / "counts.parquet")["method"].to_pylist() == ["homomorphisms"]
    assert "method homomorphisms" in pq.read_table(result.path / "metrics.parquet")["stage"].to_pylist()
    manifest = json.loads((result.path / "manifest.json").read_text())
    assert manifest["methods"] == {"homomorphisms": 1}


@pytest.mark.parametrize("pattern", ["diamond", "house", "(a:0)-(b:1)-(c:0)-(d:1)-(a)"])
@pytest.mark.parametrize("limit", [None, 3])
def test_counts_are_verified_by_another_method(tmp_path: Path, pattern: str, limit: int | None) -> None:
    graph = longwall.graph(KARATE, labels={v: v % 2 for v in KARATE})
    workload = {} if limit is None else {"limit": limit}
    observer = Notes()
    sections = config(tmp_path, pattern, workload=workload, run={"verify": True}) | {"graph": graph}
    result = longwall.run(sections, observer=observer)
    assert any("verified: " in note or "not verified: " in note for note in observer.notes)
    assert result.count == longwall.count(graph, pattern, engine="cpu", **workload)


def test_a_wrong_count_fails_the_run_that_verifies_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = KernelPlan.count
    monkeypatch.setattr(KernelPlan, "count", lambda self, env: right(self, env) + 1)
    assert longwall.run(config(tmp_path, "cycle-4", run={"name": "silent"})).count == 155
    with pytest.raises(longwall.RunError, match=r"four-cycles counts 155, .* counts 154: one of them is wrong"):
        longwall.run(config(tmp_path, "cycle-4", run={"name": "verified", "verify": True}))


def test_the_notes_say_if_one_method_alone_answers(tmp_path: Path) -> None:
    workload = {"kind": "frequent", "min_support": 2, "max_edges": 2}
    observer, sections = Notes(), config(tmp_path, "", run={"verify": True})
    longwall.run(sections | {"workload": workload}, observer=observer)
    (note,) = (note for note in observer.notes if "verified" in note)
    assert note.startswith(f"not verified: one method alone answers {workload['kind']}, output = ")


WANTS = {
    "embeddings": "listing: {'kind': 'match', 'pattern': 'house', 'output': 'embeddings'}",
    "embeddings up to a limit": "listing: {'kind': 'match', 'pattern': 'house', 'output': 'embeddings', 'limit': 7}",
    "induced embeddings": "listing: {'kind': 'match', 'pattern': 'cycle-4', 'output': 'embeddings', 'induced': True}",
    "edges": "counts-of-edges: {'kind': 'match', 'pattern': 'cycle-4', 'output': 'edges'}",
    "triangles of edges": "counts-of-edges: {'kind': 'triangles', 'output': 'edges'}",
    "triangles of vertices": "triangles-of-vertices: {'kind': 'triangles', 'output': 'vertices'}",
    "motifs": "motif-enumeration: {'kind': 'motifs', 'k': 4}",
    "motifs of three": "motif-enumeration: {'kind': 'motifs', 'k': 3}",
    "orbits": "orbit-enumeration: {'kind': 'motifs', 'k': 4, 'output': 'vertices'}",
    "orbits of five": "orbit-counting: {'kind': 'motifs', 'k': 5, 'output': 'vertices'}",
}


@pytest.mark.parametrize("want", WANTS)
def test_other_outputs_and_motifs_are_verified_by_a_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, want: str
) -> None:
    name, _, text = WANTS[want].partition(": ")
    observer, sections = Notes(), config(tmp_path, "") | {"workload": ast.literal_eval(text)}
    result = longwall.run(sections | {"run": {**sections["run"], "name": "right", "verify": True}}, observer=observer)
    assert result.patterns[0].method == name
    (note,) = (note for note in observer.notes if "verified" in note)
    assert note.startswith("verified: ")
    assert note.endswith(f" counts the same as {name}")
    answers = Choice.counts

    def wrong(self: Choice, env: Any) -> list[int]:
        first, *others = answers(self, env)
        return [first, *others[:-1], others[-1] + 1] if others else [first + 1]

    monkeypatch.setattr(Choice, "counts", wrong)
    with pytest.raises(longwall.RunError, match=rf"run.verify: .*: {name} counts \d+, .* counts \d+: one of them"):
        longwall.run(sections | {"run": {**sections["run"], "name": "wrong", "verify": True}})


def test_a_listing_is_refused_without_its_method(tmp_path: Path) -> None:
    sections = config(tmp_path, "house", workload={"output": "embeddings"}, engine={"without": ["listing"]})
    with pytest.raises(longwall.InputError, match=r"no method answers for house: take some out of engine\.without"):
        longwall.run(sections)


def test_explain_lists_all_methods(tmp_path: Path) -> None:
    lines = explain(config(tmp_path, "diamond", engine={"without": ["search"]}), methods=True).splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("methods"))
    heads, *rows = lines[first + 1 :]
    assert heads.split() == ["method", "steps", "seconds", "memory.host"]
    words = {line.split()[0]: line for line in rows}
    assert set(words) == set(NAMES)
    assert [line.split()[0] for line in rows][:3] == ["diamonds", "diamonds-by-arcs", "homomorphisms"]
    name, steps, seconds, size, _unit, taken = rows[0].split()
    assert (name, taken) == ("diamonds", "taken")
    assert float(steps) > 1
    assert 0 < float(seconds) < 60
    assert 0 < float(size) < 1024
    assert rows[1].endswith("next")
    assert words["cliques"].endswith("no: the pattern is no clique of three vertices or more")
    assert words["search"].endswith("no: engine.without switches it off")
    assert "homomorphisms" in str(longwall.explain(KARATE, "diamond", all=True, engine="cpu"))
    edges = explain(config(tmp_path, "triangle", workload={"output": "edges"}), methods=True).splitlines()
    (taken,) = (line.split() for line in edges if line.endswith(" taken"))
    assert taken[0] == "counts-of-edges"
    others = "no: it does not count per edge", "no: it answers for all patterns of a size"
    others += ("no: it answers for cliques of any size, also per vertex", "no: it answers for maximal cliques")
    assert sum(line.endswith(others) for line in edges) == len(NAMES) - 1
    alone = config(tmp_path, "") | {"workload": {"kind": "frequent", "min_support": 2, "max_edges": 2}}
    assert "methods      one alone" in explain(alone, methods=True)


@pytest.mark.parametrize(("k", "of"), [("all", "cliques of every size"), (17, "cliques of 17 vertices")])
def test_explain_lists_the_methods_of_cliques(tmp_path: Path, k: int | str, of: str) -> None:
    sections = config(tmp_path, "") | {"workload": {"kind": "cliques", "k": k}}
    lines = explain(sections, methods=True).splitlines()
    assert f"methods      for {of}, in the order in which they are tried:" in lines
    (taken,) = (line.split() for line in lines if line.endswith(" taken"))
    assert taken[0] == "clique-leaves"
    with pytest.raises(longwall.InputError, match=f"no method answers for {of}: take some out of engine.without"):
        longwall.run(sections | {"engine": {"without": ["clique-leaves"]}})


@pytest.mark.parametrize("output", ["count", "vertices", "embeddings"])
def test_maximal_cliques_have_one_method(tmp_path: Path, output: str) -> None:
    """The karate club has 25 maximal cliques of three vertices and more."""
    observer, of = Notes(), "maximal cliques of at least 3 vertices"
    workload = {"kind": "maximal-cliques", "min_size": 3, "output": output}
    sections = config(tmp_path, "", run={"verify": True}) | {"workload": workload}
    lines = explain(sections, methods=True).splitlines()
    assert f"methods      for {of}, in the order in which they are tried:" in lines
    (taken,) = (line.split() for line in lines if line.endswith(" taken"))
    assert taken[0] == "maximal-cliques"
    assert sum(" no: " in line for line in lines) == len(NAMES) - 1
    result = longwall.run(sections, observer=observer)
    assert {one.method for one in result.patterns} == {"maximal-cliques"}
    assert result.count == 25
    assert f"not verified: no method of another family than maximal-cliques answers for {of}" in observer.notes
    with pytest.raises(longwall.InputError, match=f"no method answers for {of}: take some out of engine.without"):
        longwall.run(sections | {"engine": {"without": ["maximal-cliques"]}})


@pytest.mark.parametrize("k", [3, 5])
def test_cliques_of_vertices_are_verified_by_their_number(tmp_path: Path, k: int) -> None:
    observer = Notes()
    sections = config(tmp_path, "", run={"verify": True})
    sections |= {"workload": {"kind": "cliques", "k": k, "output": "vertices"}}
    result = longwall.run(sections, observer=observer)
    assert any(note.endswith("counts the same as clique-leaves") for note in observer.notes)
    (answer,) = result.patterns
    assert (answer.method, answer.count) == ("clique-leaves", {3: 45, 5: 2}[k])


@pytest.mark.parametrize("output", ["count", "vertices"])
def test_explain_lists_the_methods_of_motifs(tmp_path: Path, output: str) -> None:
    sections = config(tmp_path, "") | {"workload": {"kind": "motifs", "k": 4, "output": output}}
    text = explain(sections, methods=True)
    table = text[text.index("methods      for all patterns of 4 vertices") :].replace(" over ", " ")
    rows = [line.split() for line in table.splitlines()]
    kind = "motif" if output == "count" else "orbit"
    assert [row[0] for row in rows[2:4]] == [f"{kind}-enumeration", f"{kind}-counting"]
    assert [row[-1] for row in rows[2:4]] == ["taken", "next"]
    assert all(0 < float(row[2]) < 60 for row in rows[2:4])
    several = explain(config(tmp_path, "", workload={"pattern": ["diamond", "house"]}), methods=True)
    assert several.count("methods      for") == 2


def test_explain_says_which_methods_have_no_room_or_take_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that lacks memory is not taken, and one of a thousand hours is not sampled."""
    graph = generate("rmat", scale=14, edge_factor=12, seed=2)
    small = config(tmp_path, "house", memory={"host": "4MiB"}, engine={"without": ["k-core"]}) | {"graph": graph}
    lines = {line.split()[0]: line for line in explain(small, methods=True).splitlines()}
    assert "no room: " in lines["homomorphisms"]
    assert "memory.host" in lines["homomorphisms"]
    (taken,) = (line for line in lines.values() if line.endswith("taken"))
    assert "no room" not in taken
    monkeypatch.setattr("longwall.pipeline.prediction.describe_methods._LONG", 1e-3)
    lines = {line.split()[0]: line for line in explain(small, methods=True).splitlines()}
    assert lines["search"].split()[2] == "about"


def test_a_limit_is_searched_for_unless_a_formula_is_less_work() -> None:
    graph = longwall.graph(nx.gnm_random_graph(300, 9000, seed=1))
    assert methods_of(plan_count(parse_pattern("cycle-4"), graph, limit=1, without=()))[0] == "search"
    assert methods_of(plan_count(parse_pattern("cycle-4"), graph, limit=10**9, without=()))[0] == "four-cycles"
