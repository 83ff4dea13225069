"""Tables over vertices and arcs, and the lists that they are made of: launches of ``tables.cu``."""

from functools import cache
from typing import Any

import numpy as np

from longwall.kernels.cuda.device import WARP, Device, units_that_fit
from longwall.kernels.cuda.local_counts.arc_triangles import list_common
from longwall.kernels.cuda.runtime.compile import constants
from longwall.kernels.cuda.runtime.sources import compiles
from longwall.kernels.exact_numbers import require_fits
from longwall.kernels.interface.graph_arrays import GraphArrays

Array = Any  # a CuPy array

_SOURCE = "homomorphisms/tables.cu"
_WARPS = 8  # of a block
_MANY_WEDGES = 1 << 15  # of a vertex, whose ends are counted window by window where shared memory has no room for all
_CLIQUE_BLOCKS = 4  # per multiprocessor, of those that count cliques
_NULL = np.uintp(0)


@cache
def table_header(*, exact: bool, modulus: int) -> str:
    """Write the ``generated.cuh`` that ``tables.cu`` includes."""
    return f"using Value = {'u64' if exact else 'double'};\n" + constants({"kModulus": modulus})


_OF_WORDS = [(_SOURCE, table_header(exact=True, modulus=0))]


def common_neighbours(device: Device, graph: GraphArrays, starts: Array) -> Array:
    """List the common neighbours of all arcs."""
    common = device.xp.empty(int(starts[-1]), device.xp.uint32)
    if common.size:
        list_common(device, graph, starts, common)
    device.synchronize()
    return common


@compiles(lambda: _OF_WORDS)
def reverse_arcs(device: Device, graph: GraphArrays) -> Array:
    """List the place of every arc's reverse."""
    reverse = device.xp.empty(graph.num_arcs, device.xp.uint32)
    device.launch(
        _SOURCE,
        "list_reverse",
        (*graph.rows, graph.num_vertices, reverse),
        blocks=device.multiprocessors * 8,
        threads=_WARPS * WARP,
        generated=table_header(exact=True, modulus=0),
    )
    return reverse


@compiles(lambda: _OF_WORDS)
def sum_neighbours(
    device: Device, graph: GraphArrays, vertices: Array | None, arcs: Array | None, modulus: int, out: Array
) -> None:
    """Sum a table over the neighbours of every vertex."""
    device.launch(
        _SOURCE,
        "sum_neighbours",
        (
            graph.indptr,
            graph.indices,
            graph.num_vertices,
            _NULL if vertices is None else vertices,
            _NULL if arcs is None else arcs,
            out,
        ),
        blocks=device.multiprocessors * 4,
        threads=_WARPS * WARP,
        generated=table_header(exact=out.dtype != np.float64, modulus=modulus),
    )


@compiles(lambda: [*_OF_WORDS, ("homomorphisms/five_cycles.cu", "")])
def paths_of_arcs(device: Device, graph: GraphArrays, out: Array, memory: int) -> None:
    """Count walks of three steps."""
    require_fits(graph.max_degree**2, 63, "the number of walks of three steps at an edge")
    xp, n = device.xp, graph.num_vertices
    window = min(n, device.shared_memory // 4 - 8)
    blocks = units_that_fit(device.multiprocessors, 4 * n, memory)
    work = (window, _MANY_WEDGES, xp.zeros(blocks * n, xp.uint32), xp.zeros(1, xp.uint32), device.stop_flag, out)
    device.launch(
        "homomorphisms/five_cycles.cu",
        "cycles_of_arcs",
        (*graph.rows, n, 0, n, *work),
        blocks=min(blocks, n),
        threads=1024,
        shared=(window + 4) * 4,
    )
    join_arcs(device, graph, out, factor=1, walks=True)
    device.synchronize()


@compiles(lambda: [*_OF_WORDS, ("homomorphisms/arc_cliques.cu", "")])
def cliques_of_arcs(device: Device, graph: GraphArrays, out: Array, memory: int) -> None:
    """Count pairs of adjacent common neighbours."""
    xp, size = device.xp, graph.max_out_degree
    require_fits(size**2, 32, "the number of adjacent pairs among smaller neighbours")
    capacity = (device.shared_memory // _CLIQUE_BLOCKS - 1024) // 4
    words = min(-(-graph.num_vertices // 32), max(capacity // 3, 1))
    most = size * ((size + 31) // 32 + 1)
    capacity = max(min(capacity - 2 * words, most), 0)
    store_words = most if most > capacity else 0
    blocks = units_that_fit(device.multiprocessors * _CLIQUE_BLOCKS, 4 * store_words, memory)
    work = (
        xp.empty(max(blocks * store_words, 1), xp.uint32),
        store_words,
        xp.zeros(1, xp.uint32),
        device.stop_flag,
        out,
    )
    device.launch(
        "homomorphisms/arc_cliques.cu",
        "count_arc_cliques",
        (*graph.rows, graph.num_vertices, words, capacity, *work),
        blocks=blocks,
        threads=_WARPS * WARP,
        shared=16 + 4 * (2 * words + capacity),
    )
    join_arcs(device, graph, out, factor=2, walks=False)
    device.synchronize()


def join_arcs(device: Device, graph: GraphArrays, out: Array, *, factor: int, walks: bool) -> None:
    """Set both arcs of every edge to the sum of their counts, times a factor; add the walks to and fro if asked for."""
    device.launch(
        _SOURCE,
        "join_arcs",
        (*graph.rows, graph.num_vertices, factor, int(walks), out),
        blocks=device.multiprocessors * 8,
        threads=_WARPS * WARP,
        generated=table_header(exact=True, modulus=0),
    )
