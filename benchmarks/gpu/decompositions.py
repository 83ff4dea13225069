"""Check patterns that decompose into tables against the CPU engine, and time both engines.

    python -m benchmarks.gpu.decompositions [--scales 13 16] [--time 240] [--cpu-arcs 4000000] [--profile]
        [--only P3 P6] [--graphs ca-AstroPh.edges.gz]

Whole runs of the second kind in a process: `mine` of the run's timings, in milliseconds. A graph with more arcs than
`--cpu-arcs` is not counted on the CPU again; its line says so. With `--profile`, a third run is taken apart: a line for
every kernel, in the order of launches, with the milliseconds before them (arrays, copies, and the host) and of the
kernel, by CUDA events.
"""

import argparse
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial, wraps
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import longwall
from longwall.kernels.cuda.device import Device
from longwall.kernels.cuda.homomorphisms.fused_rows import SUM_EDGES, SUM_PRODUCT
from longwall.kernels.interface.homomorphism_program import Op
from longwall.storage.generators.kinds import generate
from longwall.storage.graph.graph import Graph
from longwall.storage.ingest.ingest import load_graph

PATTERNS = {
    "P3": "0-1,0-2,0-3,0-4,1-2,1-3,1-4,2-3",
    "P4": "0-1,0-2,0-3,1-2,1-3,2-4,3-4",
    "P5": "0-1,0-2,0-3,0-4,1-2,1-4,2-3,3-4",
    "P6": "0-1,0-2,0-3,0-4,1-2,1-3,1-4,2-3,3-4",
    "cycle-5": "cycle-5",
    "house": "house",
    # Of six vertices: passes over the graph from common neighbours, over whole neighbourhoods, tables of common ones.
    "S1": "0-1,0-2,0-3,0-4,1-3,1-5,2-3,2-5",
    "S2": "0-1,0-2,0-4,0-5,1-2,1-4,1-5,2-3,2-5,3-4",
    "S3": "0-1,0-4,0-5,1-2,1-5,2-3,2-5,3-4,3-5,4-5",
    "S4": "0-1,0-2,0-3,0-4,0-5,1-2,1-3,1-5,2-3,2-4,3-4,3-5,4-5",
    "S5": "0-1,0-2,0-4,0-5,1-2,1-3,1-4,1-5,2-3,2-4,2-5,3-4,3-5,4-5",
    # By pairs of vertices: the octahedron, paths whose ends or all but one are common, K(3,3), the same less an edge.
    "S6": "0-2,0-3,0-4,0-5,1-2,1-3,1-4,1-5,2-3,2-5,3-4,4-5",
    "S7": "0-2,0-3,0-4,0-5,1-2,1-5,2-3,3-4,4-5",
    "S8": "0-2,0-3,0-4,0-5,1-2,1-4,1-5,2-3,3-4,4-5",
    "S9": "0-2,0-3,0-4,1-2,1-3,1-4,2-5,3-5,4-5",
    "S10": "0-2,0-3,0-4,1-2,1-3,1-4,2-5,3-5",
}
_OPERATIONS = {int(op): op.name.lower() for op in Op} | {SUM_PRODUCT: "sum_product", SUM_EDGES: "sum_edges"}


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


class Launch(NamedTuple):
    """A kernel, and the events before and after it."""

    name: str
    began: Any
    ended: Any


@contextmanager
def launches() -> Iterator[list[Launch]]:
    """Record all launches while the context is open."""
    found: list[Launch] = []
    launch = Device.launch

    @wraps(launch)
    def recorded(self: Device, source: str, function: str, arguments: tuple[Any, ...], **options: Any) -> None:
        began, ended = self.xp.cuda.Event(), self.xp.cuda.Event()
        began.record()
        launch(self, source, function, arguments, **options)
        ended.record()
        size = f"{options['blocks']} x {options['threads']}"
        what = operations(options.get("generated", ""))
        found.append(Launch(f"{source} {function} ({size}) {what}", began, ended))

    Device.launch = recorded  # type: ignore[method-assign]
    try:
        yield found
    finally:
        Device.launch = launch  # type: ignore[method-assign]


def operations(generated: str) -> str:
    """Return the operations of a row program, as its header has them."""
    ops = re.search(r"RowOp kOps\[\] = \{(.*)\};", generated)
    codes = re.findall(r"\{(\d+),", ops[1]) if ops else []
    rows = "arcs: " if "kArcs = 1" in generated else "common: " if "kOnGraph = 1" in generated else "vertices: "
    return rows + " ".join(_OPERATIONS[int(code)] for code in codes) if codes else ""


def print_profile(graph: Graph, workload: dict[str, Any]) -> None:
    """Print where the time of a run goes."""
    with launches() as found:
        _, milliseconds = mine(graph, workload, "cuda")
    if not found:
        return
    import cupy  # a CPU's interpreter has none

    elapsed = cupy.cuda.get_elapsed_time
    found[-1].ended.synchronize()
    last, kernels = found[0].began, 0.0
    for name, group in groupby(found, attrgetter("name")):
        times = []
        for one in group:
            times.append((elapsed(last, one.began), elapsed(one.began, one.ended)))
            last = one.ended
        before, own = (sum(column) for column in zip(*times, strict=True))
        print(f"    {before:9.3f} {own:9.3f} {len(times):5d} x {name}", flush=True)
        kernels += own
    span = elapsed(found[0].began, last)
    print(f"    kernels {kernels:.3f} of {span:.3f} ms from the first to the last, of {milliseconds:.3f}", flush=True)


def main() -> None:
    """Check first, then print the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scales", type=int, nargs="+", default=[13, 16])
    parser.add_argument("--time", type=float, default=240, help="seconds after which nothing more is begun")
    parser.add_argument("--cpu-arcs", type=int, default=4_000_000)
    parser.add_argument("--profile", action="store_true", help="print the time of every launch")
    parser.add_argument("--only", nargs="+", help="names of the patterns; else all are counted")
    parser.add_argument("--graphs", nargs="*", default=[], help="edge lists that are counted besides")
    options = parser.parse_args()
    end = time.perf_counter() + options.time
    workloads: dict[str, dict[str, Any]] = {
        name: {"kind": "match", "pattern": pattern} for name, pattern in PATTERNS.items()
    }
    workloads["motifs of 5"] = {"kind": "motifs", "k": 5, "method": "counting"}
    graphs = [
        (f"R-MAT {scale}", partial(generate, "rmat", seed=1, scale=scale, edge_factor=16)) for scale in options.scales
    ]
    graphs += [(path.rpartition("/")[2], partial(load_graph, path)) for path in options.graphs]
    for title, make in graphs:
        graph = make()
        for name, workload in workloads.items():
            if options.only and name not in options.only:
                continue
            if time.perf_counter() > end:
                print("out of time", flush=True)
                return
            counts, _ = mine(graph, workload, "cuda")
            checked = "not checked"
            if graph.num_edges * 2 <= options.cpu_arcs:
                expected, milliseconds = mine(graph, workload, "cpu")
                assert counts == expected, (title, name, counts, expected)
                checked = f"as the CPU's, {milliseconds:,.0f} ms"
            _, milliseconds = mine(graph, workload, "cuda")
            print(f"{title}  {name:<12} {milliseconds:10,.1f} ms  {checked}", flush=True)
            if options.profile:
                print_profile(graph, workload)


if __name__ == "__main__":
    main()
