"""An embedding table of any size: a list of chunks, each a whole prefix tree of a part of the rows.

Chunks live in a :class:`~longwall.storage.tables.chunk_pool.ChunkPool`, which spills them where memory is short.
Tables are read in order, the next chunk on a thread while the reader works.
"""

import threading
import weakref
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from longwall.storage.errors import InputError
from longwall.storage.memory.reservations import BudgetExceeded
from longwall.storage.tables.chunk_pool import Chunk, ChunkPool, Loaded
from longwall.storage.tables.embedding_table import Array, EmbeddingTable, concatenated

_MOST_SMALL = 32  # chunks that may wait to be put together


class ChunkedTable:
    """Rows in chunks; its chunks go away, files and all, when it is collected or dropped.

    Parameters
    ----------
    pool
        Where the chunks live.
    num_levels
        Number of columns.
    chunk_bytes
        Smaller tables are put together until they have about that size.
    """

    def __init__(self, pool: ChunkPool, num_levels: int, chunk_bytes: int):
        self.num_levels = num_levels
        self._pool, self._chunk_bytes = pool, chunk_bytes
        self._chunks: list[Chunk] = []
        self._small = 0  # chunks at the end that are to be put together
        self._lock = threading.Lock()
        self._closed = False
        self._finalizer = weakref.finalize(self, pool.discard, self._chunks)
        self._finalizer.atexit = False  # the spill folder goes as a whole

    def append(self, table: EmbeddingTable) -> None:
        """Add rows at the end; safe to call from several threads.

        Parameters
        ----------
        table
            Arrays of NumPy. Views are copied, so that no larger array lives on.

        Raises
        ------
        BudgetExceeded, RunError
            If the rows fit neither in memory nor on disk.
        InputError
            If the table was closed.
        """
        if not len(table):
            return
        with self._lock:
            self._require_open()
            self._chunks.append(self._pool.add(_owned(table)))
            self._small = self._small + 1 if 2 * table.nbytes < self._chunk_bytes else 0
            if self._small and (self._small == _MOST_SMALL or self._small_bytes() >= self._chunk_bytes):
                self._put_together()

    def _small_bytes(self) -> int:
        return sum(chunk.nbytes for chunk in self._chunks[-self._small :])

    def _put_together(self) -> None:
        """Make one chunk of the small ones, if none is spilled and there is room for both at once."""
        parts = self._chunks[-self._small :]
        if any(chunk.stored for chunk in parts):
            self._small = 0
            return
        loaded: list[Loaded] = []
        try:
            with self._pool.reserve(self._small_bytes(), "an embedding table"):
                loaded.extend(self._pool.load(chunk) for chunk in parts)
                whole = concatenated([part.table for part in loaded])
        except BudgetExceeded:
            self._small = 0
            return
        finally:
            for part in loaded:
                part.release()
        self._pool.discard(parts)
        self._chunks[-self._small :] = [self._pool.add(whole)]
        self._small = int(2 * whole.nbytes < self._chunk_bytes)

    def __len__(self) -> int:
        with self._lock:
            self._require_open()
            return sum(chunk.rows for chunk in self._chunks)

    @property
    def num_chunks(self) -> int:
        """Number of chunks."""
        self._require_open()
        return len(self._chunks)

    @property
    def nbytes(self) -> int:
        """Bytes that all arrays have, or would have, in memory."""
        with self._lock:
            return sum(chunk.nbytes for chunk in self._chunks)

    @property
    def stored(self) -> int:
        """Bytes on disk."""
        with self._lock:
            return sum(chunk.stored for chunk in self._chunks)

    @contextmanager
    def chunk(self, number: int, levels: Sequence[int] | None = None) -> Iterator[EmbeddingTable]:
        """One chunk, in memory while the context is open; `levels` as in `ChunkPool.load`."""
        self._require_open()
        loaded = self._pool.load(self._chunks[number], levels)
        try:
            yield loaded.table
        finally:
            loaded.release()

    def stream(
        self, levels: Sequence[int] | None = None, *, consume: bool = False
    ) -> Generator[EmbeddingTable, None, None]:
        """The chunks in order; each is in memory until the next one is asked for.

        Parameters
        ----------
        levels
            Read only what the columns of these levels need.
        consume
            Drop each chunk once the next one is asked for.

        Raises
        ------
        BudgetExceeded
            If a chunk finds no room in memory.
        RunError
            If a stored chunk is damaged or gone, or the table is closed meanwhile; the chunks before are given first.
        InputError
            If the table was closed before.
        """
        self._require_open()
        chunks = list(self._chunks)
        ahead: Future[Loaded | None] | None = None
        reader = ThreadPoolExecutor(1, thread_name_prefix="read-ahead")
        self._pool.want(chunks, 1)
        try:
            for number, chunk in enumerate(chunks):
                loaded = (ahead.result() if ahead is not None else None) or self._pool.load(chunk, levels)
                ahead = None
                try:
                    if number + 1 < len(chunks):
                        ahead = reader.submit(self._load_if_room, chunks[number + 1], levels)
                    yield loaded.table
                finally:
                    loaded.release()
                if consume:
                    with self._lock:
                        if not self._closed:
                            self._chunks.remove(chunk)
                        self._small = 0
                    self._pool.discard([chunk])
        finally:
            self._pool.want(chunks, -1)
            # Nothing may be waited for: the collector may close a reader in a thread that holds the pool's lock.
            reader.shutdown(wait=False)
            if ahead is not None:
                ahead.add_done_callback(_release_unread)

    def _load_if_room(self, chunk: Chunk, levels: Sequence[int] | None) -> Loaded | None:
        try:
            return self._pool.load(chunk, levels)
        except BudgetExceeded:
            return None

    def drop(self) -> None:
        """Remove all rows, with their files; the table is closed then."""
        with self._lock:
            self._closed = True
            self._pool.discard(self._chunks)
            self._chunks.clear()
            self._small = 0

    def _require_open(self) -> None:
        if self._closed:
            raise InputError("the table was closed: use it before, or make it again")


def _release_unread(ahead: Future[Loaded | None]) -> None:
    """Release a chunk that was read ahead and never asked for."""
    unread = None if ahead.exception() else ahead.result()
    if unread is not None:
        unread.release()


def _owned(table: EmbeddingTable) -> EmbeddingTable:
    """The table without views of larger arrays."""

    def own(array: Array) -> Array:
        return array if array.flags.owndata else array.copy()

    return EmbeddingTable(tuple(map(own, table.values)), tuple(map(own, table.offsets)), np)
