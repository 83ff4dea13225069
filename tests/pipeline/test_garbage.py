"""What a run leaves in cycles is collected at its end, and nothing stays set apart."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from longwall.pipeline import garbage
from longwall.pipeline.garbage import collecting


class Knot:
    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def no_failure_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    gc.unfreeze()
    monkeypatch.setattr(garbage, "_failed", False)
    yield
    gc.unfreeze()


@pytest.mark.parametrize("error", [None, ValueError])
def test_what_was_made_is_collected(error: type[Exception] | None) -> None:
    try:
        with collecting():
            gc.disable()
            ended = weakref.ref(Knot())
            assert ended() is not None
            if error is not None:
                raise error
    except ValueError:
        pass
    finally:
        gc.enable()
    assert ended() is None
    with collecting():
        pass
    assert gc.get_freeze_count() == 0


def test_what_was_there_before_is_set_apart_meanwhile() -> None:
    gc.disable()
    before = weakref.ref(Knot())
    with collecting():
        gc.collect()
        assert before() is not None
    gc.enable()
    gc.collect()
    assert before() is None


def test_a_few_objects_that_the_interpreter_set_apart_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python 3.12 does when it starts: each small count took 0.1 s there, for all objects were looked through."""
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 375)
    gc.disable()
    before = weakref.ref(Knot())
    with collecting():
        gc.collect()
        assert before() is not None
    gc.enable()
    gc.collect()
    assert before() is None


def test_what_an_error_held_is_collected_when_the_next_run_begins() -> None:
    class Failure(Exception):
        def __init__(self, held: Knot) -> None:
            self.held, self.own = held, self

    gc.disable()
    try:
        with collecting():
            ended = weakref.ref(knot := Knot())
            raise Failure(knot)
    except Failure:
        del knot
    finally:
        assert ended() is not None
        with collecting():
            there = ended() is not None
        gc.enable()
    assert not there


def test_a_failure_sets_nothing_apart() -> None:
    """There may be no next run: objects that a program drops after a failure are collected as usual."""
    gc.disable()
    before = weakref.ref(Knot())
    try:
        with pytest.raises(ValueError, match="no room"), collecting():
            raise ValueError("no room")
        assert gc.get_freeze_count() == 0
        gc.collect()
    finally:
        gc.enable()
    assert before() is None


def test_what_others_set_apart_stays_so() -> None:
    gc.disable()
    before = weakref.ref(Knot())
    gc.freeze()
    try:
        with collecting(), collecting():
            pass
        gc.collect()
        assert before() is not None
    finally:
        gc.unfreeze()
        gc.enable()
    gc.collect()
    assert before() is None
