"""Count homomorphisms of small patterns to the common neighbours of every edge's ends."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.device import CpuDevice, fitting
from longwall.kernels.cpu.local_counts.arc_triangles import in_parallel
from longwall.kernels.exact_numbers import require_fits
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import Inner, RowTables
from longwall.kernels.jit.bits import popcount
from longwall.kernels.jit.compile import compiled

_TRIANGLES, _PAWS, _CYCLES = int(Inner.TRIANGLES), int(Inner.PAWS), int(Inner.CYCLES)


def inner_counts(
    device: CpuDevice, graph: GraphArrays, tables: RowTables, inner: Inner, out: NDArray[np.int64], memory: int
) -> None:
    """Count among common neighbours."""
    # Two edges cover each pattern that is mapped to the common neighbours.
    require_fits(min(tables.longest**4, graph.num_arcs**2), 63, "the number of maps to common neighbours")
    words = tables.longest * ((tables.longest + 63) // 64)
    fitting(device.workers * (8 * words + 8 * tables.longest + 4 * graph.max_degree), memory)

    def start() -> Callable[[int, int], Any]:
        slots, degrees = np.zeros(graph.max_degree, np.uint32), np.empty(tables.longest, np.int64)
        table = np.empty(words, np.uint64)
        lists = tables.common_indptr, tables.common, tables.reverse
        return lambda first, last: count_inner(
            graph.indptr, graph.split, *lists, int(inner), first, last, slots, degrees, table, device.stop_flag, out
        )

    out[:] = 0
    in_parallel(device, graph, start)


@compiled("i8[::1], i8[::1], i8[::1], u4[::1], u4[::1], i8, i8, i8, u4[::1], i8[::1], u8[::1], u1[::1], i8[::1]")
def count_inner(
    indptr, split, starts, common, reverse, inner, first, last, slots, degrees, table, stop_flag, out
):  # fmt: skip
    """Count homomorphisms to the common neighbours of both arcs of the edges whose larger end is in a range.

    Row i of a bitmap table says which common neighbours are adjacent to number i, so the common neighbours that two of
    them have there are an AND of two rows.

    Parameters
    ----------
    indptr, split
        The graph; `indptr[v]` to `split[v]` are the arcs to smaller neighbours.
    starts : int64[num_arcs + 1]
    common : uint32[6 * triangles]
    reverse : uint32[num_arcs]
        See :class:`longwall.kernels.interface.homomorphism_program.RowTables`.
    inner
        What is mapped: an :class:`longwall.kernels.interface.homomorphism_program.Inner`.
    first, last
        Range of vertices.
    slots : uint32[max_degree]
        Workspace, all zero; it is left all zero.
    degrees : int64[longest]
        Workspace, for the most common neighbours of an edge.
    table : uint64[longest * words]
        Workspace.
    stop_flag : uint8[1]
        The kernel returns early once this is set.
    out : int64[num_arcs]
        Written.
    """
    for v in range(first, last):
        if stop_flag[0]:
            break
        own = indptr[v]
        for arc in range(own, split[v]):
            begin, size = starts[arc], starts[arc + 1] - starts[arc]
            if size < 2:
                continue
            width = (size + 63) >> 6
            table[: size * width] = 0
            for i in range(size):
                slots[common[begin + i] - own] = i + 1
            for i in range(size):
                beside = common[begin + i]
                degree = np.int64(0)
                for at in range(starts[beside], starts[beside + 1]):
                    slot = np.int64(slots[common[at] - own]) - 1
                    if slot >= 0:
                        table[i * width + (slot >> 6)] |= np.uint64(1) << np.uint64(slot & 63)
                        degree += 1
                degrees[i] = degree
            total = np.int64(0)
            for i in range(size):
                if degrees[i] == 0:
                    continue
                for j in range(i):
                    if inner != _CYCLES and not (table[i * width + (j >> 6)] >> np.uint64(j & 63)) & np.uint64(1):
                        continue
                    both = np.int64(0)
                    for w in range(width):
                        both += popcount(table[i * width + w] & table[j * width + w])
                    # Both orders of i and j.
                    if inner == _TRIANGLES:
                        total += 2 * both
                    elif inner == _PAWS:
                        total += both * (degrees[i] + degrees[j])
                    else:
                        total += 2 * both * both
                if inner == _CYCLES:
                    total += degrees[i] * degrees[i]
            out[arc] = total
            out[reverse[arc]] = total
            for i in range(size):
                slots[common[begin + i] - own] = 0
