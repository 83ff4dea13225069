"""Extension by edges on the device: workspace, and launches of ``edge_extension.cu``."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from longwall.kernels.cuda.device import THREADS, WARP, Device
from longwall.kernels.cuda.runtime.constants import EDGE_SEGMENT
from longwall.kernels.cuda.runtime.staging.by_turns import StagingByTurns
from longwall.kernels.cuda.runtime.staging.staging import RowLists, places
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import NeighbourRange, RowReads
from longwall.kernels.interface.search import Cut

Array = Any  # a CuPy array

_STAGING_SHARE = 2  # the part of the memory that lists from the host have, at least
_MOST_LISTS = 1 << 31  # kernels number them in 32 bits
_MOST_CUTS = 64  # at once


class _Counted(NamedTuple):
    """Which of the rows were counted, from `first` on, where their lists are, and where copies of pages were then."""

    columns: Array
    first: int
    rows: Array
    lists: RowLists | None
    places: Array


class CudaEdgeExtender:
    """Workspace for rows of edges; see :class:`longwall.kernels.interface.search.EdgeExtender`.

    Attributes
    ----------
    staging
        What brings lists to the device, those of the next rows while new edges are written; None where they are read
        where they are.
    """

    workspace_bytes = 0

    def __init__(self, device: Device, graph: GraphArrays, levels: int, rows: int, memory: int):
        xp = device.xp
        self._device, self._graph, self._ends = device, graph, 2 * levels
        staged = graph.pages is not None and graph.pages.staged
        share = memory - memory // _STAGING_SHARE if staged else memory
        # Of a row's list: its end in the output, what is left out of it, and its vertex.
        row_bytes = self._ends * (8 + 4 * (self._ends - 1) + 4)
        self._most = max(min(share // row_bytes, rows, _MOST_LISTS // self._ends), 1)
        lists = self._most * self._ends
        self._list_ends = xp.empty(lists, np.int64)
        self._left_out = xp.empty(lists * (self._ends - 1), np.uint32)
        self._found_cuts = xp.empty((_MOST_CUTS, 3), np.int64)
        self._cuts: dict[tuple[int, int], Cut] = {}  # by the first row and the capacity
        self.staging: StagingByTurns | None = None
        if staged:
            # Not a method: who refers to each other, is not freed at once.
            read = partial(_split_ends, device, xp.empty(lists, np.uint32), self._ends)
            parts = [(end, NeighbourRange.ALL) for end in range(self._ends)]
            self.staging = StagingByTurns(device, graph, memory - self._most * row_bytes, read, parts)
        self._counted: _Counted | None = None

    def reads(self, columns: Array) -> list[RowReads]:
        """Return what extending rows reads of the adjacency."""
        xp = self._device.xp
        vertices, found = xp.empty(columns.size * 2, np.uint32), xp.zeros(1, np.uint64)
        self._launch("collect_vertices", vertices.size, (*_place(columns), self._ends, vertices, found))
        self._device.synchronize()  # as in launch.exact
        return [RowReads(vertices[: int(found.get()[0])], NeighbourRange.ALL)]

    def count(self, columns: Array, first: int, last: int) -> None:
        """Count the new edges of rows."""
        graph, staging = self._graph, self.staging
        rows = columns[:, first : min(last, first + self._most)]
        lists = None if staging is None else staging.bring(columns, first, first + rows.shape[1])
        if lists is not None:
            rows = rows[:, : lists.rows]
        number = rows.shape[1] * self._ends
        sizes = self._list_ends[:number]
        self._launch(
            "count_edges",
            number,
            (
                graph.indptr,
                graph.indices,
                *_place(rows),
                self._ends,
                *places(lists),
                rows.shape[1],
                sizes,
                self._left_out,
            ),
        )
        self._device.xp.cumsum(sizes, out=sizes)
        self._counted = _Counted(columns, first, rows, lists, self._places())
        self._cuts.clear()
        if staging is not None:  # as many rows as this time, at most
            following = first + rows.shape[1]
            staging.bring_ahead(columns, following, min(following + min(last - first, self._most), columns.shape[1]))

    def is_counted(self, columns: Array, row: int) -> bool:
        """Whether a row's new edges are counted, and its lists are where they were then."""
        known = self._counted
        if known is None or known.columns is not columns or known.places is not self._places():
            return False
        return known.first <= row < known.first + int(known.rows.shape[1])

    def cut(self, first: int, capacity: int) -> Cut:
        """Find how many of the counted rows fit a number of new edges."""
        if (first, capacity) not in self._cuts:
            self._cut_all(first, capacity)
        return self._cuts[first, capacity]

    def _cut_all(self, first: int, capacity: int) -> None:
        """Cut many times at once: to ask the device takes longer than to cut."""
        known = self._known()
        self._device.launch(
            "search/edge_extension.cu",
            "cut_rows",
            (
                self._list_ends,
                self._ends,
                known.rows.shape[1],
                first - known.first,
                capacity,
                _MOST_CUTS,
                self._found_cuts,
            ),
            blocks=1,
            threads=THREADS,
        )
        # As in launch.exact, but for lists that are still on their way.
        self._device.xp.cuda.get_current_stream().synchronize()
        self._cuts.clear()
        for last, number, all_grow in self._found_cuts.get().tolist():
            self._cuts[first, capacity] = Cut(known.first + last, number, bool(all_grow))
            first = known.first + last
            if last == known.rows.shape[1]:
                break

    def new_edges(self, first: int, cut: Cut) -> tuple[Array, Array]:
        """Return the new edges of counted rows."""
        xp, graph = self._device.xp, self._graph
        _, offset, rows, lists, _ = self._known()
        # First what is long: the pool gives it the memory of edges before, which what is short would cut up.
        edges = xp.empty(cut.number, np.int64)
        offsets = xp.empty(cut.last - first + 1, np.int64)
        codes, stride, _ = _place(rows)
        begins, _ = places(lists)
        known = (graph.indptr, graph.indices, codes, stride, self._ends, begins)
        work = (rows.shape[1], self._list_ends, self._left_out, first - offset, cut.last - offset, offsets, edges)
        self._launch(
            "write_edges",
            max(-(-cut.number // EDGE_SEGMENT) * WARP, offsets.size),
            (*known, *work),
        )
        return offsets, edges

    def _known(self) -> "_Counted":
        assert self._counted is not None
        return self._counted

    def _places(self) -> Array:
        return None if self._graph.pages is None else self._graph.pages.places

    def _launch(self, function: str, threads: int, arguments: tuple[Any, ...]) -> None:
        self._device.launch_over("search/edge_extension.cu", function, threads, arguments)


def _place(columns: Array) -> tuple[Array, int, int]:
    """Arguments of kernels for rows: where they are, how far apart their columns are, and their number."""
    return columns, columns.strides[0] // columns.itemsize, columns.shape[1]


def _split_ends(device: Device, capacity: Array, number: int, columns: Array, first: int, last: int) -> Array:
    """Return the ends of rows, `number` of each, in columns of their own: in a buffer with the capacity for them."""
    rows = columns[:, first:last]
    ends = capacity[: rows.shape[1] * number].reshape(number, rows.shape[1])
    device.launch_over("search/edge_extension.cu", "split_ends", ends.size, (*_place(rows), number, ends))
    return ends
