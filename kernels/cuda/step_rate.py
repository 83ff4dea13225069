"""How many elementary steps a device does a second, all of it at work; see ``step_rate.cu``."""

import time

import numpy as np

from longwall.kernels.cuda.device import Device

_TABLE, _ENTRIES = 4096, 1 << 22
_PASSES, _ROUNDS = 512, 3  # some milliseconds, beside which a launch takes little


def steps_per_second(device: Device) -> float:
    """Measure the steps a second."""
    xp = device.xp
    entries = xp.asarray(np.random.default_rng(0).integers(0, _TABLE, _ENTRIES, dtype=np.uint32))
    table, total = xp.ones(_TABLE, xp.uint8), xp.zeros(1, xp.uint64)
    best = float("inf")
    for number in range(_ROUNDS + 1):
        began = time.perf_counter()
        device.launch_over("step_rate.cu", "look_up", _ENTRIES, (entries, table, _ENTRIES, _PASSES, total))
        device.synchronize()
        if number:  # the first launch compiles
            best = min(best, time.perf_counter() - began)
    return _PASSES * _ENTRIES / best
