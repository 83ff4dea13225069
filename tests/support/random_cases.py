"""Random cases for counts: graphs of several kinds and places, patterns of 2 to 8 vertices, all methods that count."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import inf
from pathlib import Path

import naive
import networkx as nx
from plans import tried_first
from stored import PLENTY, WHY, short_chunks

from longwall.kernels.host.patterns.pattern_codes import code_edges, connected_codes
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.patterns.pattern import ANY_LABEL, Pattern
from longwall.pipeline.phases.homomorphisms.count import HomomorphismCount
from longwall.pipeline.phases.queries.candidates import candidates_of
from longwall.pipeline.phases.range_count import RangeCount
from longwall.pipeline.planning.facts import Facts, Residency
from longwall.pipeline.planning.homomorphisms.pattern_core import PassCosts
from longwall.pipeline.planning.homomorphisms.sums import denser, plan_homomorphisms
from longwall.pipeline.planning.kernel_plan import KernelPlan
from longwall.pipeline.planning.method import ON_PARTS
from longwall.pipeline.planning.methods.candidates import CandidatesPlan
from longwall.pipeline.planning.methods.homomorphisms import HomomorphismsPlan, induced_by_denser
from longwall.pipeline.planning.methods.search import search_of
from longwall.pipeline.planning.methods.star_leaves import StarLeavesPlan
from longwall.pipeline.planning.plan import Choice, CountPlan, embeddings_of
from longwall.pipeline.planning.planner import PLANNER
from longwall.pipeline.planning.query import Query
from longwall.pipeline.planning.rewrites.hub_removal import HubRemovalPlan
from longwall.pipeline.planning.rewrites.k_core import InCorePlan, least_neighbours
from longwall.pipeline.planning.rewrites.pendant_vertices import PendantVerticesPlan
from longwall.stages.cliques.leaves import CountCliquesByPivots
from longwall.storage.graph.derived.hubs import MOST_HUBS
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.graph_store import open_store
from longwall.storage.graph.store_writer import write_graph
from longwall.storage.mapping.mapped_arrays import MappedArrays
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.memory.resources import open_resources
from longwall.storage.streaming.stored_graph import StoredGraph, open_stored

Edge = tuple[int, int]
Count = Callable[[Coordinator], int]

LABELS = 4
VERTICES = {2: 40, 3: 40, 4: 24, 5: 15, 6: 12, 7: 10, 8: 9}
"""Most vertices of a graph by those of the pattern: the oracle enumerates all mappings."""
_MOTIF_VERTICES = 4
_COSTS = PassCosts(1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Case:
    """A data graph and a query."""

    seed: int
    kind: str
    edges: tuple[Edge, ...]
    labels: dict[int, int]
    query: naive.Query
    residency: Residency = "resident"
    """Where the graph is counted once more, if that is elsewhere: in files (`mapped`), or in its store (`stored`)."""
    labelled: bool = False
    """Whether the graph has labels, also if the pattern has none."""

    @property
    def graph_labels(self) -> dict[int, int] | None:
        """The labels that the graph is made with."""
        return self.labels if self.labelled or self.query.labels is not None else None

    def __repr__(self) -> str:
        return (
            f"<case {self.seed}: {self.query} in {self.kind}, {self.residency}, edges {list(self.edges)}, "
            f"labels {self.graph_labels}>"
        )


def draw_case(seed: int) -> Case:
    """Draw a case; the same seed draws the same one."""
    chance = random.Random(seed)
    size = chance.choice((2, 3, 4, 4, 5, 5, 5, 6, 6, 7, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8))
    kind = chance.choice(sorted(_KINDS))
    edges = {
        tuple(sorted(edge))
        for edge in _KINDS[kind](chance, chance.randint((size + VERTICES[size]) // 2, VERTICES[size]))
    }
    listed = [(3 * u + 5, 3 * v + 5) for u, v in sorted(edges) or [(0, 1)]]
    listed += [(v, u) for u, v in chance.sample(listed, min(3, len(listed)))]  # again, the other way round
    listed += [(2, 2), (listed[0][0], listed[0][0])]  # loops: of a vertex without an edge, and of another one
    chance.shuffle(listed)
    number = chance.choice((1, 2, 2, 3, LABELS))
    labels = {v: chance.randrange(number) for v in sorted({end for u, v in listed if u != v for end in (u, v)})}
    query = _draw_query(chance, size, number)
    residency: Residency = chance.choice(("resident", "resident", "resident", "mapped", "stored"))
    return Case(seed, kind, tuple(listed), labels, query, residency, labelled=chance.random() < 0.3)


def _draw_query(chance: random.Random, size: int, number: int) -> naive.Query:
    """Draw a connected pattern: a random tree with further edges, or a shape that has a kernel of its own.

    Some of its vertices may have no label among others that have one of the `number` labels of the graph.
    """
    pairs = list(combinations(range(size), 2))
    shape = chance.randrange(10)
    if shape == 0:
        edges = pairs
    elif shape == 1 and size > 2:
        edges = [tuple(sorted((v, (v + 1) % size))) for v in range(size)]
    elif shape == 2:
        edges = [(0, v) for v in range(1, size)]
    else:
        order = chance.sample(range(size), size)
        tree = {tuple(sorted((order[v], chance.choice(order[:v])))) for v in range(1, size)}
        more = chance.choice((0.0, 0.1, 0.3, 0.7))
        edges = sorted(tree | {pair for pair in pairs if chance.random() < more})
    labels = None
    if chance.random() < 0.35:
        without = chance.choice((0.0, 0.2, 0.5))
        labels = tuple(ANY_LABEL if chance.random() < without else chance.randrange(number) for _ in range(size))
    if labels is not None and set(labels) == {ANY_LABEL}:
        labels = None
    return naive.Query(size, tuple(sorted(edges)), labels, chance.random() < 0.4)


def _sparse(chance: random.Random, n: int) -> Iterator[Edge]:
    share = min(chance.choice((1.0, 2.0, 4.0, 8.0)) / n, 0.9)
    return (pair for pair in combinations(range(n), 2) if chance.random() < share)


def _attached(chance: random.Random, n: int) -> Iterator[Edge]:
    return iter(nx.barabasi_albert_graph(n, min(chance.randint(1, 3), n - 1), seed=chance.randrange(1 << 30)).edges)


def _star(chance: random.Random, n: int) -> Iterator[Edge]:
    """One hub or two, and a few edges among the leaves."""
    hubs = chance.randint(1, 2)
    yield from product(range(hubs), range(hubs, n))
    for _ in range(chance.randint(0, n)):
        yield chance.randrange(n), chance.randrange(n)


def _bipartite(chance: random.Random, n: int) -> Iterator[Edge]:
    left = chance.randint(1, max(n // 2, 1))
    share = chance.choice((0.5, 0.8, 1.0))
    return (pair for pair in product(range(left), range(left, n)) if chance.random() < share)


def _tailed_clique(chance: random.Random, n: int) -> Iterator[Edge]:
    """A clique with paths and leaves that hang from it."""
    size = chance.randint(2, min(n, 9))
    yield from combinations(range(size), 2)
    for v in range(size, n):
        yield chance.choice((v - 1, chance.randrange(v), 0)), v


def _parts(chance: random.Random, n: int) -> Iterator[Edge]:
    """Several parts, some of which are alike."""
    size = max(n // 3, 2)
    part = list(_sparse(chance, size)) or [(0, 1)]
    for number in range(3):
        yield from ((u + number * size, v + number * size) for u, v in part)
        part = part if chance.random() < 0.5 else list(combinations(range(min(size, 5)), 2))


def _twins(chance: random.Random, n: int) -> Iterator[Edge]:
    """Vertices with the same neighbours, adjacent to each other or not."""
    size = max(n // 3, 2)
    part, adjacent = list(_sparse(chance, size)) or [(0, 1)], chance.random() < 0.5
    for u, v in part:
        yield from product(range(u, n, size), range(v, n, size))
    if adjacent:
        for u in range(size):
            yield from combinations(range(u, n, size), 2)


_KINDS: dict[str, Callable[[random.Random, int], Iterator[Edge]]] = {
    "random": _sparse,
    "preferential attachment": _attached,
    "star": _star,
    "bipartite": _bipartite,
    "tailed clique": _tailed_clique,
    "parts": _parts,
    "twins": _twins,
}


def methods(case: Case, graph: Graph) -> dict[str, Count]:
    """Every method that counts the embeddings of a case."""
    query, pattern = case.query, Pattern(case.query.size, case.query.edges, case.query.labels)
    induced, asked, facts = query.induced, Query(pattern, query.induced), Facts.of(graph)
    proposals = PLANNER.proposals(asked, facts)
    chosen = PLANNER.plan(asked, facts)
    plans: dict[str, CountPlan] = {
        name: tried_first(plan, chosen) if plan.tried else plan  # which may give up
        for name, plan in proposals
        if isinstance(plan, CountPlan)
    }
    plans["chosen"] = chosen
    for want in ("rows", "per_vertex", "per_edge"):  # the total of each is the count
        answers = PLANNER.proposals(replace(asked, want=want), facts)
        plans |= {name: plan for name, plan in answers if isinstance(plan, CountPlan)}
    for name, other in (("search, one vertex counted", {"limit": 1}), ("joins", {"join": "edges"})):
        plans[name] = replace(plans["search"], search=search_of(replace(asked, **other), graph.stats))
    for name, plan in _forced(asked, graph):
        plans[name] = tried_first(plan, chosen)
    several = _censuses(pattern, facts, induced=induced) | _cliques(pattern, facts)
    return {name: plan.count for name, plan in plans.items()} | several


def methods_in_store(case: Case, graph: StoredGraph) -> dict[str, Count]:
    """Every method that counts the embeddings of a case while the graph stays in its store."""
    query, pattern = case.query, Pattern(case.query.size, case.query.edges, case.query.labels)
    facts, found = Facts.of(graph), dict[str, Count]()
    for want in ("count", "rows", "per_vertex", "per_edge"):
        asked = Query(pattern, query.induced, want=want)
        answers = PLANNER.proposals(asked, facts)
        suited = {name: one for name, one in answers if isinstance(one, CountPlan) and not one.unsuited(facts)}
        found |= {name: plan.count for name, plan in suited.items()}
        if want == "count" and suited:
            found["chosen"] = PLANNER.plan(asked, facts).count
    return found | _censuses(pattern, facts, induced=query.induced) | _cliques(pattern, facts)


@contextmanager
def residing(graph: Graph, residency: Residency, folder: Path) -> Iterator[Graph]:
    """Have a graph in files or in its store, both in short chunks."""
    with short_chunks():
        write_graph(graph, folder / "store")
        if residency == "stored":
            with closing(open_stored(folder / "store", MemoryBudget("memory.host", PLENTY), WHY)) as stored:
                yield stored
            return
        with open_resources(host=PLENTY, disk=PLENTY, spill=folder / "spill") as resources:
            mapped = open_store(folder / "store", resources.host, files=MappedArrays(resources))
            assert mapped.files is not None
            yield mapped


def limited(case: Case, graph: Graph) -> tuple[int, Choice]:
    """Return a limit for a case, and the plan that counts up to it."""
    limit = 10 ** random.Random(case.seed).randrange(5)
    query = Query(Pattern(case.query.size, case.query.edges, case.query.labels), case.query.induced, limit)
    return limit, PLANNER.plan(query, Facts.of(graph))


class _AddedUp(CandidatesPlan):
    """Adds terms up at once, which queries of many matches alone come to."""

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        roots = candidates_of(self.query, env).roots
        return embeddings_of(self._added(self.phase, env), self.automorphisms) if roots else 0


def _forced(query: Query, graph: Graph) -> Iterator[tuple[str, CountPlan]]:
    """Yield the plans of methods that the planner asks for long counts in large graphs only."""
    pattern, induced = query.pattern, query.induced
    if least_neighbours(pattern) > 1:
        yield "core", InCorePlan(pattern, inf, query, least_neighbours(pattern), PLANNER.but(*ON_PARTS))
    if pattern.num_vertices > 2 and sorted(map(len, pattern.neighbours))[-2] == 1:
        yield "leaves by centre", StarLeavesPlan(pattern, inf, induced)
    if pattern.labels is not None and pattern.num_vertices > 2:
        yield "candidates", CandidatesPlan(pattern, inf, induced)
        if not induced:
            yield "candidates, added up", _AddedUp(pattern, inf, induced)
    if pattern.labels is not None or pattern.num_vertices < 3:
        return
    if pattern.is_clique:
        yield "pivots", KernelPlan(pattern, 0.0, RangeCount(CountCliquesByPivots(pattern.num_vertices), 0.0))
    hubs = min(1 + graph.num_edges % MOST_HUBS, graph.num_vertices)
    yield "around hubs", HubRemovalPlan(pattern, inf, induced, hubs, PLANNER)
    if not induced or induced_by_denser(pattern):
        yield "leaves", PendantVerticesPlan(pattern, inf, induced)
        more = denser(pattern) if induced else ((Pattern(pattern.num_vertices, pattern.edges), 1),)
        patterns, signs = tuple(one for one, _ in more), tuple(sign for _, sign in more)
        if (sums := plan_homomorphisms(patterns, _COSTS)) is not None:
            yield "decomposition", HomomorphismsPlan(pattern, 0.0, HomomorphismCount(sums), signs)


def _censuses(pattern: Pattern, facts: Facts, *, induced: bool) -> dict[str, Count]:
    """Methods that count all patterns of a size, in all or per vertex."""
    k = pattern.num_vertices
    if not induced or pattern.labels is not None or not 2 < k <= _MOTIF_VERTICES:
        return {}
    kinds = [nx.Graph(code_edges(code, k)) for code in connected_codes(k).tolist()]
    (at,) = [i for i, one in enumerate(kinds) if nx.is_isomorphic(one, nx.Graph(list(pattern.edges)))]
    return {
        name: lambda env, plan=plan: plan.counts(env)[at]
        for want in ("count", "per_vertex")
        for name, plan in PLANNER.proposals(Query.of_motifs(k, want), facts)
        if isinstance(plan, CountPlan) and not plan.unsuited(facts)
    }


def _cliques(pattern: Pattern, facts: Facts) -> dict[str, Count]:
    """Methods that count cliques of any size, and of every size, in all or per vertex."""
    k = pattern.num_vertices
    if not pattern.is_clique or pattern.labels is not None or k < 3:
        return {}
    return {
        f"{name}, {want}, {size}": lambda env, plan=plan, at=0 if size else k - 3: (plan.counts(env)[at:] or [0])[0]
        for size in (k, None)
        for want in ("count", "per_vertex")
        for name, plan in PLANNER.proposals(Query.of_cliques(size, want), facts)
        if isinstance(plan, CountPlan) and not plan.unsuited(facts)
    }
