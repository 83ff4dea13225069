"""Search programs on the device: scratch, and launches of ``count_rows.cu``; extension is in ``extension``."""

from dataclasses import replace
from typing import Any

import numpy as np

from longwall.kernels.cuda.extension import BLOCKS_PER_MULTIPROCESSOR, WARPS_PER_BLOCK, Extender
from longwall.kernels.cuda.runtime.launch import WARP, Device, exact, units_that_fit
from longwall.kernels.cuda.runtime.search_header import Variant, program_header, stored_sets
from longwall.kernels.cuda.runtime.staging import RowLists, Staging, places
from longwall.kernels.interface.engine import Ablation, GraphArrays, WorkspaceTooLarge
from longwall.kernels.interface.frontier import RowReads, frontier, row_lists
from longwall.kernels.interface.search_program import SearchProgram, to_count, to_extend
from longwall.kernels.interface.workspaces import Extension

Array = Any  # a CuPy array

RING_SLOTS = 4096  # kRingSlots
RING_SLOT_WORDS = 8
RING_BYTES = 4 * RING_SLOTS * RING_SLOT_WORDS
_STAGING_SHARE = 3  # the part of the memory that lists from the host have
PATIENCE = 1 << 18  # cycles: about 0.15 ms, long enough to hide the look at who is idle


class CudaSearcher:
    """Scratch for one search program.

    Attributes
    ----------
    staging
        What finds lists, and brings them to the device; None where they are read where they are.
    """

    workspace_bytes = 0

    def __init__(self, device: Device, graph: GraphArrays, program: SearchProgram, memory: int, ablation: Ablation):
        self._device, self._graph, self._program, self._ablation = device, graph, program, ablation
        self._room, self._oriented_room = graph.max_degree, graph.max_out_degree
        self.staging: Staging | None = None
        if graph.pages is not None and graph.pages.places is not None:
            share = memory // _STAGING_SHARE
            self.staging, memory = Staging(device, graph, share), memory - share
        plain, oriented = stored_sets(program)
        words = plain * self._room + oriented * self._oriented_room
        ring = RING_BYTES if program.blocks else 0  # where it counts, warps hand over work
        if memory < ring + words * 4:
            left = 1 if self.staging is None else 1 - 1 / _STAGING_SHARE
            raise WorkspaceTooLarge(int((ring + words * 4) / left) + 1)
        memory -= ring
        wanted = device.multiprocessors * BLOCKS_PER_MULTIPROCESSOR * WARPS_PER_BLOCK
        # Half of the memory is for what an extension gives, where one warp's sets do not need more.
        warps = units_that_fit(wanted, words * 4, max(memory // 2, min(words * 4, memory)))
        self._warps_per_block = min(warps, WARPS_PER_BLOCK)
        self._blocks = warps // self._warps_per_block
        xp = device.xp
        self._store = xp.empty(max(self._blocks * self._warps_per_block * words, 1), xp.uint32)
        self._ring = self._make_ring() if ring else None
        self._control = xp.zeros(6, xp.uint32)
        left = memory - self._store.nbytes
        self._extender = Extender(device, graph, program, self._store, left, wanted, ablation, self.staging)

    def count_rows(self, rows: Array) -> int:
        """Count the embeddings below `rows` (uint32[columns, n])."""
        total, done = 0, 0
        while done < rows.shape[1]:
            part = rows[:, done:]
            lists = self._lists(part)
            total += exact(self.start(part, lists))
            done += part.shape[1] if lists is None else lists.rows
        return total

    def start(self, rows: Array, lists: RowLists | None = None) -> Array:
        """Launch the count of `rows`, of which there are some; gives what ``launch.exact`` fetches.

        With `lists`, only the rows that they are of are counted.
        """
        columns, n = rows.shape
        program = to_count(self._program, columns)
        graph, result = self._graph, self._device.result()
        variant = Variant(patience=PATIENCE)
        if lists is not None:
            n = lists.rows
            variant = replace(variant, lists=row_lists(program, columns)[1])
        if self._ring is None:
            self._ring = self._make_ring()
        self._control[0] = 0
        self._device.launch(
            "count_rows.cu",
            "count_rows",
            (
                graph.indptr,
                graph.indices,
                graph.split,
                graph.labels,
                self._device.xp.ascontiguousarray(rows[:, :n]),
                n,
                *places(lists),
                n,
                self._store,
                self._room,
                self._oriented_room,
                self._ring,
                self._control,
                self._device.stop_flag,
                result,
            ),
            blocks=self._blocks,
            threads=self._warps_per_block * WARP,
            generated=program_header(program, columns, variant),
        )
        return result

    def _make_ring(self) -> Array:
        """A ring of tasks, all slots free."""
        ring = self._device.xp.zeros((RING_SLOTS, RING_SLOT_WORDS), np.uint32)
        ring[:, 0] = self._device.xp.arange(RING_SLOTS, dtype=np.uint32)
        return ring

    def _lists(self, rows: Array) -> RowLists | None:
        """What counting below the rows reads, brought to the device; None where it is read where it is."""
        lists, _ = row_lists(to_count(self._program, rows.shape[0]), rows.shape[0])
        return self.staging.bring(rows, lists) if self.staging is not None and lists else None

    def reads(self, rows: Array, *, counting: bool) -> list[RowReads]:
        """Tell what counting below `rows`, or extending them, reads for their own vertices."""
        program = (to_count if counting else to_extend)(self._program, rows.shape[0])
        return frontier(program, rows, grouped=counting or self._ablation.grouped)

    def extend_rows(self, rows: Array, capacity: int, first: int = 0) -> Extension:
        """Extend `rows` (uint32[columns, n]) by one level."""
        return self._extender.extend_rows(rows, capacity, first)
