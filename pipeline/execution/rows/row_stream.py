"""Rows on their way from the workers of a run to a reader, in a queue of bounded memory."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from longwall.stages.export import WriterMemory
    from longwall.storage.ingest.data_notes import Noted

_POLL_SECONDS = 0.1  # between two looks of a worker that waits at whether the run is to end
_JOINED_ROWS = 1 << 14  # of short batches that wait: they reach the reader as one
_BATCH_BYTES, _COLUMN_BYTES = 2 << 10, 1 << 10  # of a batch besides its rows: the objects of Python and of Arrow


class RowStream:
    """A queue of record batches between the workers of a run and one reader; if it is full, workers wait.

    Attributes
    ----------
    schema
        The schema of the batches; None until a worker begins.
    notes
        The notes of the graph, once it is read.
    closed
        Whether the reader wants no more rows.
    """

    def __init__(self) -> None:
        self.schema: pa.Schema | None = None
        self.notes: tuple[Noted, ...] = ()
        self.closed = False
        self._lock = threading.RLock()  # a finalizer may close it while its thread is in here
        self._news, self._taken = threading.Condition(self._lock), threading.Condition(self._lock)
        self._waiting = deque[tuple["pa.RecordBatch", int]]()
        self._bytes = self._capacity = 0
        self._numbers = (0, 0)  # of batches that came, and that were taken
        self._ended = False
        self._failure: BaseException | None = None
        self._stop: Callable[[], None] | None = None

    @contextmanager
    def searching(self, notes: tuple[Noted, ...], stop: Callable[[], None]) -> Iterator[None]:
        """Let the reader call `stop` to end a search early; KeyboardInterrupt is raised if it has done so."""
        with self._lock:
            self.notes, self._stop = notes, stop
            if self.closed:
                stop()
        try:
            yield
        finally:
            with self._lock:
                self._stop = None
        if self.closed:
            raise KeyboardInterrupt

    def sink(self, schema: pa.Schema, memory: WriterMemory, cancel: threading.Event) -> QueueSink:
        """Return the sink for the rows of a worker, until the run is cancelled; half of its memory is for the queue."""
        with self._lock:
            self.schema = schema
            self._news.notify_all()
        return QueueSink(self, memory.nbytes // 2, cancel)

    def add_capacity(self, size: int) -> None:
        """Let more bytes wait, or fewer."""
        with self._lock:
            self._capacity += size
            self._taken.notify_all()

    def put(self, batch: pa.RecordBatch, cancel: threading.Event) -> int:
        """Append a batch as soon as there is room for it, and return its number; an empty queue has room for any."""
        size = batch.nbytes + _BATCH_BYTES + _COLUMN_BYTES * batch.num_columns
        with self._lock:
            while self._waiting and self._bytes + size > self._capacity and not self.closed and not cancel.is_set():
                self._taken.wait(_POLL_SECONDS)
            came, taken = self._numbers
            if self.closed or cancel.is_set():  # the run ends
                return taken
            self._waiting.append((batch, size))
            self._bytes += size
            self._numbers = came + 1, taken
            self._news.notify_all()
            return came + 1

    def wait_until_taken(self, number: int, cancel: threading.Event) -> None:
        """Wait until the reader has taken a batch and all before it, which are in the memory of the run until then."""
        with self._lock:
            while self._numbers[1] < number and not self.closed and not cancel.is_set():
                self._taken.wait(_POLL_SECONDS)

    def end(self, failure: BaseException | None = None) -> None:
        """Note that no more rows come; if the search failed, the reader gets the failure in place of rows that wait."""
        with self._lock:
            self._ended, self._failure = True, None if self.closed else failure
            if failure is not None:
                self._waiting.clear()
            self._news.notify_all()

    def take(self) -> pa.RecordBatch | None:
        """Return the next rows as soon as there are some; None: there are no more.

        Raises
        ------
        BaseException
            Why the search failed; one call raises it.
        """
        batches = list[Any]()
        with self._lock:
            while not self._waiting and not self._ended and not self.closed:
                self._news.wait()
            rows = 0
            while self._waiting and (not batches or rows + self._waiting[0][0].num_rows <= _JOINED_ROWS):
                batch, size = self._waiting.popleft()
                batches.append(batch)
                rows += batch.num_rows
                self._bytes -= size
            self._numbers = self._numbers[0], self._numbers[1] + len(batches)
            self._taken.notify_all()
            failure, self._failure = self._failure, None
        if failure is not None:
            try:
                raise failure
            finally:  # its traceback leads here: in such a cycle all that the run has would outlive it
                del failure
        return _joined(batches)

    def wait_for_schema(self) -> None:
        """Return when the schema is known, or the search has ended without one."""
        with self._lock:
            while self.schema is None and not self._ended and not self.closed:
                self._news.wait()

    def close(self) -> None:
        """Drop the batches that wait, and stop the search; a second call does no harm."""
        with self._lock:
            self.closed, self._failure = True, None
            self._waiting.clear()
            self._news.notify_all()
            self._taken.notify_all()
            if self._stop is not None:
                self._stop()


class QueueSink:
    """Hands the rows of one worker to the reader of a stream; see `longwall.stages.export.RowSink`.

    Parameters
    ----------
    stream
        The stream.
    capacity
        Bytes that may wait in it because of this worker.
    cancel
        Set when the run is to end: nothing waits for the reader any more.
    """

    def __init__(self, stream: RowStream, capacity: int, cancel: threading.Event):
        self._stream, self._capacity, self._cancel, self._last = stream, capacity, cancel, 0
        stream.add_capacity(capacity)

    takes_trees = False

    def write(self, rows: Callable[[], pa.RecordBatch]) -> None:
        """See `RowSink`."""
        if (batch := rows()).num_rows:
            self._last = self._stream.put(batch, self._cancel)

    def take(self) -> list[dict[str, Any]]:
        """See `RowSink`; there are no files."""
        self._stream.wait_until_taken(self._last, self._cancel)
        return []

    def abandon(self) -> None:
        """See `RowSink`."""
        self._stream.add_capacity(-self._capacity)
        self._capacity = 0

    def write_empty(self) -> None:
        """See `RowSink`; the reader has the schema."""


def _joined(batches: list[Any]) -> pa.RecordBatch | None:
    """Return batches as one; None: there are none."""
    if len(batches) < 2:
        return batches[0] if batches else None
    import pyarrow as pa

    (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole
