"""Numbers as a reader of a report wants them."""

from __future__ import annotations

import math
from typing import Any

from longwall.storage.memory.sizes import round_size

NONE = "-"
"""Stands for a number that there is not."""
_THOUSANDS = (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))


def seconds(value: float) -> str:
    """Return a time in at most four digits: ``0.5 ms``, ``12.3 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if value < 1:
        return f"{value * 1000:.3g} ms"
    if value < 100:
        return f"{value:.3g} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes_left = divmod(minutes, 60)
    return f"{minutes} min {rest} s" if minutes < 100 else f"{hours} h {minutes_left} min"


def count(value: Any) -> str:
    """Return a number with separators; a dash where there is none."""
    if value is None:
        return NONE
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.3e}"


def short(value: float) -> str:
    """Return three digits and a letter for the thousands: ``1.23M``."""
    for letter, factor in _THOUSANDS:
        if value >= factor:
            return f"{value / factor:.3g}{letter}"
    return f"{value:.3g}"


def size(value: Any) -> str:
    """Return bytes; a dash where there are none."""
    return NONE if not value else round_size(value)


def ratio(after: float, before: float) -> str:
    """Return how many times the first number is the second; a dash where there is no saying."""
    if before <= 0 or after < 0 or not math.isfinite(after / before):
        return NONE
    return f"{after / before:.2f}x" if after / before < 100 else f"{after / before:,.0f}x"


def percent(share: float) -> str:
    """Return a share as a percentage."""
    if 0 < share < 0.001:
        return "less than 0.1%"
    return f"{share:.0%}" if share >= 0.1 or share == 0 else f"{share:.1%}"
