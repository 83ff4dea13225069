"""Work on threads in order, with a bounded number of items under way."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_MOST_THREADS, _THREADS_PER_CORE = 256, 4  # whichever is more

Item = TypeVar("Item")
Result = TypeVar("Result")


def core_count() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def most_threads() -> int:
    """Return how many threads a user may ask for."""
    return max(_MOST_THREADS, _THREADS_PER_CORE * core_count())


def map_ordered(function: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """Yield `function(item)` for every item, in order; the caller's thread draws the items.

    At most `workers` items are under way, one more result is in the consumer's hands. When the iteration ends
    early, by an error or by closing it, no thread continues.
    """
    pool = ThreadPoolExecutor(workers)
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            del item  # it belongs to its thread now, and its memory with it
            if len(waiting) == workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
