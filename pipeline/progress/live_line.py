"""The progress of a phase as one line that fits the terminal: what matters least is shortened, then left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from longwall.pipeline.progress.progress_text import amount, duration, seconds_left
from longwall.storage.memory.sizes import round_size

if TYPE_CHECKING:
    from collections.abc import Mapping

_BAR = range(8, 31)  # columns
_NAME = 20  # columns that a longer name may lose only at last
_STEPS = 9
_SHOWN = ("device", "host", "disk")


def live_line(
    name: str,
    done: int,
    total: int | None,
    unit: str,
    seconds: float,
    *,
    share: float = 0.0,
    budgets: Mapping[str, tuple[int, int]] | None = None,
    width: int,
) -> tuple[str, int, str]:
    """Return what stands left of the bar, the columns of the bar (0: none), and what stands right of it.

    Parameters
    ----------
    name
        Of the phase.
    done, total, unit
        The work.
    seconds
        Time since it began.
    share
        The share of a limit that is reached: the work ends where it is 1.
    budgets
        Bytes in use and the limit of each budget.
    width
        Columns of the line.
    """
    for step in range(_STEPS + 1):
        left = name if step < 5 or cell_len(name) <= _NAME else set_cell_size(name, _NAME - 1).rstrip() + "."
        parts = [_work(done, total, unit, step), *_time(done, total, unit, seconds, share, step)]
        right = "  ".join(part for part in (*parts, *_memory(budgets or {}, step)) if part)
        capacity = width - cell_len(left) - cell_len(right) - 2
        if capacity >= 0:
            break
    else:
        return set_cell_size(f"{left} {right}", width).rstrip(), 0, ""
    bar = min(capacity - 2, _BAR[-1]) if total else 0
    return left, bar if bar >= _BAR[0] else 0, right


def compact(n: float) -> str:
    """Return a number in at most five columns, such as ``12.3k`` or ``450M``."""
    for letter in ("", "k", "M", "G", "T"):
        if n < 999.5:
            return f"{n:.3g}{letter}"
        n /= 1000
    return f"{n:,.0f}P"


def _work(done: int, total: int | None, unit: str, step: int) -> str:
    """The work done: of how much as long as there is room, then the percentage alone."""
    if not total:
        return amount(done, unit) if done else ""
    percent = f"{min(done / total, 1):.0%}"
    return percent if step >= 1 else f"{percent} of {amount(total, unit)}"


def _time(done: int, total: int | None, unit: str, seconds: float, share: float, step: int) -> list[str]:
    """The time left, else the time that has passed; and the rate."""
    left = seconds_left(done, total, seconds, share)
    parts = [duration(seconds) if left is None else f"{duration(left)} left"]
    if not done or seconds <= 0 or step >= 7:
        return parts
    rate = done / seconds
    whole = step < 2 or unit == "bytes"
    return [*parts, f"{amount(rate, unit)}/s" if whole else f"{compact(rate)}{' ' + unit if step < 4 else ''}/s"]


def _memory(budgets: Mapping[str, tuple[int, int]], step: int) -> list[str]:
    """The memory used of each budget: in bytes, in percent, then only of those that are in use."""
    if step >= 9:
        return []
    names = [name for name in _SHOWN if name in budgets and (step < 6 or budgets[name][0])]
    names = names if step < 8 else names[:1]
    if step < 3:
        return [f"{name} {round_size(budgets[name][0])} of {round_size(budgets[name][1])}" for name in names]
    return [f"{name} {budgets[name][0] / max(budgets[name][1], 1):.0%}" for name in names]
