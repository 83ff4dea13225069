"""The table of kernels that first runs compile beside them is what runs call; nothing is started in later runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import first_runs
import pytest
from first_runs import CASES, Called, Case
from run_configs import run_config

from longwall.kernels import compile_ahead
from longwall.kernels.jit import Kernel
from longwall.kernels.machine_code import describe_types, types_of
from longwall.pipeline.ahead import host_kernels
from longwall.pipeline.ahead.host_kernels import HostKernels, compiling_ahead
from longwall.pipeline.config import load_config
from longwall.storage.memory.resources import EngineChoice, open_resources


@cache
def table() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(first_runs.TABLE.read_text())
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("graphs")
    first_runs.prepare(made)
    return made


@pytest.fixture
def do(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with first_runs.recording(monkeypatch.setattr) as made:
        yield made


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_table_has_what_a_run_calls(do: Any, folder: Path, case: Case) -> None:
    """If this fails, write the table anew: see `first_runs`."""
    names, called = do(case, folder)
    for part in first_runs.parts_of(case):
        rows = table()[part][names[part]]
        assert wanted(called, part) <= {kernel(key) for key in rows}
        if part != "plan":  # several cases share the row of a kind of plan
            assert wanted(called, part) == {kernel(key) for key in rows}


def wanted(called: Called, part: str) -> set[tuple[str, str, str]]:
    return set(called[part])


def kernel(key: str) -> tuple[str, str, str]:
    module, _, name = key.partition(" ")[0].rpartition(".")
    return module, name, table()["kernels"][key][0]


def test_every_kernel_of_the_table_is_there() -> None:
    used = {key for part in ("graph", "work", "plan") for row in table()[part].values() for key in row}
    assert used == table()["kernels"].keys()
    for key in used:
        module, name, kinds = kernel(key)
        __import__(module)
        assert isinstance(getattr(sys.modules[module], name), Kernel)
        assert describe_types(types_of(kinds)) == kinds


def config(folder: Path, **workload: Any) -> Any:
    return load_config(run_config(folder, {"path": str(folder / "edges.txt")}, workload, run={"name": "run"}))


class _Compiling:
    def instead(self, kernels: Any) -> None:
        self.kernels = [(one.name, one.size > 0) for one in kernels]


class _Plan:
    def __init__(self, kind: str):
        self.kind = kind

    def to_dict(self) -> dict[str, str]:
        return {"kind": self.kind}


def test_a_plan_takes_the_place_of_what_was_expected(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longwall.kernels.kernel_cache.missing", lambda kernels: list(range(len(list(kernels)))))
    kernels = HostKernels(config(folder, kind="match", pattern="house"), on_host=True)
    names = [one.name for one in kernels.missing()]
    assert names[0] == "parse_lines"
    assert names.index("hash_segments") < names.index("run_rows")
    compiling: Any = _Compiling()
    kernels.start(compiling)
    kernels.planned(_Plan("homomorphisms"))
    assert compiling.kernels.index(("run_rows", True)) < compiling.kernels.index(("count_wheels", False))
    kernels.planned(_Plan("triangle pairs"))
    assert compiling.kernels == [("count_diamonds", False)]
    kernels.planned(_Plan("of another kind"))
    assert compiling.kernels == []


def test_only_graphs_are_read_on_the_host_where_there_is_a_device(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longwall.kernels.kernel_cache.missing", lambda kernels: list(range(len(list(kernels)))))
    kernels = HostKernels(config(folder, kind="match", pattern="house"), on_host=False)
    assert [one.name for one in kernels.missing()][-1] == "hash_segments"


@pytest.mark.parametrize(
    ("absent", "idle", "memory", "helpers"),
    [
        (20, 2, 1 << 33, 2),
        (20, 64, 1 << 40, 4),
        (1, 8, 1 << 40, 1),
        (0, 8, 1 << 40, 0),
        (20, 0, 1 << 40, 0),
        (20, 8, 3 << 30, 1),
        (20, 8, 1 << 30, 0),
    ],
)
def test_processes_are_as_many_as_pay_off(
    folder: Path, monkeypatch: pytest.MonkeyPatch, absent: int, idle: int, memory: int, helpers: int
) -> None:
    started = []

    class Pretended(compile_ahead.CompilingAhead):
        def __init__(self, kernels: Any, helpers: int, when_done: Any) -> None:
            started.append(helpers)
            super().__init__([], 0, when_done)

    monkeypatch.setattr(
        "longwall.kernels.kernel_cache.missing", lambda kernels: list(range(len(list(kernels))))[:absent]
    )
    monkeypatch.setattr(compile_ahead, "CompilingAhead", Pretended)
    monkeypatch.setattr(host_kernels, "idle_cores", lambda: idle)
    resources = open_resources(host=memory, disk=1 << 20, spill=folder / "spill", engine=EngineChoice("cpu"))
    with compiling_ahead(config(folder, kind="match", pattern="house"), resources):
        pass
    assert started == ([helpers] if helpers else [])
    assert resources.host.used == 0


FIRST = """
import sys
from longwall.pipeline.ahead import host_kernels
host_kernels.idle_cores = lambda: 2
import longwall.kernels.compile_ahead as ahead
started, start = [], ahead.CompilingAhead.__init__
ahead.CompilingAhead.__init__ = lambda self, *words: (started.append(1), start(self, *words))[0]
import longwall
result = longwall.run(
    {"graph": {"path": sys.argv[1]}, "workload": {"kind": "triangles"}, "engine": {"kind": "cpu"},
     "memory": {"host": "4GiB"}, "run": {"directory": sys.argv[2], "overwrite": True, "name": "first"}}
)
print(result.count, len(started), "numba" in sys.modules)
"""


@pytest.mark.slow
def test_a_first_run_needs_no_numba_and_later_ones_no_processes(folder: Path, tmp_path: Path) -> None:
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "NUMBA_CACHE_DIR": ""}
    found = [
        subprocess.run(
            [sys.executable, "-c", FIRST, str(folder / "edges.txt"), str(tmp_path / "runs")],
            env=environment, capture_output=True, text=True, check=True, timeout=240,
        ).stdout.split()
        for _ in range(2)
    ]  # fmt: skip
    assert found[0][0] == found[1][0]
    assert [words[1:] for words in found] == [["1", "False"], ["0", "False"]]
