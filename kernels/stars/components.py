"""Independence polynomials of connected graphs that are neither paths nor cycles.

Leaves are taken away, again and again, and where there are none the vertex with the most neighbours left, which is
cut: what is taken away without a cut is a forest. So the independent sets of the cut vertices are enumerated, and for
each the polynomial of the forest without their neighbours is a product from the leaves to the roots. The last vertex
of a set is not enumerated.
"""

from longwall.kernels.jit import compiled
from longwall.kernels.stars.polynomials import multiply, set_one

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
def _add_forest(order, taken, parent, place, blocked, without, within, factor, found, depth, degree, primes):
    """Add the polynomial of the forest, times x**depth, to `found`."""
    most = degree - depth
    for at in range(taken):
        set_one(without[at], most)
        for j in range(most + 1):
            for r in range(primes.size):
                within[at, j, r] = 1 if j == 1 and blocked[order[at]] == 0 else 0
        place[order[at]] = at
    set_one(factor[1], most)
    for at in range(taken):
        for j in range(most + 1):
            for r in range(primes.size):
                factor[0, j, r] = (without[at, j, r] + within[at, j, r]) % primes[r]
        above = parent[order[at]]
        if above < 0:
            multiply(factor[1], factor[0], most, primes)
        else:
            multiply(without[place[above]], factor[0], most, primes)
            multiply(within[place[above]], without[at], most, primes)
    for j in range(most + 1):
        for r in range(primes.size):
            found[j + depth, r] = (found[j + depth, r] + factor[1, j, r]) % primes[r]


@compiled
def _block(start, near, v, blocked, by):
    for j in range(start[v], start[v + 1]):
        blocked[near[j]] += by


@compiled
def _free(vertices, first, last, blocked):
    """Return how many of some vertices are not blocked."""
    free = 0
    for at in range(first, last):
        free += blocked[vertices[at]] == 0
    return free


@compiled
def component(
    start, near, queue, begin, end, left, state, order, parent, cut, stack, place, blocked, chosen, without, within,
    factor, found, degree, primes, most_steps,
):  # fmt: skip
    """Make `found` the polynomial of the connected vertices queue[begin:end], up to a degree; return the steps.

    It is incomplete where these are more than `most_steps`. The degree is 1 at least.
    """
    taken, cuts, steps = _take_apart(start, near, queue, begin, end, left, state, order, parent, cut, stack)
    set_one(found, degree)
    found[0, :] = 0
    for at in range(begin, end):
        blocked[queue[at]] = 0
    depth, following, entered = 0, 0, True
    while steps <= most_steps:
        if entered and depth == degree - 1:  # one more vertex completes a set
            free = _free(order, 0, taken, blocked) + _free(cut, following, cuts, blocked)
            for r in range(primes.size):
                found[depth, r] = (found[depth, r] + 1) % primes[r]
                found[degree, r] = (found[degree, r] + free) % primes[r]
            steps += taken + cuts
            following = cuts
        elif entered:
            _add_forest(order, taken, parent, place, blocked, without, within, factor, found, depth, degree, primes)
            steps += taken * (degree - depth + 1) * (degree - depth + 4) * primes.size
        while following < cuts and blocked[cut[following]] > 0:
            following += 1
        entered = following < cuts
        if entered:
            chosen[depth] = following
            _block(start, near, cut[following], blocked, 1)
            depth, following = depth + 1, following + 1
        elif depth > 0:
            depth -= 1
            _block(start, near, cut[chosen[depth]], blocked, -1)
            following = chosen[depth] + 1
        else:
            break
        steps += 1
    return steps
