"""Rates of machines: measured once, kept, or read from a file."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cases import each_case

from longwall.kernels import select_engine
from longwall.pipeline.prediction import rates
from longwall.pipeline.prediction.rates import Rates, own_rates, read_rates
from longwall.storage.errors import InputError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(rates, "start_seconds", lambda *_: 0.5)  # it would compile kernels there
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "longwall" / "rates" / "rates.json"


def test_this_machine_is_measured_once(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, measured = select_engine("cpu"), []
    measure = rates.measure_rates

    def counted(*arguments: Any) -> dict[str, Any]:
        measured.append(1)
        return measure(*arguments)

    monkeypatch.setattr(rates, "measure_rates", counted)
    first = own_rates(engine, tmp_path)
    assert own_rates(engine, tmp_path) == first
    assert len(measured) == 1
    assert len(json.loads(cache.read_text())) == 1
    own_rates(engine, tmp_path, again=True)
    assert len(measured) == 2
    assert first.threads >= 1
    assert first.devices == 0
    assert 1e7 < first.steps < 1e11
    assert first.start_seconds == 0.5
    assert all(1e6 < rate < 1e13 for rate in (first.memory, first.disk_read, first.disk_write))
    assert not [path for path in tmp_path.iterdir() if path.name != "cache"]


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("content", ["", "[]", '{"x": 1}', "{"])
def test_a_cache_that_is_damaged_is_made_anew(cache: Path, tmp_path: Path, content: str) -> None:
    cache.parent.mkdir(parents=True, mode=0o700)
    cache.write_text(content)
    assert own_rates(select_engine("cpu"), tmp_path).steps > 1e7
    assert json.loads(cache.read_text())


def test_rates_that_are_kept_and_are_none_are_measured(cache: Path, tmp_path: Path) -> None:
    engine = select_engine("cpu")
    cache.parent.mkdir(parents=True, mode=0o700)
    cache.write_text(json.dumps({rates._key(engine): {"memory": 3e9, "later": 1}}))
    assert own_rates(engine, tmp_path) == Rates(threads=engine.workers, memory=3e9, start_seconds=0.5)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_are_those_of_the_engine(cache: Path, tmp_path: Path, threads: int) -> None:
    own_rates(select_engine("cpu", 2), tmp_path)
    assert own_rates(select_engine("cpu", threads), tmp_path).threads == threads


def test_a_start_that_was_not_measured_is_measured_later(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> float:
        raise subprocess.TimeoutExpired("longwall", 60)

    engine = select_engine("cpu")
    with monkeypatch.context() as patch:
        patch.setattr(rates, "start_seconds", fail)
        first = own_rates(engine, tmp_path)
        assert own_rates(engine, tmp_path) == first
    assert first.start_seconds == Rates().start_seconds
    assert own_rates(engine, tmp_path) == replace(first, start_seconds=0.5)
    assert json.loads(cache.read_text())[rates._key(engine)]["start_seconds"] == 0.5


def test_no_descriptor_stays_open(cache: Path, tmp_path: Path) -> None:
    engine = select_engine("cpu")
    own_rates(engine, tmp_path)
    before = len(list(Path("/proc/self/fd").iterdir()))
    own_rates(engine, tmp_path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.slow
def test_a_run_of_a_tiny_graph_is_timed(tmp_path: Path) -> None:
    assert 0.1 < rates.start_seconds("cpu", tmp_path) < 60
    assert not list(tmp_path.iterdir())


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("engine", ["cpu", "none"])
def test_a_process_that_does_not_start_is_not_measured(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "cpu":
        monkeypatch.setattr("sys.executable", str(tmp_path / "none"))
    with pytest.raises((OSError, subprocess.SubprocessError)):
        rates.start_seconds(engine, tmp_path)
    monkeypatch.setattr("sys.executable", str(tmp_path / "none"))
    assert "start_seconds" not in rates.measure_rates(select_engine("cpu"), tmp_path)


@pytest.mark.gpu
def test_the_link_is_measured_and_nothing_kept() -> None:
    xp = pytest.importorskip("cupy")
    pool = xp.get_default_memory_pool()
    pool.free_all_blocks()
    before = pool.total_bytes()
    rate = rates.link_rate(xp)
    assert rate is not None
    assert rate > 1e8
    assert pool.total_bytes() == before


@pytest.mark.gpu
def test_nothing_is_kept_of_a_link_that_cannot_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    xp = pytest.importorskip("cupy")
    locked = xp.get_default_pinned_memory_pool()
    before = locked.n_free_blocks()

    def refuse(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(xp, "empty", refuse)
    assert rates.link_rate(xp) is None
    assert locked.n_free_blocks() <= before


def test_a_file_that_is_not_there_is_one_of_rates(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.toml: there is no such file of rates; check the path$"):
        read_rates(tmp_path / "none.toml", Rates())


def test_a_file_replaces_some(tmp_path: Path) -> None:
    path = tmp_path / "rates.toml"
    path.write_text("threads = 16\nnetwork = 2.5e10\nrequest_seconds = 0\n")
    assert read_rates(path, Rates(link=7.0)) == Rates(threads=16, network=2.5e10, request_seconds=0, link=7.0)


@each_case(
    ("text", "message"),
    [
        (
            "netwrok = 1",
            r'rates.toml: netwrok: there is no such rate; did you mean "network"\? Choose one of threads, dev',
        ),
        ("network = 0", r"rates.toml: network: expected a number from 1 up, not 0"),
        ('network = "fast"', r"network: expected a number from 1 up, not fast"),
        ("threads = 1.5", r"threads: expected a whole number from 1 up, not 1.5"),
        ("devices = -1", r"devices: expected a whole number from 0 up, not -1"),
        ("steps = nan", r"steps: expected a finite number, not nan"),
        ("steps = true", r"steps: expected a number"),
        ("steps = ", r"not valid TOML"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "rates.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as raised:
        read_rates(path, Rates())
    assert "\n" not in str(raised.value)
