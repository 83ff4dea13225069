"""Time runs on the GPU, on the CPU's cores, and on both together, after checking that they find the same.

    python -m benchmarks.gpu.both_engines [--time 110] [--cpu-limit 20] [--work FOLDER]
    python -m benchmarks.gpu.both_engines --tiny        # scale 8, once; with no GPU of much use

Every workload is first run on a small graph by each engine and by both, which share every phase there. Then it is
timed: seconds of mining without reading the graph, medians of up to three runs in turn after one that compiles. The
graphs are made on the GPU. In "out of core" the device's budget does not hold the graph. A run of the CPU alone that
takes longer than its limit is ended. Who did what is from the metrics of the median run: ranges, and the share of all
roots or of the estimated work. Rows come in the order of their importance; what is left after `--time` is left out.
The exit status is 1 if results differ, here or on the large graphs.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq

import longwall
from benchmarks.gpu.device_rmat import labelled, rmat_graph
from longwall.kernels.cuda.engine import CudaEngine
from longwall.pipeline.execution import task_pool
from longwall.storage.errors import InputError, RunError
from longwall.storage.graph.store_writer import write_graph

ENGINES = ("cuda", "cpu", "both")
CLIQUES = {"kind": "cliques", "k": 4}
DIAMONDS = {"kind": "match", "pattern": "diamond", "pattern_labels": [0, 1, 2, 3]}
SIX = {"kind": "match", "pattern": "0-1,0-2,1-2,1-3,2-4,3-4,4-5", "pattern_labels": [0, 1, 2, 3, 0, 1]}
_EDGE_FACTOR = 16
_SMALL_SCALE = 8
_REPEATS = 3
_AT_MOST_ONCE = 5.0  # seconds of a run that is not repeated


@dataclass(frozen=True)
class Row:
    """A workload on an R-MAT graph.

    Attributes
    ----------
    name
        What it is called in the table.
    workload
        The section of the config.
    scale, labels
        Of the graph; 0 labels: none.
    device, access
        ``memory.device`` and ``memory.access``.
    """

    name: str
    workload: dict[str, Any]
    scale: int
    labels: int = 0
    device: str = "auto"
    access: str = "auto"

    @property
    def small(self) -> Row:
        """The same on a small graph, the pages of which come and go although there is room for all."""
        return replace(self, scale=_SMALL_SCALE, device="auto", access="auto" if self.device == "auto" else "adaptive")


ROWS = (
    Row("maximal cliques", {"kind": "maximal-cliques"}, 15),
    Row("4-cliques, out of core", CLIQUES, 20, device="64MiB"),
    Row("labelled diamonds, out of core", DIAMONDS, 20, labels=4, device="64MiB"),
    Row("labelled 6-vertex pattern", SIX, 16, labels=4),
    Row("5-motifs", {"kind": "motifs", "k": 5}, 14),
    Row("maximal cliques", {"kind": "maximal-cliques"}, 13),
    Row("5-cliques", {"kind": "cliques", "k": 5}, 22),
    Row("maximal cliques per vertex", {"kind": "maximal-cliques", "output": "vertices"}, 15),
    Row("5-cliques", {"kind": "cliques", "k": 5}, 20),
)


@dataclass(frozen=True)
class Run:
    """What a run found and took.

    Attributes
    ----------
    found
        The counts.
    seconds
        Of mining.
    shares
        Engine -> its ranges, and the size of what it did.
    """

    found: tuple[Any, ...]
    seconds: float
    shares: dict[str, tuple[int, int]]


class Bench:
    """Makes graphs, and runs workloads on them.

    Parameters
    ----------
    folder
        For graphs and runs.
    """

    def __init__(self, folder: Path):
        self._folder, self._numbers = folder, count()
        self._xp = CudaEngine().xp

    def store(self, row: Row) -> Path:
        """Make the graph of a row, unless it is there."""
        path = self._folder / f"rmat-{row.scale}-{row.labels}"
        if not path.exists():
            graph = rmat_graph(self._xp, row.scale, _EDGE_FACTOR)
            write_graph(labelled(graph, row.labels) if row.labels else graph, path)
        return path

    def run(self, row: Row, engine: str, limit: float) -> Run | None:
        """Run a row on an engine; None where that takes longer than `limit` seconds."""
        timer = threading.Timer(max(limit, 0.1), os.kill, (os.getpid(), signal.SIGINT))
        config = {
            "graph": {"path": str(self.store(row))},
            "workload": row.workload,
            "memory": {"device": row.device, "access": row.access, "spill": str(self._folder / "spill")},
            "engine": {"kind": engine},
            "run": {"directory": str(self._folder / "runs"), "name": str(next(self._numbers))},
        }
        timer.start()
        try:
            result = longwall.run(config)
        except KeyboardInterrupt:
            return None
        finally:
            timer.cancel()
        found = tuple((one.pattern, one.count) for one in result.patterns)
        return Run(found, result.timings["mine"], shares(Path(result.path)))


def shares(run: Path) -> dict[str, tuple[int, int]]:
    """Who did how many ranges, and how much work, in all phases of a run."""
    found: dict[str, tuple[int, int]] = {}
    for row in pq.read_table(run / "metrics.parquet").to_pylist():
        before, _, engine = row["stage"].partition("ranges of ")
        if not before and engine in ("cpu", "cuda"):
            ranges, size = found.get(engine, (0, 0))
            found[engine] = ranges + row["tasks"], size + row["rows_out"]
    return found


def check(bench: Bench, row: Row, ends: float) -> None:
    """Compare what the engines find on a small graph, as far as there is time; both share every longer phase."""
    patient, task_pool.JOIN_LEFT = task_pool.JOIN_LEFT, 0.0
    try:
        found = [bench.run(row.small, engine, ends - time.monotonic()) for engine in ENGINES]
    finally:
        task_pool.JOIN_LEFT = patient
    require_equal(row.small, [run for run in found if run])


def require_equal(row: Row, runs: list[Run]) -> None:
    """Exit if runs of a row found different counts."""
    if any(run.found != runs[0].found for run in runs):
        raise SystemExit(f"{row.name} of rmat-{row.scale}: the engines differ: {[run.found for run in runs]}")


def measure(bench: Bench, row: Row, ends: float, cpu_limit: float, repeats: int) -> str | None:
    """Run a row on all engines in turn; return its line of the table, None where there was no time for it."""
    runs: dict[str, list[Run]] = {engine: [] for engine in ENGINES}
    late = False
    for turn in range(repeats + 1):  # in the first one whatever there is to compile is compiled
        for engine in ENGINES:
            left = ends - time.monotonic()
            alone = engine == "cpu"
            once = runs[engine] and turn > (0 if alone else 1) and runs[engine][0].seconds > _AT_MOST_ONCE
            if once or (alone and late):
                continue
            run = bench.run(row, engine, min(left, cpu_limit) if alone else left) if left > 0 else None
            if run is None:
                if left <= cpu_limit or not alone:
                    return line(row, runs, late) if turn > 1 else None
                late = True
                continue
            if turn == 1 and not (alone and run.seconds > _AT_MOST_ONCE):
                runs[engine].clear()
            runs[engine].append(run)
            require_equal(row, [one for found in runs.values() for one in found])
    return line(row, runs, late)


def line(row: Row, runs: dict[str, list[Run]], late: bool) -> str:
    """The line of a row: medians, what both gain over the better one alone, and who did what."""
    seconds = {engine: median([run.seconds for run in found]) for engine, found in runs.items() if found}
    better = min(seconds["cuda"], seconds.get("cpu", seconds["cuda"]))
    middle = sorted(runs["both"], key=lambda run: run.seconds)[len(runs["both"]) // 2]
    size = sum(size for _, size in middle.shares.values())
    who = ", ".join(f"{name} {n} ranges {part / max(size, 1):.1%}" for name, (n, part) in middle.shares.items())
    cpu = f"{seconds['cpu']:.4f}" if "cpu" in seconds else "over the limit" if late else "-"
    cells = (f"{row.name}, rmat-{row.scale}", f"{seconds['cuda']:.4f}", cpu, f"{seconds['both']:.4f}")
    return f"| {' | '.join(cells)} | {better / seconds['both']:.2f} | {who} |"


def main() -> None:
    """Check, then time every row as long as there is time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time", type=float, default=110, help="seconds for everything")
    parser.add_argument("--cpu-limit", type=float, default=20, help="seconds for a run of the CPU alone")
    parser.add_argument("--work", type=Path, help="folder for graphs and runs")
    parser.add_argument("--tiny", action="store_true", help="small graphs, every run once")
    settings = parser.parse_args()
    ends = time.monotonic() + settings.time
    with tempfile.TemporaryDirectory(dir=settings.work) as folder:
        bench = Bench(Path(folder))
        print("| workload | cuda s | cpu s | both s | gain | who did what |\n|---|---:|---:|---:|---:|---|", flush=True)
        for number, row in enumerate(ROWS):
            try:
                if row.workload not in [one.workload for one in ROWS[:number]]:
                    check(bench, row, ends)
                repeats = 1 if settings.tiny else _REPEATS
                text = measure(bench, row.small if settings.tiny else row, ends, settings.cpu_limit, repeats)
            except (InputError, RunError) as error:
                text = f"| {row.name}, rmat-{row.scale} | {error} | | | | |"
            if text is None:
                left_out = ", ".join(f"{one.name} of rmat-{one.scale}" for one in ROWS[number:])
                print(f"\nleft out after {settings.time:g} s: {left_out}")
                break
            print(text, flush=True)


if __name__ == "__main__":
    main()
