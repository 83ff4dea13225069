"""Run a row program: homomorphism counts by dynamic programming over each vertex's row."""

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.engine import CpuDevice, fitting
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import RowProgram
from longwall.kernels.jit import compiled

# Codes of longwall.kernels.interface.homomorphism_program.Op.
_ONES, _PULL, _SCATTER, _MULTIPLY, _WEIGH, _PUSH, _COPY_DENSE, _MULTIPLY_DENSE, _WEIGH_DENSE, _WIDEN, _SUM = range(11)


def row_counter(
    device: CpuDevice, graph: GraphArrays, program: RowProgram, memory: int, *, exact: bool
) -> "CpuRowCounter":
    """Make a counter for a row program; see :class:`longwall.kernels.interface.kernels.Kernels`."""
    return CpuRowCounter(device, graph, program, memory, exact=exact)


class CpuRowCounter:
    """Vectors of one worker."""

    def __init__(self, device: CpuDevice, graph: GraphArrays, program: RowProgram, memory: int, *, exact: bool):
        n = graph.num_vertices
        local = max(program.num_local, 1) * graph.max_degree
        self.workspace_bytes = fitting(
            8 * (local + n * max(program.num_dense + len(program.weights), 1)) + 5 * n, memory
        )
        dtype = np.int64 if exact else np.float64
        self._graph = graph
        self._ops, self._products = program.packed()
        self._weights = np.ones((max(len(program.weights), 1), n), dtype)
        for i, factors in enumerate(program.weights):
            values = np.ones(n, dtype)
            for j in factors:
                values *= self._weights[j]
            neighbour_sums(graph.indptr, graph.indices, values, self._weights[i])
        self._local = np.empty((max(program.num_local, 1), graph.max_degree), dtype)
        self._dense = np.zeros((max(program.num_dense, 1), n), dtype)
        self._scalars = np.zeros(program.num_scalars, dtype)
        self._reached = np.empty(n, np.uint32)
        self._seen = np.zeros(n, np.uint8)
        self._totals = np.zeros(len(program.products), dtype)
        self._estimates = np.zeros(len(program.products), np.float64)
        self._stop_flag = device.stop_flag

    def add(self, first: int, last: int) -> None:
        """Run the program for a range of vertices."""
        run_rows(
            self._graph.indptr, self._graph.indices, self._ops, self._products, self._weights, self._local,
            self._dense, self._scalars, self._reached, self._seen, first, last, self._totals, self._estimates,
            self._stop_flag,
        )  # fmt: skip

    def totals(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Sums of the program's products so far; the first ones mean nothing where they are not exact."""
        return self._totals.view(np.int64), self._estimates


@compiled
def neighbour_sums(indptr, indices, values, out):
    """Set out[x] to the sum of `values` over the neighbours of x; both have length num_vertices."""
    for x in range(indptr.size - 1):
        total = values[0] * 0
        for j in range(indptr[x], indptr[x + 1]):
            total += values[indices[j]]
        out[x] = total


@compiled
def run_rows(
    indptr, indices, ops, products, weights, local, dense, scalars, reached, seen, first, last, totals, estimates,
    stop_flag,
):  # fmt: skip
    """Run a row program for the vertices first to last - 1.

    Parameters
    ----------
    indptr, indices
        The graph.
    ops : int64[n, 3]
    products : int64[m, width]
        See :class:`longwall.kernels.interface.homomorphism_program.RowProgram`.
    weights : dtype[num_weights, num_vertices]
        Vertex weights; dtype is int64 (counts modulo 2**64) or float64 (their magnitude).
    local : dtype[num_local, max_degree]
    dense : dtype[num_dense, num_vertices]
        Workspace; `dense` is all zero and is left all zero.
    scalars : dtype[num_scalars]
        Workspace.
    reached : uint32[num_vertices]
        Workspace: the vertices within two steps of v.
    seen : uint8[num_vertices]
        Workspace, all zero; it is left all zero.
    first, last
        Range of vertices.
    totals : dtype[m]
        The sums of the products are added here.
    estimates : float64[m]
        The same, as floating point.
    stop_flag : uint8[1]
        The kernel returns early once this is set.
    """
    wide = False
    for o in range(ops.shape[0]):
        wide |= ops[o, 0] == _WIDEN
    for v in range(first, last):
        if stop_flag[0]:
            break
        a = indptr[v]
        degree = indptr[v + 1] - a
        num_reached = 0
        for o in range(ops.shape[0]):
            code, target, source = ops[o, 0], ops[o, 1], ops[o, 2]
            if code == _ONES:
                for i in range(degree):
                    local[target, i] = 1
            elif code == _PULL:
                values = dense[source]
                for i in range(degree):
                    x = indices[a + i]
                    total = values[0] * 0
                    for j in range(indptr[x], indptr[x + 1]):
                        total += values[indices[j]]
                    local[target, i] = total
            elif code == _SCATTER:
                for i in range(degree):
                    dense[target, indices[a + i]] = local[source, i]
            elif code == _MULTIPLY:
                for i in range(degree):
                    local[target, i] *= local[source, i]
            elif code == _WEIGH:
                for i in range(degree):
                    local[target, i] *= weights[source, indices[a + i]]
            elif code == _PUSH:
                if num_reached == 0:
                    if wide:
                        num_reached = indptr.size - 1
                        for z in range(num_reached):
                            reached[z] = z
                    else:
                        num_reached = _reach(indptr, indices, v, reached, seen)
                values = dense[target]
                for i in range(degree):
                    x = indices[a + i]
                    amount = local[source, i]
                    for j in range(indptr[x], indptr[x + 1]):
                        values[indices[j]] += amount
            elif code == _COPY_DENSE:
                for r in range(num_reached):
                    dense[target, reached[r]] = dense[source, reached[r]]
            elif code == _MULTIPLY_DENSE:
                for r in range(num_reached):
                    dense[target, reached[r]] *= dense[source, reached[r]]
            elif code == _WEIGH_DENSE:
                for r in range(num_reached):
                    dense[target, reached[r]] *= weights[source, reached[r]]
            elif code == _WIDEN:
                neighbour_sums(indptr, indices, dense[source], dense[target])
            elif code == _SUM:
                total = local[0, 0] * 0
                for i in range(degree):
                    total += local[source, i]
                scalars[target] = total
            else:
                total = local[0, 0] * 0
                for r in range(num_reached):
                    total += dense[source, reached[r]]
                scalars[target] = total
        for p in range(products.shape[0]):
            product = scalars[products[p, 0]]
            estimate = float(product)
            for c in range(1, products.shape[1]):
                if products[p, c] >= 0:
                    product *= scalars[products[p, c]]
                    estimate *= float(scalars[products[p, c]])
            totals[p] += product
            estimates[p] += estimate
        for o in range(ops.shape[0]):
            code, target = ops[o, 0], ops[o, 1]
            if code == _SCATTER:
                for i in range(degree):
                    dense[target, indices[a + i]] = 0
            elif code in (_PUSH, _COPY_DENSE, _WIDEN):
                for r in range(num_reached):
                    dense[target, reached[r]] = 0
        for r in range(num_reached):
            seen[reached[r]] = 0


@compiled
def _reach(indptr, indices, v, reached, seen):
    """List the vertices within exactly two steps of v (v itself is one). Return how many."""
    found = 0
    for i in range(indptr[v], indptr[v + 1]):
        x = indices[i]
        for j in range(indptr[x], indptr[x + 1]):
            z = indices[j]
            if not seen[z]:
                seen[z] = 1
                reached[found] = z
                found += 1
    return found
