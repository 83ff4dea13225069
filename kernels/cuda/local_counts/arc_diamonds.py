"""Diamonds on the device: triangles of arcs, and pairs of them; launches of ``arc_diamonds.cu``."""

from collections.abc import Iterable
from typing import Any

from longwall.kernels.cuda.device import THREADS, Device, fetch_sum
from longwall.kernels.cuda.local_counts.count_turns import PLACES, CountTurns
from longwall.kernels.cuda.local_counts.owners import owners_of
from longwall.kernels.cuda.local_counts.reverse_adjacency import LargerArcs, ReverseAdjacency
from longwall.kernels.cuda.local_counts.triangles import MOST_HITS
from longwall.kernels.cuda.runtime.page_buffer import places_of
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.local_counts import ArcBlock, ArcPiece, Corner

Array = Any  # a CuPy array

CountRange = tuple[Array, int, int]  # counts, the arc of the first of them, and their number

_COUNT_BYTES = 4  # of a count of 32 bits; one of 16 takes half
_PARTS = 8  # that the arcs of a piece have as many as, besides those whose counts come in turn
_REVERSE_SHARE = 1 / 6  # of the memory
_WIDE_SHARE = 1 / 32  # of the memory: the most that counts of 32 bits take beside those of 16
_NARROW_SHARE = 0.66  # of the memory for counts, for those of 16 bits: lists have the rest


class CudaArcDiamondCounter:
    """Triangles of the arcs of a range.

    Attributes
    ----------
    arc_capacity
        The most arcs of a range.
    piece_capacity, part_capacity, count_bytes
        See :class:`longwall.kernels.interface.local_counts.ArcDiamondCounter`.
    """

    workspace_bytes = 0

    def __init__(self, device: Device, graph: GraphArrays, memory: int):
        self._device, self._graph = device, graph
        whole = not graph.oriented and graph.pages is None
        if (needed := HalfArcs.most_bytes(graph)) >= memory:
            raise WorkspaceTooLarge(needed + _COUNT_BYTES)
        self._half = HalfArcs(device, graph)
        self._reverse = None if whole else ReverseAdjacency(device, graph, int(_REVERSE_SHARE * memory), least=2)
        memory -= self._half.nbytes + (0 if self._reverse is None else self._reverse.nbytes)
        wide, each = self._wide_arcs(memory), _COUNT_BYTES
        if narrow := wide is not None:
            memory, each = int(_NARROW_SHARE * (memory - _COUNT_BYTES * wide)), _COUNT_BYTES // 2
        self._wide = device.xp.zeros(wide or 0, device.xp.uint32)
        most = max(self._half.number, 1)
        capacity = min(memory // each, most if whole else 2 * most)
        if narrow:
            capacity -= capacity % 2
        if capacity < 1:
            raise WorkspaceTooLarge(_COUNT_BYTES)
        self.arc_capacity = max(graph.num_arcs, 1) if capacity >= most else capacity
        self._counts = device.xp.empty(capacity, device.xp.uint16 if narrow else device.xp.uint32)
        self.count_bytes = int(self._counts.dtype.itemsize)
        # Each place begins with a whole word, to which the kernel adds two counts of 16 bits.
        self.part_capacity = capacity // (PLACES + _PARTS) // 2 * 2
        self.piece_capacity = min(capacity - PLACES * self.part_capacity, most + most % 2)

    def count(self, first: int, last: int, blocks: Iterable[ArcBlock] | None = None) -> int:
        """Count the pairs of triangles at a range of arcs, while lists are streamed; None: all are there."""
        low, begin = self._half.place(first)
        high, end = self._half.place(last)
        if begin >= end:
            for _ in blocks or ():
                pass
            return 0
        counts, wide = self._counts[: end - begin], self._wide[begin:end]
        counts.fill(0)
        wide.fill(0)
        out, none = (counts, begin, end - begin), (counts, 0, 0)
        if self._reverse is None:
            self._add(LargerArcs.of_whole(self._device, self._graph), low, out, out)
        else:
            for first, last, targets, corner in blocks or self._all(low, min(high + 1, self._graph.num_vertices)):
                corners = out if Corner.LARGEST in corner else none, out if Corner.SMALLER in corner else none
                for arcs in self._reverse.parts(first, last, targets):
                    self._add(arcs, 0, *corners)
        parts = self._device.result()
        self._add_pairs(counts, parts)
        self._add_pairs(wide, parts)
        return fetch_sum(parts)

    def count_pieces(self, pieces: Iterable[ArcPiece]) -> int:
        """Count the pairs of triangles at all arcs, while lists are streamed, and with them counts of their arcs."""
        assert self._reverse is not None
        own, parts = self._counts[: self.piece_capacity], self._device.result()
        turns, sent = CountTurns(self._device, self._counts[self.piece_capacity :][: PLACES * self.part_capacity]), None
        self._wide.fill(0)
        try:
            for (begin, end), targets, ranges, final in pieces:
                if not final:
                    turns.make_room(begin, end)
                counts = own[: end - begin]
                piece = counts, begin, end - begin
                for number, (vertices, (first, last)) in enumerate(targets):
                    if not number:  # the piece's lists may come while the counts of the one before go
                        if sent is not None:
                            self._device.xp.cuda.get_current_stream().wait_event(sent)
                        counts.fill(0)
                    apart = first < begin
                    part = (turns.bring(first, last), first, last - first) if apart else piece
                    for arcs in self._reverse.parts(begin, end, vertices, ranges[number + 1 :]):
                        self._add(arcs, 0, piece, part)
                    if apart and final:
                        self._add_pairs(part[0], parts)
                        turns.leave()
                    elif apart:
                        turns.send_back()
                if final:
                    self._add_pairs(counts, parts)
                else:
                    sent = turns.send(counts, begin)
            self._add_pairs(self._wide, parts)
            return fetch_sum(parts)
        finally:
            turns.close()

    def _all(self, low: int, high: int) -> list[ArcBlock]:
        """Return what has triangles at the arcs of the vertices `low` to `high` - 1."""
        graph = self._graph
        own = int(graph.indptr[low]), int(graph.indptr[high])
        return [(*own, None, Corner.LARGEST), (own[0], graph.num_arcs, (low, high), Corner.SMALLER)]

    def _wide_arcs(self, memory: int) -> int | None:
        """Return how many arcs, from the first one on, have counts of 32 bits; None: all."""
        first = self._graph.narrow_from
        if self._reverse is None or first is None:
            return None
        arcs = int(self._half.starts[first])
        return arcs if _COUNT_BYTES * arcs <= _WIDE_SHARE * memory else None

    def _add_pairs(self, counts: Array, parts: Array) -> None:
        if counts.size:
            arguments = counts, counts.size, self._narrow(counts), parts
            self._device.launch_over("local_counts/arc_diamonds.cu", "add_pairs", counts.size, arguments)

    def _narrow(self, counts: Array) -> int:
        return int(counts.dtype == self._device.xp.uint16)

    def _add(self, arcs: LargerArcs, low: int, largest: CountRange, smaller: CountRange) -> None:
        """Add the triangles of arcs to larger vertices, from `low` on, to counts of arcs: of either corner."""
        device, graph = self._device, self._graph
        hits = min(graph.max_out_degree, MOST_HITS)
        tasks = arcs.tasks(device, graph, 2)
        rows = (*graph.rows, places_of(graph))
        work = (tasks.size, tasks.words, hits, arcs.next, device.stop_flag)
        wide = self._wide, self._wide.size, self._narrow(self._counts)
        device.launch(
            "local_counts/arc_diamonds.cu",
            "add_triangles",
            (*rows, *arcs.arguments, low, *work, self._half.starts, *largest, *smaller, *wide),
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
        self._device, self._graph = device, graph
        self.starts, self.nbytes = graph.indptr, 0
        if not graph.oriented:
            xp = device.xp
            self.starts = xp.zeros(graph.num_vertices + 1, xp.int64)
            xp.subtract(graph.split, graph.indptr[:-1], out=self.starts[1:])
            xp.cumsum(self.starts, out=self.starts)
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
        vertex, _ = owners_of(self._device, graph, arc, arc + 1)
        begin, end = int(graph.indptr[vertex]), int(graph.split[vertex])
        return vertex, int(self.starts[vertex]) + min(arc, end) - begin
