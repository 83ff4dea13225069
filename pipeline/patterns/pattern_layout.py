"""Where the vertices of a pattern are drawn: known patterns as textbooks draw them, others by the lengths of paths."""

from __future__ import annotations

from functools import lru_cache
from math import cos, hypot, pi, sin
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Point = tuple[float, float]

_STRAIGHT = 4  # vertices of the longest path that is a straight line: the numbers of a longer one would be small
_ROUNDS = 300  # of the majorization: drawings of 8 vertices stay as they are after some 100
_APART = 0.25  # the least distance between a vertex and an edge of others, of the mean length of an edge

_SQUARE = [(-0.8, -0.2), (0.8, -0.2), (0.8, 1.2), (-0.8, 1.2)]
_ROOF = [*_SQUARE, (0.0, -1.3)]
_FLAG = [(-0.8, 0.2), (0.8, 0.2), (0.8, -1.2), (-0.8, -1.2), (-0.8, 1.5)]
_PRISM = [(0.0, -1.3), (1.3, 0.95), (-1.3, 0.95), (0.0, -0.4), (0.5, 0.45), (-0.5, 0.45)]
_FIXED: tuple[tuple[str, list[Point]], ...] = (
    ("0-1,0-2,0-3,1-2,1-3", [(-0.8, 0.0), (0.8, 0.0), (0.0, -1.2), (0.0, 1.2)]),  # diamond
    ("0-1,0-2,1-2,0-3", [(0.0, 0.2), (-0.75, -1.1), (0.75, -1.1), (0.0, 1.4)]),  # tailed triangle
    ("0-1,1-2,2-3,0-3,0-4,1-4", _ROOF),  # house
    ("0-1,1-2,2-3,0-3,0-4,1-4,1-3,0-2", _ROOF),  # with both diagonals
    (
        "0-1,1-2,2-3,0-3,0-4,1-4,2-4",
        [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0), (0.0, 0.0)],
    ),  # wheel, less a spoke
    ("0-1,0-2,1-2,0-3,0-4,3-4", [(0.0, 0.0), (-1.2, -0.8), (-1.2, 0.8), (1.2, -0.8), (1.2, 0.8)]),  # bowtie
    ("0-1,0-2,1-2,0-3,1-4", [(-0.6, 0.0), (0.6, 0.0), (0.0, 1.1), (-1.2, -1.1), (1.2, -1.1)]),  # bull
    ("0-1,0-2,1-2,0-3,0-4", [(0.0, 0.0), (-0.7, 1.2), (0.7, 1.2), (-0.9, -1.0), (0.9, -1.0)]),  # cricket
    ("0-1,0-2,1-2,0-3,3-4", [(0.0, -0.4), (-0.75, -1.5), (0.75, -1.5), (0.0, 0.6), (0.0, 1.6)]),  # long tail
    ("0-1,1-2,2-3,0-3,0-4", _FLAG),  # banner
    ("0-1,1-2,2-3,0-3,0-2,1-3,0-4", _FLAG),  # 4-clique with a tail
    ("0-1,0-2,0-3,1-2,1-3,0-4", [(0.0, 0.4), (0.0, -1.4), (-1.0, -0.2), (1.0, -0.2), (0.0, 1.5)]),  # dart
    ("0-1,0-2,0-3,1-2,1-3,3-4", [(-1.0, -0.5), (1.0, -0.5), (0.0, -1.5), (0.0, 0.5), (0.0, 1.6)]),  # kite
    ("0-1,0-2,0-3,0-4,1-2,1-3,1-4", [(-1.1, 1.1), (1.1, 1.1), (0.0, 0.55), (0.0, -0.35), (0.0, -1.4)]),  # book
    ("0-1,0-2,1-2,3-4,3-5,4-5,0-3,1-4,2-5", _PRISM),
    ("0-1,0-2,1-2,3-4,3-5,4-5,0-4,0-5,1-3,1-5,2-3,2-4", [*_PRISM[:3], (0.0, 0.6), (-0.35, 0.0), (0.35, 0.0)]),
    ("0-1,0-2,1-2,0-3,1-4,2-5", [*_PRISM[3:], *_PRISM[:3]]),  # net
    (
        "0-1,0-2,1-2,3-1,3-2,4-0,4-2,5-0,5-1",
        [(0.0, -0.5), (0.6, 0.5), (-0.6, 0.5), (0.0, 1.5), (-1.3, -0.5), (1.3, -0.5)],
    ),
    ("0-1,1-2,3-4,4-5,0-3,1-4,2-5", [(x, y) for y in (-0.6, 0.6) for x in (-1.2, 0.0, 1.2)]),  # domino
    (
        "0-1,1-2,2-3,0-3,4-5,5-6,6-7,4-7,0-4,1-5,2-6,3-7",
        [(x + off, y - off) for off in (0.0, 0.7) for x, y in ((-1.2, 1.2), (0.6, 1.2), (0.6, -0.6), (-1.2, -0.6))],
    ),  # cube
)


class _Form(NamedTuple):
    """A pattern without its labels."""

    num_vertices: int
    edges: tuple[tuple[int, int], ...]
    neighbours: tuple[frozenset[int], ...]


def _form(number: int, edges: Sequence[tuple[int, int]]) -> _Form:
    unique = tuple(sorted({(min(edge), max(edge)) for edge in edges}))
    near = (frozenset(u + v - vertex for u, v in unique if vertex in (u, v)) for vertex in range(number))
    return _Form(number, unique, tuple(near))


@lru_cache(maxsize=1024)
def layout(edges: tuple[tuple[int, int], ...]) -> tuple[Point, ...]:
    """Return where the vertices of a pattern are: x to the right, y down, in no certain unit."""
    number = max(map(max, edges)) + 1
    pattern = _form(number, edges)
    if len(_reached(pattern, 0)) < number:  # of a damaged record
        return tuple(polygon(number))
    places = (
        _fixed(pattern)
        or _of_cliques(pattern)
        or _around(pattern)
        or _of_sides(pattern)
        or (_line(pattern) if _is_path(pattern) else None)
        or (_tree(pattern) if len(pattern.edges) == number - 1 else None)
        or _by_distance(pattern)
    )
    return tuple(places)


def polygon(number: int) -> list[Point]:
    """Return the corners of a regular polygon from the top on; one with an even number of corners has a flat top."""
    turn = pi / number if number % 2 == 0 else 0.0
    angles = [2 * pi * at / number + turn for at in range(number)]
    return [(sin(angle), -cos(angle)) for angle in angles]


def _fixed(pattern: _Form) -> list[Point] | None:
    for known, places in _known(pattern.num_vertices, len(pattern.edges)):
        image: dict[int, int] = {}
        if _grow(pattern, known, image):
            return [places[image[vertex]] for vertex in range(pattern.num_vertices)]
    return None


def _grow(first: _Form, second: _Form, image: dict[int, int]) -> bool:
    """Whether a map between two forms of as many vertices and edges grows to an isomorphism (it does so in place)."""
    near, far, number = first.neighbours, second.neighbours, first.num_vertices
    if len(image) == number:
        return True
    u = max(set(range(number)) - image.keys(), key=lambda vertex: len(near[vertex] & image.keys()))
    for v in set(range(number)) - set(image.values()):
        if len(near[u]) == len(far[v]) and all((w in near[u]) == (x in far[v]) for w, x in image.items()):
            image[u] = v
            if _grow(first, second, image):
                return True
            del image[u]
    return False


@lru_cache(maxsize=256)
def _known(vertices: int, edges: int) -> tuple[tuple[_Form, list[Point]], ...]:
    """Return the known patterns of a size, with their places."""
    found = []
    for text, places in _FIXED:
        pairs = [(int(u), int(v)) for u, _, v in (edge.partition("-") for edge in text.split(","))]
        if (len(places), len(pairs)) == (vertices, edges):
            found.append((_form(vertices, pairs), places))
    return tuple(found)


def _of_cliques(pattern: _Form) -> list[Point] | None:
    """Draw cliques and those that lack one edge: it would be at the bottom."""
    number, near = pattern.num_vertices, pattern.neighbours
    if number < 3 or len(pattern.edges) < number * (number - 1) // 2 - 1:
        return None
    apart = [vertex for vertex in range(number) if len(near[vertex]) < number - 1]
    others = [vertex for vertex in range(number) if vertex not in apart]
    half = (len(others) + 1) // 2
    return _placed([*others[:half], *apart, *others[half:]], polygon(number))


def _around(pattern: _Form) -> list[Point] | None:
    """Draw cycles, stars, wheels and fans: a cycle, a path or leaves around one vertex or none."""
    number, near = pattern.num_vertices, pattern.neighbours
    if all(len(some) == 2 for some in near):
        return _placed(_walk(pattern, 0, frozenset()), polygon(number))
    hubs = [vertex for vertex in range(number) if len(near[vertex]) == number - 1]
    if len(hubs) != 1 or number < 4:
        return None
    hub = frozenset(hubs)
    rim = [vertex for vertex in range(number) if vertex not in hub]
    degrees = {vertex: len(near[vertex] - hub) for vertex in rim}
    ends = [vertex for vertex in rim if degrees[vertex] == 1]
    if set(degrees.values()) == {0}:
        return _placed([*rim, *hub], [*polygon(len(rim)), (0.0, 0.0)])
    if max(degrees.values()) > 2 or min(degrees.values()) == 0:
        return None
    order = _walk(pattern, (ends or rim)[0], hub)
    if len(order) < len(rim):
        return None
    if not ends:
        return _placed([*order, *hub], [*polygon(len(rim)), (0.0, 0.0)])
    angles = [pi * (at / (len(order) - 1) - 0.5) * 0.9 for at in range(len(order))]
    return _placed([*order, *hub], [*((sin(angle), -cos(angle)) for angle in angles), (0.0, 0.55)])


def _of_sides(pattern: _Form) -> list[Point] | None:
    """Draw complete bipartite patterns in two rows."""
    number, near = pattern.num_vertices, pattern.neighbours
    first = [vertex for vertex in range(number) if vertex not in near[0]]
    second = sorted(near[0])
    if min(len(first), len(second)) < 2 or len(pattern.edges) != len(first) * len(second):
        return None
    if any(near[vertex] != near[0] for vertex in first):
        return None
    rows = sorted((first, second), key=len)
    places = [
        (at - (len(row) - 1) / 2, y) for row, y in zip(rows, (-0.65, 0.65), strict=True) for at in range(len(row))
    ]
    return _placed([vertex for row in rows for vertex in row], places)


def _is_path(pattern: _Form) -> bool:
    return len(pattern.edges) == pattern.num_vertices - 1 and max(map(len, pattern.neighbours)) <= 2


def _line(pattern: _Form) -> list[Point]:
    """Draw a path as a line; a long one goes up and down."""
    ends = [vertex for vertex, some in enumerate(pattern.neighbours) if len(some) == 1]
    order = _walk(pattern, ends[0], frozenset())
    if len(order) == 3:  # as a wedge
        return _placed(order, [(-0.8, 0.5), (0.0, -0.5), (0.8, 0.5)])
    height = 0.0 if len(order) <= _STRAIGHT else 0.5
    return _placed(order, [(0.6 * at, height * (-1) ** at) for at in range(len(order))])


def _tree(pattern: _Form) -> list[Point]:
    """Draw a tree below a vertex in its middle: leaves side by side, each other vertex above its branches."""
    near = pattern.neighbours
    far = [max(_distances(pattern, vertex)) for vertex in range(pattern.num_vertices)]
    root = min(range(pattern.num_vertices), key=lambda vertex: (far[vertex], -len(near[vertex])))
    depths = _distances(pattern, root)
    across: dict[int, float] = {}
    leaves = iter(range(pattern.num_vertices))

    def place(vertex: int) -> float:
        below = [place(other) for other in sorted(near[vertex]) if depths[other] > depths[vertex]]
        across[vertex] = (below[0] + below[-1]) / 2 if below else float(next(leaves))
        return across[vertex]

    place(root)
    return [(across[vertex], float(depths[vertex])) for vertex in range(pattern.num_vertices)]


def _by_distance(pattern: _Form) -> list[Point]:
    """Place the vertices as far apart as the shortest paths are long, or on a circle where vertices and edges meet.

    This is stress majorization from a circle (Gansner, Koren and North, GD 2004).
    """
    import numpy as np

    number = pattern.num_vertices
    wanted = np.array([_distances(pattern, vertex) for vertex in range(number)], dtype=np.float64)
    weights = np.divide(1.0, wanted**2, out=np.zeros_like(wanted), where=wanted > 0)
    places = np.array(_placed(_walk(pattern, 0, frozenset(), whole=True), polygon(number)))
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    for _ in range(_ROUNDS):
        apart = np.linalg.norm(places[:, None] - places[None], axis=2)
        pulls = np.divide(weights * wanted, apart, out=np.zeros_like(apart), where=apart > 1e-9)
        places = inverse @ ((np.diag(pulls.sum(axis=1)) - pulls) @ places)
    found = _turned([(float(x), float(y)) for x, y in places], pattern.edges)
    clear = min(clearances(found, pattern.edges), default=1.0)
    lengths = [hypot(found[u][0] - found[v][0], found[u][1] - found[v][1]) for u, v in pattern.edges]
    if clear < _APART * sum(lengths) / len(lengths):
        return _placed(_walk(pattern, 0, frozenset(), whole=True), polygon(number))
    return found


def _turned(places: list[Point], edges: Sequence[tuple[int, int]]) -> list[Point]:
    """Turn a drawing so that many edges are level or upright."""

    def level(turn: float) -> float:
        sides = ((places[v][0] - places[u][0], places[v][1] - places[u][1]) for u, v in edges)
        turned = ((x * cos(turn) - y * sin(turn), x * sin(turn) + y * cos(turn)) for x, y in sides)
        return round(sum(abs(abs(x) - abs(y)) / max(hypot(x, y), 1e-9) for x, y in turned), 6)

    best = max((pi * step / 72 for step in range(36)), key=level)
    return [(x * cos(best) - y * sin(best), x * sin(best) + y * cos(best)) for x, y in places]


def clearances(places: Sequence[Point], edges: Sequence[tuple[int, int]]) -> Iterator[float]:
    """Yield the distance between each vertex and each edge of others."""
    for u, v in edges:
        (ux, uy), (vx, vy) = places[u], places[v]
        length = max((vx - ux) ** 2 + (vy - uy) ** 2, 1e-12)
        for vertex, (x, y) in enumerate(places):
            if vertex not in (u, v):
                share = min(max(((x - ux) * (vx - ux) + (y - uy) * (vy - uy)) / length, 0.0), 1.0)
                yield hypot(x - ux - share * (vx - ux), y - uy - share * (vy - uy))


def _placed(order: Sequence[int], places: Sequence[Point]) -> list[Point]:
    """Give each vertex of an order its place."""
    return [place for _, place in sorted(zip(order, places, strict=True))]


def _walk(pattern: _Form, start: int, without: frozenset[int], *, whole: bool = False) -> list[int]:
    """Go from vertex to vertex while there is a new one; `whole`: jump to one that is left."""
    order, left = [start], set(range(pattern.num_vertices)) - without - {start}
    while left:
        near = pattern.neighbours[order[-1]] & left
        if not near and not whole:
            break
        order.append(min(near or left))
        left.remove(order[-1])
    return order


def _reached(pattern: _Form, start: int) -> dict[int, int]:
    """Return the vertices that paths from a vertex reach, and the lengths of the shortest ones."""
    found, last = {start: 0}, [start]
    while last:
        new = {other for vertex in last for other in pattern.neighbours[vertex]} - found.keys()
        found |= dict.fromkeys(new, found[last[0]] + 1)
        last = list(new)
    return found


def _distances(pattern: _Form, start: int) -> list[int]:
    """Return the lengths of the shortest paths from a vertex to all."""
    found = _reached(pattern, start)
    return [found[vertex] for vertex in range(pattern.num_vertices)]
