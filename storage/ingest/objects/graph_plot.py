"""Drawings of small graphs."""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING

from longwall.storage.errors import InputError
from longwall.storage.ingest.objects.graph_to import networkx_graph
from longwall.storage.system.drawing import KINDS, Drawing

if TYPE_CHECKING:
    from longwall.storage.graph.graph_data import GraphData

_MOST_VERTICES, _MOST_EDGES = 300, 3_000
_NAMED = 40  # vertices that have room for their ids
_SIZE, _MARGIN = 480.0, 24.0


def graph_drawing(graph: GraphData) -> Drawing:
    """See `Graph.plot`."""
    if graph.num_vertices > _MOST_VERTICES or graph.num_edges > _MOST_EDGES:
        raise InputError(
            f"a graph of {graph.num_vertices:,} vertices and {graph.num_edges:,} edges is too large for a drawing: up "
            f"to {_MOST_VERTICES:,} vertices and {_MOST_EDGES:,} edges are drawn"
        )
    import networkx

    made = networkx_graph(graph)
    found = networkx.spring_layout(made, seed=1, iterations=200)
    named = graph.num_vertices <= _NAMED
    across, down = (_spread([place[axis] for place in found.values()]) for axis in (0, 1))
    places = dict(zip(found, zip(across, down, strict=True), strict=True))
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
        x, y = places[v]
        drawing.circle(x, y, radius, style, hint=str(v) if label is None else f"{v}: {label}")
        if named:
            drawing.text(x, y + 3.5, str(v)[:6], "number" if label is None else "number inked", anchor="middle")
    return drawing


def _spread(values: list[float]) -> list[float]:
    """Spread values over the length of the drawing."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return [_MARGIN + (value - low) / max(high - low, 1e-9) * (_SIZE - 2 * _MARGIN) for value in values]
