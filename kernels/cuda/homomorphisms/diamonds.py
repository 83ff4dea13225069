"""Diamonds and triangles by looking rows up in bitmaps of others: launches of ``diamonds.cu``."""

from typing import Any

import numpy as np

from longwall.kernels.cuda.device import THREADS, Device, fetch_sum
from longwall.kernels.cuda.local_counts.arc_triangles import ArcTasks, arc_tasks
from longwall.kernels.cuda.runtime.constants import LAUNCH_STATE_WORDS
from longwall.kernels.exact_numbers import require_fits
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.graph_arrays import GraphArrays

Array = Any  # a CuPy array

_RESULT_WORDS = 2


def launch_state(device: Device) -> tuple[Array, Array]:
    """Make what the blocks of a launch share, and what the last of them writes; see ``row_bitmap.cuh``."""
    both = device.xp.zeros(LAUNCH_STATE_WORDS + _RESULT_WORDS, np.uint64)
    return both[:LAUNCH_STATE_WORDS], both[LAUNCH_STATE_WORDS:]


class RowPairs:
    """What is shared by the blocks of a launch, and the launch."""

    def __init__(self, device: Device, graph: GraphArrays, function: str, tasks: ArcTasks):
        self._device, self._graph, self._function, self._tasks = device, graph, function, tasks
        self._state, self._result = launch_state(device)

    def start(self, *roots: int) -> Array:
        """Launch the kernel.

        Parameters
        ----------
        roots
            A range of arcs or vertices, and what else the kernel takes to know what counts.

        Returns
        -------
        uint64[2]
            What :func:`longwall.kernels.cuda.device.fetch_sum` fetches, until the next launch.
        """
        device, graph, tasks = self._device, self._graph, self._tasks
        arrays = (*graph.rows, graph.num_vertices)
        device.launch(
            "homomorphisms/diamonds.cu",
            self._function,
            (*arrays, *roots, tasks.size, tasks.words, self._state, device.stop_flag, self._result),
            blocks=tasks.blocks,
            threads=THREADS,
            shared=tasks.shared,
        )
        return self._result


class CudaDiamondCounter:
    """Counts pairs of triangles with an edge in common."""

    workspace_bytes = 0

    def __init__(self, device: Device, graph: GraphArrays, memory: int):  # noqa: ARG002
        if graph.pages is not None:  # rows are read too often for that
            raise WorkspaceTooLarge(4 * graph.num_arcs)
        edges = graph.num_arcs // 2  # two of them are opposite in four diamonds at most, which each have two such pairs
        require_fits(min(edges**2, edges * graph.max_degree**2 // 2), 64, "the number of diamonds")
        self._pairs = RowPairs(device, graph, "count_diamonds", arc_tasks(device, graph, graph.num_arcs))

    def count(self, first: int, last: int) -> int:
        """Count the diamonds whose inner edge has its smaller end in a range of vertices."""
        return fetch_sum(self.start(first, last)) if first < last else 0

    def start(self, first: int, last: int) -> Array:
        """Launch the kernel. Return what :func:`longwall.kernels.cuda.device.fetch_sum` fetches."""
        return self._pairs.start(first, last)
