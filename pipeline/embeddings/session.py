"""What the tables of one library session share: the graph, its engine, the budgets and the spill folder."""

import os
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.interface.sorting import KeyLayout
from longwall.pipeline.execution.adaptive_batch import AdaptiveBatch, shrink_page_cache
from longwall.pipeline.execution.engine_errors import engine_faults
from longwall.pipeline.functions.kept_engine import release_engine
from longwall.stages.aggregation.by_key import CountKeys
from longwall.stages.base import Stage, stream
from longwall.stages.extension.candidates import TooManyCandidates, memory_for
from longwall.stages.source import host_arrays
from longwall.stages.tables import Collect
from longwall.storage.errors import InputError
from longwall.storage.graph.graph import Graph
from longwall.storage.memory.allocator import return_freed_memory
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget
from longwall.storage.memory.resources import CALL_OPTIONS, EngineChoice, open_resources
from longwall.storage.memory.sizes import parse_size, round_size
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.pages.placement import bring_graph, place_graph
from longwall.storage.sorting.key_sorter import KeySorter
from longwall.storage.system.arguments import brief, require_type
from longwall.storage.system.paths import require_path, user_path
from longwall.storage.tables.chunk_pool import ChunkPool
from longwall.storage.tables.chunked_table import ChunkedTable
from longwall.storage.tables.embedding_table import EmbeddingTable, read_only

_WORK_SHARE, _CHUNK_SHARE = 4, 16  # of the budget: temporaries of one call; a chunk, of which a few are read at once
_LARGEST_WORK, _LARGEST_CHUNK = 256 * 2**20, 32 * 2**20  # more gains nothing, unless a single row needs more
_SORT_SHARE = 3  # of the budget: keys that are sorted, and what was sorted of them
_SORT_ROW_BYTES, _LEAST_SORT = 128, 2**20  # more than this gains nothing
_FEW_KEYS_SORT = 64 * 2**20  # nor more than this, where there are few different keys
_DEVICE_SHARE = 4  # of what the graph leaves of the device, for temporaries: there is a chunk of rows beside them
_SHORT = {
    "host": "out of memory{}: lower memory, or use a machine with more",
    "device": 'the device is out of memory{}: free what other processes take of it, or use engine="cpu"',
    "limit": 'device is too small{}: raise it, or use engine="cpu"',
}

Access = Literal["auto", "resident", "adaptive", "managed", "zero-copy"]
"""Where the graph is while a device works on it; as `memory.access` of a config."""
Found = TypeVar("Found")


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
    device
        Budget of the engine's device, as for `memory`: the graph's part there and all that is computed.
    access
        Where the graph is, if the engine has a device.
    cache_share
        See :func:`longwall.storage.pages.placement.place_graph`.

    Attributes
    ----------
    engine
        What extensions and filters are computed with.
    arrays
        The graph where the engine reads it; read-only, where that is the host.
    xp
        The engine's array module.
    work
        Bytes that the temporaries of a call may take; see `work_for`.
    take
        Does a piece of work of at most a given number of bytes, with less where memory is short; see
        :meth:`longwall.pipeline.execution.adaptive_batch.AdaptiveBatch.take`.
    resources
        The budgets, the spill folder and the engine.
    host
        The host's budget.

    Raises
    ------
    InputError
        If the graph is none, the engine does not work here, a size is none, or the graph does not fit the device.
    BudgetExceeded
        If the graph does not fit.
    """

    def __init__(
        self,
        graph: Graph,
        engine: str,
        memory: str | int | None,
        spill: str | Path,
        disk: str | int | None,
        device: str | int | None,
        access: Access,
        cache_share: float,
    ):
        return_freed_memory()
        require_type("graph", graph, Graph, "a longwall.Graph, as longwall.open_graph(path) returns")
        require_type("engine", engine, str, '"cpu", "cuda" or "auto"')
        require_path("spill", spill, "a folder")
        require_type("access", access, str, f"one of {', '.join(get_args(Access))}")
        if access not in get_args(Access):
            raise InputError(f"access: {brief(access)} is not one of {', '.join(get_args(Access))}")
        release_engine()
        self.resources = open_resources(
            host=_size("memory", memory),
            disk=_size("disk", disk),
            device=_size("device", device),
            spill=user_path(spill),
            engine=EngineChoice(engine),
            options=CALL_OPTIONS,
        )
        folder, self.host = self.resources.spill, self.resources.host
        folder.check()
        self.graph, self.engine = graph, self.resources.engine
        self.host.reserve(graph.nbytes, "the graph")
        self.xp = self.engine.xp
        in_memory = host_arrays(graph)
        with self.engine.faults():
            placement = place_graph(in_memory, self.resources, access, cache_share)
        self._device_free = self.resources.free_device_bytes() or 0
        arrays = bring_graph(in_memory, self.resources, placement).graph
        self.arrays = replace(
            arrays, **{name: read_only(getattr(arrays, name)) for name in ("indptr", "indices", "split", "labels")}
        )
        self.take = partial(AdaptiveBatch(self.engine).run, make_room=partial(shrink_page_cache, arrays.pages))
        self._host_free, self._work_free = self.host.free, self.resources.work.free
        self._most_work = min(self._host_free // _WORK_SHARE, self._work_free // _DEVICE_SHARE)
        self.work = min(self._most_work, _LARGEST_WORK)
        self._chunk_bytes = min(self._host_free // _CHUNK_SHARE, self._work_free // _CHUNK_SHARE, _LARGEST_CHUNK)
        self.pool = ChunkPool(self.host, self.resources.disk, folder)
        # Tables may outlive the session, but not the pool. A forked child must not take its parent's files away.
        self._finalizer = weakref.finalize(self.pool, _close, folder, os.getpid())

    def new_table(self, num_levels: int) -> ChunkedTable:
        """An empty table of this session."""
        return ChunkedTable(self.pool, num_levels, self._chunk_bytes)

    def by_parts(
        self, chunk: EmbeddingTable, row_bytes: int, work: Callable[[EmbeddingTable], Found]
    ) -> Iterator[Found]:
        """Do work for a chunk in parts.

        Parameters
        ----------
        chunk
            On the host.
        row_bytes
            Bytes that the temporaries of a row take.
        work
            Called with rows in the engine's arrays; again with fewer of them where memory is short.
        """

        def some(begin: int, memory: int) -> tuple[Found, int]:
            end = min(begin + max(memory // row_bytes, 1), len(chunk))
            return work(chunk.sliced(begin, end).to(self.xp)), end

        done = 0
        while done < len(chunk):
            found, done = self.take(self.work, partial(some, done))
            yield found

    def work_for(self, candidates: int) -> int:
        """Bytes for the temporaries of a call that extends rows of up to a given number of candidates."""
        return min(max(self.work, memory_for(candidates)), self._most_work)

    def collect(
        self, num_levels: int, stages: Sequence[Stage], roots: Any = None, work: int | None = None
    ) -> ChunkedTable:
        """Make a table of what comes out of stages; `work` bytes are reserved meanwhile, `self.work` if None.

        Parameters
        ----------
        num_levels
            Columns of the table.
        stages
            From the source on.
        roots
            What the source takes.
        work
            Bytes that the temporaries may take.
        """
        result = self.new_table(num_levels)
        try:
            self.run((*stages, Collect(result)), roots, work)
        except BaseException:
            result.drop()  # now, not when the traceback goes
            raise
        return result

    def run(self, stages: Sequence[Stage], roots: Any = None, work: int | None = None) -> None:
        """Send roots through stages, from the source on to one that returns nothing; `work` as for `collect`."""
        with self.at_work(work):
            stream(roots, stages, _Context(self, self.work if work is None else work))

    def counted_keys(
        self, stages: Sequence[Stage], table: ChunkedTable, layout: KeyLayout, distinct: int, what: str, work: int
    ) -> Generator[tuple[NDArray[np.uint64], NDArray[np.int64]], None, None]:
        """Sort the keys that stages make of the rows of a table, and count equal ones.

        Parameters
        ----------
        stages
            From the source on; the last one returns a key for each row.
        table
            What the source takes.
        layout
            Keys of one or two words, reduced by "count".
        distinct
            How many different keys there may be.
        what
            What is sorted, as messages to the user name it.
        work
            Bytes that are reserved for the caller, while it has blocks.

        Yields
        ------
        uint64[n] or uint64[2, n]
            Distinct keys, ascending, until the next ones are asked for.
        int64[n]
            How often each stands.
        """
        with self._key_sorter(layout, len(table), distinct, what) as sorter:
            self.run((*stages, CountKeys(sorter)), table)
            with self.at_work(work):
                for keys, counts in sorter.blocks():
                    assert counts is not None
                    yield keys, counts

    @contextmanager
    def at_work(self, work: int | None = None) -> Iterator[None]:
        """Work with the engine in this thread, with `work` bytes reserved; `self.work` if None.

        Raises
        ------
        BudgetExceeded
            If the bytes are not free, or too few for a single row.
        RunError
            If memory is short, or the device is lost.
        """
        try:
            with (
                self.pool.reserve(self.work if work is None else work, "work space"),
                engine_faults(self.engine, _SHORT),
            ):
                yield
        except TooManyCandidates as row:
            raise self._refusal(row) from None

    @contextmanager
    def _key_sorter(self, layout: KeyLayout, rows: int, distinct: int, what: str) -> Iterator[KeySorter]:
        """A sorter for a key of each row, in a part of the memory that is reserved for it."""
        most = max(_FEW_KEYS_SORT, distinct * _SORT_ROW_BYTES)
        size = min(self._host_free // _SORT_SHARE, max(_LEAST_SORT, min(rows * _SORT_ROW_BYTES, most)))
        with self.pool.reserve(size, what):
            part = MemoryBudget(f"the part of {self.host.option} for sorting", size, self.host.advice)
            device = self._work_free // _DEVICE_SHARE
            with KeySorter(self.resources.with_host(part), layout, device=device, what=what) as made:
                yield made

    def _refusal(self, row: TooManyCandidates) -> BudgetExceeded:
        what = (
            f"extending one embedding by {row.candidates:,} candidates needs {round_size(row.needed)} of work space, "
            f"and there is {round_size(self._most_work)}"
        )
        if self.resources.on_device and row.needed > self._work_free // _DEVICE_SHARE:
            # However the graph is placed in that memory, its pages leave half of what is not the graph.
            enough = self.graph.nbytes + 2 * _DEVICE_SHARE * row.needed
            return BudgetExceeded(
                f"{what}: a device budget of {_at_least(enough)} would do (the device has "
                f'{round_size(self._device_free)} for it), or engine="cpu"'
            )
        enough = self.host.limit - self._host_free + _WORK_SHARE * row.needed
        return BudgetExceeded(f'{what}: raise memory to "{_at_least(enough)}"')

    def close(self) -> None:
        """Remove all files; the session's tables are of no further use."""
        self.pool.close()
        self._finalizer()


class _Context:
    """See :class:`longwall.stages.tables.CallContext`."""

    done = False

    def __init__(self, session: Session, work: int):
        self.graph, self.xp, self.engine = session.arrays, session.xp, session.engine
        self.work, self.take, self.by_parts = work, session.take, session.by_parts


def _close(folder: SpillFolder, process: int) -> None:
    if os.getpid() == process:
        folder.close()


def _size(option: str, value: str | int | None) -> int | None:
    if value is None or (isinstance(value, str) and value == "auto"):
        return None
    require_type(option, value, (str, int), 'a size: whole bytes, or a number and a unit in a string, such as "8GiB"')
    try:
        return parse_size(value)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from None


def _at_least(size: int) -> str:
    """A size for users to write, rounded up."""
    unit, name = (2**20, "MiB") if size > 2**20 else (2**10, "KiB")
    return f"{-(-size // unit)}{name}"
