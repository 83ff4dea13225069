"""Writers of Parquet stay inside the memory that they are given, however many rows they write."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from longwall.stages.export import PartFiles, WriterMemory, bytes_per_row
from longwall.storage.tables.embedding_table import EmbeddingTable
from longwall.storage.tables.tree_parquet import TreeRows

COLUMNS = 4
SCHEMA = pa.schema([pa.field(f"v{number}", pa.int64(), nullable=False) for number in range(COLUMNS)])
_SLACK = 1 << 20  # of the allocators

# Prints the growth of resident memory beside what was promised. Tables are made before it is measured, as they belong
# to the caller. Writers are warmed up once, as kernels and libraries are not in the budget.
PROGRAM = """
import itertools, json, sys
from pathlib import Path
import numpy as np, pyarrow as pa
sys.path.insert(0, sys.argv[1])
from test_export import COLUMNS, SCHEMA, EmbeddingTable, PartFiles, TreeRows, WriterMemory, bytes_per_row
from longwall.storage.memory.allocator import return_freed_memory

def resident(name):
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith(name))

def write(memory, batch, times):
    numbers = itertools.count()
    files = PartFiles(Path(sys.argv[2]), lambda: f"{memory.nbytes}-{next(numbers)}.parquet", SCHEMA, memory)
    for _ in range(times):
        files.write(batch)
    return len(files.take())

return_freed_memory()
memory = WriterMemory.within(int(sys.argv[3]), COLUMNS, 2 * bytes_per_row(COLUMNS))
rng = np.random.default_rng(1)
columns = [pa.array(rng.integers(0, 10 ** (3 + 2 * i), memory.group_rows)) for i in range(COLUMNS)]
batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
if sys.argv[5] == "trees":  # no two rows share a prefix, which takes the most
    one_each, ids = np.arange(memory.group_rows + 1), rng.integers(0, 1 << 62, 1 << 20)
    values = tuple(rng.integers(0, 1 << 6 + 7 * (i % 3), memory.group_rows).astype(np.uint32) for i in range(COLUMNS))
    batch = TreeRows(EmbeddingTable(values, (one_each,) * (COLUMNS - 1)), tuple(range(COLUMNS)), ids)
    Path(sys.argv[2], "warm").mkdir()
    warm = PartFiles(Path(sys.argv[2], "warm"), iter("ab").__next__, SCHEMA, memory)
    warm.write(batch.slice(0, 10))
    warm.take()
    return_freed_memory()
else:
    assert sys.argv[5] == "batches"
if sys.argv[5] == "batches":
    write(WriterMemory.within(0, COLUMNS, 1), batch.slice(0, 1), 1)
Path("/proc/self/clear_refs").write_text("5")
before = resident("VmRSS")
files = write(memory, batch, int(sys.argv[4]))
print(json.dumps([resident("VmHWM") - before, memory.nbytes, files]))
"""


def test_a_writer_holds_no_more_than_it_is_given() -> None:
    for memory in np.geomspace(1 << 17, 1 << 34, 60).astype(int).tolist():
        made = WriterMemory.within(memory, COLUMNS, bytes_per_row(COLUMNS))
        assert made.nbytes <= memory
        assert made.group_rows * made.groups >= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("memory", "groups", "form"),
    [
        (1 << 21, 1500, "batches"),
        pytest.param(1 << 18, 6000, "batches", marks=pytest.mark.slow),
        pytest.param(1 << 27, 3, "batches", marks=pytest.mark.slow),
        pytest.param(1 << 27, 3, "trees", marks=pytest.mark.slow),
        pytest.param(1 << 28, 3, "trees", marks=pytest.mark.slow),
    ],
)
def test_measured_memory_is_at_most_what_is_promised(tmp_path: Path, memory: int, groups: int, form: str) -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the peak of resident memory cannot be reset here")
    arguments = [str(Path(__file__).parent), str(tmp_path), str(memory), str(groups), form]
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    grown, promised, files = json.loads(done.stdout)
    assert promised <= memory
    assert grown <= promised + _SLACK
    assert files > 1 or groups < 10


def written(folder: Path, memory: WriterMemory, sizes: list[int]) -> list[dict[str, Any]]:
    names = iter(range(1000))
    files = PartFiles(folder, lambda: f"part-{next(names):05}.parquet", SCHEMA, memory)
    first = 0
    for size in sizes:
        column = pa.array(np.arange(first, first + size))
        files.write(pa.RecordBatch.from_arrays([column] * COLUMNS, schema=SCHEMA))
        first += size
    return files.take()


@pytest.mark.parametrize("dictionaries", [False, True])
def test_files_are_cut_by_row_groups_and_hold_all_rows_in_order(tmp_path: Path, dictionaries: bool) -> None:
    sizes = [3, 10, 1, 10, 10, 10, 7, 10, 2]
    files = written(tmp_path, WriterMemory(10, 2, dictionaries, 0), sizes)
    assert len(files) > 2
    tables = []
    for file in files:
        metadata = pq.read_metadata(tmp_path / file["name"])
        assert metadata.num_row_groups <= 2
        assert metadata.num_rows == file["rows"]
        tables.append(pq.read_table(tmp_path / file["name"]))
    assert pa.concat_tables(tables)["v3"].to_pylist() == list(range(sum(sizes)))


def test_trees_are_cut_into_row_groups_and_files_alike(tmp_path: Path) -> None:
    sizes, ids = [3, 10, 1, 10, 10, 10, 7, 10, 2], np.arange(100) * 5
    names = iter(range(1000))
    files = PartFiles(tmp_path, lambda: f"part-{next(names):05}.parquet", SCHEMA, WriterMemory(10, 2, True, 0))
    first = 0
    for size in sizes:
        column = np.arange(first, first + size, dtype=np.uint32)
        tree = EmbeddingTable((column,) * COLUMNS, (np.arange(size + 1),) * (COLUMNS - 1))
        files.write(TreeRows(tree, tuple(range(COLUMNS)), ids))
        first += size
    made = files.take()
    assert len(made) > 2
    for file in made:
        metadata = pq.read_metadata(tmp_path / file["name"])
        assert metadata.num_row_groups <= 2
        assert metadata.num_rows == file["rows"]
    found = pa.concat_tables([pq.read_table(tmp_path / file["name"]) for file in made])
    assert found["v3"].to_pylist() == ids[:first].tolist()


def test_repeated_values_of_many_rows_share_a_page(tmp_path: Path) -> None:
    rows = 1 << 17
    column = pa.array(np.full(rows, 7))
    files = PartFiles(tmp_path, lambda: "part.parquet", SCHEMA, WriterMemory(rows, 1, True, 0))
    files.write(pa.RecordBatch.from_arrays([column] * COLUMNS, schema=SCHEMA))
    files.take()
    for number in range(COLUMNS):
        chunk = pq.read_metadata(tmp_path / "part.parquet").row_group(0).column(number)
        assert chunk.total_uncompressed_size < 150  # a page of the dictionary, and one of the values
