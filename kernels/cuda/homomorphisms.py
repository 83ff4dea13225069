"""Row programs on the device: workspace and launches around ``homomorphisms.cu``."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cuda.runtime.compile import array, constants
from longwall.kernels.cuda.runtime.launch import WARP, Device, units_that_fit
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import Op, RowProgram

Array = Any  # a CuPy array

_THREADS = 1024
_CONTROL_BYTES = 16
_BITMAP_SHARE = 0.5  # of the shared memory, at most


def row_counter(
    device: Device, graph: GraphArrays, program: RowProgram, memory: int, *, exact: bool
) -> "CudaRowCounter":
    """Make a counter for a row program; see :class:`longwall.kernels.interface.kernels.Kernels`."""
    return CudaRowCounter(device, graph, program, memory, exact=exact)


def row_header(program: RowProgram, *, exact: bool) -> str:
    """Write the ``generated.cuh`` that ``homomorphisms.cu`` includes."""
    width = max(len(product) for product in program.products)
    sizes = {
        "kNumOps": len(program.ops),
        "kNumLocal": program.num_local,
        "kNumDense": program.num_dense,
        "kNumScalars": program.num_scalars,
        "kNumProducts": len(program.products),
        "kFactors": width,
    }
    products = [(*product, *[-1] * (width - len(product))) for product in program.products]
    return (
        f"using Value = {'u64' if exact else 'double'};\n"
        + constants(sizes)
        + array("RowOp kOps[]", program.ops)
        + array("int kProducts[kNumProducts][kFactors]", products)
    )


class CudaRowCounter:
    """Vectors for one row program."""

    workspace_bytes = 0

    def __init__(self, device: Device, graph: GraphArrays, program: RowProgram, memory: int, *, exact: bool):
        xp, n = device.xp, graph.num_vertices
        self._device, self._graph, self._exact = device, graph, exact
        self._header = row_header(program, exact=exact)
        wide = any(code == Op.WIDEN for code, _, _ in program.ops)
        reaches = not wide and any(code == Op.PUSH for code, _, _ in program.ops)
        self._bitmap_words = (n + 31) // 32 if reaches else 0
        in_shared = self._bitmap_words * 4 <= device.shared_memory * _BITMAP_SHARE
        shared = _CONTROL_BYTES + 8 * program.num_scalars + (self._bitmap_words * 4 if in_shared else 0)
        room = device.shared_memory - shared
        self._window = min(n, room // (8 * program.num_dense)) if program.num_dense else n
        self._shared = shared + 8 * program.num_dense * self._window
        local = program.num_local * graph.max_degree
        far = program.num_dense * n if self._window < n else 0
        reached = n if reaches else 0
        bitmap = 0 if in_shared else self._bitmap_words
        each = 8 * (local + far) + 4 * (reached + bitmap)
        weight_bytes = 8 * n * (len(program.weights) + 1)  # one of them is made of another
        if weight_bytes + each > memory:
            raise WorkspaceTooLarge(weight_bytes + each)
        dtype = xp.int64 if exact else xp.float64
        self._weights = xp.ones((max(len(program.weights), 1), n), dtype)
        for i, factors in enumerate(program.weights):
            values = xp.ones(n, dtype)
            for j in factors:
                values *= self._weights[j]
            device.launch(
                "homomorphisms.cu",
                "neighbour_sums",
                (graph.indptr, graph.indices, n, values, self._weights[i]),
                blocks=device.multiprocessors * 4,
                threads=8 * WARP,
                generated=self._header,
            )
        self._blocks = units_that_fit(device.multiprocessors, each, memory - weight_bytes)
        self._local = xp.empty(max(self._blocks * local, 1), dtype)
        self._far = xp.zeros(max(self._blocks * far, 1), dtype)
        self._reached = xp.empty(max(self._blocks * reached, 1), xp.uint32)
        self._bitmaps = np.uintp(0) if in_shared else xp.empty(self._blocks * bitmap, xp.uint32)
        self._totals = xp.zeros(len(program.products), dtype)
        self._estimates = xp.zeros(len(program.products), xp.float64)

    def add(self, first: int, last: int) -> None:
        """Run the program for the vertices first to last - 1."""
        if first >= last:
            return
        device, graph = self._device, self._graph
        device.launch(
            "homomorphisms.cu",
            "run_rows",
            (
                graph.indptr,
                graph.indices,
                graph.num_vertices,
                first,
                last,
                self._weights,
                self._local,
                graph.max_degree,
                self._far,
                self._window,
                self._reached,
                self._bitmaps,
                self._bitmap_words,
                device.xp.zeros(1, device.xp.uint32),
                device.stop_flag,
                self._totals,
                self._estimates,
            ),
            blocks=min(self._blocks, last - first),
            threads=_THREADS,
            shared=self._shared,
            generated=self._header,
        )
        # The caller's progress and its cancelling go by calls that return when the work is done.
        device.synchronize()

    def totals(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Sums of the program's products so far."""
        estimates: NDArray[np.float64] = self._estimates.get()
        totals: NDArray[np.int64] = self._totals.get() if self._exact else np.zeros(len(estimates), np.int64)
        return totals, estimates
