"""Pages of records that are made for the test: damaged, hostile, large, or with figures that no small run has."""

from __future__ import annotations

import re
from typing import Any

import pytest
from cases import each_case
from pages import Page, check_page

from longwall.pipeline.patterns.pattern_drawing import edges_of, pattern_drawing
from longwall.pipeline.report import numbers
from longwall.pipeline.report.advice import advice_of, skew_of, warnings_of
from longwall.pipeline.report.drawings import order_text, search_steps
from longwall.pipeline.report.facts import Facts, Load, facts_of
from longwall.pipeline.report.page import comparison_page, run_page
from longwall.pipeline.report.plots import Logarithmic, even_ticks
from longwall.pipeline.report.record import Heat, RunRecord
from longwall.pipeline.report.view import view_of
from longwall.storage.errors import InputError

HOSTILE = "</title></svg><script>alert(1)</script>\"'&{{ 7 * 7 }}{% raw %}\x00\ud800"
GIB = 2**30


def record(**more: Any) -> RunRecord:
    """A run with all that a report can show."""
    manifest = {
        "status": "done",
        "workload": "match",
        "started": "2026-01-01T00:00:00.000+00:00",
        "finished": "2026-01-01T00:00:20.000+00:00",
        "engine": {"name": "cuda", "device": "a GPU"},
        "machine": {"CPU": "a processor"},
        "graph": {
            "path": "graph.txt",
            "vertices": 10_000,
            "edges": 90_000,
            "hash": "abc",
            "degrees": [[1, 9_999], [2, 1]],
        },
        "plan": {
            "kind": "search",
            "pattern": "0-1,0-2,1-2",
            "order": [2, 0, 1],
            "counted_suffix": 1,
            "restrictions": [[2, 0]],
            "redundancy": 3,
            "direction": "ascending",
            "estimated_rows": [10.0, 50.0],
        },
        "plan_text": "source       edges",
        "memory": {
            "host": {"limit": 8 * GIB, "peak": GIB},
            "disk": {"limit": 100 * GIB, "peak": 2 * GIB, "written": 3 * GIB, "seconds": 60.0},
            "device": {"limit": None, "peak": GIB},
            "graph": {"access": "adaptive"},
        },
        "results": {"counts.parquet": {"rows": 1, "bytes": 100, "sha256": ""}},
    } | more.pop("manifest", {})
    metrics = [
        _row("source", 1, 90_000, 5_000, bytes=20_000),
        _row("count", 2, 5_000, 123, predicted=4_000.0),
        _row("ranges of tcp://10.0.0.1:1", 0, 5, 0, seconds=9.0, tasks=7),
        _row("ranges of tcp://10.0.0.2:1", 0, 5, 0, seconds=1.0, tasks=1),
    ]
    history = {
        "seconds": 20.0,
        "parts": [{"name": "graph", "begin": 0.0, "end": 9.0}, {"name": "mine", "begin": 9.0, "end": 20.0}],
        "phases": [{"name": "counting", "begin": 9.0, "end": 20.0}],
        "notes": [{"seconds": 1.0, "text": "compiling kernels: wait"}],
        "memory": {"seconds": [0.0, 10.0, 20.0], "used": {"host": [0, GIB, 5], "disk": [0, 0, 0], "device": [0, 1, 2]}},
    }
    fields: dict[str, Any] = {
        "where": "/runs/one",
        "manifest": manifest,
        "config": {"workload": {"kind": "match"}, "run": {"name": "one"}, "scheduler": {"order": "depth"}},
        "history": history,
        "metrics": metrics,
        "counts": [{"pattern": "0-1,0-2,1-2", "labels": None, "count": 41, "support": None, "lower_bound": False}],
        "heat": Heat(6, {2: [600, 0, 100, 50, 0, 250]}, {2: 0.5}),
    }
    return RunRecord(**(fields | more))


def _row(stage: str, level: int, rows_in: int, rows_out: int, **more: Any) -> dict[str, Any]:
    row = {"stage": stage, "level": level, "rows_in": rows_in, "rows_out": rows_out, "seconds": 1.0}
    return row | {"bytes": 0, "tasks": 1, "predicted": None} | more


def page(**more: Any) -> Page:
    return check_page(run_page(record(**more)))


def facts(**more: Any) -> Facts:
    return facts_of(record(**more))


def test_everything_that_there_is_is_shown() -> None:
    text = page().text()
    for part in (
        "Heat of the pages",
        "1000 B were read of 6 pages",
        "for 50% the page was on the GPU",
        "tcp://10.0.0.1:1 was busy longest, for 9 s, 1.80 times the mean of 2 workers.",
        "GPU memory: at most 1 GiB reserved at once.",
        "Main memory: at most 1 GiB of 8 GiB, the budget memory.host (12%) reserved at once.",
        "Half of the 10,000 vertices have a degree below 2; the largest degree is between 2 and 3.",
        "Of 20 s, 55% went to: mine.",
        "2. count v1",
        "The pattern: triangle , 0-1,0-2,1-2",
        "CPU a processor",
    ):
        assert part in text


def test_what_to_know_and_to_change() -> None:
    warnings = "\n".join(warnings_of(facts()))
    for part in (
        "Spilled: 3 GiB",
        "Slow disk: ",
        "51.2 MiB a second",
        "Page-locking",
        "Skew: tcp://10.0.0.1:1",
        "Prediction",
    ):
        assert part in warnings
    advice = "\n".join(advice_of(facts()))
    for part in ("Raise memory.host to about 3 GiB", "Raise memory.device", "longwall ingest", "Kernels were compiled"):
        assert part in advice


@each_case(("process", "full"), [(GIB // 8, False), (GIB, True), (0, True)])
def test_main_memory_is_full_if_the_process_has_it(process: int, full: bool) -> None:
    """A budget that is reserved as a whole is not: much of it may never be touched. Older runs say nothing of it."""
    memory = {"seconds": [0.0, 20.0], "used": {"host": [0, GIB]}, "process": [1, 2], "process_peak": process}
    more: dict[str, Any] = {
        "manifest": {"memory": {"host": {"limit": GIB, "peak": GIB}}},
        "history": {"seconds": 20.0, "memory": memory},
    }
    assert any("Main memory was nearly full" in text for text in warnings_of(facts(**more))) == full
    text = page(**more).text()
    assert f"main memory, peak {numbers.size(process or GIB)} " in text
    assert ("the process used 128 MiB at most; at most 1 GiB of 1 GiB" in text) == (process == GIB // 8)


def test_the_answer_comes_first_and_no_axis_is_cut() -> None:
    shown = page(metrics=[_row("source", 1, 9, 99_000_000), _row("count", 2, 9, 2, predicted=100_000_000.0)])
    titles = ["".join(texts) for tag, _, texts in shown.elements if tag == "h2"]
    assert titles[0] == "The answer"
    assert "rows (logarithmic)" in shown.text()
    for tag, attributes, texts in shown.elements:
        if tag == "text" and attributes.get("class") != "number":
            x, wide = float(attributes["x"] or 0), 5.5 * len("".join(texts))
            left = x - {"start": 0, "middle": wide / 2, "end": wide}[attributes["text-anchor"] or "start"]
            assert -6 <= left <= left + wide <= 346, texts


def test_keys_that_have_their_default_are_apart() -> None:
    config = {
        "workload": {"kind": "match", "pattern": "house", "join": "vertices", "induced": True},
        "graph": {"ids": "auto"},
        "memory": {"host": "auto", "device": "1GiB"},
        "engine": {"ablation": []},
        "x": {"y": 1},
    }
    view = view_of(facts(config=config))
    asked = ["workload.kind", "workload.pattern", "workload.induced", "memory.device", "x.y"]
    assert list(view["asked"]) == asked
    assert set(view["defaults"]) == {"workload.join", "graph.ids", "memory.host", "engine.ablation"}


def test_a_quick_run_without_faults_has_neither() -> None:
    quick = facts(
        manifest={"memory": {"host": {"limit": 8, "peak": 1}}, "graph": {}, "plan": {}},
        history={"seconds": 0.5},
        metrics=[_row("count", 2, 5, 5)],
    )
    assert warnings_of(quick) == []
    assert advice_of(quick) == []


@pytest.mark.parametrize(
    ("config", "advice"),
    [
        ({"engine": {"ablation": ["two-pass"]}}, "engine.ablation"),
        ({"workload": {"kind": "match", "join": "edges"}}, 'workload.join = "vertices"'),
        ({"workload": {"kind": "motifs", "method": "enumeration"}}, 'workload.method = "auto"'),
        ({"scheduler": {"order": "levels"}}, 'scheduler.order = "depth"'),
    ],
)
def test_keys_that_cost_time_are_named(config: dict[str, Any], advice: str) -> None:
    assert advice in "\n".join(advice_of(facts(config=config)))


def test_skew_is_the_busiest_by_the_mean() -> None:
    assert skew_of([Load("a", 3.0, 1), Load("b", 1.0, 1)]) == 1.5
    assert skew_of([Load("a", 0.0, 0)]) == 1.0
    assert skew_of([]) == 1.0


def test_hostile_texts_are_shown_as_they_are() -> None:
    hostile = record(
        where=HOSTILE,
        manifest={
            "status": HOSTILE,
            "reason": HOSTILE,
            "workload": HOSTILE,
            "argv": [HOSTILE],
            "versions": {HOSTILE: HOSTILE},
            "graph": {"path": HOSTILE, HOSTILE: HOSTILE, "vertices": 1, "edges": 1, "columns": [HOSTILE]},
            "plan": {"kind": HOSTILE, "pattern": HOSTILE, HOSTILE: HOSTILE},
            "plan_text": HOSTILE,
            "results": {HOSTILE: {"rows": 1, "bytes": 1}},
        },
        config={HOSTILE: {HOSTILE: HOSTILE}, "run": {"name": HOSTILE}},
        metrics=[_row(HOSTILE, 1, 1, 1), _row(f"ranges of {HOSTILE}", 0, 1, 1)],
        counts=[{"pattern": HOSTILE, "labels": [HOSTILE], "count": 1}],
        history={"notes": [{"text": HOSTILE}], "parts": [{"name": HOSTILE, "begin": 0, "end": 1}], "values": [HOSTILE]},
    )
    for html in (run_page(hostile), comparison_page(hostile, record())):
        assert "<script" not in html
        found = check_page(html.encode("utf-8", "backslashreplace").decode())
        assert "<script>alert(1)</script>" in found.text()
        assert "{{ 7 * 7 }}" in found.text()


@each_case(
    "damage",
    [
        {"manifest": {"memory": 3}},
        {"manifest": {"graph": {"degrees": [[1]]}}},
        {"manifest": {"results": {"x.parquet": {}}}},
        {"manifest": {"plan": {"kind": "search", "patterns": [3]}}},
        {"history": {"parts": [{"name": "graph"}]}},
        {"history": {"memory": {"used": 3}}},
        {"metrics": [{"stage": "count"}]},
    ],
)
def test_damaged_files_are_named(damage: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"/runs/one: manifest\.json or history\.json is damaged"):
        run_page(record(**damage))


def test_compiling_is_no_time_of_the_graph() -> None:
    """The report advises no graph store if compiling took most of the time."""
    parts = [{"name": "graph", "begin": 0.0, "end": 9.0, "compile": 8.0}, {"name": "mine", "begin": 9.0, "end": 10.0}]
    compiled = record(history={"seconds": 10.0, "parts": parts})
    text = check_page(run_page(compiled)).text()
    assert "Of 10 s, 80% went to: compile kernels. Bars include the 8 s in which kernels were compiled." in text
    assert "longwall ingest" not in text
    assert facts_of(compiled).seconds_of == {"compile": 8.0, "graph": 1.0, "mine": 1.0}


def test_a_run_that_has_only_begun() -> None:
    bare = RunRecord("/runs/x", {"status": "running", "config_sha256": ""}, {}, {}, [], [], None)
    text = check_page(run_page(bare)).text()
    assert "still running, or killed" in text
    assert "longwall resume /runs/x" in text
    check_page(comparison_page(bare, bare))


@each_case(
    ("progress", "said"),
    [
        ([], "No part of its work was finished, so it begins anew."),
        ([("count", 30, 1200)], "It got as far as: count, 2.5% of 1,200 roots."),
        ([("one", 7, 7), ("two", 1, 4)], "It got as far as: two, 25% of 4 roots; 1 phase finished."),
        ([("one", 7, 7), ("two", 4, 4)], "It got as far as: 2 phases finished."),
    ],
)
def test_a_run_that_is_not_done_says_how_far_it_got(progress: list[tuple[str, int, int]], said: str) -> None:
    manifest = {"status": "interrupted", "config_sha256": "", "reason": "interrupted by SIGTERM"}
    bare = RunRecord("/runs/x", manifest, {}, {}, [], [], None, progress)
    assert said in run_page(bare)
    assert said not in run_page(bare._replace(manifest=manifest | {"status": "done"}))


def test_many_of_everything_is_cut_short() -> None:
    many = record(
        counts=[{"pattern": "0-1", "count": n, "labels": [n, n]} for n in range(500)],
        metrics=[_row(f"stage {n}", n, 1, 1) for n in range(1000)],
        history={
            "phases": [{"name": f"phase {n}", "begin": n, "end": n + 1} for n in range(400)],
            "phases_left_out": 7,
            "loads": [{"worker": f"cpu {n}", "seconds": n, "tasks": n} for n in range(256)],
        },
        manifest={
            "results": {"counts.parquet": {"rows": 500, "bytes": 1}}
            | {f"embeddings-{n:05}.parquet": {"rows": 2, "bytes": 3} for n in range(10_000)}
        },
    )
    html = run_page(many)
    assert len(html) < 200_000
    text = check_page(html).text()
    assert "The first 24 of 500 patterns" in text
    assert "embeddings-*.parquet (10,000 files)" in text


def test_a_comparison_has_ratios_and_the_keys_that_differ() -> None:
    slow = record(
        where="/runs/two",
        config={"workload": {"kind": "match"}, "run": {"name": "two"}, "scheduler": {"order": "levels"}},
        history=record().history | {"seconds": 50.0},
    )
    text = check_page(comparison_page(record(), slow)).text()
    assert "The graphs are the same; so are the answers. one is 2.50 times as fast." in text
    assert "scheduler.order depth levels" in text
    assert "whole run 20 s 50 s 2.50x" in text
    assert "run.name" not in text
    assert "Nothing: the configs are the same" in check_page(comparison_page(slow, slow)).text()


@pytest.mark.parametrize(
    "text", ["0-1", "0-1,0-2", "0-1,0-2,0-3,1-2,1-3,2-3", ",".join(f"0-{n}" for n in range(1, 16))]
)
def test_vertices_of_a_drawing_are_apart_and_inside(text: str) -> None:
    edges = edges_of(text)
    assert edges is not None
    picture = pattern_drawing(edges)
    discs = [re.findall(r'="([\d.]+)"', shape.attributes) for shape in picture.shapes if shape.kind == "circle"]
    places = [(float(x), float(y)) for x, y, _ in discs]
    assert len(places) == max(map(max, edges)) + 1
    assert len([shape for shape in picture.shapes if shape.kind == "line"]) == len(edges)
    radius = float(discs[0][2])
    assert all(radius <= x <= picture.width - radius and radius <= y <= picture.height - radius for x, y in places)
    gaps = [abs(complex(*a) - complex(*b)) for at, a in enumerate(places) for b in places[:at]]
    assert min(gaps) > radius


@each_case("text", ["", "diamond", "0-1,", "0-100", "0-" + "9" * 400, None, 3, "0-\u0661"])
def test_what_is_no_pattern_is_not_drawn(text: object) -> None:
    assert edges_of(text) is None


def test_the_steps_of_a_search_say_what_each_vertex_needs() -> None:
    plan = record().manifest["plan"] | {"counted_suffix": 0, "pattern": "0-1,0-2,1-2,1-3", "order": [1, 0, 2, 3]}
    steps = search_steps(plan | {"restrictions": [[0, 2]], "induced": True})
    assert [step.title for step in steps] == ["1. edges v1-v0", "2. add v2", "3. add v3", "4. take the rows"]
    assert steps[1].text == "Adjacent to v1 and v0; v0 < v2."
    assert steps[2].text == "Adjacent to v1, not to v0 and v2."
    named = search_steps(plan | {"restrictions": [[0, 2]], "names": ["shop", "buyer", "bank", "x<y"]})
    assert [step.title for step in named] == ["1. edges buyer-shop", "2. add bank", "3. add x<y", "4. take the rows"]
    assert named[1].text == "Adjacent to buyer and shop; shop < bank."
    assert 'aria-label="buyer, shop and bank matched, bank in this step"' in named[1].picture.svg()
    assert "x<y" not in named[2].picture.svg()
    assert order_text(plan | {"names": ["shop", "buyer", "bank", "x"]}) == "buyer (1), shop (0), bank (2), x (3)"
    assert order_text(plan) == "1, 0, 2, 3"
    for wrong in (["shop"], "abcd", [1, 2, 3, 4], None):
        assert search_steps(plan | {"names": wrong})[1].title == "2. add v2"
    counted = search_steps(record().manifest["plan"])
    assert [step.title for step in counted] == ["1. edges v2-v0", "2. count v1"]
    assert "found 3 times" in counted[1].text
    assert search_steps({"pattern": "0-1", "order": [0, 7]}) == []


def test_scales() -> None:
    scale = Logarithmic(1000, 100)
    assert scale(1000) == pytest.approx(100)
    assert 0 == scale(0) < scale(1) < scale(10) < scale(100)
    assert list(scale.ticks()) == [1, 10, 100, 1000]
    assert even_ticks(0) == [0.0]
    assert even_ticks(10) == [0, 5, 10]
    assert len(even_ticks(12345.0)) <= 5


@pytest.mark.parametrize(
    ("value", "text"), [(0.0005, "0.5 ms"), (12.34, "12.3 s"), (200.0, "3 min 20 s"), (7500.0, "2 h 5 min")]
)
def test_times_in_words(value: float, text: str) -> None:
    assert numbers.seconds(value) == text


@each_case(("seconds", "said"), [(9.0, True), (0.9, False)])
def test_uneven_work_is_worth_advice_only_if_a_worker_was_busy_for_long(seconds: float, said: bool) -> None:
    rows = [_row(f"ranges of tcp://10.0.0.{i}:1", 0, 5, 0, seconds=seconds / i**4, tasks=1) for i in (1, 2, 3)]
    uneven = facts(metrics=rows)
    assert any("Skew" in text for text in warnings_of(uneven)) == said
    assert any("uneven" in text for text in advice_of(uneven)) == said
