"""Leave GPU tests out where there is no GPU, and say so in one line."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

_left_out = pytest.StashKey[int]()


@cache
def no_device() -> str:
    """Why no GPU test can run here; empty where they can."""
    from longwall.kernels import EngineUnavailable
    from longwall.kernels.cuda.runtime.device import open_device

    try:
        open_device()
    except EngineUnavailable as reason:
        return str(reason)
    return ""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tests = [item for item in items if item.get_closest_marker("gpu")]
    if not tests or not no_device():
        return
    items[:] = [item for item in items if not item.get_closest_marker("gpu")]
    config.hook.pytest_deselected(items=tests)
    config.stash[_left_out] = len(tests)
    if hasattr(config, "workeroutput"):  # a worker of pytest-xdist
        config.workeroutput["left_out"] = len(tests)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[_left_out] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left_out = config.stash.get(_left_out, 0)
    if left_out:
        terminalreporter.write_line(f"{left_out} GPU tests were left out: {no_device()}")
