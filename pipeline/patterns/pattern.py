"""Patterns (query graphs).

Covers connected patterns of 2 to 64 vertices with optional vertex labels. How a pattern is searched for
is not decided here, see :mod:`longwall.pipeline.planning.search.search_planner`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from longwall.storage.errors import InputError
from longwall.storage.system.arguments import brief

if TYPE_CHECKING:
    from pathlib import Path

    from longwall.storage.system.drawing import Drawing

MAX_VERTICES = 64
"""A set of vertices is a word of 64 bits in the kernels."""
MAX_FAMILY = 16
"""The largest patterns of a family, such as ``clique-16``; what is larger is written as edges, or in a file."""
MAX_LABEL = 2**31 - 1
ANY_LABEL = -1
"""In place of the label of a vertex that may have any."""


@dataclass(frozen=True, repr=False)
class Pattern:
    """A connected, simple, undirected pattern.

    Attributes
    ----------
    num_vertices
        Number of pattern vertices; they are called 0, 1, ..., num_vertices - 1.
    edges
        Pairs (u, v) with u < v, sorted, without repetition.
    labels
        One label per vertex, `ANY_LABEL` where any will do, or None for an unlabelled pattern.
    name
        How the user called it.
    names
        What the user calls the vertices; empty where they have no names.
    words
        The labels that are words, None where a vertex has none; empty where no label is a word.
    edge_labels
        The label of each edge, None where any will do; None where no edge has one.
    """

    num_vertices: int
    edges: tuple[tuple[int, int], ...]
    labels: tuple[int, ...] | None = None
    name: str = ""
    names: tuple[str, ...] = ()
    words: tuple[str | None, ...] = ()
    edge_labels: tuple[int | str | None, ...] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """What the columns of its embeddings are called: the names of the vertices, or ``v0``, ``v1``, ..."""
        return self.names or numbered_columns(self.num_vertices)

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

    @cached_property
    def edge_text(self) -> str:
        """The edge list as text, for example ``0-1,0-2,1-2``."""
        return ",".join([f"{u}-{v}" for u, v in self.edges])

    def svg(self) -> str:
        """Return a drawing of the pattern, a file of SVG: known patterns look as in textbooks."""
        return self._drawing().svg()

    def savefig(self, path: "str | Path") -> None:
        """Write the drawing of the pattern to an ``.svg`` file; an older one is replaced.

        Raises
        ------
        InputError
            If the name does not end in ``.svg``, or the file cannot be written.
        """
        self._drawing().savefig(path)

    def __repr__(self) -> str:
        name = f" {self.name}" if self.name and self.name != self.edge_text else ""
        labels = self.words or self.labels or ()
        text = ", ".join("any" if label in (None, ANY_LABEL) else str(label) for label in labels)
        return f"<longwall.Pattern{name}: {self.edge_text}{f'; labels {text}' if text else ''}>"

    def _repr_html_(self) -> str:
        from longwall.storage.system.html import html_table

        size = f"{self.num_vertices} vertices, {len(self.edges)} edges"
        return html_table([self.name or "Pattern", size], []) + self._drawing()._repr_html_()

    def _drawing(self) -> "Drawing":
        from longwall.pipeline.patterns.pattern_drawing import named_drawing

        names = [str(name) for name in self.names or range(self.num_vertices)]
        numbers = [None if label == ANY_LABEL else str(label) for label in map(self.label, range(self.num_vertices))]
        words = self.words or [None] * self.num_vertices
        labels = [word or number for word, number in zip(words, numbers, strict=True)]
        return named_drawing(list(self.edges), names, labels, self.edge_labels)

    def label(self, vertex: int) -> int:
        """Label of a vertex, `ANY_LABEL` where the pattern has none."""
        return ANY_LABEL if self.labels is None else self.labels[vertex]


def numbered_columns(vertices: int) -> tuple[str, ...]:
    """Return the names of the columns of vertices without names."""
    return tuple(f"v{vertex}" for vertex in range(vertices))


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
