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

# Of a row and list: where it begins and its length (12), two slots of the table (16), an entry (8), where that was and
# is (16), and what it takes to sort entries (8, and 1 KiB for 4,608 of them).
_ITEM_BYTES = 61
_FIXED_BYTES = 32 << 10  # of sorting and adding up, whatever the number; and what arrays are rounded up to
_LEAST_ITEMS = 64  # more than a row has lists
_MOST_ITEMS = 1 << 29  # half of the slots that entries can name
_TABLE_SHARE = 2  # slots of the table for each item
_LONG = 16  # a list that takes this part of the room or more is read where it is
_SEGMENT = 512  # kSegment
_THREADS = 256
_BLOCKS = 8  # per multiprocessor


@dataclass(frozen=True)
class RowLists:
    """Where the lists of rows are, until lists are brought again.

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

    Attributes
    ----------
    copied
        Bytes of lists that were copied so far.
    """

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        self.copied = 0
        self._device, self._graph = device, graph
        xp, memory = device.xp, max(memory - _FIXED_BYTES, 0)
        self._room = memory // 2 // 4  # slots
        self._items = min(max((memory - self._room * 4) // _ITEM_BYTES, _LEAST_ITEMS), _MOST_ITEMS)
        self._buffer = xp.empty(max(self._room, 1), np.uint32)
        self._begins, self._lengths = xp.empty(self._items, np.int64), xp.empty(self._items, np.int32)
        # Two numbers, of entries and of their slots, and the table: cleared together.
        self._state = xp.empty(2 + _TABLE_SHARE * self._items, np.uint64)
        self._found, self._table = self._state[:2], self._state[2:]
        self._entries = xp.empty(self._items, np.uint64)
        self._sources, self._ends = xp.empty(self._items, np.int64), xp.empty(self._items, np.int64)
        self._named: dict[tuple[tuple[int, Part], ...], Array] = {}

    def bring(self, rows: Array, lists: list[tuple[int, Part]]) -> RowLists:
        """Copy what leading rows (of uint32[columns, n]) read of host memory, about as many as there is room for."""
        n = min(rows.shape[1], self._items // len(lists))
        while True:
            number, total = self._find(rows, n, lists)
            if total <= self._room:
                break
            # In proportion, or a little less: the first rows have more lists of their own than the later ones.
            n = max(n // 2, n * 9 * self._room // (total * 10), 1)
        items = n * len(lists)
        if number:
            self._copy(number, total)
            self._launch("settle_lists", items, (self._table, self._offset(), items, self._begins))
        shape = (len(lists), n)
        return RowLists(n, self._begins[:items].reshape(shape), self._lengths[:items].reshape(shape))

    def _find(self, rows: Array, n: int, lists: list[tuple[int, Part]]) -> tuple[int, int]:
        """Enter what `n` rows read of host memory; gives the number of lists, and of their slots."""
        graph, pages, items = self._graph, self._graph.pages, n * len(lists)
        assert pages is not None
        column_step, row_step = (step // rows.itemsize for step in rows.strides)
        self._state[: 2 + _TABLE_SHARE * items].fill(0)
        self._launch(
            "find_lists",
            -(-n // WARP) * WARP * len(lists),
            (
                graph.indptr,
                graph.split,
                rows,
                column_step,
                row_step,
                n,
                self._names(lists),
                len(lists),
                pages.away,
                pages.slots,
                self._room // max(_LONG, 2 * len(lists)),  # so that the lists of a single row always fit
                self._table,
                _TABLE_SHARE * items,
                self._entries,
                self._found,
                self._begins,
                self._lengths,
            ),
        )
        self._device.synchronize()  # as in launch.exact
        number, total = self._found.get().tolist()
        return number, total

    def _copy(self, number: int, total: int) -> None:
        """Copy the lists that were found to the buffer, in page order; the table tells then where they begin."""
        graph, entries, ends = self._graph, self._entries[:number], self._ends[:number]
        self.copied += 4 * total
        entries.sort()
        self._launch("measure_lists", number, (graph.indptr, graph.split, entries, number, self._sources, ends))
        self._device.xp.cumsum(ends, out=ends)
        self._launch(
            "stage_lists",
            -(-total // _SEGMENT) * WARP,
            (graph.indices, entries, self._sources, ends, number, total, self._table, self._buffer),
        )

    def _names(self, lists: list[tuple[int, Part]]) -> Array:
        """Columns and parts, on the device: int64[lists, 2]."""
        key = tuple(lists)
        if key not in self._named:
            self._named[key] = self._device.xp.asarray(np.array(lists, np.int64))
        return self._named[key]

    def _offset(self) -> int:
        """Slots from the adjacency's first one to the buffer's."""
        return (int(self._buffer.data.ptr) - int(self._graph.indices.data.ptr)) // 4

    def _launch(self, function: str, threads: int, arguments: tuple[Any, ...]) -> None:
        """Launch for so many threads, of which each does more than one's work where they are very many."""
        blocks = min(max(-(-threads // _THREADS), 1), self._device.multiprocessors * _BLOCKS)
        self._device.launch("stage_lists.cu", function, arguments, blocks=blocks, threads=_THREADS)
