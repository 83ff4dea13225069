"""Count the connected induced subgraphs of k vertices by pattern, without looking at the last vertex of any of them.

Connected sets of k - 1 vertices are enumerated depth-first, each once: a set is found in the order of a breadth-first
search from its smallest vertex, so that the next candidates are those behind a cursor over the adjacency lists of the
vertices that are there. What a set needs to know of a vertex outside is only which of its members are neighbours: a
mask. So the sets of k vertices above a set of k - 1 are counted by how many vertices have each mask, and a pattern is
found as often as it has vertices without which it stays connected.

Of the last vertex u of a set of k - 1, only the masks (by the members before it) of its neighbours are counted; how
many vertices there are of each mask in all is known from above.
"""

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.device import CpuDevice, fitting
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.jit.bisect import first_above
from longwall.kernels.jit.compile import compiled

# Marks hold a bit for every member that is a neighbour; this one says that a vertex is a member itself.
_MEMBER_BYTE = 0x80
_EXACT_BELOW = 2.0**62


class _Workspace:
    """Marks and tables of one worker."""

    def __init__(self, device: CpuDevice, graph: GraphArrays, k: int, results: int, memory: int):
        masks = 1 << (k - 2)
        self.workspace_bytes = fitting(graph.num_vertices + 8 * (results + masks * (2 * 256 + k + 2)), memory)
        self._graph, self._k = graph, k
        self._marks = np.zeros(graph.num_vertices, np.uint8)
        self._known = np.zeros((k, masks), np.int64)
        self._fresh = np.zeros(masks, np.int64)
        self._found = np.zeros((masks, 2, 256), np.int64)
        self._taken = np.zeros(masks, np.int64)
        self._stop_flag = device.stop_flag
        self._estimate = 0.0

    def _exact(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._estimate >= _EXACT_BELOW:
            raise OverflowError(f"counts that add up to about {self._estimate:.3g} do not fit 64-bit integers")
        return counts


class CpuMotifCounter(_Workspace):
    """Counts by class and mask."""

    def __init__(
        self, device: CpuDevice, graph: GraphArrays, k: int, entries: NDArray[np.uint32], classes: int, memory: int
    ):
        super().__init__(device, graph, k, classes << (k - 1), memory)
        self._entries = entries
        self._members = np.zeros(k, np.int64)
        self._cursors = np.zeros((k, 3), np.int64)
        self._totals = np.zeros((classes, 1 << (k - 1)), np.int64)

    def add(self, first: int, last: int) -> None:
        """Count the subgraphs of a range of arcs."""
        self._estimate += count_motifs(
            self._graph.indptr, self._graph.indices, self._k, first, last, self._entries, self._members,
            self._cursors, self._marks, self._known, self._fresh, self._found, self._taken, self._totals,
            self._stop_flag,
        )  # fmt: skip

    def counts(self) -> NDArray[np.int64]:
        """Counts by class and mask so far."""
        return self._exact(self._totals)


class CpuOrbitCounter(_Workspace):
    """Counts by orbit and vertex."""

    def __init__(self, device: CpuDevice, graph: GraphArrays, k: int, orbits: NDArray[np.int64], memory: int):
        number = int(orbits.max()) + 1
        super().__init__(device, graph, k, number * graph.num_vertices, memory)
        self._orbits = orbits
        self._counts = np.zeros((number, graph.num_vertices), np.int64)

    def add(self, first: int, last: int) -> None:
        """Count the subgraphs of a range of arcs."""
        self._estimate += add_orbits(
            self._graph.indptr, self._graph.indices, self._k, first, last, self._orbits, self._marks, self._known,
            self._fresh, self._found, self._taken, self._counts, self._stop_flag,
        )  # fmt: skip

    def counts(self) -> NDArray[np.int64]:
        """Counts by orbit and vertex so far."""
        return self._exact(self._counts)


@compiled
def _push(indptr, indices, v, number, marks, known, fresh):
    """Make v member `number`: mark its neighbours; `known[number + 1]` counts the vertices outside by mask."""
    own = marks[v]
    bit = 1 << number
    for mask in range(bit):
        fresh[mask] = 0
    for j in range(indptr[v], indptr[v + 1]):
        w = indices[j]
        mark = marks[w]
        if mark < _MEMBER_BYTE:
            fresh[mark] += 1
        marks[w] = mark | bit
    marks[v] = own | _MEMBER_BYTE
    for mask in range(bit):
        known[number + 1, bit | mask] = fresh[mask]
        known[number + 1, mask] = known[number, mask] - fresh[mask] - (mask == own)


@compiled
def _pop(indptr, indices, v, number, marks):
    """Undo `_push`."""
    keep = np.uint8(0xFF ^ (1 << number))
    for j in range(indptr[v], indptr[v + 1]):
        marks[indices[j]] &= keep
    marks[v] &= np.uint8(0x7F)


@compiled
def _add_neighbours(indptr, indices, u, marks, found):
    """Add the number of neighbours of u of every mark to `found`, int64[2, 256]; those of members are not read.

    Two tables that are added up later: most marks are equal, and a counter that was just written is slow to read.
    """
    first, second = found[0], found[1]
    j, end = indptr[u], indptr[u + 1]
    while j + 1 < end:
        first[marks[indices[j]]] += 1
        second[marks[indices[j + 1]]] += 1
        j += 2
    if j < end:
        first[marks[indices[j]]] += 1


@compiled
def _take(found, mask):
    """Read one number of a pair of tables, and clear it."""
    number = found[0, mask] + found[1, mask]
    found[0, mask] = 0
    found[1, mask] = 0
    return number


@compiled
def _next_candidate(indptr, indices, members, size, cursor, marks):
    """Move a cursor (list, position) to the first candidate from there on. Return it, or -1."""
    while cursor[0] < size:
        i = cursor[0]
        end = indptr[members[i] + 1]
        only = (2 << i) - 1  # a candidate belongs to the first list that it stands in
        for j in range(cursor[1], end):
            u = indices[j]
            mark = marks[u]
            if u > members[0] and mark < _MEMBER_BYTE and mark & only == 1 << i:
                cursor[1] = j
                return np.int64(u)
        cursor[0] += 1
        if cursor[0] < size:
            cursor[1] = indptr[members[cursor[0]]]
    return np.int64(-1)


@compiled(
    "i8[::1], u4[::1], i8, i8, i8, u4[::1], i8[::1], i8[:,::1], u1[::1], i8[:,::1], i8[::1], i8[:,:,::1], "
    "i8[::1], i8[:,::1], u1[::1]"
)
def count_motifs(
    indptr, indices, k, first, last, entries, members, cursors, marks, known, fresh, found, taken, totals, stop_flag
):
    """Count the subgraphs of k vertices above the sets of k - 1 that begin with the arcs first to last - 1.

    Parameters
    ----------
    indptr, indices
        The graph.
    k
        Vertices of a subgraph, 3 to 8.
    first, last
        Range of arcs; a set begins with the arc of its first two vertices, of which the first is smaller.
    entries : uint32[2 ** ((k - 1) (k - 2) / 2)]
        The dictionary of k - 1 vertices; see :func:`longwall.kernels.host.patterns.pattern_codes.dictionary`.
    members : int64[k]
    cursors : int64[k, 3]
        Workspace.
    marks : uint8[num_vertices]
        Workspace, all zero; it is left all zero.
    known : int64[k, 2 ** (k - 2)]
        Workspace.
    fresh : int64[2 ** (k - 2)]
        Workspace.
    found : int64[2 ** (k - 2), 2, 256]
        Workspace, all zero; the first 2 ** (k - 2) columns are left all zero.
    taken : int64[2 ** (k - 2)]
        Workspace, all zero; it is left all zero.
    totals : int64[classes, 2 ** (k - 1)]
        Numbers are added here, by the class of the first k - 1 vertices and the neighbours of the last, as bits over
        the class' canonical form.
    stop_flag : uint8[1]
        The kernel returns early once this is set.

    Returns
    -------
    float
        The sum of all that was added: the totals are exact where it stays below 2**63.
    """
    estimate = 0.0
    prefix = k - 2
    known[0, 0] = indptr.size - 1
    v = first_above(indptr, first) - 1
    while v < indptr.size - 1 and indptr[v] < last and not stop_flag[0]:
        begin, end = max(indptr[v], first), min(indptr[v + 1], last)
        if begin < end and indices[end - 1] > v:
            members[0] = v
            _push(indptr, indices, v, 0, marks, known, fresh)
            if prefix == 1:
                for j in range(begin, end):
                    if indices[j] > v:
                        taken[1] += 1
                        _add_neighbours(indptr, indices, indices[j], marks, found[1])
                estimate += _flush(k, 0, entries, known[1], found, taken, totals)
            else:
                for j in range(begin, end):
                    u = indices[j]
                    if u > v and not stop_flag[0]:
                        members[1] = u
                        _push(indptr, indices, u, 1, marks, known, fresh)
                        cursors[2, 0], cursors[2, 1] = 0, j + 1
                        estimate += _descend(
                            indptr, indices, k, entries, members, cursors, marks, known, fresh, found, taken, totals,
                            stop_flag,
                        )  # fmt: skip
                        _pop(indptr, indices, u, 1, marks)
            _pop(indptr, indices, v, 0, marks)
        v += 1
    return estimate


@compiled
def _descend(indptr, indices, k, entries, members, cursors, marks, known, fresh, found, taken, totals, stop_flag):
    """Enumerate the sets of k - 1 vertices that begin with two members; `cursors[2]` is where the third may stand."""
    estimate = 0.0
    prefix = k - 2
    codes = cursors[:, 2]
    codes[2] = 1
    size = 2
    while size >= 2:
        cursor = cursors[size]
        if size == prefix:
            u = _next_candidate(indptr, indices, members, size, cursor, marks)
            while u >= 0:
                mark = marks[u]
                taken[mark] += 1
                _add_neighbours(indptr, indices, u, marks, found[mark])
                cursor[1] += 1
                u = _next_candidate(indptr, indices, members, size, cursor, marks)
            estimate += _flush(k, codes[size], entries, known[size], found, taken, totals)
            u = np.int64(-1)
        elif stop_flag[0]:
            u = np.int64(-1)
        else:
            u = _next_candidate(indptr, indices, members, size, cursor, marks)
        if u >= 0:
            codes[size + 1] = codes[size] | np.int64(marks[u]) << (size * (size - 1) // 2)
            members[size] = u
            _push(indptr, indices, u, size, marks, known, fresh)
            cursors[size + 1, 0], cursors[size + 1, 1] = cursor[0], cursor[1] + 1
            size += 1
        else:
            size -= 1
            if size >= 2:
                _pop(indptr, indices, members[size], size, marks)
                cursors[size, 1] += 1
    return estimate


@compiled
def _flush(k, code, entries, known, found, taken, totals):
    """Add what was found above one set of k - 2 vertices to the totals. Return the sum."""
    estimate = 0.0
    bits = k - 2
    for own in range(1, 1 << bits):
        if not taken[own]:
            continue
        entry = np.int64(entries[code | own << (bits * (bits - 1) // 2)])
        row = totals[entry & 1023]
        top = 1 << (entry >> (10 + 3 * bits) & 7)
        for mask in range(1 << bits):
            image = 0
            for i in range(bits):
                image |= (mask >> i & 1) << (entry >> (10 + 3 * i) & 7)
            with_u = _take(found[own], mask)
            row[image | top] += with_u
            estimate += float(with_u)
            if mask:
                row[image] += taken[own] * (known[mask] - (mask == own)) - with_u
                estimate += float(taken[own]) * float(known[mask])
        taken[own] = 0
    return estimate


@compiled(
    "i8[::1], u4[::1], i8, i8, i8, i8[:,:,::1], u1[::1], i8[:,::1], i8[::1], i8[:,:,::1], i8[::1], i8[:,::1], u1[::1]"
)
def add_orbits(indptr, indices, k, first, last, orbits, marks, known, fresh, found, taken, counts, stop_flag):
    """Add the subgraphs of `count_motifs` to the counts of the vertices of their first k - 1, by orbit; k is 3 or 4.

    Parameters
    ----------
    indptr, indices, first, last, marks, known, fresh, found, taken, stop_flag
        As in :func:`count_motifs`.
    k
        3 or 4.
    orbits : int64[2 ** ((k - 1) (k - 2) / 2), 2 ** (k - 1), k - 1]
        By code of the first k - 1 vertices and mask of the last: the number of each one's orbit.
    counts : int64[orbits, num_vertices]
        Numbers are added here.

    Returns
    -------
    float
        The sum of all that was added.
    """
    estimate = 0.0
    known[0, 0] = indptr.size - 1
    v = first_above(indptr, first) - 1
    while v < indptr.size - 1 and indptr[v] < last and not stop_flag[0]:
        begin, end = max(indptr[v], first), min(indptr[v + 1], last)
        if begin < end and indices[end - 1] > v:
            _push(indptr, indices, v, 0, marks, known, fresh)
            for j in range(begin, end):
                s = indices[j]
                if s < v or stop_flag[0]:
                    continue
                if k == 3:
                    _add_last(indptr, indices, k, 0, s, orbits, marks, known[1], found, taken, counts)
                    continue
                _push(indptr, indices, s, 1, marks, known, fresh)
                for i in range(j + 1, indptr[v + 1]):
                    _add_last(indptr, indices, k, 1, indices[i], orbits, marks, known[2], found, taken, counts)
                for i in range(indptr[s], indptr[s + 1]):
                    u = indices[i]
                    if u > v and marks[u] == 2:
                        _add_last(indptr, indices, k, 1, u, orbits, marks, known[2], found, taken, counts)
                estimate += _flush_orbits(k, 1, v, s, orbits, known[2], found, taken, counts)
                _pop(indptr, indices, s, 1, marks)
            if k == 3:
                estimate += _flush_orbits(k, 0, v, v, orbits, known[1], found, taken, counts)
            _pop(indptr, indices, v, 0, marks)
        v += 1
    return estimate


@compiled
def _add_last(indptr, indices, k, code, u, orbits, marks, known, found, taken, counts):
    """Count above one set whose last vertex is u: for u itself here, in `found` and `taken` for the others."""
    bits = k - 2
    own = np.int64(marks[u])
    code = code | own << (bits * (bits - 1) // 2)
    here = found[0]  # no candidate is without a neighbour
    _add_neighbours(indptr, indices, u, marks, here)
    taken[own] += 1
    for mask in range(1 << bits):
        with_u = _take(here, mask)
        found[own, 0, mask] += with_u
        counts[orbits[code, mask | 1 << bits, bits], u] += with_u
        if mask:
            counts[orbits[code, mask, bits], u] += known[mask] - (mask == own) - with_u


@compiled
def _flush_orbits(k, code, first, second, orbits, known, found, taken, counts):
    """Add what was found above one set of k - 2 vertices to its own counts. Return the sum of what was added."""
    estimate = 0.0
    bits = k - 2
    for own in range(1, 1 << bits):
        if not taken[own]:
            continue
        row = orbits[code | own << (bits * (bits - 1) // 2)]
        for mask in range(1 << bits):
            with_u = _take(found[own], mask)
            without = taken[own] * (known[mask] - (mask == own)) - with_u if mask else np.int64(0)
            counts[row[mask | 1 << bits, 0], first] += with_u
            counts[row[mask, 0], first] += without
            if bits > 1:
                counts[row[mask | 1 << bits, 1], second] += with_u
                counts[row[mask, 1], second] += without
            estimate += (k - 1) * (float(with_u) + float(without))
        taken[own] = 0
    return estimate
