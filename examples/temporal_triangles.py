"""Temporal triangles: the labels of edges are times, and those of a triangle lie within a window."""

import longwall


class TemporalTriangles(longwall.Algorithm):
    """Rows are a vertex and one or two arcs, each to a vertex with a smaller id."""

    needs_edge_labels = True
    schema = {"u": "vertex", "v": "vertex", "w": "vertex", "first": "int64", "last": "int64"}  # noqa: RUF012

    def __init__(self, window):
        self.window = window

    def candidates(self, columns, graph, xp):
        return graph.degrees(self.tip(columns, graph))

    def tip(self, columns, graph):
        return columns[0] if len(columns) == 1 else graph.indices[columns[-1]]

    def extend(self, columns, graph, xp):
        tip = self.tip(columns, graph)
        rows, found, arcs = graph.neighbours(tip)
        kept = found < tip[rows] if len(columns) < 3 else xp.zeros(rows.size, bool)
        if len(columns) == 2:
            kept &= graph.has_edge(columns[0][rows], found)
            times = self.times(columns[0][rows], columns[1][rows], arcs, graph, xp)
            kept &= times.max(axis=0) - times.min(axis=0) <= self.window
        return rows[kept], arcs[kept]

    def times(self, u, second, third, graph, xp):
        return graph.edge_labels[xp.stack([graph.arcs(u, graph.indices[third]), second, third])].astype(xp.int64)

    def process(self, columns, graph, xp):
        if len(columns) == 3:
            u, v, w = columns[0], graph.indices[columns[1]], graph.indices[columns[2]]
            times = self.times(*columns, graph, xp)
            rows = {"u": u, "v": v, "w": w, "first": times.min(axis=0), "last": times.max(axis=0)}
            return longwall.Found(u.size, rows)
