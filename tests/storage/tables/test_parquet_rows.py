"""Files of results: small ones that claim or repeat much are refused, or read in parts, before they take memory."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from longwall.storage.errors import RunError
from longwall.storage.tables import parquet_rows
from longwall.storage.tables.parquet_rows import parquet_batches, parquet_schema, read_parquet

TABLE = pa.table(
    {
        "text": pa.array(["x", None, "x"]),
        "texts": pa.array([["u", "v"], None, ["u", None]]),
        "struct": pa.array([{"of": "z"}, None, {"of": None}]),
        "number": pa.array([1, 2, 3]),
        "truth": pa.array([True, None, False]),
        "share": pa.array([0.5, None, 1.5]),
        "whole": pa.array([2**80, None, 1], pa.decimal128(38, 0)),
        "numbers": pa.array([[1], [], [2, 3]], pa.list_(pa.int32())),
    }
)


def written(table: pa.Table, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd", **options)
    return file


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"row_group_size": 1}, {"data_page_size": 1}])
def test_what_was_written_is_read(options: dict[str, Any]) -> None:
    assert read_parquet(written(TABLE, **options), "a file").equals(TABLE)
    assert parquet_schema(written(TABLE, **options), "a file").equals(TABLE.schema)


def test_texts_that_outgrow_their_dictionary_are_read() -> None:
    texts = [[f"{row}-{at}" * 4 for at in range(6)] for row in range(6000)]
    table = pa.table({"texts": texts, "text": [row[0] for row in texts]})
    file = written(table, dictionary_pagesize_limit=1 << 10, data_page_size=1 << 12)
    assert read_parquet(file, "a file").equals(table)


def test_an_empty_table_is_read() -> None:
    assert read_parquet(written(TABLE.slice(0, 0)), "a file").equals(TABLE.slice(0, 0))


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_rows, "_MEMORY", 1 << 20)


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize("dictionary", [False, True])
def test_a_long_text_is_refused(dictionary: bool) -> None:
    file = written(pa.table({"name": ["a" * 2_000_000]}), use_dictionary=dictionary)
    with pytest.raises(RunError, match=r"a file: a page of row group 1 takes .* MiB, more than in files of Longwall"):
        read_parquet(file, "a file")


@pytest.mark.usefixtures("little")
def test_a_long_text_that_is_repeated_is_read_in_parts() -> None:
    file = written(pa.table({"name": ["a" * 100_000] * 1000}))
    assert file.tell() < 10_000
    sizes = [batch.nbytes for batch in parquet_batches(file, "a file")]
    assert max(sizes) < 1 << 21
    assert sum(sizes) >= 100_000_000


@pytest.mark.usefixtures("little")
def test_a_long_text_that_a_list_repeats_is_refused() -> None:
    file = written(pa.table({"labels": [["a" * 100_000] * 1000]}))
    with pytest.raises(RunError, match=r"a file: a row takes 95\.4 MiB"):
        read_parquet(file, "a file")


@pytest.mark.usefixtures("little")
def test_a_list_of_many_values_is_refused() -> None:
    file = written(pa.table({"labels": pa.array([[1] * 1_000_000], pa.list_(pa.int32()))}))
    with pytest.raises(RunError, match="a file: a list of row group 1 takes"):
        read_parquet(file, "a file")


@pytest.mark.usefixtures("little")
def test_many_large_pages_are_read_one_by_one() -> None:
    names = [str(row) + "a" * 150_000 for row in range(100)]
    file = written(pa.table({"name": names}), use_dictionary=False, data_page_size=1, write_batch_size=1)
    batches = list(parquet_batches(file, "a file"))
    assert max(batch.num_rows for batch in batches) <= 6
    assert [name for batch in batches for name in batch["name"].to_pylist()] == names
