"""Run a row program: homomorphism counts by dynamic programming over each row."""

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.device import CpuDevice, fitting
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import FLOATING, Domain, Op, RowProgram, RowTables
from longwall.kernels.jit.bisect import first_above
from longwall.kernels.jit.compile import compiled

_ONES, _PULL, _SCATTER, _MULTIPLY = int(Op.ONES), int(Op.PULL), int(Op.SCATTER), int(Op.MULTIPLY)
_WEIGH, _PUSH, _COPY_DENSE, _MULTIPLY_DENSE = int(Op.WEIGH), int(Op.PUSH), int(Op.COPY_DENSE), int(Op.MULTIPLY_DENSE)
_WEIGH_DENSE, _WIDEN, _SUM, _SUM_DENSE = int(Op.WEIGH_DENSE), int(Op.WIDEN), int(Op.SUM), int(Op.SUM_DENSE)
_GATHER, _LOAD, _WEIGH_ARC, _STORE_LOCAL = int(Op.GATHER), int(Op.LOAD), int(Op.WEIGH_ARC), int(Op.STORE_LOCAL)
_PUSH_EDGES, _WEIGH_ACROSS = int(Op.PUSH_EDGES), int(Op.WEIGH_ACROSS)


class CpuRowCounter:
    """Vectors of one worker."""

    def __init__(
        self,
        device: CpuDevice,
        graph: GraphArrays,
        tables: RowTables,
        program: RowProgram,
        domain: Domain,
        memory: int,
    ):
        over_vertices = domain == "vertices"
        longest = graph.max_degree if over_vertices else tables.longest
        n = graph.num_arcs if domain == "arcs" else graph.num_vertices
        reaches = n if any(op[0] in (Op.PUSH, Op.PUSH_EDGES) for op in program.ops) else 0
        self.workspace_bytes = fitting(
            8 * (max(program.num_local, 1) * longest + n * program.num_dense) + 4 * longest + 5 * reaches, memory
        )
        dtype = np.float64 if tables.modulus == FLOATING else np.int64
        near, common = (graph.indptr, graph.indices), (tables.common_indptr, tables.common)
        self._rows = (*(near if over_vertices else common), *(common if domain == "arcs" else near))
        self._tables = (
            tables.vertices if over_vertices else tables.arcs,
            tables.arcs if domain == "arcs" else tables.vertices,
            tables.arcs,
            tables.reverse,
            tables.common_indptr,
            tables.common,
        )
        self._modulus = max(tables.modulus, 0)
        self._blocks = graph.indptr if domain == "arcs" else np.zeros(1, np.int64)
        self._on_graph = domain == "common"
        self._program = program.packed()
        self._symmetric, self._wide = program.symmetric, wide_vectors(program)
        self._ends = np.empty(longest, np.uint32)
        self._local = np.empty((max(program.num_local, 1), longest), dtype)
        self._dense = np.zeros((max(program.num_dense, 1), n if program.num_dense else 1), dtype)
        self._scalars = np.zeros(max(program.num_scalars, 1), dtype)
        self._reached = np.empty(max(reaches, 1), np.uint32)
        self._seen = np.zeros(max(reaches, 1), np.uint8)
        self._totals = np.zeros(max(len(program.products), 1), dtype)
        self._estimates = np.zeros(max(len(program.products), 1), np.float64)
        self._number = len(program.products)
        self._stop_flag = device.stop_flag

    def add(self, first: int, last: int) -> None:
        """Run the program for a range of rows."""
        run_rows(
            *self._rows, self._on_graph, self._blocks, *self._tables, *self._program, self._wide, self._ends,
            self._local, self._dense, self._scalars, self._reached, self._seen, first, last, self._symmetric,
            self._modulus, self._totals, self._estimates, self._stop_flag,
        )  # fmt: skip

    def totals(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Sums of the program's products so far; the first ones mean nothing in floating point."""
        return self._totals[: self._number].view(np.int64), self._estimates[: self._number]


def wide_vectors(program: RowProgram) -> NDArray[np.uint8]:
    """Return which dense vectors may have numbers anywhere; others have them within two steps of v alone."""
    wide = np.zeros(max(program.num_dense, 1), np.uint8)
    for code, target, source, _ in program.ops:
        if code == Op.WIDEN or (code == Op.COPY_DENSE and wide[source]):
            wide[target] = 1
    return wide


@compiled(
    "i8[::1], u4[::1], i8[::1], u4[::1], b1, i8[::1], i8[:,::1], i8[:,::1], i8[:,::1], u4[::1], i8[::1], u4[::1], "
    "i8[:,::1], i8[:,::1], i8[:,::1], u1[::1], u4[::1], i8[:,::1], i8[:,::1], i8[::1], u4[::1], u1[::1], i8, i8, "
    "b1, i8, i8[::1], f8[::1], u1[::1]",
    "i8[::1], u4[::1], i8[::1], u4[::1], b1, i8[::1], f8[:,::1], f8[:,::1], f8[:,::1], u4[::1], i8[::1], u4[::1], "
    "i8[:,::1], i8[:,::1], i8[:,::1], u1[::1], u4[::1], f8[:,::1], f8[:,::1], f8[::1], u4[::1], u1[::1], i8, i8, "
    "b1, i8, f8[::1], f8[::1], u1[::1]",
)
def run_rows(
    starts, entries, indptr, indices, on_graph, blocks, tables, dense_tables, arc_tables, reverse, common_indptr,
    common, ops, products, stored, wide, ends, local, dense, scalars, reached, seen, first, last, symmetric, modulus,
    totals, estimates, stop_flag,
):  # fmt: skip
    """Run a row program for the rows first to last - 1.

    Parameters
    ----------
    starts, entries
        The rows: of the graph, or those of arcs.
    indptr, indices
        The rows that passes read.
    on_graph
        Whether rows are those of arcs, and passes read those of the graph: then entry e leads to `indices[e]`.
    blocks : int64[num_vertices + 1] or int64[1]
        Where the rows are those of arcs, the arcs of each vertex; else one zero.
    tables : dtype[number, rows]
    dense_tables : dtype[number, length of a dense vector]
        Tables over the rows, and over what dense vectors have entries for; dtype is int64 (counts modulo 2**64, or
        `modulus`) or float64 (their magnitude).
    arc_tables : dtype[number, num_arcs]
    reverse, common_indptr, common
        See :class:`longwall.kernels.interface.homomorphism_program.RowTables`.
    ops : int64[n, 4]
    products : int64[m, width]
    stored : int64[s, 2]
        See :class:`longwall.kernels.interface.homomorphism_program.RowProgram`.
    wide : uint8[num_dense]
        Which dense vectors may have numbers anywhere; see `wide_vectors`.
    ends : uint32[length of the longest row]
        Workspace.
    local : dtype[num_local, length of the longest row]
    dense : dtype[num_dense, rows that passes read]
        Workspace; `dense` is all zero and is left all zero.
    scalars : dtype[num_scalars]
        Workspace.
    reached : uint32[rows that passes read]
        Workspace: the vertices within two steps of v, as far as there are passes that push.
    seen : uint8[rows that passes read]
        Workspace, all zero; it is left all zero.
    first, last
        Range of rows.
    symmetric
        Whether dense vectors end at v.
    modulus
        A prime below 2**31, or 0.
    totals : dtype[m]
        The sums of the products are added here.
    estimates : float64[m]
        The same, as floating point.
    stop_flag : uint8[1]
        The kernel returns early once this is set.
    """
    block = first_above(blocks, first) - 1
    for v in range(first, last):
        if stop_flag[0]:
            break
        a = starts[v]
        degree = starts[v + 1] - a
        places = entries[a : a + degree]
        if on_graph and degree == 0:  # every sum over the row is 0
            continue
        row = ends[:degree]
        for i in range(degree):
            row[i] = indices[places[i]] if on_graph else places[i]
        num_reached = 0
        beyond = v + 1 if symmetric else indptr.size - 1
        low, high = 0, indptr.size - 1
        if blocks.size > 1:
            if degree == 0:  # every sum over the row is 0
                continue
            while blocks[block + 1] <= v:
                block += 1
            low, high = blocks[block], blocks[block + 1]
        for o in range(ops.shape[0]):
            code, target, source, weight = ops[o, 0], ops[o, 1], ops[o, 2], ops[o, 3]
            if code == _ONES:
                for i in range(degree):
                    local[target, i] = 1
            elif code == _PULL:
                values = dense[source]
                for i in range(degree):
                    x = row[i]
                    local[target, i] = _row_sum(indptr, indices, arc_tables, weight, x, values, modulus)
            elif code == _SCATTER:
                for i in range(degree):
                    dense[target, row[i]] = local[source, i]
            elif code == _MULTIPLY:
                for i in range(degree):
                    local[target, i] = _reduced(local[target, i] * local[source, i], modulus)
            elif code == _WEIGH:
                for i in range(degree):
                    local[target, i] = _reduced(local[target, i] * tables[source, places[i]], modulus)
            elif code == _WEIGH_ARC:
                for i in range(degree):
                    local[target, i] = _reduced(local[target, i] * arc_tables[source, a + i], modulus)
            elif code == _WEIGH_ACROSS:
                b = common_indptr[reverse[v]]
                for i in range(degree):
                    local[target, i] = _reduced(local[target, i] * arc_tables[source, common[b + i]], modulus)
            elif code == _GATHER:
                for i in range(degree):
                    local[target, i] = dense[source, row[i]]
            elif code == _STORE_LOCAL:
                for i in range(degree):
                    arc_tables[target, a + i] = local[source, i]
            elif code in (_PUSH, _PUSH_EDGES):
                if num_reached == 0:
                    num_reached = _reach(indptr, indices, row, low, min(high, beyond), reached, seen)
                values = dense[target]
                if code == _PUSH:
                    for i in range(degree):
                        x = row[i]
                        amount = local[source, i]
                        if weight < 0:
                            for j in range(indptr[x], indptr[x + 1]):
                                if indices[j] >= beyond:
                                    break
                                values[indices[j]] += amount
                        else:
                            for j in range(indptr[x], indptr[x + 1]):
                                values[indices[j]] += _reduced(amount * arc_tables[weight, j], modulus)
                else:
                    _push_edges(indptr, indices, v, reverse, common_indptr, common, beyond, values)
                if modulus:
                    for r in range(num_reached):
                        values[reached[r]] = _reduced(values[reached[r]], modulus)
            elif code == _COPY_DENSE:
                if wide[target]:
                    for z in range(low, high):
                        dense[target, z] = dense[source, z]
                else:
                    for r in range(num_reached):
                        dense[target, reached[r]] = dense[source, reached[r]]
            elif code == _MULTIPLY_DENSE:
                if wide[target]:
                    for z in range(low, high):
                        dense[target, z] = _reduced(dense[target, z] * dense[source, z], modulus)
                else:
                    for r in range(num_reached):
                        z = reached[r]
                        dense[target, z] = _reduced(dense[target, z] * dense[source, z], modulus)
            elif code == _WEIGH_DENSE:
                if wide[target]:
                    for z in range(low, high):
                        dense[target, z] = _reduced(dense[target, z] * dense_tables[source, z], modulus)
                else:
                    for r in range(num_reached):
                        z = reached[r]
                        dense[target, z] = _reduced(dense[target, z] * dense_tables[source, z], modulus)
            elif code == _WIDEN:
                near, values = reached[:num_reached], dense[target]
                if weight < 0 and not wide[source] and _is_less_work(indptr, near, low, high):
                    for y in near:
                        amount = dense[source, y]
                        if amount:
                            for j in range(indptr[y], indptr[y + 1]):
                                values[indices[j]] += amount
                    if modulus:
                        for z in range(low, high):
                            values[z] = _reduced(values[z], modulus)
                else:
                    for z in range(low, high):
                        values[z] = _row_sum(indptr, indices, arc_tables, weight, z, dense[source], modulus)
            elif code == _SUM:
                total = local[0, 0] * 0
                for i in range(degree):
                    total += local[source, i]
                scalars[target] = _reduced(total, modulus)
            elif code == _LOAD:
                scalars[target] = tables[source, v]
            else:
                total = local[0, 0] * 0
                if wide[source]:
                    for z in range(low, high):
                        total += dense[source, z]
                else:
                    for r in range(num_reached):
                        total += dense[source, reached[r]]
                if symmetric:
                    total = 2 * _reduced(total, modulus) - dense[source, v]
                scalars[target] = _reduced(total, modulus)
        for p in range(products.shape[0]):
            product = scalars[products[p, 0]]
            estimate = float(product)
            for c in range(1, products.shape[1]):
                if products[p, c] >= 0:
                    product = _reduced(product * scalars[products[p, c]], modulus)
                    estimate *= float(scalars[products[p, c]])
            totals[p] = _reduced(totals[p] + product, modulus)
            estimates[p] += estimate
            for s in range(stored.shape[0]):
                if stored[s, 0] == p:
                    tables[stored[s, 1], v] = product
        for o in range(ops.shape[0]):
            code, target = ops[o, 0], ops[o, 1]
            if code == _SCATTER:
                for i in range(degree):
                    dense[target, row[i]] = 0
            elif code in (_PUSH, _PUSH_EDGES, _COPY_DENSE, _WIDEN):
                if wide[target]:
                    for z in range(low, high):
                        dense[target, z] = 0
                else:
                    for r in range(num_reached):
                        dense[target, reached[r]] = 0
        for r in range(num_reached):
            seen[reached[r]] = 0


@compiled
def _is_less_work(indptr, near, low, high):
    """Return whether the rows of some vertices have fewer than half of the entries of all from low to high - 1."""
    steps = np.int64(0)
    for y in near:
        steps += indptr[y + 1] - indptr[y]
    return 2 * steps < indptr[high] - indptr[low]


@compiled
def _reduced(value, modulus):
    """Return a number that is not negative modulo `modulus`, if that is not 0."""
    if modulus:
        value %= modulus
    return value


@compiled
def _row_sum(indptr, indices, arc_tables, weight, x, values, modulus):
    """Sum `values` over the entries of row x, times a table over arcs where `weight` is one."""
    total = values[0] * 0
    if weight < 0:
        for j in range(indptr[x], indptr[x + 1]):
            total += values[indices[j]]
    else:
        for j in range(indptr[x], indptr[x + 1]):
            total += _reduced(values[indices[j]] * arc_tables[weight, j], modulus)
    return _reduced(total, modulus)


@compiled
def _push_edges(indptr, indices, v, reverse, common_indptr, common, beyond, values):
    """Add to values[z], z < beyond, the pairs (x, y) of adjacent common neighbours of v and z.

    They are walks v, y, z in the neighbourhood of x, which is listed; x < y is enough.
    """
    for i in range(indptr[v], indptr[v + 1]):
        x, a = indices[i], reverse[i]
        for j in range(common_indptr[a], common_indptr[a + 1]):
            b = common[j]
            if indices[b] < x:
                continue
            for k in range(common_indptr[b], common_indptr[b + 1]):
                z = indices[common[k]]
                if z >= beyond:
                    break
                values[z] += 2


@compiled
def _reach(indptr, indices, row, low, high, reached, seen):
    """List the neighbours of the entries of a row, or all from low to high - 1, whichever is quicker; below `high`.

    Return how many.
    """
    steps = np.int64(0)
    for x in row:
        steps += indptr[x + 1] - indptr[x]
    if 2 * steps >= high - low:
        for z in range(low, high):
            reached[z - low] = z
        return high - low
    found = 0
    for x in row:
        for j in range(indptr[x], indptr[x + 1]):
            z = indices[j]
            if z >= high:
                break
            if not seen[z]:
                seen[z] = 1
                reached[found] = z
                found += 1
    return found
