"""Measure counts whose kernels take less than a millisecond, in calls of a function and in runs with a folder.

    python -m benchmarks.gpu.small_counts --graph ca-AstroPh.edges.gz [--engine cuda] [--calls 25] [--runs 7]

The graph is in memory and kernels are loaded. Of each kind, five calls or runs that are not measured come first. The
columns have milliseconds of ``longwall.count``, of the mining in it, and of the timings ``mine`` and ``graph`` of
``longwall.run``: the median, and the least in brackets. The last column has the count. Labelled graphs have one of four
labels at each vertex, at random.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np

import longwall
from benchmarks.lib.machine import describe_machine
from benchmarks.lib.seed_patterns import TDFS
from longwall.pipeline.workloads.match import Match

_AHEAD = 5
_PATTERNS = {
    "triangle": "triangle",
    "tailed triangle": "tailed-triangle",
    "bull": "0-1,0-2,1-2,0-3,1-4",
    "star of 5": "star-5",
    "path of 3": "path-3",
    "path of 4": "path-4",
    "path of 5": "path-5",
    "path of 6": "path-6",
    **{f"{k}-clique": f"clique-{k}" for k in (4, 6, 8)},
    "house": "house",
    **{f"T-DFS {name}": TDFS[name] for name in ("P3", "P4", "P5", "P6")},
}
_LABELLED = {
    "labelled diamond": "(a:0)-(b:1)-(c:2)-(d:3)-(a), (a)-(c)",
    "labelled 4-clique": "(a:0)-(b:1)-(c:2)-(d:3)-(a)-(c), (b)-(d)",
}


def mining(seconds: list[float]) -> Callable[[], None]:
    """Add the seconds of each mining of a pattern to a list; the function that is returned ends this."""
    execute = Match.execute

    def timed(self: Match, plan: Any, env: Any) -> Any:
        began = time.perf_counter()
        try:
            return execute(self, plan, env)
        finally:
            seconds.append(time.perf_counter() - began)

    def restore() -> None:
        Match.execute = execute  # type: ignore[method-assign]

    Match.execute = timed  # type: ignore[method-assign]
    return restore


def with_labels(graph: longwall.Graph) -> longwall.Graph:
    """Return the graph with one of four labels at each vertex, at random."""
    edges = graph.to_arrow()
    ids = np.unique(np.concatenate([edges[name].to_numpy() for name in ("source", "target")]))
    return longwall.graph(edges, labels=(ids, np.random.default_rng(1).integers(0, 4, len(ids))))


def calls(graph: longwall.Graph, pattern: str, engine: Any, number: int) -> list[Sequence[float]]:
    """Return the seconds of each call, and of the mining in each call."""
    took, mined = list[float](), list[float]()
    for _ in range(_AHEAD):
        longwall.count(graph, pattern, engine=engine)
    restore = mining(mined)
    for _ in range(number):
        began = time.perf_counter()
        longwall.count(graph, pattern, engine=engine)
        took.append(time.perf_counter() - began)
    restore()
    return [took, mined]


def runs(graph: longwall.Graph, pattern: str, engine: str, number: int) -> list[Sequence[float]]:
    """Return the seconds of the part "mine" of each run, and of the part "graph"."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for one in range(_AHEAD + number):
            config = {
                "graph": graph,
                "workload": {"kind": "match", "pattern": pattern},
                "engine": {"kind": engine},
                "run": {"directory": folder, "name": str(one), "report": False},
            }
            found.append(longwall.run(config).timings)
    return [[one[part] for one in found[_AHEAD:]] for part in ("mine", "graph")]


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", required=True)
    parser.add_argument("--engine", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--calls", type=int, default=25)
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    real = longwall.open_graph(arguments.graph)
    small = longwall.graph([(0, 1), (1, 2), (0, 2)])
    asked = [(name, real, pattern) for name, pattern in _PATTERNS.items()]
    asked += [(name, with_labels(real), pattern) for name, pattern in _LABELLED.items()]
    asked += [("three vertices", small, "triangle")]
    print(f"{'pattern':<17} {'call':>15} {'of it mining':>15} {'run: mine':>15} {'run: graph':>15} {'count':>15}")
    for name, graph, pattern in asked:
        found = calls(graph, pattern, arguments.engine, arguments.calls)
        found += runs(graph, pattern, arguments.engine, arguments.runs)
        cells = [f"{1e3 * median(one):.2f} ({1e3 * min(one):.2f})" for one in found]
        cells.append(str(longwall.count(graph, pattern, engine=arguments.engine)))
        print(f"{name:<17} " + " ".join(f"{cell:>15}" for cell in cells), flush=True)
    print(json.dumps(describe_machine()))


if __name__ == "__main__":
    main()
