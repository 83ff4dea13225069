"""Arrays come to a device by page-locked buffers, while a store is read or when they are needed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_configs import run_config

import longwall
from longwall.kernels.cuda.runtime.memory import KERNELS_BYTES
from longwall.kernels.interface.engine import COPY_BUFFER
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.pipeline.config import load_config
from longwall.pipeline.inputs import open_resources, read_graph
from longwall.stages.source import host_arrays
from longwall.storage.errors import InputError
from longwall.storage.graph.graph import Graph
from longwall.storage.graph.store_writer import write_graph
from longwall.storage.ingest.build import build_graph
from longwall.storage.observer import NullObserver
from longwall.storage.pages.placement import bring_graph, place_graph

pytestmark = pytest.mark.gpu
NAMES = ("indptr", "indices", "split")


@pytest.fixture(autouse=True)
def worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers pay off for small graphs, too."""
    for module in ("longwall.kernels.cuda.engine", "longwall.storage.pages.placement"):
        monkeypatch.setattr(f"{module}.WORTH_BUFFERS", COPY_BUFFER)


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Rows of three buffers and a half."""
    random = np.random.default_rng(5)
    ends = random.integers(0, 1 << 14, (2, COPY_BUFFER * 15 // 32), np.uint64)
    made = build_graph(*ends)
    assert 3 * COPY_BUFFER < made.indices.nbytes < 4 * COPY_BUFFER
    return made


@pytest.fixture(scope="module")
def store(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stores") / "graph.zarr"
    write_graph(graph, path)
    return path


def config(store: Path, folder: Path, **memory: str) -> dict[str, Any]:
    run = {"directory": str(folder), "name": "run"}
    return run_config(
        folder, {"path": str(store)}, {"kind": "triangles"}, engine={"kind": "cuda"}, memory=memory, run=run
    )


def pieces(array: Any, size: int) -> list[tuple[int, Any]]:
    return [(first, array[first : first + size]) for first in range(0, array.size, size)]


@pytest.mark.parametrize("capacity", [COPY_BUFFER, 5 * COPY_BUFFER])
def test_pieces_by_any_thread_in_any_order(cuda: Any, graph: Graph, capacity: int) -> None:
    arrays = [graph.indices, graph.indptr]
    with cuda.copying_ahead(arrays, capacity) as puts, ThreadPoolExecutor(4) as pool:
        todo = [
            (put, *piece)
            for put, array, size in zip(puts, arrays, (COPY_BUFFER, 1000), strict=True)  # of several buffers, of one
            for piece in pieces(array, size)
        ]
        list(pool.map(lambda one: one[0](*one[1:]), reversed(todo)))
    kept = cuda.memory.take_kept(arrays)
    for there, array in zip(kept, arrays, strict=True):
        assert there.dtype == array.dtype
        assert np.array_equal(there.get(), array)


@pytest.mark.whole_device
def test_what_was_copied_is_loaded(cuda: Any, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    host = host_arrays(graph)
    with cuda.copying_ahead([host.indices], COPY_BUFFER) as (put,):
        for piece in pieces(host.indices, 12345):
            put(*piece)
    driver = int(cuda.xp.cuda.runtime.memGetInfo()[0])
    kept = cuda.memory.free() + KERNELS_BYTES - driver
    assert kept > host.indices.nbytes - COPY_BUFFER, "it may be given up, so it counts as free"
    from longwall.kernels.cuda.runtime.pinned_buffers import StagedCopies

    with monkeypatch.context() as patch:
        patch.setattr(StagedCopies, "send", None)
        loaded = cuda.load(host, capacity=COPY_BUFFER)
    assert all(np.array_equal(getattr(loaded, name).get(), getattr(host, name)) for name in NAMES)
    again = cuda.load(host, capacity=COPY_BUFFER)
    assert again.indices.data.ptr != loaded.indices.data.ptr
    assert all(np.array_equal(getattr(again, name).get(), getattr(host, name)) for name in NAMES)


def test_small_graphs_take_no_buffers(cuda: Any, graph: Graph, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("longwall.kernels.cuda.engine", "longwall.storage.pages.placement"):
        monkeypatch.setattr(f"{module}.WORTH_BUFFERS", 2 * graph.nbytes)
    monkeypatch.setattr("longwall.kernels.cuda.engine.StagedCopies", None)
    host = host_arrays(graph)
    loaded = cuda.load(host, capacity=COPY_BUFFER)
    assert all(np.array_equal(getattr(loaded, name).get(), getattr(host, name)) for name in NAMES)
    with open_resources(load_config(config(store, store.parent), ())) as resources:
        read_graph(load_config(config(store, store.parent), ()), NullObserver(), resources)


def test_buffers_are_locked_once(cuda: Any, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    host = host_arrays(graph)
    cuda.load(host, capacity=2 * COPY_BUFFER)
    monkeypatch.setattr("longwall.kernels.cuda.runtime.pinned_buffers.locked_column", None)
    for capacity in (COPY_BUFFER, 2 * COPY_BUFFER):
        loaded = cuda.load(host, capacity=capacity)
        assert all(np.array_equal(getattr(loaded, name).get(), getattr(host, name)) for name in NAMES)


def test_other_arrays_are_not_taken_for_those_that_were_copied(cuda: Any, graph: Graph) -> None:
    host = host_arrays(graph)
    with cuda.copying_ahead([host.indices], COPY_BUFFER) as (put,):
        put(0, np.zeros_like(host.indices))
    other = GraphArrays(host.indptr, host.indices.copy(), host.split, host.labels, 1, 1)
    assert np.array_equal(cuda.load(other).indices.get(), graph.indices)
    assert cuda.memory.take_kept([host.indices]) == [None]


def test_it_is_given_up_where_memory_is_short(cuda: Any, graph: Graph) -> None:
    cuda.memory.release()  # the block for small arrays, of which the copy would be a part
    with cuda.copying_ahead([graph.indices], COPY_BUFFER) as (put,):
        put(0, graph.indices)
    cuda.memory.limit(5 * COPY_BUFFER)
    with cuda.faults():
        cuda.xp.zeros(4 * COPY_BUFFER, np.uint8)
    assert cuda.memory.take_kept([graph.indices]) == [None]


def test_a_store_is_copied_while_it_is_read(
    graph: Graph, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from longwall.kernels.cuda.runtime.pinned_buffers import StagedCopies

    spec = load_config(config(store, tmp_path), ())
    with open_resources(spec) as resources:
        monkeypatch.setattr(StagedCopies, "send", None)
        read = read_graph(spec, NullObserver(), resources)
        used = resources.host.used
        assert used <= graph.nbytes, "the buffers are given back"
        host = host_arrays(read)
        loaded = bring_graph(host, resources, place_graph(host, resources, "auto")).graph
        for name in NAMES:
            assert np.array_equal(getattr(loaded, name).get(), getattr(graph, name))
        assert resources.host.used == used
        assert graph.indices.nbytes <= resources.work.used <= 2 * graph.nbytes


def last_of_a_row(graph: Graph) -> int:
    """Return the place of a row's last neighbour: larger than the row's vertex, and not the graph's last vertex."""
    ends = graph.indptr[1:][graph.split < graph.indptr[1:]] - 1
    return int(ends[graph.indices[ends] < graph.num_vertices - 1][0])


@pytest.mark.parametrize(
    ("by", "says"),
    [(0, None), (1, "an edge is not the same in both directions"), (1 << 14, "a row does not ascend")],
)
def test_rows_are_checked_on_the_device(
    graph: Graph, tmp_path: Path, by: int, says: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longwall.storage.pages.placement.COPY_BUFFER", 1 << 16)  # all arrays are long
    monkeypatch.setattr("longwall.storage.graph.row_checks.RowChecks.check", None)
    indices = graph.indices.copy()
    indices[last_of_a_row(graph)] += by
    write_graph(replace(graph, indices=indices), tmp_path / "store")
    spec = load_config(config(tmp_path / "store", tmp_path), ())
    with open_resources(spec) as resources:
        if says is None:
            assert np.array_equal(read_graph(spec, NullObserver(), resources).indices, graph.indices)
        else:
            with pytest.raises(InputError, match=f"indices: {says}"):
                read_graph(spec, NullObserver(), resources)


@pytest.mark.parametrize(
    ("memory", "access"),
    [
        ({"access": "zero-copy"}, "zero-copy"),
        ({"device": "32MiB"}, "resident"),
        ({"device": "16MiB"}, "adaptive"),
        ({"host": "24MiB"}, "resident"),  # no room for buffers
    ],
    ids=str,
)
def test_the_graph_is_the_same(store: Path, tmp_path: Path, graph: Graph, memory: dict[str, str], access: str) -> None:
    spec = load_config(config(store, tmp_path, **memory), ())
    with open_resources(spec) as resources:
        host = host_arrays(read_graph(spec, NullObserver(), resources))
        placement = place_graph(host, resources, spec.memory.access)
        loaded = bring_graph(host, resources, placement).graph
        assert placement.access == access
        for name in NAMES:
            assert np.array_equal(getattr(loaded, name).get(), getattr(graph, name))


@pytest.mark.slow
def test_a_run_counts_the_same(store: Path, tmp_path: Path) -> None:
    spec = config(store, tmp_path)
    count = longwall.run(spec | {"engine": {"kind": "cpu"}}).count
    assert longwall.run(spec | {"run": {"directory": str(tmp_path), "name": "other"}}).count == count
