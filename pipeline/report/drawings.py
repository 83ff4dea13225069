"""The order in which a plan matches the vertices of a pattern, as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from longwall.pipeline.patterns.pattern import numbered_columns
from longwall.pipeline.patterns.pattern_drawing import Edges, draw_edge, draw_vertex, edges_of, frame
from longwall.storage.system.drawing import Drawing

_SMALL = 7.0  # radius of a vertex


class Step(NamedTuple):
    """A step of a plan: its picture and what it does, in words."""

    title: str
    text: str
    picture: Drawing


def search_steps(plan: dict[str, Any]) -> list[Step]:
    """Draw the steps of a search: the vertex that each adds, the edges that it needs, and the ids that it compares."""
    edges, order = edges_of(plan.get("pattern")), plan.get("order")
    if edges is None or not isinstance(order, list) or sorted(order) != list(range(max(map(max, edges)) + 1)):
        return []
    called, counted = _called(plan.get("names"), len(order)), plan.get("counted_suffix") or 0
    enumerated = len(order) - counted
    steps = []
    if enumerated >= 2:
        text = _step_text(plan, edges, order, called, 1)
        steps.append(
            Step(f"1. edges {called[order[0]]}-{called[order[1]]}", text, _step_picture(edges, order, called, 2, 2))
        )
    for depth in range(2, enumerated):
        text = _step_text(plan, edges, order, called, depth)
        picture = _step_picture(edges, order, called, depth + 1, 1)
        steps.append(Step(f"{depth}. add {called[order[depth]]}", text, picture))
    last = f"{max(enumerated, 1)}. "
    if counted:
        names = _names(called, order[enumerated:])
        text = f"Only the number of their choices is needed: {names} {'are' if counted > 1 else 'is'} never enumerated."
        redundancy = plan.get("redundancy", 1)
        if redundancy != 1:
            text += f" Each embedding is found {redundancy} times; the sum is divided."
        steps.append(Step(f"{last}count {names}", text, _step_picture(edges, order, called, len(order), counted)))
    else:
        text = "Every row is an embedding: it is counted, or written."
        steps.append(Step(f"{last}take the rows", text, _step_picture(edges, order, called, len(order), 0)))
    return steps


def order_text(plan: dict[str, Any]) -> str:
    """Return the order of a search, with the names of the vertices beside the numbers that the pictures have."""
    order, names = plan["order"], plan.get("names")
    called = _called(names, len(order))
    return ", ".join(f"{called[vertex]} ({vertex})" if called is names else str(vertex) for vertex in order)


def _called(names: Any, number: int) -> Sequence[str]:
    """Return the names of the vertices of a pattern that a manifest has; ``v0``, ``v1``, ... if it has none."""
    given = isinstance(names, list) and len(names) == number and all(isinstance(name, str) for name in names)
    return names if given else numbered_columns(number)


def _names(called: Sequence[str], vertices: Sequence[int]) -> str:
    return " and ".join(", ".join(called[vertex] for vertex in vertices).rsplit(", ", 1))


def _step_text(plan: dict[str, Any], edges: Edges, order: list[int], called: Sequence[str], depth: int) -> str:
    vertex, before = order[depth], set(order[:depth])
    pairs = [*edges, *((v, u) for u, v in edges)]
    adjacent = [other for other in order[:depth] if (vertex, other) in pairs]
    text = "Every edge of the graph" if depth == 1 else f"Adjacent to {_names(called, adjacent)}"
    if plan.get("induced") and (others := [other for other in order[:depth] if other not in adjacent]):
        text += f", not to {_names(called, others)}"
    sign = ">" if plan.get("direction") == "descending" else "<"
    restrictions = [
        f"{called[first]} {sign} {called[second]}"
        for first, second in plan.get("restrictions", [])
        if vertex in (first, second) and {first, second} - {vertex} <= before
    ]
    text += f"; {', '.join(restrictions)}" if restrictions else ""
    return text + "."


def _step_picture(edges: Edges, order: list[int], called: Sequence[str], matched: int, new: int) -> Drawing:
    """Draw a pattern of which the first vertices of the order are matched, the last `new` of them in this step."""
    size, known, added = 92.0, set(order[:matched]), set(order[matched - new : matched])
    at = frame(edges, size, radius=_SMALL)
    step = f", {_names(called, sorted(added))} in this step" if added else ""
    drawing = Drawing(f"{_names(called, order[:matched])} matched{step}", at.height, at.width)
    for edge in sorted(edges, key=lambda edge: bool({*edge} & added)):
        style = "edge faint" if not {*edge} <= known else "edge new" if {*edge} & added else "edge"
        draw_edge(drawing, at, edge, style)
    for vertex in range(len(at.places)):
        style = "vertex faint" if vertex not in known else "vertex new" if vertex in added else "vertex"
        draw_vertex(drawing, at, vertex, str(vertex), style)
    return drawing
