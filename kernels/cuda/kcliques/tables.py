"""Cliques of arcs whose lists are streamed to the device: tables in its memory; launches of ``tables.cu``."""

from collections.abc import Iterable

from longwall.kernels.cuda.device import Device, fetch_sum
from longwall.kernels.cuda.kcliques.bitmaps import CudaCliqueCounter
from longwall.kernels.cuda.kcliques.tables_ahead import Tables, make_rows, place_tables
from longwall.kernels.cuda.local_counts.owners import owners_of
from longwall.kernels.cuda.local_counts.reverse_adjacency import ReverseAdjacency
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.kcliques import WORD_BYTES, TablePiece, table_words
from longwall.kernels.interface.workspaces import Targets

# Of the memory, for arcs from their smaller ends: of a graph in pages, which says how many there are; of another one.
_PAGED_REVERSE_SHARE, _ARCS_SHARE = 1 / 6, 1 / 3


class CudaTabledCliqueCounter(CudaCliqueCounter):
    """Makes all tables of a range of vertices before it counts in them; k >= 4, and the graph is oriented.

    Attributes
    ----------
    table_room
        Words that the tables of one range may take.
    least_degree
        Vertices of fewer out-neighbours have none.
    """

    def __init__(self, device: Device, graph: GraphArrays, k: int, memory: int):
        super().__init__(device, graph, k, memory, tabled=True)
        self.least_degree = k - 1
        left = max(memory - self._store.nbytes, 0)
        share = _ARCS_SHARE if graph.pages is None else _PAGED_REVERSE_SHARE
        self._reverse = ReverseAdjacency(device, graph, int(share * left), self.least_degree)
        self.table_capacity = max(left - self._reverse.nbytes, 0) // (2 * WORD_BYTES) * 2
        longest = table_words(graph.max_out_degree, self.least_degree)
        if longest > self.table_capacity:
            raise WorkspaceTooLarge(WORD_BYTES * longest)
        self._memory = device.xp.empty(self.table_capacity // 2, device.xp.uint64)

    def count(self, first: int, last: int, targets: Iterable[Targets | None] = (None,)) -> int:
        """Count the cliques of a range of arcs, while the lists of the vertices that they lead to come in turn."""
        starts = self._graph.indptr
        low, high = owners_of(self._device, self._graph, first, last)
        owned = int(starts[low]), int(starts[high])
        return self.count_pieces([TablePiece((first, last), (low, high), owned, targets)])

    def count_pieces(self, pieces: Iterable[TablePiece]) -> int:
        """Count the cliques of ranges of arcs, while lists are streamed: the host does not wait for their kernels."""
        result = self._device.result()
        ready: tuple[int, int, Tables] | None = None  # arcs, and their tables, of the piece before
        for piece in pieces:
            high = piece.vertices[1]
            for number, some in enumerate(piece.targets):
                if not number:  # the lists of this piece are copied while the cliques of the one before are counted
                    if ready is not None:
                        self._start(*ready, result)
                    tables = self._place(*piece.vertices)
                    ready = *piece.arcs, tables
                for arcs in self._reverse.parts(*piece.owned, some or (0, high), piece.parts[number + 1 :]):
                    make_rows(self._device, self._graph, arcs, (0, 0), tables, self.least_degree)
        if ready is not None:
            self._start(*ready, result)
        return fetch_sum(result)

    def _place(self, low: int, high: int) -> Tables:
        """Clear the memory, and place the tables of the vertices `low` to `high` - 1 in it."""
        xp = self._device.xp
        self._memory.fill(0)
        starts, words = self._memory[: high - low].view(xp.int64), self._memory[high - low :].view(xp.uint32)
        place_tables(self._device, self._graph, low, high, self.least_degree, starts)
        return words, starts, low
