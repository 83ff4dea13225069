"""Whether DFS codes are minimal; see :mod:`longwall.kernels.host.patterns.dfs_codes`."""

from longwall.kernels.jit.compile import compiled


@compiled
def _less(a, b, c, x, y, z):
    return a < x or (a == x and (b < y or (b == y and c < z)))


@compiled
def _smaller_extension(codes, n, t, ptr, ends, edges, labels, parents, newest, mapped, inverse, used):
    """Whether some extension of a partial code is smaller than edge t; else the edge of a backward match, -1 or -2."""
    i, j, edge_label, label = codes[n, t, 0], codes[n, t, 1], codes[n, t, 3], codes[n, t, 4]
    backward = j < i
    u = mapped[newest]
    match = -2
    for a in range(ptr[u], ptr[u + 1]):
        e = edges[a]
        other = inverse[ends[a]]
        if other < 0 or used[e]:
            continue
        if not backward or other < j:
            return -1
        if other == j:
            if codes[n, e, 3] < edge_label:
                return -1
            if codes[n, e, 3] == edge_label:
                match = e
    if backward:
        return match
    # Forward edges from deeper vertices of the rightmost path are smaller.
    at = newest
    while at != i:
        u = mapped[at]
        for a in range(ptr[u], ptr[u + 1]):
            if inverse[ends[a]] < 0:
                return -1
        at = parents[at]
    u = mapped[i]
    for a in range(ptr[u], ptr[u + 1]):
        w = ends[a]
        if inverse[w] < 0:
            le, lw = codes[n, edges[a], 3], labels[w]
            if le < edge_label or (le == edge_label and lw < label):
                return -1
    return -2


@compiled
def _alike(codes, n, ptr, ends, edges, labels, inverse, u, place):
    """How many free leaves of vertex u are as the one at a place of its list, 0 if one stands before it; 1 if none."""
    leaf = ends[place]
    if ptr[leaf + 1] - ptr[leaf] > 1:
        return 1
    count = 0
    for a in range(ptr[u], ptr[u + 1]):
        w = ends[a]
        if (
            inverse[w] < 0
            and ptr[w + 1] - ptr[w] == 1
            and labels[w] == labels[leaf]
            and codes[n, edges[a], 3] == codes[n, edges[place], 3]
        ):
            if a < place:
                return 0
            count += 1
    return count


@compiled
def _note_moved(mapped, size, moved):
    """Note where an automorphism sends the first vertex that it moves."""
    for v in range(size):
        if mapped[v] != v:
            moved[v, mapped[v]] = 1
            return


@compiled
def _automorphisms(
    codes, n, ptr, ends, edges, labels, parents, mapped, inverse, used, chosen, cursor, newest, weights, moved
):  # fmt: skip
    """The automorphisms of a code's pattern, 0 where a smaller code exists.

    Of leaves that can take each other's place one is tried, and counted as often as there are; all are where it is
    noted what is moved, which takes a `moved` that is not empty.
    """
    every = moved.shape[0] > 0
    length = codes.shape[1]
    size = 0
    for e in range(length):
        size = max(size, codes[n, e, 0] + 1, codes[n, e, 1] + 1)
    ptr[: size + 1] = 0
    for e in range(length):
        i, j = codes[n, e, 0], codes[n, e, 1]
        ptr[i + 1] += 1
        ptr[j + 1] += 1
        labels[i], labels[j] = codes[n, e, 2], codes[n, e, 4]
        if i < j:
            parents[j] = i
    for v in range(size):
        ptr[v + 1] += ptr[v]
        cursor[v] = ptr[v]
        inverse[v] = -1
    for e in range(length):
        i, j = codes[n, e, 0], codes[n, e, 1]
        ends[cursor[i]], edges[cursor[i]] = j, e
        cursor[i] += 1
        ends[cursor[j]], edges[cursor[j]] = i, e
        cursor[j] += 1
        used[e] = 0
    newest[0] = 0
    for t in range(length):
        newest[t + 1] = max(newest[t], codes[n, t, 0], codes[n, t, 1])
    first = codes[n, 0, 2], codes[n, 0, 3], codes[n, 0, 4]
    for u in range(size):
        for a in range(ptr[u], ptr[u + 1]):
            if _less(labels[u], codes[n, edges[a], 3], labels[ends[a]], first[0], first[1], first[2]):
                return 0
    total = 0
    for u in range(size):
        for a in range(ptr[u], ptr[u + 1]):
            w, e = ends[a], edges[a]
            if labels[u] != first[0] or codes[n, e, 3] != first[1] or labels[w] != first[2]:
                continue
            weights[1] = 1
            if not every:
                weights[1] = _alike(codes, n, ptr, ends, edges, labels, inverse, u, a)
                for b in range(ptr[w], ptr[w + 1]):
                    if ends[b] == u and weights[1] > 0:
                        weights[1] *= _alike(codes, n, ptr, ends, edges, labels, inverse, w, b)
                if weights[1] == 0:
                    continue
            mapped[0], mapped[1] = u, w
            inverse[u], inverse[w] = 0, 1
            used[e] = 1
            t, entering = 1, True
            while t > 0:
                if t == length:
                    total += weights[t]
                    if every:
                        _note_moved(mapped, size, moved)
                    t -= 1
                    entering = False
                    continue
                i, j = codes[n, t, 0], codes[n, t, 1]
                if entering:
                    match = _smaller_extension(
                        codes, n, t, ptr, ends, edges, labels, parents, newest[t], mapped, inverse, used
                    )  # fmt: skip
                    if match == -1:
                        return 0
                    cursor[t] = match if j < i else ptr[mapped[i]]
                    chosen[t] = -1
                elif chosen[t] >= 0:
                    used[chosen[t]] = 0
                    if i < j:
                        inverse[mapped[j]] = -1
                    chosen[t] = -1
                entering = False
                if j < i:
                    if cursor[t] >= 0:
                        chosen[t] = cursor[t]
                        cursor[t] = -2
                        weights[t + 1] = weights[t]
                elif i < j:
                    v = mapped[i]
                    while cursor[t] < ptr[v + 1]:
                        place = cursor[t]
                        cursor[t] += 1
                        if (
                            inverse[ends[place]] >= 0
                            or codes[n, edges[place], 3] != codes[n, t, 3]
                            or labels[ends[place]] != codes[n, t, 4]
                        ):
                            continue
                        times = 1 if every else _alike(codes, n, ptr, ends, edges, labels, inverse, v, place)
                        if times > 0:
                            weights[t + 1] = weights[t] * times
                            chosen[t] = edges[place]
                            mapped[j] = ends[place]
                            inverse[ends[place]] = j
                            break
                if chosen[t] >= 0:
                    used[chosen[t]] = 1
                    t += 1
                    entering = True
                else:
                    t -= 1
            inverse[u], inverse[w] = -1, -1
            used[e] = 0
    return total


@compiled("i4[:,:,::1], i8, i8, i8[:,::1], u1[::1], i8[::1], u1[:,::1]")
def check(codes, begin, end, work, stop, found, moved):
    """Put the automorphisms of codes begin to end - 1 into `found`, 0 where a code is not minimal.

    `moved` (uint8[vertices, vertices], or empty) gets a 1 where an automorphism that fixes all vertices before v sends
    v to another.
    """
    for n in range(begin, end):
        if stop[0]:
            return
        found[n] = _automorphisms(
            codes, n, work[0], work[1], work[2], work[3], work[4], work[5], work[6], work[7], work[8], work[9],
            work[10], work[11], moved,
        )  # fmt: skip
