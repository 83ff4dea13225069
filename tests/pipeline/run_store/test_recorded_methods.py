"""A resumed run goes on by the method that it began with, whichever the planner would choose now."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

import longwall
from longwall.pipeline.run_store import commit_log
from longwall.storage.observer import NullObserver

GRAPH = {"generator": {"kind": "rmat", "scale": 9, "edge_factor": 6, "seed": 3}}
OTHERS = ["homomorphisms", "homomorphisms-without-lists", "hub-removal", "k-core", "pendant-vertices"]
SEARCH_FIRST = {"kind": "cpu", "threads": 1, "without": OTHERS}


class Interrupting(NullObserver):
    """Interrupts the run after some finished tasks of a phase, and keeps the notes."""

    def __init__(self, tasks: int | None = None, after: int = 0) -> None:
        self._left, self._after, self.phases, self.notes = tasks, after, 0, list[str]()

    def phase(self, name: str, total: int | None = None, unit: str = "") -> None:
        """See `Observer`."""
        self.phases += name == "counting"

    def advance(self, done: int) -> None:
        """See `Observer`."""
        if done and self._left is not None and self.phases > self._after:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGINT)

    def note(self, text: str) -> None:
        """See `Observer`."""
        self.notes.append(text)


@pytest.fixture(autouse=True)
def each_task_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_log, "COMMIT_SECONDS", 0.0)
    monkeypatch.setattr("longwall.pipeline.execution.thread_executor._COMMITS_COST", float("inf"))
    monkeypatch.setattr("longwall.pipeline.execution.thread_executor._CRASH_COSTS", 0.0)


def interrupted(folder: Path, workload: dict[str, Any], engine: dict[str, Any], tasks: int = 3) -> Path:
    config = {"graph": GRAPH, "workload": workload, "engine": engine, "run": {"directory": folder, "name": "one"}}
    with pytest.raises(KeyboardInterrupt):
        longwall.run(config, observer=Interrupting(tasks))
    assert json.loads((folder / "one" / "manifest.json").read_text())["status"] == "interrupted"
    return folder / "one"


def undisturbed(folder: Path, workload: dict[str, Any]) -> longwall.Result:
    config = {"graph": GRAPH, "workload": workload, "engine": {"kind": "cpu"}}
    return longwall.run(config | {"run": {"directory": folder, "name": "whole"}})


HOUSE = {"kind": "match", "pattern": "house"}


def test_a_resumed_run_goes_on_by_its_method(tmp_path: Path) -> None:
    whole = undisturbed(tmp_path, HOUSE)
    assert whole.patterns[0].method == "homomorphisms"
    run = interrupted(tmp_path, HOUSE, SEARCH_FIRST)
    observer = Interrupting()
    result = longwall.resume(run, overrides=["engine.without="], observer=observer)
    assert (result.patterns[0].method, result.count) == ("search", whole.count)
    assert json.loads((run / "manifest.json").read_text())["methods"] == {"search": 1}
    assert not any("began" in note for note in observer.notes)


def test_a_method_goes_on_if_the_estimates_have_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = undisturbed(tmp_path, HOUSE)
    with monkeypatch.context() as patch:
        patch.setattr("longwall.pipeline.planning.methods.homomorphisms.HomomorphismsPlan.steps", lambda *_: 1e300)
        run = interrupted(tmp_path, HOUSE, {"kind": "cpu", "threads": 1, "without": OTHERS[2:]})
    result = longwall.resume(run)
    assert (result.patterns[0].method, result.count) == ("search", whole.count)


def test_the_next_method_counts_if_the_first_does_not_apply(tmp_path: Path) -> None:
    whole = undisturbed(tmp_path, HOUSE)
    run = interrupted(tmp_path, HOUSE, SEARCH_FIRST)
    observer = Interrupting()
    result = longwall.resume(run, overrides=['engine.without=["search"]'], observer=observer)
    assert (result.patterns[0].method, result.count) == ("homomorphisms", whole.count)
    note = 'house: the run began by "search", which does not apply any more: counting by homomorphisms'
    assert note in observer.notes


def test_each_of_several_patterns_has_a_method_of_its_own(tmp_path: Path) -> None:
    workload = {"kind": "match", "pattern": ["house", "cycle-5", "0-1,0-2,1-2,1-3,2-3,3-4"]}
    whole = undisturbed(tmp_path, workload)
    assert [one.method for one in whole.patterns] == ["homomorphisms", "five-cycles", "homomorphisms"]
    run = interrupted(tmp_path, workload, SEARCH_FIRST)
    result = longwall.resume(run, overrides=["engine.without="])
    assert [one.method for one in result.patterns] == ["search", "five-cycles", "homomorphisms"]
    assert [one.count for one in result.patterns] == [one.count for one in whole.patterns]


def test_the_method_that_verifies_is_not_the_method_of_the_run(tmp_path: Path) -> None:
    """A run that is interrupted while it verifies has its count already."""
    workload = {"kind": "motifs", "k": 4}
    config = {"graph": GRAPH, "workload": workload, "engine": {"kind": "cpu", "threads": 1}}
    whole, observer = undisturbed(tmp_path, workload), Interrupting()
    longwall.run(config | {"run": {"directory": tmp_path, "name": "verified", "verify": True}}, observer=observer)
    with pytest.raises(KeyboardInterrupt):
        longwall.run(
            config | {"run": {"directory": tmp_path, "name": "one", "verify": True}},
            observer=Interrupting(1, after=observer.phases - 1),
        )
    observer = Interrupting()
    result = longwall.resume(tmp_path / "one", observer=observer)
    assert {one.method for one in result.patterns} == {whole.patterns[0].method}
    assert [one.count for one in result.patterns] == [one.count for one in whole.patterns]
    assert any(note.startswith("verified") for note in observer.notes)


def test_a_run_of_another_question_is_refused(tmp_path: Path) -> None:
    """The config is the same, but a file that it names is not."""
    pattern = tmp_path / "pattern.graph"
    pattern.write_text("t 3 2\nv 0 0 1\nv 1 0 2\nv 2 0 1\ne 0 1\ne 1 2\n")
    labels = {"generator": {**GRAPH["generator"], "num_labels": 1}}
    config = {"graph": labels, "workload": {"kind": "match", "pattern": str(pattern)}, "engine": SEARCH_FIRST}
    with pytest.raises(KeyboardInterrupt):
        longwall.run(config | {"run": {"directory": tmp_path, "name": "one"}}, observer=Interrupting(1))
    pattern.write_text("t 3 3\nv 0 0 2\nv 1 0 2\nv 2 0 2\ne 0 1\ne 1 2\ne 0 2\n")
    with pytest.raises(longwall.InputError, match="its question is not the one"):
        longwall.resume(tmp_path / "one")
