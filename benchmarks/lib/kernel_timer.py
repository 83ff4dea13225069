"""Time kernels on a device by its events, and stop those that take too long."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any


@contextmanager
def stopped_after(engine: Any, limit: float) -> Iterator[threading.Event]:
    """Interrupt the engine's kernels after so many seconds; yields an event that is set then."""
    expired = threading.Event()

    def stop() -> None:
        expired.set()
        engine.interrupt()

    timer = threading.Timer(limit, stop)
    timer.start()
    try:
        yield expired
    finally:
        timer.cancel()


def kernel_time(
    engine: Any,
    start: Callable[[], Any],
    fetch: Callable[[Any], Any],
    limit: float,
    runs: int,
    prepare: Callable[[], None] = lambda: None,
) -> tuple[float, Any] | None:
    """Time a whole count on the device.

    Parameters
    ----------
    engine
        The CUDA engine.
    start, fetch
        Starts the count; fetches what was found, from what `start` returned.
    limit
        Seconds after which a run is stopped; a third of them is the time for all runs.
    runs
        The most runs, 2 or more.
    prepare
        Called before each run, outside its time.

    Returns
    -------
    milliseconds : float
        The median of the runs after the first, which compiles.
    found : Any
        What the last run found.
    None
        Instead, where a run passes the limit.
    """
    event, samples, found = engine.xp.cuda.Event, [], None
    with stopped_after(engine, limit) as expired:
        began = time.monotonic()
        while len(samples) < 2 or (len(samples) < runs and time.monotonic() - began < limit / 3):
            prepare()
            before, after = event(), event()
            before.record()
            result = start()
            after.record()
            after.synchronize()
            if expired.is_set():
                return None
            samples.append(engine.xp.cuda.get_elapsed_time(before, after))
            found = fetch(result)
    return median(samples[1:]), found
