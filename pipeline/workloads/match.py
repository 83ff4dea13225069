"""Subgraph matching: count or list the embeddings of any connected pattern, or count those of many patterns."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from longwall.pipeline.execution.environment import PatternCount
from longwall.pipeline.label_names import placeholders, with_label_numbers
from longwall.pipeline.patterns.parse import is_pattern_file
from longwall.pipeline.patterns.query_folder import PatternSource, dropped_line, is_folder, queries_of, read_query
from longwall.pipeline.patterns.symmetry import automorphism_count
from longwall.pipeline.planning.query import Join, Query
from longwall.pipeline.quoting import quote
from longwall.pipeline.workloads.base import Workload, answer_pattern, plan_pattern
from longwall.pipeline.workloads.sections import as_tuple
from longwall.storage.errors import InputError
from longwall.storage.system.paths import path_exists, user_path

if TYPE_CHECKING:
    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.pipeline.patterns.pattern import Pattern
    from longwall.pipeline.planning.plan import CountPlan
    from longwall.pipeline.planning.planner import Planner
    from longwall.storage.graph.graph import Graph


def _labels(value: object) -> object:
    """Check labels of vertices, which are whole numbers or texts."""
    labels = as_tuple(value)
    for label in labels if isinstance(labels, tuple) else ():
        if type(label) is not str and (type(label) is not int or label < 0):
            raise ValueError(f"expected labels that are integers from 0 up, or texts, not {quote(label)}")
    return labels


@dataclass(frozen=True)
class QueriesPlan:
    """A plan for each of several patterns, with what it is called."""

    queries: tuple[tuple[str, CountPlan], ...]

    @property
    def question(self) -> Any:
        """The questions, as `CountPlan.question`."""
        return [plan.question for _, plan in self.queries]

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return {"kind": "queries", "queries": [{"name": name} | plan.to_dict() for name, plan in self.queries]}

    def describe(self) -> str:
        """The plan as text."""
        parts = "\n".join(f"query        {name}\n{plan.describe()}" for name, plan in self.queries)
        return f"queries      {len(self.queries)}, one after another on one open graph\n{parts}"


class Match(Workload):
    """``kind = "match"``: the embeddings of a query graph, or of several."""

    kind: Literal["match"] = Field(description="the embeddings of any small pattern")
    pattern_labels: Annotated[tuple[int | str, ...] | None, BeforeValidator(_labels)] = Field(
        default=None,
        description="one label per pattern vertex, integers or texts as in the graph; by default labels do not matter",
    )
    output: Literal["count", "embeddings", "edges"] = Field(
        default="count",
        description="`count`, `embeddings`, or, for triangles, 4-cliques and 4-cycles without labels, `edges`: the "
        "number of embeddings that contain each edge",
    )
    pattern: Annotated[str | tuple[str, ...], BeforeValidator(as_tuple)] = Field(
        description="a name, an edge list, vertices with names and labels such as `(a:1)-(b:2)-(c), (a)-(c)`, a "
        "`.graph` (`t n m`, `t id n` or `t # id`, then `v` and `e` lines) or `.graphml` file; connected, at most 64 "
        "vertices. Or several to be counted one after another: a list, or a folder of such files"
    )
    induced: bool = Field(default=False, description="whether non-edges of the pattern must be non-edges of the graph")
    limit: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="stop after this many embeddings of a pattern; by default all are counted or listed"
    )
    join: Join = Field(
        default="vertices",
        description="`vertices`: a vertex of the pattern at a time; or, for comparison, `edges`: an edge at a time, "
        "GAMMA's binary joins",
    )

    def _checks(self) -> Iterable[Iterable[tuple[str, str]]]:
        return self._pattern_faults(), self._limit_faults(), self._count_faults()

    def _pattern_faults(self) -> Iterator[tuple[str, str]]:
        of_edges = self.output == "edges"
        if self._several and self.pattern_labels:
            yield "pattern", "several patterns have labels of their own: remove workload.pattern_labels"
        if self._several and self.output == "embeddings":
            text = "embeddings of several patterns have different columns: count them, or list one at a time"
            yield "pattern", text
        if self._several and of_edges:
            yield "pattern", "counts per edge are of one pattern; give one"
        try:
            patterns = [read_query(one.source, placeholders(self.pattern_labels or None)) for one in self._queries]
        except InputError as error:
            yield "pattern", str(error)
            return
        if of_edges and not self._several and (reason := self._not_at_edges(patterns[0])):
            text = f'"edges" counts triangles, 4-cliques and 4-cycles at their edges, but {reason}; use "count"'
            yield "output", text

    def _limit_faults(self) -> Iterator[tuple[str, str]]:
        if self.output == "edges" and self.limit is not None:
            yield "limit", "counts per edge are whole; remove it"

    def _count_faults(self) -> Iterator[tuple[str, str]]:
        if self.output == "edges" and self.count == "mappings":
            yield "count", 'counts per edge are of embeddings; use output = "count" to count mappings'
        if self.output == "embeddings" and self.count != "embeddings":
            yield "count", f'embeddings are written once each; use output = "count" to count {self.count}'

    def _not_at_edges(self, pattern: Pattern) -> str:
        """Return all reasons why no method counts a pattern at every edge; "" if one does."""
        from longwall.pipeline.planning.methods.counts_of_edges import CountsOfEdges

        joins: tuple[Join, ...] = (self.join, "vertices")
        queries = [Query(pattern, self.induced, join=join, want="per_edge") for join in joins]
        refusals = filter(None, map(CountsOfEdges().lacks, queries))
        return ", and ".join(dict.fromkeys(refusal.reason for refusal in refusals))

    @property
    def adds_up(self) -> bool:
        """Whether there is one pattern."""
        return not self._several

    @property
    def most_embeddings(self) -> int | None:
        """See `Workload`."""
        return self.limit

    @property
    def num_columns(self) -> int | None:
        """Number of columns of the embeddings."""
        return None if self._several else read_query(self._queries[0].source).num_vertices

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns of the embeddings: the vertices of the pattern, if it names them."""
        return () if self._several else read_query(self._queries[0].source).columns

    @property
    def kernels(self) -> tuple[Any, ...]:
        """The kernels of nearly all counts of 4 vertices or more: of canonical codes for plans, and of row programs."""
        from longwall.kernels.host.patterns.canonical_kernel import canonical_codes
        from longwall.kernels.interface.kernels import Kernels

        if self._several or self.output != "count" or self.limit is not None:
            return ()
        query = read_query(self._queries[0].source)
        least = min(map(len, query.neighbours))
        if query.num_vertices < 4 or (query.num_vertices == 4 and least > 1 and not self.induced):
            return ()  # cliques, cycles and diamonds have kernels of their own
        # Labelled patterns are searched, or counted by sums whose kernels the plan names.
        alone = query.is_clique or query.labels is not None
        return (canonical_codes,) if alone else (canonical_codes, Kernels.row_counter)

    def with_absolute_paths(self) -> Match:
        """Return the section with absolute paths of the patterns that are in files, or in a folder."""
        absolute = tuple(map(_absolute, self._sources))
        return self.model_copy(update={"pattern": absolute[0] if isinstance(self.pattern, str) else absolute})

    def plan(self, graph: Graph, planner: Planner | None = None) -> CountPlan | QueriesPlan:
        """Plan the matching of the pattern, or of each of several."""
        if self._several:
            return QueriesPlan(tuple((query.name, self._plan(query, graph, planner)) for query in self._queries))
        return self._plan(self._queries[0], graph, planner)

    def execute(self, plan: CountPlan | QueriesPlan, env: Coordinator) -> list[PatternCount]:
        """Count or list the embeddings."""
        for line in filter(None, (dropped_line(query.source) for query in self._queries)):
            env.observer.note(line)
        if not isinstance(plan, QueriesPlan):
            return [self._answer(plan, env)]
        found = []
        for name, one in plan.queries:
            began = time.perf_counter()
            answer = self._answer(one, env)
            found.append(replace(answer, name=name, seconds=time.perf_counter() - began))
        return found

    @property
    def _sources(self) -> tuple[str, ...]:
        return (self.pattern,) if isinstance(self.pattern, str) else self.pattern

    @property
    def _several(self) -> bool:
        return not isinstance(self.pattern, str) or is_folder(self.pattern)

    @property
    def _queries(self) -> list[PatternSource]:
        return queries_of(self._sources)

    def _plan(self, query: PatternSource, graph: Graph, planner: Planner | None) -> CountPlan:
        pattern = read_query(query.source, placeholders(self.pattern_labels))
        pattern = with_label_numbers(pattern, self.pattern_labels, graph)
        if self.count == "subgraphs":
            return self._plan_subgraphs(pattern, graph, planner)
        return self._plan_embeddings(pattern, graph, self._limit(pattern), planner)

    def _plan_embeddings(self, pattern: Pattern, graph: Graph, limit: int | None, planner: Planner | None) -> CountPlan:
        return plan_pattern(pattern, graph, self.output, planner, induced=self.induced, join=self.join, limit=limit)

    def _plan_subgraphs(self, pattern: Pattern, graph: Graph, planner: Planner | None) -> CountPlan:
        """Plan the count of distinct subgraphs: the count of embeddings, if each subgraph has one embedding."""
        from longwall.pipeline.patterns.placements import subgraph_terms
        from longwall.pipeline.phases.by_label.subgraphs import CountSubgraphs

        most, terms = subgraph_terms(pattern)
        limit = None if self.limit is None else self.limit * most
        (_, whole), *others = [
            (coefficient, self._plan_embeddings(one, graph, limit if one is pattern else None, planner))
            for coefficient, one in terms
        ]
        if not others:
            return whole
        plans = ((1, whole), *others)
        return CountSubgraphs(pattern, sum(plan.cost for _, plan in plans), plans, most)

    def _limit(self, pattern: Pattern) -> int | None:
        """Return the limit of a plan's count; an embedding has one mapping for each automorphism."""
        if self.limit is None or self.count != "mappings":
            return self.limit
        return -(-self.limit // automorphism_count(pattern))

    def _answer(self, plan: CountPlan, env: Coordinator) -> PatternCount:
        """Count or list the embeddings of one pattern."""
        found = answer_pattern(plan, env, limit=self._limit(plan.pattern))
        if self.count == "mappings" and found.count is not None:
            count = found.count * plan.automorphisms
            if self.limit is not None:
                count = min(count, self.limit)
            found = replace(found, count=count, lower_bound=self.limit is not None and count == self.limit)
        return found


def _absolute(source: str) -> str:
    """Return a pattern with the absolute path of its file or folder, if it is in one."""
    text = source.strip()
    if not is_folder(text) and not (is_pattern_file(text) and path_exists(text)):
        return source
    return str(user_path(text).absolute())
