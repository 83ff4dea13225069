"""What an engine raises, as the sentence that a user reads."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from longwall.kernels.interface.engine import Engine, EngineLost, ShortOfMemory
from longwall.storage.errors import RunError
from longwall.storage.memory.sizes import round_size


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
    except ShortOfMemory as error:
        wanted = "" if error.wanted is None else f" ({round_size(error.wanted)} more were wanted)"
        raise RunError(short[error.place].format(wanted)) from error
    except EngineLost as error:
        raise RunError(f"the device was lost ({error}): see that it works again, or restart the machine") from error
