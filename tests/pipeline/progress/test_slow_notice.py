"""A call that shows no progress says once that it takes long, what it does, and how to see more."""

from __future__ import annotations

import threading
from itertools import count
from typing import Any

import pytest

import longwall
from longwall.kernels.jit.compile_clock import COMPILING
from longwall.pipeline.progress import slow_notice
from longwall.pipeline.progress.slow_notice import SlowNotice


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A process that has written no line yet, whose clock goes on by 15 seconds with every look at it."""
    monkeypatch.setattr(slow_notice, "_written", threading.Event())
    monkeypatch.setattr(slow_notice, "perf_counter", map(float, count(0, 15)).__next__)


def reported(hint: str = "") -> None:
    """Two phases; the first look at the clock is that of the first one."""
    observer = SlowNotice(hint)
    observer.phase("reading", 10, "bytes")
    observer.phase("counting", 1000, "arcs")
    observer.advance(250)
    observer.advance(250)
    observer.close()


def test_the_line_says_what_is_done_and_comes_once(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        reported()
    said = "counting: 25% of 1,000 arcs, 17 arcs/s, 0:45 left"
    assert capsys.readouterr().err == f"longwall: after 30 s: {said}; progress=True shows how far a call is\n"


def test_the_line_has_the_hint_of_the_call(capsys: pytest.CaptureFixture[str]) -> None:
    reported("max_edges ends it earlier")
    assert capsys.readouterr().err.endswith(" left; max_edges ends it earlier; progress=True shows how far a call is\n")


def test_seconds_of_compiling_are_not_those_of_the_call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(COMPILING, "seconds", map(float, count(0, 15)).__next__)
    reported()
    assert capsys.readouterr().err == ""


def test_a_call_without_progress_writes_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_notice, "SECONDS", 0.0)
    karate = longwall.example("karate")
    longwall.frequent(karate, support=34, engine="cpu", progress=True)
    assert "progress=True" not in capsys.readouterr().err
    longwall.frequent(karate, support=34, max_edges=1, engine="cpu")
    assert "max_edges" not in (said := capsys.readouterr().err)
    assert said.count("longwall: ") == 1
    slow_notice._written.clear()
    longwall.frequent(karate, support=34, engine="cpu")
    assert "; max_edges=3, for instance, or a higher support ends it earlier; " in capsys.readouterr().err
