"""Bitmap tables of many vertices of a whole graph, made at once; launches of ``clique_rows.cu``."""

from typing import Any

from longwall.kernels.cuda.local_counts.arc_triangles import arc_tasks
from longwall.kernels.cuda.runtime.launch import THREADS, WARP, Device
from longwall.kernels.interface.cliques.tables import WORD_BYTES, longest_table
from longwall.kernels.interface.graph_arrays import GraphArrays

Array = Any  # a CuPy array

Tables = tuple[Array, Array, int]  # their words, where each ends, and the first vertex that has one

# Of the memory: for tables, and for where each ends; what is left lists the tasks of blocks.
_WORDS_SHARE, _ENDS_SHARE = 5 / 8, 1 / 8
_END_BYTES = 8
_FROM = 1 << 21  # arcs of a graph that is worth the launches
_WARPS, _BLOCKS = 8, 8  # of a block; per multiprocessor


def measure_tables(device: Device, graph: GraphArrays, low: int, high: int, least: int) -> Array:
    """Return where the tables of the vertices `low` to `high` - 1 end, in words: int64[high - low].

    Those of fewer than `least` out-neighbours have none.
    """
    ends = device.xp.empty(high - low, device.xp.int64)
    write_ends(device, graph, low, high, least, ends)
    return ends


def write_ends(device: Device, graph: GraphArrays, low: int, high: int, least: int, ends: Array) -> None:
    """Write them; see `measure_tables`."""
    device.launch(
        "clique_rows.cu",
        "measure_tables",
        (graph.indptr, graph.split, low, high, least, ends),
        blocks=device.multiprocessors * _BLOCKS,
        threads=_WARPS * WARP,
    )
    device.xp.cumsum(ends, out=ends)


class TablesAhead:
    """The tables of as many vertices in a row as there is room for, which ranges of arcs find there.

    Each row is made from its own vertex: the lists of larger ones are looked up among its out-neighbours, as far as it.
    In the lists of R-MAT 22 there are four times as many entries to look up from the other end.

    Parameters
    ----------
    device
        The device.
    graph
        A whole graph that is on it.
    least
        Vertices of fewer out-neighbours have no table.
    memory
        Bytes that the tables may take, with what lists the tasks of blocks.
    """

    def __init__(self, device: Device, graph: GraphArrays, least: int, memory: int):
        self._device, self._graph, self._least = device, graph, least
        self._room = int(_WORDS_SHARE * memory) // WORD_BYTES
        self._most = int(_ENDS_SHARE * memory) // _END_BYTES
        self._words = self._ends = device.xp.empty(0, device.xp.uint32)
        self._first = self._last = 0

    @classmethod
    def fitting(cls, device: Device, graph: GraphArrays, least: int, memory: int) -> "TablesAhead | None":
        """Return such tables, or None where they are not worth it or have no room."""
        if graph.pages is not None or graph.oriented or graph.num_arcs < _FROM:
            return None
        made = cls(device, graph, least, memory)
        return made if made._most and longest_table(graph.max_out_degree) <= made._room else None

    def of(self, vertex: int) -> tuple[Tables, int]:
        """Return tables that a vertex has one of, and the first vertex after it that has none there."""
        if not self._first <= vertex < self._last:
            self._make(vertex)
        return (self._words, self._ends, self._first), self._last

    def _make(self, first: int) -> None:
        device, graph, xp = self._device, self._graph, self._device.xp
        self._ends, self._last = None, 0
        high = min(first + self._most, graph.num_vertices)
        self._ends = measure_tables(device, graph, first, high, self._least)
        number = int(xp.searchsorted(self._ends, self._room, side="right"))
        size, last = int(self._ends[number - 1]), first + number
        if size > self._words.size:
            self._words = None  # its memory first
            self._words = xp.empty(size if last == graph.num_vertices else self._room, xp.uint32)
        # Rows of vertices without out-neighbours are written by no one.
        self._words[:size] = 0
        tasks = arc_tasks(device, graph, graph.num_arcs)
        device.launch(
            "clique_rows.cu",
            "make_rows_of_larger",
            (
                *(graph.indptr, graph.indices, graph.split, graph.num_vertices),
                *(self._words, self._ends, first, last, self._least),
                *(tasks.size, tasks.words, xp.zeros(1, xp.uint32), device.stop_flag),
            ),
            blocks=tasks.blocks,
            threads=THREADS,
            shared=tasks.shared,
        )
        self._first, self._last = first, last
