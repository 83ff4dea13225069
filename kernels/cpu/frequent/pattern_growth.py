"""Grow patterns by one edge on the CPU; see :mod:`longwall.kernels.interface.pattern_growth`."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.device import CpuDevice
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.pattern_growth import NO_EXTENSION, GrowthBatch, Images, TypedGraph
from longwall.kernels.jit.bisect import stands_in
from longwall.kernels.jit.compile import compiled

_ONE = np.uint32(1)


@compiled
def _edge_type(runs, types, begins, indices, targets, u, vertex, label):
    """The type of the edge from u to a vertex of a label, -1 where there is none."""
    begin, end = runs[u], runs[u + 1]
    while begin < end:
        middle = (begin + end) >> 1
        if targets[types[middle]] < label:
            begin = middle + 1
        else:
            end = middle
    while begin < runs[u + 1] and targets[types[begin]] == label:
        if stands_in(indices[begins[begin] : begins[begin + 1]], vertex):
            return types[begin]
        begin += 1
    return np.int32(-1)


@compiled
def _edge_types(runs, types, begins, indices, targets, known, labels, size, place, at, vertices, found):
    """The types of the edges from the vertex at a place of the path to all vertices of a row."""
    u = vertices[at]
    for y in range(size):
        if y == at:
            found[y] = -1
        elif known[place, y] >= 0:
            found[y] = known[place, y]
        else:
            found[y] = _edge_type(runs, types, begins, indices, targets, u, vertices[y], labels[y])


@compiled
def _new_vertices(types, begins, run, size, found):
    """How many vertices of a run are not in the row."""
    count = begins[run + 1] - begins[run]
    for y in range(size):
        if found[y] == types[run]:
            count -= 1
    return count


@compiled
def _load(rows, row, columns, size, vertices):
    for y in range(size):
        vertices[y] = rows[columns[y], row]


@compiled(
    "i8[::1], i4[::1], i8[::1], u4[::1], i4[::1], i8[::1], i4[::1], i4[:,::1], i4[:,::1], i4[::1], i4[:,::1], "
    "i4[:,:,::1], i8[:,::1], i8[:,::1], u4[:,::1], u4[::1], i4[::1], u1[::1], i8[::1]"
)
def _count(
    runs, types, begins, indices, targets,
    first, sizes, columns, labels, path_sizes, paths, known, forward, backward,
    rows, vertices, found, stop, counts,
):  # fmt: skip
    for row in range(rows.shape[1]):
        if row & 1023 == 0 and stop[0]:
            return
        p = rows[0, row] - first[0]
        size = sizes[p]
        _load(rows, row, columns[p], size, vertices)
        for place in range(path_sizes[p]):
            base = forward[p, place]
            if base == NO_EXTENSION and not (place == 0 and path_sizes[p] > 2):
                continue
            at = paths[p, place]
            _edge_types(
                runs, types, begins, indices, targets, known[p], labels[p], size, place, at, vertices, found
            )  # fmt: skip
            if base != NO_EXTENSION:
                u = vertices[at]
                for run in range(runs[u], runs[u + 1]):
                    new = _new_vertices(types, begins, run, size, found)
                    if new:
                        counts[base + types[run]] += new
            if place == 0:
                for other in range(2, path_sizes[p]):
                    edge = found[paths[p, other]]
                    if backward[p, other] != NO_EXTENSION and edge >= 0:
                        counts[backward[p, other] + edge] += 1


@compiled(
    "i8[::1], i4[::1], i8[::1], u4[::1], i4[::1], i4[::1], i8[::1], i4[::1], i4[:,::1], i4[:,::1], i4[::1], "
    "i4[:,::1], i4[:,:,::1], i8[:,::1], i8[:,::1], u4[:,::1], u4[::1], i4[::1], u1[::1], i4[::1], u4[:,::1]"
)
def _mark_groups(
    runs, types, begins, indices, targets, groups,
    first, sizes, columns, labels, path_sizes, paths, known, forward, backward,
    rows, vertices, found, stop, alive, images,
):  # fmt: skip
    for row in range(rows.shape[1]):
        if row & 1023 == 0 and stop[0]:
            return
        p = rows[0, row] - first[0]
        size = sizes[p]
        _load(rows, row, columns[p], size, vertices)
        group = groups[vertices[0]]
        word, bit = group >> 5, _ONE << np.uint32(group & 31)
        for place in range(path_sizes[p]):
            at = paths[p, place]
            _edge_types(
                runs, types, begins, indices, targets, known[p], labels[p], size, place, at, vertices, found
            )  # fmt: skip
            base = forward[p, place]
            if base != NO_EXTENSION:
                u = vertices[at]
                for run in range(runs[u], runs[u + 1]):
                    number = alive[base + types[run]]
                    if number >= 0 and _new_vertices(types, begins, run, size, found):
                        images[number, word] |= bit
            if place == 0:
                for other in range(2, path_sizes[p]):
                    edge = found[paths[p, other]]
                    if backward[p, other] != NO_EXTENSION and edge >= 0:
                        number = alive[backward[p, other] + edge]
                        if number >= 0:
                            images[number, word] |= bit


@compiled
def _add_image(extension, y, vertex, alive, sets, wanted, left_open, left):
    """Add an image of a vertex of the pattern; `extension` is done when all of its vertices have as many as wanted."""
    number = alive[extension]
    word, bit = vertex >> 5, _ONE << np.uint32(vertex & 31)
    if number < 0 or sets[number, y, word] & bit:
        return
    sets[number, y, word] |= bit
    wanted[number, y] -= 1
    if wanted[number, y] == 0:
        left_open[number] -= 1
        if left_open[number] == 0:
            alive[extension] = -1
            left[0] -= 1


@compiled(
    "i8[::1], i4[::1], i8[::1], u4[::1], i4[::1], i8[::1], i4[::1], i4[:,::1], i4[:,::1], i4[::1], i4[:,::1], "
    "i4[:,:,::1], i8[:,::1], i8[:,::1], u4[:,::1], i8, i8, i8[::1], i8, u4[::1], i4[::1], u1[::1], i4[::1], "
    "u4[:,:,::1], i4[:,::1], i4[::1], i4[::1]"
)
def _mark_images(
    runs, types, begins, indices, targets,
    first, sizes, columns, labels, path_sizes, paths, known, forward, backward,
    rows, begin, end, seen, stamp, vertices, found, stop,
    alive, sets, wanted, left_open, left,
):  # fmt: skip
    """Rows begin to end - 1 are of one pattern. Return the next stamp.

    All vertices of a run are images of the new vertex, but for those of the row. So a run is gone through for the first
    row alone that comes to it; for each later one, only vertices of the first row can be new.
    """
    p = rows[0, begin] - first[0]
    size = sizes[p]
    for place in range(path_sizes[p]):
        at, base = paths[p, place], forward[p, place]
        if base == NO_EXTENSION and not (place == 0 and path_sizes[p] > 2):
            continue
        for row in range(begin, end):
            if left[0] == 0 or (row & 1023 == 0 and stop[0]):
                return stamp + rows.shape[1]
            _load(rows, row, columns[p], size, vertices)
            _edge_types(
                runs, types, begins, indices, targets, known[p], labels[p], size, place, at, vertices, found
            )  # fmt: skip
            u = vertices[at]
            if base != NO_EXTENSION:
                before = np.int64(seen[u]) - stamp
                for run in range(runs[u], runs[u + 1]):
                    extension = base + types[run]
                    if alive[extension] < 0 or not _new_vertices(types, begins, run, size, found):
                        continue
                    for y in range(size):
                        _add_image(extension, y, vertices[y], alive, sets, wanted, left_open, left)
                if before < 0:
                    seen[u] = stamp + row
                    for run in range(runs[u], runs[u + 1]):
                        extension = base + types[run]
                        if alive[extension] < 0:
                            continue
                        for i in range(begins[run], begins[run + 1]):
                            vertex = indices[i]
                            inside = False
                            for y in range(size):
                                inside |= vertices[y] == vertex
                            if not inside:
                                _add_image(extension, size, vertex, alive, sets, wanted, left_open, left)
                else:
                    for y in range(size):
                        vertex = rows[columns[p, y], before]
                        inside = False
                        for z in range(size):
                            inside |= vertices[z] == vertex
                        if not inside:
                            edge = _edge_type(runs, types, begins, indices, targets, u, vertex, labels[p, y])
                            if edge >= 0:
                                _add_image(base + edge, size, vertex, alive, sets, wanted, left_open, left)
            if place == 0:
                for other in range(2, path_sizes[p]):
                    edge = found[paths[p, other]]
                    if backward[p, other] != NO_EXTENSION and edge >= 0:
                        for y in range(size):
                            _add_image(
                                backward[p, other] + edge, y, vertices[y], alive, sets, wanted, left_open, left
                            )  # fmt: skip
        stamp += rows.shape[1]
    return stamp


@compiled(
    "i8[::1], i4[::1], i8[::1], u4[::1], i4[::1], i8[::1], i4[::1], i4[:,::1], i4[:,::1], i4[::1], i4[:,::1], "
    "i4[:,:,::1], i8[:,::1], i8[:,::1], u4[:,::1], u4[::1], i4[::1], u1[::1], i4[::1], b1, i8[::1], i4[::1], "
    "u4[::1]"
)
def _grow(
    runs, types, begins, indices, targets,
    first, sizes, columns, labels, path_sizes, paths, known, forward, backward,
    rows, vertices, found, stop, alive, writing, offsets, numbers, new,
):  # fmt: skip
    """Count the children of each row into `offsets`, or write them from there on."""
    for row in range(rows.shape[1]):
        if row & 1023 == 0 and stop[0]:
            return
        p = rows[0, row] - first[0]
        size = sizes[p]
        _load(rows, row, columns[p], size, vertices)
        out = offsets[row] if writing else 0
        for place in range(path_sizes[p]):
            base = forward[p, place]
            if base == NO_EXTENSION and not (place == 0 and path_sizes[p] > 2):
                continue
            at = paths[p, place]
            _edge_types(
                runs, types, begins, indices, targets, known[p], labels[p], size, place, at, vertices, found
            )  # fmt: skip
            if place == 0:
                for other in range(2, path_sizes[p]):
                    edge = found[paths[p, other]]
                    if backward[p, other] == NO_EXTENSION or edge < 0 or alive[backward[p, other] + edge] < 0:
                        continue
                    if writing:
                        numbers[out] = alive[backward[p, other] + edge]
                        new[out] = vertices[paths[p, other]]
                    out += 1
            if base == NO_EXTENSION:
                continue
            u = vertices[at]
            for run in range(runs[u], runs[u + 1]):
                number = alive[base + types[run]]
                if number < 0:
                    continue
                if not writing:
                    out += _new_vertices(types, begins, run, size, found)
                    continue
                for i in range(begins[run], begins[run + 1]):
                    vertex = indices[i]
                    inside = False
                    for y in range(size):
                        inside |= vertices[y] == vertex
                    if not inside:
                        numbers[out] = number
                        new[out] = vertex
                        out += 1
        if not writing:
            offsets[row] = out


class CpuGrower:
    """Workspace of one worker; see :class:`longwall.kernels.interface.pattern_growth.GrowKernel`.

    Parameters
    ----------
    device
        Its stop flag makes kernels return.
    graph
        The graph.
    memory
        Bytes that it may take; 8 for every vertex, if images are marked.

    Raises
    ------
    WorkspaceTooLarge
        From `mark_images`, if there is too little memory.
    """

    def __init__(self, device: CpuDevice, graph: TypedGraph, memory: int):
        self._graph, self._memory, self._stop_flag = graph, memory, device.stop_flag
        self._seen: NDArray[np.int64] | None = None
        self._stamp = 1

    def count(self, rows: NDArray[np.uint32], growth: GrowthBatch, counts: NDArray[np.int64]) -> None:
        """Add how many rows the grown patterns will have."""
        _count(  # type: ignore[call-arg]
            *self._graph_arrays(), *_patterns(growth), rows, *_row(growth), self._stop_flag, counts
        )

    def mark_groups(
        self, rows: NDArray[np.uint32], growth: GrowthBatch, alive: NDArray[np.int32], images: NDArray[np.uint32]
    ) -> None:
        """Set the bit of each transaction that has a row."""
        _mark_groups(  # type: ignore[call-arg]
            *self._graph_arrays(), self._graph.groups, *_patterns(growth), rows, *_row(growth), self._stop_flag,
            alive, images,
        )  # fmt: skip

    def mark_images(self, rows: NDArray[np.uint32], growth: GrowthBatch, images: Images) -> None:
        """Add images."""
        if self._seen is None:
            if 8 * self._graph.num_vertices > self._memory:
                raise WorkspaceTooLarge(8 * self._graph.num_vertices)
            self._seen = np.zeros(self._graph.num_vertices, np.int64)
        cuts = np.flatnonzero(np.diff(rows[0])) + 1
        bounds = [0, *cuts.tolist(), rows.shape[1]]
        for begin, end in pairwise(bounds):
            self._stamp = _mark_images(  # type: ignore[call-arg]
                *self._graph_arrays(), *_patterns(growth), rows, begin, end, self._seen, self._stamp, *_row(growth),
                self._stop_flag, *images.arrays(),
            )  # fmt: skip

    def sizes(self, sets: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Count the bits of sets."""
        counts: NDArray[np.int64] = np.bitwise_count(sets).sum(axis=-1, dtype=np.int64)
        return counts

    def child_counts(
        self, rows: NDArray[np.uint32], growth: GrowthBatch, alive: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """How many rows each row grows into."""
        counts = np.zeros(rows.shape[1], np.int64)
        self._grow(rows, growth, alive, counts, np.empty(1, np.int32), np.empty(1, np.uint32), writing=False)
        return counts

    def children(
        self, rows: NDArray[np.uint32], growth: GrowthBatch, alive: NDArray[np.int32], offsets: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
        """Grow rows."""
        numbers, new = np.zeros(int(offsets[-1]), np.int32), np.zeros(int(offsets[-1]), np.uint32)
        self._grow(rows, growth, alive, offsets, numbers, new, writing=True)
        return numbers, new

    def _grow(
        self,
        rows: NDArray[np.uint32],
        growth: GrowthBatch,
        alive: NDArray[np.int32],
        offsets: NDArray[np.int64],
        numbers: NDArray[np.int32],
        new: NDArray[np.uint32],
        *,
        writing: bool,
    ) -> None:
        _grow(  # type: ignore[call-arg]
            *self._graph_arrays(), *_patterns(growth), rows, *_row(growth), self._stop_flag, alive, writing, offsets,
            numbers, new,
        )  # fmt: skip

    def _graph_arrays(self) -> tuple[NDArray[np.int64], ...]:
        graph = self._graph
        return graph.runs, graph.types, graph.begins, graph.indices, graph.targets


def _patterns(growth: GrowthBatch) -> tuple[NDArray[np.int64], ...]:
    return (
        growth.first, growth.sizes, growth.columns, growth.labels, growth.path_sizes, growth.paths, growth.known,
        growth.forward, growth.backward,
    )  # fmt: skip


def _row(growth: GrowthBatch) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """Room for the vertices of a row, and the types of edges to them."""
    width = growth.labels.shape[1]
    return np.empty(width, np.uint32), np.empty(width, np.int32)
