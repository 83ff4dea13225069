"""The kernels that a run will call, as its plan and its source of the graph name them: they are compiled beforehand.

What is not named is compiled when it is called; what is named and not called is compiled for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from longwall.kernels.interface.engine import Call, call
from longwall.kernels.jit.compile import Kernel
from longwall.kernels.jit.compile_pool import kernels_called_by
from longwall.pipeline.patterns.pattern import Pattern

if TYPE_CHECKING:
    from longwall.kernels.interface.kernels import Kernels
    from longwall.pipeline.config import RunSpec
    from longwall.pipeline.workloads.base import Workload

_NAMELESS = (int, float, str, type(None), Pattern)
"""Types of most parts of plans: they name no kernel."""
_BUILDING = (
    "storage.ingest.edge_collector",
    "kernels.cpu.sorting.buckets",
    "storage.graph.degree_histogram",
    "storage.ingest.build",
    "storage.graph.stats",
)
_PARSING = "storage.ingest.text.plain_lines"
_LABELLING = "storage.ingest.vertex_labels"
_DRAWING = {"rmat": "kernels.host.philox", "barabasi-albert": "storage.generators.random_edges"}


def kernels_of_source(spec: RunSpec) -> list[Any]:
    """Return the kernels that read edges from a text, or draw them, and make a graph with its labels."""
    from longwall.storage.arrays.xxh64 import hash_segments
    from longwall.storage.ingest.formats import detect_format

    if (generator := spec.graph.generator) is not None:
        first = _DRAWING.get(generator["kind"])
    elif isinstance(source := spec.graph.source, list | tuple) or source is None:
        first = None
    else:
        first = _PARSING if (spec.file_format or detect_format(source)) == "edge-list" else None
    if first is None:
        return []
    labels = (_LABELLING,) if spec.graph.labels or spec.graph.vertices else ()
    return [kernel for name in (first, *_BUILDING, *labels) for kernel in _declared_in(name)] + [hash_segments]


def kernels_of_workload(workload: Workload, table: Kernels | None) -> list[Kernel]:
    """Return the kernels that a workload names; those of the host only, if no engine's table is given."""
    return _found(workload.kernels, table)


def kernels_of_plan(plan: Any, table: Kernels) -> list[Kernel]:
    """Return the kernels that a plan names, for an engine's table of kernels."""
    return _found(_named(plan), table)


def _found(named: Iterable[Any], table: Kernels | None) -> list[Kernel]:
    """Return kernels, and those that functions of `Kernels` call."""
    found: dict[Kernel, None] = {}
    for one in named:
        if isinstance(one, Kernel):
            found[one] = None
        elif table is not None:
            found |= dict.fromkeys(kernels_called_by(getattr(table, _call(one).name)))
    return list(found)


def calls_of_plan(plan: Any, max_degree: int) -> list[Call]:
    """Return the functions of `Kernels` that a plan names, with the arguments that determine their sources."""
    calls = [_call(one) for one in _named(plan) if not isinstance(one, Kernel)]
    return [Call(name, {"max_degree": max_degree, **arguments}) for name, arguments in calls]


def _call(named: Any) -> Call:
    """Return the name of a function of `Kernels`, and the arguments that a plan names it with."""
    return named if isinstance(named, Call) else call(named)


def _named(thing: Any) -> Iterator[Any]:
    """Yield kernels, and functions of `Kernels`, that a part of a plan and its own parts name."""
    from longwall.pipeline.planning.plan import Choice  # not above: the kernels of a source need no plan

    parts: Iterable[Any] = ()
    if isinstance(thing, Choice):  # of the plans for a query the others are tried if that one fails
        parts = (*(plan for plan in thing.plans if plan.tried), thing.best)
    elif is_dataclass(thing) and not isinstance(thing, type):
        yield from getattr(thing, "kernels", ())
        parts = [getattr(thing, one.name, None) for one in fields(thing) if one.repr]
    elif isinstance(thing, tuple | list):
        parts = thing
    for part in parts:
        if not isinstance(part, _NAMELESS):
            yield from _named(part)


def _declared_in(name: str) -> list[Any]:
    """Return the kernels that a module declares."""
    module = import_module(f"longwall.{name}")
    found = [one for one in vars(module).values() if isinstance(one, Kernel) and one.__module__ == module.__name__]
    return [one for one in found if one.signatures]
