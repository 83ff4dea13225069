"""What ``longwall explain --all`` adds: every method for each pattern, whether it applies, its seconds and bytes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.plan import Choice, CountPlan, Refusal
from longwall.pipeline.prediction.predict import MOST_SECONDS, CountSample, sample_count
from longwall.storage.memory.sizes import round_size
from longwall.storage.streaming.stored_graph import StoredGraph

if TYPE_CHECKING:
    from longwall.pipeline.config import RunSpec
    from longwall.storage.graph.graph import Graph
    from longwall.storage.memory.reservations import MemoryBudget
    from longwall.storage.memory.resources import Resources

_MOST_PATTERNS = 20
_SECONDS = 0.3  # that a phase of a method is sampled for
_LONG = 20.0  # seconds of all steps, above which nothing is sampled: a root, which cannot be divided, may take most
_NEARLY = 0.9  # of the free memory: tables reserve all of it until they are made
_INDENT = " " * 13


def describe_methods(plan: Any, spec: RunSpec, graph: Graph, resources: Resources) -> tuple[list[str], dict[str, Any]]:
    """Return a table of all methods for each pattern that a plan counts, as lines and as data.

    They are in the order in which they count.
    """
    choices = list(choices_of(plan))
    if not choices:
        line = f"methods      one alone answers: {spec.workload.kind}, output = {spec.workload.output}"
        return [line], {"methods": []}
    sampler = _Sampler(spec, graph, resources)
    tables = [_table(choice, sampler) for choice in choices[:_MOST_PATTERNS]]
    left = len(choices) - _MOST_PATTERNS
    lines = [line for lines, _ in tables for line in lines]
    lines += [f"             and {left:,} more patterns"] if left > 0 else []
    return lines, {"methods": [facts for _, facts in tables]}


def choices_of(plan: Any) -> Iterator[Choice]:
    """Yield the choices that a plan is made of: itself, those of its patterns, or those of its terms."""
    if isinstance(plan, Choice):
        yield plan
        if plan.query.about == "pattern":
            return
        plan = plan.best
    for name in ("queries", "patterns", "alone", "terms"):
        for part in getattr(plan, name, ()):
            yield from choices_of(part[1] if isinstance(part, tuple) else part)
    yield from choices_of(plan.triangles) if hasattr(plan, "triangles") else ()


@dataclass
class _Sampler:
    """Samples counts by methods until its time is over."""

    spec: RunSpec
    graph: Graph
    resources: Resources
    _began: float = field(default_factory=time.monotonic)

    @cached_property
    def rate(self) -> float:
        """Elementary steps a second."""
        return self.resources.engine.kernels.steps_per_second(self.resources.engine.device)

    def sample(self, plan: CountPlan, facts: Facts) -> CountSample | None:
        """Return what a sample says of a plan; None: it is long, the time is over, or the graph stays in its store."""
        over = time.monotonic() - self._began > MOST_SECONDS
        if isinstance(self.graph, StoredGraph) or over or plan.steps(facts) > _LONG * self.rate:
            return None
        compiled: list[str] = []
        with self.resources.engine.watch_compilation(lambda: compiled.append(plan.method)):
            sample = sample_count(plan, self.spec, self.graph, self.resources, _SECONDS)
        if compiled:  # what a plan derives was made with kernels that had to be compiled
            sample = sample_count(plan, self.spec, self.graph, self.resources, _SECONDS)
        return sample


def _table(choice: Choice, sampler: _Sampler) -> tuple[list[str], dict[str, Any]]:
    """Return all methods for one pattern: as lines, and as data."""
    facts = Facts.on(sampler.graph, sampler.resources, sampler.spec.memory.access)
    without = sampler.spec.engine.without
    proposals = dict(choice.planner.proposals(choice.query, facts))
    planned = {plan.method: plan for plan in choice.plans}
    others = {name: one for name, one in proposals.items() if not isinstance(one, Refusal) and name not in planned}
    plans, ranked = planned | others, choice.ranked(facts) + choice.rank(others.values(), facts)
    lines = [f"methods      for {choice.query.text}, in the order in which they are tried:"]
    found: list[dict[str, Any]] = []
    budgets = [sampler.resources.host, *([sampler.resources.work] if sampler.resources.on_device else [])]
    rows = [("method", "steps", "seconds", *(budget.option for budget in budgets), "")]
    for plan, sample, end in _tried(ranked, sampler, facts):
        steps = "" if plan.tried else f"{plan.steps(facts):.3g}"
        if sample is None:
            seconds, sizes = "" if plan.tried else f"about {plan.steps(facts) / sampler.rate:.2g}", [""] * len(budgets)
        else:
            seconds = "" if sample.failure else f"{'' if sample.whole else 'over '}{sample.seconds:.2g}"
            sizes = [_size(*of) for of in zip((sample.host, sample.device), budgets, strict=False)]
        rows.append((plan.method, steps, seconds, *sizes, end))
        found.append(_facts(plan, sample, facts, sampler) | ({"state": end} if end else {}))
    unsuited = [(name, reason) for name, plan in plans.items() if (reason := plan.unsuited(facts))]
    refused = [(name, one.reason) for name, one in proposals.items() if isinstance(one, Refusal)]
    refused += [(name, "engine.without switches it off") for name in without]
    _, *widths, _ = [max(map(len, column)) for column in zip(*rows, strict=True)]
    longest = max(len(name) for name, *_ in (*rows, *unsuited, *refused))
    for name, *numbers, end in rows:
        columns = "  ".join(f"{text:>{width}}" for text, width in zip(numbers, widths, strict=True))
        lines.append(f"{_INDENT}{name:<{longest}}  {columns}  {end}".rstrip())
    lines += [f"{_INDENT}{name:<{longest}}  not here: {reason}" for name, reason in unsuited]
    lines += [f"{_INDENT}{name:<{longest}}  no: {reason}" for name, reason in refused]
    found += [{"method": name, "reason": reason} for name, reason in unsuited + refused]
    return lines, {"pattern": choice.query.text, "methods": found}


def _facts(plan: CountPlan, sample: CountSample | None, facts: Facts, sampler: _Sampler) -> dict[str, Any]:
    """Return what is known of a method that applies; seconds are `sampled`, else those of all steps."""
    known: dict[str, Any] = {"method": plan.method}
    if not plan.tried:
        known["steps"] = plan.steps(facts)
    if sample is None and not plan.tried:
        return known | {"seconds": plan.steps(facts) / sampler.rate, "sampled": False}
    if sample is None or sample.failure:
        return known
    sizes = {"host": sample.host} | ({"device": sample.device} if sampler.resources.on_device else {})
    return known | {"seconds": sample.seconds, "sampled": True, "at_least": not sample.whole, "bytes": sizes}


def _tried(
    ranked: list[CountPlan], sampler: _Sampler, facts: Facts
) -> Iterator[tuple[CountPlan, CountSample | None, str]]:
    """Yield each plan with its sample, and whether a run takes it."""
    ends = iter(("taken", "next"))
    for plan in ranked:
        sample = sampler.sample(plan, facts)
        if sample is not None and sample.failure:
            yield plan, sample, sample.failure
        elif sample is None and plan.tried:
            yield plan, sample, "tried ahead of the next ones, if it is less work"
        else:
            yield plan, sample, next(ends, "")


def _size(used: int, budget: MemoryBudget) -> str:
    return f"{'up to ' if used >= _NEARLY * budget.free else ''}{round_size(used)}"
