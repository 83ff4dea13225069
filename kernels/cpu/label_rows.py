"""Rows of a graph that is laid out by label: counted, then written."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.engine import CpuDevice
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.label_rows import KeptEdges, RoleNumbers, RowArrays
from longwall.kernels.jit import compiled

LEAST_ARCS = 1 << 19  # of a piece of work, for with 16 threads a piece waits 2 ms
_PARTS = 8  # pieces for each thread


def rows_by_label(
    device: CpuDevice,
    graph: GraphArrays,
    vertices: RoleNumbers,
    kept: KeptEdges,
    *,
    sliced: bool,
    edge_labels: NDArray[np.int32] | None = None,
) -> "CpuLabelRows":
    """Make what makes rows by label; see :class:`longwall.kernels.interface.kernels.Kernels`."""
    return CpuLabelRows(device, graph, vertices, kept, sliced, edge_labels)


class CpuLabelRows:
    """Makes rows with the threads of the host; see :class:`longwall.kernels.interface.label_rows.LabelRows`."""

    def __init__(
        self,
        device: CpuDevice,
        graph: GraphArrays,
        vertices: RoleNumbers,
        kept: KeptEdges,
        sliced: bool,
        edge_labels: NDArray[np.int32] | None,
    ):
        labels = np.zeros(1, np.int32) if edge_labels is None else edge_labels
        self._workers, self._sliced, self._simple = device.workers, sliced, sliced and edge_labels is None
        self._graph, self._vertices, self._kept = (graph.indptr, graph.indices, graph.split, labels), vertices, kept

    def count(self) -> NDArray[np.uint32]:
        """Count the neighbours of all vertices in each role."""
        kind, _, origin, role, first_role, _ = self._vertices
        roles, shape = self._kept.allowed.shape[1:], (len(first_role) - 1, len(self._kept.labels) + 1)
        slices = np.zeros((len(origin), roles[0] + 1), np.uint32)

        def work(first: int, last: int) -> None:
            room = np.zeros(shape, np.int64), np.zeros(roles, np.int64)
            count_rows(*self._graph, kind, origin, role, first_role, *self._kept, first, last, *room, slices)

        self._each_part(origin, work)
        return slices

    def fill(self, vertices: RoleNumbers, rows: RowArrays) -> tuple[RowArrays, None]:
        """Write the rows."""
        kind, place, origin, role, _, final = vertices
        out = rows.slices, rows.indptr, rows.indices, rows.split
        if self._simple:  # the roles have one label each, and are the kinds
            rules = np.pad(self._kept.allowed[:, :, 0].astype(np.int64), ((0, 0), (0, 1)))
            numbers = final[place] if len(final) else place

        def work(first: int, last: int) -> None:
            cursor = np.zeros(rows.slices.shape[1], np.int64)
            if self._simple:
                fill_slices(*self._graph[:3], kind, numbers, origin, role, rules, first, last, cursor, *out)
                return
            room = np.zeros(self._kept.allowed.shape[1:], np.int64)
            which = *vertices, *self._kept, first, last, room, self._sliced, cursor
            fill_rows(*self._graph, *which, *out, rows.edge_labels)

        self._each_part(origin, work)
        return rows._replace(indices=rows.indices[:-1]), None

    def _each_part(self, origin: NDArray[np.int64], work: Callable[[int, int], None]) -> None:
        """Call a function for every range of the new vertices."""
        arcs = np.cumsum(np.diff(self._graph[0])[origin])
        total = int(arcs[-1]) if len(arcs) else 0
        at_once = max(LEAST_ARCS, total // (_PARTS * self._workers))
        cuts = np.searchsorted(arcs, range(0, total, at_once), side="left")
        parts = list(pairwise(sorted({0, *cuts.tolist(), len(arcs)})))
        if len(parts) <= 1:
            for part in parts:
                work(*part)
            return
        with ThreadPoolExecutor(min(self._workers, len(parts))) as pool:
            for done in [pool.submit(work, *part) for part in parts]:
                done.result()


@compiled
def edge_kind_of(label: int, labels: NDArray[np.int32]) -> int:
    """Return the number of a label of an edge."""
    for number in range(labels.size):
        if labels[number] == label:
            return number
    return labels.size


@compiled
def kept_to(allowed: Any, role: int, larger: int, kept: Any) -> None:
    """Set ``kept[r, label]`` to whether edges to vertices in role r are kept: to those of larger ids, or of smaller."""
    for r in range(kept.shape[0]):
        for edge_kind in range(kept.shape[1]):
            rule = allowed[role, r, edge_kind]
            kept[r, edge_kind] = rule == 1 or rule == 3 - larger


@compiled
def count_rows(
    indptr: Any, indices: Any, halves: Any, edge_labels: Any, kind: Any, origin: Any, role: Any, first_role: Any,
    labels: Any, allowed: Any, first: int, last: int, found: Any, kept: Any, slices: Any,
) -> None:  # fmt: skip
    """Count the neighbours of the vertices first to last - 1 in roles up to r, into ``slices[v, r + 1]``.

    Nothing branches on a label: those of neighbours are at random.
    """
    for v in range(first, last):
        u = origin[v]
        for larger in range(2):
            kept_to(allowed, role[v], larger, kept)
            found[:] = 0
            begin, end = (halves[u], indptr[u + 1]) if larger else (indptr[u], halves[u])
            for arc in range(begin, end):
                edge_kind = edge_kind_of(edge_labels[arc], labels) if labels.size else 0
                found[kind[indices[arc]], edge_kind] += 1
            for k in range(first_role.size - 1):
                for r in range(first_role[k], first_role[k + 1]):
                    for edge_kind in range(kept.shape[1]):
                        slices[v, r + 1] += found[k, edge_kind] * kept[r, edge_kind]
        for r in range(kept.shape[0]):
            slices[v, r + 1] += slices[v, r]


@compiled
def fill_slices(
    indptr: Any, indices: Any, halves: Any, kind: Any, numbers: Any, origin: Any, role: Any, rules: Any,
    first: int, last: int, cursor: Any, slices: Any, new_indptr: Any, new_indices: Any, split: Any,
) -> None:  # fmt: skip
    """Do as `fill_rows` where rows have slices and edges no labels: a vertex of kind k is in role k, or in none."""
    nowhere = new_indices.size - 1
    for v in range(first, last):
        u, own = origin[v], role[v]
        for r in range(cursor.size - 1):
            cursor[r] = new_indptr[v] + slices[v, r]
        for larger in range(2):
            begin, end = (halves[u], indptr[u + 1]) if larger else (indptr[u], halves[u])
            for arc in range(begin, end):
                x = indices[arc]
                k = kind[x]
                keep = rules[own, k]
                at = cursor[k] if keep else nowhere
                new_indices[at] = numbers[x]
                cursor[k] += keep
            if not larger:
                split[v] = cursor[own]


@compiled
def fill_rows(
    indptr: Any, indices: Any, halves: Any, edge_labels: Any, kind: Any, place: Any, origin: Any, role: Any,
    first_role: Any, final: Any, labels: Any, allowed: Any, first: int, last: int, kept: Any, sliced: bool,
    cursor: Any, slices: Any, new_indptr: Any, new_indices: Any, split: Any, new_edge_labels: Any,
) -> None:  # fmt: skip
    """Write the rows of the vertices first to last - 1, whose slices are known; what is not kept has the last place."""
    nowhere = new_indices.size - 1
    for v in range(first, last):
        u = origin[v]
        for r in range(cursor.size):
            cursor[r] = new_indptr[v] + (slices[v, r] if sliced else 0)
        for larger in range(2):
            kept_to(allowed, role[v], larger, kept)
            begin, end = (halves[u], indptr[u + 1]) if larger else (indptr[u], halves[u])
            for arc in range(begin, end):
                x = indices[arc]
                edge_kind = edge_kind_of(edge_labels[arc], labels) if labels.size else 0
                number = place[x]
                for r in range(first_role[kind[x]], first_role[kind[x] + 1]):
                    keep = kept[r, edge_kind]
                    row = r if sliced else 0
                    at = cursor[row] if keep else nowhere
                    new_indices[at] = final[number]
                    if edge_labels.size > 1:
                        new_edge_labels[at] = edge_labels[arc]
                    cursor[row] += keep
                    number += np.uint32(1)
            if not larger:  # inside a role, vertices have the order that they have in the data graph
                split[v] = cursor[role[v] if sliced else 0]
