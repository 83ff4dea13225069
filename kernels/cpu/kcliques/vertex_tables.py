"""Count cliques: below each vertex its out-neighbours become a small bitmap table.

Set operations on local numbers are AND and population count (the idea of GLUMIN, PPoPP 2025, and KCGPU, ICS
2022). Out-neighbours are those with a smaller id, that is, of higher degree; a clique is found once, at its
member with the largest id.
"""

from collections.abc import Callable

import numpy as np

from longwall.kernels.cpu.device import CpuDevice, fitting
from longwall.kernels.cpu.kcliques.roots import Root, add, count_in_root
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.kcliques import ADJACENT, MOST_ROOTED, OF, ROOTED_FROM
from longwall.kernels.interface.workspaces import NARROW
from longwall.kernels.jit.bisect import first_above
from longwall.kernels.jit.bits import pop_bit_of, popcount
from longwall.kernels.jit.compile import compiled


class CliqueTables:
    """Bitmap tables, and root subgraphs, of one worker."""

    def __init__(self, device: CpuDevice, graph: GraphArrays, k: int, memory: int):
        most, words = graph.max_out_degree, (graph.max_out_degree + 63) // 64
        least = 4 * graph.num_vertices + 8 * (most + 2 * k) * words + 24 * k + 16
        rooted = min(most, MOST_ROOTED) if k >= ROOTED_FROM else 0
        root_words, narrow = (rooted + 63) // 64, NARROW if rooted else 0
        more = 4 * most + 8 * (rooted * root_words + narrow + max(rooted, narrow)) if rooted else 0
        if least + more > memory:
            rooted = root_words = narrow = more = 0
        self.workspace_bytes = fitting(least + more, memory)
        self._graph = graph
        self._k = k
        self._local = np.zeros(graph.num_vertices, np.int32)
        self._table = np.empty((most, words), np.uint64)
        self._state = np.empty((2, k), np.int64)
        self._root = Root(
            np.empty(most if rooted else 0, np.int32),
            np.empty(narrow, np.uint64),
            np.empty((rooted, root_words), np.uint64),
            np.empty(max(rooted, narrow), np.int64),
            np.empty((k, words), np.uint64),
            np.empty((k, words), np.uint64),
            np.empty(k, np.int64),
            np.zeros(2, np.uint64),
        )
        self._stop_flag = device.stop_flag

    def count_by(self, kernel: Callable[..., None], first: int, last: int) -> int:
        """Count the cliques of a range of arcs by a kernel."""
        g, total = self._graph, self._root.total
        total[:] = 0
        kernel(*g.rows, self._k, first, last, self._local, self._table, self._state, self._root, self._stop_flag)
        return int(total[0]) + (int(total[1]) << 64)


@compiled
def count_roots(indptr, indices, split, k, first, last, local, table, state, root, rooted, stop_flag):
    """Count the cliques of k >= 4 vertices whose two largest vertices are joined by the arcs first to last - 1.

    Parameters
    ----------
    indptr, indices, split, first, last, stop_flag
        As in :func:`longwall.kernels.cpu.local_counts.triangles.count_triangles`.
    k
        Clique size.
    local : int32[num_vertices]
        Workspace, all zero; it is left all zero.
    table : uint64[max_out_degree, words]
        Workspace: the bitmap table, words >= max_out_degree / 64.
    state : int64[2, k]
        Workspace.
    root : Root
        Workspace; the count is added to its total.
    rooted
        None: no root subgraphs are made, and the code for them is not compiled.
    """
    v = first_above(indptr, first) - 1
    while v < indptr.size - 1 and indptr[v] < last and not stop_flag[0]:
        a = indptr[v]
        degree = split[v] - a
        begin, end = max(a, first), min(split[v], last)
        if begin < end and degree >= k - 1:
            build_table(indptr, indices, split, a, degree, local, table)
            for i in range(begin - a, end - a):
                _count_arc(table, i, k - 2, state, root, rooted, stop_flag)
        v += 1


@compiled
def _count_arc(table, i, missing, state, root, rooted, stop_flag):
    """Count the cliques of `missing` vertices among the neighbours in row i of the table."""
    words, size = (i + 63) >> 6, np.int64(0)
    for w in range(words):
        root.chosen[0, w] = table[i, w]
        size += popcount(table[i, w])
    if size < missing:
        return
    if rooted is not None and size <= root.apart.shape[0]:
        edges = count_pairs(table, root.chosen[0], words)
        if OF * edges >= ADJACENT * size * (size - 1):
            count_in_root(table[i], words, size, table, missing, root, stop_flag)
            return
    add(root.total, _count_below(table, words, missing, root.chosen, root.left, state, stop_flag))


@compiled
def build_table(indptr, indices, split, a, degree, local, table):
    """Row i of the table: which of the first i out-neighbours are adjacent to out-neighbour i."""
    for i in range(degree):
        local[indices[a + i]] = i + 1
    for i in range(degree):
        for w in range((i + 63) >> 6):
            table[i, w] = 0
        u = indices[a + i]
        for j in range(indptr[u], split[u]):
            at = local[indices[j]]
            if at:
                table[i, (at - 1) >> 6] |= np.uint64(1) << np.uint64((at - 1) & 63)
    for i in range(degree):
        local[indices[a + i]] = 0


@compiled
def count_pairs(table, candidates, words):
    """Number of edges among the candidates."""
    found = np.int64(0)
    for w in range(words):
        bits = candidates[w]
        while bits:
            j, bits = pop_bit_of(bits, w)
            row = table[j]
            for x in range((j + 63) >> 6):
                found += popcount(candidates[x] & row[x])
    return found


@compiled
def _count_below(table, words, size, chosen, left, state, stop_flag):
    """Count the cliques of `size` vertices among those that are chosen first; 64 at most are found in a step."""
    if size == 2:
        return count_pairs(table, chosen[0], words)
    total = np.int64(0)
    width, word = state[0], state[1]
    word[0] = 0
    for w in range(words):
        left[0, w] = chosen[0, w]
    width[0] = words
    depth = 0
    while depth >= 0:
        if word[depth] == width[depth] or stop_flag[0]:
            depth -= 1
            continue
        bits = left[depth, word[depth]]
        if not bits:
            word[depth] += 1
            continue
        j, left[depth, word[depth]] = pop_bit_of(bits, word[depth])
        span = (j + 63) >> 6
        wanted = size - depth - 1
        present = np.int64(0)
        for w in range(span):
            both = chosen[depth, w] & table[j, w]
            chosen[depth + 1, w] = both
            present += popcount(both)
        if present < wanted:
            continue
        if wanted == 2:
            total += count_pairs(table, chosen[depth + 1], span)
        else:
            depth += 1
            for w in range(span):
                left[depth, w] = chosen[depth, w]
            width[depth] = span
            word[depth] = 0
    return total
