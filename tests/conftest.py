"""What several test files share: the modules beside this one, the engines, the real graphs, a run in memory."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

# `import naive`: pytest's importlib mode adds no folder
_TESTS = Path(__file__).parent
sys.path[:0] = [str(_TESTS), str(_TESTS / "support"), str(_TESTS.parent / "docs" / "generate")]

pytest_plugins = ["selection", "device_turns"]

# Background jobs of shells ignore SIGINT, and commands under nohup SIGHUP; some tests send them.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

# No test cuts the power of this process: thousands of waits for the disk would show nothing. Children do wait.
os.fsync = lambda descriptor: os.fstat(descriptor) and None

if TYPE_CHECKING:
    from longwall.kernels.interface.engine import Engine
    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.storage.graph.graph import Graph

DATA = Path(os.environ.get("LONGWALL_DATA", Path(__file__).parents[2] / "shared" / "data"))


_folders: list[Path] = []  # of runs: at exit would be too late, as processes of xdist end without it


def pytest_sessionfinish() -> None:
    """Remove the folders of runs, and keep sockets that Dask leaves open, in cycles, out of the last collection.

    There a warning is an error.
    """
    for folder in _folders:
        shutil.rmtree(folder, ignore_errors=True)
    gc.freeze()


_started = itertools.count()  # tests


def pytest_runtest_logstart() -> None:
    """Collect the garbage of the last test, and set all other objects apart.

    Runs that failed, and engines, collect garbage, and would look through a million objects of modules each time: a
    fifth of the time of quick tests. Objects that outlive the test that made them are collected every 100 tests.
    """
    if next(_started) % 100 == 0:
        gc.unfreeze()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _no_compile_notice() -> Iterator[None]:
    """Keep standard error the same whether kernels are compiled or loaded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("longwall.kernels.jit.compile_notice.SECONDS", float("inf"))
        yield


@pytest.fixture(scope="session", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def engine_kind(request: pytest.FixtureRequest) -> str:
    """Each engine in turn."""
    kind: str = request.param
    return kind


@pytest.fixture(scope="session")
def engine(engine_kind: str) -> Engine:
    """Each engine, with one thread."""
    from engines import make_engine

    return make_engine(engine_kind)


@pytest.fixture
def cuda() -> Engine:
    """A CUDA engine of its own, for tests of device memory."""
    from engines import make_engine

    gc.collect()  # otherwise arrays of earlier tests leave the device during this one
    return make_engine("cuda")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real graphs with known answers."""
    if not DATA.is_dir():
        pytest.skip(f"no real graphs in {DATA}; set LONGWALL_DATA")
    return DATA


@pytest.fixture(scope="session")
def launch() -> Iterator[Any]:
    """Start commands in forks of one process, which has imported everything: a `kill.Launcher`."""
    from kill import Launcher

    with Launcher() as made:
        yield made


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A Dask cluster on loopback: as many workers as the parameter says, 2 without one."""
    from rig import local_cluster

    with local_cluster(getattr(request, "param", 2)) as made:
        yield made


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A file system of fsspec that is in memory; runs may be there, which they may not elsewhere."""
    monkeypatch.setattr("longwall.pipeline.run_store.run_place._FLEETING", frozenset())
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'longwall[cluster]'")
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def set_page_size(patch: pytest.MonkeyPatch, size: int) -> None:
    """Let pages of adjacencies have so many bytes."""
    patch.setattr("longwall.storage.pages.paged_graph.PAGE_BYTES", size)
    patch.setattr("longwall.storage.pages.paged_graph._LEAST_PAGE_BYTES", size)


def set_free_writers(patch: pytest.MonkeyPatch) -> None:
    """Let writers of Parquet take next to nothing of a budget, so that small ones run short of room for chunks."""
    patch.setattr("longwall.stages.export._PLAIN_BYTES", 0)
    patch.setattr("longwall.stages.export._METADATA_BYTES", 1)


def make_graph(edges: Any, labels: dict[int, int] | None = None) -> Graph:
    """A data graph from pairs of ids, and a dict from id to label."""
    from longwall.storage.ingest.build import build_graph

    ends = np.array(list(edges), dtype=np.int64).reshape(-1, 2)
    if labels is None:
        return build_graph(ends[:, 0], ends[:, 1])
    pairs = np.array(sorted(labels.items()), dtype=np.int64).reshape(-1, 2)
    return build_graph(ends[:, 0], ends[:, 1], vertex_labels=(pairs[:, 0], pairs[:, 1]))


def make_context(
    graph: Graph,
    *,
    engine: str = "cpu",
    threads: int = 1,
    folder: Path | None = None,
    host: int = 1 << 30,
    device: int | None = None,
    **sections: dict[str, Any],
) -> Coordinator:
    """What a workload is given by a run, without the run: `folder` is the run's folder."""
    from longwall.pipeline.config import load_config
    from longwall.pipeline.execution.coordinator import Coordinator
    from longwall.pipeline.execution.environment import Metrics
    from longwall.pipeline.execution.thread_executor import ThreadExecutor
    from longwall.pipeline.run_store.commit_log import CommitLog
    from longwall.pipeline.run_store.local_store import LocalStore
    from longwall.pipeline.run_store.run_files import RunFiles
    from longwall.storage.memory.resources import EngineChoice, open_resources
    from longwall.storage.observer import NullObserver

    plain = {"graph": {"path": "unused"}, "workload": {"kind": "triangles"}, "run": {"name": "unused"}}
    # Commits wait for the disk; in memory they cost nothing.
    shared = Path("/dev/shm")
    own = folder or Path(tempfile.mkdtemp(prefix="longwall-test-", dir=shared if shared.is_dir() else None))
    if folder is None:
        _folders.append(own)
    resources = open_resources(
        host=host, disk=1 << 30, device=device, spill=own / "spill", engine=EngineChoice(engine, threads)
    )
    resources.host.charge(graph.nbytes, "the graph")
    (own / "results.partial").mkdir(exist_ok=True)
    log = CommitLog(LocalStore(own))
    log.restore(resources.disk)
    return Coordinator(
        spec=load_config(plain | sections),
        graph=graph,
        resources=resources,
        files=RunFiles(log.store, resources.disk, log.next_number),
        observer=NullObserver(),
        cancel=threading.Event(),
        log=log,
        metrics=Metrics(),
        executor=ThreadExecutor(),
    )


def settle() -> None:
    """Wait for what goes away by itself: threads that read ahead hold tables for a moment longer than their readers."""
    gc.collect()
    for thread in threading.enumerate():
        if thread.name.startswith("read-ahead"):
            thread.join(60)
    gc.collect()


@pytest.fixture(scope="session")
def lab() -> SimpleNamespace:
    """`lab.graph(...)`, `lab.context(...)` and `lab.settle()`: see `make_graph`, `make_context` and `settle`."""
    return SimpleNamespace(graph=make_graph, context=make_context, settle=settle)
