"""Time the kernels for cliques of one size, of every size and per vertex on the device, after checking them.

    python -m benchmarks.gpu.all_cliques [--scales 13 16 18 20] [--data FOLDER] [--sizes 7] [--limit 30] [--time 300]

First both methods are compared with closed forms, and with the CPU engine on R-MAT 10; counts of ca-AstroPh must be the
published ones (``graphs`` and ``truth`` in FOLDER, by default ``LONGWALL_DATA``). Then milliseconds of the kernels are
printed, medians by CUDA events: of ca-AstroPh for 4 to 8 vertices and for every size, of R-MAT graphs (16 edges drawn
for each vertex) for 6 and 7. Larger ones are made on the device. Loading is left out; compilation falls into the first
run.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

import longwall
from benchmarks.gpu.device_rmat import rmat_graph
from benchmarks.gpu.gpu_kernels import DEVICE_SCRATCH, PLENTY, arrays
from benchmarks.lib.kernel_timer import kernel_time
from longwall.kernels.cpu.engine import CpuEngine
from longwall.kernels.cuda.device import fetch_sum
from longwall.kernels.cuda.engine import CudaEngine
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.kcliques import ALL_SIZES, cliques_of_leaves, exact_sum, exact_values
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.build import build_graph

_RUNS = 7
_PUBLISHED = "ca-AstroPh"
_MOST_BY_BITMAPS = 7

Start = Callable[[], Any]


def by_pivots(engine: Any, loaded: GraphArrays, k: int, memory: int) -> tuple[Start, Callable[[Any], Any]]:
    """Return what starts a count with pivots, and what fetches the cliques by size."""
    counter = engine.kernels.clique_leaf_counter(engine.device, loaded, k, memory)
    start = counter.start if engine.name == "cuda" else counter.add
    return lambda: start(0, loaded.num_arcs), lambda _: cliques_of_leaves(counter.take(), k)


def by_bitmaps(engine: Any, loaded: GraphArrays, k: int, memory: int) -> tuple[Start, Callable[[Any], Any]]:
    """Return the same for a count with bitmaps alone."""
    counter = engine.kernels.clique_counter(engine.device, loaded, k, memory)
    if engine.name != "cuda":
        return lambda: counter.count(0, loaded.num_arcs), lambda found: [0] * k + [found]
    return lambda: counter.start(0, loaded.num_arcs), lambda parts: [0] * k + [fetch_sum(parts)]


def sizes_of(engine: Any, loaded: GraphArrays, k: int, memory: int, make: Any = by_pivots) -> list[int]:
    """Count: cliques by size, from 3 on, or in place k those of one size."""
    start, fetch = make(engine, loaded, k, memory)
    found: list[int] = fetch(start())
    return [0, 0, 0, *found[3:]]


def per_vertex(engine: Any, loaded: GraphArrays, k: int, limbs: int, memory: int) -> Any:
    """Count the k-cliques of every vertex."""
    counter = engine.kernels.clique_vertex_counter(engine.device, loaded, k, limbs, memory)
    counter.add(0, loaded.num_arcs)
    return counter.counts()


def require(what: str, found: object, expected: object) -> None:
    """End the program if something is not what it should be."""
    if found != expected:
        raise SystemExit(f"{what}: {str(found)[:200]}, expected {str(expected)[:200]}")


def check(engine: Any, published: Graph | None, truth: dict[str, int]) -> None:
    """Compare with closed forms, with the CPU engine, and with what is published."""
    ends = np.array(list(combinations(range(200), 2)), np.int64)
    apart = ends[~((ends[:, 0] % 2 == 0) & (ends[:, 1] == ends[:, 0] + 1) & (ends[:, 0] < 10))]
    for title, pairs, matching in (("K200", ends, 0), ("K200 less 5 edges", apart, 5)):
        loaded = engine.load(arrays(build_graph(pairs[:, 0], pairs[:, 1])))
        wanted = [0, 0, 0, *(_without_a_matching(200, matching, k) for k in range(3, 201 - matching))]
        require(f"{title}, every size", sizes_of(engine, loaded, ALL_SIZES, PLENTY), wanted)
        for k in (4, 6, 9, 100):
            require(f"{title}, k = {k}", sizes_of(engine, loaded, k, PLENTY)[k], wanted[k])
            require(f"{title}, per vertex", exact_sum(per_vertex(engine, loaded, k, 4, PLENTY)), k * wanted[k])
    cpu, host = CpuEngine(), arrays(generate("rmat", seed=1, scale=10, edge_factor=16))
    loaded = engine.load(host)
    wanted = sizes_of(cpu, host, ALL_SIZES, PLENTY)
    require("R-MAT 10, every size", sizes_of(engine, loaded, ALL_SIZES, PLENTY), wanted)
    for k in (4, 5, 6, 7):
        for make in (by_pivots, by_bitmaps):
            require(f"R-MAT 10, {make.__name__}, k = {k}", sizes_of(engine, loaded, k, PLENTY, make)[k], wanted[k])
        found, expected = per_vertex(engine, loaded, k, 1, PLENTY), per_vertex(cpu, host, k, 1, PLENTY)
        require("R-MAT 10, per vertex", exact_values(found).tolist(), exact_values(expected).tolist())
    if published is not None:
        found_sizes = sizes_of(engine, engine.load(arrays(published)), ALL_SIZES, PLENTY)
        require(_PUBLISHED, {k: found_sizes[int(k)] for k in truth}, truth)
    print("all counts agree", flush=True)


def _without_a_matching(n: int, matching: int, k: int) -> int:
    """Number of k-cliques of a complete graph without so many edges that share no vertex."""
    some = range(min(matching, k // 2) + 1)
    return sum((-1) ** j * comb(matching, j) * comb(n - 2 * j, k - 2 * j) for j in some)


def works(
    settings: argparse.Namespace, published: Graph | None, xp: Any
) -> Iterator[tuple[str, Callable[[], Graph], tuple[int, ...]]]:
    """Every graph, and the sizes that are counted in it."""
    if published is not None:
        yield _PUBLISHED, lambda: published, (4, 5, 6, 7, 8, ALL_SIZES)
    for scale in settings.scales:
        if scale < 16:
            yield f"rmat-{scale}", lambda scale=scale: generate("rmat", seed=1, scale=scale, edge_factor=16), (6, 7, 8)
        else:
            yield f"rmat-{scale}, made on the device", lambda scale=scale: rmat_graph(xp, scale, 16), (6, 7)


def measure(engine: Any, title: str, graph: Graph, sizes: tuple[int, ...], limit: float, deadline: float) -> Any:
    """Print the times of one graph; returns an engine for the next one."""
    print(f"\n{title}: {graph.num_edges:,} edges, at most {graph.stats.max_out_degree:,} out-neighbours", flush=True)
    loaded = engine.load(arrays(graph))
    for k in sizes:
        counts = set()
        for make in (by_pivots, by_bitmaps) if 0 < k <= _MOST_BY_BITMAPS else (by_pivots,):
            name = f"{'every size' if not k else f'{k}-cliques'}, {make.__name__.replace('_', ' ')}"
            left = deadline - time.monotonic()
            if left < 2:
                print(f"{name:<28}{'no time left':>14}", flush=True)
                continue
            took = kernel_time(engine, *make(engine, loaded, k, DEVICE_SCRATCH), min(limit, left), _RUNS)
            if took is None:
                print(f"{name:<28}{f'> {min(limit, left):.0f} s':>14}", flush=True)
                engine = CudaEngine()
                loaded = engine.load(arrays(graph))
                continue
            ms, found = took
            count = sum(found[3:])
            counts.add(count)
            print(f"{name:<28}{ms:>14.3f} ms {count:>40,}", flush=True)
        if len(counts) > 1:
            raise SystemExit(f"{title}, k = {k}: the methods disagree: {counts}")
    return engine


def main() -> None:
    """Check, then measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=int, nargs="*", default=[13, 16, 18, 20])
    parser.add_argument("--sizes", type=int, nargs="*", default=[], help="of the cliques; else each graph has its own")
    parser.add_argument("--data", type=Path, default=os.environ.get("LONGWALL_DATA"))
    parser.add_argument("--limit", type=float, default=30, help="seconds for one count")
    parser.add_argument("--time", type=float, default=300, help="seconds for everything")
    settings = parser.parse_args()
    deadline = time.monotonic() + settings.time
    engine: Any = CudaEngine()
    print(engine.device.name, flush=True)
    published, truth = None, {}
    if settings.data is not None:
        data = Path(settings.data)
        published = longwall.open_graph(data / "graphs" / f"{_PUBLISHED}.edges.gz")
        truth = json.loads((data / "truth" / "counts.json").read_text())[_PUBLISHED]["cliques"]
    check(engine, published, truth)
    for title, make_graph, sizes in works(settings, published, engine.xp):
        sizes = tuple(settings.sizes) or sizes
        if time.monotonic() + 5 > deadline:
            print(f"\n{title}: no time left", flush=True)
            continue
        engine = measure(engine, title, make_graph(), sizes, settings.limit, deadline)


if __name__ == "__main__":
    main()
