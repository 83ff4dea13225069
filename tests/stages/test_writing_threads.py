"""Rows that threads of their own write: all of them come, a failure is raised, and no thread outlives its writer."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import longwall
from longwall.pipeline.execution.rows import row_sink
from longwall.pipeline.execution.rows.row_sink import writing_threads
from longwall.pipeline.phases.maximal_cliques import listing
from longwall.stages import export
from longwall.stages.export import PartFiles, WriterMemory, bytes_per_row
from longwall.stages.writing_threads import WritingThreads
from longwall.storage.system.concurrency import core_count

SCHEMA = pa.schema([pa.field("v0", pa.int64(), nullable=False)])
MEMORY = WriterMemory(group_rows=500, groups=3, dictionaries=False, nbytes=0)


def rows_from(first: int, number: int = 1000) -> Callable[[], pa.RecordBatch]:
    return lambda: pa.RecordBatch.from_arrays([pa.array(np.arange(first, first + number))], schema=SCHEMA)


@pytest.fixture(params=[0, 1, 3])
def writer(request: pytest.FixtureRequest, tmp_path: Path) -> WritingThreads:
    numbers = itertools.count()
    return WritingThreads(
        lambda: PartFiles(tmp_path, lambda: f"{next(numbers)}.parquet", SCHEMA, MEMORY), request.param
    )


def test_all_rows_are_written_once(writer: WritingThreads, tmp_path: Path) -> None:
    found: list[int] = []
    for turn in range(2):  # of commits
        for first in range(0, 50_000, 1000):
            writer.write(rows_from(turn * 50_000 + first))
        files = writer.take()
        tables = [pq.read_table(tmp_path / file["name"]) for file in files]
        assert [file["rows"] for file in files] == [table.num_rows for table in tables]
        found += [value for table in tables for value in table["v0"].to_pylist()]
    writer.abandon()
    assert sorted(found) == list(range(100_000))


def test_few_rows_come_to_one_file(writer: WritingThreads) -> None:
    writer.write(rows_from(0))
    assert len(writer.take()) == 1
    assert writer.take() == []
    writer.abandon()


def test_an_error_of_a_thread_reaches_the_worker(writer: WritingThreads) -> None:
    def fails() -> pa.RecordBatch:
        raise OSError("the disk is full")

    def write_until_it_fails() -> None:
        for first in range(100):
            writer.write(rows_from(first))
            writer.write(fails)
        writer.take()

    with pytest.raises(OSError, match="the disk is full"):
        write_until_it_fails()
    writer.abandon()


def test_no_thread_and_no_open_file_outlives_a_writer(writer: WritingThreads, tmp_path: Path) -> None:
    for first in range(10):
        writer.write(rows_from(first))
    writer.abandon()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("longwall-writer")]
    open_files = [link.resolve() for link in Path("/proc/self/fd").iterdir()]
    assert not [path for path in open_files if path.parent == tmp_path]


def test_threads_share_the_memory_of_a_writer() -> None:
    for memory in np.geomspace(1 << 17, 1 << 36, 60).astype(int).tolist():
        made = WriterMemory.within(memory, 4, bytes_per_row(4), threads=15)
        assert made.nbytes <= memory
        assert made.threads <= 15
        assert made.threads != 1
    assert made.threads == 15
    assert made.dictionaries


def on_a_device(threads: int, host: int = 0) -> Any:
    """What a process knows, of a config that asks for a number of threads."""
    return SimpleNamespace(
        resources=SimpleNamespace(on_device=True, host=SimpleNamespace(free=host)),
        engine=SimpleNamespace(workers=1),
        spec=SimpleNamespace(engine=SimpleNamespace(threads=threads)),
        graph=SimpleNamespace(id_bytes=8),
        rows=None,
    )


@pytest.mark.parametrize("asked", [0, 1, 3])
def test_no_more_threads_write_than_the_config_allows(asked: int) -> None:
    assert writing_threads(on_a_device(asked)) == (asked or core_count())


def test_the_cliques_that_each_thread_holds_are_reserved() -> None:
    one, eight = (listing._Share.within(on_a_device(threads, 64 << 30), 10) for threads in (1, 8))
    assert eight.writer.threads == 8
    assert eight.capacity == one.capacity
    assert eight.nbytes - eight.writer.nbytes > 8 * (one.nbytes - one.writer.nbytes)


def test_cliques_that_wait_for_a_thread_are_not_those_fetched_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lister writes each time into the same arrays."""
    monkeypatch.setattr(export, "_THREAD_BYTES", 1 << 18)
    monkeypatch.setattr(row_sink, "writing_threads", lambda _: 3)
    monkeypatch.setattr(listing, "_MOST_ROOM", 100)
    edges = nx.gnm_random_graph(200, 3000, seed=1).edges
    (tmp_path / "edges.txt").write_text("".join(f"{u} {v}\n" for u, v in edges))
    found = longwall.run(
        {
            "graph": {"path": str(tmp_path / "edges.txt")},
            "workload": {"kind": "maximal-cliques", "output": "embeddings"},
            "engine": {"kind": "cpu", "threads": 2},
            "run": {"directory": str(tmp_path / "runs"), "name": "x"},
        }
    ).table()["clique"]
    assert sorted(map(sorted, found.to_pylist())) == sorted(map(sorted, nx.find_cliques(nx.Graph(edges))))
