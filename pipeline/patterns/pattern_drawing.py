"""Patterns as drawings: of notebooks, tables and reports."""

from __future__ import annotations

import re
from math import hypot
from typing import TYPE_CHECKING, Any, NamedTuple

from longwall.pipeline.patterns.pattern_layout import clearances, layout
from longwall.storage.system.drawing import KINDS, Drawing

if TYPE_CHECKING:
    from collections.abc import Sequence

_EDGES = re.compile(r"\d{1,3}-\d{1,3}(,\d{1,3}-\d{1,3})*", re.ASCII)
_MOST_VERTICES = 20
_RADIUS, _LEAST = 9.0, 5.0  # of a vertex, and of one that has room for its number
_SHARE = 11.0  # radii of a small drawing: more of it are lines
_LINE, _LETTER = 13.0, 6.0  # height of a line of text, and about the width of a letter
_LETTERS = 12  # of a label

Edges = list[tuple[int, int]]


class Frame(NamedTuple):
    """Where the vertices of a pattern are in a drawing."""

    places: list[tuple[float, float]]
    radius: float
    width: float
    height: float


def edges_of(text: Any) -> Edges | None:
    """Return the edges of a pattern such as ``"0-1,1-2"``; None for what is no such list, or too large to be drawn."""
    if not isinstance(text, str) or not _EDGES.fullmatch(text):
        return None
    pairs = [(int(one), int(other)) for one, _, other in (part.partition("-") for part in text.split(","))]
    return pairs if max(map(max, pairs)) < _MOST_VERTICES else None


def frame(
    edges: Sequence[tuple[int, int]], size: float, *, radius: float = _RADIUS, over: float = 0.0, beside: float = 0.0
) -> Frame:
    """Fit the layout of a pattern into a square, whose height is less for a flat one.

    Parameters
    ----------
    edges
        Of the pattern.
    size
        Width of the drawing.
    radius
        Of a vertex; it is smaller where vertices would touch.
    over, beside
        Room above and below the drawing, and beside it.
    """
    unique = tuple(edges)
    points = layout(unique)
    left, top = (min(point[axis] for point in points) for axis in (0, 1))
    wide, high = (max(point[axis] for point in points) - low for axis, low in ((0, left), (1, top)))
    capacity = size - 2 * radius - 4
    scale = min(capacity / max(wide, high, 1e-9), capacity / 1.2)
    apart = min(hypot(x - u, y - v) for at, (x, y) in enumerate(points) for u, v in points[:at]) * scale
    radius = min(radius, 0.4 * apart, 0.8 * scale * min(clearances(points, unique), default=apart))
    edge = radius + 2
    aside = (size - wide * scale) / 2
    places = [(aside + beside + (x - left) * scale, edge + over + (y - top) * scale) for x, y in points]
    return Frame(places, radius, size + 2 * beside, 2 * (edge + over) + high * scale)


def draw_edge(drawing: Drawing, at: Frame, edge: tuple[int, int], style: str) -> None:
    """Add an edge, from rim to rim of its vertices: they have no colour that would cover it."""
    (ux, uy), (vx, vy) = (at.places[vertex] for vertex in edge)
    length = max(hypot(vx - ux, vy - uy), 1e-9)
    x, y = (vx - ux) / length * at.radius, (vy - uy) / length * at.radius
    drawing.line(ux + x, uy + y, vx - x, vy - y, style)


def draw_vertex(drawing: Drawing, at: Frame, vertex: int, text: str, style: str, *, inked: bool = False) -> None:
    """Add a vertex, with its text where it has room for one."""
    x, y = at.places[vertex]
    drawing.circle(x, y, at.radius, style)
    if at.radius >= _LEAST and text:
        drawing.text(x, y + 3.5, text, "number inked" if inked else "number", anchor="middle")


def pattern_drawing(
    edges: Edges, labels: Sequence[Any] | None = None, edge_labels: Sequence[Any] | None = None, *, size: float = 84
) -> Drawing:
    """Draw a pattern that is given by its edges; its vertices have their numbers, or their labels if it has some."""
    vertices = range(max(map(max, edges)) + 1)
    labelled = [None if labels is None or vertex >= len(labels) else labels[vertex] for vertex in vertices]
    texts = [str(vertex if label is None else label)[:4] for vertex, label in zip(vertices, labelled, strict=True)]
    if labels is not None:
        texts = ["" if label is None else text for label, text in zip(labelled, texts, strict=True)]
    return _drawn(edges, texts, labelled, edge_labels, size)


def named_drawing(
    edges: Edges, names: Sequence[str], labels: Sequence[str | None], edge_labels: Sequence[Any] | None
) -> Drawing:
    """Draw a pattern with the names of its vertices, and their labels beside them."""
    size = max(140.0, 32.0 * len(names) ** 0.5 + 60)
    return _drawn(edges, names, labels, edge_labels, size, outside=True)


def _drawn(
    edges: Edges,
    texts: Sequence[str],
    labels: Sequence[Any],
    edge_labels: Sequence[Any] | None,
    size: float,
    *,
    outside: bool = False,
) -> Drawing:
    """Draw a pattern; `outside`: labels and names that are longer than two letters stand beside their vertices."""
    inside = [text if not outside or len(text) <= 2 else "" for text in texts]
    lines = [
        [_shown(text) for text in ((name if name not in inside else ""), label) if text] if outside else []
        for name, label in zip(texts, labels, strict=True)
    ]
    over = _LINE * max(map(len, lines))
    wide = max((len(text) for some in lines for text in some), default=0)
    at = frame(
        edges, size, radius=min(_RADIUS, size / _SHARE), over=over, beside=max(0.0, _LETTER * wide / 2 - _RADIUS)
    )
    words = ", ".join(f"{u}-{v}" for u, v in edges)
    known = [_shown(label) or "any" for label in labels] if any(label is not None for label in labels) else []
    named = f"; labels of the vertices: {', '.join(known)}" if known else ""
    drawing = Drawing(f"Pattern with the edges {words}{named}", at.height, at.width)
    for edge in edges:
        draw_edge(drawing, at, edge, "edge")
    for number, ((ux, uy), (vx, vy)) in enumerate((at.places[u], at.places[v]) for u, v in edges):
        label = None if edge_labels is None or number >= len(edge_labels) else edge_labels[number]
        if label is not None:
            drawing.text((ux + vx) / 2 + 3, (uy + vy) / 2 - 3, _shown(label), "halo")
    kinds = sorted({_shown(label) for label in labels if label is not None})
    middle = sum(y for _, y in at.places) / len(at.places)
    for vertex, label in enumerate(labels):
        x, y = at.places[vertex]
        style = "vertex" if label is None else f"vertex labelled kind{kinds.index(_shown(label)) % KINDS}"
        draw_vertex(drawing, at, vertex, inside[vertex], style, inked=label is not None)
        first = y + at.radius + 0.8 * _LINE if y >= middle else y - at.radius - 3 - _LINE * (len(lines[vertex]) - 1)
        for number, line in enumerate(lines[vertex]):
            drawing.text(x, first + _LINE * number, line, "halo", anchor="middle")
    return drawing


def _shown(label: Any) -> str:
    text = "" if label is None else str(label)
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}…"
