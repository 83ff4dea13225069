"""Zeroed words of a device, into which launches count, and the waits of the main thread for them, with signals."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from breakable import EDGES

import longwall
from longwall.kernels.cuda.device import fetch

MIB = 1 << 20


@pytest.mark.gpu
def test_words_are_zero_and_given_out_once(cuda: Any) -> None:
    """Also when pages of them are full, and in several threads."""
    device = cuda.device

    def results(number: int) -> list[Any]:
        made = []
        with cuda.faults():
            for place in range(number):
                made.append(device.result(2 if place % 50 else 100))
                assert not made[-1].get().any()
                made[-1].fill(7)
        return made

    with ThreadPoolExecutor(3) as pool:
        made = [one for some in pool.map(results, [300] * 3) for one in some]
    assert len({int(one.data.ptr) // 16 for one in made}) == 900
    assert all((one.get() == 7).all() for one in made)


@pytest.mark.gpu
def test_a_page_of_words_keeps_no_block_that_is_returned(cuda: Any) -> None:
    memory = cuda.memory
    with cuda.faults():
        memory.limit(64 * MIB)
        memory.release()
        cuda.xp.empty(40 * MIB, cuda.xp.uint8)  # cached when it is gone, and larger than other blocks
        cuda.device.result()
        memory.release()
        assert cuda.xp.empty(60 * MIB, cuda.xp.uint8).nbytes == 60 * MIB


@pytest.mark.gpu
def test_an_error_of_a_users_handler_is_no_lost_device(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise LookupError("my own limit")

    graph = longwall.graph(EDGES)
    monkeypatch.setattr("longwall.kernels.cuda.kcliques.leaves._Search._start", interrupted)
    with pytest.raises(LookupError, match="my own limit"):
        longwall.cliques(graph, 9, engine="cuda")


@pytest.mark.gpu
def test_signals_are_handled_while_the_main_thread_waits(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    handled = []
    before = signal.signal(signal.SIGUSR1, lambda *_: handled.append(1))

    def poll(stream: int) -> int:
        if not handled:
            os.kill(os.getpid(), signal.SIGUSR1)
        return 0 if handled else 600

    monkeypatch.setattr(cuda.xp.cuda.runtime, "streamQuery", poll)
    try:
        with cuda.faults():
            assert fetch(cuda.xp.arange(3)).tolist() == [0, 1, 2]
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert handled == [1]
