"""Compare first runs on a machine, with no kernel on disk: with kernels compiled beside the run, and without.

    python -m benchmarks.gpu.first_run --engine cuda --pairs 3
    python -m benchmarks.gpu.first_run --engine cpu --pairs 3            # where there is no GPU
    python -m benchmarks.gpu.first_run --engine cpu --helpers 2          # whether or not cores are idle

Every count is compared with brute force. Runs with and without take turns, each in a process of its own with empty
folders for the kernels of Numba and CUDA; "later" are runs with all kernels on disk. Seconds are those of the whole
process; "busy" is its processor time, with that of the processes that it started.
"""

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.gpu.start import EDGES, WORKLOADS, caches, expected, finished
from benchmarks.lib.machine import describe_machine


def child(words: list[str], helpers: int) -> None:
    """Run the program with these words; print the answer and the processor time as JSON."""
    from longwall.pipeline.ahead import host_kernels
    from longwall.pipeline.run import running

    if helpers >= 0:
        host_kernels.idle_cores = lambda: helpers
    if helpers == 0:
        host_kernels.sources_of = lambda _: []
    with running(words[0], overrides=words[1:]) as result:
        pass
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    busy = sum(sum(resource.getrusage(kind)[:2]) for kind in kinds)
    print(json.dumps({"count": result.count, "busy": busy, "engine": result.engine}), flush=True)
    os._exit(0)  # as the program leaves


def one_run(folder: Path, config: str, number: int, helpers: int, cold: bool, limit: float) -> dict[str, Any]:
    """Return what a run found, and the seconds that it took."""
    here = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path[1:]])}
    command = ["-m", "benchmarks.gpu.first_run", "--helpers", str(helpers), "--child", config, f"run.name=run{number}"]
    start = time.perf_counter()
    found = finished(command, folder, caches(folder, cold) | here, limit)
    return found | {"seconds": time.perf_counter() - start}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--pairs", type=int, default=3, metavar="N", help="runs of each kind")
    parser.add_argument("--work", choices=tuple(WORKLOADS), action="append", help="by default all")
    parser.add_argument("--helpers", type=int, default=-1, metavar="N", help="by default as many as cores are idle")
    parser.add_argument("--limit", type=float, default=120.0, metavar="S", help="seconds that a process may take")
    parser.add_argument("--child", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.helpers)
        return
    machine = describe_machine()
    print(f"{machine['cpu']}, {machine['cores']} cores, load {machine['load_at_start']}; medians of {options.pairs}")
    print("| first run | with: s | busy | without: s | busy | ratio of s | later: s |\n|---|---|---|---|---|---|---|")
    for name in options.work or WORKLOADS:
        with tempfile.TemporaryDirectory() as place:
            print(row(Path(place), name, options), flush=True)


def row(folder: Path, name: str, options: argparse.Namespace) -> str:
    """Measure one kind of work."""
    os.environ.pop("NUMBA_CACHE_DIR", None)
    (folder / "graph.txt").write_text("".join(f"{u} {v}\n" for u, v in EDGES))
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in WORKLOADS[name].items()]
    config = folder / "config.toml"
    head = f'graph.path = "graph.txt"\nengine.kind = "{options.engine}"\nrun.directory = "runs"\n'
    config.write_text(f"{head}[workload]\n{''.join(lines)}")
    runs: dict[str, list[dict[str, Any]]] = {"with": [], "without": [], "later": []}
    # The first run is not counted: it compiles the modules of Python.
    kinds = ["later", *["with", "without"] * options.pairs, *["later"] * options.pairs]
    for number, kind in enumerate(kinds):
        helpers = 0 if kind == "without" else options.helpers
        found = one_run(folder, str(config), number, helpers, kind != "later", options.limit)
        if found["count"] != expected(name) or found["engine"] != options.engine:
            raise SystemExit(f"{name}: {found}, not {expected(name)}")
        runs[kind].append(found)
    del runs["later"][0]
    middle = {
        kind: {key: statistics.median(run[key] for run in all_runs) for key in ("seconds", "busy")}
        for kind, all_runs in runs.items()
    }
    ahead, alone = middle["with"], middle["without"]
    return (
        f"| {name} | {ahead['seconds']:.2f} | {ahead['busy']:.2f} | {alone['seconds']:.2f} | {alone['busy']:.2f} | "
        f"{ahead['seconds'] / alone['seconds']:.2f} | {middle['later']['seconds']:.2f} |"
    )


if __name__ == "__main__":
    main()
