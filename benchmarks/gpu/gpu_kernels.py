"""Time the CUDA kernels on R-MAT graphs, after checking them against the CPU engine and closed forms.

    python -m benchmarks.gpu.gpu_kernels [--scales 13 14 18 20 22] [--limit 20] [--budget 420]
        [--graphs ca-AstroPh.edges.gz] [--only clique-3 cycle-4 diamond]

Graph loading and planning are left out; a kernel's compilation falls into the warm-up. Times are medians over
repeats, by CUDA events around the launches of a whole count.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from math import comb
from typing import Any

import numpy as np

from benchmarks.lib.kernel_timer import kernel_time, stopped_after
from longwall.kernels.cpu.engine import CpuEngine
from longwall.kernels.cuda.device import exact, fetch_sum
from longwall.kernels.cuda.engine import CudaEngine
from longwall.kernels.interface.graph_arrays import GraphArrays
from longwall.kernels.interface.homomorphism_program import WORD
from longwall.pipeline.patterns.parse import parse_pattern
from longwall.pipeline.patterns.symmetry import automorphism_count
from longwall.pipeline.planning.homomorphisms.pattern_core import PassCosts
from longwall.pipeline.planning.homomorphisms.sums import plan_homomorphisms
from longwall.pipeline.planning.search.search_planner import plan_match
from longwall.stages.homomorphisms.tables import TableMemory, make_tables
from longwall.stages.source import edge_source
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.build import build_graph
from longwall.storage.ingest.ingest import load_graph
from longwall.storage.memory.reservations import MemoryBudget

PLENTY = 1 << 30
_RUNS = 8
DEVICE_SCRATCH = 32 << 30
SEARCHES = [("diamond", False), ("house", False), ("cycle-4", True)]
ROW_PROGRAMS = ["diamond", "house"]

# Starts a whole count on the device, and afterwards fetches it.
Start = Callable[[], Any]
Fetch = Callable[[Any], int]


def arrays(graph: Graph) -> GraphArrays:
    """The arrays that kernels read."""
    zero = np.zeros(1, np.int32)
    return GraphArrays(
        graph.indptr, graph.indices, graph.split, zero, graph.stats.max_degree, graph.stats.max_out_degree
    )


def works(engine: Any, graph: Graph, loaded: GraphArrays, memory: int) -> Iterator[tuple[str, Start, Fetch]]:
    """Everything that is counted: (name, start, fetch); scratch is made when its turn comes."""
    on_device = engine.name == "cuda"
    fetch: Fetch = exact if on_device else int
    for k in (3, 4, 5, 6):

        def run(k: int = k) -> Any:  # a counter keeps the tables that it made
            cliques = engine.kernels.clique_counter(engine.device, loaded, k, memory)
            return (cliques.start if on_device else cliques.count)(0, loaded.num_arcs)

        yield f"clique-{k}", run, fetch_sum if on_device else int
    diamonds = engine.kernels.diamond_counter(engine.device, loaded, memory)
    run = diamonds.start if on_device else diamonds.count
    yield "diamond", lambda run=run: run(0, loaded.num_vertices), fetch_sum if on_device else int
    del diamonds, run
    cycles = engine.kernels.four_cycle_counter(engine.device, loaded, memory)
    run = cycles.start if on_device else cycles.count
    yield "cycle-4", lambda run=run: run(0, loaded.num_vertices), fetch
    del cycles, run
    for name in ROW_PROGRAMS:
        yield f"{name} by rows", *by_rows(engine, loaded, name, memory)
    for name, induced in SEARCHES:
        plan = plan_match(parse_pattern(name), graph.stats, induced=induced)
        levels = (plan.program.levels[0], plan.program.levels[1])
        rows = engine.xp.asarray(edge_source(arrays(graph), levels, 0, loaded.num_arcs, np).columns())
        searcher = engine.kernels.searcher(engine.device, loaded, plan.program, memory)
        run = searcher.start if on_device else searcher.count_rows
        yield (
            f"{name}{' induced' if induced else ''} by search",
            lambda run=run, rows=rows: run(rows),
            lambda result, plan=plan: fetch(result) // plan.redundancy,
        )
        del rows, searcher, run


def by_rows(engine: Any, loaded: GraphArrays, name: str, memory: int) -> tuple[Start, Fetch]:
    """Count a pattern through homomorphisms, the tables included."""
    pattern = parse_pattern(name)
    found = plan_homomorphisms((pattern,), PassCosts(1.0, 1.0, 1.0))
    assert found is not None
    program, (terms,) = found.program, found.terms

    def start() -> Any:
        tables = make_tables(engine, loaded, program, WORD, TableMemory(MemoryBudget("memory", memory), on_device=True))
        counters = []
        for domain, rows in program.totals:
            counter = engine.kernels.row_counter(engine.device, loaded, tables, rows, domain, memory // 4)
            counter.add(0, loaded.num_vertices if domain == "vertices" else loaded.num_arcs)
            counters.append(counter)
        return counters

    def fetch(counters: Any) -> int:
        totals = [int(total) for counter in counters for total in counter.totals()[0]]
        mappings = sum(term.coefficient * totals[term.number] for term in terms)
        return mappings % 2**64 // automorphism_count(pattern)

    return start, fetch


def check(limit: float) -> None:
    """Compare with the CPU engine, and with what is known of complete graphs."""
    ends = np.array([(i, j) for i in range(60) for j in range(i)], np.int64)
    known = {f"clique-{k}": comb(60, k) for k in (3, 4, 5, 6)}
    known |= {
        "cycle-4": 3 * comb(60, 4),
        "diamond": 6 * comb(60, 4),
        "diamond by rows": 6 * comb(60, 4),
        "diamond by search": 6 * comb(60, 4),
    }
    for title, graph in {
        "K60": build_graph(ends[:, 0], ends[:, 1]),
        "rmat-12": generate("rmat", seed=1, scale=12, edge_factor=8),
    }.items():
        if title == "K60":
            expected = known
        else:
            cpu = CpuEngine()
            expected = {n: f(s()) for n, s, f in works(cpu, graph, arrays(graph), PLENTY)}
        engine = CudaEngine()
        for name, start, fetch in works(engine, graph, engine.load(arrays(graph)), PLENTY):
            with stopped_after(engine, limit) as expired:
                got = fetch(start())
            if expired.is_set():
                raise SystemExit(f"{title} {name}: not done after {limit:.0f} s")
            if name in expected and got != expected[name]:
                raise SystemExit(f"{title} {name}: {got}, expected {expected[name]}")
        print(f"{title}: all counts agree", flush=True)


def measure(title: str, make: Callable[[], Graph], limit: float, deadline: float, only: list[str]) -> None:
    """Time everything, or what is called so, on one graph and print a table."""
    began = time.monotonic()
    graph = make()
    m, s = graph.num_edges, graph.stats
    print(
        f"\n{title}: {graph.num_vertices:,} vertices, {m:,} edges, max degree {s.max_degree:,}, "
        f"max out-degree {s.max_out_degree:,} ({time.monotonic() - began:.0f} s to make)",
        flush=True,
    )
    print(f"{'work':<28}{'ms':>12}{'count':>24}{'M edges/s':>12}", flush=True)
    engine = CudaEngine()
    skip: set[str] = set()
    done = False
    while not done:
        done = True
        for name, start, fetch in works(engine, graph, engine.load(arrays(graph)), DEVICE_SCRATCH):
            if name in skip or (only and name not in only):
                continue
            skip.add(name)
            if time.monotonic() > deadline:
                print(f"{name:<28}{'no time left':>12}", flush=True)
                continue
            found = kernel_time(engine, start, fetch, min(limit, max(deadline - time.monotonic(), 1)), _RUNS)
            if found is None:
                # An interrupted engine is of no further use: go on with a new one.
                print(f"{name:<28}{f'> {limit:.0f} s':>12}", flush=True)
                engine, done = CudaEngine(), False
                break
            ms, count = found
            print(f"{name:<28}{ms:>12.3f}{count:>24,}{m / ms / 1e3:>12.1f}", flush=True)
        engine.xp.get_default_memory_pool().free_all_blocks()


def main() -> None:
    """Run the checks, then the graphs from small to large."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scales", type=int, nargs="*", default=[13, 14, 18, 20, 22])
    parser.add_argument("--graphs", nargs="*", default=[], help="edge lists that are counted besides")
    parser.add_argument("--only", nargs="*", default=[], help="what is timed; else everything")
    parser.add_argument("--limit", type=float, default=20, help="seconds for one count")
    parser.add_argument("--budget", type=float, default=420, help="seconds for everything")
    settings = parser.parse_args()
    deadline = time.monotonic() + settings.budget
    print(CudaEngine().device.name, flush=True)
    check(settings.limit)
    graphs = [(path.rpartition("/")[2], partial(load_graph, path)) for path in settings.graphs]
    graphs += [(f"rmat-{n}", partial(generate, "rmat", seed=1, scale=n, edge_factor=16)) for n in settings.scales]
    for title, make in graphs:
        if time.monotonic() < deadline:
            measure(title, make, settings.limit, deadline, settings.only)


if __name__ == "__main__":
    main()
