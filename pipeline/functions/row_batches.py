"""The rows of a search as record batches, read while the search goes on."""

from __future__ import annotations

import contextvars
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from longwall.pipeline.execution.rows.row_stream import RowStream
from longwall.pipeline.functions.one_run import Question
from longwall.storage.errors import InputError, one_frame
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.observer import ForwardingObserver, Observer
from longwall.storage.system.signals import interrupted_by, interrupting

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 5  # rows of a notebook's preview
_MOST_SECONDS = 10  # that a finalizer waits


class RowBatches:
    """An iterator over the record batches of a search, which runs beside the reader in threads of its own.

    The search begins at once. It ends early if the object is closed or collected, or if an interrupt comes while the
    reader waits; then its threads have ended.

    Parameters
    ----------
    question
        The question that the search answers.
    columns
        Names of the columns, in their order.
    done
        Called with the object when all rows have been read.
    changed
        Other keys of some sections of the question.

    Attributes
    ----------
    rows
        The number of rows that have been read.
    first
        The first rows, for a preview.
    """

    def __init__(
        self,
        question: Question,
        columns: Sequence[str],
        done: Callable[[RowBatches], None] | None = None,
        **changed: Mapping[str, Any],
    ):
        self._question, self._columns, self._done = question, columns, done
        self.rows, self.first = 0, list[dict[str, Any]]()
        self._warned = False
        self._search = _Search(question, changed)
        weakref.finalize(self, self._search.abandon)
        self._search.start()

    @property
    @one_frame
    def schema(self) -> pa.Schema:
        """Arrow schema of the batches; waits until the graph is read."""
        with self._reading() as stream:
            stream.wait_for_schema()
            if stream.schema is None:
                stream.take()  # raises why
        if stream.schema is None:
            raise InputError("the search ended before its columns were known: ask for the rows again")
        return self._named(stream.schema)

    def __iter__(self) -> RowBatches:
        return self

    @one_frame
    def __next__(self) -> pa.RecordBatch:
        import pyarrow as pa

        with self._reading() as stream:
            stored = stream.take()
            if stored is None:
                whole = not stream.closed
                self._search.close()
        if stored is None:
            if whole and self._done is not None:
                self._done(self)
            raise StopIteration
        columns = [stored.column(name) for name in self._columns]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._named(stored.schema))
        if not self.rows:
            self.first = batch.slice(0, _SHOWN).to_pylist()
        self.rows += batch.num_rows
        return batch

    def close(self) -> None:
        """End the search and wait for its threads; a second call does no harm."""
        self._search.close()

    def __enter__(self) -> RowBatches:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @contextmanager
    def _reading(self) -> Iterator[RowStream]:
        """Wait for the search: an exception ends it, and the notes of the graph become warnings."""
        self._search.require_same_process()
        try:
            with interrupting(), interrupted_by(lambda: None, ""):
                yield self._search.stream
            if not self._warned and self._search.stream.schema is not None:
                self._warned = True
                self._question.warn(self._search.stream.notes)  # a user may make errors of warnings
        except BaseException:
            self._search.close()
            raise

    def _named(self, stored: pa.Schema) -> pa.Schema:
        import pyarrow as pa

        return pa.schema([(name, stored.field(name).type) for name in self._columns])


class _Search:
    """A search in a thread of its own, which hands its rows to a stream."""

    def __init__(self, question: Question, changed: Mapping[str, Mapping[str, Any]]):
        self.stream = RowStream()
        self._process, self._reader = os.getpid(), threading.current_thread()
        self._begun, self._ended = False, threading.Event()
        observer = _EndingObserver(question.observer(), self.stream)
        search = partial(_search, question, self.stream, observer, changed, self._ended)
        # In the context of the caller, so that a notebook finds the cell that the progress belongs to.
        work = partial(contextvars.copy_context().run, search)
        self._thread = threading.Thread(target=work, daemon=True, name="longwall search")

    def start(self) -> None:
        """Start the thread of the search."""
        self._begun = True
        try:
            self._thread.start()
        except RuntimeError:  # there is no room for a thread
            self._begun = False
            raise

    def require_same_process(self) -> None:
        """Note which thread reads; refuse to wait in a forked child, which has no thread that searches (InputError)."""
        if os.getpid() != self._process:
            raise InputError(
                "the process that this one was forked from searches for these rows: ask for them again here"
            )
        self._reader = threading.current_thread()

    def close(self) -> None:
        """End the search, and wait for its threads, even if the user interrupts meanwhile."""
        if os.getpid() != self._process:
            return
        self.stream.close()
        interrupted = False
        while self._begun and not self._ended.is_set():
            try:
                self._ended.wait()  # not `join`: Python 3.11 takes a thread for ended where that is interrupted
            except KeyboardInterrupt:
                interrupted = True
        if self._begun:
            self._thread.join()
        if interrupted:
            raise KeyboardInterrupt

    def abandon(self) -> None:
        """End the search when the iterator is collected; only the reader waits for its threads, and for some seconds.

        A finalizer may run in one of these threads, or inside of an import that they wait for.
        """
        if os.getpid() != self._process:
            return
        self.stream.close()
        if self._begun and threading.current_thread() is self._reader and self._ended.wait(_MOST_SECONDS):
            self._thread.join()


def _search(
    question: Question,
    stream: RowStream,
    observer: Observer,
    changed: Mapping[str, Mapping[str, Any]],
    ended: threading.Event,
) -> None:
    try:
        with SpillFolder(question.spec.memory.spill) as folder, question.waiting():
            question.ask(folder, observer, stream, **changed)
    except BaseException as failure:
        stream.end(failure)
    else:
        stream.end()
    finally:
        ended.set()


class _EndingObserver(ForwardingObserver):
    """Passes events on, and interrupts the work that reports them once the reader of a stream wants no more rows.

    The stream itself stops a search; this stops the work before it, such as reading a file.
    """

    def __init__(self, observer: Observer, stream: RowStream):
        super().__init__(observer)
        self._stream = stream

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """Pass the event on."""
        self._go_on()
        super().phase(name, total, unit)

    def advance(self, n: int) -> None:
        """Pass the event on."""
        self._go_on()
        super().advance(n)

    def _go_on(self) -> None:
        if self._stream.closed:
            raise KeyboardInterrupt
