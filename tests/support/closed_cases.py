"""Random questions to graphs of few classes, of sizes at which numbers pass powers of two, and the right answers."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, pairwise
from typing import Any

import closed_families as families
import closed_forms as forms
import motif_counts
import naive
import numpy as np
import pyarrow.parquet as pq
from closed_families import BITS, Family
from closed_forms import ANY, BlowUp

SHAPES = {
    "triangle": naive.Query(3, ((0, 1), (0, 2), (1, 2))),
    "clique-4": naive.Query(4, tuple(combinations(range(4), 2))),
    "cycle-4": naive.Query(4, ((0, 1), (1, 2), (2, 3), (0, 3))),
}
FAMILIES: dict[str, Family] = {
    "star": families.star,
    "stars": lambda n: families.star(n).times(3),
    "double star": lambda n: families.double_star(n, n // 3 + 1),
    "K(2, n)": lambda n: families.bipartite(2, n),
    "K(3, n)": lambda n: families.bipartite(3, n),
    "K(n, n + 1)": lambda n: families.bipartite(n, n + 1),
    "wheel": lambda n: families.wheel(n + 6),
    "fan": lambda n: families.fan(n + 6),
    "book": families.book,
    "books": lambda n: families.book(n).times(2),
    "split": lambda n: families.split(3, n),
    "friendship": families.windmill,
    "windmill": lambda n: families.windmill(n, 5),
    "cocktail party": lambda n: families.multipartite(n, 2),
    "parts of three": lambda n: families.multipartite(n, 3),
    "three parts": lambda n: families.uneven(n, n + 1, n + 2),
    "uneven parts": lambda n: families.uneven(1, 2, n),
    "clique": families.clique,
    "cliques": lambda n: families.clique(n).times(2),
    "tailed clique": lambda n: families.tailed_clique(7, n),
    "clique and leaves": lambda n: families.tailed_clique(n, 2 * n),
    "threshold": lambda n: families.threshold(n, 1, n, 2),
    "long threshold": lambda n: families.threshold(n, 2, n // 2, 1, 2, 1),
    "layers": lambda n: families.layers(n, 2, n, 1),
    "two hubs": lambda n: families.two_hubs(n, n // 2, n // 4 + 1),
}
_FULL = 1 << 30


@dataclass(frozen=True)
class Question:
    """A workload, the graph that it is asked of, and the answer."""

    kind: str
    graph: BlowUp
    section: dict[str, Any]
    answer: Any
    query: naive.Query | None = None
    memory: int = _FULL
    labelled: bool = False
    name: str = field(default="", compare=False)

    def __repr__(self) -> str:
        return f"<{self.kind} of {self.graph.name}: {self.section} {self.query or ''} in {self.memory >> 20} MiB>"


def work(graph: BlowUp) -> int:
    """Steps of reading, for every edge, the list of its end of smaller degree."""
    degrees = _degrees(graph)
    within = sum(one.arcs // 2 * degree for one, degree in zip(graph.classes, degrees, strict=True))
    between = 0
    for i, j in map(sorted, graph.joined):
        between += graph.classes[i].vertices * graph.classes[j].vertices * min(degrees[i], degrees[j])
    return graph.copies * (within + between)


def wedges(graph: BlowUp) -> int:
    """Walks of two steps."""
    return graph.copies * sum(
        one.vertices * degree**2 for one, degree in zip(graph.classes, _degrees(graph), strict=True)
    )


def _degrees(graph: BlowUp) -> list[int]:
    return [
        one.arcs // one.vertices
        + sum(graph.classes[j].vertices for pair in graph.joined if i in pair for j in pair - {i})
        for i, one in enumerate(graph.classes)
    ]


def has_open_rim(graph: BlowUp) -> bool:
    """Whether some vertices of a class differ from others."""
    return any(isinstance(one, forms.Rim) and not one.closed for one in graph.classes)


@dataclass(frozen=True)
class Limits:
    """How large graphs may be."""

    edges: int
    work: int
    wedges: int = 1 << 62

    def allow(self, graph: BlowUp) -> bool:
        return graph.num_edges <= self.edges and work(graph) <= self.work and wedges(graph) <= self.wedges


def draw_graph(chance: random.Random, limits: Limits, number: Callable[[BlowUp], int], names: list[str]) -> BlowUp:
    """Draw a graph of a size at which a number passes a power of two, or one below or above, or a random one."""
    family = FAMILIES[chance.choice(names)]
    most = 4
    while limits.allow(family(2 * most)):
        most *= 2
    step = most
    while step > 1:
        step //= 2
        most += step if limits.allow(family(most + step)) else 0
    largest = number(family(most))
    passed = [bit for bit in BITS if largest >= 2**bit]
    size = chance.randint(4, most)
    if passed:
        bound = 2 ** chance.choice(passed)
        size = (families.least_size(lambda n: number(family(n)), bound, most) or most) + chance.choice((-1, 0, 0, 1))
    return family(min(max(size, 4), most))


@cache
def patterns(size: int) -> list[naive.Query]:
    """Every connected pattern of a size."""
    return naive.connected_patterns(size)


def _draw_query(chance: random.Random) -> naive.Query:
    size = chance.choice((3, 4, 4, 5, 5, 5, 6))
    edges = chance.choice(patterns(size)).edges
    if chance.random() < 0.15:
        size = chance.randint(4, 8)
        edges = tuple((0, v) for v in range(1, size))
    labels: tuple[int, ...] | None = None
    if chance.random() < 0.4:
        labels = tuple(chance.choice((ANY, 0, 1)) for _ in range(size))
        labels = None if set(labels) == {ANY} else labels
    star = all(u == 0 for u, _ in edges)
    return naive.Query(size, edges, labels, chance.random() < 0.45 and (size < 6 or (star and labels is None)))


def text_of(query: naive.Query) -> str:
    """A pattern as text, with the labels of its vertices."""
    labels = query.labels or (ANY,) * query.size
    names = [f"(v{v})" if label == ANY else f"(v{v}:{label})" for v, label in enumerate(labels)]
    seen = [False] * query.size
    parts = []
    for u, v in query.edges:
        ends = [f"(v{end})" if seen[end] else names[end] for end in (u, v)]
        seen[u] = seen[v] = True
        parts.append("-".join(ends))
    return ", ".join(parts)


def _vertices(graph: BlowUp, values: list[Any]) -> list[Any]:
    """The value of every vertex, from those of the classes."""
    one = [value for cls, value in zip(graph.classes, values, strict=True) for _ in range(cls.vertices)]
    return one * graph.copies


_ALL = sorted(FAMILIES)
_PLAIN = sorted(set(FAMILIES) - {"fan"})
_STARRY = ["star", "stars", "double star", "wheel"]


def counts(chance: random.Random, edges: int) -> Question:
    """Embeddings or mappings of a pattern."""
    query = _draw_query(chance)
    numbers = [
        lambda graph: forms.maps(graph, query),
        lambda graph: forms.maps(graph, naive.Query(query.size, query.edges)),
        lambda graph: max(_degrees(graph)) ** (query.size - 1),
        lambda graph: graph.starts[-1] ** query.size,
    ]
    # Induced patterns of more than 5 vertices are searched for, except for stars.
    names = _STARRY if query.size > 6 or (query.induced and query.size > 5) else _ALL
    graph = draw_graph(chance, Limits(edges, 40 * edges), chance.choice(numbers), names)
    found, labelled = forms.maps(graph, query), query.labels is not None
    mappings = chance.random() < 0.4
    section: dict[str, Any] = {"kind": "match", "pattern": text_of(query), "induced": query.induced}
    if mappings:
        section["count"] = "mappings"
    each = 1 if mappings else len(forms.automorphisms(query))
    memory = chance.choice((_FULL, _FULL, 1 << 26))
    return Question("count", graph, section, found // each, query, memory, labelled)


def motifs(chance: random.Random, edges: int) -> Question:
    """Every connected pattern of a size, induced."""
    k = chance.choice((3, 3, 4, 4, 4, 5, 5))
    limits = Limits(edges if k < 5 else edges // 2, (20 if k < 5 else 6) * edges)
    graph = draw_graph(chance, limits, lambda one: one.starts[-1] ** chance.choice((k - 1, k)), _ALL)
    answer = {}
    for one in patterns(k):
        query = naive.Query(k, one.edges, None, True)
        answer[query] = forms.embeddings(graph, query)
    return Question("motifs", graph, {"kind": "motifs", "k": k}, answer, memory=chance.choice((_FULL, 1 << 27)))


def orbits(chance: random.Random, edges: int) -> Question:
    """Orbits of every vertex."""
    k = chance.choice((3, 4, 4, 5, 5))
    limits = Limits(edges // 2, 10 * edges, 1000 * edges)
    graph = draw_graph(chance, limits, lambda one: one.starts[-1] ** (k - 1), _PLAIN)
    section = {"kind": "motifs", "k": k, "output": "vertices"}
    return Question("orbits", graph, section, _vertices(graph, forms.orbits(graph, k)))


def per_edge(chance: random.Random, edges: int) -> Question:
    """Triangles, 4-cliques or 4-cycles of every edge."""
    shape = chance.choice(sorted(SHAPES))
    graph = draw_graph(chance, Limits(edges, 20 * edges), lambda one: forms.maps(one, SHAPES[shape]), _PLAIN)
    section = {"kind": "match", "pattern": SHAPES[shape].text, "output": "edges"}
    found = forms.at_edges(graph, SHAPES[shape])
    of = _vertices(graph, list(range(len(graph.classes))))
    answer = {(min(u, v), max(u, v)): found[min(of[u], of[v]), max(of[u], of[v])] for u, v in graph.edges().tolist()}
    return Question("per edge", graph, section, answer)


def triangles(chance: random.Random, edges: int) -> Question:
    """Triangles in all, or of every vertex."""
    query = SHAPES["triangle"]
    graph = draw_graph(chance, Limits(4 * edges, 40 * edges), lambda one: forms.maps(one, query), _PLAIN)
    if chance.random() < 0.5:
        return Question("triangles", graph, {"kind": "triangles"}, forms.embeddings(graph, query))
    values = [found // 2 for found in forms.at_vertices(graph, query, 0)]
    section = {"kind": "triangles", "output": "vertices"}
    return Question("triangles of vertices", graph, section, _vertices(graph, [[value] for value in values]))


_CLIQUES = [
    "clique",
    "cliques",
    "cocktail party",
    "tailed clique",
    "clique and leaves",
    "threshold",
    "windmill",
    "split",
]
_LARGEST = {"cocktail party": 11, "clique": 180, "cliques": 140, "clique and leaves": 150}


def cliques(chance: random.Random, edges: int) -> Question:
    """Cliques of one or of all sizes, in all or of every vertex."""
    name = chance.choice(_CLIQUES)
    most = _LARGEST.get(name, 300)
    size = max(chance.randint(4, most), chance.randint(4, most))
    graph = FAMILIES[name](size)
    largest = len(_trimmed(forms.cliques(graph, 200)))
    every = chance.random() < 0.4
    per_vertex = chance.random() < 0.4
    section: dict[str, Any] = {"kind": "cliques", "k": "all"}
    if not every:
        section["k"] = chance.choice([chance.randint(3, max(largest, 3)), chance.randint(3, max(min(largest, 9), 3))])
    if per_vertex:
        section["output"] = "vertices"
        most = min(largest, 60) if every else section["k"]
        if every and largest > most:
            graph = FAMILIES[name](4 + size % 40)
            most = len(_trimmed(forms.cliques(graph, 200)))
        rows = forms.clique_vertices(graph, max(most, 3))
        values = [_trimmed(row[2:]) if every else [row[section["k"] - 1]] for row in rows]
        return Question("cliques of vertices", graph, section, _vertices(graph, values))
    found = forms.cliques(graph, max(largest, 3 if every else section["k"]))
    answer = _trimmed(found[2:]) if every else found[section["k"] - 1]
    return Question("cliques", graph, section, answer)


def _trimmed(numbers: list[int]) -> list[int]:
    while numbers and not numbers[-1]:
        numbers = numbers[:-1]
    return numbers


def maximal(chance: random.Random, edges: int) -> Question:
    """Maximal cliques by size."""
    graph = FAMILIES[chance.choice(_ALL)](chance.randint(4, 10))
    if chance.random() < 0.7:
        family = FAMILIES[chance.choice(sorted(set(_ALL) - {"cocktail party", "parts of three"}))]
        graph = family(chance.randint(4, 60))
    answer = {size: number for size, number in forms.maximal_cliques(graph).items() if size > 2}
    return Question("maximal cliques", graph, {"kind": "maximal-cliques", "min_size": 3}, answer)


def quasi_cliques(chance: random.Random, edges: int) -> Question:
    """Connected sets of vertices with few pairs that are not adjacent."""
    k = chance.choice((4, 4, 5))
    missing = chance.randint(0, 3)
    graph = draw_graph(chance, Limits(edges // 4, 4 * edges), lambda one: one.starts[-1] ** (k - 1), _ALL)
    least = k * (k - 1) // 2 - missing
    answer = sum(
        forms.embeddings(graph, naive.Query(k, one.edges, None, True)) for one in patterns(k) if len(one.edges) >= least
    )
    return Question("quasi-cliques", graph, {"kind": "quasi-cliques", "k": k, "missing": missing}, answer)


def limits(chance: random.Random, edges: int) -> Question:
    """A count that may end at a limit."""
    found = counts(chance, edges)
    assert found.query is not None
    section = {key: value for key, value in found.section.items() if key != "count"}
    answer = forms.embeddings(found.graph, found.query)
    around = (answer - 1, answer, answer + 1) if answer < 20_000 else ()
    limit = max(chance.choice((1, 7, 1000, *around)), 1)
    section["limit"] = limit
    return Question("limit", found.graph, section, (answer, limit), found.query, found.memory, found.labelled)


def queries(chance: random.Random, edges: int) -> Question:
    """A labelled path of 9 vertices or more through layers, whole or with one vertex of any label."""
    size, induced = chance.randint(9, 14), chance.random() < 0.2
    width = chance.randint(1, 2) if induced else chance.randint(2, 30)  # an induced path is searched
    sizes = [max(width + chance.randint(-1, 1), 1) for _ in range(size)]
    graph = families.layers(*sizes)
    labels = tuple(range(size))
    if chance.random() < 0.2:
        at = chance.randrange(1, size - 1)
        labels = (*labels[:at], ANY, *labels[at + 1 :])
    query = naive.Query(size, tuple(pairwise(range(size))), labels, induced)
    section = {"kind": "match", "pattern": text_of(query), "induced": query.induced}
    return Question("query", graph, section, forms.maps(graph, query), query, labelled=True)


KINDS: tuple[tuple[Callable[[random.Random, int], Question], int], ...] = (
    (counts, 6),
    (motifs, 3),
    (orbits, 2),
    (per_edge, 2),
    (triangles, 1),
    (cliques, 3),
    (maximal, 1),
    (quasi_cliques, 1),
    (limits, 2),
    (queries, 1),
)


def draw(seed: int, edges: int) -> Question:
    """Draw a question; the same seed draws the same one."""
    chance = random.Random(seed)
    makers, weights = zip(*KINDS, strict=True)
    (make,) = chance.choices(makers, weights)
    question: Question = make(chance, edges)
    return question


def draw_count(seed: int, edges: int) -> Question:
    """Draw a count of a pattern."""
    return counts(random.Random(seed), edges)


def build(question: Question) -> Any:
    """Make the data graph."""
    from longwall.storage.ingest.build import build_graph

    edges = question.graph.edges()
    if not question.labelled:
        return build_graph(edges[:, 0], edges[:, 1])
    labels = question.graph.labels()
    return build_graph(edges[:, 0], edges[:, 1], vertex_labels=(np.arange(len(labels)), labels))


def wrong(question: Question, env: Any) -> str:
    """Answer a question by a run; return the difference to the right answer, "" if there is none."""
    found, want = _ask(question, env), question.answer
    if question.kind == "limit":
        answer, limit = want
        # A formula may count more than the limit.
        right = found == answer if answer <= limit else limit <= found <= answer
        return "" if right else f"found {found}, right: {answer} or the limit {limit}"
    if isinstance(want, list) and isinstance(found, list) and len(found) == len(want):
        places = [i for i, (one, other) in enumerate(zip(found, want, strict=True)) if one != other]
        return "" if not places else f"at {places[0]}: found {found[places[0]]}, right: {want[places[0]]}"
    return "" if found == want else f"found {found}, right: {want}"[:400]


def _ask(question: Question, env: Any) -> Any:
    workload = env.spec.workload
    found = workload.execute(workload.plan(env.graph), env)
    kind = question.kind
    if kind == "motifs":
        counts = {
            motif_counts.form(motif_counts.pairs_of(one.pattern), question.section["k"]): one.count for one in found
        }
        return {query: counts[motif_counts.form(query.edges, query.size)] for query in question.answer}
    if kind in ("orbits", "triangles of vertices", "cliques of vertices"):
        table = pq.read_table(env.results / "vertices.parquet").sort_by("vertex")
        if "size" in table.column_names:
            return _by_vertex(table, len(question.answer))
        return [list(row) for row in zip(*(_numbers(column) for column in table.columns[1:]), strict=True)]
    if kind == "per edge":
        table = pq.read_table(env.results / "edges.parquet")
        ends = zip(*(_numbers(column) for column in table.columns), strict=True)
        return {(min(u, v), max(u, v)): number for u, v, number in ends}
    if kind == "maximal cliques":
        table = pq.read_table(env.results / "sizes.parquet")
        return {size: count for size, count in zip(*map(_numbers, table.columns[:2]), strict=True) if count}
    if kind == "cliques" and question.section["k"] == "all":
        return [one.count for one in found]
    return sum(one.count for one in found)


def _numbers(column: Any) -> list[int]:
    return [int(value) for value in column.to_pylist()]


def _by_vertex(table: Any, vertices: int) -> list[list[int]]:
    """Counts by size for every vertex, from 3 on."""
    found: list[dict[int, int]] = [{} for _ in range(vertices)]
    for vertex, size, number in zip(*(_numbers(column) for column in table.columns), strict=True):
        found[vertex][size] = number
    return [[one.get(size, 0) for size in range(3, max(one, default=2) + 1)] for one in found]
