"""Plans: what a method proposes for a query, and the choice among all that it has proposed."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from longwall.pipeline.execution.phase import MethodFailed, NotEnoughMemory
from longwall.pipeline.patterns.pattern import Pattern
from longwall.pipeline.patterns.symmetry import automorphism_count
from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.quoting import quote
from longwall.storage.errors import RunError

if TYPE_CHECKING:
    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.pipeline.phases.range_count import RangePhase
    from longwall.pipeline.planning.query import Query


_DIGITS = 16  # of the checksum of a question


@dataclass(frozen=True)
class Refusal:
    """Why a method does not apply to a query."""

    reason: str


@dataclass(frozen=True)
class CountPlan(ABC):
    """How the embeddings of a pattern are counted."""

    pattern: Pattern
    cost: float
    """Estimated number of elementary steps."""
    method: str = field(default="", kw_only=True)
    """The name of the method that proposed it."""

    tried: ClassVar[bool] = False
    """Whether it is tried ahead of cheaper plans, and raises `TooExpensive` if it is not much less work than these."""

    stops: ClassVar[bool] = False
    """Whether it ends at a limit."""

    @property
    def streamed(self) -> RangePhase | None:
        """The phase that counts a graph that stays in its store; None: the graph must be in memory."""
        return None

    @property
    def needs(self) -> str:
        """What a budget may have no room for, to complete a message."""
        return f"the method {self.method}"

    @cached_property
    def automorphisms(self) -> int:
        """Size of the automorphism group: mappings per embedding."""
        return automorphism_count(self.pattern)

    def unsuited(self, facts: Facts) -> str:
        """Return why the plan is no choice on a machine; empty if it is one."""
        return "the graph stays in its store" if facts.residency == "stored" and self.streamed is None else ""

    def steps(self, facts: Facts) -> float:  # noqa: ARG002 - most plans take the same steps on any machine
        """Return the estimated number of elementary steps on a machine, to rank plans."""
        return self.cost

    @property
    def question(self) -> Any:
        """What it answers, whatever the method, as JSON-able data: a resumed run compares it."""
        return self.to_dict()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data, for the manifest."""

    @abstractmethod
    def describe(self) -> str:
        """The plan as text."""

    @abstractmethod
    def count(self, env: Coordinator) -> int:
        """Count the embeddings.

        Raises
        ------
        NotEnoughMemory
            If a budget has no room for it.
        TooExpensive
            If it is tried, and not much less work than the next plan.
        """

    def counts(self, env: Coordinator) -> list[int]:
        """Count the embeddings of each pattern that the query is about; raises what `count` raises."""
        return [self.count(env)]

    def count_up_to(self, limit: int, env: Coordinator) -> int:  # noqa: ARG002 - a formula finds all at once
        """Count up to `limit` embeddings; a plan that cannot stop early counts all."""
        return self.count(env)

    def _title(self) -> str:
        pattern = self.pattern
        return (
            f"pattern      {pattern.name or pattern.edge_text}  ({pattern.edge_text}), "
            f"{pattern.num_vertices} vertices, {len(pattern.edges)} edges, {self.automorphisms} automorphisms\n"
        )

    def _facts(self, kind: str) -> dict[str, Any]:
        return {
            "kind": kind,
            "pattern": self.pattern.edge_text,
            "automorphisms": self.automorphisms,
            "estimated_cost": self.cost,
        }


@lru_cache(maxsize=256)
def _query_checksum(query: Query) -> str:
    """Return the checksum of a query, which each commit has."""
    return sha256(json.dumps(query.to_dict()).encode()).hexdigest()[:_DIGITS]


class Planning(Protocol):
    """What methods ask of the planner: see `longwall.pipeline.planning.planner.Planner`."""

    def but(self, *names: str) -> Planning:
        """Return a planner without methods and rewrites of such names."""
        ...

    def plan(self, query: Query, facts: Facts) -> Choice:
        """Plan a count."""
        ...

    def family(self, name: str) -> str:
        """Return the family of a method."""
        ...

    def proposals(self, query: Query, facts: Facts) -> Iterator[tuple[str, CountPlan | Refusal]]:
        """Yield what every method says of a count, with the name of the method."""
        ...


@dataclass(frozen=True)
class Choice(CountPlan):
    """The plans for a query, in the order in which they are tried where nothing is known of the machine.

    Its cost is that of the first plan that is not `tried`.

    Attributes
    ----------
    query
        The query.
    plans
        Those that are tried, and then the others by their cost.
    planner
        Plans by the methods that were not asked, if all of these fail.
    """

    query: Query
    plans: tuple[CountPlan, ...]
    planner: Planning = field(compare=False, repr=False)

    @property
    def best(self) -> CountPlan:
        """The first plan that is not `tried`."""
        return next(plan for plan in self.plans if not plan.tried)

    @property
    def streamed(self) -> RangePhase | None:
        """See `CountPlan`."""
        return next((phase for plan in self.plans if (phase := plan.streamed) is not None), None)

    @property
    def question(self) -> Any:
        """The query as JSON-able data."""
        return self.query.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """The best plan as JSON-able data, with a key for each that is tried ahead of it."""
        found = self.best.to_dict()
        for plan in self.plans:
            found |= plan.to_dict() if plan.tried else {}
        return found

    def describe(self) -> str:
        """The best plan as text, and those that are tried ahead of it."""
        return "\n".join([self.best.describe(), *(plan.describe() for plan in reversed(self.plans) if plan.tried)])

    def count(self, env: Coordinator) -> int:
        """Count the embeddings by the first plan that can."""
        return self.counts(env)[0]

    def counts(self, env: Coordinator) -> list[int]:
        """Count the embeddings of each pattern by the first plan that can."""
        return self._first(env, lambda plan: plan.counts(env))

    def count_up_to(self, limit: int, env: Coordinator) -> int:
        """Count up to `limit` embeddings by the first plan that can."""
        return self._first(env, lambda plan: [plan.count_up_to(limit, env)])[0]

    def ranked(self, facts: Facts) -> list[CountPlan]:
        """Return the plans that suit a machine, in the order in which they are tried."""
        return self.rank(self.plans, facts)

    @staticmethod
    def rank(plans: Iterable[CountPlan], facts: Facts) -> list[CountPlan]:
        """Return those that suit a machine: those that are tried, and then the others by their steps there."""
        suited = [plan for plan in plans if not plan.unsuited(facts)]
        if len(suited) < 2:
            return suited
        tried = [plan for plan in suited if plan.tried]
        return tried + sorted([plan for plan in suited if not plan.tried], key=lambda plan: plan.steps(facts))

    def _first(self, env: Coordinator, count: Callable[[CountPlan], list[int]]) -> list[int]:
        failure: type[RunError] = RunError
        reason = f"no method answers for {self.query.text}: engine.without leaves none"
        note = ""
        question = _query_checksum(self.query)
        for plan in self._as_begun(env, question):
            if note:
                env.observer.note(f"{note}: counting by {plan.method} instead")
                note = ""
            began = time.perf_counter()
            try:
                with env.log.answering(question, plan.method):
                    found = count(plan)
            except MethodFailed as error:
                failure, reason = type(error), str(error) or reason  # the error itself holds what had no room
                if isinstance(error, NotEnoughMemory):
                    note = f"the budget has no room for {plan.needs}"
                elif not plan.tried:
                    note = f"{plan.method}: {reason}"
                continue
            env.counted_by = plan.method
            env.metrics.record(f"method {plan.method}", 0, 0, sum(found), time.perf_counter() - began)
            return found
        raise failure(reason)

    def verify(self, found: list[int], env: Coordinator, limit: int | None = None) -> None:
        """Count a second time, by a method that shares as little as possible with the one that has answered.

        Embeddings that were listed, and counts per vertex or edge, are verified by their total.

        Parameters
        ----------
        found
            The count of each pattern, or what of it `limit` leaves.
        env
            The run.
        limit
            As of the count.

        Raises
        ------
        RunError
            If the counts differ.
        """
        taken, facts = env.counted_by, Facts.there(env)
        own = self.planner.family(taken)
        counts = self
        if self.query.want != "count":
            counts = self.planner.plan(self.query.counted(limit), facts)
        others = [plan for plan in counts._in_turn(facts) if self.planner.family(plan.method) != own]
        for plan in others:
            try:
                with env.log.answering("", ""):  # the run is resumed by the method that has answered
                    again = plan.counts(env) if limit is None else [min(plan.count_up_to(limit, env), limit)]
            except MethodFailed:
                continue
            for number, (first, second) in enumerate(zip(found, again, strict=True)):
                if first != second:
                    which = self.pattern.edge_text
                    if self.query.about != "pattern":
                        which = f"count {number} of {self.query.text}"
                    raise RunError(
                        f"run.verify: {which}: {taken} counts {first}, {plan.method} counts {second}: "
                        "one of them is wrong; please report it with the config"
                    )
            env.observer.note(f"verified: {plan.method} counts the same as {taken}")
            return
        env.observer.note(f"not verified: no method of another family than {taken} answers for {self.query.text}")

    def _as_begun(self, env: Coordinator, question: str) -> Iterator[CountPlan]:
        """Yield the plans as they are tried: first that of the method by which an earlier attempt of the run began."""
        planned, begun = self._in_turn(Facts.there(env)), env.log.method_of(question)
        if begun is None:
            yield from planned
            return
        plans = list(planned)
        first = [plan for plan in plans if plan.method == begun]
        others = [plan for plan in plans if plan.method != begun]
        if not first and others:
            env.observer.note(
                f"{self.query.text}: the run began by {quote(begun)}, which does not apply any more: counting by "
                f"{others[0].method}"
            )
        yield from (*first, *others)

    def _in_turn(self, facts: Facts) -> Iterator[CountPlan]:
        planned = self.ranked(facts)
        yield from planned
        known = {plan.method for plan in self.plans}
        more = [
            one
            for name, one in self.planner.proposals(self.query, facts)
            if isinstance(one, CountPlan) and name not in known and not one.tried
        ]
        yield from sorted(more, key=lambda plan: plan.steps(facts))


def embeddings_of(mappings: int, automorphisms: int) -> int:
    """Return the number of embeddings, given the number of mappings."""
    embeddings, rest = divmod(mappings, automorphisms)
    if rest or embeddings < 0:
        raise RunError(f"internal fault: {mappings} mappings, {automorphisms} automorphisms")
    return embeddings
