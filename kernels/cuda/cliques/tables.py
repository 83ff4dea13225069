"""Cliques of arcs whose lists come to the device in turn: tables in its memory; launches of ``clique_rows.cu``."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from longwall.kernels.cuda.cliques.bitmaps import CudaCliqueCounter
from longwall.kernels.cuda.cliques.tables_ahead import write_ends
from longwall.kernels.cuda.runtime.launch import WARP, Device, sum_of_parts
from longwall.kernels.cuda.runtime.page_buffer import places_of
from longwall.kernels.cuda.triangles import WARPS
from longwall.kernels.interface.cliques.tables import WORD_BYTES, table_words
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.workspaces import Targets

Array = Any  # a CuPy array


def tabled_clique_counter(device: Device, graph: GraphArrays, k: int, memory: int) -> "CudaTabledCliqueCounter":
    """Make a counter of k-cliques whose lists come in turn; see :class:`longwall.kernels.interface.kernels.Kernels`."""
    return CudaTabledCliqueCounter(device, graph, k, memory)


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
        self.table_room = max(memory - self._store.nbytes, 0) // (2 * WORD_BYTES) * 2
        longest = int(table_words(np.array([graph.max_out_degree]), self.least_degree)[0])
        if longest > self.table_room:
            raise WorkspaceTooLarge(WORD_BYTES * longest)
        self._memory = device.xp.empty(self.table_room // 2, device.xp.uint64)

    def count(self, first: int, last: int, targets: Iterable[Targets | None] = (None,)) -> int:
        """Count the cliques of a range of arcs, while the lists of the vertices that they lead to come in turn."""
        graph, xp = self._graph, self._device.xp
        low = int(xp.searchsorted(graph.indptr, first, side="right")) - 1
        high = int(xp.searchsorted(graph.indptr, last, side="left"))
        ends, words = self._memory[: high - low].view(xp.int64), self._memory[high - low :].view(xp.uint32)
        write_ends(self._device, graph, low, high, self.least_degree, ends)
        tables = (words, ends, low)
        width = (graph.max_out_degree + 31) // 32
        for start, beyond in (part or (0, graph.num_vertices) for part in targets):
            arrays = (graph.indptr, graph.indices, graph.split, places_of(graph))
            done = xp.zeros(1, xp.uint64)
            self._launch(
                "make_rows",
                (*arrays, *tables, high, start, beyond, width, done, self._device.stop_flag),
                shared=4 * WARPS * width,
            )
        result = self._device.result()
        self._start(first, last, tables, result)
        return sum_of_parts(result)

    def _launch(self, function: str, arguments: tuple[Any, ...], shared: int = 0) -> None:
        device = self._device
        blocks = device.multiprocessors * 8
        device.launch("clique_rows.cu", function, arguments, blocks=blocks, threads=WARPS * WARP, shared=shared)
