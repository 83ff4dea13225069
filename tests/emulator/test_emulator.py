"""What the emulator gives, and what it refuses; only where it stands in for CuPy (its folder in PYTHONPATH)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

cupy = pytest.importorskip("cupy")
if not hasattr(cupy, "emulated"):
    pytest.skip("this is CuPy itself", allow_module_level=True)
pytestmark = pytest.mark.gpu

ALL = "0xffffffffu"


def launched(body: str, *arguments: Any, blocks: int = 2, threads: int = 64, shared: int = 0, given: str = "") -> None:
    """Run a kernel of this body; its parameters are `given`."""
    text = "extern __shared__ unsigned words[];\n"
    text += f'extern "C" __global__ void __launch_bounds__(128) test({given}) {{ {body} }}\n'
    cupy.RawModule(code=text).get_function("test")((blocks,), (threads,), arguments, shared_mem=shared)


@pytest.fixture(params=[0, 1, 2])
def order(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes and warps take turns in order, and in two random ones."""
    monkeypatch.setattr(cupy.emulated, "seed", request.param)


def test_collectives_give_what_cuda_says(order: None) -> None:
    expressions = {
        f"__shfl_sync({ALL}, x, 5)": lambda x: np.full(32, x[5]),
        f"__shfl_sync({ALL}, x, 3, 8)": lambda x: x[np.arange(32) // 8 * 8 + 3],
        f"__shfl_down_sync({ALL}, x, 4)": lambda x: np.concatenate([x[4:], x[-4:]]),
        f"__shfl_up_sync({ALL}, x, 4)": lambda x: np.concatenate([x[:4], x[:-4]]),
        f"__shfl_xor_sync({ALL}, x, 9)": lambda x: x[np.arange(32) ^ 9],
        f"__ballot_sync({ALL}, x & 1)": lambda x: np.full(32, ((x & 1) << np.arange(32)).sum()),
        f"__all_sync({ALL}, x != 7)": lambda x: np.full(32, (x != 7).all()),
        f"__any_sync({ALL}, x == 7)": lambda x: np.full(32, (x == 7).any()),
        f"__reduce_add_sync({ALL}, x)": lambda x: np.full(32, x.sum()),
        f"__reduce_max_sync({ALL}, x)": lambda x: np.full(32, x.max()),
        f"__reduce_min_sync({ALL}, x)": lambda x: np.full(32, x.min()),
        f"__match_any_sync({ALL}, x % 3)": lambda x: ((x[:, None] % 3 == x % 3) << np.arange(32)).sum(axis=1),
        "__clz(x) + 100 * __popc(x) + 10000 * __ffs(x)": lambda x: [
            32 - int(v).bit_length() + 100 * int(v).bit_count() + 10000 * (int(v) & -int(v)).bit_length() for v in x
        ],
    }
    x = np.random.default_rng(0).integers(0, 50, 32).astype(np.uint32)
    body = "const unsigned x = values[threadIdx.x];"
    body += "".join(f"out[{i} * 32 + threadIdx.x] = {text};" for i, text in enumerate(expressions))
    out = cupy.empty((len(expressions), 32), cupy.uint32)
    given = "const unsigned* values, unsigned* out"
    launched(body, cupy.asarray(x), out, blocks=1, threads=32, given=given)
    for row, (text, expected) in zip(out.get(), expressions.items(), strict=True):
        np.testing.assert_array_equal(row, np.asarray(expected(x.astype(np.int64))).astype(np.uint32), err_msg=text)


def test_blocks_wait_for_each_other(order: None) -> None:
    total = cupy.zeros(1, cupy.uint32)
    body = """
      if (threadIdx.x == 0) atomicAdd(a, 1u);
      while (*static_cast<volatile unsigned*>(a) < gridDim.x) {}
    """
    launched(body, total, blocks=5, given="unsigned* a")
    assert int(total[0]) == 5


def test_shared_memory_is_a_blocks_own(order: None) -> None:
    out = cupy.empty((3, 128), cupy.uint32)
    body = """
      __shared__ unsigned fixed[128];
      words[threadIdx.x] = blockIdx.x;
      fixed[threadIdx.x] = threadIdx.x;
      __syncthreads();
      out[blockIdx.x * 128 + threadIdx.x] = words[127 - threadIdx.x] * 1000 + fixed[127 - threadIdx.x];
    """
    launched(body, out, blocks=3, threads=128, shared=512, given="unsigned* out")
    np.testing.assert_array_equal(out.get(), np.arange(3)[:, None] * 1000 + np.arange(127, -1, -1))


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("a[threadIdx.x + 1] = 0;", r"write of 4 bytes at byte 256 of an allocation of 256 .* a \(uint32\[64\]"),
        ("if (a[64]) a[0] = 0;", "read of 4 bytes at byte 256"),
        ("atomicAdd(a - 1, 1u);", "atomic operation of 4 bytes"),
        ("words[16] = 0;", "at byte 64 of 64 bytes of dynamic shared"),
        ("*reinterpret_cast<unsigned long long*>(a + 1) = 0;", "misaligned"),
        ("*reinterpret_cast<unsigned*>(8) = 0;", "no memory of the device"),
        (f"if (threadIdx.x != 3) __shfl_sync({ALL}, 1, 0);", "lanes of this warp|while lanes"),
        (f"if (threadIdx.x & 1) __ballot_sync({ALL}, 1);\nelse __ballot_sync({ALL}, 1);", "different collectives"),
        ("__shfl_sync(0xffffu, 1, 0);", "instead of all"),
        ("if (threadIdx.x < 32) __syncthreads();\nelse while (!*static_cast<volatile unsigned*>(a)) {}", "not ended"),
        ("if (threadIdx.x < 32) __syncthreads();\nelse __syncthreads();", "different barriers"),
        ("__trap();", "stopped itself"),
    ],
)
def test_faults_are_named(body: str, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupy.emulated, "seconds", 0.2)
    a = cupy.zeros(64, cupy.uint32)
    with pytest.raises(cupy.KernelFault, match=complaint):
        launched(body, a, shared=64, given="unsigned* a")
    launched("a[threadIdx.x] = 1;", a, given="unsigned* a")
    assert int(a.sum()) == 64


def test_freed_and_host_memory_is_out_of_reach() -> None:
    a = cupy.zeros(64, cupy.uint32)
    address = np.uintp(a.data.ptr)
    del a
    with pytest.raises(cupy.KernelFault):
        launched("a[0] = 1;", address, given="unsigned* a")
    host = np.zeros(64, np.uint32)
    with pytest.raises(cupy.KernelFault):
        launched("a[0] = 1;", np.uintp(host.ctypes.data), given="unsigned* a")
    cupy.cuda.runtime.hostRegister(host.ctypes.data, host.nbytes, cupy.cuda.runtime.hostRegisterMapped)
    launched("a[threadIdx.x] = 1;", np.uintp(host.ctypes.data), given="unsigned* a")
    cupy.cuda.runtime.hostUnregister(host.ctypes.data)
    assert host.sum() == 64


def test_arguments_must_fit_the_parameters() -> None:
    a = cupy.zeros(8, cupy.uint32)
    for wrong in ((a,), (a, 1, 1), (a.astype(cupy.uint64), 1), (1.0, 1), (a, np.int32(1)), (a, 0.5)):
        with pytest.raises(cupy.KernelFault):
            launched("a[0] = n;", *wrong, given="unsigned* a, long long n")
    with pytest.raises(TypeError):
        launched("a[0] = n;", np.zeros(8, np.uint32), 1, given="unsigned* a, long long n")
    with pytest.raises(cupy.cuda.driver.CUDADriverError):
        launched("a[0] = n;", a, 1, threads=256, given="unsigned* a, long long n")


def test_arrays_are_as_strict_as_cupys() -> None:
    a = cupy.arange(10)
    assert isinstance(a.sum(), cupy.ndarray)
    assert isinstance(a[3], cupy.ndarray)
    assert not isinstance(a, np.ndarray)
    np.testing.assert_array_equal((np.int64(2) * a[a > 4]).get(), [10, 12, 14, 16, 18])
    view = a[2:]
    view[:] = 7
    assert view.data.ptr == a.data.ptr + 16
    assert int(a[9]) == 7
    for wrong in (
        lambda: a + np.arange(10),
        lambda: np.asarray(a),
        lambda: cupy.concatenate([a, np.arange(3)]),
        lambda: a.__setitem__(slice(None), np.arange(10)),
        lambda: a.set(np.arange(10, dtype=np.int32)),
    ):
        with pytest.raises(TypeError):
            wrong()


def test_pools_give_back_whole_blocks_to_their_streams() -> None:
    pool = cupy.cuda.MemoryPool()
    stream = cupy.cuda.Stream(non_blocking=True)
    whole = pool.malloc(4096)
    with stream:
        pool.malloc(512)
    assert (pool.used_bytes(), pool.total_bytes()) == (4096, 4608)
    del whole
    part = pool.malloc(1024)
    assert (pool.used_bytes(), pool.total_bytes()) == (1024, 4608)
    pool.free_all_blocks()
    assert pool.total_bytes() == 4096  # the other stream's was whole
    rest = pool.malloc(3072)
    assert pool.total_bytes() == 4096
    del part, rest
    whole = pool.malloc(4096)
    assert pool.total_bytes() == 4096
    del whole
    pool.free_all_blocks()
    assert pool.total_bytes() == 0


def test_what_a_pool_kept_stays_taken_when_it_is_collected() -> None:
    pool, before = cupy.cuda.MemoryPool(), cupy.emulated.used
    used, kept = pool.malloc(1024), pool.malloc(512)
    del kept, pool
    del used
    assert cupy.emulated.used - before == 512
    cupy.emulated.give(512)


def test_pools_keep_and_bound_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = cupy.cuda.MemoryPool()
    before = cupy.emulated.used
    with cupy.cuda.using_allocator(pool.malloc):
        a = cupy.zeros(1000, cupy.uint8)
    assert (pool.used_bytes(), pool.total_bytes(), cupy.emulated.used - before) == (1024, 1024, 1024)
    del a
    assert (pool.used_bytes(), pool.total_bytes(), cupy.emulated.used - before) == (0, 1024, 1024)
    pool.free_all_blocks()
    assert (pool.total_bytes(), cupy.emulated.used) == (0, before)
    pool.set_limit(size=2048)
    with pytest.raises(cupy.cuda.memory.OutOfMemoryError):
        pool.malloc(2049)
    monkeypatch.setattr(cupy.emulated, "taken", cupy.emulated.memory)
    with pytest.raises(cupy.cuda.memory.OutOfMemoryError):
        pool.malloc(1)
    monkeypatch.setattr(cupy.emulated, "lost", True)
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError):
        cupy.zeros(1)
