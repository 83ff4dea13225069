"""Progress for logs and programs: lines that begin with the time, and objects of JSON."""

from __future__ import annotations

import io
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from cases import each_case
from typer.testing import CliRunner

from longwall.pipeline.cli import app
from longwall.pipeline.progress import observers
from longwall.pipeline.progress.observers import JsonObserver, PlainObserver


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder with a config."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graph.txt").write_text("1 2\n2 3\n3 1\n3 4\n")
    (tmp_path / "mine.toml").write_text(
        '[graph]\npath = "graph.txt"\n[workload]\nkind = "triangles"\n[engine]\nkind = "cpu"\n'
    )


def said(*words: str, code: int = 0) -> list[str]:
    ended = CliRunner().invoke(app, list(words))
    assert ended.exit_code == code, ended.output
    return ended.stderr.splitlines()


def events_of(lines: list[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [json.loads(line) for line in lines]
    times = [datetime.fromisoformat(one["time"]) for one in found]
    assert all(one.tzinfo is not None for one in times)
    assert times == sorted(times)
    return found


@each_case("words", [("run", "mine.toml"), ("run", "mine.toml", "--overwrite", "--progress", "lines")])
def test_lines_begin_with_the_time_where_no_terminal_shows_them(words: tuple[str, ...]) -> None:
    lines = said(*words)
    assert any("counting" in line for line in lines)
    for line in lines:
        stamp, _, text = line.partition(" ")
        assert datetime.fromisoformat(stamp).tzinfo is not None
        assert text


def test_each_line_of_a_message_begins_with_the_time() -> None:
    stream = io.StringIO()
    PlainObserver(stream, stamps=True).note("one\ntwo")
    assert [line.split(" ")[1] for line in stream.getvalue().splitlines()] == ["one", "two"]


@each_case(
    "words",
    [
        ("run", "mine.toml", "--progress", "json"),
        ("resume", "runs/mine", "--progress", "json"),
        ("explain", "mine.toml", "--progress", "json"),
        ("ingest", "graph.txt", "new.zarr", "--progress", "json"),
        ("generate", "rmat", "other.zarr", "--scale", "6", "--edge-factor", "4", "--progress", "json"),
    ],
)
def test_events_are_json(words: tuple[str, ...]) -> None:
    events = events_of(said(*words))
    assert events
    assert {one["event"] for one in events} <= {"phase", "progress", "end", "note"}
    begun = [one["phase"] for one in events if one["event"] == "phase"]
    assert begun == [one["phase"] for one in events if one["event"] == "end"], "each phase ends before the next"


def test_json_is_alone_on_standard_error_beside_the_json_of_the_result() -> None:
    ended = CliRunner().invoke(app, ["run", "mine.toml", "--progress", "json", "--json"])
    assert events_of(ended.stderr.splitlines())
    assert json.loads(ended.stdout)["count"] == 1


def test_progress_has_work_time_left_and_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(observers.time, "monotonic", lambda: clock[0])
    stream = io.StringIO()
    observer = JsonObserver(stream)
    observer.watch_budgets(lambda: {"host": (3, 8)})
    observer.phase("mining", 100, "tasks")
    observer.advance(10)  # too soon after the line before
    clock[0] = 110.0
    observer.advance(10)
    observer.note('a "note"')
    observer.phase("writing", None, "rows")
    clock[0] = 112.5
    observer.close()
    expected = [
        {"event": "phase", "phase": "mining", "total": 100, "unit": "tasks"},
        {
            "event": "progress",
            "phase": "mining",
            "done": 20,
            "total": 100,
            "unit": "tasks",
            "seconds": 10.0,
            "left": 40.0,
            "budgets": {"host": {"used": 3, "limit": 8}},
        },
        {"event": "note", "text": 'a "note"'},
        {"event": "end", "phase": "mining", "done": 20, "unit": "tasks", "seconds": 10.0},
        {"event": "phase", "phase": "writing", "total": None, "unit": "rows"},
        {"event": "end", "phase": "writing", "done": 0, "unit": "rows", "seconds": 2.5},
    ]
    events = events_of(stream.getvalue().splitlines())
    assert [{key: value for key, value in one.items() if key != "time"} for one in events] == expected


def test_another_form_is_refused() -> None:
    assert said("run", "mine.toml", "--progress", "xml", code=2) == [
        "error: --progress: expected auto, lines or json, not xml"
    ]


def test_quiet_goes_before_the_form() -> None:
    assert said("run", "mine.toml", "--progress", "json", "--quiet") == []
