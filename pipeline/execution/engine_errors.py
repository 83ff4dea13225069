"""What an engine raises, as the error message that a user reads."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from longwall.kernels.interface.engine import Engine, EngineLost, ShortOfMemory, WorkspaceTooLarge
from longwall.pipeline.execution.phase import NotEnoughMemory
from longwall.storage.errors import FinalError, InputError, RunError
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.memory.sizes import round_size

_SHORT = {
    "host": "out of memory{}: lower memory.host or use a machine with more",
    "device": "the device is out of memory{}: free what other processes take of it, or lower memory.device",
    "limit": "memory.device is too small{}: raise it",
}


def no_room(error: Exception, budget: MemoryBudget) -> NotEnoughMemory:
    """Return the failure of a method whose worker has no room in the memory that the engine works in."""
    if isinstance(error, WorkspaceTooLarge):
        left = f"{budget.option} = {round_size(budget.limit)} has {round_size(budget.free)} left"
        return NotEnoughMemory(f"a workspace takes {round_size(error.needed)}, and {left}")
    if isinstance(error, ShortOfMemory):
        return NotEnoughMemory(_SHORT[error.place].format(""))
    return NotEnoughMemory(str(error))


@contextmanager
def engine_faults(engine: Engine, short: Mapping[str, str]) -> Iterator[None]:
    """Work with an engine in this thread.

    Parameters
    ----------
    engine
        The engine.
    short
        For each place of :class:`longwall.kernels.interface.engine.ShortOfMemory`, what to say where it has no memory
        left, with ``{}`` for what was wanted.

    Raises
    ------
    RunError
        If memory is short, or the device is lost.
    """
    try:
        with engine.faults():
            yield
    except (ShortOfMemory, EngineLost) as error:
        raise _run_error(error, short) from error


def _run_error(error: ShortOfMemory | EngineLost, short: Mapping[str, str]) -> RunError:
    if isinstance(error, EngineLost):
        return RunError(f"the device was lost ({error}): see that it works again, or restart the machine")
    wanted = "" if error.wanted is None else f" ({round_size(error.wanted)} more were wanted)"
    return RunError(short[error.place].format(wanted))


@contextmanager
def user_errors(engine: Engine) -> Iterator[None]:
    """Work for a run with an engine in this thread; what engines raise becomes an error message for the user.

    Raises
    ------
    InputError
        If a workspace does not fit the budget.
    FinalError
        If a count does not fit 64-bit integers.
    RunError
        If memory is short, or the device is lost.
    """
    try:
        with engine.faults():
            yield
    except (ShortOfMemory, EngineLost) as error:
        raise _run_error(error, _SHORT) from error
    except WorkspaceTooLarge as error:
        raise InputError(
            f"a worker needs {round_size(error.needed)} of workspace, more than its share of the budget: "
            f"{error.advice or 'raise memory.host (or memory.device), or lower engine.threads'}"
        ) from error
    except OverflowError as error:
        raise FinalError(str(error)) from error
