"""Lists that are read from host memory, brought to one room on the device; see ``runtime/staging/stage_lists.cu``.

Over the host link, reads of a few hundred bytes at random have a seventh of the rate of the same reads in page order.
The lists that rows will read are known, so those whose pages have no copies on the device are copied in the order of
their pages, each once however many rows read it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from longwall.kernels.cuda.device import THREADS, WARP, Device
from longwall.kernels.cuda.runtime.constants import STAGING_SEGMENT, STAGING_SLOT_BITS
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import NeighbourRange

Array = Any  # a CuPy array

# Of a row and list: two slots of the table (16), an entry (8), where that was and is (16), where it begins and its
# length (12). To sort entries takes 8 each, and 1 KiB for 4,608 of them.
_ITEM_BYTES = 52
_SORT_BYTES = 9
_FIXED_BYTES = 32 << 10  # of sorting and adding up, whatever the number; and what arrays are rounded up to
_LEAST_ITEMS = 64  # more than a row has lists
_MOST_ITEMS = 1 << (STAGING_SLOT_BITS - 1)  # half of the slots that entries can name
_TABLE_SHARE = 2  # slots of the table for each item
_HEAD = 2  # numbers before the table: of entries and of their arcs
_LONG = 16  # a list that takes this part of the room or more is read where it is
_BLOCKS_BESIDE = 2  # per multiprocessor: they keep the link busy, and leave room for the kernels beside them

Lists = list[tuple[int, NeighbourRange]]


@dataclass(frozen=True)
class RowLists:
    """Where the lists of rows are, until lists are brought again.

    Attributes
    ----------
    rows
        Number of leading rows whose lists are known.
    begins : int64[lists, rows]
        Counted in arcs from the adjacency's first one.
    lengths : int32[lists, rows]
    """

    rows: int
    begins: Array
    lengths: Array


def places(lists: RowLists | None) -> tuple[Any, Any]:
    """Arguments of kernels for lists: null pointers where there are none."""
    return (np.uintp(0), np.uintp(0)) if lists is None else (lists.begins, lists.lengths)


class Staging:
    """Room for lists on the device.

    Parameters
    ----------
    device, graph
        The graph has pages.
    memory
        Bytes for lists, and for knowing where they are.
    beside
        Whether kernels run on another stream while lists are copied.

    Attributes
    ----------
    brought
        Bytes of lists that were copied so far, wherever they came from.
    """

    def __init__(self, device: Device, graph: GraphArrays, memory: int, *, beside: bool = False):
        self.brought = 0
        self._device, self._graph, self._beside = device, graph, beside
        self._known = 0  # entries whose lists are here
        memory = max(memory - _FIXED_BYTES, 0)
        # At most half of it for knowing where lists are; the fewer there are, the more room they have.
        self._items = min(max(memory // 2 // (_ITEM_BYTES + _SORT_BYTES), _LEAST_ITEMS), _MOST_ITEMS)
        least = 8 * _HEAD + _ITEM_BYTES * self._items + 4
        size = max(memory - _SORT_BYTES * self._items, least)
        self._memory = device.xp.empty(size // 8, np.uint64)
        self._lay_out(self._items)
        self._named: dict[tuple[tuple[int, NeighbourRange], ...], Array] = {}
        self._guess: dict[tuple[tuple[int, NeighbourRange], ...], int] = {}  # how many rows have lists that fit
        self._reused = device.xp.zeros(1, np.uint64)

    @property
    def copied(self) -> int:
        """Bytes of lists that were copied from the host so far."""
        return self.brought - 4 * int(self._reused.get()[0])

    def bring(self, rows: Array, lists: Lists) -> RowLists:
        """Copy what leading rows (of uint32[columns, n]) read of host memory, about as many as there is room for."""
        assert self._graph.pages is not None
        found = self.gather(rows, lists)
        self._graph.pages.settle()
        return found

    def gather(self, rows: Array, lists: Lists, other: "Staging | None" = None) -> RowLists:
        """Begin to bring lists, on the current stream; copies of pages are not waited for.

        Parameters
        ----------
        rows, lists
            See `bring`.
        other
            A room whose lists stay as they are until the copies are made: what is there is copied from there.
        """
        key, n = tuple(lists), min(rows.shape[1], self._items // len(lists))
        guesses = self._guess if key in self._guess or other is None else other._guess
        n = min(n, guesses.get(key, n))
        self._known = 0
        while True:
            self._lay_out(n * len(lists))
            number, total = self._find(rows, n, lists)
            if total <= self._capacity:
                break
            n = self._fitting(n, total, len(lists))
        # Rows that follow are alike: it takes one look then, and the room is well used.
        self._guess[key] = self._fitting(n, total, len(lists))
        items = n * len(lists)
        if number:
            self._copy(number, total, other)
            self._launch("settle_lists", items, (self._table, self._offset(), items, self._begins))
        shape = (len(lists), n)
        return RowLists(n, self._begins[:items].reshape(shape), self._lengths[:items].reshape(shape))

    def _fitting(self, n: int, total: int, lists: int) -> int:
        """Return how many rows fit if the lists of `n` rows have `total` arcs: in proportion, or a little less."""
        used = _ITEM_BYTES * lists * n + 4 * total  # the first rows have more lists of their own than the later ones
        return max(n * 9 * int(self._memory.nbytes) // (10 * max(used, 1)), 1)

    def _lay_out(self, items: int) -> None:
        """Share the memory out between a number of items and the lists."""
        begin = 0

        def take(words: int, dtype: Any) -> Array:
            nonlocal begin
            begin += words
            return self._memory[begin - words : begin].view(dtype)

        self._state = take(_HEAD + _TABLE_SHARE * items, np.uint64)
        self._found, self._table = self._state[:_HEAD], self._state[_HEAD:]
        self._entries = take(items, np.uint64)
        self._sources, self._ends, self._begins = (take(items, np.int64) for _ in range(3))
        self._lengths = take(-(-items // 2), np.int32)
        self._buffer = self._memory[begin:].view(np.uint32)
        self._capacity = int(self._buffer.size)  # arcs

    def _find(self, rows: Array, n: int, lists: Lists) -> tuple[int, int]:
        """Enter what is to be copied for `n` rows. Return the number of lists, and of their arcs."""
        graph, pages, items = self._graph, self._graph.pages, n * len(lists)
        assert pages is not None
        column_step, row_step = (step // rows.itemsize for step in rows.strides)
        self._state.fill(0)
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
                pages.places,
                # The lists of a single row always fit.
                self._capacity // max(_LONG, 2 * len(lists)) if pages.staged else 0,
                self._table,
                _TABLE_SHARE * items,
                self._entries,
                self._found,
                self._begins,
                self._lengths,
            ),
        )
        self._device.xp.cuda.get_current_stream().synchronize()  # as in launch.exact; pages may still be copied
        number, total = self._found.get().tolist()
        return number, total

    def _copy(self, number: int, total: int, other: "Staging | None") -> None:
        """Copy the lists that were found to the buffer, in page order; the table says then where they begin."""
        graph, entries, ends = self._graph, self._entries[:number], self._ends[:number]
        entries.sort()
        self._launch(
            "measure_lists",
            number,
            (graph.indptr, graph.split, entries, number, *_there(other), self._sources, ends, self._reused),
        )
        self._device.xp.cumsum(ends, out=ends)
        warps = -(-total // STAGING_SEGMENT)
        most = _BLOCKS_BESIDE * self._device.multiprocessors * THREADS if self._beside else warps * WARP
        self._launch(
            "stage_lists",
            min(warps * WARP, most),
            (graph.indices, entries, self._sources, ends, number, total, self._table, self._buffer),
        )
        self.brought += 4 * total
        self._known = number

    def _names(self, lists: Lists) -> Array:
        """Columns and parts, on the device: int64[lists, 2]."""
        key = tuple(lists)
        if key not in self._named:
            self._named[key] = self._device.xp.asarray(np.array(lists, np.int64))
        return self._named[key]

    def _offset(self) -> int:
        """Arcs from the adjacency's first one to the buffer's."""
        return (int(self._buffer.data.ptr) - int(self._graph.indices.data.ptr)) // 4

    def _launch(self, function: str, threads: int, arguments: tuple[Any, ...]) -> None:
        self._device.launch_over("runtime/staging/stage_lists.cu", function, threads, arguments)


def _there(other: Staging | None) -> tuple[Any, ...]:
    """Arguments of ``measure_lists`` for the lists of another room: entries, their ends, their number, and where."""
    if other is None or not other._known:
        return np.uintp(0), np.uintp(0), 0, 0
    return other._entries, other._ends, other._known, other._offset()
