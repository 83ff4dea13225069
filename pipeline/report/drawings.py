"""Patterns as pictures, and the order in which a plan matches their vertices."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from longwall.pipeline.report.scene import Scene

_EDGES = re.compile(r"\d{1,3}-\d{1,3}(,\d{1,3}-\d{1,3})*", re.ASCII)
_MOST_VERTICES = 20
_RADIUS, _SMALL = 9.0, 7.0

Edges = list[tuple[int, int]]


class Step(NamedTuple):
    """A step of a plan: its picture and what it does, in words."""

    title: str
    text: str
    picture: Scene


def edges_of(text: Any) -> Edges | None:
    """Return the edges of a pattern such as ``"0-1,1-2"``; None for what is no such list, or too large to be drawn."""
    if not isinstance(text, str) or not _EDGES.fullmatch(text):
        return None
    pairs = [(int(one), int(other)) for one, _, other in (part.partition("-") for part in text.split(","))]
    return pairs if max(map(max, pairs)) < _MOST_VERTICES else None


def _places(edges: Edges, size: float, radius: float) -> list[tuple[float, float]]:
    """Return where the vertices of a pattern are: on a circle, and one that is joined to all others in the middle."""
    number = max(map(max, edges)) + 1
    degrees = [sum(vertex in edge for edge in edges) for vertex in range(number)]
    hubs = [vertex for vertex in range(number) if degrees[vertex] == number - 1]
    centre = hubs[0] if len(hubs) == 1 and number > 3 else None
    around = [vertex for vertex in range(number) if vertex != centre]
    if number == 2:
        return [(radius + 2, radius + 2), (size - radius - 2, radius + 2)]
    places = [(size / 2, size / 2)] * number
    reach = size / 2 - radius - 2
    turn = math.pi / 4 if len(around) == 4 else 0.0
    for at, vertex in enumerate(around):
        angle = 2 * math.pi * at / len(around) - math.pi / 2 + turn
        places[vertex] = (size / 2 + reach * math.cos(angle), size / 2 + reach * math.sin(angle))
    return places


def pattern_picture(
    edges: Edges, labels: Sequence[Any] | None = None, edge_labels: Sequence[Any] | None = None, *, size: float = 84
) -> Scene:
    """Draw a pattern; its vertices have their numbers, or their labels where it has some."""
    words = ", ".join(f"{u}-{v}" for u, v in edges)
    named = "" if labels is None else f"; labels of the vertices: {', '.join(map(str, labels))}"
    places = _places(edges, size, _RADIUS)
    scene = Scene(f"Pattern with the edges {words}{named}", size if len(places) > 2 else 2 * _RADIUS + 4, size)
    for number, (u, v) in enumerate(edges):
        scene.line(*places[u], *places[v], "edge")
        if edge_labels is not None and number < len(edge_labels):
            middle = [(a + b) / 2 for a, b in zip(places[u], places[v], strict=True)]
            scene.text(middle[0], middle[1] + 3, str(edge_labels[number]), "halo", anchor="middle")
    for vertex, (x, y) in enumerate(places):
        scene.circle(x, y, _RADIUS, "vertex" if labels is None else "vertex labelled")
        shown = vertex if labels is None or vertex >= len(labels) else labels[vertex]
        scene.text(x, y + 3.5, str(shown)[:4], "number", anchor="middle")
    return scene


def search_steps(plan: dict[str, Any]) -> list[Step]:
    """Draw the steps of a search: the vertex that each adds, the edges that it needs, and the ids that it compares."""
    edges, order = edges_of(plan.get("pattern")), plan.get("order")
    if edges is None or not isinstance(order, list) or sorted(order) != list(range(max(map(max, edges)) + 1)):
        return []
    counted = plan.get("counted_suffix") or 0
    enumerated = len(order) - counted
    steps = []
    if enumerated >= 2:
        text = _step_text(plan, edges, order, 1)
        steps.append(Step(f"1. edges v{order[0]}-v{order[1]}", text, _step_picture(edges, order, 2, 2)))
    for depth in range(2, enumerated):
        text = _step_text(plan, edges, order, depth)
        picture = _step_picture(edges, order, depth + 1, 1)
        steps.append(Step(f"{depth}. add v{order[depth]}", text, picture))
    last = f"{max(enumerated, 1)}. "
    if counted:
        names = _names(order[enumerated:])
        text = f"Only the number of their choices is needed: {names} {'are' if counted > 1 else 'is'} never enumerated."
        redundancy = plan.get("redundancy", 1)
        if redundancy != 1:
            text += f" Each embedding is found {redundancy} times; the sum is divided."
        steps.append(Step(f"{last}count {names}", text, _step_picture(edges, order, len(order), counted)))
    else:
        text = "Every row is an embedding: it is counted, or written."
        steps.append(Step(f"{last}take the rows", text, _step_picture(edges, order, len(order), 0)))
    return steps


def _names(vertices: Sequence[int]) -> str:
    return " and ".join(", ".join(f"v{vertex}" for vertex in vertices).rsplit(", ", 1))


def _step_text(plan: dict[str, Any], edges: Edges, order: list[int], depth: int) -> str:
    vertex, before = order[depth], set(order[:depth])
    pairs = [*edges, *((v, u) for u, v in edges)]
    adjacent = [other for other in order[:depth] if (vertex, other) in pairs]
    text = "Every edge of the graph" if depth == 1 else f"Adjacent to {_names(adjacent)}"
    if plan.get("induced") and (others := [other for other in order[:depth] if other not in adjacent]):
        text += f", not to {_names(others)}"
    sign = ">" if plan.get("direction") == "descending" else "<"
    restrictions = [
        f"v{first} {sign} v{second}"
        for first, second in plan.get("restrictions", [])
        if vertex in (first, second) and {first, second} - {vertex} <= before
    ]
    text += f"; {', '.join(restrictions)}" if restrictions else ""
    return text + "."


def _step_picture(edges: Edges, order: list[int], matched: int, new: int) -> Scene:
    """Draw a pattern of which so many vertices of the order are matched, the last `new` of them in this step."""
    size, known, added = 92.0, set(order[:matched]), set(order[matched - new : matched])
    scene = Scene(
        f"{_names(order[:matched])} matched" + (f", {_names(sorted(added))} in this step" if added else ""), size, size
    )
    places = _places(edges, size, _SMALL)
    for u, v in sorted(edges, key=lambda edge: bool({*edge} & added)):
        style = "edge faint" if not {u, v} <= known else "edge new" if {u, v} & added else "edge"
        scene.line(*places[u], *places[v], style)
    for vertex, (x, y) in enumerate(places):
        style = "vertex faint" if vertex not in known else "vertex new" if vertex in added else "vertex"
        scene.circle(x, y, _SMALL, style)
        scene.text(x, y + 3, str(vertex), "number", anchor="middle")
    return scene
