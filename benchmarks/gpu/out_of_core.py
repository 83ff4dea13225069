"""Count in an R-MAT graph that a GPU's budget holds wholly, to a quarter, and to a tenth: seconds of mining.

    python -m benchmarks.gpu.out_of_core [--scale 24] [--time 200] [--limit 40] [--work FOLDER]

The graph is made on the GPU and mined from memory. Every work is run with a budget that holds the graph, then with a
quarter and a tenth of the graph's bytes, which must give the same count; "bring" is the part of the seconds in which
the graph is brought to the device. The floor is what crosses the link at least once, the arcs that the work reads,
over 55 GB/s, and the seconds with all of the graph. A run that takes longer than its limit is ended; what is left after
`--time` is left out. The exit status is 1 if counts differ.
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
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import longwall
from benchmarks.gpu.device_rmat import rmat_graph
from benchmarks.lib.processors import processors
from longwall.kernels.cuda.engine import CudaEngine
from longwall.pipeline.execution import device_graph
from longwall.storage.errors import InputError, RunError
from longwall.storage.graph.graph import Graph

SHARES = (None, 0.25, 0.1)
LINK = 55e9  # bytes a second
WORKS: dict[str, tuple[dict[str, Any], float]] = {
    "triangles": ({"kind": "triangles"}, 0.5),
    "4-cliques": ({"kind": "cliques", "k": 4}, 0.5),
    "triangles of vertices": ({"kind": "triangles", "output": "vertices"}, 0.5),
    "4-cycles": ({"kind": "match", "pattern": "cycle-4"}, 1.0),
    "diamonds": ({"kind": "match", "pattern": "diamond"}, 1.0),
}
"""The workload, and the part of the arcs that it reads."""


@dataclass(frozen=True)
class Run:
    """What a run found and took."""

    found: int | None
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

    def run(self, workload: dict[str, Any], share: float | None, limit: float) -> Run | None:
        """Run a workload; None where that takes longer than `limit` seconds."""
        config = {
            "graph": self._graph,
            "workload": workload,
            "memory": {
                "device": "auto" if share is None else int(share * self.bytes),
                "spill": str(self._folder / "spill"),
            },
            "engine": {"kind": self._engine},
            "run": {"directory": str(self._folder / "runs"), "name": str(next(self._numbers)), "report": False},
        }
        timer = threading.Timer(max(limit, 0.1), os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            with timed_bring() as seconds, processors("mine") as used:
                result = longwall.run(config)
        except KeyboardInterrupt:
            return None
        finally:
            timer.cancel()
        memory = json.loads((Path(result.path) / "manifest.json").read_text())["memory"]
        device = memory.get("device", {"peak": 0, "driver": 0})
        return Run(
            found=result.count,
            opened=result.timings["graph"],
            seconds=result.timings["mine"],
            processors=sum(used),
            bring=sum(seconds),
            whole=result.seconds,
            host=memory["host"]["peak"],
            peak=device["peak"],
            driver=device["driver"],
            access=memory["graph"]["access"],
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


def main() -> None:
    """Print a row for every work and share, as long as there is time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=24)
    parser.add_argument("--time", type=float, default=200, help="seconds for everything")
    parser.add_argument("--limit", type=float, default=40, help="seconds for a run")
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument("--work", type=Path, help="folder for runs")
    settings = parser.parse_args()
    ends = time.monotonic() + settings.time
    small = replace(rmat_graph(CudaEngine().xp, 10, 8), content_hash="small")
    graph = replace(rmat_graph(CudaEngine().xp, settings.scale, 16), content_hash="large")
    with tempfile.TemporaryDirectory(dir=settings.work) as folder:
        bench = Bench(graph, read_bytes(graph), Path(folder))
        tiny = Bench(small, read_bytes(small), Path(folder) / "small")
        print(f"R-MAT {settings.scale}: {graph.num_edges:,} edges, {bench.bytes / 1e9:.2f} GB")
        print("| work | budget | access | count | s | bring s | of resident | floor s | arrays MB |")
        print("|---|---|---|---:|---:|---:|---:|---:|---:|", flush=True)
        for name in settings.works.split(","):
            workload, part = WORKS[name]
            tiny.run(workload, None, 60)  # compiles
            whole: Run | None = None
            for share in SHARES:
                left = min(settings.limit, ends - time.monotonic())
                if left < 1:
                    print("time is up")
                    return
                title = f"| {name} | {'all' if share is None else f'{share:.0%}'} |"
                try:
                    run = bench.run(workload, share, left)
                except (InputError, RunError) as error:
                    print(title, error, "| | | | | | |", flush=True)
                    continue
                if run is None:
                    print(title, f"over {left:.0f} s | | | | | | |", flush=True)
                    continue
                whole = whole or run
                floor = part * graph.indices.nbytes / LINK + (whole.seconds if share else 0)
                print(
                    title,
                    f"{run.access} | {run.found:,} | {run.seconds:.3f} | {run.bring:.3f} | "
                    f"{run.seconds / whole.seconds:.2f} | {floor:.3f} | {run.peak / 1e6:,.0f} |",
                    flush=True,
                )
                if run.found != whole.found:
                    raise SystemExit(f"{name}: {run.found:,}, with all of the graph {whole.found:,}")


if __name__ == "__main__":
    main()
