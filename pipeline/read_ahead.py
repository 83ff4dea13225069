"""Read what workers ask for next on a thread, while they work on what they have."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class ReadAhead:
    """Objects by number, read in the order in which they will be wanted; errors are raised where they are wanted.

    Parameters
    ----------
    wanted
        (number, argument of `read`) in about the order in which they will be asked for.
    read
        Reads one.
    depth
        Most objects that are read and not yet asked for.
    """

    def __init__(self, wanted: Sequence[tuple[int, Any]], read: Callable[[Any], Any], depth: int):
        self._waiting = OrderedDict(wanted)
        self._read, self._depth = read, depth
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="read-ahead")
        self._coming: dict[int, Future[Any]] = {}

    def get(self, number: int) -> Any:
        """Wait for one, and have the next ones read; each is given once."""
        with self._lock:
            future = self._coming.pop(number, None) or self._pool.submit(self._read, self._waiting.pop(number))
            while self._waiting and len(self._coming) < self._depth:
                following, argument = self._waiting.popitem(last=False)
                self._coming[following] = self._pool.submit(self._read, argument)
        return future.result()

    def __enter__(self) -> "ReadAhead":
        return self

    def __exit__(self, *exc: object) -> None:
        self._pool.shutdown(cancel_futures=True)
