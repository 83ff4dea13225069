"""Cliques of arcs whose lists are streamed: to an engine that works in host memory, all at once."""

from collections.abc import Iterable

from longwall.kernels.cpu.device import CpuDevice
from longwall.kernels.cpu.kcliques.bitmaps import clique_counter
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.kcliques import TablePiece
from longwall.kernels.interface.workspaces import Targets

_ALL = 1 << 62


class CpuTabledCliqueCounter:
    """Counts when all lists have come; tables are made vertex by vertex, so there is room for all of them."""

    table_capacity = _ALL

    def __init__(self, device: CpuDevice, graph: GraphArrays, k: int, memory: int):
        self._counter = clique_counter(device, graph, k, memory)
        self.workspace_bytes = self._counter.workspace_bytes
        self.least_degree = k - 1

    def count(self, first: int, last: int, targets: Iterable[Targets | None] = (None,)) -> int:
        """Count the cliques of a range of arcs, after the lists of the vertices that they lead to."""
        for _ in targets:
            pass
        return self._counter.count(first, last)

    def count_pieces(self, pieces: Iterable[TablePiece]) -> int:
        """Count the cliques of ranges of arcs."""
        return sum(self.count(*piece.arcs, piece.targets) for piece in pieces)
