"""The memory of a CUDA device: the pool keeps its limit, what is short is said so, and errors become the engine's."""

from __future__ import annotations

import gc
import itertools
import json
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from breakable import EDGES, answer
from run_configs import write_edges
from selection import on_device

import longwall
from longwall.kernels import select_engine
from longwall.kernels.cuda.runtime.errors import CudaFaults, fault_of
from longwall.kernels.cuda.runtime.memory import KERNELS_BYTES, DeviceMemory
from longwall.kernels.cuda.runtime.pools import open_pool
from longwall.kernels.interface.engine import DeviceFull, EngineLost, ShortOfMemory
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.stages import source
from longwall.storage.errors import InputError, RunError
from longwall.storage.tables.embedding_table import EmbeddingTable

WORKLOADS: dict[str, dict[str, Any]] = {
    "listing": {"kind": "match", "pattern": "diamond", "output": "embeddings"},
    "search": {"kind": "match", "pattern": "wheel-5"},
    "cliques": {"kind": "cliques", "k": 4},
    "triangles": {"kind": "triangles"},
}
MIB = 1 << 20


class CudaError(RuntimeError):
    def __init__(self, status: int):
        super().__init__(f"error {status}")
        self.status = status


class PoolError(MemoryError):
    pass


def fake_cupy() -> Any:
    from contextlib import nullcontext

    cuda = SimpleNamespace(
        runtime=SimpleNamespace(CUDARuntimeError=CudaError),
        driver=SimpleNamespace(CUDADriverError=type("CUDADriverError", (CudaError,), {})),
        memory=SimpleNamespace(OutOfMemoryError=PoolError),
        get_allocator=lambda: None,
        using_allocator=nullcontext,
    )
    return SimpleNamespace(cuda=cuda)


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (PoolError(), ShortOfMemory),
        (CudaError(2), ShortOfMemory),
        (CudaError(700), EngineLost),
        (CudaError(719), EngineLost),
        (CudaError(999), EngineLost),
        (CudaError(1), CudaError),
        (MemoryError(), ShortOfMemory),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (InputError("mine"), InputError),
        (ShortOfMemory("limit", 5), ShortOfMemory),
        (EngineLost("before"), EngineLost),
    ],
)
def test_errors_of_cuda_become_the_engines(raised: BaseException, expected: type[BaseException]) -> None:
    xp = fake_cupy()
    with pytest.raises(expected) as caught, CudaFaults(xp, lambda size: None):
        raise raised
    if isinstance(raised, PoolError):
        assert caught.value.place == "device"  # type: ignore[attr-defined]
    if not isinstance(raised, CudaError | MemoryError):
        assert caught.value is raised


def test_a_driver_error_counts_like_one_of_the_runtime() -> None:
    xp = fake_cupy()
    with pytest.raises(EngineLost, match="error 700"), CudaFaults(xp, lambda size: None):
        raise xp.cuda.driver.CUDADriverError(700)
    assert fault_of(0, "success") is None


class Cycle:
    def __init__(self, held: Any):
        self.held, self.itself = held, self


@dataclass(eq=False)
class Block:
    size: int
    ptr: int = 0


class SmallDevice:
    """The parts of CuPy that take memory of a device of so many bytes from its driver."""

    def __init__(self, size: int):
        self.free = size
        self.cuda = SimpleNamespace(
            Device=lambda *_: SimpleNamespace(id=0),
            runtime=SimpleNamespace(memGetInfo=lambda: (self.free, size), CUDARuntimeError=CudaError),
            Memory=self.take,
            MemoryPool=lambda: SimpleNamespace(free_all_blocks=lambda: None),
            MemoryPointer=lambda memory, _: memory,
        )

    def take(self, size: int) -> Any:
        if not size:
            raise CudaError(700)
        if size > self.free:
            raise CudaError(2)
        self.free -= size
        block = Block(size)
        weakref.finalize(block, self.give_back, size)
        return block

    def give_back(self, size: int) -> None:
        self.free += size


def test_a_full_device_gives_back_what_is_left_in_cycles() -> None:
    device: Any = SmallDevice(100)
    memory = DeviceMemory(device)
    gc.disable()
    try:
        Cycle(device.take(60))
        there = memory.allocate_apart(60)
        with pytest.raises(ShortOfMemory) as caught:
            memory.allocate_apart(60)
    finally:
        gc.enable()
    assert (caught.value.place, caught.value.wanted) == ("device", 60)
    assert device.free == 40
    del there
    with pytest.raises(CudaError, match="700"):
        memory.allocate_apart(0)


@pytest.mark.gpu
def test_the_pool_keeps_its_limit(cuda: Any) -> None:
    xp = cuda.xp
    cuda.memory.limit(64 * MIB)
    with cuda.faults():
        held = xp.zeros(40 * MIB, xp.uint8)
        with pytest.raises(ShortOfMemory) as caught:
            xp.zeros(30 * MIB, xp.uint8)
        assert caught.value.place == "limit"
        assert caught.value.wanted == 30 * MIB
        del held
        held = xp.zeros(60 * MIB, xp.uint8)  # in the place of what is cached
        assert cuda.memory.peak().allocator <= 64 * MIB
        cuda.memory.limit(0)
        with pytest.raises(ShortOfMemory):
            xp.zeros(MIB, xp.uint8)
    assert int(held.sum()) == 0


@pytest.mark.gpu
def test_small_arrays_take_nothing_of_the_driver(cuda: Any) -> None:
    """The driver takes as long for a block of memory as a small count does."""
    xp, pool = cuda.xp, cuda.memory._pool
    before = pool.total_bytes()
    with cuda.faults():
        held = [xp.zeros(size, xp.uint8) for size in (1, 1000, MIB)]
        assert pool.total_bytes() == before
        held.clear()
        cuda.memory.trim()
        assert pool.total_bytes() == before, "the next count needs it"
        held.append(xp.zeros(100 * MIB, xp.uint8))
        held.clear()
        cuda.memory.trim()
        assert pool.total_bytes() < MIB


@pytest.mark.gpu
def test_a_small_limit_leaves_no_block_for_small_arrays(cuda: Any) -> None:
    """Large arrays could not use the rest of the block."""
    xp = cuda.xp
    assert cuda.memory._pool.total_bytes() > MIB
    cuda.memory.limit(64 * MIB)
    with cuda.faults():
        held = [xp.zeros(size * MIB, xp.uint8) for size in (1, 40, 22)]
    assert sum(one.nbytes for one in held) == 63 * MIB


@pytest.mark.gpu
@pytest.mark.parametrize("method", ["sort", "argsort"])
def test_a_sort_without_room_for_its_workspace_is_short_of_memory(cuda: Any, method: str) -> None:
    xp = cuda.xp
    cuda.memory.limit(20 * MIB)
    with pytest.raises(ShortOfMemory) as caught, cuda.faults():
        getattr(xp.arange(MIB + MIB // 4)[::-1].copy(), method)()
    assert caught.value.place == "limit"
    assert caught.value.wanted is not None


@pytest.mark.gpu
def test_no_memory_is_locked_for_a_graph(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy locks as much of the host as an array has that it is given, and keeps that: no budget knows of it."""
    import cupy

    asarray, sizes = cupy.asarray, []
    monkeypatch.setattr(cupy, "asarray", lambda array: (sizes.append(array.nbytes), asarray(array))[1])
    starts, lists = np.arange(MIB, dtype=np.int64), np.arange(MIB, dtype=np.uint32)[::-1].copy()
    zero = np.zeros(1, np.int32)
    with cuda.faults():
        there = cuda.load(GraphArrays(starts, lists, starts[1:], zero, 1, 1, oriented=True))
        assert (there.indptr.get() == starts).all()
        assert (there.indices.get() == lists).all()
        assert (cuda.bring(lists, mapped=False).get() == lists).all()
    assert not sizes


@pytest.mark.gpu
def test_the_peak_is_measured_twice(cuda: Any) -> None:
    xp = cuda.xp
    with cuda.faults():
        for size in (30, 50, 10):
            xp.zeros(size * MIB, xp.uint8)
            cuda.memory.release()
    peak = cuda.memory.peak()
    assert 50 * MIB <= peak.allocator < 80 * MIB
    assert peak.driver >= 50 * MIB
    assert peak.before >= 0


@pytest.mark.gpu
@pytest.mark.whole_device
def test_copies_of_pages_take_as_much_of_the_device_as_is_said(cuda: Any) -> None:
    xp = cuda.xp
    indices = cuda.paging.host_array(64 << 20, np.dtype(np.uint32), "adaptive")
    indices[:] = np.arange(indices.size)
    nothing = np.zeros(2, np.int64)
    host = GraphArrays(indptr=nothing, indices=indices, split=nothing, labels=nothing, max_degree=0, max_out_degree=0)
    with cuda.faults():
        graph = cuda.load(host, "adaptive")
        xp.cuda.Device().synchronize()
        free = xp.cuda.runtime.memGetInfo()[0]
        page_arcs = MIB // 2
        buffer = cuda.paging.frames(graph, 64, page_arcs)
        copies = xp.ndarray(64 * page_arcs, np.uint32, graph.indices.data + 4 * buffer.origin)
        rng, table = np.random.default_rng(1), xp.zeros(129 + 128, np.int64)
        for number in on_device((64, 64, 40, 64, 64), (64, 40)):  # of 128 pages
            pages, places = rng.permutation(128)[:number], rng.permutation(64)[:number]
            buffer.fill((pages, places), table, np.arange(129) + number)
            buffer.settle()
            assert (table[:129] == xp.arange(129) + number).all()
            found = copies.reshape(64, page_arcs)[xp.asarray(places)]
            assert (found == xp.asarray(pages.astype(np.uint32))[:, None] * page_arcs + xp.arange(page_arcs)).all()
            del found
            cuda.memory.release()
            assert free - xp.cuda.runtime.memGetInfo()[0] <= 128 * MIB + 8 * MIB
        buffer.close()
        del copies, buffer
        assert free - xp.cuda.runtime.memGetInfo()[0] <= 4 * MIB


@pytest.mark.gpu
def test_other_threads_and_other_code_have_their_own_memory(cuda: Any) -> None:
    xp = cuda.xp
    cuda.memory.limit(10 * MIB)
    before = cuda.memory.peak().allocator
    with cuda.faults():
        thread = threading.Thread(target=lambda: xp.zeros(20 * MIB, xp.uint8))
        thread.start()
        thread.join()
    xp.zeros(20 * MIB, xp.uint8)
    assert cuda.memory.peak().allocator == before


@pytest.mark.gpu
def test_memory_is_the_engines_until_the_outer_context_ends(cuda: Any) -> None:
    xp = cuda.xp
    cuda.memory.limit(10 * MIB)
    with cuda.faults():
        with pytest.raises(ShortOfMemory), cuda.faults():
            xp.zeros(20 * MIB, xp.uint8)
        with pytest.raises(ShortOfMemory):
            xp.zeros(20 * MIB, xp.uint8)
    xp.zeros(20 * MIB, xp.uint8)


@pytest.mark.gpu
def test_a_context_inside_another_one_leaves_what_was_refused(cuda: Any) -> None:
    def library() -> None:
        """Turn a refusal into a MemoryError, as libraries do that allocate by CuPy, and clean up."""
        try:
            cuda.xp.zeros(20 * MIB, cuda.xp.uint8)
        except ShortOfMemory:
            with cuda.faults():
                pass
            raise MemoryError from None

    cuda.memory.limit(10 * MIB)
    with pytest.raises(ShortOfMemory) as error, cuda.faults():
        library()
    assert error.value.place == "limit"


@pytest.mark.gpu
def test_arrays_outlive_their_engine(cuda: Any) -> None:
    from longwall.kernels.cuda.engine import CudaEngine

    own = CudaEngine()
    with own.faults():
        array = own.xp.arange(MIB)
    del own
    gc.collect()
    with cuda.faults():
        cuda.xp.zeros(16 * MIB, cuda.xp.uint8)
    assert int(array.sum()) == MIB * (MIB - 1) // 2


@pytest.fixture
def mine(tmp_path: Path) -> Callable[[str, str], longwall.Result]:
    """Run a workload on an engine of a kind."""
    write_edges(tmp_path, EDGES[::2])
    numbers = itertools.count()

    def run(workload: str, kind: str = "auto") -> longwall.Result:
        return longwall.run(
            {
                "graph": {"path": tmp_path / "graph.txt"},
                "workload": WORKLOADS[workload],
                "memory": {"host": "64MiB", "device": "1GiB", "spill": tmp_path / "spill"},
                "engine": {"kind": kind},
                "run": {"directory": tmp_path / "runs", "name": str(next(numbers))},
            }
        )

    return run


class Hog:
    """Takes nearly all that is free on the device, past every pool."""

    def __init__(self, runtime: Any, leave: int):
        self._runtime, self._held = runtime, []
        size = runtime.memGetInfo()[0] - leave
        while size > MIB:
            try:
                self._held.append(runtime.malloc(size))
            except runtime.CUDARuntimeError:  # what is free is not in one piece
                size //= 2
            size = min(size, runtime.memGetInfo()[0] - leave)

    def close(self) -> None:
        for pointer in self._held:
            self._runtime.free(pointer)
        self._held = []


@pytest.mark.gpu
@pytest.mark.whole_device
def test_a_device_that_others_fill_is_short_of_memory(cuda: Any) -> None:
    xp = cuda.xp
    hog = Hog(xp.cuda.runtime, 32 * MIB)
    try:
        with cuda.faults(), pytest.raises(ShortOfMemory) as caught:
            xp.zeros(512 * MIB, xp.uint8)
    finally:
        hog.close()
    assert caught.value.place == "device"
    with cuda.faults():
        assert int(xp.zeros(512 * MIB, xp.uint8)[-1]) == 0


@pytest.mark.gpu
@pytest.mark.whole_device
def test_a_run_goes_on_when_others_fill_the_device(mine: Any, cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    make, hogs = source.edge_source, []

    def filling(*arguments: Any) -> EmbeddingTable:
        if not hogs:
            hogs.append(Hog(cuda.xp.cuda.runtime, 32 * MIB))
        return make(*arguments)

    undisturbed = answer(mine("listing", "cpu").path)
    monkeypatch.setattr("longwall.storage.memory.resources.select_engine", lambda *choice: cuda)
    mine("listing")  # kernels are loaded, which takes memory, too
    cuda.memory.release()
    monkeypatch.setattr(source, "edge_source", filling)
    try:
        result = mine("listing")
    finally:
        for hog in hogs:
            hog.close()
    assert answer(result.path) == undisturbed


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The pools that are opened meanwhile."""
    opened: list[Any] = []

    def opening(xp: Any, owner: object) -> Any:
        opened.append(open_pool(xp, owner))
        return opened[-1]

    monkeypatch.setattr("longwall.kernels.cuda.runtime.memory.open_pool", opening)
    return opened


@pytest.mark.gpu
def test_a_device_has_back_what_a_run_took(mine: Any, cuda: Any, pools: list[Any]) -> None:
    for workload in WORKLOADS:
        mine(workload)
    assert len(pools) == len(WORKLOADS)
    assert [pool.total_bytes() for pool in pools] == [0] * len(pools)


@pytest.mark.gpu
def test_arrays_that_outlive_their_engine_give_back_their_memory(cuda: Any, pools: list[Any]) -> None:
    from longwall.kernels.cuda.engine import CudaEngine

    engine = CudaEngine()
    xp, (pool,) = engine.xp, pools
    with engine.faults():
        short, long = xp.arange(9 * MIB), xp.arange(12 * MIB)  # neither is a part of the block for small arrays
    del engine
    gc.collect()
    assert pool.used_bytes() == pool.total_bytes() == short.nbytes + long.nbytes
    assert int(long[-1]) == 12 * MIB - 1
    del short
    Cycle(long)
    del long
    gc.collect()
    assert pool.total_bytes() == 0


@pytest.mark.gpu
def test_a_device_that_others_have_filled_is_not_used(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from longwall.kernels.cuda.engine import CudaEngine

    monkeypatch.setattr(cuda.xp.cuda.runtime, "memGetInfo", lambda: (KERNELS_BYTES, 1 << 30))
    notes: list[str] = []
    with pytest.raises(DeviceFull, match="the device's memory is taken: end the processes that use it, or choose"):
        CudaEngine()
    with pytest.raises(DeviceFull):
        select_engine("cuda", note=notes.append)
    instead = select_engine("auto", 2, note=notes.append)
    assert (instead.name, instead.workers) == ("cpu", 2)
    assert notes == [f"the CPU does the work, since {DeviceFull()}"]
    monkeypatch.setattr(cuda.xp.cuda.runtime, "memGetInfo", lambda: (KERNELS_BYTES + 1, 1 << 30))
    assert select_engine("auto", note=notes.append).name == "cuda"
    assert len(notes) == 1


@pytest.mark.gpu
def test_a_run_says_that_the_cpu_does_its_work_since_the_device_is_full(
    mine: Any, cuda: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda.xp.cuda.runtime, "memGetInfo", lambda: (0, 1 << 30))
    place = mine("triangles").path
    assert json.loads((place / "manifest.json").read_text())["engine"]["name"] == "cpu"
    notes = [note["text"] for note in json.loads((place / "history.json").read_text())["notes"]]
    assert notes.count(f"the CPU does the work, since {DeviceFull()}") == 1
    with pytest.raises(InputError, match=r"^engine.kind = .cuda.: the device's memory is taken"):
        mine("triangles", "cuda")


@pytest.mark.gpu
def test_a_device_has_back_what_failed_runs_took(
    mine: Any, cuda: Any, pools: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    make = source.edge_source

    def failing(*arguments: Any) -> EmbeddingTable:
        make(*arguments)
        raise RunError("the disk is full")

    for number in range(1, 4):
        monkeypatch.setattr(source, "edge_source", failing)
        with pytest.raises(RunError, match="the disk is full"):
            mine("listing")
        monkeypatch.setattr(source, "edge_source", make)
        mine("triangles")
        assert len(pools) == 2 * number
        assert [pool.total_bytes() for pool in pools[:-1]] == [0] * (2 * number - 1)


@pytest.mark.gpu
def test_what_a_failed_run_left_is_collected_where_memory_is_short(
    mine: Any, cuda: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected = []
    monkeypatch.setattr(cuda.xp.cuda.runtime, "memGetInfo", lambda: (1 << 30 if collected else 0, 1 << 30))
    monkeypatch.setattr("longwall.kernels.cuda.runtime.memory.gc.collect", lambda: collected.append(1))
    assert select_engine("auto").name == "cuda"
    assert collected


@pytest.mark.gpu
def test_everything_that_a_run_allocates_comes_from_its_pool(
    mine: Any, cuda: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = cuda.xp.get_default_memory_pool()
    others.free_all_blocks()
    before = others.total_bytes()
    monkeypatch.setattr("longwall.storage.memory.resources.select_engine", lambda *choice: cuda)
    for workload in WORKLOADS:
        mine(workload)
    assert others.total_bytes() == before


@pytest.mark.gpu
@pytest.mark.real_gpu("an emulated device cannot be lost")
def test_a_kernel_that_reads_astray_loses_the_device(cuda: Any) -> None:
    program = """
import cupy
from longwall.kernels.cuda.engine import CudaEngine
from longwall.kernels.interface.engine import EngineLost
engine = CudaEngine()
astray = cupy.RawKernel('extern "C" __global__ void astray(int* p) { *p = 1; }', "astray")
try:
    with engine.faults():
        astray((1,), (1,), (cupy.uintp(8),))
        cupy.cuda.Device().synchronize()
except EngineLost as error:
    print("lost:", error)
engine.interrupt()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert "lost: cudaErrorIllegalAddress" in done.stdout, done.stderr
