"""Plan how patterns are counted; those with labels of vertices on the graph of their labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from longwall.pipeline.execution.environment import Coordinator
from longwall.pipeline.execution.phase import DoesNotFit
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.by_label.laid_out import forget_layout, laid_out
from longwall.pipeline.phases.by_label.layouts import clique_layout, one_label, search_layout
from longwall.pipeline.phases.count_plans import CountBySearch, CountPlan, plan_cliques, plan_unlabelled
from longwall.pipeline.planning.search_planner import plan_match
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.label_layout import LabelLayout
from longwall.storage.graph.stats import GraphStats

_NO_ROOM = "the budget has no room for the graph by label: searching the whole graph instead"


@dataclass(frozen=True)
class CountByLabel(CountPlan):
    """A count on the graph of a layout.

    Attributes
    ----------
    layout
        The layout.
    inside
        What counts there.
    induced
        Whether non-edges of the pattern must be non-edges of the graph.
    """

    layout: LabelLayout
    inside: CountPlan
    induced: bool

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
            there = laid_out(env, self.layout)
            return self.inside.count(there) if there.graph.num_edges else 0
        except DoesNotFit:
            forget_layout(env)
            env.observer.note(_NO_ROOM)
        return self.searched(env.graph.stats).count(env)

    def count_up_to(self, limit: int, env: Coordinator) -> int:
        """Count the embeddings until there are so many."""
        return self.searched(env.graph.stats).count_up_to(limit, env)

    def searched(self, stats: GraphStats) -> CountBySearch:
        """Return the search of the whole graph."""
        search = plan_match(self.pattern, stats, induced=self.induced)
        return CountBySearch(self.pattern, search.cost, search)


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
    labels = {label for label in pattern.labels or () if label >= 0}
    if not all(stats.label_counts.get(label) for label in labels):
        return searched  # which finds nothing
    bare = Pattern(pattern.num_vertices, pattern.edges, name=pattern.name)
    if pattern.num_vertices >= 3 and (layout := one_label(pattern)) is not None:
        inside = plan_unlabelled(bare, _of_label(stats, *layout.roles), induced=induced)
        return CountByLabel(pattern, inside.cost, layout, inside, induced)
    if (layout := clique_layout(pattern, stats)) is not None:
        inside = plan_cliques(bare, stats)
        return CountByLabel(pattern, inside.cost, layout, inside, induced)
    layout = search_layout(search)
    return searched if layout is None else CountByLabel(pattern, search.cost, layout, searched, induced)


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
