"""Measure motifs: both methods, on R-MAT graphs and on a real graph, after their counts were checked.

    python -m benchmarks.suites.motifs --scales 14 --sizes 3,4 --real ca-AstroPh.edges.gz --real-sizes 5 --out motifs.md

Every run is in a fresh process under a time limit; the time is that of mining with the kernels loaded, by a run on a
tiny graph and, where it is short enough, by one on the graph itself. Counts are compared with igraph's (3 and 4
vertices), and between methods always; one that differs makes the exit status 1. The floor of an enumeration of 3 or 4
vertices is a step (see `floor`) for every neighbour of the last vertex of every connected set with one vertex less.
"""

import argparse
import os
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.lib.measure import Outcome, call
from benchmarks.lib.report import seconds
from benchmarks.lib.suite import Suite

_METHODS = ("enumeration", "counting")
_MOST_COUNTED, _MOST_STEPS_KNOWN = 6, 4
_CHECK_SCALE, _CHECK_EDGE_FACTOR = 8, 4
_EDGE_FACTOR = 16
_AGAIN_BELOW_SECONDS = 5.0
_CHECK_LIMIT = 300.0
_TINY_SCALE, _TINY_EDGE_FACTOR = 5, 2
_STEPS_AT_ONCE = 256  # vertices whose steps a thread counts at a time


def mine(store: str, tiny: str, k: int, method: str, engine: str, work: str) -> dict[str, Any]:
    """Count the motifs of `k` vertices of a graph store, after those of a tiny one; gives counts and seconds."""
    import longwall

    section = {"kind": "motifs", "k": k, "method": method}
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=work) as folder:
        for name, path in (("tiny", tiny), ("first", store), ("again", store)):
            run = {"directory": folder, "name": name}
            result = longwall.run(
                {"graph": {"path": path}, "workload": section, "engine": {"kind": engine}, "run": run}
            )
            if name == "tiny":
                continue
            found = {"counts": [one.count for one in result.patterns], "seconds": result.timings["mine"]}
            found["patterns"] = [one.pattern for one in result.patterns]
            if found["seconds"] > _AGAIN_BELOW_SECONDS:
                break
    return found


def reference(store: str, k: int) -> dict[str, int]:
    """Count motifs by igraph: isomorphism class to count, of 3 or 4 vertices."""
    import igraph
    import numpy as np

    import longwall

    graph = longwall.open_graph(store)
    owners = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
    once = owners < graph.indices
    theirs = igraph.Graph(graph.num_vertices, np.column_stack([owners[once], graph.indices[once]]).tolist())
    return {str(i): int(n) for i, n in enumerate(theirs.motifs_randesu(size=k)) if n == n}


def isomorphism_classes(patterns: list[str], k: int) -> list[str]:
    """Numbers that igraph gives the patterns."""
    import igraph

    edges = [[tuple(map(int, edge.split("-"))) for edge in pattern.split(",")] for pattern in patterns]
    return [str(igraph.Graph(k, one).isoclass()) for one in edges]


class Motifs(Suite):
    """One run of the benchmark."""

    def __init__(self, settings: argparse.Namespace):
        super().__init__(settings)
        self.tiny = str(self.work / "tiny.zarr")

    def measure(self) -> None:
        """Check and measure, graph by graph."""
        settings = self.settings
        self.head(f"Motifs, {settings.engine}")
        self._check()
        rate = call("benchmarks.lib.floor:steps_per_second", None, kind=settings.engine).value
        self.say(
            f"- Limit {settings.limit:g} s a run; step rate of the floor {rate:.3g} a second",
            "",
            "| graph | k | motifs | counting s | enumeration s | floor of enumeration s | x floor |",
            "|---|---:|---:|---:|---:|---:|---:|",
        )
        for scale in settings.scales:
            store = str(self.work / f"rmat-{scale}.zarr")
            facts = call(
                "benchmarks.lib.graphs:make_rmat", None, store=store, scale=scale, edge_factor=_EDGE_FACTOR
            ).value
            self._measure(f"rmat-{scale}", facts, settings.sizes, rate)
        for path in settings.real:
            name = path.name.partition(".")[0]
            store = str(self.work / f"{name}.zarr")
            facts = call("benchmarks.lib.graphs:make_real", None, store=store, edges=str(path)).value
            self._measure(name, facts, settings.real_sizes, rate)

    def _check(self) -> None:
        store = str(self.work / "check.zarr")
        call("benchmarks.lib.graphs:make_rmat", None, store=self.tiny, scale=_TINY_SCALE, edge_factor=_TINY_EDGE_FACTOR)
        call("benchmarks.lib.graphs:make_rmat", None, store=store, scale=_CHECK_SCALE, edge_factor=_CHECK_EDGE_FACTOR)
        for k in (3, 4, 5):
            runs = {method: self._call(store, k, method, _CHECK_LIMIT) for method in _METHODS}
            first = self._agree(f"check, k = {k}", runs)
            theirs = call("benchmarks.suites.motifs:reference", _CHECK_LIMIT, store=store, k=k) if k < 5 else None
            if first is None or theirs is None or theirs.status == "skipped":
                continue
            classes = call("benchmarks.suites.motifs:isomorphism_classes", None, patterns=first["patterns"], k=k).value
            if [theirs.value[number] for number in classes] != first["counts"]:
                self.failures.append(f"check, k = {k}: igraph counts something else")

    def _call(self, store: str, k: int, method: str, limit: float) -> Outcome:
        arguments = {"store": store, "tiny": self.tiny, "k": k, "method": method, "engine": self.settings.engine}
        return call("benchmarks.suites.motifs:mine", limit, work=str(self.work), **arguments)

    def _agree(self, what: str, runs: dict[str, Outcome]) -> dict[str, Any] | None:
        """Note runs that failed or differ; gives one that did not fail."""
        done = [outcome.value for outcome in runs.values() if outcome.status == "done"]
        for method, outcome in runs.items():
            if outcome.status == "failed":
                self.failures.append(f"{what}, {method}: {outcome.reason}")
        if any(one["counts"] != done[0]["counts"] or one["patterns"] != done[0]["patterns"] for one in done[1:]):
            self.failures.append(f"{what}: the methods differ")
        return done[0] if done else None

    def _measure(self, name: str, facts: dict[str, Any], sizes: list[int], rate: float) -> None:
        for k in sizes:
            runs = {
                method: self._call(facts["store"], k, method, self.settings.limit)
                for method in _METHODS
                if method == "enumeration" or k <= _MOST_COUNTED
            }
            found = self._agree(f"{name}, k = {k}", runs)
            floor = None
            if k <= _MOST_STEPS_KNOWN:
                known = call("benchmarks.suites.motifs:steps", self.settings.limit, store=facts["store"], k=k)
                floor = known.value / rate if known.status == "done" else None
            taken = runs["enumeration"].value["seconds"] if runs["enumeration"].status == "done" else None
            cells = [name, str(k), f"{sum(found['counts']):,}" if found else "-"]
            cells += [_cell(runs.get("counting")), _cell(runs["enumeration"])]
            cells += [seconds(floor) if floor else "-", f"{taken / floor:.1f}" if taken and floor else "-"]
            self.say(f"| {' | '.join(cells)} |")


def steps(store: str, k: int) -> int:
    """Sum the degrees of the last vertices of all connected sets of k - 1 vertices, 2 or 3, in the kernel's order."""
    import numba
    import numpy as np

    import longwall

    def last_degrees(indptr: Any, indices: Any, marks: Any, k: int, first: int, last: int) -> int:
        total = 0
        for v in range(first, last):
            marks[indices[indptr[v] : indptr[v + 1]]] = 1
            for j in range(indptr[v], indptr[v + 1]):
                s = indices[j]
                if s < v:
                    continue
                if k == 3:
                    total += indptr[s + 1] - indptr[s]
                    continue
                for i in range(j + 1, indptr[v + 1]):
                    total += indptr[indices[i] + 1] - indptr[indices[i]]
                for i in range(indptr[s], indptr[s + 1]):
                    u = indices[i]
                    if u > v and not marks[u]:
                        total += indptr[u + 1] - indptr[u]
            marks[indices[indptr[v] : indptr[v + 1]]] = 0
        return total

    graph = longwall.open_graph(store)
    indptr, indices, own = graph.indptr, graph.indices, threading.local()
    kernel: Any = numba.njit(last_degrees, nogil=True)
    kernel(indptr, indices, np.zeros(graph.num_vertices, np.uint8), k, 0, 0)

    def some(first: int) -> int:
        if not hasattr(own, "marks"):
            own.marks = np.zeros(graph.num_vertices, np.uint8)
        return int(kernel(indptr, indices, own.marks, k, first, min(first + _STEPS_AT_ONCE, graph.num_vertices)))

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return sum(pool.map(some, range(0, graph.num_vertices, _STEPS_AT_ONCE)))


def _cell(outcome: Outcome | None) -> str:
    if outcome is None:
        return "-"
    return seconds(outcome.value["seconds"]) if outcome.status == "done" else outcome.reason


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--scales", type=_numbers, default=[14], help="scales of R-MAT graphs, such as 14,18")
    parser.add_argument("--sizes", type=_numbers, default=[3, 4], help="vertices of the motifs there")
    parser.add_argument("--real", type=Path, action="append", default=[], help="an edge list; may be repeated")
    parser.add_argument("--real-sizes", type=_numbers, default=[5], help="vertices of the motifs there")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a run may take")
    parser.add_argument("--work", default="build/motifs", help="folder for graph stores and runs")
    parser.add_argument("--out", type=Path, help="file for the table")
    return Motifs(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
