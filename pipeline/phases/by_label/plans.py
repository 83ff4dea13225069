"""Plan how patterns are counted; those with labels of vertices on the graph of their labels."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from longwall.pipeline.execution.environment import Coordinator
from longwall.pipeline.execution.phase import DoesNotFit
from longwall.pipeline.patterns.pattern import ANY_LABEL, Pattern
from longwall.pipeline.phases.by_label.label_sums import plan_label_sums
from longwall.pipeline.phases.by_label.laid_out import laid_out
from longwall.pipeline.phases.by_label.layouts import clique_layout, one_label, search_layout
from longwall.pipeline.phases.count_plans import (
    CountByHomomorphisms,
    CountBySearch,
    CountPlan,
    plan_cliques,
    plan_unlabelled,
)
from longwall.pipeline.phases.homomorphisms.count import HomomorphismCount
from longwall.pipeline.planning.pattern_core import pass_costs
from longwall.pipeline.planning.search_plan import MatchPlan
from longwall.pipeline.planning.search_planner import plan_match
from longwall.storage.graph.derived.label_layout import ANY, LabelLayout
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.stats import GraphStats

NO_ROOM = "the budget has no room for the graph by label: searching the whole graph instead"


@dataclass(frozen=True)
class CountByLabel(CountPlan):
    """A count on the graph of a layout.

    Attributes
    ----------
    layout
        The layout.
    inside
        What counts there.
    otherwise
        The search of the whole graph, where there is no room for the other one.
    """

    layout: LabelLayout
    inside: CountPlan
    otherwise: CountBySearch

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        roles = list(self.layout.roles)
        return self.inside.to_dict() | {"labels": self.pattern.labels, "graph_of_labels": roles}

    def describe(self) -> str:
        """The plan as text."""
        rows = "neighbours by label" if self.layout.sliced else "a vertex for each role of a vertex"
        labels = " ".join("others" if label < 0 else str(label) for label in self.layout.roles)
        if len(self.layout.roles) == 1:
            rows = "without other vertices"
        return f"graph        of the labels {labels}: {rows}\n{self.inside.describe()}"

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        try:
            there = self._there(env)
            return self.inside.count(there) if there.graph.num_edges else 0
        except DoesNotFit:
            env.forget_layout()
            env.observer.note(NO_ROOM)
        return self.otherwise.count(env)

    def count_up_to(self, limit: int, env: Coordinator) -> int:
        """Count at most `limit` embeddings: a search finds them, mostly before the graph could be laid out."""
        if isinstance(self.inside, CountBySearch):
            return self.otherwise.count_up_to(limit, env)
        return self.count(env)

    def _there(self, env: Coordinator) -> Coordinator:
        began = time.perf_counter()
        there = laid_out(env, self.layout)
        arcs, found = 2 * env.graph.num_edges, 2 * there.graph.num_edges
        env.metrics.record("the graph by label", 0, arcs, found, time.perf_counter() - began, there.graph.nbytes)
        return there


def plan_count(pattern: Pattern, graph: Graph, *, induced: bool = False) -> CountPlan:
    """Plan how to count a pattern's embeddings.

    Parameters
    ----------
    pattern
        What to count.
    graph
        The data graph; its statistics decide.
    induced
        Whether non-edges of the pattern must be non-edges of the graph.

    Returns
    -------
    CountPlan
        The plan with the smallest estimated cost.
    """
    if pattern.labels is not None:
        return plan_labelled(pattern, graph.stats, induced=induced)
    return plan_unlabelled(pattern, graph.stats, induced=induced)


def plan_labelled(pattern: Pattern, stats: GraphStats, *, induced: bool) -> CountPlan:
    """Plan how to count the embeddings of a pattern with labels of vertices.

    Parameters
    ----------
    pattern
        The pattern; its edges have no labels.
    stats
        Statistics of the data graph.
    induced
        Whether non-edges of the pattern must be non-edges of the graph.
    """
    search = plan_match(pattern, stats, induced=induced)
    searched = CountBySearch(pattern, search.cost, search)
    if not labels_are_there(pattern, stats):
        return searched
    bare = Pattern(pattern.num_vertices, pattern.edges, name=pattern.name)
    if pattern.num_vertices >= 3 and (layout := one_label(pattern)) is not None:
        inside = plan_unlabelled(bare, _of_label(stats, *layout.roles), induced=induced)
        return CountByLabel(pattern, inside.cost, layout, inside, searched)
    if (layout := clique_layout(pattern, stats)) is not None:
        inside = plan_cliques(bare, stats)
        return CountByLabel(pattern, inside.cost, layout, inside, searched)
    found = count_by_search(search, stats)
    return found if induced else _decomposed(found, stats)


def _decomposed(search: CountPlan, stats: GraphStats) -> CountPlan:
    """Return a count by tables on the graph of a search, where that is less work."""
    pattern = search.pattern
    if not isinstance(search, CountByLabel):
        return search
    bare = replace(pattern, name="", names=(), words=())
    sums = plan_label_sums(bare, pass_costs(_of_layout(stats, search.layout)))
    if sums is None or sums.cost >= search.cost:
        return search
    inside = CountByHomomorphisms(pattern, sums.cost, HomomorphismCount(sums), (1,))
    return CountByLabel(pattern, sums.cost, search.layout, inside, search.otherwise)


def _of_layout(stats: GraphStats, layout: LabelLayout) -> GraphStats:
    """Estimate the statistics of the graph of a layout, as if labels were random."""
    n = stats.num_vertices
    named = [stats.label_counts.get(label, 0) / n for label in layout.roles if label != ANY]
    share = [*named, *[1 - sum(named)] * (ANY in layout.roles)]
    pairs = {(first, second) for first, second, _ in layout.edges}
    met = [sum(share[b] for b in range(len(share)) if (min(a, b), max(a, b)) in pairs) for a in range(len(share))]
    edges, squares = (sum(one * part**power for one, part in zip(share, met, strict=True)) for power in (1, 2))
    return replace(
        stats,
        num_vertices=max(int(n * sum(share)), 1),
        num_edges=max(int(stats.num_edges * edges), 1),
        sum_degree_squared=max(int(stats.sum_degree_squared * squares), 1),
    )


def count_by_search(search: MatchPlan, stats: GraphStats) -> CountPlan:
    """Return the count of a search: on the graph of the pattern's labels, if it has some."""
    searched = CountBySearch(search.pattern, search.cost, search)
    layout = layout_of(search, stats)
    return searched if layout is None else CountByLabel(search.pattern, search.cost, layout, searched, searched)


def layout_of(search: MatchPlan, stats: GraphStats) -> LabelLayout | None:
    """Return the layout for a search; None where labels do not matter, or the graph has not all of them."""
    return search_layout(search) if labels_are_there(search.pattern, stats) else None


def labels_are_there(pattern: Pattern, stats: GraphStats) -> bool:
    """Whether the graph has vertices with each label of the pattern; if not, a search finds nothing at once."""
    return all(stats.label_counts.get(label) for label in pattern.labels or () if label != ANY_LABEL)


def _of_label(stats: GraphStats, label: int) -> GraphStats:
    """Estimate the statistics of the vertices of a label, as if labels were random."""
    share = stats.label_counts[label] / stats.num_vertices
    return replace(
        stats,
        num_vertices=stats.label_counts[label],
        num_edges=max(int(stats.num_edges * share**2), 1),
        max_degree=max(int(stats.max_degree * share), 1),
        max_out_degree=max(int(stats.max_out_degree * share), 1),
        mean_degree=stats.mean_degree * share,
        sum_degree_squared=max(int(stats.sum_degree_squared * share**3), 1),
    )
