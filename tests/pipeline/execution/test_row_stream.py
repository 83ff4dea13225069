"""The queue between workers and a reader: its bound, its order, and that no side waits in vain."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest

from longwall.pipeline.execution.rows.row_stream import QueueSink, RowStream
from longwall.stages.export import WriterMemory

SCHEMA = pa.schema([("v0", pa.int64())])
_MUCH = 10  # seconds


def batch(first: int, rows: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(range(first, first + rows), pa.int64())], schema=SCHEMA)


def sink_of(stream: RowStream, rows: int, cancel: threading.Event | None = None) -> QueueSink:
    """A sink whose batches may wait up to about a number of rows."""
    return stream.sink(SCHEMA, WriterMemory(rows, 1, False, 2 * 8 * rows), cancel or threading.Event())


def started(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def waits(thread: threading.Thread) -> bool:
    """Whether a thread does not end by itself."""
    thread.join(0.3)
    return thread.is_alive()


def ends(thread: threading.Thread) -> bool:
    thread.join(_MUCH)
    return not thread.is_alive()


def test_rows_come_in_order_and_short_batches_as_one() -> None:
    stream = RowStream()
    sink = sink_of(stream, 1 << 20)
    sizes = [1, 5, 3, 60_000, 2, 2]
    begins = [sum(sizes[:at]) for at in range(len(sizes))]
    for begin, size in zip(begins, sizes, strict=True):
        sink.write(partial(batch, begin, size))
    stream.end()
    taken = list(iter(stream.take, None))
    assert [one.num_rows for one in taken] == [9, 60_000, 4]
    assert [value for one in taken for value in one.column(0).to_pylist()] == list(range(sum(sizes)))


def test_a_worker_waits_while_the_queue_is_full() -> None:
    stream = RowStream()
    sink = sink_of(stream, 10_000)
    sink.write(lambda: batch(0, 20_000))  # an empty queue has room for any
    worker = started(lambda: sink.write(lambda: batch(20_000, 9_000)))
    assert waits(worker)
    assert stream.take().num_rows == 20_000
    assert ends(worker)
    assert stream.take().num_rows == 9_000


def test_rows_of_a_commit_have_been_taken() -> None:
    stream = RowStream()
    mine, other = sink_of(stream, 1 << 20), sink_of(stream, 1 << 20)
    mine.write(lambda: batch(0, 20_000))
    other.write(lambda: batch(0, 20_000))
    committed, later = started(mine.take), started(other.take)
    assert waits(committed)
    stream.take()
    assert ends(committed)
    assert waits(later)
    stream.take()
    assert ends(later)


def test_a_worker_does_not_wait_for_a_reader_that_has_left() -> None:
    stream, stopped = RowStream(), threading.Event()
    sink = sink_of(stream, 10)
    searching = stream.searching((), stopped.set)
    searching.__enter__()
    worker = waiting_worker(sink)
    stream.close()
    assert ends(worker)
    assert stopped.is_set()
    assert sink.take() == []
    assert stream.take() is None
    with pytest.raises(KeyboardInterrupt):
        searching.__exit__(None, None, None)


def test_a_worker_does_not_wait_in_a_run_that_is_cancelled() -> None:
    stream, cancel = RowStream(), threading.Event()
    sink = sink_of(stream, 10, cancel)
    worker = waiting_worker(sink)
    cancel.set()
    assert ends(worker)
    assert sink.take() == []


def waiting_worker(sink: QueueSink) -> threading.Thread:
    """A worker that fills a queue of few rows, and waits."""
    sink.write(lambda: batch(0, 1000))
    worker = started(lambda: sink.write(lambda: batch(0, 1000)))
    assert waits(worker)
    return worker


def test_a_failure_comes_in_place_of_rows_once() -> None:
    stream = RowStream()
    sink_of(stream, 100).write(lambda: batch(0, 5))
    stream.end(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        stream.take()
    assert stream.take() is None


def test_a_search_that_is_closed_before_it_begins_is_stopped() -> None:
    stream, stopped = RowStream(), threading.Event()
    stream.close()
    with pytest.raises(KeyboardInterrupt), stream.searching((), stopped.set):
        assert stopped.is_set()
