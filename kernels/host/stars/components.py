"""Independence polynomials of connected graphs that are neither paths nor cycles.

Leaves are taken away, again and again, and where there are none the vertex with the most neighbours left, which is
cut: what is taken away without a cut is a forest. So the independent sets of the cut vertices are enumerated, and for
each the polynomial of the forest without their neighbours is a product from the leaves to the roots. The last vertex
of a set is not enumerated.
"""

from longwall.kernels.host.stars.polynomials import add_vertices, multiply, set_one
from longwall.kernels.jit.compile import compiled

TAKEN, CUT = 1, 2
FORK = 3  # neighbours of a vertex that is on no path and no cycle


@compiled
def _take_apart(start, near, queue, begin, end, left, state, order, parent, cut, stack):
    """Order the vertices queue[begin:end] for the forest; return how many it has, how many are cut, and the steps."""
    taken, cuts, steps, top = 0, 0, 0, 0
    for at in range(begin, end):
        v = queue[at]
        left[v] = start[v + 1] - start[v]
        state[v] = 0
        if left[v] == 1:
            stack[top] = v
            top += 1
    while taken + cuts < end - begin:
        if top > 0:
            top -= 1
            v = stack[top]
            if state[v] != 0:
                continue
            state[v] = TAKEN
            order[taken] = v
            taken += 1
            parent[v] = -1
        else:
            v = queue[begin]
            for at in range(begin, end):
                w = queue[at]
                if state[v] != 0 or (state[w] == 0 and left[w] > left[v]):
                    v = w
            steps += end - begin
            state[v] = CUT
            cut[cuts] = v
            cuts += 1
        for j in range(start[v], start[v + 1]):
            w = near[j]
            if state[w] == 0:
                if state[v] == TAKEN:
                    parent[v] = w
                left[w] -= 1
                if left[w] == 1:
                    stack[top] = w
                    top += 1
        steps += start[v + 1] - start[v]
    for at in range(taken):
        v = order[at]
        if parent[v] >= 0 and state[parent[v]] == CUT:
            parent[v] = -1
    return taken, cuts, steps


@compiled
def _add_forest(order, taken, parent, place, blocked, own, without, within, factor, chosen, found, most, terms, primes):
    """Add to `found` the polynomial of the forest, up to a degree, times that of the vertices chosen so far."""
    number, starts, first, second = terms[4][most], terms[1], terms[2], terms[3]
    for at in range(taken):
        set_one(without[at], number)
        within[at, :number] = 0
        if blocked[order[at]] == 0:
            add_vertices(within[at], without[at], own[order[at]], 1, number, terms, primes)
        place[order[at]] = at
    set_one(factor[1], number)
    for at in range(taken):
        for s in range(number):
            for r in range(primes.size):
                factor[0, s, r] = (without[at, s, r] + within[at, s, r]) % primes[r]
        above = parent[order[at]]
        if above < 0:
            multiply(factor[1], factor[0], number, terms, primes)
        else:
            multiply(without[place[above]], factor[0], number, terms, primes)
            multiply(within[place[above]], without[at], number, terms, primes)
    for s in range(found.shape[0]):
        for i in range(starts[s], starts[s + 1]):
            if second[i] < number:
                for r in range(primes.size):
                    found[s, r] = (found[s, r] + chosen[first[i], r] * factor[1, second[i], r]) % primes[r]


@compiled
def _block(start, near, v, blocked, by):
    for j in range(start[v], start[v + 1]):
        blocked[near[j]] += by


@compiled
def _count_free(vertices, first, last, blocked, own, counts):
    """Count the vertices that are not blocked, by kind."""
    for at in range(first, last):
        if blocked[vertices[at]] == 0:
            counts[own[vertices[at]]] += 1


@compiled
def component(
    start, near, queue, begin, end, left, state, order, parent, cut, stack, place, blocked, own, chosen, free, without,
    within, factor, prefix, found, degree, terms, primes, most_steps,
):  # fmt: skip
    """Make `found` the polynomial of the connected vertices queue[begin:end], up to a degree; return the steps.

    `found` is incomplete if the steps exceed `most_steps`. The degree is at least 1. `own` are the kinds of the
    vertices. `free` has a number for each kind: all zero before and after the call.
    """
    taken, cuts, steps = _take_apart(start, near, queue, begin, end, left, state, order, parent, cut, stack)
    number, starts, upto = found.shape[0], terms[1], terms[4]
    found[:] = 0
    set_one(prefix[0], number)
    for at in range(begin, end):
        blocked[queue[at]] = 0
    depth, following, entered = 0, 0, True
    while steps <= most_steps:
        if entered and depth == degree - 1:  # one more vertex completes a set
            for s in range(number):
                for r in range(primes.size):
                    found[s, r] = (found[s, r] + prefix[depth, s, r]) % primes[r]
            _count_free(order, 0, taken, blocked, own, free)
            _count_free(cut, following, cuts, blocked, own, free)
            for kind in range(free.size):
                if free[kind] > 0:
                    add_vertices(found, prefix[depth], kind, free[kind], number, terms, primes)
                free[kind] = 0
            steps += taken + cuts
            following = cuts
        elif entered:
            most = degree - depth
            _add_forest(
                order, taken, parent, place, blocked, own, without, within, factor, prefix[depth], found, most, terms,
                primes,
            )  # fmt: skip
            steps += 2 * taken * (starts[upto[most]] + upto[most]) * primes.size
        while following < cuts and blocked[cut[following]] > 0:
            following += 1
        entered = following < cuts
        if entered:
            chosen[depth] = following
            _block(start, near, cut[following], blocked, 1)
            prefix[depth + 1] = 0
            add_vertices(prefix[depth + 1], prefix[depth], own[cut[following]], 1, number, terms, primes)
            depth, following = depth + 1, following + 1
        elif depth > 0:
            depth -= 1
            _block(start, near, cut[chosen[depth]], blocked, -1)
            following = chosen[depth] + 1
        else:
            break
        steps += 1
    return steps
