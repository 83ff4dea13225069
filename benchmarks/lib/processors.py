"""Seconds of processors that a part of a run takes: on a busy machine they say more than its seconds."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def processors(part: str) -> Iterator[list[float]]:
    """Note the seconds of this process' processors in a part of runs, such as ``"mine"``; yields a list of them."""
    from longwall.pipeline.progress.history import History

    timed = History.timed
    found: list[float] = []

    @contextmanager
    def noted(self: History, name: str) -> Iterator[None]:
        began = time.process_time()
        with timed(self, name):
            yield
        if name == part:
            found.append(time.process_time() - began)

    History.timed = noted  # type: ignore[method-assign]
    try:
        yield found
    finally:
        History.timed = timed  # type: ignore[method-assign]
