"""The rate of elementary steps, which only says how fast a machine is: that it is one, and what the loop looks up."""

from __future__ import annotations

import numpy as np
import pytest

from longwall.kernels import select_engine
from longwall.kernels.cpu.engine import CpuEngine
from longwall.kernels.cpu.step_rate import look_up


def test_entries_are_looked_up_in_every_pass() -> None:
    table = np.arange(100, dtype=np.uint8)
    assert look_up(np.array([3, 5, 99], np.uint32), table, 4) == 4 * (3 + 5 + 99)


def test_the_threads_of_the_host_do_millions_of_steps_together() -> None:
    engine = CpuEngine(2)
    assert 1e7 < engine.kernels.steps_per_second(engine.device) < 1e12


@pytest.mark.gpu
def test_a_device_looks_up_every_entry_in_every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    from longwall.kernels.cuda import step_rate

    engine = select_engine("cuda")
    xp = engine.xp
    entries, table, total = xp.arange(1000, dtype=xp.uint32), xp.ones(4096, xp.uint8), xp.zeros(1, xp.uint64)
    table[500:] = 3
    engine.device.launch_over("step_rate.cu", "look_up", 1000, (entries, table, 1000, 2, total))
    assert int(total.get()[0]) == sum(1 if (i + p) < 500 else 3 for p in range(2) for i in range(1000))
    monkeypatch.setattr(step_rate, "_ENTRIES", 1 << 10)
    monkeypatch.setattr(step_rate, "_PASSES", 2)
    assert engine.kernels.steps_per_second(engine.device) > 0
