"""Patterns as text: which vertices are adjacent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longwall.storage.system.plain_text import harmless

if TYPE_CHECKING:
    from longwall.pipeline.patterns.pattern import Pattern


def drawn(pattern: Pattern) -> str:
    """Return a pattern as a triangle of its pairs of vertices: ``o`` where two are adjacent, ``.`` where not."""
    names = [harmless(name) for name in pattern.names or map(str, range(pattern.num_vertices))]
    width = max(map(len, names))
    rows = []
    for vertex, name in enumerate(names):
        pairs = ("o" if other in pattern.neighbours[vertex] else "." for other in range(vertex))
        rows.append(f"{name:>{width}}  {' '.join(pairs)}".rstrip())
    return "\n".join(rows)
