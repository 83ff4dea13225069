"""The one cache of a process: what it derives from its graph, and keeps from phase to phase until the run ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from longwall.kernels.interface.engine import ShortOfMemory, WorkspaceTooLarge
from longwall.pipeline.execution.engine_errors import no_room
from longwall.storage.errors import InputError
from longwall.storage.memory.reservations import BudgetExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

    from longwall.pipeline.execution.environment import Environment
    from longwall.storage.memory.reservations import MemoryBudget, Reservation


class Closable(Protocol):
    """Something that holds bytes of a budget until it is closed."""

    def close(self) -> None:
        """Release them."""
        ...


Made_co = TypeVar("Made_co", bound=Closable, covariant=True)
Value = TypeVar("Value")


class Derivation(ABC, Generic[Made_co]):
    """What is derived from the graph; subclasses are frozen dataclasses, and their fields tell one from another."""

    last_only: ClassVar[bool] = False
    """Whether a process keeps the last one of the class only."""
    in_place: ClassVar[bool] = False
    """Whether it is a graph on the engine, in place of the graph that it is derived from, or beside that one if that is
    small; only one is kept."""
    optional: ClassVar[bool] = True
    """Whether the plan has another way: what does not fit the budgets raises `NotEnoughMemory` then."""

    @abstractmethod
    def build(self, env: Environment) -> Made_co:
        """Derive it inside the budgets; what it has reserved is released if that fails."""


def derived(env: Environment, what: Derivation[Made_co]) -> Made_co:
    """Return what this process has derived, or derive it.

    Raises
    ------
    NotEnoughMemory
        If a budget has no room for it, and it is optional.
    BudgetExceeded, InputError
        If a budget has no room for it, and it is not.
    """
    found: Made_co | None = env.derived.get(what)
    if found is not None:
        return found
    if what.in_place:
        env.forget_layout()
    elif what.last_only:
        forget(env, type(what))
    try:
        with env.engine.faults():
            found = what.build(env)
    except (BudgetExceeded, InputError, ShortOfMemory, WorkspaceTooLarge) as error:
        if what.optional:
            raise no_room(error, env.resources.work) from error
        raise
    env.derived[what] = found
    return found


def made(env: Environment, what: Derivation[Made_co]) -> Made_co:
    """Return what this process has derived already."""
    found: Made_co = env.derived[what]
    return found


def forget(env: Environment, kind: type[Derivation[Any]]) -> None:
    """Release what this process has derived of a class."""
    for what in [one for one in env.derived if isinstance(one, kind)]:
        env.derived.pop(what).close()


class Reserved(Generic[Value]):
    """A value that was derived, with its bytes of a budget."""

    def __init__(self, value: Value, memory: Reservation):
        self.value, self._memory = value, memory

    def close(self) -> None:
        """Release the bytes."""
        self._memory.release()


def reserved(budget: MemoryBudget, size: int, what: str, make: Callable[[], Value]) -> Reserved[Value]:
    """Make a value of `size` bytes inside a budget, whose messages name it `what`."""
    memory = budget.reserve(size, what)
    try:
        return Reserved(make(), memory)
    except BaseException:
        memory.release()
        raise
