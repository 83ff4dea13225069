"""Count cliques in the root subgraph of an arc: its candidates, numbered anew, and which of them are not adjacent.

The search chooses candidates one by one, each with those before it that are adjacent to it, until four vertices are
missing; :mod:`longwall.kernels.cpu.kcliques.complement` counts these. Up to 64 candidates are words.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longwall.kernels.cpu.kcliques.complement import below, quads_of_bitmap, quads_of_word
from longwall.kernels.interface.workspaces import NARROW
from longwall.kernels.jit.bits import pop_bit, pop_bit_of, popcount, trailing_zeros
from longwall.kernels.jit.compile import compiled


class Root(NamedTuple):
    """A root subgraph, and the levels of a search in it."""

    number: NDArray[np.int32]
    """int32[most]: the new number of an out-neighbour."""
    word: NDArray[np.uint64]
    apart: NDArray[np.uint64]
    """uint64[64], uint64[size, words]: those that each candidate is not adjacent to, without itself. The rows for
    bitmaps are as many as the candidates of the largest root subgraph that is made, none where none is."""
    degrees: NDArray[np.int64]
    """int64[most]: workspace."""
    chosen: NDArray[np.uint64]
    left: NDArray[np.uint64]
    """uint64[k, words]: the candidates at each depth, and those of them that were not tried yet."""
    words: NDArray[np.int64]
    """int64[k]: the words that the bitmaps of each depth have."""
    total: NDArray[np.uint64]
    """uint64[2]: what was counted, the lower word first."""


@compiled
def add(total, number):
    """Add to a number of two words."""
    before = total[0]
    total[0] = before + np.uint64(number)
    total[1] += np.uint64(total[0] < before)


@compiled
def count_in_root(candidates, words, size, table, missing, root, stop_flag):
    """Count the cliques of `missing` >= 4 vertices among the candidates of an arc.

    Parameters
    ----------
    candidates : uint64[words]
        The candidates among the out-neighbours of the vertex.
    words, size
        Words that are looked at, and candidates.
    table
        The bitmap table of the vertex.
    missing
        Vertices of the cliques that are counted.
    root : Root
        Workspace; the count is added to its total.
    stop_flag
        The search ends early once this is set.
    """
    at = 0
    for w in range(words):
        bits = candidates[w]
        while bits:
            root.number[(w << 6) + trailing_zeros(bits)] = at
            bits &= bits - np.uint64(1)
            at += 1
    spread = (size + 63) >> 6
    last = ~np.uint64(0) >> np.uint64(63 - (size - 1 & 63))
    if size <= NARROW:
        _fill_word(candidates, words, table, root)
        _search_word(last, missing, root, stop_flag)
        return
    _fill_bitmap(candidates, words, size, spread, table, root)
    for w in range(spread):
        root.chosen[0, w] = ~np.uint64(0)
    root.chosen[0, spread - 1] = last
    _search_bitmap(spread, missing, root, stop_flag)


@compiled
def _fill_word(candidates, words, table, root):
    number, at = root.number, 0
    for w in range(words):
        bits = candidates[w]
        while bits:
            i, bits = pop_bit_of(bits, w)
            row = np.uint64(0)
            for x in range(w + 1):
                near = table[i, x] if x < (i + 63) >> 6 else np.uint64(0)
                some = candidates[x] & ~near
                if x == w:
                    some &= below(i)
                while some:
                    j = number[(x << 6) + trailing_zeros(some)]
                    some &= some - np.uint64(1)
                    row |= np.uint64(1) << np.uint64(j)
                    root.word[j] |= np.uint64(1) << np.uint64(at)
            root.word[at] = row
            at += 1


@compiled
def _fill_bitmap(candidates, words, size, spread, table, root):
    number, apart, at = root.number, root.apart, 0
    for i in range(size):
        for w in range(spread):
            apart[i, w] = 0
    for w in range(words):
        bits = candidates[w]
        while bits:
            i, bits = pop_bit_of(bits, w)
            for x in range(w + 1):
                near = table[i, x] if x < (i + 63) >> 6 else np.uint64(0)
                some = candidates[x] & ~near
                if x == w:
                    some &= below(i)
                while some:
                    j = number[(x << 6) + trailing_zeros(some)]
                    some &= some - np.uint64(1)
                    apart[at, j >> 6] |= np.uint64(1) << np.uint64(j & 63)
                    apart[j, at >> 6] |= np.uint64(1) << np.uint64(at & 63)
            at += 1


@compiled
def _search_word(everyone, missing, root, stop_flag):
    apart = root.word
    if missing == 4:
        add(root.total, quads_of_word(everyone, apart, root.degrees))
        return
    root.chosen[0, 0] = root.left[0, 0] = everyone
    depth = 0
    while depth >= 0 and not stop_flag[0]:
        bits = root.left[depth, 0]
        if not bits:
            depth -= 1
            continue
        i, root.left[depth, 0] = pop_bit(bits)
        some = root.chosen[depth, 0] & ~apart[i] & below(i)
        wanted = missing - depth - 1
        if popcount(some) < wanted:
            continue
        if wanted == 4:
            add(root.total, quads_of_word(some, apart, root.degrees))
        else:
            depth += 1
            root.chosen[depth, 0] = root.left[depth, 0] = some


@compiled
def _search_bitmap(spread, missing, root, stop_flag):
    apart, chosen, left = root.apart, root.chosen, root.left
    if missing == 4:
        add(root.total, quads_of_bitmap(chosen[0], spread, apart, root.degrees))
        return
    for w in range(spread):
        left[0, w] = chosen[0, w]
    root.words[0] = spread
    depth = 0
    while depth >= 0 and not stop_flag[0]:
        w = 0
        while w < root.words[depth] and not left[depth, w]:
            w += 1
        if w == root.words[depth]:
            depth -= 1
            continue
        i, left[depth, w] = pop_bit_of(left[depth, w], w)
        size = 0
        for x in range(w + 1):
            some = chosen[depth, x] & ~apart[i, x]
            if x == w:
                some &= below(i)
            chosen[depth + 1, x] = some
            size += popcount(some)
        wanted = missing - depth - 1
        if size < wanted:
            continue
        if wanted == 4:
            add(root.total, quads_of_bitmap(chosen[depth + 1], w + 1, apart, root.degrees))
        else:
            depth += 1
            for x in range(w + 1):
                left[depth, x] = chosen[depth, x]
            root.words[depth] = w + 1
