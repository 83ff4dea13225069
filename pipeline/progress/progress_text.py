"""Progress in words: amounts, rates and remaining time."""

from longwall.storage.memory.sizes import round_size


def amount(n: float, unit: str) -> str:
    """Return ``12,345 tasks``, ``0.5 tasks``, or ``1.2 GiB`` if the unit is bytes."""
    if unit == "bytes":
        return round_size(n)
    return f"{n:,.0f} {unit}" if n >= 1 or n == 0 else f"{n:.1f} {unit}"


def duration(seconds: float) -> str:
    """Return ``0:42``, ``12:05`` or ``3:00:00``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def rate_text(done: int, total: int | None, unit: str, seconds: float, share: float = 0.0) -> str:
    """Return the rate, and the remaining time where that is known; empty before any work is done.

    Parameters
    ----------
    done, total, unit
        The work.
    seconds
        Time since it began.
    share
        The share of a limit that is reached: the work ends where it is 1.
    """
    if seconds <= 0:
        return ""
    parts = [f"{amount(done / seconds, unit)}/s"] if done else []
    if (left := seconds_left(done, total, seconds, share)) is not None:
        parts.append(f"{duration(left)} left")
    return ", ".join(parts)


def seconds_left(done: int, total: int | None, seconds: float, share: float = 0.0) -> float | None:
    """Return the remaining time of work at its present rate, None where it is not known; parameters of `rate_text`."""
    rests = [max(total - done, 0) * seconds / done] if done and total else []
    if share > 0:
        rests.append(max(1 - share, 0) * seconds / share)
    return min(rests) if rests and seconds > 0 else None


def progress_text(name: str, done: int, total: int | None, unit: str, seconds: float, share: float = 0.0) -> str:
    """Return one plain line of progress, such as ``mining: 40% of 1,000 tasks, 20 tasks/s, 0:30 left``."""
    state = f"{min(done / total, 1):.0%} of {amount(total, unit)}" if total else amount(done, unit)
    return ", ".join(part for part in (f"{name}: {state}", rate_text(done, total, unit, seconds, share)) if part)
