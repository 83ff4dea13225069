"""What a stage is, and the loop that sends chunks through stages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

Partial = TypeVar("Partial")
Result = TypeVar("Result")

Verb = Literal["source", "extend", "filter", "aggregate", "count", "export"]


class WorkerContext(Protocol):
    """What the stages of one worker work with."""

    @property
    def done(self) -> bool:
        """Whether no more rows are wanted, or the run is to end."""
        ...


@dataclass(frozen=True)
class Aggregation(Generic[Partial, Result]):
    """What an aggregation does: the same on a chunk, across the threads of a process, and across processes.

    Attributes
    ----------
    chunk
        Returns the partial value of a chunk of rows, or of what else is aggregated.
    combine
        Returns one partial value for several, in any order.
    finalize
        Returns the result for the partial value of everything.
    """

    chunk: Callable[..., Partial]
    combine: Callable[[Sequence[Partial]], Partial]
    finalize: Callable[[Partial], Result]

    def result(self, partials: Sequence[Partial]) -> Result:
        """Return the result, for the partial values of all chunks."""
        return self.finalize(self.combine(partials))


class Stage(ABC):
    """One step of a plan: what becomes of a chunk. A stage is data that can be pickled; it works with a context.

    The first stage of a plan makes chunks of rows of a range of roots, the last one returns none.
    """

    verb: ClassVar[Verb]

    def describe(self) -> str:
        """Return the stage as text, for ``longwall explain``; stages of library calls are their verb alone."""
        return self.verb

    @abstractmethod
    def run(self, chunk: Any, context: Any) -> Iterable[Any]:
        """Do the stage's work for a chunk; return or yield what goes on to the next stage, chunk by chunk.

        A generator goes on when all that it has yielded went through the later stages. It keeps no reference to that.
        """


def stream(roots: Any, stages: Sequence[Stage], context: WorkerContext) -> None:
    """Send roots through stages, depth-first: a chunk goes to the end before the stage that made it makes the next one.

    So at most one chunk of each level is alive besides what stages keep for later (G-thinkerCG, section III).

    Parameters
    ----------
    roots
        What the first stage takes.
    stages
        The last one returns nothing.
    context
        What all of them work with; the loop ends early when it is done.
    """
    making: list[Iterator[Any]] = [iter((roots,))]
    end = object()
    try:
        while making and not context.done:
            chunk = next(making[-1], end)
            if chunk is end:
                making.pop()
                continue
            following = stages[len(making) - 1].run(chunk, context)
            del chunk  # the stage may let go of it before its first result
            making.append(iter(following))
    finally:
        while making:  # now, not when the traceback goes
            if isinstance(last := making.pop(), Generator):
                last.close()
