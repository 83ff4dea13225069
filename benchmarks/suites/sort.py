"""Sort keys in bounded memory, by each way to merge, against the bound that the host link sets and against NumPy.

    python -m benchmarks.suites.sort --keys 1e8                              # the CPU engine, beside numpy.sort
    python -m benchmarks.suites.sort --keys 4e9 --device 8GiB --host 80GiB   # with a GPU, and 128 GB of memory

Keys are made beforehand in host memory, page-locked for a GPU; the runs go to other host memory, prepared beforehand
too: its seconds are "prepare". The seconds of "chunks" go from the first key added until all chunks are sorted and the
first window is merged, those of "merge" from there to the last block of keys in host memory; "release" is what giving
back the memory takes. "merging" are the seconds of the device in which it merges windows, copies left out: most of them
are hidden behind the host link. Before it is measured,
every method is run once with a check: ascending order, number and sum of the keys, and how often each of a sample of
keys stands; or, with --no-check, with few of the keys, so that no kernel is compiled in the time that is measured. On
the CPU engine "naive" and "host" are "multi-merge".

The bound: all keys go to the device and back twice, both ways at once at the rate that is measured here, first.
"""

import argparse
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
import numpy as np

from benchmarks.lib.machine import describe_machine
from longwall.kernels import select_engine
from longwall.kernels.interface.engine import Engine
from longwall.kernels.interface.sorting import KeyLayout
from longwall.storage.memory.reservations import BudgetExceeded, MemoryBudget
from longwall.storage.memory.resources import Resources
from longwall.storage.memory.sizes import parse_size
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.sorting.key_sorter import KeySorter

SHAPES = ["random", "sorted", "reversed", "equal", "skewed"]
METHODS = ["multi-merge", "naive", "split", "host"]
ADDED = 1 << 26  # keys that are added at a time
PIECE = 1 << 22  # keys that a thread makes or checks at a time
SAMPLES = 1000
LINK_BYTES = 1 << 30
FEW = {"device": "8MiB", "host": "16MiB"}  # budgets in which FEW_KEYS are several runs
FEW_KEYS = 1 << 20
PUBLISHED = (55e9, 102e9)  # bytes a second of the host link of an H200, one way and both ways in all


@numba.njit(nogil=True, cache=True)
def fill(keys: Any, first: int, total: int, shape: int) -> None:
    """Make the keys from place `first` on, of so many in all."""
    for i in range(keys.size):
        place = np.uint64(first + i)
        x = place + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
        if shape == 0:
            keys[i] = x
        elif shape == 1:
            keys[i] = place * np.uint64(3)
        elif shape == 2:
            keys[i] = np.uint64(3) * (np.uint64(total) - place)
        elif shape == 3:
            keys[i] = np.uint64(42)
        else:  # half of the keys are below 2, a quarter below 4, ...
            keys[i] = x >> np.uint64(max(1, 63 - (x & np.uint64(63)))) if x & np.uint64(1) else x & np.uint64(1023)


@numba.njit(nogil=True, cache=True)
def summary(keys: Any, sample: Any, counts: Any) -> tuple[int, bool]:
    """Sum modulo 2^64 and whether keys ascend; adds how often each key of an ascending sample stands."""
    total, ascending = np.uint64(0), True
    for i in range(keys.size):
        total += keys[i]
        ascending &= i == 0 or keys[i - 1] <= keys[i]
        at = np.searchsorted(sample, keys[i])
        if at < sample.size and sample[at] == keys[i]:
            counts[at] += 1
    return total, ascending


class Content:
    """What is known of keys whatever their order, taken piece by piece on all cores."""

    def __init__(self, sample: Any) -> None:
        self.number, self.total, self.ascending = 0, 0, True
        self.counts = np.zeros(sample.size, np.int64)
        self._sample, self._last = sample, -1
        self._pool, self._lock = ThreadPoolExecutor(len(os.sched_getaffinity(0))), threading.Lock()

    def add(self, keys: Any) -> None:
        """Add keys, behind those added before."""
        ordered = list(self._pool.map(self._piece, [keys[at : at + PIECE] for at in range(0, len(keys), PIECE)]))
        firsts, lasts = [int(keys[0]), *keys[PIECE::PIECE].tolist()], keys[PIECE - 1 :: PIECE].tolist()
        self.ascending &= all(ordered) and all(a <= b for a, b in zip([self._last, *lasts], firsts, strict=False))
        self._last = int(keys[-1])
        self.number += len(keys)

    def _piece(self, keys: Any) -> bool:
        counts = np.zeros_like(self.counts)
        total, ascending = summary(keys, self._sample, counts)
        with self._lock:
            self.total = (self.total + int(total)) % 2**64
            self.counts += counts
        return bool(ascending)

    def same(self, other: "Content") -> bool:
        """Whether the same keys were added, as far as is known."""
        mine, theirs = ((c.number, c.total, c.counts.tolist()) for c in (self, other))
        return mine == theirs


def make_keys(engine: Engine, count: int, shape: str) -> Any:
    """Make keys on the host, where the engine reads them best."""
    if engine.name == "cuda":
        from longwall.kernels.cuda.runtime.pinned_buffers import locked_column

        keys = locked_column(engine.xp, count)
        assert keys.base.locked, "the system does not page-lock so much memory: what is measured would mean nothing"
    else:
        keys = np.empty(count, np.uint64)
    number = SHAPES.index(shape)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(lambda at: fill(keys[at : at + PIECE], at, count, number), range(0, count, PIECE)))
    return keys


def link_rates(engine: Engine) -> tuple[float, float]:
    """Measure bytes a second over the host link: one way, and both ways in all."""
    from longwall.kernels.cuda.runtime.pinned_buffers import locked_column

    xp = engine.xp
    with engine.faults():
        hosts = [locked_column(xp, LINK_BYTES // 8) for _ in range(2)]
        arrays = [xp.empty(LINK_BYTES // 8, xp.uint64) for _ in range(2)]
        streams = [xp.cuda.Stream(non_blocking=True) for _ in range(2)]

        def copy(both: bool) -> float:
            began = time.perf_counter()
            for _ in range(4):
                arrays[0].data.copy_from_host_async(hosts[0].ctypes.data, LINK_BYTES, streams[0])
                if both:
                    arrays[1].data.copy_to_host_async(hosts[1].ctypes.data, LINK_BYTES, streams[1])
            for stream in streams:
                stream.synchronize()
            return 4 * LINK_BYTES * (1 + both) / (time.perf_counter() - began)

        copy(True)
        return copy(False), copy(True)


class MergeClock:
    """Takes the time in which a device merges windows, from now on."""

    def __init__(self, engine: Engine) -> None:
        self._events: list[tuple[Any, Any]] = []
        if engine.name != "cuda":
            return
        from longwall.kernels.cuda.sorting.sorters import CudaRunMerger

        self._cuda = engine.xp.cuda
        for name in ("_merge_lists", "_sort"):
            method = getattr(CudaRunMerger, name)
            setattr(CudaRunMerger, name, self._timed(getattr(method, "untimed", method)))

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(merger: Any, *arguments: Any) -> Any:
            begin, end = self._cuda.Event(), self._cuda.Event()
            begin.record()
            found = method(merger, *arguments)
            end.record()
            self._events.append((begin, end))
            return found

        timed.untimed = method  # type: ignore[attr-defined]
        return timed

    def seconds(self) -> float:
        """All of it so far, once the device is done."""
        return sum(self._cuda.get_elapsed_time(*pair) for pair in self._events) / 1000


def sort(
    engine: Engine, keys: Any, method: str, options: argparse.Namespace, look: Callable[[Any], None] | None
) -> dict[str, Any]:
    """Sort once; gives the seconds of each phase."""
    with (
        Resources(
            MemoryBudget("--host", parse_size(options.host)),
            MemoryBudget("--disk", parse_size(options.disk)),
            SpillFolder(Path(options.spill)),
            engine=engine,
        ) as resources,
        KeySorter(
            resources,
            KeyLayout(),
            device=parse_size(options.device),
            merge=method,  # type: ignore[arg-type]
        ) as sorter,
    ):
        merging = MergeClock(engine)
        times = [time.perf_counter()]
        with suppress(BudgetExceeded):  # runs go to the disk then
            sorter.reserve(len(keys))
        times.append(time.perf_counter())
        for at in range(0, len(keys), ADDED):
            sorter.add(keys[at : at + ADDED])
        blocks = iter(sorter.blocks())
        first = next(blocks)
        times.append(time.perf_counter())
        runs = -(-len(keys) // sorter.chunk_capacity)
        number = 0
        for block in prepend(first, blocks):
            number += len(block.keys)
            if look is not None:
                look(block.keys)
            last = time.perf_counter()
        times += [last, time.perf_counter()]
        assert number == len(keys), f"{number} keys of {len(keys)} came out"
        prepare, chunks, merge, release = np.diff(times).tolist()
        return {
            "method": method,
            "runs": runs,
            "prepare": prepare,
            "chunks": chunks,
            "merge": merge,
            "release": release,
            "merging": merging.seconds(),
            "total": chunks + merge,
            "spilled": sorter.spilled,
            "host_peak": resources.host.peak,
        }


def prepend(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    """Yield one more item, before the others."""
    yield first
    yield from rest


def main() -> None:
    """Measure; prints a JSON object for each method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=float, default=1e8)
    parser.add_argument("--engine", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--device", default="8GiB")
    parser.add_argument("--host", default=None, help="for runs and buffers; four times the keys if not given")
    parser.add_argument("--disk", default="64GiB")
    parser.add_argument("--spill", default="spill")
    parser.add_argument("--rivals", nargs="*", choices=METHODS, metavar="METHOD", help=f"of {', '.join(METHODS)}")
    parser.add_argument("--shape", default="random", choices=SHAPES)
    parser.add_argument("--no-check", action="store_true")
    parser.add_argument("--no-numpy", action="store_true")
    options = parser.parse_args()
    count = int(options.keys)
    options.host = options.host or str(32 * count + (64 << 20))
    engine = select_engine(options.engine)
    print(json.dumps({**describe_machine(), "engine": engine.name, "device": engine.device.name}), flush=True)
    bound = None
    if engine.name == "cuda":
        one, both = link_rates(engine)
        moved = 2 * 8 * count  # bytes each way
        bound = max(moved / one, 2 * moved / both)
        published = max(moved / PUBLISHED[0], 2 * moved / PUBLISHED[1])
        print(json.dumps({"one_way": one, "both_ways": both, "bound": bound, "published_bound": published}), flush=True)
    keys = make_keys(engine, count, options.shape)
    sample = np.unique(keys[:: max(1, count // SAMPLES)])
    given = Content(sample)
    if not options.no_check:
        given.add(keys)
    if not options.no_numpy and engine.name == "cpu":
        copy = keys.copy()
        began = time.perf_counter()
        copy.sort()
        taken = time.perf_counter() - began
        del copy
        print(json.dumps({"method": "numpy.sort", "total": taken, "keys_per_second": count / taken}), flush=True)
    for method in options.rivals or (METHODS if engine.name == "cuda" else ["multi-merge", "split"]):
        if not options.no_check:
            found = Content(sample)
            sort(engine, keys, method, options, found.add)
            assert found.ascending, f"{method}: keys do not ascend"
            assert found.same(given), f"{method}: other keys came out than were given"
        else:
            sort(engine, keys[:FEW_KEYS], method, argparse.Namespace(**vars(options) | FEW), None)
        result = sort(engine, keys, method, options, None)
        result["keys_per_second"] = count / result["total"]
        if bound is not None:
            result |= {"link_bytes_per_second": 4 * 8 * count / result["total"], "of_bound": bound / result["total"]}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
