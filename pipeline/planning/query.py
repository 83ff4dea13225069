"""The question: the embeddings of a pattern, and what of them is wanted. It knows no machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.pattern import MAX_FAMILY, Pattern

Join = Literal["vertices", "edges"]
Want = Literal["count", "rows", "per_vertex", "per_edge"]
About = Literal["pattern", "motifs", "cliques", "maximal cliques"]

WEIGHED = 6
"""Vertices of the cliques whose estimated number stands for the work of finding larger ones."""
MAX_ENUMERATED, MAX_COUNTED, MAX_ORBITS, MAX_ENUMERATED_ORBITS = 8, 6, 5, 4
"""Most vertices of motifs that are enumerated, and counted; and the same of orbits, counted and enumerated."""


@dataclass(frozen=True)
class Query:
    """A question about the embeddings of a pattern.

    Attributes
    ----------
    pattern
        The pattern.
    induced
        Whether non-edges of the pattern must be non-edges of the graph.
    limit
        The number of embeddings after which the count may end; None: all are counted.
    join
        How a search extends embeddings: by a vertex, or by an edge as binary joins do.
    want
        Their number, the embeddings themselves, or how many contain each vertex or each edge.
    about
        The patterns of the question: `pattern` alone; "motifs", all connected patterns with the vertices of `pattern`,
        which is the clique; "cliques"; or "maximal cliques".
    size
        Vertices of the cliques, if the question is about cliques; None: every size. `pattern` is a clique of this size,
        or the largest clique that a pattern can be. Of maximal cliques, the least number of vertices; `pattern` is a
        clique that stands for the work of finding them.
    """

    pattern: Pattern
    induced: bool = False
    limit: int | None = None
    join: Join = "vertices"
    want: Want = "count"
    about: About = "pattern"
    size: int | None = None

    @classmethod
    def of_motifs(cls, k: int, want: Want) -> Query:
        """Return the question about all connected patterns of `k` vertices."""
        return cls(parse_pattern(f"clique-{k}"), induced=True, want=want, about="motifs")

    @classmethod
    def of_cliques(cls, size: int | None, want: Want) -> Query:
        """Return the question about all cliques of `size` vertices; None: of every size."""
        shown = min(size or MAX_FAMILY, MAX_FAMILY)
        return cls(parse_pattern(f"clique-{shown}"), want=want, about="cliques", size=size)

    @classmethod
    def of_maximal_cliques(cls, min_size: int, want: Want, limit: int | None = None) -> Query:
        """Return the question about all maximal cliques of at least `min_size` vertices."""
        weighed = parse_pattern(f"clique-{WEIGHED}")
        return cls(weighed, limit=limit, want=want, about="maximal cliques", size=min_size)

    def counted(self, limit: int | None) -> Query:
        """Return the same question with a count, up to a limit, as its answer."""
        query = replace(self, want="count", limit=limit)
        alone = self.about == "cliques" and self.size == self.pattern.num_vertices
        return replace(query, about="pattern", size=None) if alone else query

    @property
    def text(self) -> str:
        """What the question is about."""
        if self.about == "cliques":
            return "cliques of every size" if self.size is None else f"cliques of {self.size} vertices"
        if self.about == "maximal cliques":
            return f"maximal cliques of at least {self.size} vertices"
        if self.about == "motifs":
            return f"all patterns of {self.pattern.num_vertices} vertices"
        return self.pattern.name or self.pattern.edge_text

    def to_dict(self) -> dict[str, Any]:
        """The question as JSON-able data: a resumed run must have the same."""
        pattern = self.pattern
        extra: dict[str, Any] = {"columns": pattern.names} if self.want == "rows" and pattern.names else {}
        if self.about == "maximal cliques":
            extra["maximal cliques"] = self.size
        if self.about == "cliques":
            extra["cliques"] = self.size or "all"
        return extra | {
            "pattern": pattern.edge_text,
            "labels": pattern.labels,
            "edge_labels": pattern.edge_labels,
            "induced": self.induced,
            "limit": self.limit,
            "join": self.join,
            "want": self.want,
            "census": self.about == "motifs",
        }

    @property
    def plain(self) -> bool:
        """Whether the pattern has no labels and a search extends by vertices: formulas count such patterns."""
        return self.pattern.labels is None and self.pattern.edge_labels is None and self.join == "vertices"
