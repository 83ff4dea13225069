"""Compare one GPU of this machine with all of them: equal results first, then the time of long counts.

    python -m benchmarks.gpu.two_devices --out two_devices.md
    python -m benchmarks.gpu.two_devices --scale 8 --seconds 1 --work /tmp/work     # to try it

Every workload on a small graph gives the same on all GPUs, on one of them and on the CPU. Then, for each pattern, an
R-MAT graph is made on the GPU whose edge factor is raised until one GPU is busy for `--seconds`; the last run is
repeated on all. Every run is in a fresh process. "Mine" is the counting, with what the workers do before their first
range: they open the graph and load kernels. "Whole" is all of the run, with reading the graph and starting the workers.
A worker is idle while it has no range. Of the parts "rest" has the start of the workers, as far as the graph was read
before, and their end.
"""

import argparse
import math
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.lib.measure import Outcome, call
from benchmarks.lib.report import seconds
from benchmarks.lib.suite import Suite

WHEEL = "0-1,0-2,0-3,0-4,1-2,2-3,3-4,4-1"
CHECKS: dict[str, dict[str, Any]] = {
    "triangles": {"kind": "triangles"},
    "triangles per vertex": {"kind": "triangles", "output": "vertices"},
    "5-cliques": {"kind": "cliques", "k": 5},
    "houses": {"kind": "match", "pattern": "house"},
    "wheels": {"kind": "match", "pattern": WHEEL},
    "induced 4-cycles": {"kind": "match", "pattern": "0-1,1-2,2-3,3-0", "induced": True},
    "labelled diamonds": {"kind": "match", "pattern": "diamond", "pattern_labels": [0, 1, 0, 2]},
    "labelled diamonds, listed": {
        "kind": "match",
        "pattern": "diamond",
        "pattern_labels": [0, 1, 0, 2],
        "output": "embeddings",
    },
    "4-motifs": {"kind": "motifs", "k": 4},
    "4-motifs, enumerated": {"kind": "motifs", "k": 4, "method": "enumeration"},
    "3-motifs per vertex": {"kind": "motifs", "k": 3, "output": "vertices"},
    "frequent patterns": {"kind": "frequent", "min_support": 60, "max_edges": 3},
}
PATTERNS = {"5-clique": {"kind": "cliques", "k": 5}}
_LABELS = 4
_SMALLEST_STEP, _LARGEST_STEP = 1.25, 2.0  # of the edge factor
_CLOSE, _MORE = 0.75, 1.05  # of the seconds that are wanted, of the edges before


def make(store: str, scale: int, edge_factor: int, labels: int) -> int:
    """Make a store, on the GPU; gives its edges."""
    import cupy

    from benchmarks.gpu.device_rmat import labelled, rmat_graph
    from longwall.storage.graph.store_writer import write_graph

    graph = rmat_graph(cupy, scale, edge_factor)
    write_graph(labelled(graph, labels) if labels else graph, store)
    return graph.num_edges


def tables(store: str, engine: dict[str, Any], work: str) -> dict[str, dict[str, list[str]]]:
    """Do what is checked; gives the rows of all tables of every workload."""
    return {name: mine(store, workload, engine, work)["tables"] for name, workload in CHECKS.items()}


def mine(store: str, workload: dict[str, Any], engine: dict[str, Any], work: str) -> dict[str, Any]:
    """Run; gives the counts and the tables in an order of their own, the seconds, and the idle share per worker."""
    import pyarrow.parquet as pq

    import longwall

    with tempfile.TemporaryDirectory(dir=work) as folder:
        spec = {"graph": {"path": store}, "workload": workload, "engine": engine}
        paths = {"memory": {"spill": f"{folder}/spill"}, "run": {"directory": folder, "name": "run"}}
        result = longwall.run(spec | paths)
        found: dict[str, Any] = {"engine": result.engine, "whole": result.seconds, "mine": result.timings["mine"]}
        found["parts"] = result.timings | {"rest": result.seconds - sum(result.timings.values())}
        rows: dict[str, list[str]] = {}
        for file in sorted((result.path / "results").glob("*.parquet")):
            of_table = rows.setdefault(file.stem.partition("-")[0], [])
            of_table += [str(list(row.values())) for row in pq.read_table(file).to_pylist()]
        found["tables"] = {name: sorted(of_table) for name, of_table in rows.items()}
        found["counts"] = [one.count for one in result.patterns]
        found["idle"] = {
            row["stage"].removeprefix("ranges of "): 1 - row["seconds"] / found["mine"]
            for row in pq.read_table(result.path / "metrics.parquet").to_pylist()
            if row["stage"].startswith("ranges of ")
        }
    return found


class TwoDevices(Suite):
    """One run of the benchmark."""

    def __init__(self, settings: argparse.Namespace):
        super().__init__(settings)
        self.work = Path(tempfile.mkdtemp(prefix="two-devices-", dir=self.work))

    def measure(self) -> None:
        """Check and measure, pattern by pattern."""
        self.head("All GPUs of a machine")
        try:
            if not self.settings.no_checks:
                self._check()
            self.say(
                "",
                "| pattern | R-MAT scale, edge factor | edges | GPUs | count | mine s | speed-up | whole s | speed-up "
                "| parts s | idle |",
                "|---|---|---:|---|---:|---:|---:|---:|---:|---|---|",
            )
            patterns = PATTERNS | {name: {"kind": "match", "pattern": name} for name in self.settings.pattern}
            for name, workload in patterns.items():
                self._measure(name, workload)
        finally:
            shutil.rmtree(self.work, ignore_errors=True)

    def _check(self) -> None:
        store = str(self.work / "small.zarr")
        if self._made(store, self.settings.small_scale, 8, _LABELS) is None:
            return
        engines: dict[str, dict[str, Any]] = {
            "on the CPU": {"kind": "cpu"},
            "on one GPU": {"kind": "cuda"},
            "on all GPUs": {"kind": "cuda", "devices": "all"},
        }
        found = {}
        for where, engine in engines.items():
            limit = self.settings.limit
            outcome = call("benchmarks.gpu.two_devices:tables", limit, store=store, engine=engine, work=str(self.work))
            if outcome.status != "done":
                self.failures.append(f"the checks {where}: {outcome.reason}")
                return
            found[where] = outcome.value
        different = [
            f"{name}: other results {where}"
            for name in CHECKS
            for where in engines
            if found[where][name] != found["on the CPU"][name]
        ]
        self.failures += different
        if not different:
            self.say(f"- All the same on the CPU, on one GPU and on all: {', '.join(CHECKS)}")

    def _measure(self, name: str, workload: dict[str, Any]) -> None:
        """Raise the edge factor until one GPU is busy long enough, and let all do the same."""
        wanted, factor, growth = self.settings.seconds, self.settings.edge_factor, 3.0
        before: tuple[int, float, int] | None = None
        while True:
            store = str(self.work / f"{name}-{factor}.zarr")
            edges = self._made(store, self.settings.scale, factor, 0)
            one = Outcome("skipped") if edges is None else self._call(name, store, workload, {"kind": "cuda"})
            if one.status != "done":
                return
            took = one.value["mine"]
            print(f"{name}, edge factor {factor}: {took:.2f} s on one GPU", file=sys.stderr, flush=True)
            if took >= _CLOSE * wanted or (before is not None and edges < _MORE * before[2]):
                break  # long enough, or there are few more edges
            if before is not None:
                growth = max(math.log(took / before[1]) / math.log(factor / before[0]), 1.5)
            before = factor, took, edges
            step = min(max((wanted / took) ** (1 / growth), _SMALLEST_STEP), _LARGEST_STEP)
            factor = max(round(factor * step), factor + 1)
            shutil.rmtree(store)
        every = self._call(name, store, workload, {"kind": "cuda", "devices": "all"})
        shutil.rmtree(store)
        if every.status == "done" and every.value["counts"] != one.value["counts"]:
            self.failures.append(f"{name}: {every.value['counts']} on all GPUs, {one.value['counts']} on one")
        for where, outcome in (("one", one), ("all", every)):
            if outcome.status != "done":
                continue
            found = outcome.value
            idle = ", ".join(f"{worker}: {share:.0%}" for worker, share in sorted(found["idle"].items()))
            counts = ", ".join(f"{count:,}" for count in found["counts"])
            cells = [name, f"{self.settings.scale}, {factor}", f"{edges:,}", where, counts]
            for key in ("mine", "whole"):
                cells += [seconds(found[key]), f"{one.value[key] / found[key]:.2f}"]
            parts = ", ".join(f"{part} {took:.2f}" for part, took in found["parts"].items())
            self.say(f"| {' | '.join([*cells, parts, idle or '-'])} |")

    def _made(self, store: str, scale: int, edge_factor: int, labels: int) -> int | None:
        outcome = call(
            "benchmarks.gpu.two_devices:make",
            self.settings.limit,
            store=store,
            scale=scale,
            edge_factor=edge_factor,
            labels=labels,
        )
        if outcome.status != "done":
            self.failures.append(f"a graph of scale {scale} and edge factor {edge_factor}: {outcome.reason}")
            return None
        return int(outcome.value)

    def _call(self, name: str, store: str, workload: dict[str, Any], engine: dict[str, Any]) -> Outcome:
        limit = self.settings.limit
        outcome = call(
            "benchmarks.gpu.two_devices:mine", limit, store=store, workload=workload, engine=engine, work=str(self.work)
        )
        if outcome.status != "done":
            self.failures.append(f"{name}: {outcome.reason}")
        return outcome


def _parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-checks", action="store_true", help="compare no results of the small graph")
    parser.add_argument("--small-scale", type=int, default=9, help="of the R-MAT graph for the checks")
    parser.add_argument("--scale", type=int, default=20, help="of the R-MAT graphs that are measured")
    parser.add_argument("--edge-factor", type=int, default=32, help="of the first of them")
    parser.add_argument("--pattern", nargs="*", default=["house"], help="what is measured besides 5-cliques")
    parser.add_argument("--seconds", type=float, default=30.0, help="for which one GPU should be busy")
    parser.add_argument("--limit", type=float, default=150.0, help="seconds a run may take")
    parser.add_argument("--work", default=tempfile.gettempdir(), help="folder on a local disk for graphs and runs")
    parser.add_argument("--out", type=Path, help="write the section to this file, too")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(TwoDevices(_parse(sys.argv[1:])).run())
