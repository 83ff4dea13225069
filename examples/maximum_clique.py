"""A maximum clique, by branch and bound."""

import longwall


class MaximumClique(longwall.Algorithm):
    """Grow cliques towards vertices of higher degree; drop what cannot grow beyond the largest clique so far."""

    def __init__(self):
        self.largest = 0

    def candidates(self, columns, graph, xp):
        return graph.degrees(columns[-1])

    def extend(self, columns, graph, xp):
        rows, found, _ = graph.neighbours(columns[-1])
        kept = found < columns[-1][rows]
        rows, found = rows[kept], found[kept]
        for column in columns[:-1]:
            kept = graph.has_edge(column[rows], found)
            rows, found = rows[kept], found[kept]
        choices = xp.bincount(rows, minlength=columns[0].size)
        kept = len(columns) + choices[rows] > self.largest
        return rows[kept], found[kept]

    def process(self, columns, graph, xp):
        if len(columns) > self.largest:
            self.largest = len(columns)
            return longwall.Found([int(graph.original_ids(column[:1])[0]) for column in columns])

    def combine(self, values):
        return max(values, key=len)

    def finalize(self, value):
        return {"size": len(value or []), "vertices": sorted(value or [])}
