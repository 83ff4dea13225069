"""Budgets of memory and disk: every large buffer is reserved in its budget before it is made.

A budget never waits and never frees anything by itself. A caller that is refused asks for less, spills, or lets
`BudgetExceeded` propagate; its message is for the user.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from longwall.storage.errors import RunError
from longwall.storage.memory.sizes import round_size


class BudgetExceeded(RunError):
    """A reservation does not fit its budget."""


class Reservation:
    """Bytes of a budget that are in use until they are released; a context manager.

    Attributes
    ----------
    size
        The bytes.
    """

    def __init__(self, budget: "MemoryBudget", size: int):
        self._budget = budget
        self.size = size

    def resize(self, size: int, what: str) -> None:
        """Reserve more or fewer bytes.

        Raises
        ------
        BudgetExceeded
            If they are not free; the reservation stays as it was.
        """
        self._budget.charge(size - self.size, what)
        self.size = size

    def split(self, size: int) -> "Reservation":
        """Return a reservation of its own for `size` of these bytes."""
        self.size -= size
        return Reservation(self._budget, size)

    def join(self, part: "Reservation") -> None:
        """Take the bytes of another reservation of the same budget over; a second call has no effect."""
        self.size, part.size = self.size + part.size, 0

    def release(self) -> None:
        """Return all bytes to the budget; a second call has no effect."""
        self._budget.charge(-self.size, "")
        self.size = 0

    def __enter__(self) -> "Reservation":
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


class MemoryBudget:
    """A number of bytes and how many of them are in use; safe to share between threads.

    Attributes
    ----------
    option
        What sets the budget: a config key, or an option of a command.
    limit
        Bytes in all.
    advice
        What the user can do where it is too small.
    used, peak
        Bytes in use now, and the most that were ever in use at once.

    Parameters
    ----------
    option, limit
        See above.
    advice
        "raise `option`" if not given.
    """

    def __init__(self, option: str, limit: int, advice: str | None = None):
        self.option = option
        self.limit = limit
        self.advice = advice or f"raise {option}"
        self.used = self.peak = 0
        self._written, self._writing = 0, 0.0
        self._lock = threading.RLock()  # a finalizer may release bytes while its thread is in here

    def reserve(self, size: int, what: str) -> Reservation:
        """Reserve `size` bytes for `what` (a noun, for the message).

        Raises
        ------
        BudgetExceeded
            If they are not free. The message says what needs how much, what is left, and what to do.
        """
        self.charge(size, what)
        return Reservation(self, size)

    def charge(self, size: int, what: str) -> None:
        """Add `size` bytes, which may be negative, to those in use; see `reserve`."""
        with self._lock:
            if size > 0 and self.used + size > self.limit:
                raise BudgetExceeded(
                    f"no room for {what} ({round_size(size)}): {self.option} = {round_size(self.limit)} has "
                    f"{round_size(self.limit - self.used)} left: {self.advice}"
                )
            self.used += size
            self.peak = max(self.peak, self.used)

    def add_writing(self, size: int, seconds: float) -> None:
        """Note how many bytes were written to the disk of this budget, and how long that took."""
        with self._lock:
            self._written += size
            self._writing += seconds

    @property
    def writing(self) -> tuple[int, float]:
        """Bytes that were written in all, and the seconds that it took."""
        return self._written, self._writing

    @property
    def free(self) -> int:
        """Bytes that may still be reserved."""
        return self.limit - self.used

    @contextmanager
    def watched(self) -> Iterator[Callable[[], int]]:
        """Yield a function that returns the most bytes that the block has had in use, beyond those at its beginning."""
        with self._lock:
            before, used = self.peak, self.used
            self.peak = used
        try:
            yield lambda: self.peak - used
        finally:
            with self._lock:
                self.peak = max(before, self.peak)
