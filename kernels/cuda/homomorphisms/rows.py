"""Row programs on the device: workspace, and launches of ``rows.cu`` and ``flat_rows.cu``."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.device import THREADS, WARP, Device, fetch, units_that_fit
from longwall.kernels.cuda.homomorphisms.fused_rows import FusedRows, fuse
from longwall.kernels.cuda.runtime.compile import array, constants
from longwall.kernels.cuda.runtime.sources import Source, compiles
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import FLOATING, Domain, Op, RowProgram, RowTables

_VERTEX_THREADS = 1024
_TOGETHER: dict[Domain, tuple[int, int]] = {"vertices": (1, _VERTEX_THREADS), "arcs": (8, 128), "common": (4, 256)}
"""Blocks of a multiprocessor, and their threads: rows of arcs are short."""
_VERTEX_BLOCKS = 2  # per multiprocessor, where all of its dense vectors are in shared memory
_LARGEST_PAIRS = (1 << 16) - 1  # entries of a row whose ordered pairs 32 bits hold
_FLAT_BLOCKS = 8  # per multiprocessor
_ARC_LANES = 8  # of a row of arcs without dense vectors
_CONTROL_BYTES = 16
_BITMAP_SHARE = 0.5  # of the shared memory, at most
_MOST_INLINED = 64  # operations of a program; in longer ones each kind of operation is one function


def _shared_capacity(device: Device, blocks: int) -> int:
    """Return the bytes of shared memory that each of a number of blocks of a multiprocessor may have."""
    return device.shared_memory if blocks == 1 else device.shared_memory // blocks - 1024  # which the system takes


def narrow_vectors(program: FusedRows, max_degree: int) -> list[bool]:
    """Return which dense vectors have numbers of 32 bits: pushed ones, and pairs of adjacent entries of a row."""
    writing = {Op.SCATTER, Op.PUSH, Op.COPY_DENSE, Op.MULTIPLY_DENSE, Op.WEIGH_DENSE, Op.WIDEN, Op.PUSH_EDGES}
    weighing = {Op.PULL, Op.MULTIPLY, Op.WEIGH, Op.GATHER, Op.WEIGH_ARC, Op.WEIGH_ACROSS}
    weighed = {target for code, target, _, _ in program.ops if code in weighing}
    writers = Counter(target for code, target, _, _ in program.ops if code in writing)
    found = [False] * program.num_dense
    for code, target, source, weight in program.ops:
        ones = code == Op.PUSH and weight < 0 and source not in weighed
        pairs = code == Op.PUSH_EDGES and max_degree <= _LARGEST_PAIRS
        if (ones or pairs) and writers[target] == 1:
            found[target] = True
    return found


def ones_first(program: FusedRows, narrow: Sequence[bool]) -> bool:
    """Return whether the first pass counts ones in 32 bits, so that it sees which vertices it reaches."""
    passes = (op for op in program.ops if op[0] in (Op.PUSH, Op.PUSH_EDGES, Op.WIDEN))
    code, target, _, weight = next(passes, (Op.WIDEN, 0, 0, 0))
    widens = any(op[0] == Op.WIDEN for op in program.ops)
    return code == Op.PUSH and weight < 0 and narrow[target] and not widens


@lru_cache(maxsize=64)
def row_header(program: RowProgram, domain: Domain, modulus: int, max_degree: int) -> str:
    """Write the ``generated.cuh`` that ``rows.cu`` and ``flat_rows.cu`` include."""
    fused = fuse(program)
    narrow = narrow_vectors(fused, max_degree)
    width = max([len(product) for product in program.products] + [1])
    factors = max([len(product) for product in fused.products] + [1])
    sizes = {
        "kModulus": max(modulus, 0),
        "kNumOps": len(fused.ops),
        "kNumLocal": program.num_local,
        "kNumWide": narrow.count(False),
        "kNumNarrow": narrow.count(True),
        "kNumScalars": program.num_scalars,
        "kNumProducts": len(program.products),
        "kFactors": width,
        "kDenseFactors": factors,
        "kNumStored": len(program.stored),
        "kArcs": int(domain == "arcs"),
        "kOnGraph": int(domain == "common"),
        "kSymmetric": int(program.symmetric),
        "kOnesFirst": int(ones_first(fused, narrow)),
        "kAcross": int(any(op[0] == Op.WEIGH_ACROSS for op in program.ops)),
        "kLanes": flat_lanes(program, domain),
    }
    products = [(*product, *[-1] * (width - len(product))) for product in program.products]
    dense = [(*product, *[-1] * (factors - len(product))) for product in fused.products]
    return (
        f"using Value = {'double' if modulus == FLOATING else 'u64'};\n"
        f"#define PER_OP {'__device__ __noinline__' if len(fused.ops) > _MOST_INLINED else 'DEVICE'}\n"
        + constants(sizes)
        + array("RowOp kOps[]", fused.ops or [(0, 0, 0, -1)])
        + array("DenseVector kDense[]", [(int(one), narrow[:place].count(one)) for place, one in enumerate(narrow)])
        + array("int kProducts[][kFactors]", products or [(-1,)])
        + array("int kDenseProducts[][kDenseFactors]", dense or [(-1,)])
        + array("int kStored[][2]", program.stored or [(-1, 0)])
    )


def flat_lanes(program: RowProgram, domain: Domain) -> int:
    """Return how many lanes share a row of a program without dense vectors."""
    if not program.num_local:
        return 1
    return _ARC_LANES if domain == "arcs" else WARP


def row_sources(program: RowProgram, domain: Domain, modulus: int, max_degree: int) -> list[Source]:
    """Return the source of a row program."""
    name = "homomorphisms/rows.cu" if program.num_dense else "homomorphisms/flat_rows.cu"
    return [(name, row_header(program, domain, modulus, max_degree))]


@compiles(row_sources)
class CudaRowCounter:
    """Vectors for one row program."""

    workspace_bytes = 0

    def __init__(
        self,
        device: Device,
        graph: GraphArrays,
        tables: RowTables,
        program: RowProgram,
        domain: Domain,
        memory: int,
    ):
        self._device, self._graph, self._tables = device, graph, tables
        self._exact, self._domain, self._flat = tables.modulus != FLOATING, domain, not program.num_dense
        self._header = row_header(program, domain, tables.modulus, graph.max_degree)
        self._number, self._lanes = len(program.products), flat_lanes(program, domain)
        sums = max(self._number, 1)
        self._sums = device.result(2 * sums)
        self._found: NDArray[np.uint64] = np.zeros(2 * sums, np.uint64)
        begin = int(self._sums.data.ptr)
        self._totals, self._estimates = begin, begin + 8 * sums
        if not self._flat:
            self._make_vectors(program, memory)

    def _make_vectors(self, program: RowProgram, memory: int) -> None:
        device, graph, tables, xp = self._device, self._graph, self._tables, self._device.xp
        self._longest = graph.max_degree if self._domain == "vertices" else tables.longest
        self._length = graph.max_degree if self._domain == "arcs" else graph.num_vertices  # of a dense vector
        fused = fuse(program)
        narrow = narrow_vectors(fused, graph.max_degree)
        codes = {op[0] for op in fused.ops}
        reaches = Op.WIDEN not in codes and bool(codes & {Op.PUSH, Op.PUSH_EDGES})
        bits = (self._length + 31) // 32 if reaches and not ones_first(fused, narrow) else 0
        fixed = _CONTROL_BYTES + 8 * program.num_scalars + 16 * max(self._number, 1)
        number = 2 * narrow.count(False) + narrow.count(True)  # words of a vertex
        blocks, self._threads = _TOGETHER[self._domain]
        capacity = _shared_capacity(device, _VERTEX_BLOCKS)
        if self._domain == "vertices" and fixed + 4 * (bits + number * self._length) <= capacity:
            # Rows are too short for more threads.
            blocks, self._threads = _VERTEX_BLOCKS, _VERTEX_THREADS // _VERTEX_BLOCKS
        shared_memory = _shared_capacity(device, blocks)
        self._bitmap_words = bits
        in_shared = bits * 4 <= shared_memory * _BITMAP_SHARE
        shared = fixed + (bits * 4 if in_shared else 0)
        capacity = max(shared_memory - shared, 0)
        self._window = min(self._length, capacity // (4 * number))
        self._shared = shared + 4 * number * self._window
        local = program.num_local * self._longest
        far, far_narrow = (
            (count * self._length if self._window < self._length else 0)
            for count in (narrow.count(False), narrow.count(True))
        )
        reached = self._length if reaches else 0
        bitmap = 0 if in_shared else self._bitmap_words
        each = 8 * (local + far) + 4 * (far_narrow + reached + bitmap)
        self._blocks = units_that_fit(device.multiprocessors * blocks, each, memory)
        dtype = xp.int64 if self._exact else xp.float64
        self._local = xp.empty(max(self._blocks * local, 1), dtype)
        self._far = xp.zeros(max(self._blocks * far, 1), dtype)
        self._far_narrow = xp.zeros(max(self._blocks * far_narrow, 1), xp.uint32)
        self._reached = xp.empty(max(self._blocks * reached, 1), xp.uint32)
        self._bitmaps = None if in_shared else xp.empty(self._blocks * bitmap, xp.uint32)

    def add(self, first: int, last: int) -> None:
        """Run the program for the rows first to last - 1."""
        if first >= last:
            return
        if self._flat:
            self._launch_flat(first, last)
        else:
            self._launch(first, last)
        # The caller's progress and its cancelling go by calls that return when the work is done.
        self._found = fetch(self._sums)

    def _arrays(self) -> tuple[Any, ...]:
        """Return the rows and their number."""
        graph, tables = self._graph, self._tables
        if self._domain == "vertices":
            return graph.indptr, graph.indices, graph.num_vertices
        return tables.common_indptr, tables.common, graph.num_arcs

    def _weights(self) -> tuple[Any, ...]:
        """Return the tables over arcs, and the lists of common neighbours."""
        tables = self._tables
        return tables.arcs, self._graph.num_arcs, tables.reverse, tables.common_indptr, tables.common

    def _launch_flat(self, first: int, last: int) -> None:
        device, tables = self._device, self._tables
        own = tables.vertices if self._domain == "vertices" else tables.arcs
        device.launch(
            "homomorphisms/flat_rows.cu",
            "run_flat_rows",
            (*self._arrays(), first, last, own, *self._weights(), device.stop_flag, self._totals, self._estimates),
            blocks=min(device.multiprocessors * _FLAT_BLOCKS, -(-(last - first) // (THREADS // self._lanes))),
            threads=THREADS,
            shared=16 * max(self._number, 1),
            generated=self._header,
        )

    def _launch(self, first: int, last: int) -> None:
        device, graph, tables, arcs = self._device, self._graph, self._tables, self._domain == "arcs"
        passes = (tables.common_indptr, tables.common) if arcs else (graph.indptr, graph.indices)
        own = tables.vertices if self._domain == "vertices" else tables.arcs
        dense = (tables.arcs, graph.num_arcs) if arcs else (tables.vertices, graph.num_vertices)
        vectors = (self._local, self._longest, self._far, self._far_narrow, self._length, self._window)
        reached = (self._reached, self._bitmaps, self._bitmap_words)
        out = (device.counters(), device.stop_flag, self._totals, self._estimates)
        rows = (*self._arrays(), *passes, graph.indptr, graph.num_vertices, first, last)
        device.launch(
            "homomorphisms/rows.cu",
            "run_rows",
            (*rows, own, *dense, *self._weights(), *vectors, *reached, *out),
            blocks=min(self._blocks, last - first),
            threads=self._threads,
            shared=self._shared,
            generated=self._header,
        )

    def totals(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Sums of the program's products so far."""
        totals, estimates = self._found.reshape(2, -1)[:, : self._number]
        counts = totals.view(np.int64) if self._exact else np.zeros(self._number, np.int64)
        return counts, estimates.view(np.float64)
