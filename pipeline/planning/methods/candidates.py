"""Plans for labelled queries: candidates are looked for first, and the search reads nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from longwall.kernels.host.queries.candidate_space import QueryGraph
from longwall.kernels.host.queries.densest_part import densest_parts
from longwall.kernels.host.queries.sums.counter import coincidences
from longwall.pipeline.execution.coordinator import Coordinator
from longwall.pipeline.execution.derived import forget
from longwall.pipeline.execution.phase import MethodFailed, TooExpensive, host_threads
from longwall.pipeline.execution.stage_metrics import record_levels
from longwall.pipeline.label_names import label_texts
from longwall.pipeline.phases.queries.candidates import Candidates, candidates_of, terms_of
from longwall.pipeline.phases.queries.search import MOST_WANTED, QueryCount
from longwall.pipeline.phases.queries.sums import QueryTerms
from longwall.pipeline.phases.search_count import wanted_left
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.method import Method
from longwall.pipeline.planning.plan import CountPlan, Planning, Refusal, embeddings_of
from longwall.pipeline.planning.query import Query
from longwall.pipeline.planning.search.search_planner import LEAST_OF_CANDIDATES
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.stages.source import host_arrays

_SUMS = "sum          where that takes long: parts counted once for each image of what separates them from the rest\n"
_BRIEF = (
    1 << 14
)  # candidates that one worker tries before others start: about 2 ms, as long as it takes to start 16 workers
_PATIENCE = 1 << 17  # candidates that each worker tries before terms are looked at: about 20 ms
_PAIRS, _MOST_SHIFT = 6, 6  # of vertices that may coincide: each 6 of them double the patience, 6 times at most
_PATIENT_SHARE = 1 / 16  # of a search's candidates to those that terms are estimated to take: one takes longer
_MOST_COST = 1e11  # candidates: with more, which take hours, the search goes on
_MOST_VERTICES = 1 << 31  # of a graph: positions of candidates have 32 bits, with a sign


@dataclass(frozen=True)
class CandidatesPlan(CountPlan):
    """A search in candidate lists.

    Attributes
    ----------
    induced
        Whether non-edges of the pattern must be non-edges of the graph.
    """

    induced: bool
    stops: ClassVar[bool] = True
    needs = "the candidates of a query"

    @property
    def query(self) -> QueryGraph:
        """The pattern, as kernels have it."""
        pattern = self.pattern
        near = tuple(sum(1 << w for w in sorted(others)) for others in pattern.neighbours)
        labels = tuple(pattern.label(v) for v in range(pattern.num_vertices))
        return QueryGraph(near, labels, self.induced)

    @property
    def phase(self) -> QueryCount:
        """What counts the mappings."""
        labels = " ".join(str(self.pattern.label(v)) for v in range(self.pattern.num_vertices))
        title = f"{self.pattern.edge_text}, labels {labels}{', induced' if self.induced else ''}"
        return QueryCount(self.query, title)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        return self._facts("candidates") | {"labels": self.pattern.labels, "induced": self.induced}

    def describe(self) -> str:
        """The plan as text."""
        labels = label_texts(self.pattern.labels, None) or ()
        return (
            f"{self._title()}matching     {'induced' if self.induced else 'non-induced'}\n"
            f"labels       {' '.join('any' if label is None else str(label) for label in labels)}\n"
            "filter       candidates of each query vertex: by label, degree and the labels of the neighbours, then by\n"
            "             the candidates of its neighbours until nothing changes\n"
            "extend       the query vertex with the fewest candidates next; back to what is to blame\n"
            f"count        query vertices that are not adjacent, divided by {self.automorphisms}\n"
            + ("" if self.induced else _SUMS)
            + f"estimate     {self.cost:.3g} elementary steps to look for candidates"
        )

    def count(self, env: Coordinator) -> int:
        """Count the embeddings."""
        return self._counted(env, None)

    def count_up_to(self, limit: int, env: Coordinator) -> int:
        """Count at most `limit` embeddings."""
        return self._counted(env, limit)

    def _counted(self, env: Coordinator, limit: int | None) -> int:
        try:
            if limit is None or limit * self.automorphisms > MOST_WANTED:
                mappings = self._all(env)
            else:
                mappings = self._some(limit * self.automorphisms, env)
        except MethodFailed:
            forget(env, Candidates)
            raise
        return embeddings_of(mappings, self.automorphisms)

    def _some(self, wanted: int, env: Coordinator) -> int:
        """Count at most `wanted` mappings: among the vertices of highest degree if these have as many, else among all.

        Raises
        ------
        MethodFailed
            If the budget has no room for the candidates.
        """
        phase = self.phase
        for number in densest_parts(host_arrays(env.graph)):
            part = replace(phase, among=number, patience=_PATIENCE, alone=True)
            with suppress(MethodFailed):
                found = self._search(replace(part, limit=wanted_left(wanted, env, part)), env)
                if found >= wanted:
                    return found
        phase = replace(phase, limit=wanted_left(wanted, env, phase))
        with suppress(TooExpensive):
            return self._search(replace(phase, patience=_BRIEF, alone=True), env)
        return self._search(phase, env)

    def _all(self, env: Coordinator) -> int:
        """Count all mappings: by a search or, where that takes long, by terms; each has a time that the other is worth.

        Raises
        ------
        MethodFailed
            If the budget has no room for the candidates.
        """
        phase = self.phase
        if self.induced:
            return self._search(phase, env)
        with suppress(MethodFailed):
            return self._search(replace(phase, patience=_BRIEF, alone=True), env)
        with suppress(MethodFailed):
            return self._search(replace(phase, patience=_PATIENCE), env)
        pairs = len(coincidences(candidates_of(phase.query, env)).pairs())
        if pairs >= _PAIRS:
            with suppress(MethodFailed):
                return self._search(replace(phase, patience=_PATIENCE << min(pairs // _PAIRS, _MOST_SHIFT)), env)
        cost = terms_of(phase.query, env).cost
        patience = int(min(cost, _MOST_COST) * _PATIENT_SHARE) // host_threads(env)
        if patience > _PATIENCE:
            with suppress(MethodFailed):
                return self._search(replace(phase, patience=patience), env)
        if cost <= _MOST_COST:
            with suppress(MethodFailed):
                return self._added(phase, env)
        with suppress(MethodFailed):
            return self._search(phase, env)
        return self._added(phase, env)  # without a bound on its steps: numbers are too large for the search

    def _added(self, phase: QueryCount, env: Coordinator) -> int:
        return QueryTerms(phase.query, phase.title).exact(env, lambda partials: self._record(partials, env))

    def _search(self, phase: QueryCount, env: Coordinator) -> int:
        record = env.run(phase)
        self._record(record.partials, env)
        found: int = phase.aggregation.result(record.values)
        return found

    def _record(self, partials: Sequence[PartialResult], env: Coordinator) -> None:
        record_levels(env, partials, {self.pattern.num_vertices - 1: "count"})


class CandidateSearch(Method):
    """Labelled queries by a search in lists of candidates.

    Both engines count so, and on the host: a kernel for one query takes longer to compile for a GPU than the answer.
    """

    name: ClassVar[str] = "candidates"
    sure: ClassVar[bool] = True

    def propose(self, query: Query, facts: Facts, planner: Planning) -> CountPlan | Refusal:  # noqa: ARG002
        """Propose the search in candidates for a pattern with labels."""
        pattern, stats = query.pattern, facts.stats
        if pattern.edge_labels is not None or query.join == "edges":
            return Refusal("labels of edges and binary joins are for searches")
        if pattern.labels is None or pattern.num_vertices < LEAST_OF_CANDIDATES:
            return Refusal(f"the pattern has no labels, or fewer than {LEAST_OF_CANDIDATES} vertices")
        if stats.num_vertices >= _MOST_VERTICES:
            return Refusal(f"the graph has {_MOST_VERTICES:,} vertices or more")
        share = [
            stats.label_counts.get(label, 0) / max(stats.num_vertices, 1) if label >= 0 else 1.0
            for label in pattern.labels
        ]
        cost = stats.num_vertices + 2.0 * stats.num_edges * sum(share)
        return CandidatesPlan(pattern, cost, query.induced, method=self.name)
