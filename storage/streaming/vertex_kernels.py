"""Kernels on sets of vertices as bits, and on the lists of their members; see `VertexSet`."""

import numpy as np

from longwall.kernels.jit.bisect import first_above
from longwall.kernels.jit.bits import popcount, trailing_zeros
from longwall.kernels.jit.compile import compiled


@compiled
def rank_words(words, ranks):
    """Write how many bits come before each word, and how many there are."""
    total = np.int64(0)
    for at in range(words.size):
        ranks[at] = total
        total += popcount(words[at])
    ranks[words.size] = total


@compiled
def rank(words, ranks, vertex):
    """See `VertexSet.rank`."""
    below = words[vertex >> 6] & ((np.uint64(1) << np.uint64(vertex & 63)) - np.uint64(1))
    return np.int64(ranks[vertex >> 6]) + popcount(below)


@compiled
def list_members(words, ranks, first, members):
    """Write the members from rank `first` on."""
    word = first_above(ranks, first) - 1
    rank, at = np.int64(ranks[word]), 0
    while at < members.size:
        bits = words[word]
        while bits:
            if first <= rank and at < members.size:
                members[at] = (word << 6) + trailing_zeros(bits)
                at += 1
            rank += 1
            bits &= bits - np.uint64(1)
        word += 1


@compiled
def add_roots(lists, at, starts, first, last, least, loaded, limit, member_cost, arc_cost, words, state):
    """See `VertexSet.add_roots`."""
    taken, root = state[0], first
    while root < last and starts[root] < at + lists.size:
        begin, end = starts[root], starts[root + 1]
        if end - begin >= least:
            if begin >= at:
                taken += new_cost(np.int64(root), words, starts, loaded, member_cost, arc_cost)
            for arc in range(max(begin, at), min(end, at + lists.size)):
                vertex = np.int64(lists[arc - at])
                cost = new_cost(vertex, words, starts, loaded, member_cost, arc_cost)
                taken += cost
                if taken > limit:
                    break
                words[vertex >> 6] |= np.uint64(1) << np.uint64(vertex & 63)
            if taken > limit:
                state[0] = taken
                return root
            words[root >> 6] |= np.uint64(1) << np.uint64(root & 63)
        if end > at + lists.size:
            break
        root += 1
    state[0] = taken
    return root


@compiled
def new_cost(vertex, words, starts, loaded, member_cost, arc_cost):
    """Bytes that a vertex takes as a member; 0 if it is one."""
    if words[vertex >> 6] & (np.uint64(1) << np.uint64(vertex & 63)):
        return 0
    return member_cost + (arc_cost * (starts[vertex + 1] - starts[vertex]) if vertex >= loaded else 0)


@compiled
def lists_end(words, starts, first, last, arcs):
    """See `VertexSet.lists_end`."""
    left, word = np.int64(arcs), first >> 6
    bits = words[word] & (~np.uint64(0) << np.uint64(first & 63))
    while (word << 6) < last:
        while bits:
            vertex = (word << 6) + trailing_zeros(bits)
            if vertex >= last:
                return last
            left -= starts[vertex + 1] - starts[vertex]
            if left < 0:
                return vertex
            bits &= bits - np.uint64(1)
        word += 1
        if word == words.size:
            break
        bits = words[word]
    return last


@compiled
def count_needed(words, starts, first, last, bounds, needed):
    """See `VertexSet.count_needed`."""
    word = first >> 6
    bits = words[word] & (~np.uint64(0) << np.uint64(first & 63))
    segment = first_above(bounds, starts[first]) - 1
    while (word << 6) < last:
        while bits:
            vertex = (word << 6) + trailing_zeros(bits)
            if vertex >= last:
                return
            begin, end = starts[vertex], starts[vertex + 1]
            while begin < end:
                while bounds[segment + 1] <= begin:
                    segment += 1
                upto = min(end, bounds[segment + 1])
                needed[segment] += upto - begin
                begin = upto
            bits &= bits - np.uint64(1)
        word += 1
        if word == words.size:
            return
        bits = words[word]


@compiled
def pick(values, at, starts, words, ranks, first, last, out, lengths, found):
    """See `VertexSet.pick`; `found` (int64[2]) takes what it returns."""
    stop, copied = at + values.size, np.int64(0)
    # The first vertex whose list does not end before these neighbours.
    vertex = max(first_above(starts, at) - 1, first)
    if vertex >= last:
        return
    word = vertex >> 6
    own = np.int64(ranks[word]) + popcount(words[word] & ((np.uint64(1) << np.uint64(vertex & 63)) - np.uint64(1)))
    bits = words[word] & (~np.uint64(0) << np.uint64(vertex & 63))
    while (word << 6) < last:
        while bits:
            vertex = (word << 6) + trailing_zeros(bits)
            if vertex >= last or starts[vertex] >= stop:
                found[0] = copied
                return
            before = copied
            for arc in range(max(starts[vertex], at), min(starts[vertex + 1], stop)):
                other = values[arc - at]
                bit = np.uint64(1) << np.uint64(other & np.uint32(63))
                have = words[other >> np.uint32(6)]
                if have & bit:
                    out[copied] = ranks[other >> np.uint32(6)] + popcount(have & (bit - np.uint64(1)))
                    copied += 1
            if starts[vertex] >= at:
                lengths[own] = copied - before
            else:
                found[1] = copied - before
            own += 1
            bits &= bits - np.uint64(1)
        word += 1
        if word == words.size:
            break
        bits = words[word]
    found[0] = copied
