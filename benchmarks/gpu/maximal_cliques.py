"""Time the order and the kernel for maximal cliques on the device, after checking them.

    python -m benchmarks.gpu.maximal_cliques [--rmat 13:16 16:8 18:4] [--limit 60] [--data FOLDER]

R-MAT graphs are named by scale and edges drawn for each vertex. Counts must be the published ones for real graphs
(``graphs`` and ``truth`` in FOLDER, by default ``LONGWALL_DATA``), and those of the CPU engine, by size, for R-MAT
graphs of up to 130,000 edges. Loading the graph is left out, and so is compilation, which falls into the first of
several runs; times are medians, on the host's clock for the order, whose result the host reads, and by CUDA events for
the kernel.
"""

import argparse
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import longwall
from benchmarks.gpu.gpu_kernels import DEVICE_SCRATCH, PLENTY, arrays
from benchmarks.lib.kernel_timer import kernel_time
from longwall.kernels.cpu.engine import CpuEngine
from longwall.kernels.cuda.engine import CudaEngine
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.maximal_cliques import DegeneracyOrder
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph

REAL = ("ca-AstroPh", "wiki-Vote", "socfb-JohnsHopkins55", "socfb-Amherst41", "soc-epinions-NR", "web-spam-NR")
# Milliseconds of MCE-GPU on an H100-class device, order and kernel.
RIVAL = {"ca-AstroPh": "30 + 7.0"}
_CHECKED_EDGES = 130_000
_RUNS = 7


def graphs(data: Path | None, rmat: list[tuple[int, int]]) -> Iterator[tuple[str, Graph, int | None]]:
    """Every graph, with the number of its maximal cliques where that is published."""
    if data is not None:
        truth = json.loads((data / "truth" / "counts.json").read_text())
        for name in REAL:
            graph = longwall.open_graph(data / "graphs" / f"{name}.edges.gz")
            yield name, graph, truth[name]["maximal_cliques"]["count"]
    for scale, factor in rmat:
        yield f"rmat-{scale}, {factor} drawn", generate("rmat", seed=1, scale=scale, edge_factor=factor), None


def sizes(engine: Any, loaded: GraphArrays, order: DegeneracyOrder, memory: int) -> list[int]:
    """Maximal cliques by size."""
    counter = engine.kernels.maximal_clique_counter(engine.device, loaded, order, 2, memory)
    counter.add(0, loaded.num_vertices)
    counts: list[int] = counter.counts().tolist()
    return counts


def order_time(engine: Any, loaded: GraphArrays) -> float:
    """Median milliseconds of making the order."""
    samples = []
    for _ in range(_RUNS):
        began = time.perf_counter()
        engine.kernels.degeneracy_order(engine.device, loaded)
        samples.append(1000 * (time.perf_counter() - began))
    return median(samples[1:])


def search_time(
    engine: Any, loaded: GraphArrays, order: DegeneracyOrder, limit: float
) -> tuple[float, list[int]] | None:
    """Median milliseconds of the search, and cliques by size; None past the limit."""
    counter: list[Any] = []

    def prepare() -> None:
        counter[:] = [engine.kernels.maximal_clique_counter(engine.device, loaded, order, 2, DEVICE_SCRATCH)]

    def start() -> None:
        counter[0].add(0, loaded.num_vertices)

    return kernel_time(engine, start, lambda _: counter[0].counts().tolist(), limit, _RUNS, prepare)


def pair(text: str) -> tuple[int, int]:
    """Read an R-MAT graph's scale and edges for each vertex."""
    scale, factor = text.split(":")
    return int(scale), int(factor)


def main() -> None:
    """Check and time every graph."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rmat", type=pair, nargs="*", default=[(13, 16), (16, 8), (18, 4)], metavar="SCALE:EDGES")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one graph")
    parser.add_argument("--data", type=Path, default=os.environ.get("LONGWALL_DATA"))
    settings = parser.parse_args()
    engine = CudaEngine()
    print(engine.device.name)
    names = ("graph", "edges", "degeneracy", "cliques", "order ms", "kernel ms", "MCE-GPU ms")
    print("{:<24}{:>12}{:>12}{:>18}{:>12}{:>12}{:>14}".format(*names), flush=True)
    for name, graph, published in graphs(settings.data and Path(settings.data), settings.rmat):
        loaded = engine.load(arrays(graph))
        took = order_time(engine, loaded)
        order = engine.kernels.degeneracy_order(engine.device, loaded)
        found = search_time(engine, loaded, order, settings.limit)
        if found is None:
            print(
                f"{name:<24}  {graph.num_edges:,} edges: order {took:.3f} ms, search > {settings.limit:.0f} s",
                flush=True,
            )
            engine = CudaEngine()
            continue
        ms, counts = found
        if published is not None and sum(counts) != published:
            raise SystemExit(f"{name}: {sum(counts)} maximal cliques, published are {published}")
        if published is None and graph.num_edges <= _CHECKED_EDGES:
            cpu, host = CpuEngine(), arrays(graph)
            if sizes(cpu, host, cpu.kernels.degeneracy_order(cpu.device, host), PLENTY) != counts:
                raise SystemExit(f"{name}: other counts than the CPU engine's")
        row = (name, graph.num_edges, order.degeneracy, sum(counts), took, ms, RIVAL.get(name, ""))
        print("{:<24}{:>12,}{:>12,}{:>18,}{:>12.3f}{:>12.3f}{:>14}".format(*row), flush=True)


if __name__ == "__main__":
    main()
