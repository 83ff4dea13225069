"""One opener: options name their budgets, processes share them, and the engine says what memory it works in."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from budgets import make_budgets

from longwall.kernels import select_engine
from longwall.storage.errors import InputError
from longwall.storage.memory import resources as module
from longwall.storage.memory.reservations import BudgetExceeded
from longwall.storage.memory.resources import (
    CALL_OPTIONS,
    COMMAND_OPTIONS,
    EngineChoice,
    Resources,
    given_or_default,
    open_resources,
)
from longwall.storage.memory.spill_folder import SpillFolder


class Device:
    """What is asked of an engine with a memory of its own."""

    def __init__(self, free: int):
        self.memory = SimpleNamespace(free=lambda: free)


def on_device(tmp_path: Path, free: int, device: int | None = None) -> Resources:
    engine: Any = Device(free)
    return make_budgets(1000, 1000).at(SpillFolder(tmp_path), engine=engine, device=device)


def test_budgets_are_named_after_the_options(tmp_path: Path) -> None:
    with open_resources(host=10, disk=20, spill=tmp_path) as opened:
        assert (opened.host.option, opened.host.limit) == ("memory.host", 10)
        assert (opened.disk.option, opened.disk.limit) == ("memory.disk", 20)
        assert opened.limits() == {"device": None, "host": 10, "disk": 20}
        assert opened.spill.advice == "choose another memory.spill, or raise memory.host"
    with open_resources(host=10, disk=20, spill=tmp_path, options=COMMAND_OPTIONS) as opened:
        with pytest.raises(BudgetExceeded, match=r"--memory = 10 B has 10 B left: raise --memory$"):
            opened.host.reserve(11, "a table")
        with pytest.raises(BudgetExceeded, match=r"--disk = 20 B has 20 B left: raise --disk$"):
            opened.disk.reserve(21, "a run")
        assert opened.spill.advice == "choose another --spill, or raise --memory"


def test_processes_share_the_budgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "select_engine", lambda *choice: Device(900))
    options: dict[str, Any] = {"host": 100, "disk": 200, "spill": tmp_path, "engine": EngineChoice("cuda")}
    limits = {"host": 25, "disk": 50}
    assert open_resources(**options, processes=4).limits() == limits | {"device": None}
    assert open_resources(**options, processes=4, per_device=3).limits() == limits | {"device": 300}
    assert open_resources(**options, processes=4, per_device=3, device=600).limits() == limits | {"device": 200}


def test_an_engine_that_does_not_work_names_the_option() -> None:
    for options, name in ((module.CONFIG_OPTIONS, "engine.kind"), (CALL_OPTIONS, "engine")):
        with pytest.raises(InputError, match=f'^{name} = "abacus": there is no such engine'):
            open_resources(engine=EngineChoice("abacus"), options=options)


def test_the_engine_of_the_host_computes_in_the_budget_of_the_host(tmp_path: Path) -> None:
    given = make_budgets(1000, 1000).at(SpillFolder(tmp_path), engine=select_engine("cpu", 1), device=5)
    assert given.work is given.host
    assert not given.on_device
    assert given.device_bytes() is None


def test_a_device_has_a_budget_of_its_own(tmp_path: Path) -> None:
    whole = on_device(tmp_path, 1 << 20)
    assert whole.on_device
    assert (whole.work.option, whole.work.limit) == ("memory.device", int(0.9 * (1 << 20)))
    part = on_device(tmp_path, 1 << 20, 64 << 10)
    assert part.work.limit == 63 << 10  # the driver rounds
    part.work.charge(1 << 10, "a graph")
    assert part.work.free == 62 << 10
    assert part.host.used == 0


def test_a_device_with_less_than_its_budget_is_noted(tmp_path: Path) -> None:
    assert on_device(tmp_path, 2 << 20).device_note() == on_device(tmp_path, 2 << 20, 1 << 20).device_note() == ""
    assert on_device(tmp_path, 1 << 20, 1 << 20).device_note() == (
        "the device has 922 KiB free for arrays, less than memory.device = 1 MiB: the run works with that"
    )


def test_another_budget_of_the_host_leaves_the_rest(tmp_path: Path) -> None:
    given = on_device(tmp_path, 1000)
    share = make_budgets(7).host
    part = given.with_host(share)
    assert (part.host, part.disk, part.spill, part.engine) == (share, given.disk, given.spill, given.engine)


def test_given_resources_are_used_and_stay_open(tmp_path: Path) -> None:
    given = make_budgets(10, 10).at(SpillFolder(tmp_path / "spill"))
    with given_or_default(given) as used:
        assert used is given
        folder = used.spill.path
    assert folder.is_dir()
    with given:
        pass
    assert not folder.exists()


def test_what_is_in_use_of_each_budget(tmp_path: Path) -> None:
    resources = on_device(tmp_path, free=1000)
    resources.host.charge(7, "a table")
    resources.disk.charge(5, "a chunk")
    assert resources.in_use() == {"host": 7, "disk": 5}, "asking does not measure the device"
    resources.work.charge(3, "an array")
    assert resources.in_use() == {"host": 7, "disk": 5, "device": 3}
    with open_resources(host=10, disk=20, spill=tmp_path) as opened:
        assert opened.work is opened.host
        assert opened.in_use() == {"host": 0, "disk": 0}
