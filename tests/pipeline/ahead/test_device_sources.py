"""What first runs compile for a device beside them is what they need there, and nothing is compiled twice."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import first_device_runs
import pytest
from first_device_runs import SOURCES, WORK, WORK_ON_A_PART
from run_configs import run_config
from selection import emulated

from longwall.kernels import device_ahead
from longwall.kernels.cuda.runtime import compile as compiler
from longwall.kernels.cuda.runtime.compile import source_text
from longwall.pipeline.ahead.device_sources import sources_of
from longwall.pipeline.config import load_config


def config(**workload: Any) -> Any:
    return load_config(run_config(None, {"path": "unread"}, workload, engine={"kind": "auto"}, run={"name": "run"}))


def recorded(
    work: list[dict[str, Any]], folder: Path, patch: pytest.MonkeyPatch, *, of_a_part: bool = False
) -> tuple[str, list[tuple[str, str]]]:
    """The name of work in the table, and what it compiles."""
    if not emulated():
        pytest.skip("the table is that of the emulator")
    try:
        with first_device_runs.recording(patch.setattr) as do:
            return do(work, folder, of_a_part=of_a_part)
    finally:
        compiler.forget()


@pytest.mark.quick_cases(1)
@pytest.mark.gpu
@pytest.mark.parametrize("work", WORK, ids=[" ".join(map(str, work[0].values())) for work in WORK])
def test_the_table_has_what_a_run_compiles(
    work: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this fails, write the table anew: see `first_device_runs`."""
    name, sources = recorded(work, tmp_path, monkeypatch)
    assert sources_of(config(**work[0])) == sources
    assert name in json.loads(SOURCES.read_text())["work"]


@pytest.mark.gpu
@pytest.mark.parametrize("work", WORK_ON_A_PART, ids=[" ".join(map(str, work[0].values())) for work in WORK_ON_A_PART])
def test_the_table_has_what_a_run_on_a_part_of_a_graph_compiles(
    work: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, sources = recorded(work, tmp_path, monkeypatch, of_a_part=True)
    limited = load_config(
        {"graph": {"path": "unread"}, "workload": work[0], "memory": {"device": "1GiB"}, "run": {"name": "run"}}
    )
    also = sources_of(config(**work[0]))
    assert sources_of(limited) == [*sources, *(one for one in also if one not in sources)]
    assert "page_buffer.cu" in dict(sources)
    assert name in json.loads(SOURCES.read_text())["work"]


def test_every_source_of_the_table_is_there() -> None:
    table = json.loads(SOURCES.read_text())
    for sources in table["work"].values():
        for source, header in sources:
            text, _ = source_text(source, table["headers"][str(header)])
            assert "__global__" in text


def test_work_that_is_not_in_the_table_compiles_nothing_ahead() -> None:
    assert sources_of(config(kind="cliques", k=5)) != sources_of(config(kind="cliques", k=4)) != []
    assert sources_of(config(kind="cliques", k=9)) == []


class _Compiler:
    """A stand-in for CuPy's compilation of sources, which fails for one of them."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.may_end = threading.Event()

    def __call__(self, _device: int, name: str, _generated: str) -> str:
        self.made.append(name)
        assert self.may_end.wait(60)
        if name == "wrong.cu":
            raise RuntimeError(name)
        return f"module of {name}"


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> _Compiler:
    made = _Compiler()
    monkeypatch.setattr(compiler, "_compiled", made)
    monkeypatch.setattr(compiler, "_modules", {})
    return made


def joined() -> None:
    for thread in threading.enumerate():
        if thread.name == "compiling-for-device":
            thread.join(60)


def test_a_source_is_compiled_once_and_waited_for(stand_in: _Compiler) -> None:
    waited: list[int] = []
    with device_ahead.compiling_sources(0, [("one.cu", ""), ("two.cu", "")]):
        while not stand_in.made:
            pass
        release = threading.Timer(0.1, stand_in.may_end.set)
        release.start()
        assert compiler._module(0, "one.cu", "", lambda: waited.append(1)) == "module of one.cu"
        joined()
    assert stand_in.made == ["one.cu", "two.cu"]
    assert compiler._module(0, "two.cu", "", lambda: waited.append(2)) == "module of two.cu"
    assert compiler._module(0, "one.cu", "other", lambda: waited.append(3)) == "module of one.cu"
    assert waited == [1, 3]


def test_a_source_that_cannot_be_compiled_ahead_is_compiled_where_it_is_needed(stand_in: _Compiler) -> None:
    stand_in.may_end.set()
    with device_ahead.compiling_sources(0, [("wrong.cu", ""), ("two.cu", "")]):
        joined()
    assert stand_in.made == ["wrong.cu"]
    with pytest.raises(RuntimeError, match=r"wrong\.cu"):
        compiler._module(0, "wrong.cu", "", lambda: None)
    assert stand_in.made == ["wrong.cu", "wrong.cu"]


def test_what_has_not_been_begun_when_the_run_ends_is_left_alone(stand_in: _Compiler) -> None:
    with device_ahead.compiling_sources(0, [("one.cu", ""), ("two.cu", "")]):
        while not stand_in.made:
            pass
    stand_in.may_end.set()
    joined()
    assert stand_in.made == ["one.cu"]
