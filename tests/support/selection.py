"""Select tests: which are quick, slow or long, and which are left out.

A test that takes more than about a second on a core is `slow`, such as one that kills runs, fills
disks, or starts a cluster. Of each kind of them one case stays among the quick ones: `quick_cases(n)` marks all cases
of a test as slow but the first n ones, of the GPU and of the CPU each.
If slow tests are left out, tests of hypothesis draw fewer examples, and so do tests with the fixture `seeds`; the part
`examples` of `.ci/full` draws all.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import is_hypothesis_test, settings

# No example fails for want of time: the machine may be busy, and the first one compiles kernels.
settings.register_profile("longwall", settings.get_profile(settings.get_current_profile_name()), deadline=None)
settings.load_profile("longwall")

_left_out = pytest.StashKey[int]()
_SHARE, _LEAST = 8, 4  # of the examples that are drawn where slow tests are left out


@cache
def no_device() -> str:
    """Why no GPU test can run here; empty where they can."""
    from longwall.kernels.cuda.runtime.open_device import open_device
    from longwall.kernels.interface.engine import EngineUnavailable

    try:
        open_device()
    except EngineUnavailable as reason:
        return str(reason)
    return ""


@cache
def emulated() -> bool:
    """Whether the device is the emulator of `tests/emulator`."""
    try:
        import cupy
    except ImportError:
        return False
    return hasattr(cupy, "emulated")


def on_device(value: Any, emulated_value: Any, gpu_value: Any = None) -> Any:
    """The value; others for the emulator, a hundred times as slow, and for a GPU if each example compiles kernels."""
    if emulated():
        return emulated_value
    return value if gpu_value is None or find_spec("cupy") is None else gpu_value


@pytest.fixture(scope="session")
def seeds(pytestconfig: pytest.Config) -> Callable[[int], range]:
    """Of ``seeds(60)`` draw the cases of a test: the first ones where slow tests are left out."""
    return lambda number: range(_share_of(number) if _only_quick(pytestconfig) else number)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--first-cases", action="store_true", help="run one case of each test function only, the first")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Run quick tests in a process more than there are cores: some wait for other processes."""
    return len(os.sched_getaffinity(0)) + 1 if _only_quick(config) else None


def _mark_slow(items: Iterable[pytest.Item]) -> None:
    cases: Counter[tuple[str, bool]] = Counter()
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker("slow")
        if quick := item.get_closest_marker("quick_cases"):
            test = item.nodeid.partition("[")[0], item.get_closest_marker("gpu") is not None
            cases[test] += 1
            if cases[test] > quick.args[0]:
                item.add_marker("slow")


def _draw_fewer(tests: Iterable[Any]) -> None:
    """Let tests of hypothesis draw fewer examples."""
    for test in tests:
        test = getattr(test, "__func__", test)
        if is_hypothesis_test(test):
            all_of_them = test._hypothesis_internal_use_settings
            fewer = _share_of(all_of_them.max_examples)
            test._hypothesis_internal_use_settings = settings(all_of_them, max_examples=fewer)


def _share_of(examples: int) -> int:
    """Return the number of examples that are drawn where slow tests are left out."""
    return min(examples, max(examples // _SHARE, _LEAST))


def _only_quick(config: pytest.Config) -> bool:
    return "not slow" in config.option.markexpr


def _keep_first_cases(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave one case of each test function, of those that the options select."""
    first = {item.nodeid.partition("[")[0]: item for item in reversed(items)}
    others = [item for item in items if first[item.nodeid.partition("[")[0]] is not item]
    items[:] = reversed(first.values())
    config.hook.pytest_deselected(items=others)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    _mark_slow(items)
    _choose(config, items)
    yield  # pytest selects by marks
    if config.option.first_cases:
        _keep_first_cases(config, items)


def _choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "seeds" in getattr(item, "fixturenames", ()):
            item.add_marker("hypothesis")
    if _only_quick(config):
        _draw_fewer({item.obj for item in items if isinstance(item, pytest.Function)})
    tests = [item for item in items if item.get_closest_marker("gpu")]
    if not tests:
        return
    if no_device():
        items[:] = [item for item in items if not item.get_closest_marker("gpu")]
        config.hook.pytest_deselected(items=tests)
        config.stash[_left_out] = len(tests)
        if hasattr(config, "workeroutput"):  # a worker of pytest-xdist
            config.workeroutput["left_out"] = len(tests)
    elif emulated():
        for item in tests:
            if marker := item.get_closest_marker("real_gpu"):
                item.add_marker(pytest.mark.skip(reason=f"not on the emulator: {marker.args[0]}"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Send all tests of a file to one worker: what the file starts, such as warm processes, is started once then.

    ``--dist`` with anything else than its default ``load`` has its usual meaning.
    """
    if config.getvalue("dist") != "load":
        return None
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False  # files of few tests are the long ones, and come first in the order of names
    return LoadFileScheduling(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[_left_out] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left_out = config.stash.get(_left_out, 0)
    if left_out:
        terminalreporter.write_line(f"{left_out} GPU tests were left out: {no_device()}")
