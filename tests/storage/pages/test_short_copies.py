"""Runs go on where copies of pages have the memory that others want, or cannot be made at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from conftest import set_page_size

import longwall
from longwall.kernels.interface.engine import EngineUnavailable, ShortOfMemory
from longwall.storage.errors import RunError
from longwall.storage.pages.paged_graph import GraphPages

pytestmark = pytest.mark.gpu

GRAPH = {"generator": {"kind": "rmat", "scale": 9, "edge_factor": 8, "seed": 3}}
DENSE = {"generator": {"kind": "erdos-renyi", "vertices": 70, "edges": 1200, "seed": 3}}
WORKLOADS: dict[str, dict[str, Any]] = {
    "4-cliques": {"kind": "cliques", "k": 4},
    "triangles of vertices": {"kind": "triangles", "output": "vertices"},
    "diamonds": {"kind": "match", "pattern": "diamond", "induced": True},
}
LEAST = 1_400_000  # bytes


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    from longwall.kernels.cuda.runtime.open_device import open_device

    try:
        open_device()
    except EngineUnavailable as reason:
        pytest.skip(str(reason))
    set_page_size(monkeypatch, 1024)


def run(
    folder: Path, workload: dict[str, Any], engine: str = "cuda", device: int = LEAST, graph: dict[str, Any] = GRAPH
) -> longwall.Result:
    return longwall.run(
        {
            "graph": graph,
            "workload": workload,
            "engine": {"kind": engine},
            "memory": {"host": "2GiB", "spill": str(folder / "spill"), "access": "adaptive", "device": device},
            "run": {"directory": str(folder), "name": f"{engine}-{device}"},
        }
    )


@pytest.mark.parametrize("name", ["4-cliques", "triangles of vertices"])
def test_copies_are_given_up_where_kernels_find_no_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from longwall.kernels.cuda.local_counts.reverse_adjacency import ReverseAdjacency

    plain, refused = ReverseAdjacency._make, 0

    def make(self: ReverseAdjacency, *part: Any) -> Any:
        nonlocal refused
        if self._graph.pages._buffer is not None:
            refused += 1
            raise ShortOfMemory("device", 1 << 20)
        return plain(self, *part)

    monkeypatch.setattr(ReverseAdjacency, "_make", make)
    found = run(tmp_path, WORKLOADS[name])
    assert refused
    assert found.count == run(tmp_path, WORKLOADS[name], "cpu").count


def test_what_was_added_in_part_is_not_added_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from longwall.kernels.cuda.device import Device
    from longwall.kernels.cuda.local_counts.triangles import CudaTriangleVertexCounter

    plain, add, added = Device.launch, CudaTriangleVertexCounter.add_blocks, 0

    def adding(self: CudaTriangleVertexCounter, blocks: Any) -> None:
        nonlocal added
        added = 0
        add(self, blocks)

    def launch(self: Device, source: str, function: str, *rest: Any, **named: Any) -> None:
        nonlocal added
        added += function == "add_triangles"
        if added == 2:
            raise ShortOfMemory("device")
        plain(self, source, function, *rest, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Device, "launch", launch)
        patch.setattr(CudaTriangleVertexCounter, "add_blocks", adding)
        patch.setattr(GraphPages, "cache_arcs", 12 * 256)  # so that lists come in several blocks
        with pytest.raises(RunError, match="added in part"):
            run(tmp_path, WORKLOADS["triangles of vertices"])
    found = longwall.resume(tmp_path / f"cuda-{LEAST}")
    assert found.count == run(tmp_path, WORKLOADS["triangles of vertices"], "cpu").count


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_a_run_goes_on_without_a_buffer(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from longwall.kernels.cuda.engine import CudaPaging

    refused = 0

    def refuse(*_: Any) -> None:
        nonlocal refused
        refused += 1
        raise ShortOfMemory("device", 1 << 27)

    monkeypatch.setattr(CudaPaging, "frames", refuse)
    found = run(tmp_path, WORKLOADS[name])
    assert refused == 1
    assert found.count == run(tmp_path, WORKLOADS[name], "cpu").count
    assert not pq.read_table(found.path / "heat.parquet").to_pandas()["hot_extensions"].any()


def test_what_is_predicted_barely_depends_on_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pending rows are not predicted again whenever others are extended."""
    monkeypatch.setattr("longwall.pipeline.execution.search_context._LEAST_WINDOW", 64)
    workload = {"kind": "match", "pattern": "tailed-triangle", "output": "embeddings"}
    read, extensions = [], []
    for device in (LEAST, 4 * LEAST, 40 * LEAST):
        heat = pq.read_table(run(tmp_path, workload, device=device).path / "heat.parquet").to_pandas()
        read.append(heat.groupby("level")["bytes"].sum())
        extensions.append(heat.groupby("level")["extensions"].max())
    assert (extensions[0] > 4 * extensions[-1]).any()
    for found in read:
        assert (found >= read[-1]).all()
        assert (found <= 2.3 * read[-1]).all()


def test_a_row_that_is_begun_keeps_nothing_else_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from longwall.pipeline.execution import search_context
    from longwall.storage.tables.chunk_stack import _held

    begun = []
    plain = search_context.SearchContext.extend

    def extend(self: Any, *arguments: Any) -> Any:
        step = plain(self, *arguments)
        if step.resume is not None:
            begun.append(_held(step.resume.rows))
        return step

    monkeypatch.setattr(search_context.SearchContext, "extend", extend)
    monkeypatch.setattr("longwall.pipeline.execution.worker_memory.LARGEST_CHUNK", 8)
    monkeypatch.setattr("longwall.pipeline.execution.worker_memory._LEAST_CHUNK", 8)
    monkeypatch.setattr("longwall.pipeline.execution.worker_memory._LAST_TIMES", 1)
    found = run(tmp_path, {"kind": "match", "pattern": "wedge", "output": "embeddings"}, graph=DENSE)
    assert found.count == run(tmp_path, {"kind": "match", "pattern": "wedge"}, "cpu", graph=DENSE).count
    assert begun
    assert max(begun) <= 200


def test_copies_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without trouble the same runs have copies: the tests above are about something."""
    asked = 0
    plain = GraphPages._copy

    def copy(self: GraphPages, *given: Any) -> None:
        nonlocal asked
        asked += 1
        plain(self, *given)

    monkeypatch.setattr(GraphPages, "_copy", copy)
    for name, workload in WORKLOADS.items():
        before = asked
        run(tmp_path / name, workload)
        assert asked > before
