"""Vertices whose cliques are whole blocks' work, and the parts of this; launches of ``heavy_tasks.cu``."""

from typing import Any

from longwall.kernels.cuda.device import WARP, Device
from longwall.kernels.interface.graph_arrays import GraphArrays

Array = Any  # a CuPy array

WARPS = 8  # per block of the kernels for light vertices
# Out-degree up to which a vertex is one warp's work. On small graphs the warps with the longest rows end last:
# 5-cliques of ca-AstroPh take 1.6 ms with 64 and 0.4 ms with 24. It makes little difference on large graphs.
LIGHT = 16
# Table rows that are one block's work above. Every part builds its table anew: 6-cliques of R-MAT scale 20 take 2.7 s
# with 32 rows and 2.1 s with 256.
ROWS_PER_PART = 512


def heavy_tasks(
    device: Device, graph: GraphArrays, arcs: tuple[int, int], light: int, rows: int, num_tasks: Array
) -> Array:
    """List the tasks of whole blocks; see ``heavy_tasks.cu``. Takes half a byte for each arc."""
    first, last = arcs
    # A vertex has a task at most for each `light` of its arcs; only the first and the last vertex have arcs elsewhere.
    most = (last - first) // light + 2 * (graph.max_out_degree // rows + 1)
    tasks = device.xp.empty((most, 2), device.xp.uint32)
    device.launch(
        "kcliques/heavy_tasks.cu",
        "find_heavy",
        (graph.indptr, graph.split, graph.num_vertices, first, last, light, rows, tasks, num_tasks),
        blocks=device.multiprocessors * 4,
        threads=WARPS * WARP,
    )
    return tasks
