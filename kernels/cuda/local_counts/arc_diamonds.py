"""Diamonds on the device: triangles of arcs, and pairs of them; launches of ``arc_diamonds.cu``."""

from collections.abc import Iterable
from typing import Any

from longwall.kernels.cuda.local_counts.in_arcs import InArcs, LargerArcs
from longwall.kernels.cuda.runtime.launch import THREADS, Device, sum_of_parts
from longwall.kernels.cuda.runtime.page_buffer import places_of
from longwall.kernels.cuda.triangles import MOST_HITS
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import ArcBlock, Corner

Array = Any  # a CuPy array

_COUNT_BYTES = 4
_IN_ARCS_SHARE = 1 / 8  # of the memory


def arc_diamond_counter(device: Device, graph: GraphArrays, memory: int) -> "CudaArcDiamondCounter":
    """Make a counter of diamonds; see :class:`longwall.kernels.interface.kernels.Kernels`."""
    return CudaArcDiamondCounter(device, graph, memory)


class CudaArcDiamondCounter:
    """Triangles of the arcs of a range.

    Attributes
    ----------
    arc_room
        The most arcs of a range.
    """

    workspace_bytes = 0

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        self._device, self._graph = device, graph
        whole = not graph.oriented and graph.pages is None
        if (needed := HalfArcs.most_bytes(graph)) >= memory:
            raise WorkspaceTooLarge(needed + _COUNT_BYTES)
        self._half = HalfArcs(device, graph)
        self._in_arcs = None if whole else InArcs(device, graph, int(_IN_ARCS_SHARE * memory), least=2)
        memory -= self._half.nbytes + (0 if self._in_arcs is None else self._in_arcs.nbytes)
        most = max(self._half.number, 1)
        room = min(memory // _COUNT_BYTES, most)
        if room < 1:
            raise WorkspaceTooLarge(_COUNT_BYTES)
        self.arc_room = max(graph.num_arcs, 1) if room == most else room
        self._counts = device.xp.empty(room, device.xp.uint32)

    def count(self, first: int, last: int, blocks: Iterable[ArcBlock] | None = None) -> int:
        """Count the pairs of triangles at a range of arcs, while lists come in turn; None: all are there."""
        low, begin = self._half.place(first)
        high, end = self._half.place(last)
        if begin >= end:
            for _ in blocks or ():
                pass
            return 0
        counts = self._counts[: end - begin]
        counts.fill(0)
        out = (counts, self._half.starts, begin, end - begin)
        if self._in_arcs is None:
            self._add(LargerArcs.of_whole(self._device, self._graph), low, out, Corner.ANY)
        else:
            for block in blocks or self._all(low, min(high + 1, self._graph.num_vertices)):
                self._add_block(self._in_arcs, block, out)
        parts = self._device.xp.zeros(2, self._device.xp.uint64)
        self._device.launch_over("arc_diamonds.cu", "add_pairs", counts.size, (counts, counts.size, parts))
        return sum_of_parts(parts)

    def _all(self, low: int, high: int) -> list[ArcBlock]:
        """Return what has triangles at the arcs of the vertices `low` to `high` - 1."""
        graph = self._graph
        own = int(graph.indptr[low]), int(graph.indptr[high])
        return [(*own, None, Corner.LARGEST), (own[0], graph.num_arcs, (low, high), Corner.SMALLER)]

    def _add_block(self, in_arcs: InArcs, block: ArcBlock, out: tuple[Array, Array, int, int]) -> None:
        first, last, targets, corner = block
        for arcs in in_arcs.parts(first, last, targets):
            self._add(arcs, 0, out, corner)

    def _add(self, arcs: LargerArcs, low: int, out: tuple[Array, Array, int, int], corner: Corner) -> None:
        """Add the triangles of arcs to larger vertices, from `low` on, to those of the range."""
        device, graph = self._device, self._graph
        hits = min(graph.max_out_degree, MOST_HITS)
        tasks = arcs.tasks(device, graph, 2)
        rows = (graph.indptr, graph.indices, graph.split, places_of(graph))
        work = (tasks.size, tasks.words, hits, arcs.next, device.stop_flag)
        device.launch(
            "arc_diamonds.cu",
            "add_triangles",
            (*rows, *arcs.arguments, low, *work, *out, int(Corner.LARGEST in corner), int(Corner.SMALLER in corner)),
            blocks=tasks.blocks,
            threads=THREADS,
            shared=tasks.shared + 4 * hits,
        )


class HalfArcs:
    """The places of the arcs to smaller neighbours, where these alone are counted.

    Attributes
    ----------
    starts : int64[n + 1]
        Where those of each vertex begin.
    number
        How many there are.
    nbytes
        Bytes of the device that they take.
    """

    def __init__(self, device: Device, graph: GraphArrays):
        self._xp, self._graph = device.xp, graph
        self.starts, self.nbytes = graph.indptr, 0
        if not graph.oriented:
            self.starts = self._xp.zeros(graph.num_vertices + 1, self._xp.int64)
            self._xp.subtract(graph.split, graph.indptr[:-1], out=self.starts[1:])
            self._xp.cumsum(self.starts, out=self.starts)
            self.nbytes = int(self.starts.nbytes)
        self.number = int(self.starts[-1])

    @staticmethod
    def most_bytes(graph: GraphArrays) -> int:
        """Return the bytes that making them takes: CuPy adds up in an array of its own."""
        return 0 if graph.oriented else 2 * 8 * (graph.num_vertices + 1)

    def place(self, arc: int) -> tuple[int, int]:
        """Return the vertex of an arc of the graph, and where the arc, or the next that is counted, is among these."""
        graph = self._graph
        if arc >= graph.num_arcs:
            return graph.num_vertices, self.number
        vertex = int(self._xp.searchsorted(graph.indptr, arc, side="right")) - 1
        begin, end = int(graph.indptr[vertex]), int(graph.split[vertex])
        return vertex, int(self.starts[vertex]) + min(arc, end) - begin
