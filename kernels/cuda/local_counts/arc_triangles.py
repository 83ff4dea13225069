"""The common neighbours of the ends of every arc, counted or listed: launches of ``arc_triangles.cu``."""

from typing import Any, NamedTuple

from longwall.kernels.cuda.device import THREADS, WARP, Device, fetch
from longwall.kernels.interface.graph_arrays import GraphArrays

Array = Any  # a CuPy array

_BLOCKS = 8  # per multiprocessor
_MOST_BYTES = 32 << 10  # of a block's bitmap: six blocks fit, and rows have few of the vertices beyond it
_CONTROL_BYTES = 16
_MOST_ARCS, _LEAST_ARCS, _TASKS = (
    512,
    64,
    4,
)  # of a task of a block; tasks that a block has at least, if there are enough
_LIST_CHUNKS, _LEAST_CHUNK = 2048, 128  # chunks of lists, at most, a warp for each; lists of a chunk, at least


class ArcTasks(NamedTuple):
    """How arcs are dealt to blocks; see ``arc_tasks.cuh``."""

    size: int
    """Arcs of a task."""
    words: int
    """Of a block's bitmap."""
    shared: int
    """Bytes of shared memory."""
    blocks: int


def arc_tasks(device: Device, graph: GraphArrays, arcs: int, words_each: int = 1) -> ArcTasks:
    """Cut `arcs` arcs into tasks of blocks with a bitmap, of `words_each` words for every 32 vertices."""
    capacity = min(device.shared_memory, _MOST_BYTES) - _CONTROL_BYTES
    words = min(-(-graph.num_vertices // 32), capacity // (4 * words_each))
    shared = _CONTROL_BYTES + 4 * words_each * words
    blocks = max(min(_BLOCKS, device.shared_memory // (shared + 1024)), 1) * device.multiprocessors
    size = min(max(arcs // (blocks * _TASKS), _LEAST_ARCS), _MOST_ARCS)
    return ArcTasks(size, words, shared, min(blocks, max(-(-arcs // size), 1)))


def arc_triangles(device: Device, graph: GraphArrays) -> Array:
    """Count the triangles of every arc."""
    triangles = device.xp.zeros(graph.num_arcs, device.xp.uint32)
    launch_arcs(device, graph, "count_arc_triangles", 1, (triangles,))
    device.synchronize()
    return triangles


def most_triangles(device: Device, graph: GraphArrays, triangles: Array) -> int:
    """Return the largest sum, over the arcs of one vertex, of their triangles."""
    most = device.xp.zeros(1, device.xp.uint64)
    device.launch(
        "local_counts/arc_triangles.cu",
        "largest_row",
        (graph.indptr, graph.num_vertices, triangles, most),
        blocks=device.multiprocessors * _BLOCKS,
        threads=THREADS,
    )
    device.synchronize()
    return int(most.get()[0])


def list_starts(device: Device, graph: GraphArrays) -> tuple[Array, int, int]:
    """Return where the list of each arc's triangles begins (int64[num_arcs + 1]), the longest length, and the sum."""
    xp, arcs = device.xp, graph.num_arcs
    chunk = max(-(-arcs // _LIST_CHUNKS), _LEAST_CHUNK)
    chunks, found = max(-(-arcs // chunk), 1), device.result()
    lengths, starts, sums = xp.empty(arcs, xp.uint32), xp.empty(arcs + 1, xp.int64), xp.empty(chunks, xp.uint64)
    launch_arcs(device, graph, "count_arc_triangles", 1, (lengths,))
    given = lengths, arcs, chunk, found, sums  # a scan of CuPy would take the host 0.1 ms
    device.launch_over("local_counts/arc_triangles.cu", "sum_lists", WARP * chunks, given)
    device.launch_over("local_counts/arc_triangles.cu", "place_lists", WARP * chunks, (*given, starts))
    longest, size = fetch(found).tolist()
    return starts, longest, size


def launch_arcs(device: Device, graph: GraphArrays, function: str, words_each: int, out: tuple[Array, ...]) -> None:
    """Launch a kernel over the arcs of a whole graph."""
    tasks = arc_tasks(device, graph, graph.num_arcs, words_each)
    arrays = (*graph.rows, graph.num_vertices)
    device.launch(
        "local_counts/arc_triangles.cu",
        function,
        (*arrays, tasks.size, tasks.words, device.counters(), device.stop_flag, *out),
        blocks=tasks.blocks,
        threads=THREADS,
        shared=tasks.shared,
    )
