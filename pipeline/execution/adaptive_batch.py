"""How much work is done at once where memory runs short in the middle of a run."""

import sys
from collections.abc import Callable
from typing import TypeVar

from longwall.kernels.interface.engine import Engine, ShortOfMemory, WorkspaceTooLarge
from longwall.kernels.interface.pages import Pages

Found = TypeVar("Found")
MakeRoom = Callable[[ShortOfMemory], bool]


_PATIENCE = 8  # pieces after which a larger one is tried again: the work of one that fails is lost
_MOST_PATIENCE = 1 << 10  # and twice as many after each that fails, up to this number


def no_room(short: ShortOfMemory) -> bool:  # noqa: ARG001 - a `MakeRoom`
    """For callers who hold nothing that could leave the engine's memory."""
    return False


def shrink_page_cache(pages: Pages | None, short: ShortOfMemory) -> bool:
    """Shrink the page cache, which no limit holds. Return whether it held memory."""
    return short.place == "device" and pages is not None and pages.shrink()


class AdaptiveBatch:
    """The size of one piece of work: halved when memory is short, doubled when it long was not; threads may share it.

    The more often a larger piece failed, the longer it is until the next one is tried.

    Parameters
    ----------
    engine
        The engine that does the work.

    Attributes
    ----------
    short
        What made the work smaller the last time; None where memory was never short.
    """

    def __init__(self, engine: Engine):
        self._engine = engine
        self._size, self._done = sys.maxsize, 0
        self._patience, self._grown = _PATIENCE, False
        self.short: ShortOfMemory | None = None

    def run(self, most: int, work: Callable[[int], Found], make_room: MakeRoom = no_room) -> Found:
        """Do a piece of work that is as large as memory allows.

        Parameters
        ----------
        most
            Its largest size.
        work
            Does a piece of the size that it is given; where it fails it must have changed nothing.
        make_room
            Frees some of the memory that is short; returns whether it could.

        Raises
        ------
        ShortOfMemory
            If there is not even memory for a piece of size 1.
        """
        size = min(self._size, most)
        while True:
            try:
                with self._engine.faults():
                    found = work(size)
            except ShortOfMemory as error:
                # The error itself keeps alive what its frames hold, and must be gone when memory is released.
                short = ShortOfMemory(error.place, error.wanted)
            else:
                if self._grown:
                    self._patience, self._grown = max(self._patience // 2, _PATIENCE), False
                self._done += 1
                if size < most and self._done % self._patience == 0:
                    self._size, self._grown = 2 * size, True
                return found
            if not make_room(short):
                if size <= 1:
                    raise short
                size, self.short = size // 2, short
                self._size = size
                self._done = 0
                if self._grown:
                    self._patience, self._grown = min(self._patience * 2, _MOST_PATIENCE), False
            self._engine.memory.release()


def make_workspace(engine: Engine, memory: int, make: Callable[[int], Found]) -> Found:
    """Make a worker's workspace; a smaller one where the engine has less memory than was expected.

    Parameters
    ----------
    engine
        The engine.
    memory
        The most bytes that it may take.
    make
        Makes it with at most a given number of bytes.

    Raises
    ------
    WorkspaceTooLarge
        If it does not fit `memory`.
    ShortOfMemory
        If it would fit, but less is free.
    """
    batch = AdaptiveBatch(engine)
    try:
        return batch.run(memory, make)
    except WorkspaceTooLarge as error:
        if batch.short is None:
            raise
        raise ShortOfMemory(batch.short.place, error.needed) from None
