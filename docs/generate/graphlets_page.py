"""The page of graphlets: a drawing of each, with its names and the numbers of its orbits."""

from __future__ import annotations

import re
from html import escape

from longwall.kernels.host.patterns.graphlets import Graphlet, graphlets, orbit_of
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.patterns.pattern_names import name_of

NAMES = (
    *("edge", "wedge, path of 3", "triangle", "path of 4", "claw, star of 3 leaves", "4-cycle, square"),
    *("paw, tailed triangle", "diamond", "4-clique", "path of 5", "fork, chair", "star of 4 leaves, cross", "bull"),
    *("lollipop (3, 2)", "cricket", "5-cycle", "banner, P", "dart", "bowtie, butterfly", "kite", "K(2,3)", "house"),
    *("book of 3 triangles, K(1,1,3)", "lollipop (4, 1)", "gem, fan", "K4 with a subdivided edge, co-(P2+P3)"),
    *("X-house, co-(P3+2K1)", "wheel of 4 spokes, W4", "K5 less an edge", "5-clique"),
)
"""The literature's names of G0, G1, ...; where it has several, the first one is the more usual one."""
INTRODUCTION = """# Graphlets and orbits

Graphlets are the connected graphs of 2 to 5 vertices: the patterns that `longwall.motifs` counts. G0 to G29 have the
numbers of Pržulj (Bioinformatics 2007), and so have the 73 orbits: vertices with the same number can be exchanged by a
symmetry of the graphlet. The number in a vertex is its orbit, and the column `orbit_N` of `longwall.orbits` says how
often a vertex of the graph stands there, in induced subgraphs.

Many names are those of the
[Information System on Graph Classes](https://www.graphclasses.org/smallgraphs.html). `K(2,3)` is a complete bipartite
graph, and co-(...) is the complement of a graph. The text under the name is what a pattern
is called here: `longwall.count(graph, "house")`.
"""


def page() -> str:
    """Return the page in Markdown: graphlets by their number of vertices."""
    lines = [INTRODUCTION]
    for size in range(2, 6):
        some = [number for number, graphlet in enumerate(graphlets()) if graphlet.size == size]
        lines += [f"## {size} vertices", "", '<div class="drawings">', *map(figure, some), "</div>", ""]
    return "\n".join(lines)


def figure(number: int) -> str:
    """Return the drawing of a graphlet with its names."""
    graphlet = graphlets()[number]
    names = tuple(str(orbit_of(graphlet, vertex)) for vertex in range(graphlet.size))
    shown = Pattern(graphlet.size, tuple(sorted(graphlet.edges)), names=names)._repr_html_()
    drawing = re.search(r"<svg.*</svg>", shown, re.DOTALL)
    assert drawing, shown
    caption = f"<b>G{number}</b> {escape(NAMES[number])}<br><code>{pattern_of(graphlet)}</code>"
    return f"<figure>{drawing[0]}<figcaption>{caption}</figcaption></figure>"


def pattern_of(graphlet: Graphlet) -> str:
    """Return the name that a pattern has in Longwall."""
    name = name_of(graphlet.edges)
    assert name, graphlet.edges
    return name
