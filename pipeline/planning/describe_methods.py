"""Lines of ``longwall explain --all``: every method for each pattern, whether it applies, and its steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from longwall.pipeline.planning.facts import Facts
from longwall.pipeline.planning.plan import Choice, Refusal

if TYPE_CHECKING:
    from longwall.pipeline.config import RunSpec
    from longwall.storage.graph.graph import Graph
    from longwall.storage.memory.resources import Resources

_MOST_PATTERNS = 20


def describe_methods(plan: Any, spec: RunSpec, graph: Graph, resources: Resources) -> list[str]:
    """Return a table of all methods for each pattern that a plan counts; they are in the order in which they count."""
    choices = list(choices_of(plan))
    if not choices:
        return [f"methods      one alone answers: {spec.workload.kind}, output = {spec.workload.output}"]
    facts = Facts.on(graph, resources, spec.memory.access)
    lines = [line for choice in choices[:_MOST_PATTERNS] for line in _table(choice, facts, spec.engine.without)]
    left = len(choices) - _MOST_PATTERNS
    return [*lines, *([f"             and {left:,} more patterns"] if left > 0 else [])]


def choices_of(plan: Any) -> Iterator[Choice]:
    """Yield the choices that a plan is made of: itself, those of its patterns, or those of its terms."""
    if isinstance(plan, Choice):
        yield plan
        return
    for name in ("queries", "patterns", "alone", "terms"):
        for part in getattr(plan, name, ()):
            yield from choices_of(part[1] if isinstance(part, tuple) else part)
    yield from choices_of(plan.triangles) if hasattr(plan, "triangles") else ()


def _table(choice: Choice, facts: Facts, without: tuple[str, ...]) -> Iterator[str]:
    proposals = dict(choice.planner.proposals(choice.query, facts))
    planned = {plan.method: plan for plan in choice.plans}
    others = {name: one for name, one in proposals.items() if not isinstance(one, Refusal) and name not in planned}
    plans, ranked = planned | others, choice.ranked(facts) + choice.rank(others.values(), facts)
    width = max(map(len, proposals))
    yield f"methods      for {choice.pattern.name or choice.pattern.edge_text}, in the order in which they are tried:"
    taken = next(plan for plan in ranked if not plan.tried)
    for plan in ranked:
        if plan.tried:
            yield f"             {plan.method:<{width}}  tried ahead of the next ones, if it is less work"
        else:
            end = "  taken" if plan is taken else ""
            yield f"             {plan.method:<{width}}  {plan.steps(facts):9.3g} steps{end}"
    for name, plan in plans.items():
        if reason := plan.unsuited(facts):
            yield f"             {name:<{width}}  not here: {reason}"
    for name, proposal in proposals.items():
        if isinstance(proposal, Refusal):
            yield f"             {name:<{width}}  no: {proposal.reason}"
    for name in without:
        yield f"             {name:<{width}}  no: engine.without switches it off"
