"""Measure T-DFS's labelled patterns P8 to P14 beside what T-DFS takes, after their counts were checked.

    python -m benchmarks.gpu.labelled_searches                         # on a machine with a GPU
    python -m benchmarks.gpu.labelled_searches --engine cpu --graphs ca-AstroPh rmat-14
    python -m benchmarks.gpu.labelled_searches --graphs ca-AstroPh --patterns P11 P12 --steps --patience 14 16 18

First every pattern of a small graph is compared with igraph. Then each count of a graph is that of the CPU engine and,
with ``--whole``, of a search of the whole graph, which is not laid out by label and takes long. A time is the median of
mining, from planned to counted, with the graph brought to the device; "by label" is the part that lays the graph out.
``--steps`` prints the seconds of each event of one more count, then its kernels: milliseconds before each, in it,
launches; ``--patience`` does so for searches whose warps work on for 2 to the power of so many cycles before they look
for idle ones. A count that differs makes the exit status 1. Real graphs are in the folder that LONGWALL_DATA names.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq

import longwall
from benchmarks.gpu.decompositions import print_profile
from benchmarks.lib.machine import describe_machine
from benchmarks.lib.seed_checks import labelled
from benchmarks.lib.seed_patterns import TDFS, TDFS_LABELLED, TDFS_MILLISECONDS, mod_labels
from benchmarks.lib.seed_runs import make_graph
from longwall.kernels.cuda.search import search

_LONG = 10_000  # milliseconds of a count that is not repeated
_DATA = Path(os.environ.get("LONGWALL_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


def store_of(graph: str, work: Path) -> str:
    """Make the store of a graph with 4 random labels; return its path."""
    store, (kind, _, scale) = str(work / f"{graph}.zarr"), graph.partition("-")
    if kind == "rmat":
        make_graph(store, scale=int(scale), labelled=True)
    else:
        make_graph(store, edges=str(_DATA / "graphs" / f"{graph}.edges.gz"), labelled=True)
    return store


def counted(
    graph: Any, pattern: str, engine: str, work: Path, without: Sequence[str] = ()
) -> tuple[int, float, float, dict[str, Any]]:
    """Count a pattern once; return the count, the milliseconds of mining and of the layout, and the plan."""
    workload = {"kind": "match", "pattern": TDFS[pattern], "pattern_labels": mod_labels(TDFS[pattern])}
    with tempfile.TemporaryDirectory(dir=work) as folder:
        run = {"directory": folder, "report": False}
        result = longwall.run(
            {"graph": graph, "workload": workload, "engine": {"kind": engine, "without": list(without)}, "run": run}
        )
        rows = pq.read_table(result.path / "metrics.parquet").to_pylist()
        laid_out = sum(row["seconds"] for row in rows if row["stage"] == "the graph by label")
        plan = json.loads((result.path / "manifest.json").read_text())["plan"]
        assert result.count is not None
        return result.count, result.timings["mine"] * 1e3, laid_out * 1e3, plan


def print_steps(graph: Any, pattern: str, engine: str, work: Path) -> None:
    """Print what a count spends its time on."""
    workload = {"kind": "match", "pattern": TDFS[pattern], "pattern_labels": mod_labels(TDFS[pattern])}
    with tempfile.TemporaryDirectory(dir=work) as folder:
        run = {"directory": folder, "report": False}
        config = {"graph": graph, "workload": workload, "engine": {"kind": engine}, "run": run}
        result = longwall.run(config)
        parts = ", ".join(f"{name} {1e3 * seconds:.2f}" for name, seconds in result.timings.items())
        rows = pq.read_table(result.path / "metrics.parquet").to_pylist()
        events = ", ".join(f"{row['stage']} {1e3 * row['seconds']:.2f}" for row in rows)
    print(f"    ms by part: {parts}; by event: {events}", flush=True)
    if engine == "cuda":
        print_profile(graph, workload)


def whole(graph: Any, pattern: str, engine: str, work: Path) -> int:
    """Count a pattern by a search of the whole graph."""
    return counted(graph, pattern, engine, work, without=("label-partition",))[0]


def measure(name: str, settings: argparse.Namespace, work: Path) -> list[str]:
    """Measure all patterns on a graph; print a row for each, and return those that differ."""
    graph, wrong = longwall.open_graph(store_of(name, work)), []
    for number in settings.patterns:
        pattern = TDFS_LABELLED[number]
        runs = [counted(graph, pattern, settings.engine, work)]
        if runs[0][1] < _LONG:
            runs += [counted(graph, pattern, settings.engine, work) for _ in range(settings.runs)]
        found = {run[0] for run in runs}
        mining, layout = (median(run[at] for run in runs[1:] or runs) for at in (1, 2))  # the first one compiles
        theirs = TDFS_MILLISECONDS.get((name, number))
        beside = f"{theirs:g} | {theirs / mining:.1f}" if theirs else "- | -"
        count, plan, steps = runs[0][0], runs[0][3]["kind"], runs[0][3].get("estimated_cost", 0)
        print(
            f"| {name} | {number} ({pattern}) | {count:,} | {plan} | {mining:.2f} | {layout:.2f} | {beside} |",
            flush=True,
        )
        if settings.engine != "cpu" and steps > settings.check:
            print(f"    {steps:.2g} steps: too long for the CPU, not checked", flush=True)
        elif settings.engine != "cpu":
            found.add(counted(graph, pattern, "cpu", work)[0])
        if settings.whole:
            found.add(whole(graph, pattern, settings.engine, work))
        if len(found) > 1:
            wrong.append(f"{number} of {name}: {sorted(found)}")
        if settings.steps:
            print_steps(graph, pattern, settings.engine, work)
        for cycles in settings.patience if plan == "search" else ():
            search.PATIENCE, usual = 1 << cycles, search.PATIENCE
            counted(graph, pattern, settings.engine, work)
            print(f"    patience of 2^{cycles} cycles:", flush=True)
            print_steps(graph, pattern, settings.engine, work)
            search.PATIENCE = usual
    return wrong


def main() -> int:
    """Check, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--graphs", nargs="+", default=["ca-AstroPh", "rmat-16"], help="ca-AstroPh, or rmat-SCALE")
    parser.add_argument("--patterns", nargs="+", choices=TDFS_LABELLED, default=list(TDFS_LABELLED), metavar="P8")
    parser.add_argument("--steps", action="store_true", help="print what a count spends its time on")
    parser.add_argument("--patience", nargs="*", type=int, default=[], help="powers of two to try, in cycles")
    parser.add_argument("--check", type=float, default=3e9, help="most steps of a count that the CPU checks")
    parser.add_argument("--unchecked", action="store_true", help="without the small graph, which takes 20 s")
    parser.add_argument("--runs", type=int, default=5, help="counts of each pattern, besides a first one")
    parser.add_argument("--whole", action="store_true", help="compare with searches of the whole graph, too")
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        print(describe_machine(), flush=True)
        wrong = []
        if not settings.unchecked:
            wrong = [f"{one[1]}: {one[2]}, not as igraph" for one in labelled(settings.engine, folder) if not one[-1]]
            print("small graph: " + ("wrong" if wrong else "all patterns as igraph counts them"), flush=True)
        print(
            "| graph | pattern | count | plan | mining ms | by label ms | T-DFS ms | times as fast |\n"
            + "|---" * 8
            + "|"
        )
        for name in settings.graphs if not wrong else ():
            wrong += measure(name, settings, work)
    print("\n".join(wrong) if wrong else "every count is one")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
