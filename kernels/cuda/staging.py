"""Lists that are read from host memory, brought to the device before an extension; see ``stage_lists.cu``.

Reads of a few hundred bytes at random get a seventh of what the host link gives to the same reads in page order. The
lists that rows will read are known, so those that are away are copied in the order of their pages, each once however
many rows read it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from longwall.kernels.cuda.launch import WARP, Device
from longwall.kernels.engine import GraphArrays
from longwall.kernels.frontier import Part

Array = Any  # a CuPy array

_ROW_BYTES = 96  # of a row and list: where it begins, its length, and what it takes to find equal ones
_WARPS_PER_BLOCK = 8
_BLOCKS = 8  # per multiprocessor
_LONG = 16  # a list that takes this part of the room or more is read where it is


@dataclass(frozen=True)
class RowLists:
    """Where the lists of rows are.

    Attributes
    ----------
    rows
        Number of leading rows whose lists are known.
    begins : int64[lists, rows]
        Counted in slots from the adjacency's first one.
    lengths : int32[lists, rows]
    """

    rows: int
    begins: Array
    lengths: Array


def places(lists: RowLists | None) -> tuple[Any, Any]:
    """What kernels are told about lists: null pointers where there are none."""
    return (np.uintp(0), np.uintp(0)) if lists is None else (lists.begins, lists.lengths)


class Staging:
    """Room for lists on the device.

    Parameters
    ----------
    device, graph
        The graph has pages.
    memory
        Bytes for lists, and for knowing where they are.
    """

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        self._device, self._graph = device, graph
        self._slots = memory // 2 // 4
        self._memory = memory - self._slots * 4
        self._buffer = device.xp.empty(max(self._slots, 1), np.uint32)

    def bring(self, rows: Array, lists: list[tuple[int, Part]]) -> RowLists:
        """Copy what leading rows (of uint32[columns, n]) read of host memory, as many as there is room for."""
        n = min(rows.shape[1], max(self._memory // (_ROW_BYTES * len(lists)), 1))
        while True:
            found = self._places(rows[:, :n], lists)
            if found is not None:
                return found
            n = max(n // 2, 1)

    def _places(self, rows: Array, lists: list[tuple[int, Part]]) -> RowLists | None:
        """Copy what the rows read; None if that is more than there is room for."""
        xp, graph, n = self._device.xp, self._graph, rows.shape[1]
        begins, lengths = xp.empty((len(lists), n), np.int64), xp.empty((len(lists), n), np.int32)
        copies, used = [], 0
        for number, (column, part) in enumerate(lists):
            vertices = rows[column]
            begin = graph.split[vertices] if part == Part.LARGER else graph.indptr[vertices]
            end = graph.split[vertices] if part == Part.SMALLER else graph.indptr[vertices.astype(np.int64) + 1]
            begins[number], lengths[number] = begin, end - begin
            # Lists that are left of a single row always fit.
            short = end - begin < self._slots // max(_LONG, 2 * len(lists))
            wanted = xp.flatnonzero(self._is_away(begin, end) & short)
            if not wanted.size:
                continue
            # In the order of the vertices, which is that of the pages.
            _, first, same = xp.unique(vertices[wanted], return_index=True, return_inverse=True)
            sizes = lengths[number][wanted[first]]
            ends = xp.cumsum(sizes, dtype=np.int64) + used
            copies.append((begin[wanted[first]], ends, sizes))
            begins[number][wanted] = (ends - sizes + self._offset())[same]
            used = int(ends[-1])
            if used > self._slots and n > 1:
                return None
        for begin, ends, sizes in copies:
            self._copy(begin, ends, sizes)
        return RowLists(n, begins, lengths)

    def _is_away(self, begin: Array, end: Array) -> Array:
        """Whether lists are not wholly on the device."""
        pages = self._graph.pages
        assert pages is not None
        last = self._device.xp.maximum(end - 1, begin)
        there = self._device.xp.minimum(last, self._graph.num_slots - 1) // pages.slots
        return (end > begin) & (pages.away[there + 1] > pages.away[begin // pages.slots])

    def _offset(self) -> int:
        """Slots from the adjacency's first one to the buffer's."""
        return (int(self._buffer.data.ptr) - int(self._graph.indices.data.ptr)) // 4

    def _copy(self, begins: Array, ends: Array, lengths: Array) -> None:
        number = int(begins.size)
        self._device.launch(
            "stage_lists.cu",
            "stage_lists",
            (
                self._graph.indices,
                begins,
                ends,
                lengths,
                number,
                self._device.xp.zeros(1, np.uint32),
                self._buffer,
            ),
            blocks=max(min(-(-number // (WARP * _WARPS_PER_BLOCK)), self._device.multiprocessors * _BLOCKS), 1),
            threads=_WARPS_PER_BLOCK * WARP,
        )
