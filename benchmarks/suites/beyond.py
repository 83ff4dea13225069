"""Predict triangles and 4-cliques of graphs, and on machines, that were never tried, from stated figures.

    python -m benchmarks.suites.beyond [--rates FILE]

The graphs are R-MAT (16 edges drawn for each vertex) of 1, 10 and 100 billion edges. Steps of mining are those of the
method (`benchmarks.lib.floor`), counted on R-MAT 14 to 18 here, and go on growing by the same power of the edges. How
many a GPU does a second is what one H200 did of R-MAT 22. All else is computed by `longwall.pipeline.prediction`, as
for `longwall explain`; FILE replaces the rates below.

A second table predicts 100 billion edges on machines whose memory does not hold the graph. Each machine reads the store
over its network, writes the lists of smaller neighbours, 4 bytes an edge, to its own disk, and reads them from there.
With W windows of roots, at least three for each worker, all workers together read the lists 2 + W / 2 times
(`storage.streaming.estimate`); W is that of R-MAT 18 with the same share of its bytes. No two steps overlap.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from benchmarks.lib.floor import steps
from longwall.pipeline.config import load_config
from longwall.pipeline.prediction.costs import Cost, Demand, predict_cost
from longwall.pipeline.prediction.phase_sample import PhaseSample, Stratum
from longwall.pipeline.prediction.rates import Rates, read_rates
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.store_writer import write_graph
from longwall.storage.memory.reservations import MemoryBudget
from longwall.storage.streaming.estimate import estimate_reads
from longwall.storage.streaming.graph_parts import ARC_BYTES
from longwall.storage.streaming.stored_graph import StoredGraph, open_stored
from longwall.storage.streaming.vertex_set import set_bytes

MACHINE = Rates(
    threads=112,
    devices=8,
    steps=1.9e11,  # R-MAT 22: 2.9e10 steps of triangles in 0.153 s on one H200
    memory=4e11,
    disk_read=1.2e10,
    disk_write=6e9,
    link=5.5e10,
    network=1.25e10,  # 100 Gbit/s
    device_memory=1.2e11,
    request_seconds=0.01,
    start_seconds=10.0,
)
HOST_BYTES = 2e12
STORE_BYTES, ARRAY_BYTES = 3.85, 8.9  # of an edge, R-MAT 22
DECODED = 6.7e8  # bytes of arrays a second and thread, opening R-MAT 22
WORKS = {"triangles": ({"kind": "triangles"}, 1.0), "4-cliques": ({"kind": "cliques", "k": 4}, 2.1)}
"""The workload, and its seconds over those of the triangles' steps: on R-MAT 22, 0.318 and 0.153."""
SMALL = Rates(
    threads=16,
    devices=0,
    steps=6e8,  # of a thread: R-MAT 20 has 4.42e9 steps of triangles, and took 6.8 to 7.8 s of a core
    disk_read=2e9,
    disk_write=1e9,
    network=1.25e9,  # 10 Gbit/s
    start_seconds=10.0,
)
"""A machine with less memory than the graph, without a GPU."""
_LARGE, _WORKERS, _MEMORIES = 1e11, (16, 64), (64e9, 128e9, 256e9)
_RANGES_EACH, _PART_SHARE = 3, 0.9  # as the dispatcher and `stream_phase` have them
_SCALES = (14, 16, 18)
_STRATA = 96


def growth(folder: Path) -> tuple[float, float]:
    """Count the triangles' steps of small graphs: steps at the largest over its edges' power, and the power."""
    points = []
    for scale in _SCALES:
        store = folder / f"beyond-{scale}.zarr"
        graph = generate("rmat", seed=1, scale=scale, edge_factor=16)
        if not store.exists():
            write_graph(graph, store)
        spec = load_config({"graph": {"path": str(store)}, "workload": {"kind": "triangles"}})
        counted = steps(str(store), {"triangles": [spec.workload.plan(graph).to_dict()]}, {})["triangles"]
        assert counted is not None
        points.append((math.log(graph.num_edges), math.log(counted)))
    (first, low), *_, (last, high) = points
    power = (high - low) / (last - first)
    return math.exp(high - power * last), power


def predict(edges: float, rates: Rates, machines: int, steps_of_edge: tuple[float, float], times: float) -> Cost:
    """Predict one graph on so many machines."""
    factor, power = steps_of_edge
    own = Rates(threads=rates.threads, steps=rates.steps, devices=1)
    seconds = times * factor * edges**power / own.steps
    sample = PhaseSample("count", 0.0, 0.0, (Stratum(seconds / _STRATA, 0.0),) * _STRATA, 0.0)
    arrays = ARRAY_BYTES * edges
    demand = Demand(
        samples=(sample,),
        own=own,
        read_bytes=int(STORE_BYTES * edges),
        read_seconds=arrays / DECODED / rates.threads,
        graph_bytes=int(arrays),
        host_bytes=int(arrays),
    )
    return predict_cost(demand, rates, machines)


def windows_of(graph: StoredGraph, share: float, *, split: bool) -> int:
    """Return the number of windows of roots of a worker whose budget is a share of the graph's bytes."""
    vertices, memory = graph.num_vertices, share * graph.nbytes
    part = _PART_SHARE * (memory - ARC_BYTES * 2 * vertices - set_bytes(vertices))
    return estimate_reads(graph, int(part), 1, split=split).windows


def print_streamed(folder: Path, steps_of_edge: tuple[float, float]) -> None:
    """Print the predicted times of workers with less memory than the graph, each alone on its machine."""
    like = open_stored(folder / f"beyond-{_SCALES[-1]}.zarr", MemoryBudget("memory", 1 << 30), "")
    factor, power = steps_of_edge
    lists, store, arrays = ARC_BYTES * _LARGE, STORE_BYTES * _LARGE, ARRAY_BYTES * _LARGE
    print(f"\n{_LARGE:.0e} edges: {lists / 1e9:,.0f} GB of lists on the disk of each worker\n")
    print(
        "| work | workers | GB of memory each | windows | lists read by a worker, GB | store s | lists written s "
        "| lists read s | computing s | all s | store read by all, TB |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, (_, times) in WORKS.items():
        for workers in _WORKERS:
            for memory in _MEMORIES:
                windows = windows_of(like, memory / arrays, split=name == "triangles")
                windows = max(windows, _RANGES_EACH * workers)
                read = lists * (2 + windows / 2) / workers
                took = [
                    max(store / SMALL.network, arrays / DECODED / SMALL.threads),
                    lists / SMALL.disk_write,
                    read / SMALL.disk_read,
                    times * factor * _LARGE**power / (workers * SMALL.threads * SMALL.steps),
                ]
                cells = [f"{workers}", f"{memory / 1e9:.0f}", f"{windows:,}", f"{read / 1e9:,.0f}"]
                cells += [f"{one:,.0f}" for one in took]
                cells += [f"{sum(took) + SMALL.start_seconds:,.0f}", f"{workers * store / 1e12:,.1f}"]
                print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print a row for every graph and number of machines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=Path, help="TOML, as of longwall explain --rates")
    parser.add_argument("--work", type=Path, default=Path("build/benchmarks"))
    settings = parser.parse_args()
    settings.work.mkdir(parents=True, exist_ok=True)
    rates = MACHINE if settings.rates is None else read_rates(settings.rates, MACHINE)
    grown = growth(settings.work)
    print(f"steps of triangles: {grown[0]:.3g} x edges^{grown[1]:.3f}\n")
    print(
        "| work | edges | machines | store GB | arrays GB | of a machine's memory | network GB | to a device GB "
        "| reading s | link s | computing s | dispatching s | all s | bottleneck |"
    )
    print("|---|---:|---:|" + "---:|" * 10 + "---|")
    for name, (_, times) in WORKS.items():
        for edges in (1e9, 1e10, 1e11):
            for machines in (1, 4, 16):
                cost = predict(edges, rates, machines, grown, times)
                arrays = ARRAY_BYTES * edges
                held = cost.host / HOST_BYTES
                over = cost.of("link") * min(rates.link, rates.memory / rates.devices)
                cells = [f"{edges:.0e}".replace("e+", "e"), f"{machines}", f"{STORE_BYTES * edges / 1e9:,.0f}"]
                cells += [f"{arrays / 1e9:,.0f}", f"{held:.0%}", f"{cost.network / 1e9:,.0f}", f"{over / 1e9:,.0f}"]
                parts = ("reading", "link", "computing", "dispatching")
                cells += [f"{cost.of(part):,.1f}" for part in parts]
                cells += [f"{cost.seconds:,.0f}", cost.bottleneck.name]
                print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print_streamed(settings.work, grown)


if __name__ == "__main__":
    main()
