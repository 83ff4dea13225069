"""Sort any number of keys on an engine, in bounded memory, and bring equal ones together."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any, Generic, Literal, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from longwall.kernels import select_engine
from longwall.kernels.interface.engine import Engine, WorkspaceTooLarge
from longwall.kernels.interface.sorting import (
    WORD,
    ChunkSorter,
    Columns,
    KeyLayout,
    Method,
    RunMerger,
    SumOverflow,
    Work,
)
from longwall.storage.errors import RunError
from longwall.storage.memory.reservations import Reservation
from longwall.storage.memory.resources import Resources
from longwall.storage.memory.sizes import round_size
from longwall.storage.sorting.runs import LEAST_MARKS, ORDER_SHARE, ORDERING, NeighbourRange, Run, SortedRuns
from longwall.storage.sorting.scratch_arrays import Scratch, ScratchArray, may_be_damage
from longwall.storage.system.concurrency import core_count

_LEAST_WORK, _WORK_SHARE = 256 * 2**20, 8  # of the host: chunks and windows take this, or a share if that is more
_CHECKPOINTS, _LEAST_CHECKPOINTS, _SPACING = 4096, 32, 1024  # of a chunk; keys for each, where those are fewer
_ADOPTED = 0.75  # of a chunk's memory that its keys must take, to be kept without a copy

Array = Any  # a NumPy or a CuPy array
Made = TypeVar("Made")
Merge = Literal["multi-merge", "naive", "split", "host"]
"""How runs are merged; see `ScratchSorter`."""

_METHODS: dict[Merge, Method] = {
    "multi-merge": "multi-merge",
    "naive": "naive",
    "split": "sort",
    "host": "multi-merge",
}


class SortedBlock(NamedTuple):
    """Keys in ascending order."""

    keys: npt.NDArray[np.uint64]
    """uint64[n], or uint64[2, n]: high words and low words."""
    payload: npt.NDArray[np.int64] | None
    """int64[n]"""


class ScratchSorter:
    """Takes keys, part by part, and returns them in order, block by block; a context manager.

    Chunks of keys are sorted on an engine, equal keys are reduced there, and the runs that come of it wait in scratch
    arrays. Runs are merged by windows on the engine.

    Parameters
    ----------
    scratch
        Holds the runs, and lends a part of its work space for chunks, later for windows.
    layout
        What is sorted and what becomes of equal keys. Keys that all stay are in the order in which they were added.
    memory
        Bytes of the work space for chunks.
    engine
        What sorts and merges; the cores of the host if not given.
    device
        Bytes of the device's memory that may be taken, where the engine has one.
    merge
        How runs are merged, for comparison: "multi-merge"; "naive", where each pair of runs is searched both ways;
        "split", where runs are cut by a sample and what belongs together is sorted again; "host", on the host's cores.

    Attributes
    ----------
    chunk_capacity
        Keys of a chunk.

    Raises
    ------
    BudgetExceeded
        In any call: where a budget has no room for what cannot be spilled.
    RunError
        In any call: where scratch files cannot be written or read, or hold something else than what was written, and
        where a sum does not fit 64-bit integers.
    """

    def __init__(
        self,
        scratch: Scratch,
        layout: KeyLayout,
        memory: int,
        *,
        engine: Engine | None = None,
        device: int = 0,
        merge: Merge = "multi-merge",
    ) -> None:
        self.layout = layout
        self._engine = engine or select_engine("cpu")
        self._scratch, self._device, self._merge_kind = scratch, device, merge
        self._open = ExitStack()
        self._lent = scratch.lend(memory)
        self._open.callback(self._take_back)
        self._reserved: Reservation | None = None
        self._merger: RunMerger | None = None
        self._filled = 0
        self._waiting: deque[Work] = deque()
        try:
            chunks = self._engine.kernels.chunk_sorter(self._engine.device, layout, self._lent.size, device)
        except WorkspaceTooLarge as error:
            self.close()
            raise self._too_small(error) from None
        except BaseException:
            self.close()
            raise
        self._chunks: ChunkSorter | None = chunks
        self.chunk_capacity = chunks.capacity
        spacing = max(1, self.chunk_capacity // _CHECKPOINTS, min(self.chunk_capacity // _LEAST_CHECKPOINTS, _SPACING))
        self._runs = SortedRuns(scratch, layout, spacing)
        self._merged = self._runs  # what is being made of them
        self._open.callback(self._discard)
        self._open.callback(self._end_chunks)

    @property
    def spilled(self) -> int:
        """Bytes that the scratch has written to files so far."""
        return self._scratch.spilled

    @property
    def num_runs(self) -> int:
        """Runs that wait to be merged."""
        return len(self._runs.runs)

    def reserve(self, keys: int) -> None:
        """Reserve and prepare memory that a number of keys need later: adding and merging them then goes faster.

        Raises
        ------
        BudgetExceeded
            If there is no room for it: the keys may be added all the same.
        """
        assert self._chunks is not None
        chunks, key_bytes = -(-keys // self.chunk_capacity), WORD * self.layout.columns
        self._merger = self._make_merger()
        windows = self._merger.depth + 1
        held = key_bytes * (chunks * self.chunk_capacity + windows * self._merger.capacity)
        self._reserved = self._scratch.host.reserve(held, self._scratch.what)
        self._chunks.reserve(chunks)
        self._merger.reserve(windows)

    def add(self, keys: Array, payload: Array | None = None) -> None:
        """Add keys.

        Parameters
        ----------
        keys : uint64[n] or uint64[2, n]
            Of the engine or of the host; keys of 128 bits are high words and low words, which may be a pair of arrays.
        payload : int64[n]
            If the layout has one; not negative where equal keys' are summed.
        """
        assert self._chunks is not None, "keys are added before blocks are read"
        columns: Sequence[Array] = [keys] if self.layout.words == 1 else [keys[0], keys[1]]
        if payload is not None:
            columns = [*columns, payload.view(np.uint64)]
        if len(columns) != self.layout.given or any(column.dtype != np.uint64 for column in columns):
            raise TypeError(f"{self.layout} takes uint64 keys of {self.layout.words} words, and its payload as int64")
        start, length = 0, len(columns[0])
        while start < length:
            stop = min(length, start + self.chunk_capacity - self._filled)
            self._chunks.put(self._filled, [column[start:stop] for column in columns])
            self._filled += stop - start
            start = stop
            if self._filled == self.chunk_capacity:
                self._sort_chunk(self._chunks)

    def finish(self) -> None:
        """Sort what has been added last: no more keys are added, and the memory for chunks is free for others."""
        chunks = self._chunks
        if chunks is None:
            return
        if self._filled:
            self._sort_chunk(chunks)
        while self._waiting:
            self._keep_run(chunks)
        del chunks
        self._end_chunks()
        self._take_back()

    def take(self) -> list[ScratchArray] | None:
        """Return all keys, a scratch array for each column, if they are in order without a merge; else None.

        The arrays belong to the caller from now on, and there is nothing left here.
        """
        self.finish()
        return self._runs.take() if self.num_runs < 2 else None

    def blocks(self, memory: int | None = None) -> Iterator[SortedBlock]:
        """Yield all keys in ascending order; once. A block is not to be changed, nor used when the next is asked for.

        Equal keys that are reduced are in one block. Nothing is left when the iteration has ended or is closed.

        Parameters
        ----------
        memory
            Bytes of the scratch's work space for windows; all of it if not given.
        """
        return self._blocks(self._as_block, memory, None)

    def each_block(self, function: Callable[[SortedBlock], Made], memory: int | None = None) -> Iterator[Made]:
        """Yield what a function makes of each block, in order; once. See `blocks`.

        Parameters
        ----------
        function
            Threads call it for blocks ahead, where the host sorts. What it makes may have twice the bytes of the block.
        memory
            As of `blocks`.
        """
        threads = ThreadPoolExecutor(core_count(), "blocks") if self._engine.name == "cpu" else None
        return self._blocks(lambda columns: function(self._as_block(columns)), memory, threads)

    def _blocks(
        self, make: Callable[[Columns], Made], memory: int | None, threads: ThreadPoolExecutor | None
    ) -> Iterator[Made]:
        try:
            yield from self._ordered(make, memory, threads)
            self._runs.drop()
        except RunError:
            raise
        except Exception as error:
            # An unexpected error may come from a damaged file: then the user must learn of the damage.
            self.check()
            if isinstance(error, SumOverflow):
                raise _overflow() from None
            raise
        finally:
            self.close()

    def check(self) -> None:
        """Check that scratch files still hold what was written; raises RunError where one does not."""
        self._runs.check()
        self._merged.check()

    def close(self) -> None:
        """Wait for what is under way, and free all memory and files; more than once does no harm."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if may_be_damage(error):
                self.check()
        finally:
            self.close()

    def _take_back(self) -> None:
        self._scratch.take_back(self._lent)

    def _discard(self) -> None:
        self._runs.discard()
        self._merged.discard()

    def _too_small(self, error: WorkspaceTooLarge) -> RunError:
        return RunError(
            f"{self._scratch.what} needs at least {round_size(error.needed)} of the device and a few KiB of the host: "
            f"it has {round_size(self._device)} and {round_size(self._lent.size)}; raise the smaller budget"
        )

    def _as_block(self, columns: Columns) -> SortedBlock:
        words = self.layout.words
        payload = columns[words].view(np.int64) if len(columns) > words else None
        return SortedBlock(columns[0] if words == 1 else np.stack(columns[:2]), payload)

    def _sort_chunk(self, chunks: ChunkSorter) -> None:
        work, self._filled = chunks.sort(self._filled), 0
        self._waiting.append(work)
        while len(self._waiting) >= chunks.depth:
            self._keep_run(chunks)

    def _keep_run(self, chunks: ChunkSorter) -> None:
        try:
            columns = self._waiting.popleft().result()
        except SumOverflow:
            raise _overflow() from None
        size = self.chunk_capacity * WORD
        if self._reserved is not None:
            self._reserved.resize(max(0, self._reserved.size - size * len(columns)), self._scratch.what)
        whole = self._reserved is not None or len(columns[0]) >= _ADOPTED * self.chunk_capacity
        if not whole or not self._runs.adopt(columns, size):
            self._runs.add([columns])
            chunks.recycle(columns)

    def _end_chunks(self) -> None:
        """Let nothing more be sorted."""
        chunks, self._chunks = self._chunks, None
        self._waiting.clear()
        if chunks is not None:
            chunks.close()
        if self._reserved is not None:
            self._reserved.release()

    def _ordered(
        self, make: Callable[[Columns], Made], memory: int | None, threads: ThreadPoolExecutor | None
    ) -> Iterator[Made]:
        self.finish()
        self._lent = self._scratch.lend(self._scratch.work if memory is None else memory)
        if self.num_runs > 1:
            merger = self._merger or self._make_merger()
            self._merge_down(merger)
            if threads is not None:
                self._open.callback(threads.shutdown, cancel_futures=True)  # before the merger it waits for is closed
            yield from self._merge(merger, self._runs.runs, make, threads)
        elif self._runs.runs:
            run, size = self._runs.runs[0], max(1, self._lent.size // (2 * WORD * self.layout.columns))
            for start in range(run.start, run.stop, size):
                yield make(self._runs.read((start, min(start + size, run.stop))))

    def _make_merger(self) -> RunMerger:
        engine = select_engine("cpu") if self._merge_kind == "host" else self._engine
        try:
            merger = engine.kernels.run_merger(
                engine.device, self.layout, self._lent.size, self._device, _METHODS[self._merge_kind]
            )
        except WorkspaceTooLarge as error:
            raise self._too_small(error) from None
        self._open.callback(merger.close)
        return merger

    def _merge_down(self, merger: RunMerger) -> None:
        """Merge runs until the rest can be merged at once."""
        window = merger.capacity
        widest = max(2, min(merger.widest, window // (LEAST_MARKS * self._runs.spacing), self._orderable(window)))
        while self.num_runs > widest:
            self._merge_once(merger, widest)

    def _orderable(self, window: int) -> int:
        """How many runs can be merged at once so that a part of the work space suffices to put checkpoints in order."""
        marks = -(-len(self._runs) // window) * LEAST_MARKS
        return self._lent.size // (ORDER_SHARE * marks * (WORD * self.layout.words + ORDERING))

    def _merge_once(self, merger: RunMerger, widest: int) -> None:
        """Merge neighbouring runs, several to one."""
        runs = self._runs.runs
        self._merged = SortedRuns(self._scratch, self.layout, self._runs.spacing)
        for at in range(0, len(runs), widest):
            self._merged.add(self._merge(merger, runs[at : at + widest], lambda columns: columns))
        self._runs.drop()
        self._runs = self._merged

    def _merge(
        self,
        merger: RunMerger,
        runs: list[Run],
        make: Callable[[Columns], Made],
        threads: ThreadPoolExecutor | None = None,
    ) -> Iterator[Made]:
        """Merge runs; what was made of a block is used up when the next is asked for."""
        if self._merge_kind == "split":
            windows = self._runs.sampled_windows(runs, merger.capacity)
        else:
            windows = self._runs.windows(runs, merger.capacity, self._lent.size)
        waiting: deque[_Making[Made]] = deque()
        for window in windows:
            sizes = [stop - start for start, stop in window]
            waiting.append(_Making(merger.merge(sizes, partial(self._parts, window)), make, threads))
            if len(waiting) == merger.depth:
                yield from self._used(merger, waiting.popleft())
        while waiting:
            yield from self._used(merger, waiting.popleft())

    def _used(self, merger: RunMerger, making: "_Making[Made]") -> Iterator[Made]:
        columns, made = making.result()
        yield made
        merger.recycle(columns)

    def _parts(self, window: list[NeighbourRange]) -> Iterator[Columns]:
        return (self._runs.read(part) for part in window)


class _Making(Generic[Made]):
    """A merge that is under way, and what will be made of it: by a thread, or when it is asked for."""

    def __init__(self, work: Work, make: Callable[[Columns], Made], threads: ThreadPoolExecutor | None) -> None:
        self._work, self._make = work, make
        self._made = threads.submit(self._wait) if threads is not None else None

    def _wait(self) -> tuple[Columns, Made]:
        columns = self._work.result()
        return columns, self._make(columns)

    def result(self) -> tuple[Columns, Made]:
        """Wait for both. Return them, or raise what one of them raised."""
        return self._wait() if self._made is None else self._made.result()


class KeySorter(ScratchSorter):
    """A `ScratchSorter` with a scratch of its own.

    Parameters
    ----------
    resources
        The engine that sorts and merges, and the budgets: half of what is free of the host, at most 256 MiB or an
        eighth of it, is reserved for chunks and windows; runs take what there is of the rest, and are spilled where
        there is none.
    layout, device, merge
        As of `ScratchSorter`.
    what
        What is sorted, for messages to the user.

    Raises
    ------
    BudgetExceeded, RunError
        As `ScratchSorter`.
    """

    def __init__(
        self,
        resources: Resources,
        layout: KeyLayout,
        *,
        device: int = 0,
        merge: Merge = "multi-merge",
        what: str = "sorting keys",
    ) -> None:
        free = resources.host.free
        self._own = Scratch(resources, what, min(max(_LEAST_WORK, free // _WORK_SHARE), free // 2))
        super().__init__(self._own, layout, self._own.work, engine=resources.engine, device=device, merge=merge)

    def close(self) -> None:
        """Wait for what is under way, and free all memory and files; more than once does no harm."""
        super().close()
        self._own.close()


def _overflow() -> RunError:
    return RunError("a count does not fit 64-bit integers: give less at a time")
