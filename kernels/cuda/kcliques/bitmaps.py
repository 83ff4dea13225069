"""Cliques on the device: bitmap tables, and launches of ``bitmaps.cu``."""

from functools import cache
from typing import Any

from longwall.kernels.cuda.device import WARP, Device, fetch_sum, units_that_fit
from longwall.kernels.cuda.kcliques.heavy_tasks import (
    LARGE_PARTS,
    LIGHT,
    ROWS_PER_PART,
    SMALL_PARTS,
    WARPS,
    Parts,
    heavy_tasks,
)
from longwall.kernels.cuda.kcliques.tables_ahead import Tables, TablesAhead
from longwall.kernels.cuda.local_counts.owners import owners_of
from longwall.kernels.cuda.local_counts.triangles import CudaTriangleCounter
from longwall.kernels.cuda.runtime.compile import constants
from longwall.kernels.cuda.runtime.constants import BLOCK_COUNTER_WORDS, TABLE_QUEUE, WORD_ROOT_WORDS
from longwall.kernels.cuda.runtime.page_buffer import places_of
from longwall.kernels.cuda.runtime.sources import Source, compiles
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.kcliques import ADJACENT, MOST_ROOTED, OF, ROOTED_FROM

Array = Any  # a CuPy array

NO_TABLES: Tables = (None, None, 0)

# Of the memory, that tables of many vertices may take, and the largest cliques that gain by these: 6-cliques of R-MAT
# 18 took 236 ms with them and 211 without, 5-cliques 10.1 and 12.5 (H200).
_AHEAD_SHARE, _AHEAD_TO = 3 / 4, 5

# 6-cliques take less time to search: with parts of half this size R-MAT 16 took 24.4 ms in place of 22.2 ms (H200).
_ROOTED_PARTS = Parts(384, 1 << 24, 16)


def clique_header(k: int) -> str:
    """Write the ``generated.cuh`` that ``bitmaps.cu`` includes."""
    return _header(k, _parts(k))


@cache
def _header(k: int, parts: Parts) -> str:
    return constants(
        {
            "kCliqueSize": k,
            "kLight": LIGHT,
            "kRootedFrom": ROOTED_FROM,
            "kMostRooted": MOST_ROOTED,
            "kAdjacent": ADJACENT,
            "kOf": OF,
            "kControlWords": _control_words(k),
        }
        | parts.constants()
    )


def _parts(k: int) -> Parts:
    """Return how blocks share a vertex: the larger the cliques, the more time goes into the search, not the table."""
    if k == ROOTED_FROM:
        return _ROOTED_PARTS
    return LARGE_PARTS if k < ROOTED_FROM else SMALL_PARTS


def _control_words(k: int) -> int:
    """Return the words of a block before its tables: its counters, and the arcs of a part that have root subgraphs."""
    return BLOCK_COUNTER_WORDS + ROWS_PER_PART // 2 if k >= ROOTED_FROM else 4


def _sources(k: int) -> list[Source]:
    tables = [("kcliques/tables.cu", ""), ("local_counts/owners.cu", "")] if k <= _AHEAD_TO else []
    return [("kcliques/bitmaps.cu", clique_header(k)), ("kcliques/heavy_tasks.cu", ""), *tables]


@compiles(_sources)
def clique_counter(
    device: Device, graph: GraphArrays, k: int, memory: int
) -> "CudaCliqueCounter | CudaTriangleCounter":
    """Make a counter of k-cliques."""
    return CudaTriangleCounter(device, graph, memory) if k == 3 else CudaCliqueCounter(device, graph, k, memory)


@compiles(_sources)
def large_clique_counter(device: Device, graph: GraphArrays, k: int, memory: int) -> "CudaCliqueCounter":
    """Make a counter of k-cliques, k >= `ROOTED_FROM`; the same source is compiled for each k."""
    return CudaCliqueCounter(device, graph, k, memory)


def _root_words(k: int, max_out_degree: int, warps: int) -> tuple[int, int]:
    """Return the words that root subgraphs of a block take: the largest, and those of a word; see roots.cuh."""
    if k < ROOTED_FROM:
        return 0, 0
    size = min(max_out_degree, MOST_ROOTED)
    words, half = (size + 31) // 32, (size + 1) // 2
    bitmaps = size * (words | 1) + half + words + warps * ((k - 6) * words + half)
    least = warps * WORD_ROOT_WORDS
    return max(bitmaps + bitmaps % 2, least), least


def _shared_root_words(wanted: int, least: int, capacity: int, others: int) -> int:
    """Return the words of root subgraphs in shared memory: what others leave, or the least, or nothing."""
    left = min(wanted, capacity - others) // 2 * 2
    return left if left >= least else least if least <= capacity else 0


class CudaCliqueCounter:
    """Bitmap tables for counting k-cliques, k >= 4; see ``bitmaps.cu``."""

    workspace_bytes = 0

    _THREADS = 512
    _BLOCKS = 2  # per multiprocessor

    def __init__(self, device: Device, graph: GraphArrays, k: int, memory: int, *, tabled: bool = False):
        self._device, self._graph = device, graph
        self._ahead = None
        if not tabled and k <= _AHEAD_TO:
            self._ahead = TablesAhead.fitting(device, graph, k - 1, int(_AHEAD_SHARE * memory))
        if self._ahead is not None:
            tabled, memory = True, memory - int(_AHEAD_SHARE * memory)
        self._generated, self._parts = clique_header(k), _parts(k)
        self._heavy_from = max(LIGHT, k - 2)
        walked = max(k - 5, 0)
        light_words = (LIGHT + 31) // 32
        table_words = 16 * light_words * (light_words + 1)
        self._light_shared = WARPS * (table_words + TABLE_QUEUE + walked * light_words) * 4
        # Tables are in shared memory as far as they fit there, and in global memory beyond: the block's own, or where
        # they were made before. Root subgraphs take what is left there.
        warps, width = self._THREADS // WARP, (graph.max_out_degree + 31) // 32
        group, rest = divmod(graph.max_out_degree, 32)
        queues, table = warps * (TABLE_QUEUE + walked * width), (16 * group + rest) * (group + 1)
        words = queues + table
        most = device.shared_memory // self._BLOCKS // 4 - 512
        control = _control_words(k)
        wanted, least = _root_words(k, graph.max_out_degree, warps)
        self._shared_roots = _shared_root_words(wanted, least, most - control, words)
        control += self._shared_roots
        self._shared_words = min(words + control, most)
        self._root_words = wanted if wanted > self._shared_roots else 0
        self._store_words = (queues if tabled else words) if words + control > most else 0
        self._store_words += self._store_words % 2 + self._root_words
        wanted = device.multiprocessors * self._BLOCKS
        self._blocks = units_that_fit(wanted, self._store_words * 4, memory)
        self._store = device.xp.empty(max(self._blocks * self._store_words, 1), device.xp.uint32)

    def count(self, first: int, last: int) -> int:
        """Count the cliques of a range of arcs."""
        return fetch_sum(self.start(first, last))

    def start(self, first: int, last: int) -> Array:
        """Launch the kernels. Return what :func:`longwall.kernels.cuda.device.fetch_sum` fetches."""
        graph, result = self._graph, self._device.result()
        if self._ahead is None:
            self._start(first, last, NO_TABLES, result)
            return result
        vertex, _ = owners_of(self._device, graph, first, last)
        while first < last:
            tables, vertex = self._ahead.of(vertex, last)
            end = min(last, int(graph.indptr[vertex]))
            self._start(first, end, tables, result)
            first = end
        return result

    def _start(self, first: int, last: int, tables: Tables, result: Array) -> None:
        """Launch the kernels, which add to the result; `tables` are those that were made before, or `NO_TABLES`."""
        device, graph = self._device, self._graph
        light_root = device.counters(3)
        heavy_task, num_tasks = light_root + 8, light_root + 16
        # Kernels that count in tables read no lists, so they need not wait for copies of lists.
        places = places_of(graph) if tables is NO_TABLES else None
        arrays = (*graph.rows, places, *tables)
        # Light vertices first: the blocks of heavy ones end one by one, and blocks of another worker can follow them.
        device.launch(
            "kcliques/bitmaps.cu",
            "count_light",
            (*arrays, graph.num_vertices, first, last, light_root, device.stop_flag, result),
            blocks=device.multiprocessors * 4,
            threads=WARPS * WARP,
            shared=self._light_shared,
            generated=self._generated,
        )
        tasks = heavy_tasks(device, graph, (first, last), self._heavy_from, self._parts, num_tasks)
        work = (self._shared_words, self._shared_roots, self._store, self._store_words, self._root_words)
        device.launch(
            "kcliques/bitmaps.cu",
            "count_heavy",
            (*arrays, tasks, num_tasks, first, last, *work, heavy_task, device.stop_flag, result),
            blocks=min(self._blocks, len(tasks)),
            threads=self._THREADS,
            shared=self._shared_words * 4,
            generated=self._generated,
        )
