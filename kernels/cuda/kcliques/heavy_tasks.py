"""Vertices whose cliques are whole blocks' work, and the parts of this; launches of ``heavy_tasks.cu``."""

from typing import Any, NamedTuple

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


class Parts(NamedTuple):
    """How blocks share the rows of a vertex's table; see `rows_of_part` in ``parts.cuh``."""

    whole: int
    work: int
    least: int
    most: int = ROWS_PER_PART

    def constants(self) -> dict[str, int]:
        """Return the constants of a kernel's generated header."""
        return {"kWholeTo": self.whole, "kPartWork": self.work, "kLeastRows": self.least, "kRowsPerPart": self.most}


LARGE_PARTS = Parts(1 << 31, 0, ROWS_PER_PART)
"""For small cliques: to make a table takes as long as to search it."""
SMALL_PARTS = Parts(256, 1 << 22, 8)
"""For large cliques: one vertex of R-MAT 20 has 0.27 % of all work of 7-cliques, and would take one of 264 blocks 0.7
of the time that all of them take for the rest."""


def heavy_tasks(
    device: Device, graph: GraphArrays, arcs: tuple[int, int], light: int, parts: Parts, num_tasks: Any
) -> Array:
    """List the tasks of whole blocks, first those of vertices with several small parts; see ``heavy_tasks.cu``.

    The list takes at most a byte for each arc.
    """
    first, last = arcs
    longest = graph.max_out_degree
    # A vertex has at most one task for every `light` of its arcs, or for every part; only the first and the last vertex
    # have arcs outside the range.
    several = longest > parts.whole
    rows = parts.least if several else parts.most
    tasks = device.xp.empty(((last - first) // min(light, rows) + 2 * (longest // rows + 1), 2), device.xp.uint32)
    for above, most in [(parts.whole, longest), (light, parts.whole)] if several else [(light, longest)]:
        device.launch(
            "kcliques/heavy_tasks.cu",
            "find_heavy",
            (graph.indptr, graph.split, graph.num_vertices, first, last, above, most, *parts, tasks, num_tasks),
            blocks=device.multiprocessors * 4,
            threads=WARPS * WARP,
        )
    return tasks
