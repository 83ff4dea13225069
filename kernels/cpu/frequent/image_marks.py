"""Mark the images of the vertices of grown patterns; see :mod:`longwall.kernels.interface.pattern_growth`."""

import numpy as np

from longwall.kernels.cpu.frequent.typed_runs import edge_type, end_of_pattern, first_run
from longwall.kernels.interface.pattern_growth import NO_EXTENSION
from longwall.kernels.jit.bisect import stands_in
from longwall.kernels.jit.compile import compiled

_ONE, _LONG_ONE, _NO_BITS = np.uint32(1), np.uint64(1), np.uint64(0)


@compiled
def _add_image(extension, y, vertex, alive, sets, wanted, left_open, left, own):
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
            left[own] -= 1


@compiled
def _in_row(rows, columns, size, row, vertex):
    """Return whether a vertex is in a row."""
    inside = False
    for y in range(size):
        inside |= rows[columns[y], row] == vertex
    return inside


@compiled
def _look_at_runs(
    runs, types, begins, indices, targets, columns, labels, size, at, base, rows, row, low, known,
    always, sometimes, numbers, numbered, alive, sets, wanted, left_open, left, own,
):  # fmt: skip
    """Mark the runs of a vertex for the first row that has it at this place. Return how many types have numbers."""
    u = rows[columns[at], row]
    always[u], sometimes[u] = 0, 0
    for run in range(runs[u], runs[u + 1]):
        kind = types[run]
        extension = base + kind
        if alive[extension] < 0:
            continue
        if numbers[kind] < 0:
            numbers[kind], numbered[known] = known, kind
            known += 1
        bit = numbers[kind] - low
        if bit < 0 or bit >= 64:
            continue
        alike = 0
        for y in range(size):
            if y != at and labels[y] == targets[kind]:
                alike += 1
        if begins[run + 1] - begins[run] > alike:
            always[u] |= _LONG_ONE << np.uint64(bit)
        else:
            sometimes[u] |= _LONG_ONE << np.uint64(bit)
        number = alive[extension]
        for i in range(begins[run], begins[run + 1]):
            if wanted[number, size] <= 0:
                break
            vertex = indices[i]
            if sets[number, size, vertex >> 5] >> np.uint32(vertex & 31) & _ONE:
                continue
            if not _in_row(rows, columns, size, row, vertex):
                _add_image(extension, size, vertex, alive, sets, wanted, left_open, left, own)
    return known


@compiled
def _looked_for(runs, types, begins, indices, columns, size, rows, row, u, low, numbers, some):
    """Return by which of some types a row grows: those of a run with a vertex that is not in the row."""
    found = _NO_BITS
    for run in range(runs[u], runs[u + 1]):
        bit = numbers[types[run]] - low
        if bit < 0 or bit >= 64 or not some >> np.uint64(bit) & _LONG_ONE:
            continue
        for i in range(begins[run], begins[run + 1]):
            if not _in_row(rows, columns, size, row, indices[i]):
                found |= _LONG_ONE << np.uint64(bit)
                break
    return found


@compiled
def _mark_bits(
    rows, column, begin, end, y, low, known, base, grown, hits, touched, numbered,
    alive, sets, wanted, left_open, left, own,
):  # fmt: skip
    """Add the images of a vertex of the pattern, where `grown` has the types that each row grows by."""
    num_touched = 0
    for row in range(begin, end):
        if grown[row]:
            vertex = rows[column, row]
            if hits[vertex] == 0:
                touched[num_touched] = vertex
                num_touched += 1
            hits[vertex] |= grown[row]
    for bit in range(min(known - low, 64)):
        extension = base + numbered[low + bit]
        number = alive[extension]
        if number < 0 or wanted[number, y] <= 0:
            continue
        for place in range(num_touched):
            vertex = touched[place]
            if hits[vertex] >> np.uint64(bit) & _LONG_ONE:
                _add_image(extension, y, vertex, alive, sets, wanted, left_open, left, own)
    for place in range(num_touched):
        hits[touched[place]] = 0


@compiled
def _mark_forward(
    runs, types, begins, indices, targets, columns, labels, size, at, base,
    rows, begin, end, stamp, block, seen, always, sometimes, shared, hits, touched, numbers, numbered, grown, stop,
    alive, sets, wanted, left_open, left, own,
):  # fmt: skip
    """Mark the images of extensions by a new vertex at one place, for rows of one pattern. Return the next stamp.

    A type gets a number when it is found, and the number a bit of a word: the rows are read once for every 64 types.
    The bits of types are collected for each image of a vertex of the pattern, and put into sets once for many rows.
    """
    known, low = 0, 0
    others = np.uint64(size - 1)
    while low == 0 or low < known:
        last, step = begin, block
        while last < end and left[own] > 0 and not stop[0]:
            start, last = last, min(last + step, end)
            step *= 2
            for row in range(start, last):
                u = rows[columns[at], row]
                before = np.int64(seen[u]) - stamp
                if before < 0:
                    seen[u] = stamp + row
                    shared[u] = (_LONG_ONE << others) - _LONG_ONE
                    known = _look_at_runs(
                        runs, types, begins, indices, targets, columns, labels, size, at, base, rows, row, low, known,
                        always, sometimes, numbers, numbered, alive, sets, wanted, left_open, left, own,
                    )  # fmt: skip
                elif shared[u]:
                    for place in range(size - 1):
                        bit = _LONG_ONE << np.uint64(place)
                        if not shared[u] & bit:
                            continue
                        y = place if place < at else place + 1
                        vertex = rows[columns[y], before]
                        if _in_row(rows, columns, size, row, vertex):
                            continue
                        shared[u] ^= bit
                        edge = edge_type(runs, types, begins, indices, targets, u, vertex, labels[y])
                        if edge >= 0:
                            _add_image(base + edge, size, vertex, alive, sets, wanted, left_open, left, own)
                grown[row] = always[u]
                if sometimes[u]:
                    grown[row] |= _looked_for(
                        runs, types, begins, indices, columns, size, rows, row, u, low, numbers, sometimes[u]
                    )  # fmt: skip
            for y in range(size):
                _mark_bits(
                    rows, columns[y], start, last, y, low, known, base, grown, hits, touched, numbered,
                    alive, sets, wanted, left_open, left, own,
                )  # fmt: skip
        low += 64
        stamp += rows.shape[1]
    for number in range(known):
        numbers[numbered[number]] = -1
    return stamp


@compiled
def _mark_backward(
    runs, types, begins, indices, targets, columns, label, size, at, other, base, rows, begin, end, stop,
    alive, sets, wanted, left_open, left, own,
):  # fmt: skip
    """Mark the images of extensions by an edge from one vertex of the pattern to another."""
    for row in range(begin, end):
        if row & 1023 == 0 and (stop[0] or left[own] == 0):
            return
        u, vertex = rows[columns[at], row], rows[columns[other], row]
        run = first_run(runs, types, targets, u, label)
        while run < runs[u + 1] and targets[types[run]] == label:
            extension = base + types[run]
            if alive[extension] >= 0 and stands_in(indices[begins[run] : begins[run + 1]], vertex):
                for y in range(size):
                    _add_image(extension, y, rows[columns[y], row], alive, sets, wanted, left_open, left, own)
                break
            run += 1


@compiled(
    "i8[::1], i4[::1], i8[::1], u4[::1], i4[::1], i8[::1], i4[::1], i4[:,::1], i4[:,::1], i4[::1], i4[:,::1], "
    "i4[:,:,::1], i8[:,::1], i8[:,::1], u4[:,::1], i8, i8, i8[::1], u8[::1], u8[::1], u8[::1], u8[::1], u4[::1], "
    "i4[::1], i4[::1], u8[::1], u1[::1], i4[::1], u4[:,:,::1], i4[:,::1], i4[::1], i4[::1]"
)
def mark_images(
    runs, types, begins, indices, targets,
    first, sizes, columns, labels, path_sizes, paths, _known, forward, backward,
    rows, stamp, block, seen, always, sometimes, shared, hits, touched, numbers, numbered, grown, stop,
    alive, sets, wanted, left_open, left,
):  # fmt: skip
    """Mark the images of all extensions. Return the next stamp.

    All vertices of a run are images of the new vertex, except those of the row. So only the first row at a run looks
    at all of them; for each later row, only vertices that all earlier rows contain can be new.
    """
    begin = 0
    while begin < rows.shape[1] and left[0] > 0 and not stop[0]:
        end = end_of_pattern(rows, begin)
        p = rows[0, begin] - first[0]
        own = p + 1
        for place in range(path_sizes[p]):
            if forward[p, place] != NO_EXTENSION:
                stamp = _mark_forward(
                    runs, types, begins, indices, targets, columns[p], labels[p], sizes[p], paths[p, place],
                    forward[p, place], rows, begin, end, stamp, block,
                    seen, always, sometimes, shared, hits, touched, numbers, numbered, grown, stop,
                    alive, sets, wanted, left_open, left, own,
                )  # fmt: skip
            if place >= 2 and backward[p, place] != NO_EXTENSION:
                other = paths[p, place]
                _mark_backward(
                    runs, types, begins, indices, targets, columns[p], labels[p, other], sizes[p], paths[p, 0], other,
                    backward[p, place], rows, begin, end, stop, alive, sets, wanted, left_open, left, own,
                )  # fmt: skip
        begin = end
    return stamp
