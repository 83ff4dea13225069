"""Patterns (query graphs): the named ones, and parsing from text and files.

Covers connected patterns of 2 to 16 vertices with optional vertex labels. How a pattern is searched for
is not decided here, see :mod:`longwall.pipeline.planning.search_planner`.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from longwall.storage.arguments import brief
from longwall.storage.errors import InputError
from longwall.storage.paths import require_path, user_path

MAX_VERTICES = 16
MAX_LABEL = 2**31 - 1


@dataclass(frozen=True)
class Pattern:
    """A connected, simple, undirected pattern.

    Attributes
    ----------
    num_vertices
        Number of pattern vertices; they are called 0, 1, ..., num_vertices - 1.
    edges
        Pairs (u, v) with u < v, sorted, without repetition.
    labels
        One label per vertex, or None for an unlabelled pattern.
    name
        How the user called it.
    """

    num_vertices: int
    edges: tuple[tuple[int, int], ...]
    labels: tuple[int, ...] | None = None
    name: str = ""

    @cached_property
    def neighbours(self) -> tuple[frozenset[int], ...]:
        """Neighbours of each vertex."""
        sets: list[set[int]] = [set() for _ in range(self.num_vertices)]
        for u, v in self.edges:
            sets[u].add(v)
            sets[v].add(u)
        return tuple(frozenset(s) for s in sets)

    @property
    def is_clique(self) -> bool:
        """Whether every pair of vertices is an edge."""
        return len(self.edges) == self.num_vertices * (self.num_vertices - 1) // 2

    @property
    def is_connected(self) -> bool:
        """Whether paths join all vertices."""
        return len(self.reached) == self.num_vertices

    @cached_property
    def reached(self) -> frozenset[int]:
        """The vertices to which paths from vertex 0 lead, with vertex 0 itself."""
        reached, frontier = {0}, [0]
        while frontier:
            new = self.neighbours[frontier.pop()] - reached
            reached |= new
            frontier.extend(new)
        return frozenset(reached)

    @property
    def edge_text(self) -> str:
        """The edge list as text, for example ``0-1,0-2,1-2``."""
        return ",".join(f"{u}-{v}" for u, v in self.edges)

    def label(self, vertex: int) -> int:
        """Label of a vertex, -1 where the pattern has none."""
        return -1 if self.labels is None else self.labels[vertex]


def make_pattern(edges: Iterable[tuple[int, int]], labels: Sequence[int] | None = None, *, name: str = "") -> Pattern:
    """Build a pattern and refuse what cannot be searched for.

    Raises
    ------
    InputError
        For loops, gaps in the vertex numbers, too many vertices, a pattern that is empty or not connected,
        or a number of labels that differs from the number of vertices.
    """
    unique = sorted({(min(u, v), max(u, v)) for u, v in edges})
    shown = f"pattern {brief(name)}" if name else "the pattern"
    if not unique:
        raise InputError(f"{shown} has no edge: give at least one, for example '0-1,1-2,2-0'")
    for u, v in unique:
        if u == v:
            raise InputError(f"{shown} has the loop {u}-{v}: patterns are simple graphs, remove it")
    used = {v for edge in unique for v in edge}
    count = max(used) + 1
    if count > MAX_VERTICES:
        raise InputError(f"{shown} has {count} vertices: at most {MAX_VERTICES} are supported")
    missing = sorted(set(range(count)) - used)
    if missing:
        raise InputError(
            f"{shown} is not connected: vertex {missing[0]} has no edge "
            f"(vertices are numbered 0 to {count - 1} without gaps)"
        )
    if labels is not None and len(labels) != count:
        raise InputError(f"{shown} has {count} vertices but {len(labels)} labels: give one label per vertex")
    for label in labels or ():
        if not 0 <= label <= MAX_LABEL:
            raise InputError(f"{shown} has the label {brief(label)}: labels are integers from 0 to {MAX_LABEL}")
    pattern = Pattern(count, tuple(unique), None if labels is None else tuple(labels), name)
    if not pattern.is_connected:
        apart = min(set(range(count)) - pattern.reached)
        raise InputError(f"{shown} is not connected: no path joins vertex 0 and vertex {apart}")
    return pattern


def _cycle(k: int) -> list[tuple[int, int]]:
    return [(i, (i + 1) % k) for i in range(k)]


def _clique(k: int) -> list[tuple[int, int]]:
    return list(combinations(range(k), 2))


_FIXED: dict[str, list[tuple[int, int]]] = {
    "edge": [(0, 1)],
    "wedge": [(0, 1), (0, 2)],
    "triangle": _clique(3),
    "diamond": [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)],
    "tailed-triangle": [(0, 1), (0, 2), (1, 2), (0, 3)],
    "house": [(0, 1), (1, 2), (2, 3), (0, 3), (0, 4), (1, 4)],
    "bowtie": [(0, 1), (0, 2), (1, 2), (0, 3), (0, 4), (3, 4)],
}
_FAMILIES: dict[str, tuple[int, int, Callable[[int], list[tuple[int, int]]], str]] = {
    "clique": (2, MAX_VERTICES, _clique, "k vertices, every pair joined"),
    "cycle": (3, MAX_VERTICES, _cycle, "a closed walk through k vertices"),
    "path": (
        2,
        MAX_VERTICES,
        lambda k: [(i, i + 1) for i in range(k - 1)],
        "an open walk through k vertices",
    ),
    "star": (
        2,
        MAX_VERTICES - 1,
        lambda k: [(0, i + 1) for i in range(k)],
        "a centre (vertex 0) with k leaves",
    ),
    "wheel": (
        4,
        MAX_VERTICES,
        lambda k: [(0, i) for i in range(1, k)] + [(i, i + 1) for i in range(1, k - 1)] + [(1, k - 1)],
        "k vertices: a centre (vertex 0) joined to a cycle",
    ),
    "quasi-clique": (4, MAX_VERTICES, lambda k: _clique(k)[:-1], "k vertices, one edge short of a clique"),
}


def named_patterns() -> list[tuple[str, str, str]]:
    """List the named patterns.

    Returns
    -------
    list of (name, edge list or "", description)
        Families are listed as ``clique-k`` with their range of k.
    """
    rows = [(name, make_pattern(edges).edge_text, "") for name, edges in _FIXED.items()]
    rows += [(f"{name}-k", "", f"{text}; k = {low} to {high}") for name, (low, high, _, text) in _FAMILIES.items()]
    return rows


def is_pattern_file(text: str) -> bool:
    """Say whether a pattern is given by the path of a file."""
    return text.strip().endswith((".graph", ".graphml"))


def parse_pattern(text: str, labels: Sequence[int] | None = None) -> Pattern:
    """Read a pattern from its name, its edge list, or the path of a file.

    Parameters
    ----------
    text
        A name (``diamond``, ``clique-5``), an edge list (``0-1,1-2,2-0``), or a path that ends in ``.graph``
        or ``.graphml``.
    labels
        One label per vertex; overrides the labels of a file.

    Raises
    ------
    InputError
        When the text is none of the three or the pattern cannot be searched for.
    """
    text = text.strip()
    if text in _FIXED:
        return make_pattern(_FIXED[text], labels, name=text)
    family = re.fullmatch(r"([a-z-]+?)-(\d{1,999})", text)
    if family and family[1] in _FAMILIES:
        low, high, build, _ = _FAMILIES[family[1]]
        k = int(family[2])
        if not low <= k <= high:
            raise InputError(f"pattern {brief(text)}: k must lie between {low} and {high}")
        return make_pattern(build(k), labels, name=text)
    if re.fullmatch(r"\s*\d{1,999}\s*-\s*\d{1,999}\s*(,\s*\d{1,999}\s*-\s*\d{1,999}\s*)*", text):
        pairs = [part.split("-") for part in text.split(",")]
        return make_pattern([(int(u), int(v)) for u, v in pairs], labels, name=text)
    if is_pattern_file(text):
        from longwall.pipeline.patterns.pattern_files import read_pattern

        require_path("pattern", text, "a .graph or .graphml file")
        return read_pattern(user_path(text), labels)
    if not text:
        raise InputError("the pattern is empty: give a name, an edge list such as '0-1,1-2,2-0', or a file")
    known = [*_FIXED, *(f"{name}-{max(low, 4)}" for name, (low, _, _, _) in _FAMILIES.items())]
    near = difflib.get_close_matches(text, known, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise InputError(
        f"unknown pattern {brief(text)}: {hint}Give a name (see `longwall patterns`), an edge list such as "
        "'0-1,1-2,2-0', or a .graph or .graphml file"
    )
