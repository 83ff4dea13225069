"""Two rooms for lists: one is filled while kernels read the other.

```text
stream of the kernels   piece 1: count, write ──► piece 2: count, write ──► ...
                         reads room A              reads room B
stream of the copies    piece 2 to room B ──────► piece 3 to room A ──────► ...
                         once the kernels before   once piece 1 is written
                         piece 1 have ended
```

Neither stream waits for the other but by events: kernels for the room that they read to be filled, copies for the
kernels that read their room before.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from longwall.kernels.cuda.device import Device
from longwall.kernels.cuda.runtime.staging.staging import Lists, RowLists, Staging
from longwall.kernels.interface.graph_arrays import GraphArrays

Array = Any  # a CuPy array
ReadRows = Callable[[Array, int, int], Array]

LEAST_BY_TURNS = 256 << 10  # bytes: with less, pieces are so short that a launch takes longer than their copies


@dataclass(frozen=True)
class _Ahead:
    """A piece of a table, from the row `first` on, whose lists are brought; where copies of pages were then."""

    table: Array
    first: int
    lists: RowLists
    places: Array


class StagingByTurns:
    """Room on the device for the lists of pieces of tables, two of them where the memory allows it.

    Parameters
    ----------
    device, graph
        The graph has pages.
    memory
        Bytes for lists, and for knowing where they are.
    read
        Makes uint32[columns, n], whose lists are read, of a table and of a range of its rows; on the current stream.
        What it gave before is of no use then.
    lists
        Of each row: columns of what `read` makes, and parts.

    Attributes
    ----------
    rooms
        One, or two.
    """

    def __init__(self, device: Device, graph: GraphArrays, memory: int, read: ReadRows, lists: Lists):
        self._device, self._graph, self._read, self._lists = device, graph, read, lists
        self._turn = 0
        self._ahead: _Ahead | None = None
        self._before: Any = None  # the event of the kernels before the present piece
        self._filled: Any = None  # the event of the last copies
        if memory < LEAST_BY_TURNS:
            self.capacities = [Staging(device, graph, memory)]
            return
        self.capacities = [Staging(device, graph, memory // 2, beside=True) for _ in range(2)]
        self._kernels = device.xp.cuda.get_current_stream()
        self._copies = device.copies

    def bring(self, table: Array, first: int, last: int) -> RowLists:
        """Return where the lists of a table's rows from `first` on are, of as many as there is room for.

        What the call before returned is not true any more. Kernels that are launched from now on find the lists there.
        """
        assert self._graph.pages is not None
        if len(self.capacities) == 1:
            return self.capacities[0].bring(self._read(table, first, last), self._lists)
        self._before = self._kernels.record()
        ahead, self._ahead = self._ahead, None
        self._turn = 1 - self._turn
        if ahead is not None and self._fits(ahead, table, first, last):
            lists = ahead.lists
        else:
            lists = self._gather(table, first, last)
        self._kernels.wait_event(self._filled)
        self._graph.pages.settle()
        return lists

    def bring_ahead(self, table: Array, first: int, last: int) -> None:
        """Begin to bring the lists of rows of which `bring` will be asked next, while kernels read those it gave last.

        To be called once the first of these kernels are launched: the host waits for a look at the rows. Nothing
        happens where there is one room alone, or no memory.
        """
        if len(self.capacities) == 1 or first >= last:
            return
        assert self._graph.pages is not None
        self._turn = 1 - self._turn
        try:
            with suppress(MemoryError):  # `bring` raises it, if there is no more by then
                lists = self._gather(table, first, last)
                self._ahead = _Ahead(table, first, lists, self._graph.pages.places)
        finally:
            self._turn = 1 - self._turn

    def _gather(self, table: Array, first: int, last: int) -> RowLists:
        """Begin to fill the room whose turn it is, beside the kernels of the present piece."""
        # What was launched before the present piece may still read this room.
        self._copies.wait_event(self._before)
        try:
            with self._copies:
                rows = self._read(table, first, last)
                return self.capacities[self._turn].gather(rows, self._lists, self.capacities[1 - self._turn])
        finally:
            self._filled = self._copies.record()

    def _fits(self, ahead: _Ahead, table: Array, first: int, last: int) -> bool:
        """Return whether what was brought ahead is of these rows, and no copies of pages have moved since."""
        assert self._graph.pages is not None
        same = ahead.table is table and ahead.first == first and ahead.places is self._graph.pages.places
        return same and ahead.lists.rows <= last - first

    def __del__(self) -> None:
        # The memory goes to kernels that are launched later: copies that were begun must end before.
        if self._filled is not None:
            with suppress(Exception):  # the device is lost, or the process ends
                self._kernels.wait_event(self._filled)
