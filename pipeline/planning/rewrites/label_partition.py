"""Counts on the graph of a pattern's labels: only its vertices and edges are there, or rows are sorted by label."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from longwall.kernels.interface.kernels import Kernels
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.phase import MethodFailed
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.phases.by_label.label_sums import plan_label_sums
from longwall.pipeline.phases.by_label.laid_out import laid_out
from longwall.pipeline.phases.by_label.layouts import clique_layout, labels_are_there, layout_of, one_label
from longwall.pipeline.phases.homomorphisms.count import HomomorphismCount
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.homomorphisms.pattern_core import pass_costs
from longwall.pipeline.planning.method import Rewrite
from longwall.pipeline.planning.methods.homomorphisms import HomomorphismsPlan
from longwall.pipeline.planning.methods.search import SearchPlan
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal
from longwall.pipeline.planning.query import Query
from longwall.storage.graph.derived.label_layout import ANY, LabelLayout
from longwall.storage.graph.stats import GraphStats


@dataclass(frozen=True)
class LabelPartitionPlan(CountPlan):
    """A count on the graph of a layout.

    Attributes
    ----------
    layout
        The layout.
    inside
        What counts there.
    """

    layout: LabelLayout
    inside: CountPlan
    needs = "the graph by label"
    kernels = (Kernels.rows_by_label,)

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
        except MethodFailed:
            env.forget_layout()
            raise

    def _there(self, env: Coordinator) -> Coordinator:
        began = time.perf_counter()
        there = laid_out(env, self.layout)
        arcs, found = 2 * env.graph.num_edges, 2 * there.graph.num_edges
        env.metrics.record("the graph by label", 0, arcs, found, time.perf_counter() - began, there.graph.nbytes)
        return there


class LabelPartition(Rewrite):
    """Counts of labelled patterns on the graph of their labels."""

    name: ClassVar[str] = "label-partition"
    family: ClassVar[str] = "search"

    def propose(self, query: Query, facts: Facts, planner: Planning, best: CountPlan) -> CountPlan | Refusal:
        """Propose the cheapest count on the graph of the pattern's labels, if a search is the best in the whole one."""
        pattern, stats = query.pattern, facts.stats
        if not isinstance(best, SearchPlan):
            return Refusal("another method than a search counts the pattern in the whole graph")
        if not labels_are_there(pattern, stats):
            return Refusal("the graph lacks a label")
        found = self._proposed(query, facts, planner, best)
        if found is None:
            return Refusal("the pattern has no labels that leave vertices or edges out")
        if query.limit is None:
            return found
        if isinstance(found.inside, SearchPlan):
            return Refusal("a search ends at the limit, mostly before the graph would be laid out")
        assert facts.graph is not None, "parts of derived graphs have no limit"
        return replace(found, cost=found.cost + 2 * stats.num_edges)  # laying out the graph reads all arcs

    def _proposed(self, query: Query, facts: Facts, planner: Planning, best: SearchPlan) -> LabelPartitionPlan | None:
        pattern, stats = query.pattern, facts.stats
        if pattern.edge_labels is None and query.join == "vertices" and pattern.labels is not None:
            bare = Pattern(pattern.num_vertices, pattern.edges, name=pattern.name)
            inside: CountPlan
            if pattern.num_vertices >= 3 and (layout := one_label(pattern)) is not None:
                there = Facts(_of_label(stats, *layout.roles))
                inside = planner.plan(Query(bare, query.induced), there)
                return LabelPartitionPlan(pattern, min(inside.cost, best.cost), layout, inside, method=self.name)
            if (layout := clique_layout(pattern, stats)) is not None:
                inside = planner.plan(Query(bare), Facts(stats))
                return LabelPartitionPlan(pattern, min(inside.cost, best.cost), layout, inside, method=self.name)
        if (layout := layout_of(best.search, stats)) is None:
            return None
        search = LabelPartitionPlan(pattern, best.cost, layout, best, method=self.name)
        summed = pattern.edge_labels is None and query.join == "vertices" and not query.induced
        return (self._by_sums(search, stats) if summed else None) or search

    def _by_sums(self, search: LabelPartitionPlan, stats: GraphStats) -> LabelPartitionPlan | None:
        """Return a count by tables on the graph of a search, if that is less work."""
        bare = replace(search.pattern, name="", names=(), words=())
        sums = plan_label_sums(bare, pass_costs(_of_layout(stats, search.layout)))
        if sums is None or sums.cost >= search.cost:
            return None
        inside = HomomorphismsPlan(search.pattern, sums.cost, HomomorphismCount(sums), (1,), method="homomorphisms")
        return replace(search, cost=sums.cost, inside=inside)


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
