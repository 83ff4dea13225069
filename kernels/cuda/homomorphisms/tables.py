"""Tables over vertices and arcs, and the lists that they are made of: launches of ``tables.cu``."""

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from longwall.kernels.cuda.device import WARP, Device, units_that_fit
from longwall.kernels.cuda.local_counts.arc_triangles import launch_arcs, list_starts
from longwall.kernels.cuda.runtime.compile import constants
from longwall.kernels.cuda.runtime.constants import MAKE_BITS, TABLE_BITS, TABLE_STEPS
from longwall.kernels.cuda.runtime.sources import compiles
from longwall.kernels.exact_numbers import require_fits
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import FLOATING, Make, RowTables, Step

Array = Any  # a CuPy array

_SOURCE = "homomorphisms/tables.cu"
_WARPS = 8  # of a block
_MANY_WEDGES = 1 << 15  # of a vertex, whose ends are counted window by window where shared memory has no room for all
_CLIQUE_BLOCKS = 4  # per multiprocessor, of those that count cliques
# Blocks per multiprocessor, at most, that count walks of three steps in a small graph, and threads of each.
_PATH_BLOCKS, _PATH_THREADS = 4, 512


@cache
def table_header(*, exact: bool, modulus: int) -> str:
    """Write the ``generated.cuh`` that ``tables.cu`` includes."""
    return f"using Value = {'u64' if exact else 'double'};\n" + constants({"kModulus": modulus})


_OF_WORDS = [(_SOURCE, table_header(exact=True, modulus=0))]


def common_neighbours(device: Device, graph: GraphArrays, reserve: Callable[[int], None]) -> tuple[Array, Array, int]:
    """List the common neighbours of all arcs."""
    starts, longest, size = list_starts(device, graph)
    reserve(4 * size)
    common = device.xp.empty(size, device.xp.uint32)
    if size:
        launch_arcs(device, graph, "list_common", 2, (starts, common))
    return starts, common, longest


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
def fill_tables(device: Device, graph: GraphArrays, tables: RowTables, steps: tuple[Step, ...]) -> None:
    """Make tables from others, several in one launch: it takes the host 15 us, a small table takes the device less."""
    given = (graph.indptr, graph.indices, graph.num_vertices, graph.labels, tables.reverse, tables.common_indptr)
    header = table_header(exact=tables.modulus != FLOATING, modulus=max(tables.modulus, 0))
    for words in _packed(steps):
        device.launch(
            _SOURCE,
            "fill_tables",
            (*given, tables.vertices, tables.arcs, graph.num_arcs, *words),
            blocks=device.multiprocessors * 4,
            threads=_WARPS * WARP,
            shared=8 * TABLE_STEPS,
            generated=header,
        )


@lru_cache(maxsize=256)
def _packed(steps: tuple[Step, ...]) -> list[tuple[int, ...]]:
    """Return the words of each launch: a word names what a step does, its table, and up to two tables that it reads.

    Tables are numbered from 1 there, and 0 is no table. A product of more than two tables takes several steps, each of
    which multiplies the product by one more table.
    """
    words = list[int]()
    for make, target, sources in steps:
        first, *others = sources or (-1,)
        if make in (Make.MULTIPLY_VERTICES, Make.MULTIPLY_ARCS):
            second = others[0] if others else -1
            words.append(_word(make, target, first, second))
            words += [_word(make, target, target, other) for other in others[1:]]
        else:
            words.append(_word(make, target, first, *others))
    words += [0] * (-len(words) % TABLE_STEPS)
    return [tuple(words[at : at + TABLE_STEPS]) for at in range(0, len(words), TABLE_STEPS)]


def _word(make: Make, target: int, first: int, second: int = -1) -> int:
    assert max(target, second) + 1 < 1 << TABLE_BITS
    fields = (target + 1) + ((first + 1) << TABLE_BITS) + ((second + 1) << 2 * TABLE_BITS)
    return int(make) + (fields << MAKE_BITS)


def triangles_of_arcs(device: Device, graph: GraphArrays, out: Array) -> None:
    """Count the triangles of every arc."""
    launch_arcs(device, graph, "triangles_of_arcs", 1, (out,))


@compiles(lambda: [*_OF_WORDS, ("homomorphisms/five_cycles.cu", "")])
def paths_of_arcs(device: Device, graph: GraphArrays, out: Array, memory: int) -> None:
    """Count walks of three steps."""
    require_fits(graph.max_degree**2, 63, "the number of walks of three steps at an edge")
    xp, n = device.xp, graph.num_vertices
    out.data.memset_async(0, out.nbytes)
    window = min(n, device.shared_memory // 4 - 8)
    # Most vertices of a small graph have too little work for 1,024 threads: smaller blocks share a multiprocessor.
    together = min(device.shared_memory // (4 * n + 1040), _PATH_BLOCKS) if window == n else 1
    store = n if window < n else 0
    blocks = units_that_fit(device.multiprocessors * max(together, 1), 4 * store, memory)
    store_words = xp.zeros(blocks * store, xp.uint32) if store else None
    work = (window, _MANY_WEDGES, store_words, device.counters(), device.stop_flag, out)
    device.launch(
        "homomorphisms/five_cycles.cu",
        "cycles_of_arcs",
        (*graph.rows, n, 0, n, *work),
        blocks=min(blocks, n),
        threads=_PATH_THREADS if together > 1 else 1024,
        shared=(window + 4) * 4,
    )
    join_arcs(device, graph, out, factor=1, walks=True)


@compiles(lambda: [*_OF_WORDS, ("homomorphisms/arc_cliques.cu", "")])
def cliques_of_arcs(device: Device, graph: GraphArrays, out: Array, memory: int) -> None:
    """Count pairs of adjacent common neighbours."""
    xp, size = device.xp, graph.max_out_degree
    require_fits(size**2, 32, "the number of adjacent pairs among smaller neighbours")
    capacity = (device.shared_memory // _CLIQUE_BLOCKS - 1024) // 4
    out.data.memset_async(0, out.nbytes)
    words = min(-(-graph.num_vertices // 32), max(capacity // 3, 1))
    most = size * ((size + 31) // 32 + 1)
    capacity = max(min(capacity - 2 * words, most), 0)
    store_words = most if most > capacity else 0
    blocks = units_that_fit(device.multiprocessors * _CLIQUE_BLOCKS, 4 * store_words, memory)
    work = (
        xp.empty(max(blocks * store_words, 1), xp.uint32),
        store_words,
        device.counters(),
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
