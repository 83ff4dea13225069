"""Canonical forms of small patterns, given as adjacency bits.

The code of a pattern has a bit per pair of vertices: the pair (u, v), u < v, is bit v (v - 1) / 2 + u, so that the
code of the first vertices is a prefix of the code of all. A canonical numbering sorts the vertices by colour (which
may stand for labels), refined by the colours of their neighbours, and takes among the orders that are left the one with
the smallest sorted edge list.
"""

from longwall.kernels.jit.compile import compiled

MAX_VERTICES = 8  # four bits per colour class count the neighbours there


@compiled
def _canonical_order(rows, colours, k, order, work):
    """Write the vertex at every canonical position to `order`; refine the colours; return a key of the pattern."""
    _refine(rows, colours, k, work)
    twins, class_at, choice, placed = work[2], work[3], work[4], work[5]
    for v in range(k):
        twins[v] = 0
        for u in range(v):
            both = (1 << u) | (1 << v)
            if colours[u] == colours[v] and rows[u] & ~both == rows[v] & ~both:
                twins[v] |= 1 << u
    # A refined colour is the first position of its vertices.
    for position in range(k):
        class_at[position] = 0
        for v in range(k):
            if colours[v] <= position:
                class_at[position] = max(class_at[position], colours[v])
    best = -1
    used = 0
    depth = 0
    choice[0] = -1
    while depth >= 0:
        if depth == k:
            key = _key(rows, k, placed)
            if key > best:
                best = key
                for i in range(k):
                    order[i] = placed[i]
            depth -= 1
            continue
        if choice[depth] >= 0:
            used &= ~(1 << choice[depth])
        v = choice[depth] + 1
        # Twins may be exchanged, so only one order of theirs is looked at.
        while v < k and (colours[v] != class_at[depth] or used >> v & 1 or twins[v] & ~used):
            v += 1
        if v == k:
            depth -= 1
            continue
        choice[depth] = v
        placed[depth] = v
        used |= 1 << v
        depth += 1
        if depth < k:
            choice[depth] = -1
    return best


@compiled
def _refine(rows, colours, k, work):
    """Make ranks of the colours, and split them by the colours of the neighbours until nothing changes."""
    signs, ranks = work[0], work[1]
    for turn in range(k + 1):
        changed = False
        for v in range(k):
            signs[v] = 0
            for u in range(k):
                if turn and rows[v] >> u & 1:
                    signs[v] += 1 << (4 * (k - 1 - colours[u]))
        for v in range(k):
            rank = 0
            for u in range(k):
                rank += colours[u] < colours[v] or (colours[u] == colours[v] and signs[u] > signs[v])
            changed |= rank != colours[v]
            ranks[v] = rank
        for v in range(k):
            colours[v] = ranks[v]
        if turn and not changed:
            break


@compiled
def _key(rows, k, order):
    """The pairs in lexicographic order, the first one in the highest bit."""
    key = 0
    for i in range(k):
        row = rows[order[i]]
        for j in range(i + 1, k):
            key = key << 1 | (row >> order[j] & 1)
    return key


@compiled
def rows_of(code, k, rows):
    """Write the neighbours of every vertex of a code, as bits, to `rows` (int64[>= k])."""
    for v in range(k):
        rows[v] = code >> (v * (v - 1) // 2) & ((1 << v) - 1)
        for u in range(v):
            rows[u] |= (rows[v] >> u & 1) << v


@compiled
def is_connected(rows, k, left_out):
    """Whether the vertices that are not in `left_out` (bits) are connected."""
    wanted = ((1 << k) - 1) & ~left_out
    reached = wanted & -wanted
    while True:
        more = reached
        for v in range(k):
            if reached >> v & 1:
                more |= rows[v]
        more &= wanted
        if more == reached:
            return reached == wanted
        reached = more


@compiled("i8[::1], i8[:,::1], i8, i8[::1], i8[::1], i8[:,::1]")
def canonical_codes(codes, colours, k, found, keys, work):
    """Bring patterns of k vertices to their canonical form.

    Parameters
    ----------
    codes : int64[n]
        Codes.
    colours : int64[n, k]
        The colour of each vertex, 0 to k - 1; smaller ones come first. They are refined in place.
    k
        Number of vertices, at most 8.
    found, keys : int64[n]
        Receive the codes of the canonical forms, and their keys: of two patterns with as many edges, the one with the
        larger key has the smaller sorted edge list.
    work : int64[8, 8]
        Workspace.
    """
    rows, order = work[6], work[7]
    for i in range(codes.size):
        rows_of(codes[i], k, rows)
        keys[i] = _canonical_order(rows, colours[i], k, order, work)
        found[i] = _ordered_code(rows, k, order)


@compiled
def _ordered_code(rows, k, order):
    code = 0
    for v in range(k):
        for u in range(v):
            code |= (rows[order[v]] >> order[u] & 1) << (v * (v - 1) // 2 + u)
    return code


@compiled("i8[::1], i8, i8[::1], i8[:,::1]")
def count_removable(codes, k, counts, work):
    """Count the vertices of connected patterns without which they stay connected.

    Parameters
    ----------
    codes : int64[n]
        Codes of patterns of k vertices.
    k
        Number of vertices.
    counts : int64[n]
        Receives the numbers.
    work : int64[8, 8]
        Workspace.
    """
    rows = work[6]
    for i in range(codes.size):
        rows_of(codes[i], k, rows)
        counts[i] = 0
        for v in range(k):
            counts[i] += is_connected(rows, k, 1 << v)
