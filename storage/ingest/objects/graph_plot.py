"""Drawings of small graphs."""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING

from longwall.storage.errors import InputError
from longwall.storage.ingest.objects.graph_to import networkx_graph
from longwall.storage.system.drawing import KINDS, Drawing

if TYPE_CHECKING:
    from longwall.storage.graph.graph import Graph

_MOST_VERTICES, _MOST_EDGES = 300, 3_000
_NAMED = 40  # vertices that have room for their ids
_SIZE, _MARGIN = 480.0, 24.0


def graph_drawing(graph: Graph) -> Drawing:
    """See `Graph.plot`."""
    if graph.num_vertices > _MOST_VERTICES or graph.num_edges > _MOST_EDGES:
        raise InputError(
            f"a graph of {graph.num_vertices:,} vertices and {graph.num_edges:,} edges is too large for a drawing: up "
            f"to {_MOST_VERTICES:,} vertices and {_MOST_EDGES:,} edges are drawn"
        )
    import networkx

    made = networkx_graph(graph)
    found = networkx.spring_layout(made, seed=1, iterations=200)
    reach = max((max(abs(x), abs(y)) for x, y in found.values()), default=0.0) or 1.0
    half, named = _SIZE / 2, graph.num_vertices <= _NAMED
    places = {
        v: (half + x / reach * (half - _MARGIN), half + y / reach * (half - _MARGIN)) for v, (x, y) in found.items()
    }
    radius = 10.0 if named else max(3.0, 60.0 / graph.num_vertices**0.5)
    drawing = Drawing(f"Graph with {graph.num_vertices:,} vertices and {graph.num_edges:,} edges", _SIZE, _SIZE)
    for u, v in made.edges:
        (ux, uy), (vx, vy) = places[u], places[v]
        length = hypot(vx - ux, vy - uy)
        if length > 2 * radius:
            x, y = (vx - ux) / length * radius, (vy - uy) / length * radius
            drawing.line(ux + x, uy + y, vx - x, vy - y, "edge")
    labels = made.nodes(data="label")
    kinds = sorted({str(label) for _, label in labels if label is not None})
    for v, label in labels:
        style = "vertex" if label is None else f"vertex labelled kind{kinds.index(str(label)) % KINDS}"
        drawing.circle(*places[v], radius, style, hint=str(v) if label is None else f"{v}: {label}")
        if named:
            x, y = places[v]
            drawing.text(x, y + 3.5, str(v)[:6], "number" if label is None else "number inked", anchor="middle")
    return drawing
