"""Measure what a Dask cluster on this machine adds to a run in one process, on the same cores.

    python -m benchmarks.suites.cluster --scale 15 --repeats 3 --out cluster.md

The runs take turns: one process with all threads, a worker with all threads, as many workers with a thread each. Every
run is in a fresh process; a count that differs makes the exit status 1. "mining" is what the run says of itself;
"whole" has the start and the end of the cluster besides. "idle" is the time of the threads while they mined nothing:
until a worker had imported what it needs and opened the graph, between ranges, and at the end of a phase, when others
still worked. Processor time is of all processes of a run. With `--ranges` the work is cut into at least so many
ranges, on the workers with a thread each: what a cluster of thousands of threads would deal out.
"""

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.lib.measure import Outcome, call
from benchmarks.lib.report import seconds
from benchmarks.lib.suite import Suite

_EDGE_FACTOR = 16
_PATTERN = "0-1,0-2,0-3,1-2,1-3,2-4,3-4"
_MANY_PATTERN, _MANY_SCALE = "diamond", 13


def mine(store: str, pattern: str, workers: int, threads: int, ranges: int, work: str) -> dict[str, Any]:
    """Count a pattern with so many workers of so many threads, 0 workers for one process; gives count and times."""
    import pyarrow.parquet as pq

    import longwall

    if ranges:
        from longwall.pipeline.cluster import dispatcher

        dispatcher._CUTS = -(-ranges // (workers * threads))
    scheduler = {"kind": "dask", "workers": workers, "threads_per_worker": threads} if workers else {"kind": "local"}
    with tempfile.TemporaryDirectory(dir=work) as folder:
        config = {
            "graph": {"path": store},
            "workload": {"kind": "match", "pattern": pattern},
            "engine": {"kind": "cpu", "threads": threads},
            "memory": {"spill": f"{folder}/spill"},
            "scheduler": scheduler,
            "run": {"directory": folder, "name": "run"},
        }
        began = time.perf_counter()
        result = longwall.run(config)
        whole = time.perf_counter() - began
        rows = pq.read_table(result.path / "metrics.parquet").to_pylist()
    ours = [row for row in rows if row["stage"].startswith("ranges of ")]
    mining = result.timings["mine"]
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "count": result.count,
        "mining": mining,
        "whole": whole,
        "idle": mining * workers * threads - sum(row["seconds"] for row in ours),
        "ranges": sum(row["tasks"] for row in ours),
        "processor": sum(one.ru_utime + one.ru_stime for one in usage),
        "coordinator": usage[0].ru_utime + usage[0].ru_stime,
    }


class Cluster(Suite):
    """One run of the benchmark."""

    def measure(self) -> None:
        """Compare, and deal out many ranges."""
        self.head("Clusters on one machine")
        self._compare()
        if self.settings.ranges:
            self._deal_many()

    def _store(self, scale: int) -> str:
        path = str(self.work / f"rmat-{scale}.zarr")
        call("benchmarks.lib.graphs:make_rmat", None, store=path, scale=scale, edge_factor=_EDGE_FACTOR)
        return path

    def _call(self, store: str, pattern: str, workers: int, threads: int, ranges: int = 0) -> Outcome:
        arguments = {"store": store, "pattern": pattern, "work": str(self.work), "ranges": ranges}
        outcome = call(
            "benchmarks.suites.cluster:mine", self.settings.limit, workers=workers, threads=threads, **arguments
        )
        if outcome.status != "done":
            self.failures.append(f"{workers} workers of {threads} threads: {outcome.reason}")
        return outcome

    def _compare(self) -> None:
        cores, scale = self.settings.cores, self.settings.scale
        store = self._store(scale)
        kinds = {
            f"one process, {cores} threads": (0, cores),
            f"1 worker, {cores} threads": (1, cores),
            f"{cores} workers, 1 thread": (cores, 1),
        }
        for workers, threads in kinds.values():  # compiles what is missing
            self._call(self._store(8), _PATTERN, workers, threads)
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in kinds}
        for _ in range(self.settings.repeats):
            for name, (workers, threads) in kinds.items():
                outcome = self._call(store, _PATTERN, workers, threads)
                found[name] += [outcome.value] if outcome.status == "done" else []
        if len({one["count"] for runs in found.values() for one in runs}) > 1:
            self.failures.append("the counts differ")
        self.say(
            f"- `{_PATTERN}` in R-MAT {scale}, {_EDGE_FACTOR} edges a vertex; medians of {self.settings.repeats} runs",
            "",
            "| | mining s | more | whole s | more | idle thread s | ranges | processor s | of it coordinator |",
            "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
        )
        first = next(iter(found.values()))
        for name, runs in found.items():
            if runs and first:
                self.say(_row(name, _medians(runs), _medians(first)))

    def _deal_many(self) -> None:
        cores, store = self.settings.cores, self._store(_MANY_SCALE)
        outcome = self._call(store, _MANY_PATTERN, cores, 1, self.settings.ranges)
        if outcome.status == "done":
            one = outcome.value
            self.say(
                "",
                f"- {one['ranges']:,} ranges (`{_MANY_PATTERN}`, R-MAT {_MANY_SCALE}): "
                f"mining {seconds(one['mining'])} s, "
                f"the coordinator's processor {seconds(one['coordinator'])} s from its start to its end",
            )


def _medians(runs: list[dict[str, Any]]) -> dict[str, float]:
    return {key: median(run[key] for run in runs) for key in runs[0]}


def _row(name: str, found: dict[str, float], first: dict[str, float]) -> str:
    cells = [name]
    for key in ("mining", "whole"):
        cells += [seconds(found[key]), f"{100 * (found[key] / first[key] - 1):+.1f} %"]
    alone = found is first or not found["ranges"]
    cells += ["-", "-"] if alone else [seconds(found["idle"]), f"{found['ranges']:.0f}"]
    cells += [seconds(found["processor"]), seconds(found["coordinator"])]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=int, default=15, help="of the R-MAT graph (15 takes a minute on two cores)")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ranges", type=int, default=10_000, help="of the last run; 0: none")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for a run")
    parser.add_argument("--work", default="build/benchmarks", help="folder for graphs and runs")
    parser.add_argument("--out", type=Path, help="write the figures there, too")
    return Cluster(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
