"""Time orbits of vertices and counts of edges, after checking them.

    python -m benchmarks.gpu.orbits [--engine cuda] [--time 300] [--data FOLDER]

First every count is compared with the CPU engine's, value by value, on small graphs: R-MAT of scale 9 and, where there
is one (``graphs`` in FOLDER, by default ``LONGWALL_DATA``), ca-GrQc. A difference ends the program with status 1. Then
the rows are measured in this process, each twice: seconds of mining (`Result.timings["mine"]`), results written
included; kernels are loaded by the first run. For ca-AstroPh the sums are checked against the published numbers of its
cliques. A line is printed as soon as it is known; when the time is up the program ends with status 3.
"""

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import longwall
from longwall.storage.generators.kinds import generate

ORBITS = {f"orbits {k}": {"kind": "motifs", "k": k, "output": "vertices"} for k in (4, 5)}
EDGES: dict[str, dict[str, Any]] = {
    "triangles of edges": {"kind": "triangles", "output": "edges"},
    "4-cliques of edges": {"kind": "cliques", "k": 4, "output": "edges"},
    "4-cycles of edges": {"kind": "match", "pattern": "cycle-4", "output": "edges"},
}
# Sums over vertices or edges of ca-AstroPh, from its numbers of triangles, 4-cliques and 5-cliques.
KNOWN = {
    "orbits 4": {"orbit_3": 3 * 1_351_441, "orbit_14": 4 * 9_580_415},
    "orbits 5": {"orbit_3": 3 * 1_351_441, "orbit_14": 4 * 9_580_415, "orbit_72": 5 * 64_997_961},
    "triangles of edges": {"triangles": 3 * 1_351_441},
    "4-cliques of edges": {"cliques": 6 * 9_580_415},
}


def mined(graph: Any, workload: dict[str, Any], engine: str) -> tuple[pa.Table, float]:
    """Run; return the table of vertices or edges, and the seconds of mining."""
    with tempfile.TemporaryDirectory() as folder:
        run = {"directory": folder, "name": "run", "report": False}
        config = {"graph": graph, "workload": workload, "engine": {"kind": engine}, "run": run}
        result = longwall.run(config)
        return result.table(str(workload["output"])), result.timings["mine"]


def check(engine: str, data: Path | None) -> None:
    """Compare with the CPU engine; exit where there is a difference."""
    graphs = {"rmat-9": generate("rmat", seed=1, scale=9, edge_factor=16)}
    if data is not None:
        graphs["ca-GrQc"] = longwall.open_graph(data / "graphs" / "ca-GrQc.edges.gz")
    for name, graph in graphs.items():
        for what, workload in (ORBITS | EDGES).items():
            if mined(graph, workload, engine)[0] != mined(graph, workload, "cpu")[0]:
                sys.exit(f"{name}, {what}: {engine} differs from cpu")
            print(f"{name}, {what}: {engine} and cpu agree", flush=True)


def rows(data: Path | None) -> Iterator[tuple[str, Any, dict[str, dict[str, Any]]]]:
    """Yield graphs with what is measured on them."""
    if data is not None:
        yield "ca-AstroPh", longwall.open_graph(data / "graphs" / "ca-AstroPh.edges.gz"), ORBITS | EDGES
    yield "rmat-14", generate("rmat", seed=1, scale=14, edge_factor=16), EDGES | {"orbits 5": ORBITS["orbits 5"]}
    yield "rmat-18", generate("rmat", seed=1, scale=18, edge_factor=16), EDGES


def measure(engine: str, data: Path | None) -> None:
    """Print a line for every row."""
    for name, graph, workloads in rows(data):
        for what, workload in workloads.items():
            first, again = mined(graph, workload, engine), mined(graph, workload, engine)
            if first[0] != again[0]:
                sys.exit(f"{name}, {what}: two runs differ")
            for column, expected in KNOWN.get(what, {}).items() if name == "ca-AstroPh" else ():
                if sum(again[0][column].to_pylist()) != expected:
                    sys.exit(f"{name}, {what}: {column} does not add up to {expected:,}")
            print(f"| {name} | {what} | {first[1]:.3f} | {again[1]:.3f} |", flush=True)


def main() -> None:
    """Check, then measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--time", type=int, default=300, help="seconds after which the program ends")
    parser.add_argument("--data", type=Path, default=os.environ.get("LONGWALL_DATA"))
    options = parser.parse_args()
    signal.signal(signal.SIGALRM, lambda *_: (print("the time is up", flush=True), os._exit(3)))
    signal.alarm(options.time)
    data = Path(options.data) if options.data else None
    check(options.engine, data)
    print("| graph | count | s, first run | s, second run |\n|---|---|---|---|", flush=True)
    measure(options.engine, data)


if __name__ == "__main__":
    main()
