"""Inputs by URL: read as if they were here, copied inside the budget of the disk, and gone afterwards."""

from __future__ import annotations

import functools
import http.server
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from budgets import make_budgets
from kill import left_in
from run_configs import run_config
from stored import short_chunks
from typer.testing import CliRunner

import longwall
from longwall.pipeline.cli import app
from longwall.pipeline.config import load_config
from longwall.storage.errors import InputError
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.store_writer import write_graph
from longwall.storage.ingest.ingest import load_graph
from longwall.storage.memory.reservations import BudgetExceeded
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.remote.urls import is_url, on_disk

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'longwall[cluster]'")
EDGES = "1 2\n2 3\n3 1\n3 4\n"


@pytest.fixture
def store(tmp_path: Path, memory: Any) -> str:
    """The URL of a store."""
    (tmp_path / "edges.txt").write_text(EDGES)
    write_graph(load_graph(tmp_path / "edges.txt"), tmp_path / "graph.zarr")
    memory.put(str(tmp_path / "graph.zarr"), "/data/graph.zarr", recursive=True)
    return "memory://data/graph.zarr"


@pytest.fixture
def spill(tmp_path: Path) -> Iterator[SpillFolder]:
    with SpillFolder(tmp_path / "spill") as folder:
        yield folder


def test_urls_are_distinguished_from_paths() -> None:
    for url in ("s3://bucket/x", "memory://x", "file:///x", "simplecache::s3://bucket/x", "https://host/x.gz"):
        assert is_url(url)
    for path in ("x", "/x/y", "./s3:/x", "://x", Path("s3://bucket/x")):
        assert not is_url(path)


def test_a_store_is_read_from_a_url(store: str, tmp_path: Path, spill: SpillFolder) -> None:
    budget = make_budgets()
    there = load_graph(store, resources=budget.at(spill))
    here = load_graph(tmp_path / "graph.zarr")
    assert there.content_hash == here.content_hash
    assert there.indices.tolist() == here.indices.tolist()
    assert budget.disk.peak > 0
    assert budget.disk.free == budget.disk.limit
    assert list(spill.path.iterdir()) == []


def test_files_and_labels_are_read_from_urls(memory: Any, spill: SpillFolder) -> None:
    memory.pipe("/data/edges.txt", EDGES.encode())
    memory.pipe("/data/labels.txt", b"1 5\n2 6\n3 5\n4 7\n")
    graph = load_graph("memory://data/edges.txt", "memory://data/labels.txt", resources=make_budgets().at(spill))
    assert graph.num_edges == 4
    assert graph.stats.num_labels == 3


def test_folders_and_patterns_at_urls_are_one_graph(memory: Any, spill: SpillFolder) -> None:
    for number in range(3):
        memory.pipe(f"/data/parts/year={number}/part.txt", f"{number} {number + 1}\n".encode())
    memory.pipe("/data/parts/_SUCCESS", b"")
    for source in ("memory://data/parts", "memory://data/parts/*/part.txt"):
        assert load_graph(source, resources=make_budgets().at(spill)).num_edges == 3
    with pytest.raises(InputError, match=r"^memory://data/parts/\*\.csv: no file matches this pattern"):
        load_graph("memory://data/parts/*.csv", resources=make_budgets().at(spill))
    assert list(spill.path.iterdir()) == []


def test_a_bad_line_is_named_by_the_url(memory: Any, spill: SpillFolder) -> None:
    memory.pipe("/data/edges.txt", b"1 2\nthree 4\n")
    with pytest.raises(InputError, match=r"^memory://data/edges\.txt, line 2: "):
        load_graph("memory://data/edges.txt", resources=make_budgets().at(spill))
    assert list(spill.path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("memory://data/nothing.txt", "there is no such file"),
        ("nonsense://data/x", "cannot be read .*nonsense"),
        ("lacking://data/x", "a package for such URLs is missing: Install it"),
    ],
)
def test_what_cannot_be_read_is_said(
    url: str, said: str, memory: Any, spill: SpillFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(url: str) -> Any:
        raise ImportError("Install it")

    if url.startswith("lacking"):
        monkeypatch.setattr("fsspec.core.url_to_fs", lacking)
    with pytest.raises(InputError, match=said) as caught:
        load_graph(url, resources=make_budgets().at(spill))
    assert str(caught.value).startswith(url)
    assert len(str(caught.value).splitlines()) == 1


def test_a_copy_stays_inside_the_budget_of_the_disk(memory: Any, spill: SpillFolder) -> None:
    memory.pipe("/data/edges.txt", EDGES.encode() * 1000)
    budget = make_budgets(disk=5000)
    with pytest.raises(BudgetExceeded, match=r"memory\.disk"):
        load_graph("memory://data/edges.txt", resources=budget.at(spill))
    assert budget.disk.free == 5000
    assert list(spill.path.iterdir()) == []


def test_a_listing_cannot_write_outside_of_the_copy(
    store: str, memory: Any, spill: SpillFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(tmp_path.rglob("*"))
    for wrong in ("/data/graph.zarr/../../../evil", "/elsewhere/evil", "/data/graph.zarr/a/../../../../evil"):
        listing = ["/data/graph.zarr/zarr.json", wrong]
        memory.pipe(wrong, b"evil")
        monkeypatch.setattr(type(memory), "find", lambda *arguments, listing=listing, **options: listing)
        with pytest.raises(InputError, match="outside of the folder"), on_disk(store, make_budgets().at(spill)):
            pass
    spill.close()
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("kind", ["file", "local"])
def test_urls_of_this_machine_are_paths(kind: str, tmp_path: Path, spill: SpillFolder) -> None:
    (tmp_path / "edges.txt").write_text(EDGES)
    url = f"{kind}://{tmp_path}/edges.txt"
    budget = make_budgets(disk=0)
    assert load_graph(url, resources=budget.at(spill)).num_edges == 4
    with on_disk(url, budget.at(spill)) as path:
        assert path == tmp_path / "edges.txt"
    with pytest.raises(InputError, match=f"^{tmp_path}/nothing: there is no such file"):
        load_graph(f"{kind}://{tmp_path}/nothing", resources=budget.at(spill))


@pytest.mark.timeout(60)  # who waits for a pipe's writer waits forever
@pytest.mark.parametrize("kind", ["file", "local", "simplecache::file"])
def test_pipes_at_urls_are_refused(kind: str, tmp_path: Path, spill: SpillFolder) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "link"):
        with pytest.raises(InputError, match="not a regular file but a pipe or a device"):
            load_graph(f"{kind}://{tmp_path}/{name}", resources=make_budgets().at(spill))
    with pytest.raises(InputError, match="this is a folder without files, and no graph store"):
        load_graph(f"{kind}://{tmp_path}/folder", resources=make_budgets().at(spill))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["file", "local", "simplecache::file"])
def test_links_and_pipes_in_a_store_at_a_url_are_refused(
    kind: str, store: str, tmp_path: Path, spill: SpillFolder
) -> None:
    url, shard = f"{kind}://{tmp_path}/graph.zarr", tmp_path / "graph.zarr/indices/c/0"
    assert load_graph(url, resources=make_budgets().at(spill)).num_edges == 4
    shard.rename(tmp_path / "shard")
    shard.symlink_to(tmp_path / "shard")
    with pytest.raises(InputError, match="this is a symbolic link, copy the store without links"):
        load_graph(url, resources=make_budgets().at(spill))
    shard.unlink()
    os.mkfifo(shard)
    with pytest.raises(InputError, match=r"(no|not a) regular file"):
        load_graph(url, resources=make_budgets().at(spill))


def test_a_run_names_its_graph_by_the_url(store: str, tmp_path: Path) -> None:
    config = {
        "graph": {"path": store},
        "workload": {"kind": "triangles"},
        "memory": {"spill": str(tmp_path / "spill")},
        "run": {"directory": str(tmp_path), "name": "run"},
    }
    result = longwall.run(config)
    assert result.count == 1
    assert load_config(result.path / "config.toml").graph.path == store
    assert not (tmp_path / "spill").exists()


def test_a_url_is_ingested(memory: Any, tmp_path: Path) -> None:
    memory.pipe("/data/edges.txt", EDGES.encode())
    words = ["ingest", "memory://data/edges.txt", str(tmp_path / "made.zarr"), "--spill", str(tmp_path / "spill")]
    done = CliRunner().invoke(app, [*words, "--quiet"])
    assert done.exit_code == 0, done.stderr
    assert load_graph(tmp_path / "made.zarr").num_edges == 4


def test_a_store_is_read_over_http(store: str, tmp_path: Path, spill: SpillFolder) -> None:
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_address[1]}"
            graph = load_graph(f"{url}/graph.zarr", resources=make_budgets().at(spill))
            plain = load_graph(f"{url}/edges.txt", resources=make_budgets().at(spill))
        finally:
            server.shutdown()
            thread.join()
    assert graph.num_edges == plain.num_edges == 4


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_workers_read_the_graph_from_its_url(store: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'longwall[cluster]'")
    config = {
        "graph": {"path": f"file://{tmp_path}/graph.zarr"},
        "workload": {"kind": "triangles"},
        "memory": {"spill": str(tmp_path / "spill"), "host": "1GiB"},
        "engine": {"kind": "cpu"},
        "scheduler": {"kind": "dask", "workers": 2, "threads_per_worker": 1},
        "run": {"directory": str(tmp_path), "name": "run"},
    }
    assert longwall.run(config).count == 1
    assert not (tmp_path / "spill").exists()


@pytest.mark.parametrize("pattern", ["triangle", "diamond"])
def test_a_store_at_a_url_may_be_larger_than_the_memory(tmp_path: Path, memory: Any, pattern: str) -> None:
    """The run streams or maps the copy, and removes it in the end."""
    with short_chunks(1 << 14):
        graph = generate("barabasi-albert", vertices=60_000, edges_per_vertex=9, seed=3)
        graph.save(tmp_path / "graph.zarr")
        memory.put(str(tmp_path / "graph.zarr"), "/large/graph.zarr", recursive=True)
        source, host = {"path": "memory://large/graph.zarr"}, graph.nbytes - 1
        config = run_config(
            tmp_path, source, {"kind": "match", "pattern": pattern}, memory={"host": host}, engine={"threads": 1}
        )
        result = longwall.run(config)
    assert result.count == longwall.count(graph, pattern)
    facts = json.loads((result.path / "manifest.json").read_text())["memory"]
    assert ("store" in facts, "files" in facts) == (pattern == "triangle", pattern == "diamond")
    assert facts["disk"]["peak"] > sum(file.stat().st_size for file in (tmp_path / "graph.zarr").rglob("*"))
    assert left_in(tmp_path / "spill") == []
