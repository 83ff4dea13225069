"""A pattern as a small drawing for notebooks: its vertices on a circle."""

from html import escape
from math import cos, pi, sin
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longwall.pipeline.patterns.pattern import Pattern

_SIZE, _DOT = 160, 11
_COLOURS = ("#cfe2f3", "#fce5cd", "#d9ead3", "#f4cccc", "#d9d2e9", "#fff2cc", "#d0e0e3", "#ead1dc")


def draw_pattern(pattern: "Pattern") -> str:
    """Return the drawing of a pattern as SVG; its vertices have their names, labels, and a colour for each label."""
    middle, radius = _SIZE / 2, _SIZE / 2 - 2 * _DOT
    turn = 2 * pi / pattern.num_vertices
    at = [
        (middle + radius * sin(turn * vertex), middle - radius * cos(turn * vertex))
        for vertex in range(pattern.num_vertices)
    ]
    shown = [_label_of(pattern, vertex) for vertex in range(pattern.num_vertices)]
    kinds = sorted({label for label in shown if label})
    parts = []
    for number, (u, v) in enumerate(pattern.edges):
        (x1, y1), (x2, y2) = at[u], at[v]
        parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#888"/>')
        if pattern.edge_labels is not None and pattern.edge_labels[number] is not None:
            parts.append(_text((x1 + x2) / 2, (y1 + y2) / 2, str(pattern.edge_labels[number])))
    for vertex, (x, y) in enumerate(at):
        label = shown[vertex]
        colour = _COLOURS[kinds.index(label) % len(_COLOURS)] if label else "#eee"
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_DOT}" fill="{colour}" stroke="#444"/>')
        parts.append(_text(x, y, pattern.names[vertex] if pattern.names else str(vertex)))
        if label:
            parts.append(_text(x, y + 1.6 * _DOT, label))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_SIZE}" height="{_SIZE}" viewBox="0 0 {_SIZE} {_SIZE}">'
        f"{''.join(parts)}</svg>"
    )


def _label_of(pattern: "Pattern", vertex: int) -> str:
    word = pattern.words[vertex] if pattern.words else None
    number = pattern.label(vertex)
    return word or (str(number) if number >= 0 else "")


def _text(x: float, y: float, text: str) -> str:
    short = text if len(text) <= 12 else f"{text[:11]}…"
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="10" font-family="sans-serif" text-anchor="middle" '
        f'dominant-baseline="central" fill="#000">{escape(short)}</text>'
    )
