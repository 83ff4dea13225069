"""Bitmap tables of many vertices, made at once; launches of ``clique_rows.cu``."""

from typing import Any

from longwall.kernels.cuda.in_arcs import InArcs, LargerArcs
from longwall.kernels.cuda.runtime.launch import THREADS, Device
from longwall.kernels.cuda.runtime.page_buffer import places_of
from longwall.kernels.interface.cliques.tables import WORD_BYTES, longest_table
from longwall.kernels.interface.graph_arrays import GraphArrays

Array = Any  # a CuPy array

Tables = tuple[Array, Array, int]  # their words, where each ends, and the first vertex that has one

# Of the memory: for tables, where each ends, and arcs from their smaller ends; what is left lists the tasks of blocks.
_WORDS_SHARE, _ENDS_SHARE, _ARCS_SHARE = 5 / 8, 1 / 8, 1 / 8
_END_BYTES = 8
_FROM = 1 << 20  # arcs of a graph that is worth the launches
_LONG = 32  # out-neighbours of a vertex that are worth them
_BLOCKS = 8  # per multiprocessor


def measure_tables(device: Device, graph: GraphArrays, first: int, last: int, least: int, ends: Array) -> None:
    """Write where the tables of the vertices `first` to `last` - 1 end, in words: int64[last - first].

    Those of fewer than `least` out-neighbours have none.
    """
    device.launch(
        "clique_rows.cu",
        "measure_tables",
        (graph.indptr, graph.split, first, last, least, ends),
        blocks=device.multiprocessors * _BLOCKS,
        threads=THREADS,
    )
    device.xp.cumsum(ends, out=ends)


def make_rows(
    device: Device, graph: GraphArrays, larger: LargerArcs, between: tuple[int, int], tables: Tables, least: int
) -> None:
    """Make rows of tables that hold zeros, from their own vertices: lists of larger ones are looked up as far as these.

    Parameters
    ----------
    device, graph, tables, least
        See `measure_tables`.
    larger
        The arcs between the vertices of the rows and those of the tables.
    between
        The first vertex that has a table, and one past the last; zeros: all that the arcs lead to have.
    """
    tasks = larger.tasks(device, graph)
    rows = (graph.indptr, graph.indices, graph.split, places_of(graph))
    work = (tasks.size, tasks.words, device.xp.zeros(1, device.xp.uint32), device.stop_flag)
    device.launch(
        "clique_rows.cu",
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
        self._room = int(_WORDS_SHARE * memory) // WORD_BYTES
        self._most = int(_ENDS_SHARE * memory) // _END_BYTES
        self._in_arcs = InArcs(device, graph, int(_ARCS_SHARE * memory), least) if graph.oriented else None
        self._words = self._ends = device.xp.empty(0, device.xp.uint32)
        self._first = self._last = 0

    @classmethod
    def fitting(cls, device: Device, graph: GraphArrays, least: int, memory: int) -> "TablesAhead | None":
        """Return such tables, or None where they are not worth it or have no room."""
        arcs = graph.num_arcs * (2 if graph.oriented else 1)
        if graph.pages is not None or arcs < _FROM or graph.max_out_degree <= _LONG:
            return None
        fits = longest_table(graph.max_out_degree) <= int(_WORDS_SHARE * memory) // WORD_BYTES
        return cls(device, graph, least, memory) if fits and _ENDS_SHARE * memory >= _END_BYTES else None

    def of(self, vertex: int) -> tuple[Tables, int]:
        """Return tables that a vertex has one of, and the first vertex after it that has none there."""
        if not self._first <= vertex < self._last:
            self._make(vertex)
        return (self._words, self._ends, self._first), self._last

    def _make(self, first: int) -> None:
        device, graph, xp = self._device, self._graph, self._device.xp
        self._ends, self._last = None, 0
        high = min(first + self._most, graph.num_vertices)
        self._ends = xp.empty(high - first, xp.int64)
        measure_tables(device, graph, first, high, self._least, self._ends)
        number = int(xp.searchsorted(self._ends, self._room, side="right"))
        size, last = int(self._ends[number - 1]), first + number
        if size > self._words.size:
            self._words = None  # its memory first
            self._words = xp.empty(size if last == graph.num_vertices else self._room, xp.uint32)
        self._words[:size] = 0
        tables = (self._words, self._ends, first)
        if self._in_arcs is None:
            beyond = last if last < graph.num_vertices else 0
            make_rows(device, graph, LargerArcs.of_whole(graph), (first, beyond), tables, self._least)
        else:
            for arcs in self._in_arcs.parts(int(graph.indptr[first]), int(graph.indptr[last]), None):
                make_rows(device, graph, arcs, (0, 0), tables, self._least)
        self._first, self._last = first, last
