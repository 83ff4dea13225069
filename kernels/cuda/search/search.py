"""Search programs on the device: workspaces, and launches of ``count_rows.cu`` and ``extend_rows.cu``.

``extend_two_pass.cu`` is the baseline of ``extend_rows.cu``: it counts first and writes then.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.device import WARP, Device, any_size, checked
from longwall.kernels.cuda.runtime.constants import BLOCK_VALUES, NOT_EXTENDED, TOO_LONG, USED_BITS
from longwall.kernels.cuda.runtime.staging.staging import RowLists, Staging, places
from longwall.kernels.cuda.search.block_pool import BLOCKS_PER_MULTIPROCESSOR, LEAST_BLOCKS, WARPS_PER_BLOCK, BlockPool
from longwall.kernels.cuda.search.search_header import Variant, graph_arguments, program_header, stored_sets
from longwall.kernels.cuda.search.search_stacks import RING_BYTES, SearchStacks, SearchTasks
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.frontier import frontier, row_lists
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import NeighbourRange, RowReads
from longwall.kernels.interface.search import Extension
from longwall.kernels.interface.search_program import SearchProgram, emitted_set, in_slices, to_count, to_extend

Array = Any  # a CuPy array

_STAGING_SHARE = 3  # the part of the memory that lists from the host have
PATIENCE = 1 << 18  # cycles: about 0.15 ms, long enough to hide the look at who is idle
SHARED_ROOM = 512  # elements of a set in a warp's shared memory: 2 KiB
_LEAST_ROOM = 1024  # elements of a set in global memory, where not all warps have room for the longest sets
_TIER, _LAST_TIER = 8, 8  # how much more room the next warps have, who are fewer; all of it is there at last
_FIRST_WINDOW = 1 << 12
_MOST_WANTED = 2**63 - 1  # matches: a larger count is refused, see `launch.checked`


class CudaSearcher:
    """Workspace for one search program.

    Attributes
    ----------
    staging
        What finds lists, and brings them to the device; None where they are read where they are.
    stacks
        Where warps keep sets while they count.
    """

    workspace_bytes = 0

    def __init__(self, device: Device, graph: GraphArrays, program: SearchProgram, memory: int):
        self._edges = program.levels[0], program.levels[1]
        program = in_slices(program, graph.slice_labels)
        self._device, self._graph, self._program = device, graph, program
        self._capacity, self._oriented_capacity = graph.max_degree, graph.max_out_degree
        self._headers: dict[tuple[int, bool, bool], str] = {}
        self.staging: Staging | None = None
        if graph.pages is not None and graph.pages.places is not None:
            share = memory // _STAGING_SHARE
            self.staging, memory = Staging(device, graph, share), memory - share
        plain, oriented = stored_sets(program)
        words = plain * self._capacity + oriented * self._oriented_capacity
        ring = RING_BYTES if program.blocks else 0  # where it counts, warps hand over work
        if memory < ring + words * 4:
            left = 1 if self.staging is None else 1 - 1 / _STAGING_SHARE
            raise WorkspaceTooLarge(int((ring + words * 4) / left) + 1)
        memory -= ring
        wanted = device.multiprocessors * BLOCKS_PER_MULTIPROCESSOR * WARPS_PER_BLOCK
        # Half of the memory is for the new vertices of an extension, where one warp's sets do not need more.
        stacks = SearchStacks.within(wanted, words, max(memory // 2, min(words * 4, memory)))
        self._warps_per_block = min(stacks.warps, WARPS_PER_BLOCK)
        self._blocks = stacks.warps // self._warps_per_block
        self.stacks = SearchStacks(self._blocks * self._warps_per_block, stacks.own, stacks.longs, stacks.long)
        xp = device.xp
        self._store = xp.empty(max(self.stacks.elements, 1), xp.uint32)
        self._tasks = SearchTasks(device, self.stacks.longs) if ring else None
        left = memory - self._store.nbytes
        self._extender = Extender(device, graph, program, self._store, left, wanted, self.staging)

    def count_rows(self, rows: Array, most: int | None = None) -> int:
        """Count the embeddings below `rows` (uint32[columns, n]); see `Searcher`."""
        total, done = 0, 0
        while done < rows.shape[1] and (most is None or total < most):
            part = rows[:, done:]
            lists = self._lists(part)
            total += self._count(part, lists, None if most is None else most - total)
            done += part.shape[1] if lists is None else lists.rows
        return total

    def _count(self, rows: Array, lists: RowLists | None, most: int | None) -> int:
        if most is not None:
            return checked(self._below(rows, lists, most))
        return any_size(self._below(rows, lists), lambda prime: self._below(rows, lists, 0, prime))

    def count_edges(self, first: int, last: int, most: int | None = None) -> tuple[int, int]:
        """Count the embeddings below the edges of a range of arcs; see `Searcher`."""
        found, number = self._below_edges(first, last, most or 0, 0)
        if most is not None:
            return checked(found), number
        return any_size(found, lambda prime: self._below_edges(first, last, 0, prime)[0]), number

    def _below_edges(self, first: int, last: int, most: int, modulus: int) -> tuple[NDArray[np.uint64], int]:
        tasks = self._shared()
        rows = tasks.choose(self._graph, self._edges, first, last)
        self._launch(tasks, rows, last - first, None, most, modulus)
        return tasks.fetched()

    def _below(self, rows: Array, lists: RowLists | None, most: int = 0, modulus: int = 0) -> NDArray[np.uint64]:
        """Count below `rows`, which are not empty. Return the words that ``device.checked`` checks.

        With `lists`, only the rows of these lists are counted. The count ends once it has found `most`, if not 0.
        With a `modulus`, a prime, the count is a residue.
        """
        n = rows.shape[1] if lists is None else lists.rows
        tasks = self._shared()
        tasks.begin(n)
        self._launch(tasks, self._device.xp.ascontiguousarray(rows[:, :n]), n, lists, most, modulus)
        return tasks.fetched()[0]

    def _launch(
        self, tasks: SearchTasks, rows: Array, stride: int, lists: RowLists | None, most: int, modulus: int
    ) -> None:
        """Launch the count of the rows that are given out as tasks."""
        columns, graph = rows.shape[0], self._graph
        header = self._headers.get((columns, lists is None, modulus > 0))
        if header is None:
            program = to_count(self._program, columns)
            read = () if lists is None else row_lists(program, columns)[1]
            pooled, slices = self.stacks.longs > 0, graph.slice_stride
            variant = Variant(PATIENCE, lists=read, pooled=pooled, slice_stride=slices, residues=modulus > 0)
            header = self._headers[columns, lists is None, modulus > 0] = program_header(program, columns, variant)
        capacities = (
            self._store,
            self.stacks.own,
            self._capacity,
            self._oriented_capacity,
            tasks.lent,
            self.stacks.longs,
        )
        shared = tasks.ring, tasks.control, self._device.stop_flag, min(most, _MOST_WANTED), modulus, tasks.result
        self._device.launch(
            "search/count_rows.cu",
            "count_rows",
            (*graph_arguments(graph), rows, stride, *places(lists), *capacities, *shared),
            blocks=self._blocks,
            threads=self._warps_per_block * WARP,
            generated=header,
        )

    def _shared(self) -> SearchTasks:
        """What warps share; made where it is not there."""
        if self._tasks is None:
            self._tasks = SearchTasks(self._device, self.stacks.longs)
        return self._tasks

    def _lists(self, rows: Array) -> RowLists | None:
        """What counting below the rows reads, brought to the device; None where it is read where it is."""
        lists, _ = row_lists(to_count(self._program, rows.shape[0]), rows.shape[0])
        return self.staging.bring(rows, lists) if self.staging is not None and lists else None

    def reads(self, rows: Array, *, counting: bool) -> list[RowReads]:
        """Return what counting below `rows`, or extending them, reads for their own vertices."""
        program = (to_count if counting else to_extend)(self._program, rows.shape[0])
        return frontier(program, rows, grouped=counting or self._device.ablation.grouped)

    def extend_rows(self, rows: Array, capacity: int, first: int = 0) -> Extension:
        """Extend `rows` (uint32[columns, n]) by one level."""
        return self._extender.extend_rows(rows, capacity, first)


@dataclass(frozen=True)
class _Step:
    """How rows of a number of columns are extended.

    Attributes
    ----------
    columns
        Of the rows.
    header
        The program, as C++.
    plain, oriented
        Numbers of stored sets.
    shared
        Bytes of shared memory for a warp.
    lists
        What the rows' sets read, where it is brought to the device first.
    """

    columns: int
    header: str
    plain: int
    oriented: int
    shared: int
    lists: list[tuple[int, NeighbourRange]]


@dataclass(frozen=True)
class _Rows:
    """Rows to extend (uint32[columns, n], contiguous), where their lists are, and where the first row goes on."""

    rows: Array
    lists: RowLists | None
    first: int


class Extender:
    """What the extensions of one searcher share.

    Parameters
    ----------
    device, graph, program
        As for the searcher.
    store : uint32[words]
        Workspace for sets; enough for one warp.
    memory
        Bytes for the pool of blocks.
    warps
        Number of warps that fill the device.
    staging
        Brings lists to the device, None where they are read where they are.
    """

    def __init__(
        self,
        device: Device,
        graph: GraphArrays,
        program: SearchProgram,
        store: Array,
        memory: int,
        warps: int,
        staging: Staging | None,
    ):
        self._device, self._graph, self._program = device, graph, program
        self._store, self._warps, self._staging = store, warps, staging
        self._longest = graph.max_degree, graph.max_out_degree
        self._pool = BlockPool(device, memory, warps, store.nbytes)
        self._window = _FIRST_WINDOW
        self._steps: dict[int, _Step] = {}

    def extend_rows(self, rows: Array, capacity: int, first: int) -> Extension:
        """Extend rows (uint32[columns, n]) by a level; see :class:`longwall.kernels.interface.search.Searcher`."""
        xp, n = self._device.xp, rows.shape[1]
        if not n:
            return Extension(xp.zeros(0, np.int64), xp.empty(0, np.uint32))
        if first:
            rows = rows[:, :1]  # so that no other row is the first of those that are left
        step = self._step(rows.shape[0])
        lists = self._staging.bring(rows, step.lists) if self._staging is not None and step.lists else None
        if lists is not None:
            rows = rows[:, : lists.rows]
        rows = xp.ascontiguousarray(rows)
        extend = self._in_two_passes if self._device.ablation.two_pass else self._in_one_pass
        found = extend(step, _Rows(rows, lists, first), capacity)
        if rows.shape[1] == n:
            return found
        counts = xp.full(n, NOT_EXTENDED, np.int64)
        counts[: rows.shape[1]] = found.counts
        return replace(found, counts=counts, waiting=found.waiting + n - rows.shape[1])

    # --- one pass -------------------------------------------------------------------------------------------------

    def _in_one_pass(self, step: _Step, rows: _Rows, capacity: int) -> Extension:
        xp, n = self._device.xp, rows.rows.shape[1]
        pool, blocks = self._pool, self._pool.reserve(capacity)
        follows = pool.blocks[blocks * BLOCK_VALUES :]
        counts, starts = xp.empty(n, np.int64), xp.empty(n, np.uint32)
        limit = n
        while True:
            counts.fill(NOT_EXTENDED)
            tally = xp.zeros(4, np.uint64)  # blocks that were requested, then the kernel's Tally
            used = (follows, tally.view(np.uint32), blocks, tally[1:], capacity, counts, starts)
            # A warp takes a block for each tier: a row on its own has all blocks, and the longest sets, at once.
            tier = _LAST_TIER if limit == 1 else 0
            found, done, too_long = self._fill(step, rows, None, limit, used, tally, tier)
            while too_long:
                if self._capacities(step, tier)[:2] == self._longest:
                    raise RuntimeError("internal fault: a set outgrew its workspace")
                tier += 1
                long = xp.flatnonzero(counts == TOO_LONG).astype(np.uint32)
                counts[long] = NOT_EXTENDED  # the pool may have no block left for some
                tally[3:] = 0
                found, done, too_long = self._fill(step, rows, long, long.size, used, tally, tier)
            if done == n and found <= capacity:
                return pool.gather(Extension(counts, xp.empty(found, np.uint32)), xp.cumsum(counts), starts, follows)
            first = int(counts[0]) if limit == 1 else 0
            ends = xp.cumsum(xp.maximum(counts, 0))
            done, last, found = pool.keep_rows(counts, ends, capacity)
            if done or int(self._device.stop_flag[0]):
                result = Extension(counts, xp.empty(found, np.uint32), waiting=n - done, leading=last == done)
                return pool.gather(result, ends, starts, follows)
            if limit == 1:  # all blocks, or all that were requested, are of the first row
                break
            # All blocks are taken before any row is done: fewer warps try again.
            limit = max(limit // 8, 1)
        written = (blocks - (int(starts[0]) >> USED_BITS)) * BLOCK_VALUES if first < 0 else first
        written = counts[0] = min(written, capacity)
        ends.fill(written)
        begun = pool.gather(Extension(counts, xp.empty(written, np.uint32)), ends, starts, follows)
        return replace(begun, begun=int(begun.values[-1]) + 1, waiting=n - 1)

    def _fill(
        self,
        step: _Step,
        rows: _Rows,
        order: Array | None,
        number: int,
        used: tuple[Any, ...],
        tally: Array,
        tier: int,
    ) -> tuple[int, int, int]:
        """Extend rows into the pool; `used` are the kernel's arguments for it besides where it is.

        Return the new vertices, the rows that are done, and those with sets that may be too long, so far.
        """
        blocks = used[2]
        warps = min(max((blocks - LEAST_BLOCKS) // 2, 1), number)
        self._launch("extend_rows", step, rows, order, number, warps, (self._pool.blocks, *used), tier)
        self._device.synchronize()  # as in launch.exact
        _, found, done, too_long = tally.get().tolist()
        return found, done, too_long

    # --- two passes -----------------------------------------------------------------------------------------------

    def _in_two_passes(self, step: _Step, rows: _Rows, capacity: int) -> Extension:
        xp, n = self._device.xp, rows.rows.shape[1]
        counts, long = xp.zeros(n, np.int64), xp.zeros(n, bool)
        done = total = 0
        # Rows are counted in windows, so that few are counted in vain where the capacity ends early.
        while done < n:
            width = min(self._window, n - done)
            numbers = xp.arange(done, done + width, dtype=np.uint32)
            self._pass(step, rows, numbers, counts, None, None, 0)
            numbers = numbers[counts[done : done + width] == TOO_LONG]
            long[numbers] = True
            self._pass(step, rows, numbers, counts, None, None, _LAST_TIER)
            ends = xp.cumsum(counts[done : done + width])
            fitting = int(xp.searchsorted(ends, capacity - total, side="right"))
            if fitting:
                total += int(ends[fitting - 1])
            done += fitting
            if fitting < width:
                self._window = max(done, _FIRST_WINDOW)
                if not done:
                    return self._begin(step, rows, capacity, counts, long)
                break
            self._window = width * 2 if width == self._window else self._window
        counts[done:] = NOT_EXTENDED
        result, ends = self._result(counts, n - done)
        for chosen in (False, True):
            numbers = xp.flatnonzero((counts > 0) & (long == chosen)).astype(np.uint32)
            self._pass(step, rows, numbers, counts, ends, result.values, _LAST_TIER if chosen else 0)
        return result

    def _begin(self, step: _Step, rows: _Rows, capacity: int, counts: Array, long: Array) -> Extension:
        """Extend the first row as far as there is room; it is written whole, and cut."""
        xp = self._device.xp
        counts[1:] = NOT_EXTENDED
        values, ends = xp.empty(int(counts[0]), np.uint32), xp.cumsum(counts[:1])
        self._pass(step, rows, xp.zeros(1, np.uint32), counts, ends, values, _LAST_TIER if long[0] else 0)
        counts[0] = capacity
        return Extension(counts, values[:capacity], int(values[capacity - 1]) + 1, counts.size - 1)

    def _pass(
        self, step: _Step, rows: _Rows, numbers: Array, counts: Array, ends: Array, out: Array, tier: int
    ) -> None:
        if numbers.size:
            null = np.uintp(0)
            rest = (counts, null if ends is None else ends, null if out is None else out)
            self._launch("extend_two_pass", step, rows, numbers, numbers.size, numbers.size, rest, tier)
            self._device.synchronize()

    # --- both -----------------------------------------------------------------------------------------------------

    def _result(self, counts: Array, waiting: int) -> tuple[Extension, Array]:
        """Make an array for the new vertices, and its ends by row; `waiting` rows at the end have a negative count."""
        xp = self._device.xp
        ends = xp.cumsum(xp.maximum(counts, 0))
        return Extension(counts, xp.empty(int(ends[-1]), np.uint32), waiting=waiting), ends

    def _step(self, columns: int) -> _Step:
        if columns not in self._steps:
            program = to_extend(self._program, columns)
            emitted = emitted_set(program, columns)
            lists, numbers = row_lists(program, columns)
            stored = stored_sets(program, emitted)
            # As much as leaves room for as many blocks as the registers do.
            share = self._device.shared_memory // BLOCKS_PER_MULTIPROCESSOR // WARPS_PER_BLOCK
            shared_capacity = min(share // (4 * max(sum(stored), 1)) // WARP * WARP, SHARED_ROOM)
            variant = Variant(
                emitted=emitted,
                grouped=self._device.ablation.grouped,
                shared_capacity=shared_capacity,
                lists=() if self._staging is None else numbers,
                slice_stride=self._graph.slice_stride,
            )
            header = program_header(program, columns, variant)
            self._steps[columns] = _Step(columns, header, *stored, 4 * sum(stored) * shared_capacity, lists)
        return self._steps[columns]

    def _capacities(self, step: _Step, tier: int) -> tuple[int, int, int]:
        """Elements that a stored set may have, of both kinds, and how many warps can have that room.

        All warps get as much as fits; rows with longer sets are left to the next tier, with more room for fewer warps,
        and at last to the few that have room for any.
        """
        longest, oriented = self._longest
        words = step.plain * longest + step.oriented * oriented
        if not words:
            return longest, oriented, self._warps
        if words * self._warps > self._store.size:
            most = max(self._store.size // self._warps // (step.plain + step.oriented), _LEAST_ROOM) * _TIER**tier
            longest, oriented = min(longest, most), min(oriented, most)
            words = step.plain * longest + step.oriented * oriented
        return longest, oriented, min(self._store.size // words, self._warps)

    def _launch(
        self, name: str, step: _Step, rows: _Rows, order: Array | None, number: int, warps: int,
        rest: tuple[Any, ...], tier: int,
    ) -> None:  # fmt: skip
        graph, null = self._graph, np.uintp(0)
        capacity, oriented_capacity, fitting = self._capacities(step, tier)
        warps = min(warps, fitting)
        # Neighbouring rows share a prefix, whose sets a warp computes once; but every warp should have rows.
        at_once = 1 if tier else min(max(number // (warps * 4), 1), 32)
        per_block = min(max(warps // self._device.multiprocessors, 1), WARPS_PER_BLOCK)  # few spread over the device
        work = (rows.first, self._store, capacity, oriented_capacity, at_once)
        self._device.launch(
            f"search/{name}.cu",
            name,
            (
                *graph_arguments(graph),
                rows.rows,
                rows.rows.shape[1],
                *places(rows.lists),
                null if order is None else order,
                number,
                *work,
                self._device.xp.zeros(1, np.uint32),
                self._device.stop_flag,
                *rest,
            ),
            blocks=warps // per_block,
            threads=per_block * WARP,
            shared=per_block * step.shared,
            generated=step.header,
        )
