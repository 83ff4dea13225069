"""Which vertices the arcs of a range belong to; a launch of ``owners.cu``."""

from longwall.kernels.cuda.device import WARP, Device, fetch
from longwall.kernels.interface.graph_arrays import GraphArrays


def owners_of(device: Device, graph: GraphArrays, first: int, last: int) -> tuple[int, int]:
    """Return the vertex of arc `first`, and one past that of arc `last` - 1.

    CuPy has a function for this, whose kernel a process would have to load first.
    """
    found = device.xp.empty(2, device.xp.int64)
    arguments = (graph.indptr, graph.num_vertices, first, last, found)
    device.launch("local_counts/owners.cu", "find_owners", arguments, blocks=1, threads=WARP)
    low, high = fetch(found).tolist()
    return low, high
