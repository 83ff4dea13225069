"""The planner: all methods and rewrites that count or list the embeddings of a pattern, and the choice among them.

Each method proposes a plan for a query or says why it does not apply, and plans are ranked by their estimated steps.
The cheapest one counts; if a budget has no room for it, the next one does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.method import Method, Rewrite
from longwall.pipeline.planning.methods.candidates import CandidateSearch
from longwall.pipeline.planning.methods.clique_leaves import CliqueLeaves
from longwall.pipeline.planning.methods.cliques import Cliques
from longwall.pipeline.planning.methods.counts_of_edges import CountsOfEdges
from longwall.pipeline.planning.methods.cycles import FiveCycles, FourCycles
from longwall.pipeline.planning.methods.degrees import Degrees
from longwall.pipeline.planning.methods.diamonds import Diamonds, DiamondsByArcs
from longwall.pipeline.planning.methods.from_triangles import FromTriangles
from longwall.pipeline.planning.methods.homomorphisms import Homomorphisms, HomomorphismsWithoutLists
from longwall.pipeline.planning.methods.inclusion_exclusion import InclusionExclusion
from longwall.pipeline.planning.methods.maximal_cliques import MaximalCliques
from longwall.pipeline.planning.methods.motifs import MotifCounting, MotifEnumeration, MotifsOfThree
from longwall.pipeline.planning.methods.orbits import OrbitCounting, OrbitEnumeration
from longwall.pipeline.planning.methods.search import Listing, Search
from longwall.pipeline.planning.methods.star_leaves import StarLeaves
from longwall.pipeline.planning.methods.triangles_of_vertices import TrianglesOfVertices
from longwall.pipeline.planning.plan import Choice, CountPlan, Refusal
from longwall.pipeline.planning.query import Query
from longwall.pipeline.planning.rewrites.hub_removal import HubRemoval
from longwall.pipeline.planning.rewrites.k_core import KCore
from longwall.pipeline.planning.rewrites.label_partition import LabelPartition
from longwall.pipeline.planning.rewrites.pendant_vertices import PendantVertices
from longwall.storage.errors import InputError
from longwall.storage.streaming.stored_graph import StaysInStore, StoredGraph

METHODS: tuple[Method, ...] = (
    Degrees(),  # reads the degrees once, so nothing is less work
    Cliques(),  # those with kernels of their own take fewer steps than a search or sums, on any graph
    FourCycles(),
    FiveCycles(),
    Diamonds(),
    DiamondsByArcs(),  # as Diamonds; the machine decides between the two
    CandidateSearch(),  # ahead of sums and searches by label: these are for small patterns
    FromTriangles(),  # tried first where memory does not have the whole graph
    Homomorphisms(),  # from here on the estimate decides
    HomomorphismsWithoutLists(),
    InclusionExclusion(),
    Search(),  # counts anything
    Listing(),  # from here on: embeddings, and counts per vertex and per edge
    TrianglesOfVertices(),
    CountsOfEdges(),
    CliqueLeaves(),  # cliques that are too large for a pattern, of every size, and per vertex
    MaximalCliques(),
    MotifEnumeration(),  # from here on: all patterns of a size; first, as planning a count of each takes time
    MotifsOfThree(),
    MotifCounting(),
    OrbitEnumeration(),
    OrbitCounting(),
)
REWRITES: tuple[Rewrite, ...] = (
    LabelPartition(),  # first, as it changes the cost that the others compare with
    KCore(),
    PendantVertices(),
    HubRemoval(),  # tried ahead of cores: parts of patterns are counted in cores of the remaining graph
    StarLeaves(),  # tried first: it looks at the neighbours of each vertex, and gives up early
)


@dataclass(frozen=True)
class Planner:
    """Plans counts by some of the methods and rewrites.

    Attributes
    ----------
    methods, rewrites
        Those that are asked, in this order.
    """

    methods: tuple[Method, ...] = METHODS
    rewrites: tuple[Rewrite, ...] = REWRITES

    def but(self, *names: str) -> Planner:
        """Return a planner without methods and rewrites of such names."""
        return replace(
            self,
            methods=tuple(one for one in self.methods if one.name not in names),
            rewrites=tuple(one for one in self.rewrites if one.name not in names),
        )

    def family(self, name: str) -> str:
        """Return the family of a method, which is its own name if it shares nothing with others."""
        return next((one.family for one in (*self.methods, *self.rewrites) if one.name == name), "") or name

    def plan(self, query: Query, facts: Facts) -> Choice:
        """Plan a count; methods behind one that is surely the best are not asked.

        Raises
        ------
        InputError
            If no method is left that counts the pattern, or none can do so while the graph stays in its store.
        """
        found: list[CountPlan] = []
        for method in self.methods:
            if method.spare:
                continue
            plan = method.lacks(query) or method.propose(query, facts, self)
            if isinstance(plan, CountPlan):
                found.append(plan)
                if method.is_sure(plan) and (query.limit is None or plan.stops):
                    break
        return self._choice(query, facts, found)

    def proposals(self, query: Query, facts: Facts) -> Iterator[tuple[str, CountPlan | Refusal]]:
        """Yield what every method and rewrite says of a count, with its name."""
        base: list[CountPlan] = []
        for method in self.methods:
            plan = method.lacks(query) or method.propose(query, facts, self)
            if isinstance(plan, CountPlan) and not plan.tried:
                base.append(plan)
            yield method.name, plan
        for rewrite in self.rewrites if base else ():
            plan = rewrite.lacks(query) or rewrite.propose(query, facts, self, _cheapest(base))
            if isinstance(plan, CountPlan) and not plan.tried:
                base.insert(0, plan)
            yield rewrite.name, plan

    def _choice(self, query: Query, facts: Facts, found: list[CountPlan]) -> Choice:
        tried, base = [plan for plan in found if plan.tried], [plan for plan in found if not plan.tried]
        if not base:
            if isinstance(facts.graph, StoredGraph):
                raise StaysInStore(facts.graph.stored.refusal)
            raise InputError(f"no method answers for {query.text}: take some out of engine.without")
        for rewrite in self.rewrites:
            plan = rewrite.lacks(query) or rewrite.propose(query, facts, self, _cheapest(base))
            if isinstance(plan, CountPlan) and plan.tried:
                tried.insert(0, plan)
            elif isinstance(plan, CountPlan):
                base.insert(0, plan)  # of equal cost, the smaller graph first
        base.sort(key=lambda plan: plan.cost)
        best = base[0]
        return Choice(query.pattern, best.cost, query, (*tried, *base), self, method=best.method)


def _cheapest(plans: list[CountPlan]) -> CountPlan:
    return min(plans, key=lambda plan: plan.cost)


NAMES = tuple(one.name for one in (*METHODS, *REWRITES))
PLANNER = Planner()
"""Plans by all methods and rewrites."""
