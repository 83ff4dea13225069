"""The planner's choices: a line for each pattern, with the name and the estimate of its plan in four graphs.

A change of the planner shows as a difference of `tests/pipeline/planning/choices.txt`. Write that file again with

    PYTHONPATH=tests/support python -m plan_choices

and look at `git diff` before you commit it. `tests/pipeline/planning/test_choices.py` compares.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx

import longwall
from longwall.pipeline.patterns.pattern import ANY_LABEL, Pattern, make_pattern
from longwall.pipeline.workloads.base import plan_pattern
from longwall.storage.graph.graph import Graph

FILE = Path(__file__).parents[1] / "pipeline" / "planning" / "choices.txt"
GRAPHS = ("rmat", "grid", "stars", "dense")
LABELS = 3
LABELLED = 40
_HEAD = """\
# The plan of each connected pattern of 4 to 6 vertices in four graphs, and its estimated cost in elementary steps.
# tests/support/plan_choices.py says how this file is written.
"""


class Question(NamedTuple):
    """A pattern, and whether its non-edges must be non-edges of the graph."""

    pattern: Pattern
    induced: bool

    @property
    def text(self) -> str:
        """The first column of a line."""
        labels = "" if self.pattern.labels is None else " labels " + "".join(map(_label, self.pattern.labels))
        return f"{self.pattern.edge_text}{labels}{' induced' if self.induced else ''}"


def questions() -> list[Question]:
    """Return all patterns of 4 to 6 vertices, induced and not, and patterns with labels that are drawn."""
    shapes = [nx.convert_node_labels_to_integers(one) for one in nx.graph_atlas_g() if 4 <= len(one) <= 6]
    edges = [sorted(map(sorted, one.edges)) for one in shapes if nx.is_connected(one)]
    chance = random.Random(1)
    asked = [Question(make_pattern(one), induced) for one in edges for induced in (False, True)]
    for one in chance.choices(edges, k=LABELLED):
        size = 1 + max(map(max, one))
        labels = chance.choices((ANY_LABEL, *range(LABELS)), k=size)
        asked.append(Question(Pattern(size, tuple(map(tuple, one)), tuple(labels)), chance.random() < 0.5))
    return asked


@cache
def graph_of(name: str) -> Graph:
    """Make one of the graphs; half of its vertices have label 0, a third label 1, a sixth label 2."""
    edges = sorted({(min(u, v), max(u, v)) for u, v in _EDGES[name](random.Random(1)) if u != v})
    vertices = sorted({v for edge in edges for v in edge})
    labels = random.Random(2).choices(range(LABELS), weights=(3, 2, 1), k=len(vertices))
    return longwall.graph(edges, labels=dict(zip(vertices, labels, strict=True)))


def _rmat(chance: random.Random) -> Iterator[tuple[int, int]]:
    """Edges of an R-MAT graph with 1,024 vertices: their degrees differ by far, and the hubs are adjacent."""
    for _ in range(8 << 10):
        u = v = 0
        for _ in range(10):
            quarter = chance.choices(range(4), weights=(57, 19, 19, 5))[0]
            u, v = 2 * u + quarter // 2, 2 * v + quarter % 2
        yield u, v


def _grid(chance: random.Random) -> Iterator[tuple[int, int]]:
    """Edges of a grid of 100 by 50 vertices, one in four squares with a diagonal: all degrees are small."""
    for row in range(50):
        for at in range(row * 100, row * 100 + 99):
            yield at, at + 1
            if row < 49:
                yield at, at + 100
                if chance.random() < 0.25:
                    yield at, at + 101


def _stars(chance: random.Random) -> Iterator[tuple[int, int]]:
    """Edges of three stars of 3,000 vertices, whose centres are adjacent; leaves are rarely adjacent."""
    yield from combinations(range(3), 2)
    leaves = range(3, 3 + 3 * 3000)
    yield from ((leaf % 3, leaf) for leaf in leaves)
    for _ in range(2000):
        first, second = chance.sample(leaves, 2)
        yield first, second


def _dense(chance: random.Random) -> Iterator[tuple[int, int]]:
    """Edges of a random graph of 200 vertices, half of whose pairs are adjacent."""
    return (pair for pair in combinations(range(200), 2) if chance.random() < 0.5)


_EDGES = {"rmat": _rmat, "grid": _grid, "stars": _stars, "dense": _dense}


def line_of(question: Question) -> str:
    """Return a line of the file: the plan of a pattern in each graph."""
    chosen = (_chosen(question, graph_of(name)) for name in GRAPHS)
    return " | ".join((f"{question.text:<40}", *(f"{one:<28}" for one in chosen))).rstrip()


def _chosen(question: Question, graph: Graph) -> str:
    plan = plan_pattern(question.pattern, graph, "count", None, induced=question.induced).to_dict()
    return f"{_name(plan)} {plan['estimated_cost']:.3g}"


def _name(plan: dict[str, Any]) -> str:
    """Name the methods of a plan, and its alternatives in a part of the graph."""
    instead = [f"{word} {plan[word]}" for word in ("core", "hubs", "stars") if word in plan]
    name = ", or ".join([plan["kind"], *instead])
    if "terms" in plan and "plan" in plan["terms"][0]:
        kinds = Counter(_name(term["plan"]) for term in plan["terms"])
        name += f" ({', '.join(f'{number} {kind}' for kind, number in sorted(kinds.items()))})"
    if "graph_of_labels" in plan:
        name += f" by labels {''.join(map(_label, plan['graph_of_labels']))}"
    return name


def _label(label: int | str) -> str:
    return "*" if label == ANY_LABEL else str(label)


if __name__ == "__main__":
    FILE.write_text(_HEAD + "".join(f"{line_of(one)}\n" for one in questions()))
