"""The number of triangles of every arc: a launch of ``arc_triangles.cu``."""

from typing import Any

from longwall.kernels.cuda.runtime.launch import THREADS, Device
from longwall.kernels.interface.graph_arrays import GraphArrays

Array = Any  # a CuPy array

_BLOCKS = 8  # per multiprocessor


def arc_triangles(device: Device, graph: GraphArrays) -> tuple[Array, int]:
    """Count the triangles of every arc; see :class:`longwall.kernels.interface.kernels.Kernels`."""
    xp = device.xp
    triangles, most, next_task = xp.zeros(graph.num_arcs, xp.uint32), xp.zeros(1, xp.uint64), xp.zeros(1, xp.uint64)
    blocks = device.multiprocessors * _BLOCKS
    arrays = (graph.indptr, graph.indices)
    device.launch(
        "arc_triangles.cu",
        "count_arc_triangles",
        (*arrays, graph.split, graph.num_vertices, graph.num_arcs, next_task, device.stop_flag, triangles),
        blocks=blocks,
        threads=THREADS,
    )
    device.launch(
        "arc_triangles.cu",
        "largest_row",
        (graph.indptr, graph.num_vertices, triangles, most),
        blocks=blocks,
        threads=THREADS,
    )
    device.synchronize()
    return triangles, int(most.get()[0])
