"""Count in R-MAT graphs that a GPU's budget holds wholly, to a quarter, and to a tenth: seconds of mining.

    python -m benchmarks.gpu.out_of_core [--scale 24] [--time 150] [--works LIST] [--shares LIST] [--repeat 1]
        [--work FOLDER]

The graphs are made on the GPU and mined from memory; works of many steps have one of a quarter of the size. Every work
is run with a budget that holds the graph, then with a quarter and a tenth of its bytes, or the `--shares` of them,
which must give the same counts; "bring" is the part of the seconds in which the graph is brought to the device.
"Copied" are the bytes of pages that were copied to the device, "predicted" those that the plan of the reads says, which
count more where lists are read in no order. The floor is the seconds with all of the graph and, over 55 GB/s, what is
predicted or, where no plan is made, the arcs that the work reads. A run that takes longer than its limit (of the work,
or `--limit`) is ended; what is left after `--time` is left out. With `--repeat` a row is the fastest of so many runs:
the first one in a process takes longer. The exit status is 1 if counts differ. With `--kernels`
every kernel is waited for, so that runs take longer, and the seconds of each are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import longwall
from benchmarks.gpu.device_rmat import rmat_graph
from benchmarks.lib.processors import processors
from longwall.kernels.cuda.device import Device
from longwall.kernels.cuda.engine import CudaEngine
from longwall.pipeline.execution import device_graph
from longwall.pipeline.execution.environment import Environment
from longwall.pipeline.execution.reads.oriented_reads import OrientedReads
from longwall.storage.errors import InputError, RunError
from longwall.storage.graph.graph import Graph
from longwall.storage.pages.hot_pages import Moves
from longwall.storage.pages.paged_graph import GraphPages

SHARES = (None, 0.25, 0.1)  # of the graph's bytes, that a budget has; None: all that the device has
LINK = 55e9  # bytes a second
LEAST_BUDGET = 4 << 20  # for a small graph


@dataclass(frozen=True)
class Work:
    """What is counted."""

    workload: dict[str, Any]
    part: float
    """Of the arcs, that it reads."""
    limit: float
    """Seconds of a run."""
    smaller: int = 0
    """How much smaller the scale of its graph is."""


WORKS = {
    "triangles": Work({"kind": "triangles"}, 0.5, 8),
    "4-cliques": Work({"kind": "cliques", "k": 4}, 0.5, 10),
    "diamonds": Work({"kind": "match", "pattern": "diamond"}, 0.5, 15),
    "triangles of vertices": Work({"kind": "triangles", "output": "vertices"}, 0.5, 10),
    "4-cycles": Work({"kind": "match", "pattern": "cycle-4"}, 1.0, 20, smaller=2),
    "4-motifs": Work({"kind": "motifs", "k": 4}, 1.0, 20, smaller=2),
}


@dataclass(frozen=True)
class Run:
    """What a run found and took."""

    found: Any
    opened: float
    """Seconds of reading the graph's store."""
    seconds: float
    """Of mining."""
    processors: float
    """Seconds of processors meanwhile."""
    bring: float
    """Of the seconds, until the graph was on the device."""
    whole: float
    host: int
    """The most bytes of the host's budget that were reserved."""
    peak: int
    """The most bytes of the device that the run's arrays took, but for copies of pages."""
    driver: int
    """The most of the device that was not free, by the driver, beside what was taken before."""
    access: str
    copied: int
    """Bytes of pages that were copied to the device."""
    predicted: float


class Bench:
    """Runs works on one graph.

    Parameters
    ----------
    graph
        The graph, or its store.
    size
        Bytes of its arrays that kernels read.
    folder
        For runs and spill files.
    engine
        Its name.
    """

    def __init__(self, graph: Graph | Path, size: int, folder: Path, engine: str = "cuda"):
        self._graph = {"path": str(graph)} if isinstance(graph, Path) else graph
        self._folder, self._engine, self._numbers = folder, engine, count()
        self.bytes = size

    def run(self, workload: dict[str, Any], budget: int | None, limit: float, access: str = "auto") -> Run | None:
        """Run a workload with so many bytes of the device; None where that takes longer than `limit` seconds."""
        config = {
            "graph": self._graph,
            "workload": workload,
            "memory": {
                "device": "auto" if budget is None else budget,
                "access": access,
                "spill": str(self._folder / "spill"),
            },
            "engine": {"kind": self._engine},
            "run": {"directory": str(self._folder / "runs"), "name": str(next(self._numbers)), "report": False},
        }
        timer = threading.Timer(max(limit, 0.1), os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            with timed_bring() as seconds, processors("mine") as used, watched_link() as link:
                result = longwall.run(config)
        except KeyboardInterrupt:
            return None
        finally:
            timer.cancel()
        memory = json.loads((Path(result.path) / "manifest.json").read_text())["memory"]
        device = memory.get("device", {"peak": 0, "driver": 0})
        patterns = [(one.pattern, one.count) for one in result.patterns]
        return Run(
            found=patterns if result.count is None else result.count,
            opened=result.timings["graph"],
            seconds=result.timings["mine"],
            processors=sum(used),
            bring=sum(seconds),
            whole=result.seconds,
            host=memory["host"]["peak"],
            peak=device["peak"],
            driver=device["driver"],
            access=memory["graph"]["access"],
            copied=link.copied,
            predicted=sum(reads.predicted for reads in link.reads),
        )


def read_bytes(graph: Graph) -> int:
    """Return the bytes of the arrays that kernels read."""
    return graph.indptr.nbytes + graph.split.nbytes + graph.indices.nbytes


@contextmanager
def timed_bring() -> Iterator[list[float]]:
    """Time the bringing of graphs to the device."""
    seconds: list[float] = []
    bring = device_graph._bring

    def timed(*arguments: Any) -> Any:
        began = time.perf_counter()
        try:
            return bring(*arguments)
        finally:
            seconds.append(time.perf_counter() - began)

    device_graph._bring = timed
    try:
        yield seconds
    finally:
        device_graph._bring = bring


@contextmanager
def timed_kernels(wanted: bool) -> Iterator[dict[str, list[float]]]:
    """If wanted, wait for every kernel, and note how long each took, by its name."""
    seconds: dict[str, list[float]] = {}
    if not wanted:
        yield seconds
        return
    launch = Device.launch

    def timed(self: Device, source: str, function: str, *arguments: Any, **options: Any) -> None:
        self.synchronize()
        began = time.perf_counter()
        launch(self, source, function, *arguments, **options)
        self.synchronize()
        seconds.setdefault(f"{source}:{function}", []).append(time.perf_counter() - began)

    Device.launch = timed  # type: ignore[method-assign]
    try:
        yield seconds
    finally:
        Device.launch = launch  # type: ignore[method-assign]


@dataclass
class Link:
    """What crossed the link, and what was planned."""

    copied: int = 0
    reads: list[OrientedReads] = field(default_factory=list)


@contextmanager
def watched_link() -> Iterator[Link]:
    """Add up the copies of pages, and keep the plans of reads."""
    link, copy, make = Link(), GraphPages._copy, OrientedReads.__init__

    def copying(self: GraphPages, moves: Moves, behind: Any = None) -> None:
        link.copied += 4 * self.page_arcs * moves.admit.size
        copy(self, moves, behind)

    def making(self: OrientedReads, env: Environment) -> None:
        make(self, env)
        link.reads.append(self)

    GraphPages._copy, OrientedReads.__init__ = copying, making  # type: ignore[method-assign]
    try:
        yield link
    finally:
        GraphPages._copy, OrientedReads.__init__ = copy, make  # type: ignore[method-assign]


def main() -> None:
    """Print a row for every work and share, as long as there is time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=24)
    parser.add_argument("--time", type=float, default=150, help="seconds for everything")
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument("--shares", help="of the graph's bytes, that a budget has, e.g. 0.5,0.25")
    parser.add_argument("--limit", type=float, help="seconds of a run")
    parser.add_argument("--repeat", type=int, default=1, help="runs for a row")
    parser.add_argument("--kernels", action="store_true", help="print the seconds of every kernel")
    parser.add_argument("--work", type=Path, help="folder for runs")
    settings = parser.parse_args()
    shares = (None, *map(float, settings.shares.split(","))) if settings.shares else SHARES
    ends = time.monotonic() + settings.time
    xp, works = CudaEngine().xp, {name: WORKS[name] for name in settings.works.split(",")}
    if settings.limit:
        works = {name: replace(work, limit=settings.limit) for name, work in works.items()}
    small = replace(rmat_graph(xp, 10, 8), content_hash="small")
    with tempfile.TemporaryDirectory(dir=settings.work) as folder:
        tiny = Bench(small, read_bytes(small), Path(folder) / "small")
        for smaller in sorted({work.smaller for work in works.values()}):
            graph = replace(rmat_graph(xp, settings.scale - smaller, 16), content_hash=f"large {smaller}")
            bench = Bench(graph, read_bytes(graph), Path(folder) / f"smaller {smaller}")
            print(f"R-MAT {settings.scale - smaller}: {graph.num_edges:,} edges, {bench.bytes / 1e9:.2f} GB")
            columns = "access | count | s | bring s | of resident | copied GB | predicted GB | floor s | arrays MB"
            print(f"| work | budget | {columns} |\n|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
            for name, work in works.items():
                if work.smaller == smaller:
                    with timed_kernels(settings.kernels) as kernels:
                        arcs = graph.indices.nbytes
                        measured(name, work, shares, (bench, tiny), arcs, ends, kernels, settings.repeat)


def measured(
    name: str,
    work: Work,
    shares: tuple[float | None, ...],
    benches: tuple[Bench, Bench],
    arcs: int,
    ends: float,
    kernels: dict[str, list[float]],
    repeat: int,
) -> None:
    """Print the rows of a work on the first bench, whose graph has so many bytes of arcs, as long as there is time."""
    bench, tiny = benches
    tiny.run(work.workload, None, 60)  # compiles
    tiny.run(work.workload, LEAST_BUDGET, 60, "adaptive")
    whole: Run | None = None
    for share in shares:
        if (left := min(work.limit, ends - time.monotonic())) < 1:
            print(f"| {name} | time is up | | | | | | | | | |")
            return
        title = f"| {name} | {'all' if share is None else f'{share:.0%}'} |"
        budget, run = None if share is None else int(share * bench.bytes), None
        try:
            for _ in range(repeat):
                kernels.clear()
                one = bench.run(work.workload, budget, left)
                run = min((some for some in (run, one) if some), key=lambda some: some.seconds, default=None)
        except (InputError, RunError) as error:
            print(title, error, "| | | | | | | | |", flush=True)
            continue
        if run is None:
            print(title, f"over {left:.0f} s | | | | | | | | |", flush=True)
            continue
        resident = whole.seconds if whole else 0.0
        crosses = run.predicted or (work.part * arcs if share else 0)
        number = f"{run.found:,}" if isinstance(run.found, int) else f"{len(run.found)} patterns"
        print(
            title,
            f"{run.access} | {number} | {run.seconds:.3f} | {run.bring:.3f} | "
            f"{run.seconds / resident if resident else 1:.2f} | {run.copied / 1e9:.2f} | {run.predicted / 1e9:.2f} | "
            f"{resident + crosses / LINK:.3f} | {run.peak / 1e6:,.0f} |",
            flush=True,
        )
        for kernel, seconds in sorted(kernels.items(), key=lambda item: -sum(item[1])):
            print(f"    {kernel}: {sum(seconds):.3f} s, {len(seconds)} times, {max(seconds):.3f} s at most", flush=True)
        whole = whole or run
        if run.found != whole.found:
            raise SystemExit(f"{name}: {run.found}, before {whole.found}")


if __name__ == "__main__":
    main()
