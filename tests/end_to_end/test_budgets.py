"""Budgets are promises: any budget that is accepted gives the same rows, a smaller one is refused with a message."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import naive
import pyarrow.parquet as pq
import pytest
from breakable import EDGES, answer, embeddings_of
from conftest import set_free_writers
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from kill import left_in

import longwall
from longwall.pipeline.execution import worker_memory
from longwall.storage.errors import InputError, RunError

PATTERNS = {
    "diamond": naive.Query(4, ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3))),
    "3-star": naive.Query(4, ((0, 1), (0, 2), (0, 3))),
}
FEW = EDGES[::2]
PLENTY = 64 << 20
_STEP = 1.02
relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


class Lister:
    """Lists the embeddings of a pattern in a small graph with hubs, under any settings."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._numbers = itertools.count()
        self.spill = folder / "spill"
        self.graph = folder / "graph.txt"
        self.graph.write_text("".join(f"{u} {v}\n" for u, v in FEW))
        self.rows = cache(lambda pattern: self.list(pattern, PLENTY)[0])
        self.smallest = cache(self._smallest)

    def run(self, pattern: str, host: int, *, order: str = "depth", threads: int = 1, **memory: Any) -> longwall.Result:
        query = PATTERNS[pattern]
        return longwall.run(
            {
                "graph": {"path": self.graph},
                "workload": {"kind": "match", "pattern": query.text, "output": "embeddings"},
                "memory": {"host": host, "spill": self.spill, **memory},
                "engine": {"kind": "cpu", "threads": threads},
                "scheduler": {"order": order},
                "run": {"directory": self._folder / "runs", "name": str(next(self._numbers))},
            }
        )

    def list(self, pattern: str, host: int, **options: Any) -> tuple[list[tuple[int, ...]], dict[str, Any]]:
        """Return the sorted rows and what the manifest says of memory."""
        result = self.run(pattern, host, **options)
        manifest = json.loads((result.path / "manifest.json").read_text())
        assert left_in(self.spill) == []
        rows: list[tuple[int, ...]] = answer(result.path)["embeddings"]
        assert len(rows) == result.count
        return rows, manifest["memory"]

    def _smallest(self, pattern: str, order: str, threads: int) -> int:
        """The smallest budget that is accepted, in bytes; a little less is refused."""
        low, high = 1, PLENTY
        while high > low * _STEP:
            middle = round((low * high) ** 0.5)
            try:
                self.run(pattern, middle, order=order, threads=threads)
            except (InputError, RunError):
                low = middle
            else:
                high = middle
        return high


@pytest.fixture(scope="module")
def lister(tmp_path_factory) -> Lister:
    return Lister(tmp_path_factory.mktemp("budgets"))


def check_kept(memory: dict[str, Any], host: int) -> None:
    """No budget was ever exceeded."""
    assert memory["host"]["limit"] == host
    assert 0 < memory["host"]["peak"] <= host
    assert memory["disk"]["peak"] <= memory["disk"]["limit"]


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_with_plenty_the_rows_are_the_embeddings(lister, pattern):
    rows = lister.rows(pattern)
    assert len(rows) == len(set(rows))
    assert embeddings_of(rows, PATTERNS[pattern]) == naive.embeddings(FEW, PATTERNS[pattern])


@pytest.mark.slow
@settings(relaxed, max_examples=40)
@given(
    pattern=st.sampled_from(sorted(PATTERNS)),
    order=st.sampled_from(["depth", "levels"]),
    threads=st.sampled_from([1, 3]),
    chunk=st.sampled_from([1, 7, 100, 1 << 20]),
    capacity=st.floats(0, 1),
)
@example(pattern="3-star", order="depth", threads=1, chunk=1, capacity=0.0)
@example(pattern="3-star", order="levels", threads=3, chunk=1 << 20, capacity=0.0)
def test_any_budget_any_chunk_and_any_order_give_the_same_rows(lister, pattern, order, threads, chunk, capacity):
    """From the smallest budget that is accepted (`room` 0) to the one where everything fits (1)."""
    least = lister.smallest(pattern, order, threads)
    host = int(least * (PLENTY / least) ** capacity)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_memory, "LARGEST_CHUNK", chunk)
        rows, memory = lister.list(pattern, host, order=order, threads=threads)
    assert rows == lister.rows(pattern)
    check_kept(memory, host)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("order", ["depth", "levels"])
@pytest.mark.parametrize("part", [0.97, 0.0, 0.1, 0.5])
def test_a_budget_that_is_too_small_is_refused_with_a_message(lister, order, part):
    host = max(int(part * lister.smallest("3-star", order, 3)), 1)
    with pytest.raises((InputError, RunError)) as refusal:
        lister.run("3-star", host, order=order, threads=3)
    said = str(refusal.value)
    assert "\n" not in said
    assert "memory.host" in said
    assert "raise" in said
    assert left_in(lister.spill) == []


@pytest.mark.slow
def test_what_does_not_fit_is_spilled_and_comes_back(lister):
    """Depth-first, with little room, were it not for what writers take: chunks that wait go to the disk."""
    with pytest.MonkeyPatch.context() as patch:
        set_free_writers(patch)
        host = lister._smallest("3-star", "depth", 3)
        rows, memory = lister.list("3-star", host, threads=3)
    assert rows == lister.rows("3-star")
    assert memory["disk"]["peak"] > 0


def test_depth_first_spills_nothing_where_the_stack_fits(lister):
    rows, memory = lister.list("3-star", PLENTY, threads=2)
    assert rows == lister.rows("3-star")
    assert memory["disk"]["peak"] == 0


def test_levels_are_on_disk_and_reserved_there(lister):
    rows, memory = lister.list("diamond", PLENTY, order="levels", threads=2)
    assert rows == lister.rows("diamond")
    assert memory["disk"]["peak"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("order", ["depth", "levels"])
@pytest.mark.parametrize("disk", [1, 100, 3000])
def test_a_disk_budget_that_is_too_small_is_refused_with_a_message(lister, order, disk, monkeypatch):
    set_free_writers(monkeypatch)
    host = lister._smallest("3-star", order, 3)
    with pytest.raises((InputError, RunError)) as refusal:
        lister.run("3-star", host, order=order, threads=3, disk=disk)
    said = str(refusal.value)
    assert "\n" not in said
    assert "memory.disk" in said
    assert left_in(lister.spill) == []


def test_a_run_that_lacked_disk_is_resumed_with_more(lister):
    with pytest.raises(RunError) as refusal:
        lister.run("diamond", PLENTY, order="levels", disk=100)
    run = Path(str(refusal.value).split("longwall resume ")[1])
    result = longwall.resume(run, overrides=["memory.disk=1GiB"])
    assert answer(result.path)["embeddings"] == lister.rows("diamond")


@pytest.fixture(scope="module")
def band(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many vertices, each next to the three before it."""
    path = tmp_path_factory.mktemp("band") / "band.txt"
    path.write_text("".join(f"{i} {i + d}\n" for i in range(40_000) for d in (1, 2, 3)))
    return path


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("pattern", "shortcut", "little"),
    [("house", "rows", "4MiB"), ("cycle-4", "wedge aggregation", "3MiB")],
)
def test_a_shortcut_that_has_no_room_gives_way_to_a_search(
    band: Path, tmp_path: Path, pattern: str, shortcut: str, little: str
) -> None:
    def run(name: str, host: str, threads: int) -> tuple[int, list[str]]:
        result = longwall.run(
            {
                "graph": {"path": band},
                "workload": {"kind": "match", "pattern": pattern},
                "engine": {"kind": "cpu", "threads": threads},
                "memory": {"host": host, "spill": tmp_path},
                "run": {"directory": tmp_path, "name": name},
            }
        )
        return result.count, pq.read_table(result.path / "metrics.parquet")["stage"].to_pylist()

    count, stages = run("plenty", "64MiB", 1)
    assert [stage for stage in stages if not stage.startswith("method ")] == [shortcut]
    found, stages = run("little", little, 8)
    assert shortcut not in stages
    assert found == count > 10_000


# Prints for each run of the same workload by how much resident memory grew. The first is on a small graph: libraries
# and kernels, which it loads, are not in the budget.
MEASURE = """
import json, sys
from pathlib import Path
import longwall

def resident(name):
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith(name))

for config in json.loads(sys.argv[1]):
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    result = longwall.run(config)
    print(json.dumps([resident("VmHWM") - before, result.count or len(result.patterns)]))
"""
_ALLOCATORS = 4 << 20  # what they keep of small objects


@pytest.mark.quick_cases(1)
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of resident memory cannot be reset")
@pytest.mark.parametrize(
    ("workload", "labels", "budget"),
    [
        ({"kind": "cliques", "k": 3, "output": "embeddings"}, 2, 8 << 20),
        ({"kind": "match", "pattern": "path-4", "output": "embeddings"}, 2, 8 << 20),
        ({"kind": "frequent", "min_support": 10, "max_edges": 2, "output": "embeddings"}, 2, 8 << 20),
        ({"kind": "frequent", "min_support": 1, "max_edges": 2}, 500, 128 << 20),  # 150,000 patterns
        ({"kind": "motifs", "k": 4, "output": "vertices"}, 2, 8 << 20),
    ],
    ids=lambda given: given["kind"] if isinstance(given, dict) else str(given),
)
def test_resident_memory_grows_by_the_budget_at_most(
    tmp_path: Path, workload: dict[str, Any], labels: int, budget: int
) -> None:
    configs = [
        {
            "graph": {"generator": {"kind": "erdos-renyi", "seed": 1, "num_labels": labels, **size}},
            "workload": workload,
            "memory": {"host": budget, "spill": str(tmp_path / "spill")},
            "engine": {"kind": "cpu", "threads": 8},
            "run": {"directory": str(tmp_path), "name": name},
        }
        for name, size in {
            "small": {"vertices": 100, "edges": 600},
            "large": {"vertices": 2000, "edges": 12_000},
        }.items()
    ]
    command = [sys.executable, "-c", MEASURE, json.dumps(configs)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    grown, found = json.loads(done.stdout.splitlines()[-1])
    assert found
    assert grown <= budget + _ALLOCATORS
