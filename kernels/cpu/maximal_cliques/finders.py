"""The workspaces of one worker that finds maximal cliques."""

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.device import CpuDevice, fitting
from longwall.kernels.cpu.maximal_cliques.narrow import (
    DEPTH,
    FILL,
    LEVELS,
    ROOT,
    ROWS,
    STATES,
    WIDE,
    Found,
    Narrow,
)
from longwall.kernels.cpu.maximal_cliques.search import WIDE_NUMBERS, Wide, find_cliques
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.maximal_cliques import COUNT, LIST, VERTICES, DegeneracyOrder
from longwall.kernels.interface.workspaces import NARROW

_EXACT_BELOW = 2.0**62


class _Search:
    """Bitmaps and stacks of one worker; `mode` and the sizes of the results are of a subclass."""

    def __init__(
        self,
        device: CpuDevice,
        graph: GraphArrays,
        order: DegeneracyOrder,
        memory: int,
        found: tuple[int, int],
        *,
        vertices: int = 0,
        capacity: int = 0,
    ):
        d, most = order.degeneracy, graph.max_degree
        wide = d if d > NARROW else 0
        words = (wide + 63) // 64
        levels = wide - NARROW + 2
        sizes = {
            "local": 4 * graph.num_vertices,
            "narrow": 8 * most + 8 * 8 * LEVELS + 12 * NARROW,
            "wide": wide * (5 + 8 * words) + 8 * order.wide_words + 4 * most + 24 * levels * (words + 2) if wide else 0,
            "found": 12 * (d + 2) + 24 * vertices + 12 * capacity,
        }
        self.workspace_bytes = fitting(sum(sizes.values()), memory)
        self._graph, self._order, self._stop_flag = graph, order, device.stop_flag
        self._local = np.zeros(graph.num_vertices, np.int32)
        self._narrow = Narrow(
            np.empty(NARROW, np.uint32),
            np.empty(NARROW, np.uint64),
            np.empty(most, np.uint64),
            np.empty((3, LEVELS), np.uint64),
            np.empty((5, LEVELS), np.int64),
        )
        self._wide = None
        if wide:
            self._wide = Wide(
                np.empty(wide, np.uint32),
                np.empty((wide, words), np.uint64),
                np.empty(order.wide_words, np.uint64),
                np.empty(most, np.int32),
                np.empty((3, levels, words), np.uint64),
                np.empty((WIDE_NUMBERS, levels), np.int64),
                np.empty(wide, np.uint8),
            )
        mode, min_size = found
        self._found = Found(
            mode,
            min_size,
            np.empty(d + 1, np.uint32),
            np.zeros(d + 2, np.int64),
            np.zeros(1),
            np.zeros((3, vertices), np.int64),
            np.zeros(capacity + 1 if capacity else 0, np.int64),
            np.empty(capacity, np.uint32),
        )
        self._state = np.full(STATES, -1, np.int64)

    def _begin(self, first: int) -> None:
        self._state[:] = 0
        self._state[ROOT] = first
        self._state[DEPTH] = self._state[WIDE] = -1

    def _find(self, last: int) -> None:
        graph, order = self._graph, self._order
        find_cliques(
            graph.indptr, graph.indices, order.rank, order.indptr, order.indices, last, self._local,
            self._narrow, self._wide, self._found, self._state, self._stop_flag,
        )  # fmt: skip
        if self._found.estimate[0] >= _EXACT_BELOW:
            raise OverflowError(f"about {self._found.estimate[0]:.3g} maximal cliques do not fit 64-bit integers")

    def add(self, first: int, last: int) -> None:
        """Add the maximal cliques whose earliest vertices are `first` to `last` - 1."""
        self._begin(first)
        self._find(last)


class CpuCliqueSizes(_Search):
    """Counts maximal cliques by size."""

    def __init__(self, device: CpuDevice, graph: GraphArrays, order: DegeneracyOrder, min_size: int, memory: int):
        super().__init__(device, graph, order, memory, (COUNT, min_size))

    def counts(self) -> NDArray[np.int64]:
        """Maximal cliques by size so far."""
        return self._found.sizes


class CpuCliqueVertices(_Search):
    """Counts maximal cliques per vertex."""

    def __init__(self, device: CpuDevice, graph: GraphArrays, order: DegeneracyOrder, min_size: int, memory: int):
        super().__init__(device, graph, order, memory, (VERTICES, min_size), vertices=graph.num_vertices)

    def counts(self) -> NDArray[np.int64]:
        """Cliques of every vertex so far, the size of its largest one, and cliques by size."""
        sizes = self._found.sizes[1:]
        self._found.vertices[2, : len(sizes)] = sizes
        return self._found.vertices


class CpuCliqueLister(_Search):
    """Lists maximal cliques."""

    def __init__(
        self,
        device: CpuDevice,
        graph: GraphArrays,
        order: DegeneracyOrder,
        min_size: int,
        capacity: int,
        memory: int,
    ):
        super().__init__(device, graph, order, memory, (LIST, min_size), capacity=max(capacity, order.degeneracy + 1))
        self._last = 0

    def begin(self, first: int, last: int) -> None:
        """Begin with the cliques whose earliest vertices are `first` to `last` - 1."""
        self._last = last
        self._begin(first)

    def following(self) -> tuple[NDArray[np.int64], NDArray[np.uint32]] | None:
        """Return the next cliques."""
        self._state[ROWS] = self._state[FILL] = 0
        self._find(self._last)
        rows, fill = int(self._state[ROWS]), int(self._state[FILL])
        if not rows:
            return None
        return self._found.offsets[: rows + 1], self._found.members[:fill]
