"""A listing with a limit on a cluster: as many rows as were asked for, each of them right, none twice."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from breakable import EDGES, answer
from hypothesis import given, settings
from hypothesis import strategies as st
from run_configs import config_of, write_edges

import longwall
from longwall.pipeline.run_store.commit_log import PartialResult
from longwall.pipeline.run_store.row_limit import RowCut, shortened
from longwall.stages.export import shorten
from longwall.storage.errors import RunError

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'longwall[cluster]'")
on_cluster = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.filterwarnings("default")]


@given(
    answers=st.lists(st.lists(st.integers(1, 9), max_size=4), max_size=6),
    limit=st.integers(0, 60),
)
@settings(max_examples=50, deadline=None)
def test_the_first_rows_are_taken_and_no_more(answers: list[list[int]], limit: int) -> None:
    cut, names, rows = RowCut(limit), iter(range(10**6)), 0
    for files in answers:
        given_ = tuple({"name": str(next(names)), "rows": size} for size in files)
        taken = cut.cut(PartialResult(sum(files), given_))
        assert taken.value == sum(file["rows"] for file in taken.files) == min(sum(files), limit - rows)
        whole = [file for file in taken.files if not file.get("cut")]
        assert whole == list(given_[: len(whole)])
        assert len(taken.files) - len(whole) <= 1
        rows += taken.value
        assert cut.reached == (rows == limit)
    assert rows == min(limit, sum(map(sum, answers)))


def test_without_a_limit_everything_is_taken() -> None:
    found = PartialResult(7, ({"name": "a", "rows": 7},))
    cut = RowCut(None)
    assert cut.cut(found) is found
    assert not cut.reached


@pytest.mark.parametrize("rows", [1, 65536, 65537, 150_000])
def test_a_file_that_is_shortened_has_its_first_rows(tmp_path: Path, rows: int) -> None:
    table = pa.table({"v0": range(200_000), "v1": range(200_000)})
    table = table.replace_schema_metadata({"longwall": "{}"})
    pq.write_table(table, tmp_path / "embeddings-1.parquet")
    files = ({"name": "embeddings-1.parquet", "rows": rows, "bytes": 0, "cut": True},)
    found = shortened(PartialResult(rows, files), tmp_path)
    assert pq.read_table(tmp_path / "embeddings-1.parquet").equals(table.slice(0, rows), check_metadata=True)
    (path,) = tmp_path.iterdir()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert found.files == ({"name": path.name, "rows": rows, "bytes": path.stat().st_size, "sha256": digest},)


def test_a_file_stays_whole_where_it_cannot_be_shortened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "embeddings-1.parquet"
    pq.write_table(pa.table({"v0": range(10)}), path)
    monkeypatch.setattr("os.fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "the disk is full")))
    with pytest.raises(OSError, match="the disk is full"):
        shorten(path, 3)
    assert len(pq.read_table(path)) == 10


def config(folder: Path, name: str, kind: str, limit: int | None, address: str) -> dict[str, Any]:
    write_edges(folder, EDGES)
    found = config_of(folder, kind, name, folder / "runs", address=address)
    return found if limit is None else found | {"export": {"limit": limit}}


class TestOnACluster:
    pytestmark = on_cluster

    @pytest.mark.parametrize("kind", ["listing", "listing by levels", "listing of maximal cliques"])
    @pytest.mark.parametrize("limit", [1, 100, 10**6])
    def test_so_many_rows_are_written(self, cluster: Any, tmp_path: Path, kind: str, limit: int) -> None:
        everything = longwall.run(config(tmp_path, "all", kind, None, cluster.scheduler_address))
        result = longwall.run(config(tmp_path, "some", kind, limit, cluster.scheduler_address))
        rows, all_rows = ([*map(repr, answer(one.path)["embeddings"])] for one in (result, everything))
        assert result.count == len(rows) == len(set(rows)) == min(limit, len(all_rows))
        assert set(rows) <= set(all_rows)
        assert result.truncated == (limit < len(all_rows))
        assert json.loads((result.path / "manifest.json").read_text())["status"] == "done"

    def test_the_rows_before_a_fault_count(self, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        append = longwall.pipeline.run_store.commit_log.CommitLog.append
        monkeypatch.setattr("longwall.pipeline.cluster.dispatcher._COMMIT_SECONDS", 0.0)

        def failing(*arguments: Any) -> None:
            append(*arguments)
            raise RunError("the disk went away")

        monkeypatch.setattr(longwall.pipeline.run_store.commit_log.CommitLog, "append", failing)
        with pytest.raises(RunError, match="the disk went away"):
            longwall.run(config(tmp_path, "some", "listing", 1000, cluster.scheduler_address))
        monkeypatch.undo()
        result = longwall.resume(tmp_path / "runs" / "some")
        rows = answer(result.path)["embeddings"]
        assert result.count == len(rows) == len(set(rows)) == 1000
