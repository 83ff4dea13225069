"""Check patterns that decompose into tables against the CPU engine, and time both engines.

    python -m benchmarks.gpu.decompositions [--scales 13 16] [--time 240] [--cpu-arcs 4000000]

Whole runs of the second kind in a process: `mine` of the run's timings, in milliseconds. A graph with more arcs than
`--cpu-arcs` is not counted on the CPU again; its line says so.
"""

import argparse
import tempfile
import time
from typing import Any

import longwall
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph

PATTERNS = {
    "P3": "0-1,0-2,0-3,0-4,1-2,1-3,1-4,2-3",
    "P4": "0-1,0-2,0-3,1-2,1-3,2-4,3-4",
    "P5": "0-1,0-2,0-3,0-4,1-2,1-4,2-3,3-4",
    "P6": "0-1,0-2,0-3,0-4,1-2,1-3,1-4,2-3,3-4",
    "cycle-5": "cycle-5",
    "house": "house",
}


def mine(graph: Graph, workload: dict[str, Any], engine: str) -> tuple[list[int | None], float]:
    """Return the counts of a run, and the milliseconds of its mining."""
    with tempfile.TemporaryDirectory() as folder:
        result = longwall.run(
            {
                "graph": graph,
                "workload": workload,
                "engine": {"kind": engine},
                "run": {"directory": folder, "report": False},
            }
        )
        return [one.count for one in result.patterns], 1e3 * result.timings["mine"]


def main() -> None:
    """Check first, then print the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scales", type=int, nargs="+", default=[13, 16])
    parser.add_argument("--time", type=float, default=240, help="seconds after which nothing more is begun")
    parser.add_argument("--cpu-arcs", type=int, default=4_000_000)
    options = parser.parse_args()
    end = time.perf_counter() + options.time
    workloads: dict[str, dict[str, Any]] = {
        name: {"kind": "match", "pattern": pattern} for name, pattern in PATTERNS.items()
    }
    workloads["motifs of 5"] = {"kind": "motifs", "k": 5, "method": "counting"}
    for scale in options.scales:
        graph = generate("rmat", seed=1, scale=scale, edge_factor=16)
        for name, workload in workloads.items():
            if time.perf_counter() > end:
                print("out of time", flush=True)
                return
            counts, _ = mine(graph, workload, "cuda")
            checked = "not checked"
            if graph.num_edges * 2 <= options.cpu_arcs:
                expected, milliseconds = mine(graph, workload, "cpu")
                assert counts == expected, (scale, name, counts, expected)
                checked = f"as the CPU's, {milliseconds:,.0f} ms"
            _, milliseconds = mine(graph, workload, "cuda")
            print(f"R-MAT {scale}  {name:<12} {milliseconds:10,.1f} ms  {checked}", flush=True)


if __name__ == "__main__":
    main()
