"""What a run or an ingest does, by the logging of the standard library; nothing is shown unless a handler is added."""

from __future__ import annotations

import logging

from longwall.storage.observer import ForwardingObserver, LookAtBudgets

LOG = logging.getLogger("longwall.run")
logging.getLogger("longwall").addHandler(logging.NullHandler())


class LoggedObserver(ForwardingObserver):
    """An observer that logs events, phases and messages as ``INFO``, and passes them on."""

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """Log that the phase begins."""
        LOG.info("%s (%s %s)", name, "?" if total is None else f"{total:,}", unit)
        super().phase(name, total, unit)

    def note(self, text: str) -> None:
        """Log the message."""
        LOG.info("%s", text)
        super().note(text)

    def watch_budgets(self, look: LookAtBudgets) -> None:
        """Log the limits, and pass the budgets on."""
        for name, (_, limit) in look().items():
            LOG.debug("budget of %s: %s bytes", name, f"{limit:,}")
        super().watch_budgets(look)
