"""A live progress bar on standard error, for people at a terminal."""

from __future__ import annotations

import threading

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TaskID, TextColumn
from rich.text import Text

from longwall.pipeline.progress.progress_text import amount, duration, rate_text

REFRESHES_PER_SECOND = 10


class _Work(ProgressColumn):
    """Work done, rate and remaining time; after the phase, what it took."""

    def render(self, task: Task) -> Text:
        unit, seconds = task.fields["unit"], task.elapsed or 0.0
        if (work := task.fields["work"]) is not None:
            return Text(f"{amount(work, unit)} in {duration(seconds)}" if work else duration(seconds))
        done, total = int(task.completed), None if task.total is None else int(task.total)
        state = f"{amount(done, unit)}" if done else ""
        rest = rate_text(done, total, unit, seconds, task.fields["share"]) or duration(seconds)
        return Text(", ".join(part for part in (state, rest) if part))


class TerminalObserver:
    """One line per phase; the last one moves."""

    def __init__(self) -> None:
        self._progress = Progress(
            SpinnerColumn(finished_text=" "),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            _Work(),
            console=Console(stderr=True),
            refresh_per_second=REFRESHES_PER_SECOND,
        )
        self._lock = threading.Lock()
        self._task: TaskID | None = None

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """End the line of the phase before, and begin a new one."""
        with self._lock:
            self._end_phase()
            self._progress.start()
            self._task = self._progress.add_task(name, total=total, unit=unit, work=None, share=0.0)

    def advance(self, n: int) -> None:
        """Move the bar."""
        task = self._task
        if task is not None:
            self._progress.advance(task, n)

    def near_limit(self, share: float) -> None:
        """Correct the remaining time."""
        task = self._task
        if task is not None:
            self._progress.update(task, share=share)

    def note(self, text: str) -> None:
        """Write the message above the bar."""
        self._progress.console.print(text, highlight=False, markup=False)

    def close(self) -> None:
        """Leave the lines as they are and give the terminal back."""
        with self._lock:
            self._end_phase()
            self._progress.stop()

    def _end_phase(self) -> None:
        if self._task is None:
            return
        done = next(task.completed for task in self._progress.tasks if task.id == self._task)
        self._progress.update(self._task, total=max(done, 1), completed=max(done, 1), work=done)
        self._progress.stop_task(self._task)
        self._task = None
