"""Progress as events: what a run or an ingest reports to its observer."""

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

LookAtBudgets = Callable[[], Mapping[str, tuple[int, int]]]
"""Returns the bytes in use and the limit of each budget, by name."""


class Observer(Protocol):
    """Receives the progress of a run or an ingest; every method may be called from any thread."""

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """Begin a phase of `total` units of work (None: unknown); this ends the phase before it."""

    def advance(self, n: int) -> None:
        """Add `n` units to the work that is done in the present phase."""

    def near_limit(self, share: float) -> None:
        """Report the share (0 to 1) of a limit that is reached, where the limit may end the present phase early."""

    def note(self, text: str) -> None:
        """Show the user a message."""

    def close(self) -> None:
        """End: no further events come."""


@runtime_checkable
class BudgetObserver(Protocol):
    """An observer that shows how much of each budget is in use, too."""

    def watch_budgets(self, look: LookAtBudgets) -> None:
        """From now on, look whenever the progress is shown."""


def show_budgets(observer: Observer, look: LookAtBudgets) -> None:
    """Let an observer show budgets, if it is one that does."""
    if isinstance(observer, BudgetObserver):
        observer.watch_budgets(look)


class NullObserver:
    """Ignores all events: for ``--quiet`` and for use as a library."""

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """Ignore the event."""

    def advance(self, n: int) -> None:
        """Ignore the event."""

    def near_limit(self, share: float) -> None:
        """Ignore the event."""

    def note(self, text: str) -> None:
        """Ignore the event."""

    def close(self) -> None:
        """Ignore the event."""


class ForwardingObserver:
    """Passes all events on.

    Parameters
    ----------
    observer
        Receives every event.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """Pass the event on."""
        self._observer.phase(name, total, unit)

    def advance(self, n: int) -> None:
        """Pass the event on."""
        self._observer.advance(n)

    def near_limit(self, share: float) -> None:
        """Pass the event on."""
        self._observer.near_limit(share)

    def note(self, text: str) -> None:
        """Pass the event on."""
        self._observer.note(text)

    def watch_budgets(self, look: LookAtBudgets) -> None:
        """Pass the budgets on."""
        show_budgets(self._observer, look)

    def close(self) -> None:
        """Pass the event on."""
        self._observer.close()
