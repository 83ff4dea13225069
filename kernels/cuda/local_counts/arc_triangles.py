"""The common neighbours of the ends of every arc, counted or listed: launches of ``arc_triangles.cu``."""

from typing import Any

from longwall.kernels.cuda.runtime.launch import THREADS, Device
from longwall.kernels.interface.graph_arrays import GraphArrays

Array = Any  # a CuPy array

_BLOCKS = 8  # per multiprocessor
_THREADS = 1024  # of a block, where so many blocks have no room
_CONTROL_BYTES = 16


def arc_triangles(device: Device, graph: GraphArrays) -> tuple[Array, int]:
    """Count the triangles of every arc; see :class:`longwall.kernels.interface.kernels.Kernels`."""
    xp = device.xp
    triangles, most = count_common(device, graph), xp.zeros(1, xp.uint64)
    device.launch(
        "arc_triangles.cu",
        "largest_row",
        (graph.indptr, graph.num_vertices, triangles, most),
        blocks=device.multiprocessors * _BLOCKS,
        threads=THREADS,
    )
    device.synchronize()
    return triangles, int(most.get()[0])


def count_common(device: Device, graph: GraphArrays) -> Array:
    """Return how many common neighbours the ends of every arc have: uint32[num_arcs]."""
    triangles = device.xp.zeros(graph.num_arcs, device.xp.uint32)
    _launch(device, graph, "count_arc_triangles", 1, (triangles,))
    return triangles


def list_common(device: Device, graph: GraphArrays, starts: Array, common: Array) -> None:
    """List them for every arc a, in `common` from ``starts[a]`` on: the places of the arcs to them, ascending."""
    _launch(device, graph, "list_common", 2, (starts, common))


def _launch(device: Device, graph: GraphArrays, function: str, arrays: int, out: tuple[Array, ...]) -> None:
    """Launch a kernel whose blocks have so many arrays, with a word for every 32 vertices as far as there is room."""
    room = device.shared_memory - _CONTROL_BYTES
    words = min(-(-graph.num_vertices // 32), room // (4 * arrays))
    shared = _CONTROL_BYTES + 4 * arrays * words
    small = (shared + 1024) * _BLOCKS <= device.shared_memory
    blocks = _BLOCKS if small else 2 if (shared + 1024) * 2 <= device.shared_memory else 1
    next_vertex = device.xp.zeros(1, device.xp.uint32)
    device.launch(
        "arc_triangles.cu",
        function,
        (graph.indptr, graph.indices, graph.split, graph.num_vertices, words, next_vertex, device.stop_flag, *out),
        blocks=device.multiprocessors * blocks,
        threads=THREADS if small else _THREADS,
        shared=shared,
    )
