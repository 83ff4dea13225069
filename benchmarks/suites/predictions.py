"""Compare what `longwall explain` predicts with what runs take, on this machine and on a cluster of two workers.

    python -m benchmarks.suites.predictions [--scales 16 18] [--data FOLDER] [--work FOLDER] [--limit 120] [--repeat 1]
    python -m benchmarks.suites.predictions --engine cuda --scales 18 20 22      # on a machine with a GPU
    python -m benchmarks.suites.predictions --engine cuda --scales 22 --device 256MiB      # the graph does not fit

Every case is predicted and run in turns, each time in a process of its own, so that both have the same neighbours on
a busy machine; the second of two runs in a process counts, as kernels are loaded then. `mine` is the time of mining
alone, `processors` the seconds of processors in it, `whole` the time of a process from its start to its results. Real
graphs (ca-AstroPh and socfb-JohnsHopkins55) are read from FOLDER/graphs, by default LONGWALL_DATA.

The exit status is 1 if a run fails, or if a prediction of mining is not within `--within` times (by default 1.5) of
what was measured (seconds of processors, where others keep the machine busy: predictions are of a machine that does
nothing else). What cannot be predicted is no failure. Mining of less than 0.3 s of processors is not judged, as commits
and the like take 0.1 of it, and a cluster is not below 3 s, as its workers take half a second for a phase whatever its
length.

A row for a cluster has one thread in each of its workers; `longwall explain --workers 2` with a file of rates says the
same.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.lib.machine import describe_machine
from benchmarks.lib.measure import call
from benchmarks.lib.processors import processors

_LEAST_SECONDS, _LEAST_CLUSTER_SECONDS = 0.3, 3.0  # of processors
_OWN_LOAD = 0.5  # beside the threads that mine; with more, processors' seconds are compared
_MEASURED: tuple[Callable[[Any], float], ...] = (
    lambda row: row[1]["mine"],
    lambda row: row[1]["used"],
    lambda row: row[2],
)
_REAL = ("ca-AstroPh", "socfb-JohnsHopkins55")
_LABELLED = {"kind": "match", "pattern": "0-1,0-2,1-2,2-3", "pattern_labels": [0, 1, 2, 0]}
WORKS: dict[str, dict[str, Any]] = {
    "triangles": {"kind": "triangles"},
    "4-cliques": {"kind": "cliques", "k": 4},
    "5-cliques": {"kind": "cliques", "k": 5},
    "labelled tailed triangles": _LABELLED,
    "4-motifs": {"kind": "motifs", "k": 4},
    "houses by homomorphisms": {"kind": "match", "pattern": "house"},
    "5-vertex decomposition": {"kind": "match", "pattern": "0-1,0-2,0-3,1-2,1-3,2-4,3-4"},
    "list of triangles": {"kind": "triangles", "output": "embeddings"},
    "triangles of vertices": {"kind": "triangles", "output": "vertices"},
    "maximal cliques": {"kind": "maximal-cliques"},
}
_OF_REAL = ("5-cliques", "4-motifs", "houses by homomorphisms", "list of triangles", "maximal cliques")
_OF_RMAT = ("triangles", "4-cliques", "5-cliques", "labelled tailed triangles", "4-motifs")
_OF_SMALL = (*_OF_RMAT, "houses by homomorphisms", "5-vertex decomposition", "list of triangles")
_ON_CLUSTER = ("5-cliques", "4-motifs")


def make_graph(store: str, scale: int = 0, edges: str = "") -> dict[str, Any]:
    """Make the store of an R-MAT graph with four random labels, or of an edge list, unless it is there."""
    import longwall
    from longwall.storage.graph.store_header import is_store
    from longwall.storage.graph.store_writer import write_graph

    if not is_store(store):
        rmat = {"scale": scale, "edge_factor": 16, "num_labels": 4, "seed": 1}
        write_graph(longwall.generate_graph("rmat", **rmat) if scale else longwall.open_graph(edges), store)
    graph = longwall.open_graph(store)
    return {"edges": graph.num_edges}


def _config(store: str, work: str, name: str, run: str, engine: str, device: str) -> dict[str, Any]:
    return {
        "graph": {"path": store},
        "workload": WORKS[name],
        "engine": {"kind": engine},
        "memory": {"spill": str(Path(work, "spill")), "device": device},
        "run": {"directory": str(Path(work, "runs")), "name": run, "overwrite": True},
    }


def predict(store: str, work: str, name: str, workers: int, engine: str, device: str) -> dict[str, float]:
    """Predict a case; on a cluster each worker has one thread."""
    from longwall.pipeline.config import load_config
    from longwall.pipeline.inputs import open_resources, read_graph
    from longwall.pipeline.prediction.clock import Clock
    from longwall.pipeline.prediction.costs import predict_cost
    from longwall.pipeline.prediction.predict import demand_of, sample_plan
    from longwall.storage.observer import NullObserver
    from longwall.storage.system.concurrency import core_count

    spec = load_config(_config(store, work, name, "prediction", engine, device))
    began = time.perf_counter()
    with open_resources(spec) as resources:
        clock = Clock()
        graph = read_graph(spec, NullObserver(), resources)
        read = clock.stop().quiet(core_count())
        samples = sample_plan(spec.workload.plan(graph), spec, graph, resources)
        demand = demand_of(samples, spec, graph, resources, read)
    rates = replace(demand.own, threads=1) if workers > 1 else demand.own
    cost = predict_cost(demand, rates, workers)
    mine = cost.of("tables") + cost.of("computing") + cost.of("dispatching")
    share = min((one.share for one in samples), default=1.0)
    used = sum(one.seconds + workers * one.open_processors for one in samples)
    took = time.perf_counter() - began
    return {"mine": mine, "used": used, "whole": cost.seconds, "share": share, "took": took}


def measure(store: str, work: str, name: str, workers: int, engine: str, device: str) -> dict[str, float]:
    """Run a case twice, and return the seconds of the second run."""
    import longwall

    config = _config(store, work, name, "measured", engine, device)
    if workers == 1:
        longwall.run(config)
        with processors("mine") as used:
            return {"mine": longwall.run(config).timings["mine"], "used": sum(used)}
    from distributed import Client, LocalCluster

    loopback = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "memory_limit": None}
    with LocalCluster(n_workers=workers, threads_per_worker=1, **loopback) as cluster, Client(cluster):
        config["scheduler"] = {"kind": "dask", "address": cluster.scheduler_address}
        longwall.run(config)
        began = _processors_of(cluster)
        mined = longwall.run(config).timings["mine"]
        return {"mine": mined, "used": _processors_of(cluster) - began}


def _processors_of(cluster: Any) -> float:
    """Return the seconds of processors of a cluster's workers so far."""
    import psutil

    times = [psutil.Process(worker.pid).cpu_times() for worker in cluster.workers.values()]
    return sum(one.user + one.system for one in times)


def run_once(store: str, work: str, name: str, engine: str, device: str) -> dict[str, float]:
    """Run a case once, as a command does."""
    import longwall

    return {"mine": longwall.run(_config(store, work, name, "once", engine, device)).timings["mine"]}


def cases(settings: argparse.Namespace, work: Path) -> list[tuple[str, str, tuple[str, ...]]]:
    """Make the graphs; return the title and the store of each, and what is done with it."""
    found = []
    for scale in settings.scales:
        store = work / f"rmat-{scale}-labelled.zarr"
        facts = _need(call(f"{__spec__.name}:make_graph", None, store=str(store), scale=scale))
        names = _OF_SMALL if scale <= 16 else _OF_RMAT
        found.append((f"R-MAT {scale}, {facts['edges']:,} edges", str(store), names))
    for name in _REAL:
        edges = Path(settings.data, "graphs", f"{name}.edges.gz")
        if edges.exists():
            store = work / f"{name}.zarr"
            facts = _need(call(f"{__spec__.name}:make_graph", None, store=str(store), edges=str(edges)))
            found.append((f"{name}, {facts['edges']:,} edges", str(store), _OF_REAL))
    return found


def _need(outcome: Any) -> Any:
    if outcome.status != "done":
        raise SystemExit(f"{outcome.status}: {outcome.reason}")
    return outcome.value


def compare(settings: argparse.Namespace, title: str, store: str, name: str, workers: int) -> bool:
    """Predict and run a case in turns, and print its row; gives whether it is good."""
    here, rows = __spec__.name, []
    for _ in range(settings.repeat):
        with tempfile.TemporaryDirectory(dir=settings.work) as work:
            arguments: dict[str, Any] = {"store": store, "work": work, "name": name}
            arguments |= {"engine": settings.engine, "device": settings.device}
            asked = call(f"{here}:predict", settings.limit, workers=workers, **arguments)
            ran = call(f"{here}:measure", settings.limit, workers=workers, **arguments)
            once = call(f"{here}:run_once", settings.limit, **arguments) if workers == 1 else ran
        for one in (asked, ran, once):
            if one.status != "done":
                print(f"| {title} | {name} | {workers} | {one.status}: {one.reason} |", flush=True)
                return one.status == "over the limit" or "Unpredictable" in one.reason
        rows.append((asked.value, ran.value, once.wall_seconds))
    share, took, mine, used, whole = (
        median(one[0][key] for one in rows) for key in ("share", "took", "mine", "used", "whole")
    )
    real, really_used, really = (median(of(one) for one in rows) for of in _MEASURED)
    cells = [f"{share:.1%}", f"{took:.1f}", f"{mine:.3f}", f"{real:.3f}", f"{mine / real:.2f}"]
    ratio = mine / real
    cells += [f"{used:.2f}", f"{really_used:.2f}", f"{used / max(really_used, 1e-9):.2f}"]
    cells += [f"{whole:.2f}", f"{really:.2f}", f"{whole / really:.2f}"] if workers == 1 else [""] * 3
    if settings.engine == "cpu" and os.getloadavg()[0] > len(os.sched_getaffinity(0)) + _OWN_LOAD:
        ratio = used / max(really_used, 1e-9)
    least = _LEAST_SECONDS if workers == 1 else _LEAST_CLUSTER_SECONDS
    judged = (really_used if settings.engine == "cpu" else real) >= least
    good = not judged or 1 / settings.within <= ratio <= settings.within
    verdict = "OUTSIDE" if not good else "" if judged else "short"
    print(f"| {title} | {name} | {workers} | {' | '.join(cells)} | {verdict} |", flush=True)
    return good


def main() -> None:
    """Print a row for every case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=int, nargs="*", default=[16, 18])
    parser.add_argument("--data", default=os.environ.get("LONGWALL_DATA", "../shared/data"))
    parser.add_argument("--work", type=Path, default=Path("build/benchmarks"))
    parser.add_argument("--engine", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--device", default="auto", help="memory.device")
    parser.add_argument("--limit", type=float, default=120, help="seconds for a process")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--within", type=float, default=1.5)
    parser.add_argument("--only", help="names of cases, with commas")
    settings = parser.parse_args()
    settings.work = settings.work.absolute()
    settings.work.mkdir(parents=True, exist_ok=True)
    machine = describe_machine()
    print(f"{machine['cpu']}, {machine['cores']} cores, load {machine['load_at_start']}, {time.strftime('%Y-%m-%d')}\n")
    print(
        "| graph | work | workers | sampled | s of explain | mine, predicted s | measured s | ratio "
        "| processors, predicted s | measured s | ratio | whole, predicted s | measured s | ratio | |"
    )
    print("|---|---|" + 12 * "---:|" + "---|", flush=True)
    good = True
    for title, store, names in cases(settings, settings.work):
        for name in names:
            if settings.only and name not in settings.only.split(","):
                continue
            on_cluster = name in _ON_CLUSTER and "R-MAT" in title and settings.engine == "cpu"
            for workers in (1, 2) if on_cluster else (1,):
                good &= compare(settings, title, store, name, workers)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
