"""What a run remembers of itself: parts, phases, messages, memory over time."""

from __future__ import annotations

import threading

import pytest

from longwall.pipeline.progress import history as history_module
from longwall.pipeline.progress.history import History
from longwall.pipeline.report import facts
from longwall.storage.memory.process_memory import resident_bytes, resident_peak
from longwall.storage.observer import NullObserver


class Recorder(NullObserver):
    def __init__(self) -> None:
        self.events: list[object] = []

    def phase(self, name: str, total: int | None, unit: str) -> None:
        self.events.append((name, total, unit))

    def advance(self, n: int) -> None:
        self.events.append(n)

    def near_limit(self, share: float) -> None:
        self.events.append(share)

    def note(self, text: str) -> None:
        self.events.append(text)

    def close(self) -> None:
        self.events.append("closed")


def test_every_event_is_passed_on() -> None:
    seen = Recorder()
    history = History(seen)
    history.phase("reading", 5, "bytes")
    history.advance(3)
    history.near_limit(0.5)
    history.note("slow")
    history.close()
    assert seen.events == [("reading", 5, "bytes"), 3, 0.5, "slow", "closed"]


def fail_in_a_part(history: History) -> None:
    with history.timed("mine"):
        history.phase("counting", None, "arcs")
        raise ZeroDivisionError


def test_a_phase_ends_with_the_next_one_or_with_its_part() -> None:
    history = History(NullObserver())
    with history.timed("graph"):
        history.phase("reading", None, "bytes")
        history.phase("sorting", None, "bytes")
    with pytest.raises(ZeroDivisionError):
        fail_in_a_part(history)
    facts = history.facts()
    parts, phases = facts["parts"], facts["phases"]
    assert [part["name"] for part in parts] == ["graph", "mine"]
    assert [phase["name"] for phase in phases] == ["reading", "sorting", "counting"]
    assert phases[0]["end"] == phases[1]["begin"]
    assert phases[1]["end"] == parts[0]["end"] <= parts[1]["begin"]
    assert phases[2]["end"] == parts[1]["end"] <= facts["seconds"]
    assert history.timings.keys() == {"graph"}, "a part that failed has no time of its own"


def test_a_part_may_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(NullObserver())
    clock = [10.0]
    monkeypatch.setattr(history, "_now", lambda: clock[0])
    for name, seconds in (("graph", 8.0), ("plan", 2.0), ("graph", 4.0)):
        with history.timed(name):
            clock[0] += seconds
    assert history.timings == {"graph": 12.0, "plan": 2.0}
    assert facts._seconds_of(history.facts()["parts"]) == {"graph": 12.0, "plan": 2.0}


def test_compiling_is_no_time_of_the_part_in_which_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(NullObserver())
    clock, compiled = [10.0], [1.0]
    monkeypatch.setattr(history, "_now", lambda: clock[0])
    monkeypatch.setattr(history_module, "compile_seconds", lambda: compiled[0])
    for seconds, compiling in ((8.0, 5.0), (2.0, 0.0), (4.0, 1.0)):
        with history.timed(f"part of {seconds}"):
            clock[0] += seconds
            compiled[0] += compiling
    assert [part.get("compile", 0) for part in history.facts()["parts"]] == [5.0, 0, 1.0]
    assert history.timings == {"compile": 6.0, "part of 8.0": 3.0, "part of 2.0": 2.0, "part of 4.0": 3.0}


def test_no_more_is_remembered_than_a_page_can_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "_MOST_PHASES", 3)
    monkeypatch.setattr(history_module, "_MOST_NOTES", 2)
    history = History(NullObserver())
    for number in range(5):
        history.phase(f"level {number}", None, "arcs")
        history.note(f"note {number}")
    facts = history.facts()
    assert [phase["name"] for phase in facts["phases"]] == ["level 0", "level 1", "level 2"]
    assert facts["phases_left_out"] == 2
    assert len(facts["notes"]) == 2


def test_memory_is_looked_at_now_and_then_and_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "_SAMPLE_SECONDS", 0.001)
    monkeypatch.setattr(history_module, "_MOST_SAMPLES", 8)
    looks = 0
    many = threading.Event()

    def in_use() -> dict[str, int]:
        nonlocal looks
        looks += 1
        if looks > 20:
            many.set()
        return {"host": looks} if looks < 5 else {"host": looks, "device": 1}

    history = History(NullObserver())
    with history.watch(in_use):
        assert many.wait(30)
    memory = history.facts()["memory"]
    assert 2 <= len(memory["seconds"]) <= 10
    assert memory["seconds"] == sorted(memory["seconds"])
    assert memory["used"]["device"][0] == 0, "before the device was used"
    assert memory["used"]["host"] == sorted(memory["used"]["host"])


def test_nothing_is_looked_at_where_there_will_be_no_report() -> None:
    history = History(NullObserver(), watching=False)
    before = threading.active_count()
    with history.watch(lambda: {"host": 1}):
        assert threading.active_count() == before
    assert history.facts()["memory"] == {"seconds": [], "used": {}, "process": [], "process_peak": 0}


def test_a_peak_between_two_looks_is_seen() -> None:
    """The peak of the process counts if it grew meanwhile: 256 MiB above all that it had before."""
    history = History(NullObserver())
    with history.watch(lambda: {"host": 1}):
        size = (256 << 20) + max(resident_peak() - resident_bytes(), 0)
        bytearray(size)[::4096] = b"x" * -(-size // 4096)
    memory = history.facts()["memory"]
    assert memory["process_peak"] >= memory["process"][0] > 0
    assert memory["process_peak"] >= size
