"""A run that is not kept has files only once it writes a table, and none that record it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from longwall.pipeline.execution.environment import Metrics
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.pipeline.run_store.run_directory import RunDirectory
from longwall.pipeline.run_store.transient import TransientStore
from longwall.storage.errors import FinalError
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.memory.spill_folder import SpillFolder
from longwall.storage.parquet_files import write_parquet


@pytest.fixture
def spill(tmp_path: Path) -> Iterator[SpillFolder]:
    """A spill folder; nothing of it is left in the end."""
    with SpillFolder(tmp_path / "spill") as folder:
        yield folder
    assert not list(tmp_path.iterdir())


def finished(directory: RunDirectory) -> None:
    """Do two ranges of a phase, of which the first is committed at once."""
    log = directory.log
    log.restore(MemoryBudget("disk", 1 << 20))
    phase = log.record("count", 20)
    phase.commit([(0, 10)], PartialResult(3))
    phase.commit([(10, 20)], PartialResult(4), may_wait=True)
    assert phase.complete
    assert phase.values == [3, 4]


def test_without_tables_nothing_is_written(spill: SpillFolder, tmp_path: Path) -> None:
    directory = RunDirectory.transient(spill)
    finished(directory)
    directory.save()
    directory.finish(Metrics())
    directory.close()
    assert directory.store.list() == {}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("status", ["failed", "interrupted"])
def test_a_run_that_ends_early_leaves_no_record(spill: SpillFolder, tmp_path: Path, status: str) -> None:
    directory = RunDirectory.transient(spill)
    finished(directory)
    assert not directory.abandon(status, "a reason", Metrics())
    directory.close()
    assert not list(tmp_path.iterdir())


def test_tables_are_published_and_listed(spill: SpillFolder) -> None:
    directory = RunDirectory.transient(spill)
    finished(directory)
    rows = pa.table({"vertex": [1, 2, 3]})
    write_parquet(rows, directory.path / "results.partial" / "vertices.parquet")
    directory.finish(Metrics())
    assert directory.where == directory.path
    assert directory.path.is_relative_to(spill.path)
    assert sorted(directory.store.list()) == ["manifest.json", "results/vertices.parquet"]
    assert directory.manifest["results"]["vertices.parquet"]["rows"] == 3


def test_a_table_that_is_damaged_is_noticed(spill: SpillFolder) -> None:
    directory = RunDirectory.transient(spill)
    finished(directory)
    (directory.path / "results.partial" / "vertices.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(FinalError, match=r"vertices\.parquet"):
        directory.finish(Metrics())


def test_files_between_phases_are_written_and_deleted(spill: SpillFolder) -> None:
    store = TransientStore(spill)
    assert store.list("checkpoint/") == {}
    with pytest.raises(FileNotFoundError):
        store.read("checkpoint/level-2/00000000")
    store.delete(["checkpoint/level-2/"])
    (store.folder / "checkpoint" / "level-2").mkdir()
    (store.folder / "checkpoint" / "level-2" / "00000000").write_bytes(b"rows")
    assert store.list("checkpoint/") == {"checkpoint/level-2/00000000": 4}
    assert store.read("checkpoint/level-2/00000000", 1, 3) == b"ow"
    store.delete(["checkpoint/level-2/"])
    assert store.list("checkpoint/") == {}
