"""Rows of grown patterns on their way to a table: small pieces are put together, the rows of a pattern side by side."""

import threading
from collections.abc import Callable

import numpy as np

from longwall.storage.memory.reservations import Reservation
from longwall.storage.tables.chunk_pool import ChunkPool
from longwall.storage.tables.embedding_table import EmbeddingTable, from_columns

_MOST = 32 << 20


class PatternRows:
    """Collects pieces, each ascending by column 0, and hands on larger ones that are so, too; a context manager.

    Parameters
    ----------
    num_levels
        Columns of the pieces.
    append
        Takes what is handed on.
    capacity
        Bytes for what waits here, and for putting it together.
    pool
        Where that is reserved: chunks make room for it.
    """

    def __init__(self, num_levels: int, append: Callable[[EmbeddingTable], None], capacity: int, pool: ChunkPool):
        self._append, self._pool = append, pool
        self._copies = 3 * num_levels + 1  # a flat row is as long as there are columns, and is copied twice
        self._most = min(capacity // self._copies, _MOST)
        self._waiting: list[EmbeddingTable] = []
        self._size = 0
        self._lock = threading.Lock()
        self._booking: Reservation | None = None

    def __enter__(self) -> "PatternRows":
        self._booking = self._pool.reserve(self._most * self._copies, "embeddings that are put together")
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if kind is None:
            self._flush()
        self._waiting = []
        if self._booking is not None:
            self._booking.release()

    def add(self, piece: EmbeddingTable) -> None:
        """Take a piece, on the host; from any thread."""
        with self._lock:
            if 2 * piece.nbytes >= self._most:
                self._append(piece)
                return
            if self._size + piece.nbytes > self._most:
                self._flush()
            self._waiting.append(piece)
            self._size += piece.nbytes

    def _flush(self) -> None:
        pieces, self._waiting, self._size = self._waiting, [], 0
        if len(pieces) > 1:
            rows = np.concatenate([piece.columns() for piece in pieces], axis=1)
            pieces = [from_columns(rows[:, np.argsort(rows[0], kind="stable")], np)]
        for piece in pieces:
            self._append(piece)
