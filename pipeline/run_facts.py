"""What the manifest of a run says of the engine, and of memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longwall.kernels.interface.engine import Engine
    from longwall.pipeline.config import RunSpec
    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.pipeline.execution.second_engine import SecondEngine


def engine_facts(spec: RunSpec, engine: Engine, devices: Sequence[str], second: SecondEngine | None) -> dict[str, Any]:
    """Return what the manifest says of the engine: of a cluster only that it is one, so that its workers may change."""
    if spec.scheduler.kind == "dask":
        return {"name": "cluster", "device": None}
    if devices:
        return {"name": "cuda", "device": f"{len(devices)} devices"}
    return {"name": engine.name if second is None else f"cpu+{engine.name}", "device": engine.device.name}


def memory_facts(env: Coordinator) -> dict[str, Any]:
    """Return what the manifest says of memory: limits and peaks, and where the graph was."""
    from longwall.storage.streaming.stored_graph import StoredGraph

    resources = env.resources
    facts: dict[str, Any] = {
        name: {"limit": budget.limit, "peak": budget.peak}
        for name, budget in (("host", resources.host), ("disk", resources.disk))
    }
    if (written := resources.disk.writing)[0]:
        facts["disk"] |= {"written": written[0], "seconds": written[1]}
    if (peak := env.engine.memory.peak()) is not None:
        limit = {"limit": resources.device, "peak": peak.allocator}
        facts["device"] = limit | {"driver": peak.driver, "before": peak.before}
        env.metrics.record("device memory", 0, 0, 0, 0.0, peak.allocator)
    if env.device_graph is not None:
        facts["graph"] = asdict(env.device_graph.placement)
    if env.graph.files is not None:
        facts["files"] = {"graph": env.graph.nbytes}
    if isinstance(env.graph, StoredGraph):
        from longwall.pipeline.execution.streaming.stream_phase import AdjacencyLists

        lists = env.derived.get(AdjacencyLists())
        facts["store"] = {"graph": env.graph.nbytes} | ({} if lists is None else {"lists_read": lists.bytes_read})
    return facts
