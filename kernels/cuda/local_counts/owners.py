"""The vertices that own the arcs of a range; a launch of ``owners.cu``."""

from longwall.kernels.cuda.device import WARP, Device, fetch
from longwall.kernels.interface.graph_arrays import GraphArrays


def owners_of(device: Device, graph: GraphArrays, first: int, last: int) -> tuple[int, int]:
    """Return the owner of arc `first`, and one past the owner of arc `last` - 1.

    CuPy has a function for this search, but a process would have to load its kernel first.
    """
    found = device.xp.empty(2, device.xp.int64)
    arguments = (graph.indptr, graph.num_vertices, first, last, found)
    device.launch("local_counts/owners.cu", "find_owners", arguments, blocks=1, threads=WARP)
    low, high = fetch(found).tolist()
    return low, high
