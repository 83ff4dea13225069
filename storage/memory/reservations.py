"""The accountant: one account per budget, in which every large buffer is booked before it exists.

An account never waits and never frees anything by itself. Who is refused makes its request smaller, or spills, or
lets the sentence of `BudgetExceeded` reach the user.
"""

import threading
from dataclasses import dataclass
from types import TracebackType

from longwall.storage.errors import RunError
from longwall.storage.memory.machine_budget import Budget
from longwall.storage.memory.sizes import round_size


class BudgetExceeded(RunError):
    """A booking that its budget has no room for."""


class Reservation:
    """Bytes that are taken from an account until they are released; a context manager.

    Attributes
    ----------
    size
        The bytes.
    """

    def __init__(self, account: "MemoryBudget", size: int):
        self._account = account
        self.size = size

    def resize(self, size: int, what: str) -> None:
        """Book more or fewer bytes.

        Raises
        ------
        OverBudget
            If there is no room; the booking stays as it was.
        """
        self._account.take(size - self.size, what)
        self.size = size

    def release(self) -> None:
        """Give all bytes back; more than once does no harm."""
        self._account.take(-self.size, "")
        self.size = 0

    def __enter__(self) -> "Reservation":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class MemoryBudget:
    """The bytes of one budget; safe to share between threads.

    Attributes
    ----------
    option
        What sets the budget: a config key, or an option of a command.
    limit
        Bytes in all.
    advice
        What to do where it is too small.

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
        self._used = self._peak = 0
        self._lock = threading.RLock()  # a finalizer may give bytes back while its thread is in here

    def reserve(self, size: int, what: str) -> Reservation:
        """Take `size` bytes for `what` (a noun, for the message).

        Raises
        ------
        OverBudget
            If they are not free: what needs how much, what is left, and what to do.
        """
        self.take(size, what)
        return Reservation(self, size)

    def take(self, size: int, what: str) -> None:
        """Add `size` bytes, which may be negative, to what is used; see `book`."""
        with self._lock:
            if size > 0 and self._used + size > self.limit:
                raise BudgetExceeded(
                    f"{what} needs {round_size(size)}, {self.option} = {round_size(self.limit)} has "
                    f"{round_size(self.limit - self._used)} left: {self.advice}"
                )
            self._used += size
            self._peak = max(self._peak, self._used)

    @property
    def used(self) -> int:
        """Bytes booked now."""
        return self._used

    @property
    def free(self) -> int:
        """Bytes that may still be booked."""
        return self.limit - self._used

    @property
    def peak(self) -> int:
        """The most bytes that were ever booked at once."""
        return self._peak


@dataclass(frozen=True)
class Accounts:
    """The accounts of a run.

    Attributes
    ----------
    host
        Host memory: the graph, tables, scratch and buffers. The interpreter and the libraries are not in it.
    disk
        Spill files and the tables of checkpoints.
    """

    host: MemoryBudget
    disk: MemoryBudget

    @classmethod
    def of(cls, budget: Budget, *, host: str = "memory.host", disk: str = "memory.disk") -> "Accounts":
        """Open the accounts of a run's budgets, which the user sets by the options `host` and `disk`."""
        return cls(MemoryBudget(host, budget.host), MemoryBudget(disk, budget.disk))
