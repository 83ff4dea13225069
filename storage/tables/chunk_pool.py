"""Chunks of embedding tables that share one host budget: in memory while there is room, spilled when there is not.

Memory is reserved here; the pool spills chunks until the reservation fits. A chunk that is being read
stays where it is. What is in a chunk and in which order chunks are read is the business of
:mod:`longwall.storage.tables.chunked_table`.
"""

import threading
import weakref
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from longwall.storage.errors import InputError, RunError
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget, Reservation
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.tables.chunk_file import ChunkRecord, read_chunk, remove_chunk, write_chunk
from longwall.storage.tables.embedding_table import EmbeddingTable

CHUNK_BYTES = 640
"""What a chunk takes of memory wherever its rows are: large tables have many small chunks where memory is short."""


@dataclass(eq=False, slots=True)
class Chunk:
    """A table in memory or on disk; made and changed by its pool only.

    Attributes
    ----------
    rows
        Rows of the table.
    level_bytes
        Bytes of its arrays in memory: the values of each level, then the offsets of each but the last.
    stored
        Bytes on disk.
    wanted
        How many readers will come to the chunk soon.
    """

    rows: int
    level_bytes: "array[int]"
    stored: int = 0
    wanted: int = 0
    _table: EmbeddingTable | None = None
    _reserved: Reservation | None = None
    _file: int = 0
    _checksum: int = 0
    _pins: int = 0
    _dropped: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays in memory."""
        return sum(self.level_bytes)

    @property
    def record(self) -> ChunkRecord | None:
        """What is known of its file, where it has one."""
        return ChunkRecord(self.rows, self.nbytes, self.stored, self._checksum) if self._file else None


class Loaded:
    """A chunk's table, in memory until it is released or collected.

    Parameters
    ----------
    table
        The table.
    release
        Called once.
    """

    def __init__(self, table: EmbeddingTable, release: Callable[[], None]):
        self.table = table
        self._finalizer = weakref.finalize(self, release)
        self._finalizer.atexit = False

    def release(self) -> None:
        """Say that the table's arrays are not used any more; more than once does no harm."""
        self._finalizer()


class ChunkPool:
    """Chunks in memory and on disk; safe to share between threads.

    Readers and tables may be collected at any moment, even while their thread holds the pool's lock. What they say
    then is noted, and done by the thread that holds the lock.

    Parameters
    ----------
    host
        Budget of what is in memory.
    disk
        Budget of what is spilled.
    folder
        Where chunks are spilled to.
    """

    def __init__(self, host: MemoryBudget, disk: MemoryBudget, folder: SpillFolder):
        self._host, self._disk, self._folder = host, disk, folder
        self._changed = threading.Condition(threading.Lock())
        self._resident: dict[Chunk, None] = {}  # oldest first
        self._spilling = 0
        self._files = 0
        self._place: Path | None = None
        self._closed = False
        self._notes: deque[Callable[[], None]] = deque()

    def reserve(self, size: int, what: str) -> Reservation:
        """Reserve bytes of host memory, spilling chunks until they are free.

        Raises
        ------
        BudgetExceeded
            If they cannot be had even so, or if the disk budget has no room for what must be spilled.
        RunError
            If nothing can be spilled to the folder.
        """
        while True:
            self._settle()
            try:
                return self._host.reserve(size, what)
            except BudgetExceeded:
                if size > self._host.limit:
                    raise
            if not self._spill_one():
                return self._host.reserve(size, what)  # another thread may have released bytes meanwhile

    def add(self, table: EmbeddingTable) -> Chunk:
        """Take a table over; its arrays must belong to it alone.

        Raises
        ------
        BudgetExceeded, RunError, InputError
            As in `reserve`, and if the pool is closed and the table must be spilled.
        """
        sizes = array("q", [part.nbytes for part in (*table.values, *table.offsets)])
        chunk = Chunk(len(table), sizes)
        try:
            chunk._reserved = self.reserve(table.nbytes + CHUNK_BYTES, "an embedding table")
        except BudgetExceeded:
            chunk._reserved = self.reserve(CHUNK_BYTES, "a chunk of an embedding table")
            try:
                self._write(chunk, table)
            except BaseException:
                chunk._reserved.release()
                raise
            return chunk
        with self._held():
            chunk._table = table
            self._resident[chunk] = None
        return chunk

    def load(self, chunk: Chunk, levels: Sequence[int] | None = None) -> Loaded:
        """Bring a chunk to memory.

        Parameters
        ----------
        chunk
            A chunk of this pool.
        levels
            The levels whose columns will be read; the others' arrays may be None. By default all.

        Raises
        ------
        BudgetExceeded
            If there is no room for it.
        RunError
            If the stored chunk is damaged or gone, or was discarded.
        InputError
            If the pool is closed.
        """
        with self._held():
            self._require_open()
            if chunk._dropped:
                raise RunError("the table was closed while it was being read: close it when its readers are done")
            chunk._pins += 1
            table = chunk._table
        reserved = None
        try:
            if table is None:
                reserved = self.reserve(_needed(chunk, levels), "a chunk of an embedding table")
                table = read_chunk(self._path(chunk._file), levels, checksum=chunk._checksum)
            return Loaded(table, lambda: self._unpin(chunk, reserved))
        except BaseException:
            self._unpin(chunk, reserved)
            raise

    def discard(self, chunks: Iterable[Chunk]) -> None:
        """Drop chunks, with their files; finalizers may call it, at any moment in any thread."""
        dropped = tuple(chunks)

        def drop() -> None:
            for chunk in dropped:
                chunk._dropped = True
                if not chunk._pins:
                    self._free(chunk)

        self._note(drop)

    def want(self, chunks: Iterable[Chunk], change: int) -> None:
        """Say that a reader will come to these chunks (1) or that it has gone (-1); callable like `discard`."""
        wanted = tuple(chunks)

        def count() -> None:
            for chunk in wanted:
                chunk.wanted += change

        self._note(count)

    def close(self) -> None:
        """Refuse to load and to spill from now on."""
        with self._held():
            self._closed = True

    def _require_open(self) -> None:
        if self._closed:
            raise InputError("the session was closed: its tables are gone, make new ones")

    def _note(self, change: Callable[[], None]) -> None:
        self._notes.append(change)
        self._settle()

    def _settle(self) -> None:
        """Do what was noted, unless a thread holds the lock: it does so when it releases the lock."""
        while self._notes and self._changed.acquire(blocking=False):
            try:
                self._do_noted()
            finally:
                self._changed.release()

    def _do_noted(self) -> None:
        while self._notes:
            self._notes.popleft()()

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Hold the lock, after what was noted is done."""
        try:
            with self._changed:
                self._do_noted()
                yield
        finally:
            self._settle()

    def _free(self, chunk: Chunk) -> None:
        self._resident.pop(chunk, None)
        chunk._table = None
        if chunk._reserved is not None:
            chunk._reserved.release()
            chunk._reserved = None
        if (record := chunk.record) is not None:
            remove_chunk(self._path(chunk._file), record, self._disk)
            chunk._file = chunk.stored = 0

    def _unpin(self, chunk: Chunk, reserved: Reservation | None) -> None:
        if reserved is not None:
            reserved.release()

        def unpin() -> None:
            chunk._pins -= 1
            if chunk._dropped and not chunk._pins:
                self._free(chunk)

        self._note(unpin)

    def _spill_one(self) -> bool:
        """Spill the chunk that is needed last, or wait for another thread that does; False if there is none."""
        with self._held():
            chunk = self._victim()
            if chunk is None:
                if self._spilling:
                    self._changed.wait()
                    return True
                return False
            del self._resident[chunk]
            chunk._pins += 1
            self._spilling += 1
        try:
            assert chunk._table is not None
            if not chunk._file:  # one that was being read when it was written has its file already
                self._write(chunk, chunk._table)
        except BaseException:
            with self._held():
                self._resident[chunk] = None
                self._done_spilling(chunk)
            raise
        with self._held():
            if chunk._pins > 1:
                self._resident[chunk] = None
            elif chunk._reserved is not None:
                chunk._table = None
                chunk._reserved.resize(CHUNK_BYTES, "")
            self._done_spilling(chunk)
        return True

    def _done_spilling(self, chunk: Chunk) -> None:
        self._spilling -= 1
        chunk._pins -= 1
        if chunk._dropped and not chunk._pins:
            self._free(chunk)
        self._changed.notify_all()

    def _victim(self) -> Chunk | None:
        """Return the oldest chunk that no reader needs soon; else the one that readers need last."""
        free = [chunk for chunk in self._resident if not chunk._pins]
        return next((chunk for chunk in free if not chunk.wanted), free[-1] if free else None)

    def _write(self, chunk: Chunk, table: EmbeddingTable) -> None:
        with self._held():
            self._require_open()
            self._files += 1
            number = self._files
        record = write_chunk(table, self._path(number), self._disk)
        with self._held():
            chunk._file, chunk.stored, chunk._checksum = number, record.stored, record.checksum

    def _path(self, number: int) -> Path:
        self._place = self._place or self._folder.path  # once: a folder that was closed would be made again
        return self._place / f"table-{number:08}.zip"


def _needed(chunk: Chunk, levels: Sequence[int] | None) -> int:
    """Bytes of the arrays that the columns of some levels need."""
    if levels is None:
        return chunk.nbytes
    depth = (len(chunk.level_bytes) + 1) // 2
    return sum(chunk.level_bytes[level] for level in set(levels)) + sum(chunk.level_bytes[depth + min(levels) :])
