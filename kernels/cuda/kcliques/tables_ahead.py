"""Bitmap tables of many vertices, made at once; launches of ``tables.cu``."""

from typing import Any

from longwall.kernels.cuda.device import THREADS, Device, fetch
from longwall.kernels.cuda.local_counts.owners import owners_of
from longwall.kernels.cuda.local_counts.reverse_adjacency import LargerArcs, ReverseAdjacency
from longwall.kernels.cuda.runtime.page_buffer import places_of
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.kcliques import WORD_BYTES, longest_table

Array = Any  # a CuPy array

Tables = tuple[Array, Array, int]  # their words, where each begins, and the first vertex that has one

# Shares of the memory: for tables, where each begins, and the reverse adjacency, or more tables if the graph has that;
# the rest lists the tasks of blocks.
_WORDS_SHARE, _STARTS_SHARE, _ARCS_SHARE = 5 / 8, 1 / 8, 1 / 8
_START_BYTES = 8
_SUMS = 512  # sums of the words of tables, which the host fetches at once
_FROM = 1 << 20  # arcs of a graph that is worth the launches
_LONG = 32  # out-neighbours of a vertex that are worth them
_GROWTH = 4  # of the arcs whose tables are made at once
_BLOCKS = 8  # per multiprocessor


def place_tables(device: Device, graph: GraphArrays, first: int, last: int, least: int, starts: Array) -> None:
    """Write where the tables of the vertices `first` to `last` - 1 begin, in words: int64[last - first].

    They are one behind the other, in no order. Vertices of fewer than `least` out-neighbours have none.
    """
    _launch(device, "place_tables", (graph.indptr, graph.split, first, last, least, starts, device.counters()))


def _launch(device: Device, function: str, arguments: tuple[Any, ...]) -> None:
    blocks = device.multiprocessors * _BLOCKS
    device.launch("kcliques/tables.cu", function, arguments, blocks=blocks, threads=THREADS)


def make_rows(
    device: Device, graph: GraphArrays, larger: LargerArcs, between: tuple[int, int], tables: Tables, least: int
) -> None:
    """Make rows of tables that hold zeros, from their own vertices: lists of larger ones are looked up as far as these.

    Parameters
    ----------
    device, graph, least
        See `place_tables`.
    tables
        Their words, where each begins, and the first vertex that has one.
    larger
        The arcs between the vertices of the rows and those of the tables.
    between
        The first vertex that has a table, and one past the last; zeros: all that the arcs lead to have.
    """
    tasks = larger.tasks(device, graph)
    rows = (*graph.rows, places_of(graph))
    work = (tasks.size, tasks.words, larger.next, device.stop_flag)
    device.launch(
        "kcliques/tables.cu",
        "make_rows",
        (*rows, *larger.arguments, *between, *tables, least, *work),
        blocks=tasks.blocks,
        threads=THREADS,
        shared=tasks.shared,
    )


class TablesAhead:
    """The tables of as many vertices in a row as there is room for, which ranges of arcs find there.

    Parameters
    ----------
    device
        The device.
    graph
        A graph that is on it, not in pages.
    least
        Vertices of fewer out-neighbours have no table.
    memory
        Bytes that the tables may take, with what lists the tasks of blocks.
    """

    def __init__(self, device: Device, graph: GraphArrays, least: int, memory: int):
        self._device, self._graph, self._least = device, graph, least
        self._capacity = int((_WORDS_SHARE + (0 if graph.oriented else _ARCS_SHARE)) * memory) // WORD_BYTES
        self._most = int(_STARTS_SHARE * memory) // _START_BYTES
        self._reverse = ReverseAdjacency(device, graph, int(_ARCS_SHARE * memory), least) if graph.oriented else None
        self._words = self._starts = device.xp.empty(0, device.xp.uint32)
        self._first = self._last = self._arcs = 0

    @classmethod
    def fitting(cls, device: Device, graph: GraphArrays, least: int, memory: int) -> "TablesAhead | None":
        """Return such tables, or None where they are not worth it or have no room."""
        arcs = graph.num_arcs * (2 if graph.oriented else 1)
        if graph.pages is not None or arcs < _FROM or graph.max_out_degree <= _LONG:
            return None
        fits = longest_table(graph.max_out_degree) <= int(_WORDS_SHARE * memory) // WORD_BYTES
        return cls(device, graph, least, memory) if fits and _STARTS_SHARE * memory >= _START_BYTES else None

    def of(self, vertex: int, last: int) -> tuple[Tables, int]:
        """Return tables that a vertex has one of, and the first vertex after it that has none there.

        Parameters
        ----------
        vertex
            The first whose table is wanted.
        last
            One past the last arc that is counted now. Tables are made beyond it where ranges follow one another, ever
            more of them: to make some takes a look at all arcs, and a worker may be made for a few ranges alone.
        """
        if not self._first <= vertex < self._last:
            self._make(vertex, last)
        return (self._words, self._starts, self._first), self._last

    def _make(self, first: int, last: int) -> None:
        device, graph, xp = self._device, self._graph, self._device.xp
        begin = int(graph.indptr[first])
        self._arcs = max(last - begin, _GROWTH * self._arcs if first == self._last else 0)
        self._first = self._last = 0  # until all are made
        _, high = owners_of(device, graph, begin, min(begin + self._arcs, graph.num_arcs))
        beyond, size = self._end_that_fits(first, min(high, first + self._most))
        self._starts = xp.empty(beyond - first, xp.int64)
        place_tables(device, graph, first, beyond, self._least, self._starts)
        if size > self._words.size:
            self._words = xp.empty(0, xp.uint32)  # its memory first
            self._words = xp.empty(size, xp.uint32)
        self._words[:size] = 0
        tables = (self._words, self._starts, first)
        if self._reverse is None:
            between = first, beyond if beyond < graph.num_vertices else 0
            make_rows(device, graph, LargerArcs.of_whole(device, graph), between, tables, self._least)
        else:
            for arcs in self._reverse.parts(begin, int(graph.indptr[beyond]), None):
                make_rows(device, graph, arcs, (0, 0), tables, self._least)
        self._first, self._last = first, beyond

    def _end_that_fits(self, first: int, high: int) -> tuple[int, int]:
        """Return the first vertex whose table has no room, at most `high`, and the words of the tables before it."""
        device, rows, size = self._device, (self._graph.indptr, self._graph.split), 0
        while first < high:
            step = -(-(high - first) // _SUMS)
            words = device.xp.empty(-(-(high - first) // step), device.xp.uint64)
            _launch(device, "measure_tables", (*rows, first, high, step, words.size, self._least, words))
            for some in fetch(words).tolist():
                if size + some > self._capacity:
                    break
                first, size = min(first + step, high), size + some
            high = first if step == 1 else min(first + step, high)
        return first, size
