"""Work on threads with a bounded number of items under way: in order, or ahead of those who ask for it."""

import os
import threading
from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

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


def map_all(
    pool: ThreadPoolExecutor, workers: int, function: Callable[[Item], Result], items: Sequence[Item]
) -> list[Result]:
    """Return `function(item)` for every item, in order; threads take the next item themselves, so it costs little.

    Parameters
    ----------
    pool, workers
        Threads, and how many of them to use.
    function
        Is called by any of them.
    items
        They are begun in order. Once one has failed none is begun, and when all that were begun are done, the error
        of the first of them is raised.
    """
    results: list[Any] = [None] * len(items)
    errors: dict[int, BaseException] = {}
    numbers = iter(range(len(items)))  # `next` of it is one step: no two threads get the same number
    stopped = threading.Event()

    def work() -> None:
        for number in numbers:
            try:
                results[number] = function(items[number])
            except BaseException as error:
                errors[number] = error
                return stopped.set()
            if stopped.is_set():
                return None
        return None

    working = [pool.submit(work) for _ in range(min(workers, len(items)))]
    try:
        wait(working)
    finally:
        stopped.set()
        wait(working)
    if errors:
        try:
            raise errors[min(errors)]
        finally:  # its traceback leads here: in such a cycle all that the threads had would stay
            errors.clear()
    return results


class ReadAhead:
    """Objects by number, read before they are wanted; errors are raised where they are wanted.

    Parameters
    ----------
    wanted
        (number, argument of `read`), by number. They may be asked for in any order, but behind a number mostly comes
        the next one.
    read
        Reads one.
    depth
        Most objects that are read and not yet asked for.
    """

    def __init__(self, wanted: Sequence[tuple[int, Any]], read: Callable[[Any], Any], depth: int):
        self._arguments = dict(wanted)
        self._numbers = list(self._arguments)
        self._waiting = set(self._arguments)  # neither asked for nor coming
        self._read, self._depth = read, depth
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="read-ahead")
        self._coming: OrderedDict[int, Future[Any]] = OrderedDict()

    def get(self, number: int) -> Any:
        """Wait for one, and have the next ones read. One that was given before is read again."""
        with self._lock:
            future = self._coming.pop(number, None) or self._submit(number)
            place = bisect_right(self._numbers, number)
            for distance, following in enumerate(self._numbers[place : place + 2 * self._depth]):
                if following not in self._waiting:
                    continue
                if len(self._coming) == self._depth:
                    if distance:
                        break
                    self._coming.popitem(last=False)[1].cancel()  # it was not asked for
                self._coming[following] = self._submit(following)
        return future.result()

    def _submit(self, number: int) -> Future[Any]:
        self._waiting.discard(number)
        return self._pool.submit(self._read, self._arguments[number])

    def __enter__(self) -> "ReadAhead":
        return self

    def __exit__(self, *exc: object) -> None:
        self._pool.shutdown(cancel_futures=True)
