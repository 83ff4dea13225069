"""Data that a process derives from its graph are made once, inside the budgets, and released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from longwall.pipeline.execution.derived import Derivation, Reserved, derived, forget, reserved
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.phase import NotEnoughMemory
from longwall.storage.memory.reservations import BudgetExceeded

SIZE = 100


@dataclass(frozen=True)
class Number(Derivation[Reserved[int]]):
    """A number, or the error that making it raises."""

    optional: ClassVar[bool] = False

    number: int
    size: int = SIZE

    def build(self, env: Environment) -> Reserved[int]:
        MADE.append(self.number)
        return reserved(env.resources.work, self.size, "a number", lambda: 7 // self.number)


class OptionalNumber(Number):
    optional: ClassVar[bool] = True


class LastNumber(Number):
    last_only: ClassVar[bool] = True


class NumberInPlace(Number):
    last_only: ClassVar[bool] = True
    in_place: ClassVar[bool] = True


MADE: list[int] = []


@pytest.fixture
def env(lab: Any) -> Any:
    MADE.clear()
    return lab.context(lab.graph([(0, 1)]))


def test_it_is_made_once_and_released_in_the_end(env: Any) -> None:
    before = env.resources.work.used
    assert [derived(env, Number(7)).value for _ in range(3)] == [1, 1, 1]
    assert derived(env, Number(1)).value == 7
    assert MADE == [7, 1]
    assert env.resources.work.used == before + 2 * SIZE
    env.close()
    assert env.resources.work.used == before
    assert derived(env, Number(7)).value == 1
    assert MADE == [7, 1, 7]


def test_the_last_of_a_class_replaces_the_one_before(env: Any) -> None:
    before = env.resources.work.used
    derived(env, Number(7))
    for number in (1, 2, 2, 3):
        assert derived(env, LastNumber(number)).value == 7 // number
        assert env.resources.work.used == before + 2 * SIZE
    assert MADE == [7, 1, 2, 3]
    forget(env, LastNumber)
    forget(env, LastNumber)
    assert list(env.derived) == [Number(7)]
    assert env.resources.work.used == before + SIZE


def test_what_is_in_the_place_of_the_graph_goes_with_it(env: Any) -> None:
    derived(env, Number(7))
    derived(env, NumberInPlace(7))
    env.device_graph = "a graph"
    env.forget_layout()
    assert list(env.derived) == [Number(7)]
    assert env.device_graph is None
    env.device_graph = "a graph"
    env.forget_layout()
    assert env.device_graph == "a graph"
    env.device_graph = None


def test_another_graph_in_the_place_of_the_graph_is_not_made_of_the_one_before(env: Any) -> None:
    derived(env, NumberInPlace(7))
    env.device_graph = "what seven made of the graph"
    derived(env, NumberInPlace(1))
    assert list(env.derived) == [NumberInPlace(1)]
    assert env.device_graph is None


def test_what_does_not_fit_says_so_and_leaves_nothing(env: Any) -> None:
    before, much = env.resources.work.used, env.resources.work.free + 1
    with pytest.raises(BudgetExceeded, match="a number"):
        derived(env, Number(7, much))
    with pytest.raises(NotEnoughMemory, match="a number"):
        derived(env, OptionalNumber(7, much))
    for kind in (Number, OptionalNumber):
        with pytest.raises(ZeroDivisionError):
            derived(env, kind(0))
    assert not env.derived
    assert env.resources.work.used == before
