"""What a run or an ingest does, by the logging of the standard library; nothing is shown unless a handler is added."""

from __future__ import annotations

import logging

from longwall.storage.observer import LookAtBudgets, Observer, show_budgets

LOG = logging.getLogger("longwall.run")
logging.getLogger("longwall").addHandler(logging.NullHandler())


class LoggedObserver:
    """An observer that logs events, phases and messages as ``INFO``, and passes them on.

    Parameters
    ----------
    observer
        Receives every event.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """Log that the phase begins."""
        LOG.info("%s (%s %s)", name, "?" if total is None else f"{total:,}", unit)
        self._observer.phase(name, total, unit)

    def advance(self, n: int) -> None:
        """Pass the event on."""
        self._observer.advance(n)

    def near_limit(self, share: float) -> None:
        """Pass the event on."""
        self._observer.near_limit(share)

    def note(self, text: str) -> None:
        """Log the message."""
        LOG.info("%s", text)
        self._observer.note(text)

    def watch_budgets(self, look: LookAtBudgets) -> None:
        """Log the limits, and pass the budgets on."""
        for name, (_, limit) in look().items():
            LOG.debug("budget of %s: %s bytes", name, f"{limit:,}")
        show_budgets(self._observer, look)

    def close(self) -> None:
        """Pass the event on."""
        self._observer.close()
