"""A cluster whose machines share nothing but a URL gives what one process gives."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from breakable import EDGES, LABELS, LIMIT, answer
from kill import left_in
from rig import killing, local_cluster
from run_configs import config_of, write_edges

import longwall
from longwall.pipeline.cluster import connect, dispatcher
from longwall.pipeline.cluster.cluster_workers import open_on_workers
from longwall.pipeline.run_store.commit_log import CommitLog
from longwall.storage.errors import RunError

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'longwall[cluster]'")
# Slow, too: what Dask leaves behind must not disturb other tests of the same process.
pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.filterwarnings("default")]
SOME = ["count by search", "triangles per vertex", "frequent patterns", "listing", "listing by levels"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_edges(tmp_path, EDGES, LABELS)
    return tmp_path


@pytest.fixture(autouse=True)
def apart(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers spill elsewhere than the coordinator, and its folder is in nothing that they get."""

    def opened(client: Any, header: Any) -> None:
        header["config"]["memory"]["spill"] = str(folder / "spill of workers")
        assert str(folder / "spill") + "/" not in str(header)
        open_on_workers(client, header)

    monkeypatch.setattr(connect, "open_on_workers", opened)


def config(folder: Path, kind: str, name: str, **scheduler: Any) -> dict[str, Any]:
    return config_of(folder, kind, name, f"file://{folder}/urls" if scheduler else str(folder / "runs"), **scheduler)


def local(folder: Path, kind: str) -> dict[str, Any]:
    path = folder / "runs" / "local"
    return answer(path if path.exists() else Path(longwall.run(config(folder, kind, "local")).path))


def check(folder: Path, kind: str) -> None:
    """The run is done and right; a worker that comes late may still send a file that no commit names."""
    run = folder / "urls" / "cluster"
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["status"] == "done"
    assert {file.name for file in (run / "results").iterdir()} == manifest["results"].keys()
    assert left_in(folder / "spill") == []
    assert answer(run) == local(folder, kind)


@pytest.mark.parametrize("kind", SOME)
def test_a_cluster_that_shares_only_a_url_gives_what_one_process_gives(cluster: Any, folder: Path, kind: str) -> None:
    result = longwall.run(config(folder, kind, "cluster", address=cluster.scheduler_address))
    check(folder, kind)
    assert result.path == f"file://{folder}/urls/cluster"


def test_a_limit_holds_on_a_cluster_that_shares_only_a_url(cluster: Any, folder: Path) -> None:
    result = longwall.run(config(folder, "listing with a limit", "cluster", address=cluster.scheduler_address))
    rows = [tuple(row.values()) for row in result.table().to_pylist()]
    assert len(rows) == len(set(rows)) == result.count == LIMIT
    assert set(rows) <= set(local(folder, "listing")["embeddings"])


def test_a_task_that_is_done_twice_counts_once_at_a_url(
    cluster: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "_LATE", 0.0)
    longwall.run(config(folder, "listing", "cluster", address=cluster.scheduler_address))
    check(folder, "listing")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["listing", "frequent patterns"])
def test_workers_that_are_killed_change_nothing_at_a_url(folder: Path, kind: str) -> None:
    with local_cluster(2) as made, killing(made, random.Random(kind), 3):
        longwall.run(config(folder, kind, "cluster", address=made.scheduler_address, retries=100))
    check(folder, kind)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["listing by levels", "triangles per vertex"])
def test_a_run_at_a_url_goes_on_on_other_workers(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, committed = local_cluster(2), threading.Event()
    append = CommitLog.append

    def watched(*arguments: Any) -> None:
        append(*arguments)
        if not committed.is_set():
            committed.set()
            first.close()

    with monkeypatch.context() as patch:
        patch.setattr(dispatcher, "_COMMIT_SECONDS", 0.0)
        patch.setattr(CommitLog, "append", watched)
        with pytest.raises(RunError, match="longwall resume file://"):
            longwall.run(config(folder, kind, "cluster", address=first.scheduler_address))
    with local_cluster(1) as other:
        longwall.resume(
            f"file://{folder}/urls/cluster",
            overrides=[f"scheduler.address={other.scheduler_address}", f"memory.spill={folder / 'elsewhere'}"],
        )
    check(folder, kind)
