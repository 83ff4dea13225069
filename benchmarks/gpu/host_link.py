"""Measure what a GPU gets out of host memory: registered and managed, by order of reading and by size of page.

    python -m benchmarks.gpu.host_link [GIB]

prints one line per figure. It asks for GIB (2 if not given) of managed memory, which the device must have free.
"""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import cupy as cp
import numpy as np

from longwall.kernels.cuda.runtime.host_memory import ManagedArray, managed_array, mapped

GIB = 1 << 30
LINES = 1 << 21  # of 128 bytes: 256 MiB
PAGES = [2 << 20, 1 << 20, 256 << 10, 64 << 10]  # bytes
MOVED = 512 << 20  # bytes
SOURCE = r"""
extern "C" __global__ void lines(const unsigned* data, const unsigned* line, long long n, unsigned* out) {
  const long long warps = (static_cast<long long>(gridDim.x) * blockDim.x) >> 5;
  unsigned sum = 0;
  for (long long i = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) >> 5; i < n; i += warps)
    sum += data[static_cast<long long>(line[i]) * 32 + (threadIdx.x & 31)];
  if (sum == 1) out[0] = sum;
}
extern "C" __global__ void sectors(const unsigned* data, const unsigned* line, long long n, unsigned* out) {
  const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
  unsigned sum = 0;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += threads)
    sum += data[static_cast<long long>(line[i]) * 32];
  if (sum == 1) out[0] = sum;
}
"""


def seconds(work: Callable[[], Any]) -> float:
    """Time work on the device."""
    begin, end = cp.cuda.Event(), cp.cuda.Event()
    begin.record()
    work()
    end.record()
    end.synchronize()
    return float(cp.cuda.get_elapsed_time(begin, end)) / 1e3


def reads(array: Any, rng: np.random.Generator) -> Iterator[tuple[str, float, str]]:
    """Read lines of an array in three orders, and single sectors."""
    module = cp.RawModule(code=SOURCE)
    random = cp.asarray(rng.choice(array.nbytes // 128, LINES, replace=False).astype(np.uint32))
    orders = {"in order": cp.arange(LINES, dtype=np.uint32), "sorted": cp.sort(random), "random": random}
    sink, grid = cp.zeros(1, np.uint32), (cp.cuda.Device().attributes["MultiProcessorCount"] * 8,)
    for name, function in (("lines", "lines"), ("sectors", "sectors")):
        for order, numbers in orders.items():
            if name == "lines" or order == "random":
                kernel, arguments = module.get_function(function), (array, numbers, np.int64(LINES), sink)
                kernel(grid, (256,), (array, numbers[:64], np.int64(64), sink))
                taken = seconds(lambda kernel=kernel, arguments=arguments: kernel(grid, (256,), arguments))
                unit = (LINES * 128 / taken / 1e9, "GB/s") if name == "lines" else (LINES / taken / 1e6, "million/s")
                yield f"{name}, {order}", *unit


def moves(array: ManagedArray, rng: np.random.Generator) -> Iterator[tuple[str, float, str]]:
    """Move pages of several sizes to the device and back."""
    items = array.array.size
    for size in PAGES:
        slots = size // 4
        pages = np.sort(rng.choice(items // slots, min(MOVED // size, items // slots // 2), replace=False))
        ranges = np.stack([pages, pages + 1], axis=1) * slots
        before = cp.cuda.runtime.memGetInfo()[0]
        for there in (True, False):
            began = time.perf_counter()
            array.move(ranges, to_device=there)
            cp.cuda.Device().synchronize()
            taken = time.perf_counter() - began
            where = "to the device" if there else "back"
            yield f"pages of {size >> 10} KiB {where}", len(pages) * size / taken / 1e9, "GB/s"
            if there:
                used = (before - cp.cuda.runtime.memGetInfo()[0]) / (len(pages) * size)
                yield f"pages of {size >> 10} KiB, memory taken per byte moved", used, ""


def copied(pointer: int, size: int) -> Iterator[tuple[str, float, str]]:
    """Let the copy engine copy host memory to the device: as one, and page by page."""
    there = cp.empty(size // 4, np.uint32)
    runtime, stream, target = cp.cuda.runtime, cp.cuda.get_current_stream().ptr, there.data.ptr
    way = runtime.memcpyHostToDevice
    for page in (size, *PAGES):
        ends = range(page, min(size, max(page, 2 * MOVED)) + 1, page)

        def copy(page: int = page, ends: range = ends) -> None:
            for end in ends:
                runtime.memcpyAsync(target + end - page, pointer + end - page, page, way, stream)

        copy()
        cp.cuda.Device().synchronize()
        began = time.perf_counter()
        taken = seconds(copy)
        whole, amount = time.perf_counter() - began, page * len(ends)
        name = "copied to the device" + (f", {page >> 10} KiB each" if page < size else "")
        yield f"{name}, by the device", amount / taken / 1e9, "GB/s"
        yield f"{name}, by the host", amount / whole / 1e9, "GB/s"


def registered(size: int, rng: np.random.Generator) -> Iterator[tuple[str, float, str]]:
    """Lock memory that was touched, and read it."""
    host = np.ones(size // 4, np.uint32)
    began = time.perf_counter()
    there = mapped(cp, host)
    yield "locked", size / (time.perf_counter() - began) / 1e9, "GB/s"
    yield from reads(there, rng)
    yield from copied(host.ctypes.data, host.nbytes)


def managed(size: int, rng: np.random.Generator) -> Iterator[tuple[str, float, str]]:
    """Read managed memory that stays on the host, and move parts of it."""
    values = managed_array(cp, size // 4, np.dtype(np.uint32))
    values[:] = 1
    array = ManagedArray(cp, values, home="host")
    yield from reads(array.array, rng)
    yield from copied(array.array.data.ptr, array.array.nbytes)
    yield from moves(array, rng)


def main() -> None:
    """Measure, and print."""
    size = int(float(sys.argv[1]) * GIB) if len(sys.argv) > 1 else 2 * GIB
    for kind in (registered, managed):
        for name, figure, unit in kind(size, np.random.default_rng(1)):
            print(f"{kind.__name__:<12} {name:<48} {figure:10.2f} {unit}", flush=True)


if __name__ == "__main__":
    main()
