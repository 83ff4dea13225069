"""Tables over vertices and arcs, and the lists that they are made of."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.device import CpuDevice, fitting
from longwall.kernels.cpu.local_counts.arc_triangles import SKEW, arc_triangles, in_parallel
from longwall.kernels.cpu.local_counts.edges import add_cliques
from longwall.kernels.exact_numbers import require_fits
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import WORD, Make, RowTables, Step
from longwall.kernels.jit.bisect import first_at_least
from longwall.kernels.jit.compile import compiled


def common_neighbours(
    device: CpuDevice, graph: GraphArrays, reserve: Callable[[int], None]
) -> tuple[NDArray[np.int64], NDArray[np.uint32], int]:
    """List the common neighbours of all arcs."""
    g, lengths, starts = graph.rows, arc_triangles(device, graph), np.zeros(graph.num_arcs + 1, np.int64)
    np.cumsum(lengths, dtype=np.int64, out=starts[1:])
    reserve(4 * int(starts[-1]))
    common = np.empty(int(starts[-1]), np.uint32)

    def start() -> Callable[[int, int], Any]:
        places = np.zeros(graph.num_vertices, np.uint32)
        return lambda first, last: list_common(*g, first, last, places, starts, common, device.stop_flag)

    in_parallel(device, graph, start)
    return starts, common, int(lengths.max()) if lengths.size else 0


def reverse_arcs(device: CpuDevice, graph: GraphArrays) -> NDArray[np.uint32]:
    """List the place of every arc's reverse."""
    reverse = np.empty(graph.num_arcs, np.uint32)
    g = graph.rows
    in_parallel(device, graph, lambda: lambda first, last: list_reverse(*g, first, last, reverse))
    return reverse


def fill_tables(
    device: CpuDevice,  # noqa: ARG001
    graph: GraphArrays,
    tables: RowTables,
    steps: tuple[Step, ...],
) -> None:
    """Make tables from others."""
    for make, target, sources in steps:
        if make == Make.SUM_NEIGHBOURS:
            none, (vertex, arc) = np.empty(0, tables.vertices.dtype), sources
            neighbour_sums(
                graph.indptr,
                graph.indices,
                none if vertex < 0 else tables.vertices[vertex],
                none if arc < 0 else tables.arcs[arc],
                max(tables.modulus, 0),
                tables.vertices[target],
            )
        elif make == Make.LABEL:
            tables.vertices[target] = graph.labels == sources[0]
        elif make in (Make.MULTIPLY_VERTICES, Make.MULTIPLY_ARCS):
            _multiply(
                tables.vertices if make == Make.MULTIPLY_VERTICES else tables.arcs, target, sources, tables.modulus
            )
        else:
            tables.arcs[target] = _of_arcs(graph, tables, make, sources)


def _multiply(tables: NDArray[Any], target: int, sources: tuple[int, ...], modulus: int) -> None:
    out = tables[target]
    if len(sources) < 2:
        out[:] = tables[sources[0]] if sources else 1
        return
    first, *others = (tables[source] for source in sources)
    for other in others:
        np.multiply(first, other, out=out)
        first = out
        if modulus > WORD:
            out %= modulus


def _of_arcs(graph: GraphArrays, tables: RowTables, make: Make, sources: tuple[int, ...]) -> NDArray[Any]:
    """Return the entries of a table over arcs."""
    found: NDArray[Any]
    if make == Make.HEADS:
        found = tables.vertices[sources[0]][graph.indices]
    elif make == Make.TAILS:
        found = np.repeat(tables.vertices[sources[0]], np.diff(graph.indptr))
    elif make == Make.REVERSE:
        found = tables.arcs[sources[0]][tables.reverse]
    else:
        assert make == Make.ARC_TRIANGLES
        found = np.diff(tables.common_indptr)
    return found


def triangles_of_arcs(device: CpuDevice, graph: GraphArrays, out: NDArray[np.int64]) -> None:
    """Count the triangles of every arc."""
    out[:] = arc_triangles(device, graph)


def paths_of_arcs(device: CpuDevice, graph: GraphArrays, out: NDArray[np.int64], memory: int) -> None:
    """Count walks of three steps."""
    require_fits(graph.max_degree**2, 63, "the number of walks of three steps at an edge")
    fitting(device.workers * (8 * graph.num_arcs + 4 * graph.num_vertices), memory)
    found: list[NDArray[np.int64]] = []

    def start() -> Callable[[int, int], Any]:
        wedges, counts = np.zeros(graph.num_vertices, np.uint32), np.zeros(graph.num_arcs, np.int64)
        found.append(counts)
        return lambda first, last: count_cycles(*graph.rows, first, last, wedges, counts, device.stop_flag)

    in_parallel(device, graph, start)
    _add_up(found, out)
    join_both_arcs(device, graph, out, factor=1, walks=True)


def cliques_of_arcs(device: CpuDevice, graph: GraphArrays, out: NDArray[np.int64], memory: int) -> None:
    """Count pairs of adjacent common neighbours."""
    size = graph.max_out_degree
    words = (size + 63) // 64
    fitting(device.workers * (8 * graph.num_arcs + 4 * graph.num_vertices + 8 * size * (words + 1)), memory)
    found: list[NDArray[np.int64]] = []

    def start() -> Callable[[int, int], Any]:
        places, table = np.zeros(graph.num_vertices, np.uint32), np.zeros((size, words), np.uint64)
        sums, counts = np.zeros(size, np.int64), np.zeros(graph.num_arcs, np.int64)
        found.append(counts)
        # Arcs have the numbers of edges here: those to smaller neighbours come first in each row.
        return lambda first, last: add_cliques(
            *graph.rows, graph.indptr, first, last, places, sums, table, device.stop_flag, 0, counts
        )

    in_parallel(device, graph, start)
    _add_up(found, out)
    join_both_arcs(device, graph, out, factor=2, walks=False)


def _add_up(found: list[NDArray[np.int64]], out: NDArray[np.int64]) -> None:
    out[:] = 0
    for counts in found:
        out += counts


def join_both_arcs(device: CpuDevice, graph: GraphArrays, out: NDArray[np.int64], *, factor: int, walks: bool) -> None:
    """Set both arcs of every edge to the sum of their counts, times a factor; add the walks to and fro if asked for."""
    g = graph.rows
    in_parallel(device, graph, lambda: lambda first, last: join_arcs(*g, first, last, factor, walks, out))


@compiled("i8[::1], u4[::1], i8[::1], i8, i8, u4[::1], i8[::1], u4[::1], u1[::1]")
def list_common(indptr, indices, split, first, last, places, starts, common, stop_flag):
    """List the common neighbours of the ends of both arcs of every edge whose smaller end lies in first to last - 1.

    Parameters
    ----------
    indptr, indices, split
        The graph; `indices[split[v]:indptr[v + 1]]` are the neighbours of v with a larger id.
    first, last
        Range of vertices.
    places : uint32[num_vertices]
        Workspace, all zero; it is left all zero.
    starts : int64[num_arcs + 1]
        Where the lists of arcs begin.
    common : uint32[starts[-1]]
        The places of the arcs to them, ascending.
    stop_flag : uint8[1]
        The kernel returns early once this is set.
    """
    for x in range(first, last):
        if stop_flag[0]:
            break
        begin, end = indptr[x], indptr[x + 1]
        if split[x] == end:
            continue
        for i in range(begin, end):
            places[indices[i]] = i - begin + 1
        for i in range(split[x], end):
            if starts[i] == starts[i + 1]:
                continue
            v = indices[i]
            low, high = indptr[v], indptr[v + 1]
            to = starts[i]
            back_to = starts[low + first_at_least(indices[low:high], np.uint32(x))]
            if high - low > SKEW * (end - begin):
                for j in range(begin, end):
                    at = low + first_at_least(indices[low:high], indices[j])
                    if at < high and indices[at] == indices[j]:
                        common[to] = j
                        common[back_to] = at
                        to += 1
                        back_to += 1
                continue
            for j in range(low, high):
                place = places[indices[j]]
                if place:
                    common[to] = begin + place - 1
                    common[back_to] = j
                    to += 1
                    back_to += 1
        for i in range(begin, end):
            places[indices[i]] = 0


@compiled("i8[::1], u4[::1], i8[::1], i8[::1], i8, i8[::1]", "i8[::1], u4[::1], f8[::1], f8[::1], i8, f8[::1]")
def neighbour_sums(indptr, indices, vertices, arcs, modulus, out):
    """Set out[v] to the sum of arcs[v, x] * vertices[x] over the neighbours x of v; arrays of no entries are ones.

    Parameters
    ----------
    indptr, indices
        The graph.
    vertices : dtype[num_vertices] or dtype[0]
    arcs : dtype[num_arcs] or dtype[0]
    modulus
        A prime below 2**31, or 0.
    out : dtype[num_vertices]
    """
    for v in range(indptr.size - 1):
        out[v] = 0
        total = out[v]
        for j in range(indptr[v], indptr[v + 1]):
            value = arcs[j] if arcs.size else total * 0 + 1
            if vertices.size:
                value *= vertices[indices[j]]
            if modulus:
                value %= modulus
            total += value
        if modulus:
            total %= modulus
        out[v] = total


@compiled("i8[::1], u4[::1], i8[::1], i8, i8, u4[::1], i8[::1], u1[::1]")
def count_cycles(indptr, indices, split, first, last, wedges, counts, stop_flag):
    """Count the 4-cycles whose smallest vertex lies in first to last - 1, at an arc of each of their edges.

    As in `count_four_cycles` of ``local_counts/four_cycles.py``: a wedge v - x - y, of c with the same ends, is in
    c - 1 cycles, and so are its two arcs.

    Parameters
    ----------
    indptr, indices, split
        The graph.
    first, last
        Range of vertices.
    wedges : uint32[num_vertices]
        Workspace, all zero; it is left all zero.
    counts : int64[num_arcs]
        The cycles are added here.
    stop_flag : uint8[1]
        The kernel returns early once this is set.
    """
    for v in range(first, last):
        if stop_flag[0]:
            break
        for i in range(split[v], indptr[v + 1]):
            x = indices[i]
            j = indptr[x + 1] - 1
            # Rows ascend, so the vertices beyond v stand at the end.
            while indices[j] > v:
                wedges[indices[j]] += 1
                j -= 1
        for i in range(split[v], indptr[v + 1]):
            x = indices[i]
            j = indptr[x + 1] - 1
            own = np.int64(0)
            while indices[j] > v:
                cycles = np.int64(wedges[indices[j]]) - 1
                counts[j] += cycles
                own += cycles
                j -= 1
            counts[i] += own
        for i in range(split[v], indptr[v + 1]):
            x = indices[i]
            j = indptr[x + 1] - 1
            while indices[j] > v:
                wedges[indices[j]] = 0
                j -= 1


@compiled("i8[::1], u4[::1], i8[::1], i8, i8, i8, b1, i8[::1]")
def join_arcs(indptr, indices, split, first, last, factor, walks, counts):
    """Set the counts of both arcs of every edge (v, x) to `factor` times their sum, v in first to last - 1, v < x.

    Parameters
    ----------
    indptr, indices, split
        The graph.
    first, last
        Range of vertices.
    factor
        What the sums are multiplied by.
    walks
        Whether the walks of three steps that go to and fro are added: deg(v) + deg(x) - 1.
    counts : int64[num_arcs]
        Read and written.
    """
    for v in range(first, last):
        for j in range(split[v], indptr[v + 1]):
            x = indices[j]
            row, end = indptr[x], indptr[x + 1]
            back = row + first_at_least(indices[row:end], np.uint32(v))
            total = factor * (counts[j] + counts[back])
            if walks:
                total += indptr[v + 1] - indptr[v] + end - row - 1
            counts[j] = total
            counts[back] = total


@compiled("i8[::1], u4[::1], i8[::1], i8, i8, u4[::1]")
def list_reverse(indptr, indices, split, first, last, reverse):
    """Write the places of both arcs of every edge whose smaller end lies in first to last - 1 at one another's.

    Parameters
    ----------
    indptr, indices, split
        The graph.
    first, last
        Range of vertices.
    reverse : uint32[num_arcs]
        Written.
    """
    for v in range(first, last):
        for j in range(split[v], indptr[v + 1]):
            x = indices[j]
            row, end = indptr[x], indptr[x + 1]
            back = row + first_at_least(indices[row:end], np.uint32(v))
            reverse[j] = back
            reverse[back] = j
