"""What a run leaves in cycles is collected at its end, and nothing stays set apart."""

import gc
import weakref

import pytest

from longwall.pipeline.garbage import collecting


class Knot:
    def __init__(self) -> None:
        self.own = self


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
