"""Count the independent sets of a size among the neighbours of each vertex of a range, added up."""

from longwall.kernels.jit import compiled
from longwall.kernels.stars.components import FORK, component
from longwall.kernels.stars.polynomials import multiply, set_cycle, set_independent, set_one, set_path


@compiled
def most_joined(indptr, indices, split, roots):
    """Return the most edges that the neighbours of one of the first vertices may have between them."""
    most = 0
    for v in range(roots):
        size, edges = indptr[v + 1] - indptr[v], 0
        for j in range(indptr[v], indptr[v + 1]):
            u = indices[j]
            edges += min(split[u] - indptr[u], size)
        most = max(most, min(edges, size * (size - 1) // 2))
    return most


@compiled
def _join_neighbours(indptr, indices, split, v, ranks, start, near, following):
    """Write the edges between the neighbours of v, numbered by their places in its row; return the steps."""
    first, size = indptr[v], indptr[v + 1] - indptr[v]
    steps = size
    for i in range(size):
        ranks[indices[first + i]] = i + 1
        start[i] = 0
    start[size] = 0
    for i in range(size):
        u = indices[first + i]
        for j in range(indptr[u], split[u]):
            other = ranks[indices[j]]
            if other > 0:
                start[i] += 1
                start[other - 1] += 1
        steps += split[u] - indptr[u]
    total = 0
    for i in range(size + 1):
        own = start[i]
        start[i] = total
        following[i] = total
        total += own
    for i in range(size):
        u = indices[first + i]
        for j in range(indptr[u], split[u]):
            other = ranks[indices[j]]
            if other > 0:
                near[following[i]] = other - 1
                near[following[other - 1]] = i
                following[i] += 1
                following[other - 1] += 1
    for i in range(size):
        ranks[indices[first + i]] = 0
    return steps


@compiled
def _connected(start, near, root, begin, queue, seen):
    """List the vertices that are connected to a root; return where the list ends, its edges, the most neighbours."""
    end, arcs, most = begin + 1, 0, 0
    queue[begin] = root
    seen[root] = 1
    at = begin
    while at < end:
        v = queue[at]
        arcs += start[v + 1] - start[v]
        most = max(most, start[v + 1] - start[v])
        for j in range(start[v], start[v + 1]):
            if seen[near[j]] == 0:
                seen[near[j]] = 1
                queue[end] = near[j]
                end += 1
        at += 1
    return end, arcs >> 1, most


@compiled
def count_sets(
    indptr, indices, split, first, last, primes, inverses, ranks, start, near, seen, queue, left, state, order, parent,
    cut, stack, place, blocked, chosen, without, within, factor, total, part, sums, steps, most_steps,
):  # fmt: skip
    """Add the independent sets among the neighbours of the vertices from `first` on to `sums`, modulo each prime.

    It stops before `last` when it has taken `steps`. What it was asked for is the degree of `total`, which is
    int64[degree + 1, primes] as `part` is; `without` and `within` have one more dimension, and as many forests'
    vertices as there is room for.

    Returns
    -------
    int
        The vertex that is next; -1 where one takes more than `most_steps`, or more room.
    int
        The steps.
    """
    degree, done = total.shape[0] - 1, 0
    for v in range(first, last):
        if done >= steps:
            return v, done
        size = indptr[v + 1] - indptr[v]
        used = _join_neighbours(indptr, indices, split, v, ranks, start, near, left)
        set_one(total, degree)
        for i in range(size):
            seen[i] = 0
        alone, begin = 0, 0
        for i in range(size):
            if start[i] == start[i + 1]:
                alone += 1
            elif seen[i] == 0:
                end, edges, most = _connected(start, near, i, begin, queue, seen)
                if most >= FORK:
                    if end - begin > without.shape[0]:
                        return -1, done + used
                    used += component(
                        start, near, queue, begin, end, left, state, order, parent, cut, stack, place, blocked, chosen,
                        without, within, factor, part, degree, primes, most_steps - used,
                    )  # fmt: skip
                    if used > most_steps:
                        return -1, done + used
                elif edges < end - begin:
                    set_path(part, end - begin, degree, primes, inverses)
                else:
                    set_cycle(part, end - begin, degree, primes, inverses)
                multiply(total, part, degree, primes)
                used += (degree + 1) * (degree + 1) * primes.size
                begin = end
        set_independent(part, alone, degree, primes, inverses)
        multiply(total, part, degree, primes)
        for r in range(primes.size):
            sums[r] = (sums[r] + total[degree, r]) % primes[r]
        done += used + 2 * (degree + 1) * (degree + 1) * primes.size
    return last, done
