"""Run a search program over rows of partial embeddings: count what they lead to, or extend them by one level.

Both kernels walk rows in order and recompute only the sets that depend on a column that changed since the
row before, so rows that share a prefix share its intersections (prefix grouping, GAMMA Optimization 2).

An intersection either scans the new adjacency against marked members of the earlier set, or searches for the
members in the adjacency, whichever reads less; both are linear in the shorter side up to a logarithm.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.device import CpuDevice, exact, fitting
from longwall.kernels.cpu.search.prefix_tree import columns, edges
from longwall.kernels.exact_numbers import exact_number
from longwall.kernels.interface.frontier import frontier
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.pages import RowReads
from longwall.kernels.interface.search import Extension
from longwall.kernels.interface.search_program import (
    ProgramArrays,
    SearchProgram,
    SetKind,
    emitted_set,
    in_slices,
    pack,
    to_count,
    to_extend,
)
from longwall.kernels.jit.bisect import first_above, first_at_least, stands_in
from longwall.kernels.jit.compile import compiled

# Columns of ProgramArrays.sets.
_KIND, _SOURCE, _ADJACENT, _BELOW, _ABOVE, _LABEL, _REQUIRED, _SIZE_ONLY, _MARK = 1, 2, 3, 4, 5, 6, 7, 8, 9
_ADJACENCY, _LABELLED, _INTERSECT = int(SetKind.ADJACENCY), int(SetKind.LABELLED), int(SetKind.INTERSECT)
_NO_LIMIT = 2**63 - 1
_SCANNED = 12  # elements: to look this many up among marks takes as long as to search for one


class CpuSearcher:
    """Set buffers and marks of one worker."""

    def __init__(self, device: CpuDevice, graph: GraphArrays, program: SearchProgram, memory: int):
        self._graph, self._edges = graph, (program.levels[0], program.levels[1])
        program = in_slices(program, graph.slice_labels)
        none = np.zeros(1, np.uint32)
        self._slices = (none if graph.slices is None else graph.slices).reshape(-1, max(graph.slice_stride, 1))
        self._whole, self._program = program, pack(program)
        self._steps: dict[int, tuple[ProgramArrays, int]] = {}
        self._capacity = graph.max_degree + 1
        stored = max(len(program.sets), 1) * self._capacity
        marked = max(self._program.num_marks, 1) * graph.num_vertices
        self.workspace_bytes = fitting(stored * 4 + marked, memory)
        self._store = np.empty(stored, np.uint32)
        self._marks = np.zeros(marked, np.uint8)
        width = 1 + max(program.depth, len(program.sets), len(program.blocks))
        self._state = np.zeros((6, width), np.int64)
        self._stop_flag = device.stop_flag

    def count_rows(self, rows: NDArray[np.uint32], most: int | None = None) -> int:
        """Count the embeddings below `rows`; see `Searcher`."""
        if most is not None:
            return exact(*self._count(rows, min(most, _NO_LIMIT), 0))
        return exact_number(*self._count(rows, _NO_LIMIT, 0), lambda prime: self._count(rows, _NO_LIMIT, prime)[0])

    def _count(self, rows: NDArray[np.uint32], most: int, modulus: int) -> tuple[int, float]:
        graph, program = self._graph, self._program
        total, estimate = count_rows(
            graph.indptr, graph.indices, graph.split, graph.labels, self._slices, rows, 0, rows.shape[1], program.sets,
            program.first_set, program.levels, program.blocks, program.members, program.terms, self._store,
            self._capacity, self._marks, self._state, self._stop_flag, most, modulus,
        )  # fmt: skip
        return int(total), estimate

    def count_edges(self, first: int, last: int, most: int | None = None) -> tuple[int, int]:
        """Count the embeddings below the edges of a range of arcs; see `Searcher`."""
        rows = columns(*edges(self._graph, self._edges, first, last))
        return (self.count_rows(rows, most) if rows.size else 0), rows.shape[1]

    def reads(self, rows: NDArray[np.uint32], *, counting: bool) -> list[RowReads]:
        """Return what counting below `rows`, or extending them, reads for their own vertices."""
        return frontier((to_count if counting else to_extend)(self._whole, rows.shape[0]), rows)

    def extend_rows(self, rows: NDArray[np.uint32], capacity: int, first: int = 0) -> Extension:
        """Extend `rows` by one level."""
        graph, columns = self._graph, rows.shape[0]
        if columns not in self._steps:
            self._steps[columns] = _extending(self._whole, columns)
        program, emitted = self._steps[columns]
        out = np.empty(capacity, np.uint32)
        counts = np.empty(rows.shape[1], np.int64)
        done, written, begun = extend_rows(
            graph.indptr, graph.indices, graph.split, graph.labels, self._slices, rows, 0, rows.shape[1], program.sets,
            program.first_set, program.levels, self._store, self._capacity, self._marks, self._state, self._stop_flag,
            out, counts, first, emitted,
        )  # fmt: skip
        counts[done:] = -1
        return Extension(counts, out[:written], int(begun), counts.size - done - (begun > 0))


def _extending(program: SearchProgram, columns: int) -> tuple[ProgramArrays, int]:
    """Return the part of a program that extends rows of `columns` vertices, and the set that goes to the output."""
    program = to_extend(program, columns)
    level, emitted = program.levels[-1], emitted_set(program, columns)
    if level.degree <= _adjacent_to(program, level.candidates):
        program = replace(program, levels=(*program.levels[:-1], replace(level, degree=0)))
    if emitted >= 0:  # no other set reads this one, so the level's bounds may cut it
        sets = list(program.sets)
        op = sets[emitted]
        sets[emitted] = replace(op, below=op.below | level.below, above=op.above | level.above)
        program = replace(program, sets=tuple(sets))
    return pack(program), emitted


def _adjacent_to(program: SearchProgram, number: int) -> int:
    """Return a lower bound of the number of matched vertices that each element of a set is adjacent to."""
    found = 0
    while number >= 0:
        op = program.sets[number]
        found += op.kind != SetKind.SUBTRACT
        number = op.source
    return found


@compiled
def _bounds(values, depth, below, above, num_vertices):
    """Exclusive bounds (low, high) that the masks put on a vertex, given the matched `values`."""
    low = np.int64(-1)
    high = np.int64(num_vertices)
    if below | above:
        for d in range(depth + 1):
            if below >> d & 1:
                high = min(high, values[d])
            if above >> d & 1:
                low = max(low, values[d])
    return low, high


@compiled
def _trim(array, begin, end, low, high):
    """Part of the sorted array[begin:end] strictly between `low` and `high`."""
    if low >= 0 and begin < end and np.int64(array[begin]) <= low:
        begin += first_above(array[begin:end], low)
    if begin < end and np.int64(array[end - 1]) >= high:
        end = begin + first_at_least(array[begin:end], high)
    return begin, end


@compiled
def _search_into(members, begin, end, array, a, z, keep, out, at, write):
    """Members whose presence in the sorted array[a:z] equals `keep`, by galloping. Return how many."""
    part, made = array[a:z], out[at:]
    size = np.uint64(part.size)
    found, low, one = np.uint64(0), np.uint64(0), np.uint64(1)  # unsigned: see `_scan_into`
    for x in members[begin:end]:
        step = one
        high = low
        while high < size and part[high] < x:
            low = high + one
            high += step
            step <<= one
        high = min(high, size)
        while low < high:
            middle = (low + high) >> one
            if part[middle] < x:
                low = middle + one
            else:
                high = middle
        present = low < size and part[low] == x
        if present == keep:
            if write:
                made[found] = x
            found += one
    return np.int64(found)


@compiled
def _scan_into(array, a, z, marks, base, out, at, write):
    """Elements of array[a:z] that are marked. Return how many. `out` needs room for one more."""
    part, own, made = array[a:z], marks[base:], out[at:]
    found = np.uint64(0)  # unsigned: Numba looks at the sign of each signed index
    if write:
        for i in range(part.size):
            x = part[i]
            made[found] = x
            found += np.uint64(own[x])
    else:
        for i in range(part.size):
            found += np.uint64(own[part[i]])
    return np.int64(found)


@compiled
def _set_marks(array, begin, end, marks, base, value):
    own = marks[base:]
    for x in array[begin:end]:
        own[x] = value


@compiled
def _run_sets(
    depth, first, last, sets, values, indptr, indices, split, labels, slices, start, stop, store, set_capacity, marks,
    emitted, out, written,
):  # fmt: skip
    """Compute sets[first:last], which become known at `depth`; return False if a required set is empty.

    The set `emitted` (-1: none) goes to `out`, from `written` on.
    """
    num_vertices = indptr.size - 1
    for s in range(first, last):
        kind = sets[s, _KIND]
        low, high = _bounds(values, depth, sets[s, _BELOW], sets[s, _ABOVE], num_vertices)
        own = sets[s, _ADJACENT]
        vertex = values[own]
        label = sets[s, _LABEL]
        a, z = indptr[vertex], indptr[vertex + 1]
        if kind != _LABELLED and label >= 0:
            a, z = a + slices[vertex, label], a + slices[vertex, label + 1]
        if sets[s, _BELOW] >> own & 1:
            z = min(z, split[vertex])
        if sets[s, _ABOVE] >> own & 1:
            a = max(a, split[vertex])
        a, z = _trim(indices, a, z, low, high)
        mark = sets[s, _MARK]
        base = mark * num_vertices
        if mark >= 0 and stop[s] > start[s]:
            if kind == _ADJACENCY:
                _set_marks(indices, start[s], stop[s], marks, base, 0)
            else:
                _set_marks(store, start[s], stop[s], marks, base, 0)
        if kind == _ADJACENCY:
            start[s] = a
            stop[s] = z
            if mark >= 0:
                _set_marks(indices, a, z, marks, base, 1)
        else:
            target, at = store, s * set_capacity
            if s == emitted:
                target, at = out, written
            found = 0
            write = sets[s, _SIZE_ONLY] == 0
            if kind == _LABELLED:
                for i in range(a, z):
                    x = indices[i]
                    if labels[x] == label:
                        if write:
                            target[at + found] = x
                        found += 1
            else:
                source = sets[s, _SOURCE]
                in_place = sets[source, _KIND] == _ADJACENCY
                b, e = start[source], stop[source]
                if in_place:
                    b, e = _trim(indices, b, e, low, high)
                else:
                    b, e = _trim(store, b, e, low, high)
                source_mark = sets[source, _MARK]
                keep = kind == _INTERSECT
                if keep and source_mark >= 0 and (z - a) <= _SCANNED * (e - b):
                    found = _scan_into(indices, a, z, marks, source_mark * num_vertices, target, at, write)
                elif keep and (z - a) * 8 < (e - b):
                    if in_place:
                        found = _search_into(indices, a, z, indices, b, e, True, target, at, write)
                    else:
                        found = _search_into(indices, a, z, store, b, e, True, target, at, write)
                elif in_place:
                    found = _search_into(indices, b, e, indices, a, z, keep, target, at, write)
                else:
                    found = _search_into(store, b, e, indices, a, z, keep, target, at, write)
            start[s] = at
            stop[s] = at + found
            if mark >= 0:
                _set_marks(store, at, at + found, marks, base, 1)
        if sets[s, _REQUIRED] and stop[s] == start[s]:
            return False
    return True


@compiled
def _admissible(x, depth, levels, values, indptr, labels):
    """Whether vertex `x` passes the label, degree and distinctness tests of the level at `depth`."""
    if levels[depth, 4] >= 0 and labels[x] != levels[depth, 4]:
        return False
    if levels[depth, 5] > 0 and indptr[x + 1] - indptr[x] < levels[depth, 5]:
        return False
    distinct = levels[depth, 3]
    if distinct:
        for d in range(depth):
            if distinct >> d & 1 and values[d] == x:
                return False
    return True


@compiled
def _count_suffix(depth, values, sets, blocks, members, terms, sizes, indptr, indices, start, stop, store, modulus):
    """Number of ways to place the suffix below the matched `values`, modulo 2**64 or a prime, and as a float."""
    for b in range(blocks.shape[0]):
        s = blocks[b, 0]
        low, high = _bounds(values, depth - 1, blocks[b, 1], blocks[b, 2], indptr.size - 1)
        if sets[s, _SIZE_ONLY]:
            sizes[b] = stop[s] - start[s]
        elif sets[s, _KIND] == _ADJACENCY:
            i, j = _trim(indices, start[s], stop[s], low, high)
            sizes[b] = j - i
        else:
            i, j = _trim(store, start[s], stop[s], low, high)
            sizes[b] = j - i
    for i in range(members.shape[0]):
        b = members[i, 0]
        x = values[members[i, 1]]
        low, high = _bounds(values, depth - 1, blocks[b, 1], blocks[b, 2], indptr.size - 1)
        inside = low < x < high
        for d in range(depth):
            if inside and members[i, 2] >> d & 1:
                inside = stands_in(indices[indptr[values[d]] : indptr[values[d] + 1]], x)
        if inside:
            sizes[b] -= 1
    total = np.int64(0)
    estimate = 0.0
    for t in range(terms.shape[0]):
        product = terms[t, 0] % modulus if modulus else terms[t, 0]
        approximate = float(terms[t, 0])
        for c in range(1, terms.shape[1]):
            if terms[t, c] >= 0:
                product *= sizes[terms[t, c]]
                if modulus:  # a prime below 2**31 and a size below 2**32: the product is below 2**63
                    product %= modulus
                approximate *= float(sizes[terms[t, c]])
        total += product
        estimate += abs(approximate)
    return total, estimate


@compiled
def _enter_row(
    r, good, rows, sets, first_set, values, indptr, indices, split, labels, slices, start, stop, store, set_capacity,
    marks, emitted, out, written,
):  # fmt: skip
    """Match row r, whose first `good` columns may equal those of the row before, and compute its sets.

    Return the number of leading columns whose sets are valid: fewer than all if the row leads to nothing.
    """
    changed = 0
    while changed < good and values[changed] == rows[changed, r]:
        changed += 1
    for d in range(changed, rows.shape[0]):
        values[d] = rows[d, r]
        if not _run_sets(
            d, first_set[d], first_set[d + 1], sets, values, indptr, indices, split, labels, slices, start, stop, store,
            set_capacity, marks, emitted, out, written,
        ):  # fmt: skip
            return d
    return rows.shape[0]


@compiled(
    *(
        f"i8[::1], u4[::1], i8[::1], i4[::1], u4[:,::1], {rows}, i8, i8, i8[:,::1], i8[::1], i8[:,::1], i8[:,::1], "
        "i8[:,::1], i8[:,::1], u4[::1], i8, u1[::1], i8[:,::1], u1[::1], i8, i8"
        for rows in ("u4[:,::1]", "u4[:,:]")
    )
)
def count_rows(
    indptr, indices, split, labels, slices, rows, begin, end, sets, first_set, levels, blocks, members, terms, store,
    set_capacity, marks, state, stop_flag, most, modulus,
):  # fmt: skip
    """Count the embeddings below rows[:, begin:end].

    Parameters
    ----------
    indptr, indices, split, labels, slices
        The graph; `labels` has length 1 if there are none, `slices` has no slice if no set reads one.
    rows : uint32[columns, n]
        Matched vertices at depths 0 to columns - 1; rows that share a prefix stand together.
    begin, end
        Range of rows.
    sets, first_set, levels, blocks, members, terms
        See :class:`longwall.kernels.interface.search_program.ProgramArrays`.
    store : uint32[num_sets * set_capacity]
        Workspace for the sets.
    set_capacity
        Elements per set: more than any set has.
    marks : uint8[num_marks * num_vertices]
        Workspace, all zero; it is left all zero.
    state : int64[6, width]
        Workspace; width is larger than the number of levels, of sets and of blocks.
    stop_flag, most : uint8[1], int
        The kernel returns early once `stop_flag` is set, or once it has found `most` embeddings.
    modulus
        A prime below 2**31, or 0 for 2**64.

    Returns
    -------
    total : int
        The count, modulo `modulus`.
    estimate : float
        The sum of the absolute values that were added, as floating point.
    """
    columns = rows.shape[0]
    depth_end = levels.shape[0]
    num_vertices = indptr.size - 1
    values, start, stop, cursor, limit, sizes = state[0], state[1], state[2], state[3], state[4], state[5]
    state[:] = 0
    total = np.int64(0)
    estimate = 0.0
    good = 0  # leading columns whose sets are valid
    for r in range(begin, end):
        if stop_flag[0] or total >= most:
            break
        good = _enter_row(
            r, good, rows, sets, first_set, values, indptr, indices, split, labels, slices, start, stop, store,
            set_capacity, marks, -1, store, 0,
        )  # fmt: skip
        if good < columns:
            continue
        if columns == depth_end:
            found, size = _count_suffix(
                depth_end, values, sets, blocks, members, terms, sizes, indptr, indices, start, stop, store, modulus
            )
            total = (total + found) % modulus if modulus else total + found
            estimate += size
            continue
        depth = columns
        entering = True
        while depth >= columns:
            s = levels[depth, 0]
            in_place = sets[s, _KIND] == _ADJACENCY
            if entering:
                low, high = _bounds(values, depth - 1, levels[depth, 1], levels[depth, 2], num_vertices)
                if in_place:
                    cursor[depth], limit[depth] = _trim(indices, start[s], stop[s], low, high)
                else:
                    cursor[depth], limit[depth] = _trim(store, start[s], stop[s], low, high)
                entering = False
            if cursor[depth] >= limit[depth] or stop_flag[0] or total >= most:
                depth -= 1
                continue
            x = np.int64(indices[cursor[depth]]) if in_place else np.int64(store[cursor[depth]])
            cursor[depth] += 1
            if not _admissible(x, depth, levels, values, indptr, labels):
                continue
            values[depth] = x
            if not _run_sets(
                depth, first_set[depth], first_set[depth + 1], sets, values, indptr, indices, split, labels, slices,
                start, stop, store, set_capacity, marks, -1, store, 0,
            ):  # fmt: skip
                continue
            if depth == depth_end - 1:
                found, size = _count_suffix(
                    depth_end, values, sets, blocks, members, terms, sizes, indptr, indices, start, stop, store,
                    modulus,
                )  # fmt: skip
                total = (total + found) % modulus if modulus else total + found
                estimate += size
            else:
                depth += 1
                entering = True
    _clear_marks(sets, indices, start, stop, store, marks, num_vertices)
    return total, estimate


@compiled
def _clear_marks(sets, indices, start, stop, store, marks, num_vertices):
    for s in range(sets.shape[0]):
        if sets[s, _MARK] >= 0:
            if sets[s, _KIND] == _ADJACENCY:
                _set_marks(indices, start[s], stop[s], marks, sets[s, _MARK] * num_vertices, 0)
            else:
                _set_marks(store, start[s], stop[s], marks, sets[s, _MARK] * num_vertices, 0)


@compiled(
    *(
        f"i8[::1], u4[::1], i8[::1], i4[::1], u4[:,::1], {rows}, i8, i8, i8[:,::1], i8[::1], i8[:,::1], u4[::1], i8, "
        "u1[::1], i8[:,::1], u1[::1], u4[::1], i8[::1], i8, i8"
        for rows in ("u4[:,::1]", "u4[:,:]")
    )
)
def extend_rows(
    indptr, indices, split, labels, slices, rows, begin, end, sets, first_set, levels, store, set_capacity, marks,
    state, stop_flag, out, counts, first, emitted,
):  # fmt: skip
    """Extend rows[:, begin:end] by one level; parameters not named here are those of :func:`count_rows`.

    Parameters
    ----------
    out : uint32[capacity]
        Receives the new vertices, row by row. A row is begun only if `out` has room for its whole candidate set.
    counts : int64[n]
        Receives the number of extensions of each row.
    first
        The first row is extended by vertices from this one on; by as many as fit, if it alone has too many.
    emitted
        The set that goes straight to `out` while `out` has room for the longest set; -1: none.

    Returns
    -------
    done : int
        The first row that was not extended.
    written : int
        Number of elements of `out`.
    begun : int
        The vertex from which the first row goes on, 0 if the row is finished.
    """
    columns = rows.shape[0]
    num_vertices = indptr.size - 1
    values, start, stop = state[0], state[1], state[2]
    state[:] = 0
    written = 0
    begun = np.int64(0)
    done = begin
    good = 0
    candidates = levels[columns, 0]
    in_place = sets[candidates, _KIND] == _ADJACENCY
    tested = levels[columns, 3] != 0 or levels[columns, 4] >= 0 or levels[columns, 5] > 0
    for r in range(begin, end):
        if stop_flag[0]:
            break
        # `out` needs room for the longest set, and for the element that a scan writes behind the set.
        direct = emitted if out.size - written > set_capacity else -1
        good = _enter_row(
            r, good, rows, sets, first_set, values, indptr, indices, split, labels, slices, start, stop, store,
            set_capacity, marks, direct, out, written,
        )  # fmt: skip
        found = 0
        if good == columns:
            source = indices if in_place else store
            if direct >= 0:
                source = out
                good -= 1  # the next row has its set elsewhere in `out`, even if both are equal
            low, high = _bounds(values, columns - 1, levels[columns, 1], levels[columns, 2], num_vertices)
            a, z = _trim(source, start[candidates], stop[candidates], low, high)
            if written + (z - a) > out.size and r > begin:
                break
            if direct >= 0 and a == written and not tested and (first == 0 or r > begin):
                found = z - a
            else:
                for i in range(a, z):
                    x = np.int64(source[i])
                    if _admissible(x, columns, levels, values, indptr, labels) and (x >= first or r > begin):
                        if written + found == out.size:
                            begun = x
                            break
                        out[written + found] = x
                        found += 1
        counts[r] = found
        written += found
        done = r + 1
        if begun:
            break
    _clear_marks(sets, indices, start, stop, store, marks, num_vertices)
    return done, written, begun
