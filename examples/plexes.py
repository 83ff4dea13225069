"""k-plexes: sets of `size` vertices, each adjacent to all of them but `k` at most, itself included."""

import longwall


class Plexes(longwall.Algorithm):
    """Grow sets by ascending ids. Two vertices of a k-plex of 2k - 1 vertices or more are at most two steps apart."""

    def __init__(self, k=2, size=5):
        if size < 2 * k - 1:
            raise ValueError(f"size must be at least {2 * k - 1}")
        self.k, self.size = k, size
        self.schema = {f"v{i}": "vertex" for i in range(size)}

    def candidates(self, columns, graph, xp):
        rows, near, _ = graph.neighbours(columns[0])
        return xp.bincount(rows, graph.degrees(near) + 1, columns[0].size).astype(xp.int64)

    def extend(self, columns, graph, xp):
        if len(columns) == self.size:
            return None
        rows, near, _ = graph.neighbours(columns[0])
        steps, far, _ = graph.neighbours(near)
        rows, found = xp.concatenate([rows, rows[steps]]), xp.concatenate([near, far])
        pairs = xp.unique((rows * graph.num_vertices + found)[found > columns[-1][rows]])
        rows, found = pairs // graph.num_vertices, pairs % graph.num_vertices
        members = [*(column[rows] for column in columns), found]
        kept = xp.ones(rows.size, bool)
        for one in members:
            kept &= sum(~graph.has_edge(one, other) for other in members) <= self.k
        return rows[kept], found[kept]

    def process(self, columns, graph, xp):
        if len(columns) == self.size:
            return longwall.Found(columns[0].size, {f"v{i}": columns[i] for i in range(self.size)})
