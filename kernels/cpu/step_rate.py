"""How many elementary steps this machine's threads do a second, all of them at work."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from longwall.kernels.cpu.device import CpuDevice
from longwall.kernels.jit.compile import compiled

_TABLE, _ENTRIES = 4096, 1 << 18
_PASSES, _ROUNDS = 32, 3


@compiled("u4[::1], u1[::1], i8")
def look_up(entries, table, passes):
    """Look entries up in a table, in their order, several times; return the sum."""
    total = np.int64(0)
    for _ in range(passes):
        for i in range(entries.size):
            total += table[entries[i]]
    return total


def steps_per_second(device: CpuDevice) -> float:
    """Measure the steps a second."""
    entries = np.random.default_rng(0).integers(0, _TABLE, _ENTRIES, dtype=np.uint32)
    table = np.ones(_TABLE, np.uint8)
    look_up(entries, table, 1)  # loads or compiles it

    def once(_: int) -> float:
        began = time.thread_time()  # what others do on a busy machine is not in it
        look_up(entries, table, _PASSES)
        return _PASSES * _ENTRIES / max(time.thread_time() - began, 1e-9)

    with ThreadPoolExecutor(device.workers) as pool:
        return max(sum(pool.map(once, range(device.workers))) for _ in range(_ROUNDS))
