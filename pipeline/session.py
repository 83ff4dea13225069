"""What the tables of one library session share: the graph, its engine, the budgets and the spill folder."""

import os
import weakref
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from longwall.kernels import EngineUnavailable, select_engine
from longwall.stages.free_extension import TooManyCandidates, memory_for
from longwall.stages.source import host_arrays
from longwall.storage.account import Account, OverBudget
from longwall.storage.allocator import return_freed_memory
from longwall.storage.budget import Budget
from longwall.storage.errors import InputError
from longwall.storage.graph import Graph
from longwall.storage.sizes import parse_size, round_size
from longwall.storage.spill import SpillFolder
from longwall.storage.tables.chunk_pool import ChunkPool
from longwall.storage.tables.chunked_table import ChunkedTable
from longwall.storage.tables.table import EmbeddingTable, read_only

_WORK_SHARE, _CHUNK_SHARE = 4, 16  # of the budget: temporaries of one call; a chunk, of which a few are read at once
_LARGEST_WORK, _LARGEST_CHUNK = 256 * 2**20, 32 * 2**20  # more gains nothing, unless a single row needs more
_DEVICE_SHARE = 4  # of the device's free memory, for temporaries


class Session:
    """Memory, disk and engine of the tables that grow out of one `longwall.vertices` or `longwall.edges`.

    Parameters
    ----------
    graph
        The data graph; it is part of the memory budget.
    engine
        ``"cpu"``, ``"cuda"`` or ``"auto"``.
    memory, disk
        Budgets: sizes such as ``"4GiB"``, or bytes; None or ``"auto"`` takes a share of what is free.
    spill
        Folder for what does not fit.

    Attributes
    ----------
    arrays
        The graph where the engine reads it; read-only, where that is the host.
    xp
        The engine's array module.
    work
        Bytes that the temporaries of a call may take; see `work_for`.
    host, disk
        The accounts.

    Raises
    ------
    InputError
        If the engine does not work here or a size is none.
    OverBudget
        If the graph does not fit.
    """

    def __init__(self, graph: Graph, engine: str, memory: str | int | None, spill: str | Path, disk: str | int | None):
        return_freed_memory()
        folder = SpillFolder(Path(spill), advice="choose another spill, or raise memory")
        budget = Budget.resolve(host=_size("memory", memory), disk=_size("disk", disk), spill=Path(spill))
        self.graph = graph
        self.host, self.disk = Account("memory", budget.host), Account("disk", budget.disk)
        self.host.book(graph.nbytes, "the graph")
        try:
            chosen = select_engine(engine)
        except EngineUnavailable as reason:
            raise InputError(f'engine "{engine}": {reason}') from None
        arrays, self.xp = chosen.load(host_arrays(graph)), chosen.xp
        self.arrays = replace(
            arrays, **{name: read_only(getattr(arrays, name)) for name in ("indptr", "indices", "split", "labels")}
        )
        self._device_free = chosen.free_memory()
        self._host_free = self.host.free
        shares = [self._host_free // _WORK_SHARE]
        if self._device_free is not None:
            shares.append(self._device_free // _DEVICE_SHARE)
        self._most_work = min(shares)
        self.work = min(self._most_work, _LARGEST_WORK)
        self._chunk_bytes = min(self.host.free // _CHUNK_SHARE, _LARGEST_CHUNK)
        self.pool = ChunkPool(self.host, self.disk, folder)
        # Tables may outlive the session, but not the pool. A forked child must not take its parent's files away.
        self._finalizer = weakref.finalize(self.pool, _close, folder, os.getpid())

    def new_table(self, num_levels: int) -> ChunkedTable:
        """An empty table of this session."""
        return ChunkedTable(self.pool, num_levels, self._chunk_bytes)

    def parts(self, chunk: EmbeddingTable, row_bytes: int) -> Iterator[EmbeddingTable]:
        """Cut a chunk so that parts of rows with `row_bytes` of temporaries fit `work`; in the engine's arrays."""
        rows = max(self.work // row_bytes, 1)
        for begin in range(0, len(chunk), rows):
            yield chunk.sliced(begin, min(begin + rows, len(chunk))).to(self.xp)

    def work_for(self, candidates: int) -> int:
        """Bytes for the temporaries of a call that extends rows of up to so many candidates."""
        return min(max(self.work, memory_for(candidates)), self._most_work)

    def collect(
        self, num_levels: int, tables: Generator[EmbeddingTable, None, None], work: int | None = None
    ) -> ChunkedTable:
        """Make one table of many, in order; `work` bytes are booked meanwhile. The generator is closed in the end."""
        result = self.new_table(num_levels)
        try:
            with closing(tables), self.pool.book(self.work if work is None else work, "work space"):
                for table in tables:
                    result.append(table.to(np))
        except TooManyCandidates as row:
            result.drop()
            raise self._refusal(row) from None
        except BaseException:
            result.drop()  # now, not when the traceback goes
            raise
        return result

    def _refusal(self, row: TooManyCandidates) -> OverBudget:
        what = (
            f"extending one embedding by {row.candidates:,} candidates needs {round_size(row.needed)} of work space, "
            f"and there is {round_size(self._most_work)}"
        )
        device = self._device_free
        if device is not None and row.needed > device // _DEVICE_SHARE:
            return OverBudget(
                f"{what}: a device with {_at_least(_DEVICE_SHARE * row.needed)} of free memory would do (this one has "
                f'{round_size(device)}), or engine="cpu"'
            )
        enough = self.host.limit - self._host_free + _WORK_SHARE * row.needed
        return OverBudget(f'{what}: raise memory to "{_at_least(enough)}"')

    def close(self) -> None:
        """Remove all files; the session's tables are of no further use."""
        self.pool.close()
        self._finalizer()


def _close(folder: SpillFolder, process: int) -> None:
    if os.getpid() == process:
        folder.close()


def _size(option: str, value: str | int | None) -> int | None:
    if value is None or value == "auto":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(
            f'{option}: {value!r} is not a size; give whole bytes, or a number and a unit in a string, such as "8GiB"'
        )
    try:
        return parse_size(value)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from None


def _at_least(size: int) -> str:
    """A size for users to write, rounded up."""
    unit, name = (2**20, "MiB") if size > 2**20 else (2**10, "KiB")
    return f"{-(-size // unit)}{name}"


def on_host(array: Any) -> Any:
    """A NumPy array of the same contents."""
    return array if isinstance(array, np.ndarray) else array.get()
