"""Grow patterns by one edge on the CPU; see :mod:`longwall.kernels.interface.pattern_growth`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.device import CpuDevice
from longwall.kernels.cpu.frequent.image_marks import mark_images
from longwall.kernels.cpu.frequent.typed_runs import edge_type, end_of_pattern
from longwall.kernels.interface.engine import WorkspaceTooLarge
from longwall.kernels.interface.pattern_growth import NO_EXTENSION, GrowthBatch, Images, TypedGraph
from longwall.kernels.jit.compile import compiled

_ONE = np.uint32(1)
_COUNT_VERTEX_BYTES, _MARK_VERTEX_BYTES, _MARK_TYPE_BYTES = 12, 44, 8  # of workspaces, for vertices and edge types
_FIRST_ROWS = 1024  # rows that are marked before finished extensions are left out


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
            found[y] = edge_type(runs, types, begins, indices, targets, u, vertices[y], labels[y])


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


@compiled
def _count_runs(runs, types, begins, rows, column, begin, end, base, times, touched, counts):
    """Count the vertices of all runs of the vertices in a column: once for each of these, times its rows."""
    num_touched = 0
    for row in range(begin, end):
        u = rows[column, row]
        if times[u] == 0:
            touched[num_touched] = u
            num_touched += 1
        times[u] += 1
    for place in range(num_touched):
        u = touched[place]
        for run in range(runs[u], runs[u + 1]):
            counts[base + types[run]] += times[u] * (begins[run + 1] - begins[run])
        times[u] = 0


@compiled(
    "i8[::1], i4[::1], i8[::1], u4[::1], i4[::1], i8[::1], i4[::1], i4[:,::1], i4[:,::1], i4[::1], i4[:,::1], "
    "i4[:,:,::1], i8[:,::1], i8[:,::1], u4[:,::1], i8[::1], u4[::1], u1[::1], i8[::1]"
)
def _count(
    runs, types, begins, indices, targets,
    first, sizes, columns, labels, path_sizes, paths, known, forward, backward,
    rows, times, touched, stop, counts,
):  # fmt: skip
    """Count all vertices of a run as new ones, and subtract those of the row."""
    begin = 0
    while begin < rows.shape[1] and not stop[0]:
        end = end_of_pattern(rows, begin)
        p = rows[0, begin] - first[0]
        for place in range(path_sizes[p]):
            at, base = paths[p, place], forward[p, place]
            column = columns[p, at]
            if base != NO_EXTENSION:
                _count_runs(runs, types, begins, rows, column, begin, end, base, times, touched, counts)
            for y in range(sizes[p]):
                if y == at:
                    continue
                if known[p, place, y] >= 0:
                    if base != NO_EXTENSION:
                        counts[base + known[p, place, y]] -= end - begin
                    continue
                closing = NO_EXTENSION
                if place == 0:
                    for other in range(2, path_sizes[p]):
                        if paths[p, other] == y:
                            closing = backward[p, other]
                if base == NO_EXTENSION and closing == NO_EXTENSION:
                    continue
                for row in range(begin, end):
                    if row & 1023 == 0 and stop[0]:
                        return
                    edge = edge_type(
                        runs, types, begins, indices, targets, rows[column, row], rows[columns[p, y], row], labels[p, y]
                    )  # fmt: skip
                    if edge < 0:
                        continue
                    if base != NO_EXTENSION:
                        counts[base + edge] -= 1
                    if closing != NO_EXTENSION:
                        counts[closing + edge] += 1
        begin = end


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


@compiled("u4[:,::1], i8[::1], i4[::1], u4[::1], i8, i8, i8[::1], u4[:,::1]")
def _group(rows, offsets, numbers, vertices, first, low, ends, columns):
    """Sort grown rows by number, by counting; `ends` has a zero for each number from `low` on."""
    for i in range(len(numbers)):
        ends[numbers[i] - low] += 1
    total = 0
    for number in range(len(ends)):
        ends[number], total = total, total + ends[number]
    last = rows.shape[0]
    for row in range(rows.shape[1]):
        for i in range(offsets[row], offsets[row + 1]):
            out = ends[numbers[i] - low]
            ends[numbers[i] - low] += 1
            columns[0, out] = numbers[i] + first
            for level in range(1, last):
                columns[level, out] = rows[level, row]
            columns[last, out] = vertices[i]


class CpuGrower:
    """Workspace of one worker; see :class:`longwall.kernels.interface.pattern_growth.GrowKernel`.

    Parameters
    ----------
    device
        Its stop flag makes kernels return.
    graph
        The graph.
    memory
        Bytes that it may take: 12 for every vertex, if rows are counted; 44, and 8 for every edge type, if images are
        marked.

    Raises
    ------
    WorkspaceTooLarge
        From `count` and `mark_images`, if there is too little memory.
    """

    def __init__(self, device: CpuDevice, graph: TypedGraph, memory: int):
        self._graph, self._memory, self._stop_flag = graph, memory, device.stop_flag
        self._counting: tuple[Any, ...] | None = None
        self._marking: tuple[Any, ...] | None = None
        self._stamp = 1

    @property
    def counting_bytes(self) -> int:
        """Bytes that counting takes."""
        return _COUNT_VERTEX_BYTES * self._graph.num_vertices

    @property
    def marking_bytes(self) -> int:
        """Bytes that marking images takes."""
        return _MARK_VERTEX_BYTES * self._graph.num_vertices + _MARK_TYPE_BYTES * len(self._graph.targets)

    def count(self, rows: NDArray[np.uint32], growth: GrowthBatch, counts: NDArray[np.int64]) -> None:
        """Add how many rows the grown patterns will have."""
        if self._counting is None:
            n = self._graph.num_vertices
            self._require(self.counting_bytes)
            self._counting = np.zeros(n, np.int64), np.empty(n, np.uint32)
        _count(  # type: ignore[call-arg]
            *self._graph_arrays(), *_patterns(growth), rows, *self._counting, self._stop_flag, counts
        )

    def _require(self, size: int) -> None:
        if size > self._memory:
            raise WorkspaceTooLarge(size)

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
        if self._marking is None:
            n, kinds = self._graph.num_vertices, len(self._graph.targets)
            self._require(self.marking_bytes)
            masks = (np.zeros(n, np.uint64) for _ in range(4))
            numbers = np.full(kinds, -1, np.int32), np.empty(kinds, np.int32)
            self._marking = np.zeros(n, np.int64), *masks, np.empty(n, np.uint32), *numbers
        # All rows at once if no support can be reached earlier.
        block = _FIRST_ROWS if int(images.wanted.min()) <= rows.shape[1] else rows.shape[1]
        self._stamp = mark_images(  # type: ignore[call-arg]
            *self._graph_arrays(), *_patterns(growth), rows, self._stamp, block, *self._marking,
            np.empty(rows.shape[1], np.uint64), self._stop_flag, *images.arrays(),
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

    def grouped(
        self,
        rows: NDArray[np.uint32],
        offsets: NDArray[np.int64],
        numbers: NDArray[np.int32],
        vertices: NDArray[np.uint32],
        first: int,
    ) -> NDArray[np.uint32]:
        """Group grown rows."""
        columns = np.empty((rows.shape[0] + 1, len(numbers)), np.uint32)
        if not len(numbers):
            return columns
        low, high = int(numbers.min()), int(numbers.max())
        _group(rows, offsets, numbers, vertices, first, low, np.zeros(high - low + 1, np.int64), columns)
        return columns

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
