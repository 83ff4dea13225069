"""Sum, over a range of vertices, the independent sets among those neighbours of each vertex that can be leaves."""

import numpy as np

from longwall.kernels.host.stars.components import FORK, component
from longwall.kernels.host.stars.polynomials import choices, multiply, next_of_path, set_independent, set_one
from longwall.kernels.jit.compile import compiled


@compiled("i8[::1], u4[::1], i8[::1], i8")
def most_joined(indptr, indices, split, roots):
    """Return the most edges that the neighbours of one of the first vertices may have between them."""
    most = 0
    for v in range(roots):
        size, edges = indptr[v + 1] - indptr[v], 0
        for j in range(indptr[v], indptr[v + 1]):
            u = indices[j]
            edges += min(split[u] - indptr[u] - (v < u), size)
        most = max(most, min(edges, size * (size - 1) // 2))
    return most


@compiled
def _count_kinds(indptr, indices, v, kinds, named, number, counts):
    """Count the neighbours of v by kind; return the number of possible leaves, or 0 if they are too few for a star."""
    counts[:] = 0
    for i in range(indptr[v], indptr[v + 1]):
        kind = kinds[indices[i]]
        if kind >= 0:
            counts[kind] += 1
    for c in range(named.size):
        if counts[c] < named[c]:
            return np.int64(0)
    size = counts.sum()
    return size if size >= number else np.int64(0)


@compiled
def _join_neighbours(indptr, indices, split, v, kinds, ranks, start, near, following, own):
    """Write the edges between the possible leaves among the neighbours of v, numbered in the order of its row.

    Returns
    -------
    size : int
        The number of possible leaves; `own` receives their kinds.
    steps : int
        The steps taken.
    """
    first, last = indptr[v], indptr[v + 1]
    size, steps = 0, last - first
    for i in range(first, last):
        u = indices[i]
        if kinds[u] >= 0:
            own[size] = kinds[u]
            start[size] = 0
            size += 1
            ranks[u] = size
    start[size] = 0
    for i in range(first, last):
        u = indices[i]
        mine = ranks[u]
        if mine == 0:
            continue
        for j in range(indptr[u], split[u]):
            other = ranks[indices[j]]
            if other > 0:
                start[mine - 1] += 1
                start[other - 1] += 1
        steps += split[u] - indptr[u]
    total = 0
    for i in range(size + 1):
        degree = start[i]
        start[i] = total
        following[i] = total
        total += degree
    for i in range(first, last):
        u = indices[i]
        mine = ranks[u]
        if mine == 0:
            continue
        for j in range(indptr[u], split[u]):
            other = ranks[indices[j]]
            if other > 0:
                near[following[mine - 1]] = other - 1
                near[following[other - 1]] = mine - 1
                following[mine - 1] += 1
                following[other - 1] += 1
    for i in range(first, last):
        ranks[indices[i]] = 0
    return size, steps


@compiled
def _connected(start, near, root, begin, queue, seen):
    """List the vertices that are connected to a root.

    Returns
    -------
    end : int
        The end of the list.
    most : int
        The largest number of neighbours of a listed vertex.
    tip : int
        A listed vertex with one neighbour; -1 if none has one.
    """
    end, most, tip = begin + 1, 0, -1
    queue[begin] = root
    seen[root] = 1
    at = begin
    while at < end:
        v = queue[at]
        degree = start[v + 1] - start[v]
        most = max(most, degree)
        if degree == 1:
            tip = v
        for j in range(start[v], start[v + 1]):
            if seen[near[j]] == 0:
                seen[near[j]] = 1
                queue[end] = near[j]
                end += 1
        at += 1
    return end, most, tip


@compiled
def _walk(start, near, v, back, length, own, without, within, number, terms, primes):
    """Extend the sets by the vertices of a path, from v and away from `back`."""
    for _ in range(length):
        next_of_path(without, within, own[v], number, terms, primes)
        following = -1
        for j in range(start[v], start[v + 1]):
            if near[j] != back:
                following = near[j]
        back, v = v, following


@compiled
def _set_path(part, start, near, tip, back, length, own, ends, number, terms, primes):
    """Compute the polynomial of a path that begins at `tip` and leads away from `back`."""
    set_one(ends[0], number)
    ends[1, :number] = 0
    _walk(start, near, tip, back, length, own, ends[0], ends[1], number, terms, primes)
    for s in range(number):
        for r in range(primes.size):
            part[s, r] = (ends[0, s, r] + ends[1, s, r]) % primes[r]


@compiled
def _set_cycle(part, start, near, root, length, own, ends, number, terms, primes):
    """Compute the polynomial of a cycle: sets without one of its vertices, and sets with it."""
    beside = near[start[root]]
    _set_path(part, start, near, beside, root, length - 1, own, ends, number, terms, primes)
    set_one(ends[0], number)
    ends[1, :number] = 0
    next_of_path(ends[0], ends[1], own[root], number, terms, primes)
    ends[0, :number] = 0
    _walk(start, near, beside, root, length - 1, own, ends[0], ends[1], number, terms, primes)
    for s in range(number):
        for r in range(primes.size):
            part[s, r] = (part[s, r] + ends[0, s, r]) % primes[r]


@compiled(
    "i8[::1], u4[::1], i8[::1], i1[::1], b1[::1], i8[::1], i8, i8, i8[::1], i8[:,::1], i4[::1], i4[::1], i4[::1], "
    "i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], "
    "i8[::1], i8[::1], i8[:,:,::1], i8[:,:,::1], i8[:,:,::1], i8[:,:,::1], i8[:,:,::1], i8[:,::1], i8[:,::1], "
    "i8[::1], i8[:,::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[:,::1], i8, i8"
)
def count_sets(
    indptr, indices, split, kinds, centres, named, first, last, primes, inverses, ranks, start, near, seen, queue, left,
    state, order, parent, cut, stack, place, blocked, own, chosen, counts, free, without, within, factor, prefix, ends,
    total, part, sums, less, starts, firsts, seconds, upto, classes, steps, most_steps,
):  # fmt: skip
    """Add the independent sets among the neighbours of the vertices from `first` on to `sums`, modulo each prime.

    The kernel stops before `last` once it has taken `steps` steps. `kinds` has the kind of leaf that each vertex can
    be, or -1; `centres` marks the possible centres; `less` to `classes` are `Leaves.terms`.

    Returns
    -------
    int
        The vertex to go on with; -1 if one vertex takes more than `most_steps`, or more than the workspace holds.
    int
        The steps taken.
    """
    terms = (less, starts, firsts, seconds, upto, classes)
    degree, number, done = upto.size - 1, total.shape[0], 0
    once = starts[number]
    for v in range(first, last):
        if done >= steps:
            return v, done
        done += 1
        if not centres[v]:
            continue
        used = indptr[v + 1] - indptr[v]
        if _count_kinds(indptr, indices, v, kinds, named, degree, counts) == 0:
            done += used
            continue
        size, more = _join_neighbours(indptr, indices, split, v, kinds, ranks, start, near, left, own)
        used += more
        set_one(total, number)
        for i in range(size):
            seen[i] = 0
        counts[:] = 0
        begin = 0
        for i in range(size):
            if start[i] == start[i + 1]:
                counts[own[i]] += 1
            elif seen[i] == 0:
                end, most, tip = _connected(start, near, i, begin, queue, seen)
                if most >= FORK:
                    if end - begin > without.shape[0]:
                        return -1, done + used
                    used += component(
                        start, near, queue, begin, end, left, state, order, parent, cut, stack, place, blocked, own,
                        chosen, free, without, within, factor, prefix, part, degree, terms, primes, most_steps - used,
                    )  # fmt: skip
                elif tip >= 0:
                    _set_path(part, start, near, tip, -1, end - begin, own, ends, number, terms, primes)
                    used += (end - begin) * number * primes.size
                else:
                    _set_cycle(part, start, near, i, end - begin, own, ends, number, terms, primes)
                    used += 2 * (end - begin) * number * primes.size
                if used > most_steps:
                    return -1, done + used
                multiply(total, part, number, terms, primes)
                used += 2 * once * primes.size
                begin = end
        for kind in range(counts.size):
            if counts[kind] > 0:
                set_independent(part, kind, counts[kind], number, terms, primes, inverses)
                multiply(total, part, number, terms, primes)
                used += 4 * once * primes.size
        for r in range(primes.size):
            sums[r] = (sums[r] + total[number - 1, r]) % primes[r]
        done += used
    return last, done


@compiled("i8[::1], u4[::1], i1[::1], b1[::1], i8[::1], i8, i8, i8, i8[::1], i8[:,::1], i8[::1], i8[::1], i8")
def count_choices(
    indptr, indices, kinds, centres, named, free, first, last, primes, inverses, counts, sums, steps
):  # fmt: skip
    """Add the choices of leaves among the neighbours of the vertices from `first` on to `sums`, modulo each prime.

    Neighbours of a centre may be adjacent, and `free` leaves may have any label. The other parameters and the results
    are those of `count_sets`.
    """
    number, done = free + named.sum(), 0
    for v in range(first, last):
        if done >= steps:
            return v, done
        done += 1
        if not centres[v]:
            continue
        done += indptr[v + 1] - indptr[v]
        size = _count_kinds(indptr, indices, v, kinds, named, number, counts)
        if size > 0:
            for r in range(primes.size):
                sums[r] = (sums[r] + choices(counts, size, named, free, r, primes, inverses)) % primes[r]
            done += number * primes.size
    return last, done
