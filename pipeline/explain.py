"""The plan of a config as text, without running it: the function behind ``longwall explain``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from longwall.pipeline.config import load_config
from longwall.pipeline.progress import NullObserver, Observer
from longwall.pipeline.run import choose_engine, describe_graph, read_graph, resolve_budget
from longwall.storage.sizes import round_size


def explain(
    config: Mapping[str, Any] | str | Path,
    *,
    overrides: Sequence[str] = (),
    observer: Observer | None = None,
) -> str:
    """Return the plan of a config as text; the graph is read for its statistics, nothing is written.

    Raises
    ------
    InputError
        If the config, the graph or the machine cannot do what is asked.
    """
    from longwall.pipeline.workloads import get_workload

    observer = observer or NullObserver()
    try:
        spec = load_config(config, overrides)
        engine = choose_engine(spec)
        budget = resolve_budget(spec)
        graph = read_graph(spec, observer)
        plan = get_workload(spec.workload.kind).plan(spec.workload, graph)
    finally:
        observer.close()
    facts = describe_graph(spec, graph)
    sizes = ", ".join(f"{name} {'auto' if size is None else round_size(size)}" for name, size in asdict(budget).items())
    lines = [
        f"workload     {spec.workload.kind}, output = {spec.workload.output}",
        f"graph        {facts['vertices']:,} vertices, {facts['edges']:,} edges, {facts['labels']} labels",
        f"engine       {engine.name} ({engine.device})",
        f"memory       {sizes}",
        plan.describe(),
    ]
    return "\n".join(lines)
