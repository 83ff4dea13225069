"""A device works on two ranges at a time, each on its own stream: the answer is that of one range at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from run_configs import run_config, write_edges

import longwall
from longwall.kernels.cuda.engine import CudaEngine
from longwall.pipeline.execution import task_ranges
from longwall.pipeline.execution.thread_executor import ThreadExecutor
from longwall.pipeline.phases.range_count import RangeCount
from longwall.stages.cliques.leaves import CountCliquesByPivots, CountCliqueSizes
from longwall.stages.range_counting import CountCliques, CountDiamonds

EDGES = [(u, v) for u in range(60) for v in range(u) if (7 * u + 11 * v) % 5]
WORKLOADS: dict[str, dict[str, Any]] = {
    "6-cliques": {"kind": "cliques", "k": 6},
    "7-cliques": {"kind": "cliques", "k": 7},
    "9-cliques": {"kind": "cliques", "k": 9},
    "all sizes": {"kind": "cliques", "k": "all"},
}


@pytest.fixture(params=[False, True], ids=["at once", "late"])
def overlapping(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut small graphs into tasks, too; on the emulator run kernels at once, or as late as streams allow."""
    cupy = pytest.importorskip("cupy", reason="no GPU: CuPy is not installed")
    monkeypatch.setattr(task_ranges, "_OVERLAPPED_BYTES", 0)
    monkeypatch.setattr(task_ranges, "_ARCS_PER_TASK", 1)
    monkeypatch.setattr(CudaEngine, "tasks", lambda self, size: 9)
    if request.param:
        if not hasattr(cupy, "emulated"):
            pytest.skip("a GPU has its own time")
        monkeypatch.setattr(cupy.emulated, "late", True)


@pytest.mark.gpu
@pytest.mark.parametrize("workload", WORKLOADS)
def test_two_workers_count_what_the_cores_count(
    overlapping: None, workload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, crews = write_edges(tmp_path, EDGES), []
    run = ThreadExecutor.run

    def watched(self: ThreadExecutor, phase: Any, env: Any) -> Any:
        record = run(self, phase, env)
        crews.append(phase.threads(env))
        return record

    monkeypatch.setattr(ThreadExecutor, "run", watched)
    answers = []
    for kind in ("cpu", "cuda"):
        crews.clear()
        made = run_config(tmp_path, graph, WORKLOADS[workload], engine={"kind": kind, "threads": 1}, run={"name": kind})
        answers.append([one.count for one in longwall.run(made).patterns])
    assert answers[0] == answers[1]
    assert sum(filter(None, answers[0])) > 0
    assert crews == [2]


def test_only_counts_whose_kernels_may_share_a_device_overlap() -> None:
    overlapping = [CountCliques(4), CountCliques(7), CountCliquesByPivots(9), CountCliqueSizes()]
    assert all(RangeCount(count, 1.0).overlaps for count in overlapping)
    assert not any(RangeCount(count, 1.0).overlaps for count in (CountCliques(3), CountDiamonds()))
