"""Write rows in threads of their own, since a device finds them faster than a thread of the host encodes them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Protocol

_AHEAD = 2  # batches of a thread: one that it encodes, one that waits


class RowFiles(Protocol):
    """A sequence of files that rows are written to; see :class:`longwall.stages.export.PartFiles`."""

    @property
    def takes_trees(self) -> bool:
        """Whether rows may come as prefix trees."""
        ...

    def write(self, rows: Any) -> None:
        """Append rows."""
        ...

    def take(self) -> list[dict[str, Any]]:
        """Finish all files, and return the facts of those finished since the last call."""
        ...

    def abandon(self) -> None:
        """Let go of the file that is being written: it is not whole."""
        ...

    def write_empty(self) -> None:
        """Write a file without rows."""
        ...


class WritingThreads:
    """Writes rows to several sequences of files at once.

    Parameters
    ----------
    make
        Makes the files of a thread.
    threads
        The number of threads; 0: the caller writes.
    """

    def __init__(self, make: Callable[[], RowFiles], threads: int):
        self._files = [make() for _ in range(max(threads, 1))]
        self._threads = [ThreadPoolExecutor(1, "longwall-writer") for _ in range(threads)]
        self._waiting: list[deque[Future[None]]] = [deque() for _ in range(threads)]

    @property
    def takes_trees(self) -> bool:
        """Whether rows may come as prefix trees."""
        return self._files[0].takes_trees

    def write(self, rows: Callable[[], Any]) -> None:
        """Append rows, which the thread that writes them makes; wait while all threads have as many as they may."""
        if not self._threads:
            self._files[0].write(rows())
            return
        while len(self._waiting[number := self._free_thread()]) >= _AHEAD:
            wait([waiting[0] for waiting in self._waiting], return_when=FIRST_COMPLETED)
        files = self._files[number]
        self._waiting[number].append(self._threads[number].submit(lambda: files.write(rows())))

    def _free_thread(self) -> int:
        """Return the first of the threads with the fewest batches, so that few rows come to one file."""
        for waiting in self._waiting:
            while waiting and waiting[0].done():
                waiting.popleft().result()  # raises what the thread raised
        return min(range(len(self._waiting)), key=lambda number: len(self._waiting[number]))

    def take(self) -> list[dict[str, Any]]:
        """Finish all files; see `RowFiles`."""
        if not self._threads:
            return self._files[0].take()
        ended = [thread.submit(files.take) for thread, files in zip(self._threads, self._files, strict=True)]
        for waiting in self._waiting:
            while waiting:
                waiting.popleft().result()
        return [file for one in ended for file in one.result()]

    def abandon(self) -> None:
        """End the threads, and let go of the files that are being written: they are not whole."""
        for thread in self._threads:
            thread.shutdown(wait=False, cancel_futures=True)
        for thread in self._threads:
            thread.shutdown()
        for files in self._files:
            files.abandon()

    def write_empty(self) -> None:
        """Write a file without rows."""
        self._files[0].write_empty()
