"""Names of what decides which kernels a run calls: how its graph is read, its work, and the plan of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longwall.pipeline.config import RunSpec

_MOST_VERTICES = 6  # larger cliques are counted as those of 6 vertices


def graph_name(spec: RunSpec) -> str:
    """Return how the graph of a config comes to memory."""
    graph = spec.graph
    if graph.generator is not None:
        return f"generator {graph.generator.get('kind')}"
    if graph.path is None:
        return "memory"
    first = Path(str(graph.path[0] if isinstance(graph.path, list) else graph.path))
    if (first / "zarr.json").exists():
        return "store"
    return "parquet" if first.suffix == ".parquet" else "text"


def work_name(spec: RunSpec, *, alike: bool = True) -> str:
    """Return the work of a config, as far as that is known before there is a plan.

    Parameters
    ----------
    spec
        The config.
    alike
        Whether work that calls the same kernels of the host has the same name.
    """
    work = spec.workload
    k = getattr(work, "k", None)
    size = "" if k is None else f" {min(k, _MOST_VERTICES) if alike and isinstance(k, int) else k}"
    return f"{work.kind} {work.output}{size}"


def plan_name(spec: RunSpec, plan: Any) -> str:
    """Return the work of a plan."""
    return f"{plan.to_dict().get('kind')} {spec.workload.output}"
