"""A run is spread over the GPUs of a machine, one process for each, and gives what it gives on one."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from breakable import EDGES, LABELS, answer
from run_configs import config_of, write_edges

import longwall
from longwall.kernels.cuda.runtime.open_device import open_device
from longwall.kernels.interface.engine import EngineUnavailable
from longwall.pipeline.cluster.connect import connected
from longwall.pipeline.cluster.devices import devices_of
from longwall.pipeline.cluster.handshake import describe_workers, most_on_a_device
from longwall.pipeline.config import load_config
from longwall.storage.errors import InputError, RunError

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'longwall[cluster]'")
# What Dask leaves behind must not disturb other tests of the same process.
pytestmark = [pytest.mark.filterwarnings("default")]
SPREAD = ["count by search", "listing", "triangles per vertex", "frequent patterns"]


@pytest.fixture
def a_device() -> None:
    """A GPU, or the emulator's."""
    try:
        open_device()
    except EngineUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def two_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two GPUs: those of the machine, or the emulator's."""
    cupy = pytest.importorskip("cupy", reason="no GPU: CuPy is not installed")
    if hasattr(cupy, "emulated"):
        monkeypatch.setenv("LONGWALL_EMULATOR_DEVICES", "2")  # for the workers
        monkeypatch.setattr(cupy.cuda.runtime, "visible", [0, 1])
    elif cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there are no two GPUs")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_edges(tmp_path, EDGES, LABELS)
    return tmp_path


def config(folder: Path, of: str, name: str, engine: dict[str, Any], **scheduler: Any) -> dict[str, Any]:
    found = config_of(folder, of, name, folder / "runs", **scheduler)
    found["memory"] |= {"host": "2GiB", "device": "256MiB"}
    return found | {"engine": engine}


def workers_of(path: Path) -> set[str]:
    """The workers that did something."""
    import pyarrow.parquet as pq

    stages = pq.read_table(path / "metrics.parquet").column("stage").to_pylist()
    return {stage.removeprefix("ranges of ") for stage in stages if stage.startswith("ranges of ")}


@pytest.mark.gpu
@pytest.mark.cluster
@pytest.mark.parametrize("kind", SPREAD)
def test_all_devices_give_what_one_gives(two_devices: None, folder: Path, kind: str) -> None:
    one = longwall.run(config(folder, kind, "one", {"kind": "cuda"}))
    every = longwall.run(config(folder, kind, "every", {"kind": "cuda", "devices": "all"}))
    assert answer(every.path) == answer(one.path)
    assert every.engine == "cuda"
    assert json.loads((every.path / "manifest.json").read_text())["engine"] == {"name": "cuda", "device": "2 devices"}
    assert not workers_of(one.path)
    assert workers_of(every.path) <= {"worker 0 (device 0)", "worker 1 (device 1)"}


@pytest.mark.gpu
@pytest.mark.cluster
def test_a_list_of_devices_is_what_a_run_gets(two_devices: None, folder: Path) -> None:
    result = longwall.run(config(folder, "cliques", "second", {"devices": [1]}))
    assert result.engine == "cuda"
    assert workers_of(result.path) == {"worker 0 (device 1)"}


@pytest.mark.gpu
@pytest.mark.cluster
def test_workers_of_a_cluster_take_turns_with_the_devices(two_devices: None, folder: Path) -> None:
    spec = load_config(config(folder, "cliques", "any", {}, kind="dask", workers=3))
    with connected(spec.scheduler, 2, str(folder), devices_of(spec)) as client:
        found = describe_workers(client, "auto")
    assert len({worker["device"] for worker in found.values()}) == 2
    assert most_on_a_device(found) == 2


@pytest.mark.gpu
@pytest.mark.cluster
def test_workers_whose_device_does_not_work_do_not_go_on_with_a_thread_each(
    two_devices: None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longwall.kernels.cuda.runtime.open_device.visible_devices", lambda: ["none", "neither"])
    with pytest.raises(InputError, match=r'engine.kind = "cuda": '):
        longwall.run(config(folder, "cliques", "refused", {}, kind="dask"))


@pytest.mark.gpu
@pytest.mark.cluster
def test_workers_with_and_without_a_device_mix(two_devices: None, folder: Path) -> None:
    shared = {"host": "127.0.0.1", "nthreads": 1, "memory_limit": None, "dashboard": False}
    started = {
        name: {"cls": distributed.Nanny, "options": shared | {"env": {"CUDA_VISIBLE_DEVICES": devices}}}
        for name, devices in (("with", "1"), ("without", ""))
    }
    options = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    scheduler = {"cls": distributed.Scheduler, "options": options}
    with distributed.SpecCluster(workers=started, scheduler=scheduler) as cluster:
        address = cluster.scheduler_address
        with distributed.Client(cluster, set_as_default=False) as client:
            devices = [worker["device"] for worker in describe_workers(client, "auto").values()]
        assert sorted(device is None for device in devices) == [False, True]
        mixed = longwall.run(config(folder, "listing", "mixed", {}, kind="dask", address=address))
    local = longwall.run(config(folder, "listing", "local", {"kind": "cpu"}))
    assert answer(mixed.path) == answer(local.path)
    assert mixed.engine in ("cpu+cuda", "cpu", "cuda")  # one may be so slow that the other does it all


@pytest.mark.gpu
def test_one_visible_device_needs_no_workers(a_device: None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    for name, devices in (("all", "all"), ("first", [0])):
        result = longwall.run(config(folder, "cliques", name, {"kind": "cuda", "devices": devices}))
        assert result.engine == "cuda"


@pytest.mark.gpu
@pytest.mark.cluster
def test_a_run_goes_on_with_another_number_of_devices(
    two_devices: None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = longwall.pipeline.run_store.commit_log.CommitLog.append

    def failing(*arguments: Any) -> None:
        append(*arguments)
        raise RunError("the disk went away")

    monkeypatch.setattr(longwall.pipeline.run_store.commit_log.CommitLog, "append", failing)
    with pytest.raises(RunError, match="the disk went away"):
        longwall.run(config(folder, "listing", "run", {"kind": "cuda", "devices": "all"}))
    monkeypatch.setattr(longwall.pipeline.run_store.commit_log.CommitLog, "append", append)
    result = longwall.resume(folder / "runs" / "run", overrides=["engine.devices=[0]"])
    one = longwall.run(config(folder, "listing", "one", {"kind": "cuda"}))
    assert answer(result.path) == answer(one.path)


@pytest.mark.gpu
def test_a_device_that_is_not_there_is_refused(a_device: None, folder: Path) -> None:
    with pytest.raises(InputError, match="there is no device 99"):
        longwall.run(config(folder, "cliques", "refused", {"devices": [0, 99]}))
    assert not (folder / "runs" / "refused").exists()


def test_without_a_gpu_devices_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(InputError, match=r"engine\.devices: CuPy is not installed"):
        longwall.run(config(folder, "cliques", "refused", {"devices": "all"}))
    assert not (folder / "runs" / "refused").exists()


@pytest.mark.parametrize(
    ("engine", "scheduler", "said"),
    [
        ({"devices": "both"}, {}, "a list of different numbers"),
        ({"devices": []}, {}, "a list of different numbers"),
        ({"devices": [0, 0]}, {}, "a list of different numbers"),
        ({"devices": [-1]}, {}, "a list of different numbers"),
        ({"devices": [True]}, {}, "a list of different numbers"),
        ({"devices": "all", "kind": "cpu"}, {}, "uses no device"),
        ({"devices": "all"}, {"kind": "dask", "address": "tcp://127.0.0.1:1"}, "use the GPUs that they see"),
    ],
)
def test_devices_that_cannot_be_meant_are_refused(
    folder: Path, engine: dict[str, Any], scheduler: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        load_config(config(folder, "cliques", "refused", engine, **scheduler))


def test_devices_survive_the_way_through_toml(folder: Path) -> None:
    for devices in ("all", [0, 2]):
        spec = load_config(config(folder, "cliques", "any", {"devices": devices}))
        assert load_config(spec.to_dict()) == load_config(tomllib.loads(spec.to_toml())) == spec
