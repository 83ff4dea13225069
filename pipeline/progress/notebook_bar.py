"""A live progress bar in the output of a notebook's cell; it needs no widgets."""

from __future__ import annotations

import threading
import time
from html import escape
from typing import Any

from longwall.pipeline.progress.progress_text import amount, duration, progress_text

_BETWEEN = 0.25  # least seconds between two pictures of the bar: each is a message to the browser


class NotebookObserver:
    """One line per phase; the last one has a bar that moves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: list[str] = []
        self._handle: Any = None
        self._name, self._unit = "", ""
        self._total: int | None = None
        self._done, self._share = 0, 0.0
        self._began = self._shown = time.monotonic()

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """End the line of the phase before, and begin a new one."""
        with self._lock:
            self._end_phase()
            self._name, self._total, self._unit, self._done, self._share = name, total, unit, 0, 0.0
            self._began = time.monotonic()
            self._show()

    def advance(self, n: int) -> None:
        """Move the bar."""
        with self._lock:
            self._done += n
            self._show_when_due()

    def near_limit(self, share: float) -> None:
        """Correct the remaining time."""
        with self._lock:
            self._share = max(self._share, share)
            self._show_when_due()

    def note(self, text: str) -> None:
        """Add the message as a line."""
        with self._lock:
            self._lines.append(text)
            self._show()

    def close(self) -> None:
        """Leave the lines as they are, without a bar."""
        with self._lock:
            self._end_phase()
            if self._handle is not None:
                self._show()

    def _end_phase(self) -> None:
        if self._name:
            seconds = duration(time.monotonic() - self._began)
            took = f"{amount(self._done, self._unit)} in {seconds}" if self._done else seconds
            self._lines.append(f"{self._name}: {took}")
        self._name = ""

    def _show_when_due(self) -> None:
        if time.monotonic() - self._shown >= _BETWEEN:
            self._show()

    def _show(self) -> None:
        from IPython.display import HTML, display

        self._shown = time.monotonic()
        page = HTML(self._html())
        if self._handle is None:
            self._handle = display(page, display_id=True)
        else:
            self._handle.update(page)

    def _html(self) -> str:
        lines = [escape(line) for line in self._lines]
        if self._name:
            seconds = time.monotonic() - self._began
            text = progress_text(self._name, self._done, self._total, self._unit, seconds, self._share)
            share = max(self._done / self._total if self._total else 0.0, self._share)
            value = f' value="{min(share, 1):.4f}"' if share else ""  # without one, it moves to and fro
            lines.append(f'<progress max="1"{value} style="width:16em;max-width:40%"></progress> {escape(text)}')
        return "".join(f"<div>{line}</div>" for line in lines)
