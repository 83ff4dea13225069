"""The stack of a depth-first worker: chunks that wait, the oldest of them on disk where memory is short.

A worker always goes on with the youngest chunk, so the oldest is the one that it needs last (G-thinkerCG, section
III). From a device, chunks are spilled to the host first.
"""

from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.tables.chunk_file import ChunkRecord, read_chunk, remove_chunk, write_chunk
from longwall.storage.tables.embedding_table import EmbeddingTable


class ChunkStack:
    """Chunks of one worker.

    Parameters
    ----------
    xp
        The array module of the engine.
    capacity
        Bytes of chunks that the engine's memory may hold.
    host_capacity
        Bytes of chunks that the host may hold besides, where the engine has a memory of its own.
    spill, disk
        Where the rest goes, and the budget that it is reserved in.
    name
        Tells the workers' files apart.
    """

    def __init__(self, xp: Any, capacity: int, host_capacity: int, spill: SpillFolder, disk: MemoryBudget, name: str):
        self._xp, self._capacities = xp, (capacity, host_capacity)
        self._spill, self._disk, self._name = spill, disk, name
        # Oldest first; each chunk of a tier is older than every chunk of the tier before it.
        self._engine: deque[EmbeddingTable] = deque()
        self._host: deque[EmbeddingTable] = deque()
        self._files: list[tuple[Path, ChunkRecord]] = []
        self._sizes = [0, 0]
        self.spilled = 0

    def __len__(self) -> int:
        return len(self._engine) + len(self._host) + len(self._files)

    def push(self, table: EmbeddingTable) -> None:
        """Put a chunk on top; where it is on the host, all chunks go there."""
        table = trimmed(table)
        self._engine.append(table)
        self._sizes[0] += _held(table)
        if table.xp is not self._xp:
            self.leave_engine()
        while self._sizes[0] > self._capacities[0]:
            self._oldest_to_host()

    def leave_engine(self) -> bool:
        """Move all chunks out of the engine's memory; return whether there were any."""
        held = bool(self._engine)
        while self._engine:
            self._oldest_to_host()
        return held

    def pop(self) -> EmbeddingTable | None:
        """Take the youngest chunk, None where there is none; it may be on the host."""
        if self._engine:
            table = self._engine.pop()
            self._sizes[0] -= _held(table)
            return table
        if self._host:
            table = self._host.pop()
            self._sizes[1] -= _held(table)
            return table
        if self._files:
            path, record = self._files.pop()
            table = read_chunk(path, checksum=record.checksum)
            remove_chunk(path, record, self._disk)
            return table
        return None

    def clear(self) -> None:
        """Drop all chunks."""
        self._engine.clear()
        self._host.clear()
        self._sizes = [0, 0]
        for path, record in self._files:
            remove_chunk(path, record, self._disk)
        self._files.clear()

    def _oldest_to_host(self) -> None:
        table = self._engine.popleft()
        self._sizes[0] -= _held(table)
        self._host.append(table.to(np))
        self._sizes[1] += _held(self._host[-1])
        while self._sizes[1] > self._capacities[1]:
            oldest = self._host.popleft()
            self._sizes[1] -= _held(oldest)
            path = self._spill.path / f"{self._name}-{self.spilled:08}"
            self._files.append((path, write_chunk(oldest, path, self._disk, sync=False)))
            self.spilled += 1


def trimmed(table: EmbeddingTable) -> EmbeddingTable:
    """The table without views that keep more than twice their size alive; what waits longer shrinks again."""

    def alone(array: Any) -> Any:
        return array.copy() if _whole(array).nbytes > 2 * array.nbytes else array

    return EmbeddingTable(tuple(map(alone, table.values)), tuple(map(alone, table.offsets)), table.xp)


def _held(table: EmbeddingTable) -> int:
    """Bytes that the table keeps alive."""
    return sum(_whole(array).nbytes for array in (*table.values, *table.offsets))


def _whole(array: Any) -> Any:
    """The array that a view is a part of."""
    return array if array.base is None else array.base
