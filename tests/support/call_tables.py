"""Tables that the five calls make, as plain values."""

from __future__ import annotations

import longwall


def rows(embeddings) -> list[tuple]:
    """The rows of a table, as tuples."""
    return [tuple(row.values()) for row in embeddings.to_arrow().to_pylist()]


def everything(graph, **options) -> list:
    """The results of all calls, however the tables were cut."""
    v = longwall.vertices(graph, **options)
    wedges = longwall.extend_vertices(longwall.extend_vertices(v))
    triangles = longwall.extend_vertices(longwall.extend_vertices(v, [0]), [0, 1])
    e = longwall.extend_edges(longwall.extend_edges(longwall.edges(graph, **options)))
    kept = longwall.filter(wedges, lambda columns, graph, xp: columns[0] + columns[2] < 12)
    results: list = [sorted(rows(table)) for table in (wedges, triangles, kept, e)]
    results += [len(table) for table in (wedges, triangles, kept, e)]
    results += [longwall.aggregate(table).to_pylist() for table in (wedges, kept, e)]
    by_end = longwall.aggregate(wedges, lambda columns, graph, xp: columns[0] * 100 + columns[2])
    return [*results, by_end.to_pylist()]
