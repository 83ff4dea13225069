"""How many bytes will be read of every page of the adjacency (GAMMA, Definition 4.1); see ``page_bytes.cu``."""

from collections.abc import Sequence
from typing import Any

from longwall.kernels.cuda.launch import Device
from longwall.kernels.engine import GraphArrays
from longwall.kernels.frontier import Reads

Array = Any  # a CuPy array

_THREADS = 256
_BLOCKS = 8  # per multiprocessor: as many threads as it holds


def page_bytes(device: Device, graph: GraphArrays, reads: Sequence[Reads], page_slots: int) -> Array:
    """See :meth:`longwall.kernels.engine.Engine.page_bytes`."""
    xp = device.xp
    ends, steps = xp.zeros((2, -(-graph.num_slots // page_slots)), xp.uint64)
    for read in reads:
        vertices = xp.ascontiguousarray(read.vertices)
        n = int(vertices.size)
        if n:
            device.launch(
                "page_bytes.cu",
                "add_rows",
                (graph.indptr, graph.split, vertices, n, int(read.part), read.times, page_slots, ends, steps),
                blocks=min(-(-n // _THREADS), device.multiprocessors * _BLOCKS),
                threads=_THREADS,
            )
    ends += xp.cumsum(steps)
    return ends
