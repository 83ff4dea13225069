"""A live progress bar on standard error, for people at a terminal."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TaskID
from rich.progress_bar import ProgressBar
from rich.text import Text

from longwall.pipeline.progress.compile_seconds import compile_seconds
from longwall.pipeline.progress.live_line import live_line
from longwall.pipeline.progress.progress_text import amount, duration

if TYPE_CHECKING:
    from longwall.storage.observer import LookAtBudgets

REFRESHES_PER_SECOND = 10
_LEAST_COLUMNS = 20


class _Line:
    """A phase that is drawn as wide as the terminal is just then."""

    def __init__(self, task: Task, look: LookAtBudgets | None):
        self._task, self._look = task, look

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw name, bar, work, rate, time left and budgets; of a phase that is over, what it took."""
        task, width = self._task, options.max_width
        unit, name = task.fields["unit"], task.description
        compiled = (compile_seconds(unit) if task.fields["work"] is None else task.fields["end"]) - task.fields["begin"]
        seconds = max((task.elapsed or 0.0) - compiled, 0.0)
        if (work := task.fields["work"]) is not None:
            took = f"{amount(work, unit)} in {duration(seconds)}" if work else duration(seconds)
            yield Text(f"{name}  {took}", no_wrap=True, overflow="crop")
            return
        done, total = int(task.completed), None if task.total is None else int(task.total)
        budgets = {} if self._look is None else self._look()
        share = task.fields["share"]
        left, bar, right = live_line(name, done, total, unit, seconds, share=share, budgets=budgets, width=width)
        line = Text(left, no_wrap=True, overflow="crop")
        if bar:
            drawn = ProgressBar(total=total, completed=done, width=bar)
            segments = list(console.render(drawn, options.update(width=bar)))
            line.append("  ")
            for segment in segments:
                line.append(segment.text.rstrip("\n"), segment.style)
            line.append(" " * (bar - sum(segment.cell_length for segment in segments)))
        yield line.append(f"  {right}" if right else "")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Take all columns that there are."""
        return Measurement(min(_LEAST_COLUMNS, options.max_width), options.max_width)


class _LineColumn(ProgressColumn):
    """The whole line of a phase, but for the spinner."""

    look: LookAtBudgets | None = None

    def render(self, task: Task) -> _Line:
        return _Line(task, self.look)


class TerminalObserver:
    """One line per phase; the last one moves."""

    def __init__(self) -> None:
        self._line = _LineColumn()
        self._progress = Progress(
            SpinnerColumn(finished_text=" "),
            self._line,
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
            begin = compile_seconds(unit)
            self._task = self._progress.add_task(
                name, total=total, unit=unit, work=None, share=0.0, begin=begin, end=begin
            )

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

    def watch_budgets(self, look: LookAtBudgets) -> None:
        """Show how much of each budget is in use, too."""
        self._line.look = look

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
        done, unit = next(
            (task.completed, task.fields["unit"]) for task in self._progress.tasks if task.id == self._task
        )
        done_at = compile_seconds(unit)
        self._progress.update(self._task, total=max(done, 1), completed=max(done, 1), work=done, end=done_at)
        self._progress.stop_task(self._task)
        self._task = None
